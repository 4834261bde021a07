// What near.cl is, for systems whose vectors do not fit registers: a warp takes whole segments, eight rows to a lane.
//
// Formula: as near.cl. Lane l of a warp holds the rows l, l + 32, ..., l + 224 of a segment: the first three levels of a
// canonical sum stay within a lane, the others go between lanes.
// Bytes moved per row: the entries of the matrix; each vector an operation reads and writes, once; the operand of a
// product once, from cache where columns are near.
// Launch shape: groups of LACUNA_SIZE work-items, as many as the device runs at once; each takes consecutive segments.
// Sums meet in two steps: the sums of 256 segments are made by one warp of one group, those of all by every group.
// Assumes: NVIDIA's compiler; every group runs; at most 65536 segments.

#define ROWS _Pragma("unroll") for (uint r = 0; r < 8; r++)
#define LIVE(r) (base + 32u * (r) < n)
#define FENCE() __asm__ volatile("fence.acq_rel.gpu;" ::: "memory")

// The rows of this group of the product of matrix `m` with `x`, to `y` in global memory: every warp takes rows, so that
// all work however few segments there are. All work-items come here.
#if LACUNA_COMPLEX
#define DEPTH_FAR 4
#else
#define DEPTH_FAR 8
#endif
static inline void product_far(const Share *s, uint m, uint lanes, uint steps, __global const number *x,
    __global number *y) {
    __global const ulong *words = MATRIX(s->p, m);
    __global const uint *restrict row_ptr = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS]);
    __global const uint *restrict columns = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS + 1]);
    __global const number *restrict values = (__global const number *)(s->p.fixed + words[MATRIX_ARGUMENTS + 2]);
    __global const uint *restrict window = s->windows + 4 * (m * get_num_groups(0) + get_group_id(0));
    __global const uint *restrict at_columns = s->columns + window[2] + ITEM;
    __global const number *restrict at_values = s->values + window[2] + ITEM;
    const uint entries = steps > 0 ? window[3] : 0;
    const uint part = ITEM % lanes, step = SIZE / lanes, last = s->first + s->rows;
    for (uint first = s->first; first < last; first += step) {
        const uint i = first + ITEM / lanes;
        uint k = 0, end = 0;
        if (steps == 0 && i < last) {
            k = row_ptr[i] + part;
            end = row_ptr[i + 1];
        }
        number sum = ZERO;
        for (uint at = 0; at < entries; at += DEPTH_FAR) {
            uint c[DEPTH_FAR];
            number a[DEPTH_FAR], v[DEPTH_FAR];
#pragma unroll
            for (uint e = 0; e < DEPTH_FAR; e++) {
                bool there = at + e < entries;
                c[e] = there ? at_columns[(at + e) * SIZE] : LACUNA_NONE;
                a[e] = there ? at_values[(at + e) * SIZE] : ZERO;
            }
#pragma unroll
            for (uint e = 0; e < DEPTH_FAR; e++) {
                v[e] = c[e] != LACUNA_NONE ? x[c[e]] : ZERO;
            }
#pragma unroll
            for (uint e = 0; e < DEPTH_FAR; e++) {
                sum = c[e] != LACUNA_NONE ? multiply_add(a[e], v[e], sum) : sum;
            }
        }
        at_columns += entries * SIZE;
        at_values += entries * SIZE;
        for (; k < end; k += DEPTH_FAR * lanes) {
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

// w -+ V h of the rows of a segment.
static inline void combine_far(const Share *s, __global const uchar *v, ulong stride, __local const number *h,
    uint columns, bool add, uint segment, number *w) {
    const uint n = s->n, base = segment * SEGMENT + WARP_LANE;
    __global const uchar *at = v + (ulong)base * sizeof(number);
    for (uint j = 0; j < columns; j += 2) {
        bool second = j + 1 < columns;
        number a[8], b[8];
        __global const number *left = (__global const number *)(at + j * stride);
        __global const number *right = (__global const number *)(at + (j + second) * stride);
        ROWS a[r] = LIVE(r) ? left[32 * r] : ZERO;
        ROWS b[r] = LIVE(r) && second ? right[32 * r] : ZERO;
        number p = add ? h[j] : -h[j], q = second ? (add ? h[j + 1] : -h[j + 1]) : ZERO;
        if (!is_zero(p)) {
            ROWS w[r] = multiply_add(p, a[r], w[r]);
        }
        if (!is_zero(q)) {
            ROWS w[r] = multiply_add(q, b[r], w[r]);
        }
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
    for (uint j = 2 * part; j < columns; j += 2 * parts) {
        bool second = j + 1 < columns;
        number a[8], b[8];
        __global const number *left = (__global const number *)(at + j * stride);
        __global const number *right = (__global const number *)(at + (j + second) * stride);
        ROWS a[r] = LIVE(r) ? left[32 * r] : ZERO;
        ROWS b[r] = LIVE(r) && second ? right[32 * r] : ZERO;
        ROWS a[r] = LIVE(r) ? dot_term(a[r], w[r]) : ZERO;
        ROWS b[r] = LIVE(r) ? dot_term(b[r], w[r]) : ZERO;
        keep_sum(s, slot + j, segment, a);
        if (second) {
            keep_sum(s, slot + j + 1, segment, b);
        }
    }
}

// Waits for the sums of all groups and puts them in `work`, seen by all work-items, together with what all groups wrote
// to operands before.
static inline void collect_far(const Share *s, State *state, uint dots) {
    state->epoch += 1;
    __global ulong *words = half_of(s, state->epoch), *upper = words + s->upper;
    const uint group = get_group_id(0), groups = get_num_groups(0), chunks = segments_of(s->segments);
    MEET();
    if (state->dirty && ITEM < dots * s->mine) {
        FENCE();
    }
    for (uint p = ITEM; p < dots * s->mine; p += SIZE) {
        uint d = p / s->mine, i = p - d * s->mine;
        put_number(words, d * s->segments + s->from + i, s->got[p], state->epoch);
    }
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
    if (state->dirty && WARP < dots) {
        FENCE();
    }
    MEET();
    state->dirty = false;
    state->reads = 0;
}
