// What near.cl is, for systems whose vectors do not fit registers: a warp takes whole segments, eight rows to a lane.
//
// Formula: as near.cl. Lane l of a warp holds the rows l, l + 32, ..., l + 224 of a segment: the first three levels of a
// canonical sum stay within a lane, the others go between lanes.
// Bytes moved per row: the entries of the matrix; each vector an operation reads and writes, once; the operand of a
// product once, from cache where columns are near.
// Launch shape: groups of LACUNA_SIZE work-items, as many as the device runs at once; each takes consecutive segments.
// Many sums meet in two steps: the sums of 256 segments are made by one warp of one group, those of all by every group.
// Assumes: NVIDIA's compiler; every group runs; at most 65536 segments.

#define ROWS _Pragma("unroll") for (uint r = 0; r < 8; r++)
#define LIVE(r) (base + 32u * (r) < n)
#define FENCE() __asm__ volatile("fence.acq_rel.gpu;" ::: "memory")

// Entries are read once in an operation: they leave the second-level cache first, so that vectors stay there.
#if LACUNA_STREAMS
static inline ulong read_once(void) {
    ulong policy;
    __asm__("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
#define ONCE(type, operands) "{ .reg .pred p; setp.ne.u32 p, " operands                              \
    "; @p ld.global.nc.L1::no_allocate.L2::cache_hint." type " "
static inline uint index_once(__global const uint *at, bool there, ulong policy) {
    uint v = LACUNA_NONE;
    __asm__(ONCE("u32", "%3, 0") "%0, [%1], %2; }" : "+r"(v) : "l"(at), "l"(policy), "r"((uint)there));
    return v;
}
static inline number number_once(__global const number *at, bool there, ulong policy) {
    number v = ZERO;
#if LACUNA_COMPLEX && LACUNA_REAL_BITS == 64
    double re = 0, im = 0;
    __asm__(ONCE("v2.f64", "%4, 0") "{%0, %1}, [%2], %3; }" : "+d"(re), "+d"(im) : "l"(at), "l"(policy), "r"((uint)there));
    v = MAKE(re, im);
#elif LACUNA_COMPLEX
    float re = 0, im = 0;
    __asm__(ONCE("v2.f32", "%4, 0") "{%0, %1}, [%2], %3; }" : "+f"(re), "+f"(im) : "l"(at), "l"(policy), "r"((uint)there));
    v = MAKE(re, im);
#elif LACUNA_REAL_BITS == 64
    __asm__(ONCE("f64", "%3, 0") "%0, [%1], %2; }" : "+d"(v) : "l"(at), "l"(policy), "r"((uint)there));
#else
    __asm__(ONCE("f32", "%3, 0") "%0, [%1], %2; }" : "+f"(v) : "l"(at), "l"(policy), "r"((uint)there));
#endif
    return v;
}
#else
static inline ulong read_once(void) { return 0; }
static inline uint index_once(__global const uint *at, bool there, ulong policy) { return there ? at[0] : LACUNA_NONE; }
static inline number number_once(__global const number *at, bool there, ulong policy) { return there ? at[0] : ZERO; }
#endif

// Entries that a work-item has under way at a time.
#if LACUNA_COMPLEX
#define DEPTH_FAR 4
#else
#define DEPTH_FAR 8
#endif

// Products: the rows of this group of matrix `m` times `x`, to `y` in global memory. Every warp takes rows, so that all
// work however few segments there are. All work-items come here.

// Compressed rows as they are.
static inline void product_rows(const Share *s, uint m, uint lanes, __global const number *x, __global number *y) {
    __global const ulong *words = MATRIX(s->p, m);
    __global const uint *restrict row_ptr = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS]);
    __global const uint *restrict columns = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS + 1]);
    __global const number *restrict values = (__global const number *)(s->p.fixed + words[MATRIX_ARGUMENTS + 2]);
    const uint part = ITEM % lanes, step = SIZE / lanes, last = s->first + s->rows;
    for (uint first = s->first; first < last; first += step) {
        const uint i = first + ITEM / lanes, end = i < last ? row_ptr[i + 1] : 0;
        number sum = ZERO;
        for (uint k = i < last ? row_ptr[i] + part : 0; k < end; k += DEPTH_FAR * lanes) {
            uint c[DEPTH_FAR];
            number a[DEPTH_FAR], v[DEPTH_FAR];
#pragma unroll
            for (uint e = 0; e < DEPTH_FAR; e++) {
                bool there = k + e * lanes < end;
                c[e] = there ? columns[k + e * lanes] : 0;
                a[e] = there ? values[k + e * lanes] : ZERO;
            }
#pragma unroll
            for (uint e = 0; e < DEPTH_FAR; e++) {
                v[e] = k + e * lanes < end ? x[c[e]] : ZERO;
            }
#pragma unroll
            for (uint e = 0; e < DEPTH_FAR; e++) {
                sum = k + e * lanes < end ? multiply_add(a[e], v[e], sum) : sum;
            }
        }
        if (lanes > 1) {
            __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory");
            for (uint d = lanes / 2; d > 0; d /= 2) {
                sum = sum + down(sum, d);
            }
        }
        if (part == 0 && i < last) {
            y[i] = sum;
        }
    }
    MEET();
}

// A batch of runs of entries: of each its first column and `run` values.
#define RUNS_FAR 16
typedef struct {
    uint column[DEPTH_FAR];
    number value[RUNS_FAR];
} Batch;
static inline void fetch_batch(Batch *b, __global const uint *columns, __global const number *values, uint at,
    uint end, uint depth, uint run, ulong policy) {
#pragma unroll
    for (uint e = 0; e < depth; e++) {
        const bool there = at + e < end;
        const ulong place = at + e;
        b->column[e] = index_once(columns + place * 32, there, policy);
#pragma unroll
        for (uint c = 0; c < run; c++) {
            b->value[e * run + c] = number_once(values + (place * run + c) * 32, there, policy);
        }
    }
}

// Slices of 32 lanes, `lanes` of them a row; `row_of` where rows are in another order. While a batch waits for what it
// multiplies, the next is on its way.
static inline void multiply_slices(const Share *s, __global const uint *restrict slice_ptr,
    __global const uint *restrict columns, __global const number *restrict values,
    __global const uint *restrict row_of, bool sorted, uint lanes, uint run, __global const number *x,
    __global number *y) {
    const uint depth = run == 1 ? DEPTH_FAR : DEPTH_FAR / 2, rows = 32 / lanes, part = WARP_LANE % lanes;
    const uint last = (min(s->first + s->mine * SEGMENT, s->n) + rows - 1) / rows;
    const ulong policy = read_once();
    columns += WARP_LANE;
    values += WARP_LANE;
    uint slice = s->first / rows + WARP;
    if (slice < last) {
        uint at = slice_ptr[slice], end = slice_ptr[slice + 1];
        uint next = min(slice + WARPS, last - 1), next_at = slice_ptr[next], next_end = slice_ptr[next + 1];
        Batch b;
        fetch_batch(&b, columns, values, at, end, depth, run, policy);
        number sum = ZERO;
        for (;;) {
            number v[RUNS_FAR];
#pragma unroll
            for (uint e = 0; e < depth; e++) {
                const bool there = b.column[e] != LACUNA_NONE;
                __global const number *from = x + (there ? b.column[e] : 0);
#pragma unroll
                for (uint c = 0; c < run; c++) {
                    v[e * run + c] = there ? from[c] : ZERO;
                }
            }
            const uint row = slice * rows + WARP_LANE / lanes;
            at += depth;
            const bool done = at >= end;
            if (done) {
                slice += WARPS;
                at = next_at;
                end = next_end;
                next = min(slice + WARPS, last - 1);
                next_at = slice_ptr[next];
                next_end = slice_ptr[next + 1];
            }
            Batch ahead;
            fetch_batch(&ahead, columns, values, at, slice < last ? end : 0, depth, run, policy);
#pragma unroll
            for (uint e = 0; e < depth; e++) {
#pragma unroll
                for (uint c = 0; c < run; c++) {
                    const number more = multiply_add(b.value[e * run + c], v[e * run + c], sum);
                    sum = b.column[e] != LACUNA_NONE ? more : sum;
                }
            }
            if (done) {
                for (uint d = lanes / 2; d > 0; d /= 2) {
                    sum = sum + down(sum, d);
                }
                const uint to = sorted ? row_of[row] : row;
                if (part == 0 && to < s->n) {
                    y[to] = sum;
                }
                if (slice >= last) {
                    break;
                }
                sum = ZERO;
            }
            b = ahead;
        }
    }
    MEET();
}

// Compressed rows, or blocks with a run for each row of theirs, laid out anew in slices.
static inline void product_slices(const Share *s, uint m, uint lanes, uint run, __global const number *x,
    __global number *y) {
    __global const uint *restrict head = s->windows + 4 * m;
    multiply_slices(s, s->windows + head[0], s->columns + head[1], s->values + head[2], s->windows, false, lanes, run,
        x, y);
}

// Sliced ELLPACK as it is.
static inline void product_sell(const Share *s, uint m, __global const number *x, __global number *y) {
    __global const ulong *words = MATRIX(s->p, m) + MATRIX_ARGUMENTS;
    multiply_slices(s, (__global const uint *)(s->p.fixed + words[1]), (__global const uint *)(s->p.fixed + words[3]),
        (__global const number *)(s->p.fixed + words[4]), (__global const uint *)(s->p.fixed + words[2]), words[0] != 0,
        1, 1, x, y);
}

// Diagonals as they are: a row of a work-item at a time.
#define DIAGONALS(m) (uint)MATRIX(s.p, m)[MATRIX_ARGUMENTS]
#define DIA_ROWS 64u
static inline void product_diagonals(const Share *s, uint m, uint diagonals, __global const number *x,
    __global number *y) {
    __global const ulong *words = MATRIX(s->p, m) + MATRIX_ARGUMENTS;
    const uint cols = (uint)words[1], last = s->first + s->rows;
    __global const int *restrict offsets = (__global const int *)(s->p.fixed + words[2]);
    __global const number *restrict values = (__global const number *)(s->p.fixed + words[3]);
    const ulong policy = read_once();
    for (uint i = s->first + ITEM; i < last; i += SIZE) {
        __global const number *from = values + (ulong)(i / DIA_ROWS) * diagonals * DIA_ROWS + i % DIA_ROWS;
        number sum = ZERO;
#pragma unroll
        for (uint k = 0; k < diagonals; k += DEPTH_FAR) {
            bool within[DEPTH_FAR];
            number a[DEPTH_FAR], v[DEPTH_FAR];
#pragma unroll
            for (uint e = 0; e < DEPTH_FAR; e++) {
                const bool there = k + e < diagonals;
                const uint d = there ? k + e : diagonals - 1;
                const uint column = i + (uint)offsets[d]; // beyond `cols` too where it is negative
                within[e] = there && column < cols;
                a[e] = number_once(from + d * DIA_ROWS, there, policy);
                v[e] = within[e] ? x[column] : ZERO;
            }
#pragma unroll
            for (uint e = 0; e < DEPTH_FAR; e++) {
                sum = within[e] ? multiply_add(a[e], v[e], sum) : sum;
            }
        }
        y[i] = sum;
    }
    MEET();
}

// Two columns of the rows of a segment, from column `j` on.
static inline void fetch_pair(__global const uchar *at, ulong stride, uint j, uint columns, uint base, uint n, number *a,
    number *b) {
    __global const number *left = (__global const number *)(at + j * stride);
    __global const number *right = (__global const number *)(at + (j + 1) * stride);
    ROWS a[r] = LIVE(r) && j < columns ? left[32 * r] : ZERO;
    ROWS b[r] = LIVE(r) && j + 1 < columns ? right[32 * r] : ZERO;
}

// w -+ V h of the rows of a segment.
static inline void combine_far(const Share *s, __global const uchar *v, ulong stride, __local const number *h,
    uint columns, bool add, uint segment, number *w) {
    const uint n = s->n, base = segment * SEGMENT + WARP_LANE;
    __global const uchar *at = v + (ulong)base * sizeof(number);
    number a[8], b[8];
    fetch_pair(at, stride, 0, columns, base, n, a, b);
    for (uint j = 0; j < columns; j += 2) {
        number c[8], d[8];
        fetch_pair(at, stride, j + 2, columns, base, n, c, d);
        number p = add ? h[j] : -h[j], q = j + 1 < columns ? (add ? h[j + 1] : -h[j + 1]) : ZERO;
        if (!is_zero(p)) {
            ROWS w[r] = multiply_add(p, a[r], w[r]);
        }
        if (!is_zero(q)) {
            ROWS w[r] = multiply_add(q, b[r], w[r]);
        }
        ROWS a[r] = c[r];
        ROWS b[r] = d[r];
    }
}

// The sum of a segment for the next exchange.
static inline void keep_sum(const Share *s, uint sum, uint segment, const number *e) {
    number total = warp_sum(e);
    if (WARP_LANE == 0) {
        s->got[sum * s->mine + segment - s->from] = total;
    }
}

// conj(v_j) . w of a segment, for each pair of columns that falls to one of so many parts.
static inline void project_far(const Share *s, __global const uchar *v, ulong stride, uint slot, uint columns,
    uint part, uint parts, uint segment, const number *w) {
    const uint n = s->n, base = segment * SEGMENT + WARP_LANE;
    __global const uchar *at = v + (ulong)base * sizeof(number);
    number a[8], b[8];
    fetch_pair(at, stride, 2 * part, columns, base, n, a, b);
    for (uint j = 2 * part; j < columns; j += 2 * parts) {
        number c[8], d[8];
        fetch_pair(at, stride, j + 2 * parts, columns, base, n, c, d);
        ROWS a[r] = LIVE(r) ? dot_term(a[r], w[r]) : ZERO;
        keep_sum(s, slot + j, segment, a);
        if (j + 1 < columns) {
            ROWS b[r] = LIVE(r) ? dot_term(b[r], w[r]) : ZERO;
            keep_sum(s, slot + j + 1, segment, b);
        }
        ROWS a[r] = c[r];
        ROWS b[r] = d[r];
    }
}

// The sums of this group's segments, for all groups, behind what it wrote to operands.
static inline __global ulong *show_sums(const Share *s, State *state, uint dots) {
    state->epoch += 1;
    __global ulong *words = half_of(s, state->epoch);
    MEET();
    if (state->dirty && ITEM < dots * s->mine) {
        FENCE();
    }
    for (uint p = ITEM; p < dots * s->mine; p += SIZE) {
        uint d = p / s->mine, i = p - d * s->mine;
        put_number(words, d * s->segments + s->from + i, s->got[p], state->epoch);
    }
    return words;
}

// `count` warps have what they waited for: all work-items see it, together with what all groups wrote to operands before.
static inline void collected(State *state, uint count) {
    if (state->dirty && WARP < count) {
        FENCE();
    }
    MEET();
    state->dirty = false;
    state->reads = 0;
}

// Waits for the sums of all groups and puts them in `work`.
static inline void collect_far(const Share *s, State *state, uint dots) {
    __global ulong *words = show_sums(s, state, dots), *upper = words + s->upper;
    const uint group = get_group_id(0), groups = get_num_groups(0), chunks = LACUNA_CHUNKS;
    for (uint u = group + groups * WARP; u < dots * chunks; u += groups * WARPS) {
        number sum;
        collect_chunk(s, words, state->epoch, u / chunks, 1, u % chunks, &sum);
        if (WARP_LANE == 0) {
            if (state->dirty) {
                FENCE();
            }
            put_number(upper, u, sum, state->epoch);
        }
    }
    for (uint d = WARP; d < dots; d += WARPS) {
        number e[8];
        bool there;
        do {
            there = true;
#pragma unroll
            for (uint k = 0; k < 8; k++) {
                uint i = WARP_LANE + 32 * k;
                e[k] = ZERO;
                if (i < chunks) {
                    there &= get_number(upper, d * chunks + i, state->epoch, &e[k]);
                }
            }
        } while (!there);
        __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory");
        number sum = chunks == 1 ? e[0] : warp_sum(e);
        if (WARP_LANE == 0) {
            s->work[d] = sum;
        }
    }
    collected(state, dots);
}

// The same where they are few: every group waits for all of them by itself, and `work` has them chunk by chunk.
static inline void collect_few(const Share *s, State *state, uint dots) {
    __global ulong *words = show_sums(s, state, dots);
    if (WARP < dots * LACUNA_CHUNKS) {
        number sum;
        collect_chunk(s, words, state->epoch, WARP / LACUNA_CHUNKS, 1, WARP % LACUNA_CHUNKS, &sum);
        if (WARP_LANE == 0) {
            s->work[WARP] = sum;
        }
    }
    collected(state, dots * LACUNA_CHUNKS);
}
