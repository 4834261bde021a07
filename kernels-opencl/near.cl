// A whole program in one launch, written out for one program: what its operations, see `generate.rs`, are made of.
//
// Formula: operation by operation that of sweep.cl, spmv_csr.cl and basis.cl, to the bit.
// Bytes moved per row: the entries of the matrix and the columns of a basis in use; other vectors stay in registers. The
// operand of a product goes through global memory once: in words of value and tag where several groups run, in local
// memory where one does.
// Launch shape: one group of LACUNA_SIZE work-items, a row each, or several that each own whole segments. Their sums
// meet as words of value and epoch that every group waits for, so that barrier and reduction are one round trip; so do
// the rows of an operand, whose tag tells that they are there. Each group evaluates all formulas for itself.
// Assumes: several groups only where the device runs them all at once; no more rows of a group than work-items; at most
// 1024 segments; 16-byte accesses are single on NVIDIA, and elsewhere stores and loads are seen in order.

#define SIZE LACUNA_SIZE
// Words of the control buffer: the control block, then the state, then room for a short history, then the cells.
#define AT_HISTORY LACUNA_AT_HISTORY
#define AT_CELLS LACUNA_AT_CELLS
#define ONE_GROUP LACUNA_ONE
#if !LACUNA_PRELUDE
#define LACUNA_ENTRY __attribute__((reqd_work_group_size(LACUNA_SIZE, 1, 1)))
#define LACUNA_GIVEN
#define GIVEN(i) control[i]
#define TAKE_CHANGED(cells)
#define LOCAL(type, name) __local type *name
#define OPEN_LOCAL(type, name)
#define FIXED_LOCAL(type, name, size) __local type name[size]
#endif
// How a launch begins beside going on: from the start, or on behalf of a caller who cancels.
#define ENTER_CANCEL 2u
// What an operation leaves in `next`: an operation that is due, or one of these with where it comes from.
#define NEXT_DONE 0xC0000000u   // its instructions are to be evaluated
#define NEXT_HALT 0x80000000u   // it has halted the section
#define NEXT_ENTER 0x40000000u  // the instructions before it are to be evaluated
#define NEXT_RARE 0xC0000000u

#define PARTS (1u + LACUNA_COMPLEX * (LACUNA_REAL_BITS / 64u))
// 64-bit words that follow the control block: epoch and tag so far.
#define STATE_EPOCH LACUNA_CONTROL_WORDS
#define STATE_TAG (LACUNA_CONTROL_WORDS + 1u)

// A value and what tells when it was written.
typedef struct {
    ulong value, tag;
} Word;

#if LACUNA_NVIDIA
#define MEET() barrier(CLK_LOCAL_MEM_FENCE)
static inline void put_word(__global ulong *at, ulong value, ulong tag) {
    __asm__ volatile("{ .reg .b128 w; mov.b128 w, {%1, %2}; st.relaxed.gpu.global.b128 [%0], w; }"
                     :: "l"(at), "l"(value), "l"(tag) : "memory");
}
static inline Word get_word(__global const ulong *at) {
    Word word;
    __asm__ volatile("{ .reg .b128 w; ld.relaxed.gpu.global.b128 w, [%2]; mov.b128 {%0, %1}, w; }"
                     : "=l"(word.value), "=l"(word.tag) : "l"(at) : "memory");
    return word;
}
static inline uint down_bits(uint v, uint d) {
    uint r;
    __asm__ volatile("shfl.sync.down.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r) : "r"(v), "r"(d));
    return r;
}
static inline real down_real(real v, uint d) {
#if LACUNA_REAL_BITS == 64
    ulong bits = as_ulong(v);
    return as_double((ulong)down_bits((uint)(bits >> 32), d) << 32 | down_bits((uint)bits, d));
#else
    return as_float(down_bits(as_uint(v), d));
#endif
}
static inline number down(number v, uint d) {
#if LACUNA_COMPLEX
    return MAKE(down_real(v.x, d), down_real(v.y, d));
#else
    return down_real(v, d);
#endif
}
#else
#define MEET() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
static inline void put_word(volatile __global ulong *at, ulong value, ulong tag) {
    at[0] = value;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    at[1] = tag;
}
static inline Word get_word(volatile __global const ulong *at) {
    Word word;
    word.tag = at[1];
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    word.value = at[0];
    return word;
}
#endif

// A number as the values of PARTS words.
static inline ulong part_of(number v, uint part) {
#if LACUNA_COMPLEX && LACUNA_REAL_BITS == 64
    return as_ulong(part ? v.y : v.x);
#elif LACUNA_COMPLEX || LACUNA_REAL_BITS == 64
    return as_ulong(v);
#else
    return as_uint(v);
#endif
}
static inline number of_parts(ulong first, ulong second) {
#if LACUNA_COMPLEX && LACUNA_REAL_BITS == 64
    return MAKE(as_double(first), as_double(second));
#elif LACUNA_COMPLEX
    return as_float2(first);
#elif LACUNA_REAL_BITS == 64
    return as_double(first);
#else
    return as_float((uint)first);
#endif
}
static inline void put_number(__global ulong *words, uint i, number v, ulong tag) {
    for (uint part = 0; part < PARTS; part++) {
        put_word(words + 2 * (PARTS * i + part), part_of(v, part), tag);
    }
}
// The number of place `i` where its tag is there.
static inline bool get_number(__global const ulong *words, uint i, ulong tag, number *v) {
    Word a = get_word(words + 2 * PARTS * i), b = a;
#if LACUNA_COMPLEX && LACUNA_REAL_BITS == 64
    b = get_word(words + 2 * (PARTS * i + 1));
#endif
    *v = of_parts(a.value, b.value);
    return a.tag == tag && b.tag == tag;
}

// What stays as it is while the kernel runs, of this group.
typedef struct {
    Place p;
    __global ulong *exchange; // two halves of sums
    __global ulong *shared;   // two vectors of words
    __global const uint *restrict windows;
    __global const uint *restrict columns;  // of entries that lie as they are taken
    __global const number *restrict values;
    __local number *work;     // LACUNA_WORK segments' terms for each segment of the group
    __local number *got;      // sums
    __local number *rows_at;  // rows of a product
    __local number *window;   // the operand of a product
    uint n, segments, half_words;
    uint from, mine;          // segments of this group
    uint first, rows;         // rows of this group
    uint upper;               // where a half has the sums of chunks, see far.cl
} Share;

// What all work-items of all groups know alike.
typedef struct {
    ulong epoch, tag;
    uint shown; // the vector whose rows are in `shared` or `window`
    uint reads; // products since the last exchange
    bool dirty; // an operand has been written since then, see far.cl
} State;

#define WARP (ITEM / 32u)
#define WARPS (SIZE / 32u)
#define WARP_LANE (ITEM % 32u)
#define CELL(c) near_cells[c]

// The sum of the chunks of a canonical sum, of which there are up to four.
static inline number last_sum(__local const number *got, uint count) {
    if (count <= 1) {
        return got[0];
    }
    number a = got[0] + ZERO, b = got[1] + ZERO;
    number c = (count > 2 ? got[2] : ZERO) + ZERO, d = (count > 3 ? got[3] : ZERO) + ZERO;
    return (a + c) + (b + d);
}

#if LACUNA_NVIDIA
// The canonical sum of a segment, eight terms of stride 32 to a lane of a warp; in lane 0.
static inline number warp_sum(const number *e) {
    number sum = SUM_8(e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7]);
#pragma unroll
    for (uint d = 16; d > 0; d /= 2) {
        sum = sum + down(sum, d);
    }
    return sum;
}
static inline number segment_of(__local const number *terms) {
    number e[8];
#pragma unroll
    for (uint k = 0; k < 8; k++) {
        e[k] = terms[WARP_LANE + 32 * k];
    }
    return warp_sum(e);
}
#else
// Sums blocks of 256 terms in place, by all work-items.
static inline void halve(__local number *terms, uint blocks) {
    for (uint stride = SEGMENT / 2; stride > 0; stride /= 2) {
        MEET();
        for (uint x = ITEM; x < blocks * stride; x += SIZE) {
            __local number *at = terms + x / stride * SEGMENT + x % stride;
            at[0] = at[0] + at[stride];
        }
    }
    MEET();
}
#endif

// The words of the next exchange.
static inline __global ulong *half_of(const Share *s, ulong epoch) {
    return s->exchange + (epoch & 1) * s->half_words;
}

// The terms of `dots` sums, which lie in `work` segment after segment for each sum, are summed and sent, as sums
// `slot` and on. All work-items come here after the terms are written; a barrier must follow before they change.
static inline void send(const Share *s, const State *state, uint slot, uint dots) {
    MEET();
#if !LACUNA_NVIDIA
    halve(s->work, dots * s->mine);
    for (uint p = ITEM; p < dots * s->mine; p += SIZE) {
        number sum = s->work[p * SEGMENT];
#else
    for (uint p = WARP; p < dots * s->mine; p += WARPS) {
        number sum = segment_of(s->work + p * SEGMENT);
        if (WARP_LANE != 0) {
            continue;
        }
#endif
        uint d = s->mine == 1 ? p : p / s->mine, i = p - d * s->mine;
        if (ONE_GROUP) {
            s->got[(slot + d) * s->mine + i] = sum;
        } else {
            put_number(half_of(s, state->epoch + 1), (slot + d) * s->segments + s->from + i, sum, state->epoch + 1);
        }
    }
}

// The same for columns of a basis: conj(v_j) . w, with w in `work`.
static inline void send_columns(const Share *s, const State *state, __global const uchar *v, ulong stride, uint slot,
    uint columns) {
    MEET();
#if LACUNA_NVIDIA
    for (uint p = WARP; p < columns * s->mine; p += WARPS) {
        uint d = s->mine == 1 ? p : p / s->mine, i = p - d * s->mine;
        __global const number *column = (__global const number *)(v + d * stride) + s->first;
        number e[8];
#pragma unroll
        for (uint k = 0; k < 8; k++) {
            uint row = i * SEGMENT + WARP_LANE + 32 * k;
            e[k] = row < s->rows ? column[row] : ZERO;
        }
#pragma unroll
        for (uint k = 0; k < 8; k++) {
            uint row = i * SEGMENT + WARP_LANE + 32 * k;
            e[k] = row < s->rows ? dot_term(e[k], s->work[row]) : ZERO;
        }
        number sum = warp_sum(e);
        if (WARP_LANE != 0) {
            continue;
        }
        if (ONE_GROUP) {
            s->got[(slot + d) * s->mine + i] = sum;
        } else {
            put_number(half_of(s, state->epoch + 1), (slot + d) * s->segments + s->from + i, sum, state->epoch + 1);
        }
    }
#else
    __local number *terms = s->work + s->mine * SEGMENT;
    for (uint d = 0; d < columns; d++) {
        __global const number *column = (__global const number *)(v + d * stride) + s->first;
        for (uint x = ITEM; x < s->mine * SEGMENT; x += SIZE) {
            terms[x] = x < s->rows ? dot_term(column[x], s->work[x]) : ZERO;
        }
        halve(terms, s->mine);
        for (uint i = ITEM; i < s->mine; i += SIZE) {
            number sum = terms[i * SEGMENT];
            if (ONE_GROUP) {
                s->got[(slot + d) * s->mine + i] = sum;
            } else {
                put_number(half_of(s, state->epoch + 1), (slot + d) * s->segments + s->from + i, sum,
                    state->epoch + 1);
            }
        }
        MEET();
    }
#endif
}

// Chunks of the sums in `got` after `collect`.
static inline uint chunks_of(const Share *s) { return ONE_GROUP ? s->mine : segments_of(s->segments); }

#if LACUNA_NVIDIA
// One chunk of one sum, as soon as all segments of it are there; one warp, the sum in lane 0.
static inline number collect_one(const Share *s, __global const ulong *half_words, ulong epoch, uint d, uint chunk) {
    number e[8];
    bool there;
    do {
        there = true;
#pragma unroll
        for (uint k = 0; k < 8; k++) {
            uint i = chunk * SEGMENT + WARP_LANE + 32 * k;
            e[k] = ZERO;
            if (i < s->segments) {
                there &= get_number(half_words, d * s->segments + i, epoch, &e[k]);
            }
        }
    } while (!there);
    __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    return s->segments == 1 ? e[0] : warp_sum(e);
}
#endif

// Waits for the sums of all groups and puts them in `got`, chunk after chunk for each sum, seen by all work-items. All
// work-items come here.
static inline void collect(const Share *s, State *state, uint dots) {
    state->epoch += 1;
    state->reads = 0;
#if !ONE_GROUP
    __global const ulong *words = half_of(s, state->epoch);
    uint chunks = chunks_of(s);
#if LACUNA_NVIDIA
    for (uint p = WARP; p < dots * chunks; p += WARPS) {
        number sum = collect_one(s, words, state->epoch, p / chunks, p % chunks);
        if (WARP_LANE == 0) {
            s->got[p] = sum;
        }
    }
#else
    MEET();
    for (uint d = 0; d < dots; d++) {
        for (uint c = 0; c < chunks; c++) {
            for (uint x = ITEM; x < SEGMENT; x += SIZE) {
                uint i = c * SEGMENT + x;
                number v = ZERO;
                while (i < s->segments && !get_number(words, d * s->segments + i, state->epoch, &v)) {
                }
                s->work[x] = v;
            }
            if (s->segments > 1) {
                halve(s->work, 1);
            } else {
                MEET();
            }
            if (ITEM == 0) {
                s->got[d * chunks + c] = s->work[0];
            }
            MEET();
        }
    }
#endif
#endif
    MEET();
}

// The same for a single sum of one chunk, which the first work-item alone receives, at once.
static inline number collect_alone(const Share *s, State *state) {
#if LACUNA_NVIDIA && LACUNA_CHUNKS == 1
    number sum = ZERO;
    state->epoch += 1;
    state->reads = 0;
    if (WARP == 0) {
#if ONE_GROUP
        sum = s->got[0]; // written by this warp
#else
        sum = collect_one(s, half_of(s, state->epoch), state->epoch, 0, 0);
#endif
    }
    return sum;
#else
    collect(s, state, 1);
    return last_sum(s->got, chunks_of(s));
#endif
}

// All groups have come here.
static inline void meet_groups(const Share *s, State *state) {
    MEET();
#if !ONE_GROUP
    state->epoch += 1;
    __global ulong *words = half_of(s, state->epoch);
    if (ITEM == 0) {
#if LACUNA_FAR
        __asm__ volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
        put_word(words + 2 * get_group_id(0), 0, state->epoch);
    }
    for (uint i = ITEM; i < get_num_groups(0); i += SIZE) {
        while (get_word(words + 2 * i).tag != state->epoch) {
        }
    }
#if LACUNA_FAR
    if (ITEM < get_num_groups(0)) {
        __asm__ volatile("fence.acq_rel.gpu;" ::: "memory");
    }
#endif
    MEET();
#endif
    state->reads = 0;
    state->dirty = false;
}

// Makes the rows of vector `v` known to all who multiply it; each work-item brings its own.
static inline void show(const Share *s, State *state, uint v, bool own, number value) {
    if (state->reads >= (ONE_GROUP ? 1u : 2u)) {
        meet_groups(s, state);
    }
    state->tag += 1;
    state->shown = v;
    if (own) {
#if ONE_GROUP
        s->window[ITEM] = value;
#else
        put_number(s->shared + (state->tag & 1) * 2 * PARTS * s->n, s->first + ITEM, value, state->tag);
#endif
    }
}

#if ONE_GROUP
#define SHOWN(s, state) 0
#define OPERAND(column) s->window[column]
#else
#define SHOWN(s, state) ((s)->shared + ((state)->tag & 1) * 2 * PARTS * (s)->n)
#define OPERAND(column) s->window[(column) - low]
#endif

// Brings the rows that this group multiplies, the window of matrix `m`, to local memory; all work-items come here.
static inline uint open_window(const Share *s, State *state, uint m, bool fits) {
    state->reads += 1;
    uint low = 0;
    MEET();
#if !ONE_GROUP
    if (fits) {
        __global const ulong *words = SHOWN(s, state);
        __global const uint *restrict window = s->windows + 4 * (m * get_num_groups(0) + get_group_id(0));
        low = window[0];
        uint width = window[1];
        for (uint i = ITEM; i < width; i += 4 * SIZE) {
            number v[4];
            bool there;
            do {
                there = true;
#pragma unroll
                for (uint k = 0; k < 4; k++) {
                    v[k] = ZERO;
                    if (i + k * SIZE < width) {
                        there &= get_number(words, low + i + k * SIZE, state->tag, &v[k]);
                    }
                }
            } while (!there);
#pragma unroll
            for (uint k = 0; k < 4; k++) {
                if (i + k * SIZE < width) {
                    s->window[i + k * SIZE] = v[k];
                }
            }
        }
        MEET();
    }
#endif
    return low;
}

// The entries of a row that fall to a lane, in order; x from local memory, or from words where the window does not fit.
static inline number row_lane(const Share *s, const State *state, bool fits, uint low,
    __global const uint *restrict columns, __global const number *restrict values, uint k, uint end, uint lanes) {
#if LACUNA_COMPLEX
#define DEPTH 4
#else
#define DEPTH 8
#endif
    number sum = ZERO;
    for (; k < end; k += DEPTH * lanes) {
        uint column[DEPTH];
        number a[DEPTH], x[DEPTH];
#pragma unroll
        for (uint i = 0; i < DEPTH; i++) {
            bool there = k + i * lanes < end;
            column[i] = there ? columns[k + i * lanes] : 0;
            a[i] = there ? values[k + i * lanes] : ZERO;
        }
#if !ONE_GROUP
        if (!fits) {
            __global const ulong *words = SHOWN(s, state);
            bool all;
            do {
                all = true;
#pragma unroll
                for (uint i = 0; i < DEPTH; i++) {
                    if (k + i * lanes < end) {
                        all &= get_number(words, column[i], state->tag, &x[i]);
                    }
                }
            } while (!all);
        } else
#endif
        {
#pragma unroll
            for (uint i = 0; i < DEPTH; i++) {
                x[i] = k + i * lanes < end ? OPERAND(column[i]) : ZERO;
            }
        }
#pragma unroll
        for (uint i = 0; i < DEPTH; i++) {
            if (k + i * lanes < end) {
                sum = multiply_add(a[i], x[i], sum);
            }
        }
    }
    return sum;
}

// The same where entries lie as they are taken: entry by entry for all work-items; columns count from the window.
static inline number staged_lane(const Share *s, const State *state, bool fits, __global const uint *restrict columns,
    __global const number *restrict values, uint entries) {
    number sum = ZERO;
    for (uint e = 0; e < entries; e += DEPTH) {
        uint column[DEPTH];
        number a[DEPTH], x[DEPTH];
#pragma unroll
        for (uint i = 0; i < DEPTH; i++) {
            bool there = e + i < entries;
            column[i] = there ? columns[(e + i) * SIZE + ITEM] : LACUNA_NONE;
            a[i] = there ? values[(e + i) * SIZE + ITEM] : ZERO;
        }
#if !ONE_GROUP
        if (!fits) {
            __global const ulong *words = SHOWN(s, state);
            bool all;
            do {
                all = true;
#pragma unroll
                for (uint i = 0; i < DEPTH; i++) {
                    if (column[i] != LACUNA_NONE) {
                        all &= get_number(words, column[i], state->tag, &x[i]);
                    }
                }
            } while (!all);
        } else
#endif
        {
#pragma unroll
            for (uint i = 0; i < DEPTH; i++) {
                x[i] = column[i] != LACUNA_NONE ? s->window[column[i]] : ZERO;
            }
        }
#pragma unroll
        for (uint i = 0; i < DEPTH; i++) {
            sum = column[i] != LACUNA_NONE ? multiply_add(a[i], x[i], sum) : sum;
        }
    }
    return sum;
}

// The work-item's row of the product of matrix `m` with what is shown. All work-items come here.
static inline number product_csr(const Share *s, State *state, uint m, uint lanes, bool fits, uint steps,
    bool own) {
    __global const ulong *words = MATRIX(s->p, m);
    __global const uint *restrict row_ptr = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS]) + s->first;
    __global const uint *restrict columns = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS + 1]);
    __global const number *restrict values = (__global const number *)(s->p.fixed + words[MATRIX_ARGUMENTS + 2]);
    __global const uint *restrict window = s->windows + 4 * (m * get_num_groups(0) + get_group_id(0));
    __global const uint *restrict at_columns = s->columns + window[2];
    __global const number *restrict at_values = s->values + window[2];
    const uint entries = window[3];
    if (lanes == 1 && steps > 0) {
        open_window(s, state, m, fits);
        return staged_lane(s, state, fits, at_columns, at_values, entries);
    }
    if (lanes == 1) {
        uint start = own ? row_ptr[ITEM] : 0, end = own ? row_ptr[ITEM + 1] : 0;
        uint low = open_window(s, state, m, fits);
        return row_lane(s, state, fits, low, columns, values, start, end, 1);
    }
    uint low = open_window(s, state, m, fits);
    const uint part = ITEM % lanes, step = SIZE / lanes;
    for (uint base = 0, turn = 0; base < s->rows; base += step, turn++) {
        uint i = base + ITEM / lanes;
        number sum = ZERO;
        if (steps > 0) {
            uint at = turn * entries * SIZE;
            sum = staged_lane(s, state, fits, at_columns + at, at_values + at, entries);
        } else if (i < s->rows) {
            sum = row_lane(s, state, fits, low, columns, values, row_ptr[i] + part, row_ptr[i + 1], lanes);
        }
#if LACUNA_NVIDIA
        __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory");
        for (uint d = lanes / 2; d > 0; d /= 2) {
            sum = sum + down(sum, d);
        }
        if (part == 0 && i < s->rows) {
            s->rows_at[i] = sum;
        }
#else
        s->work[ITEM] = sum;
        for (uint d = lanes / 2; d > 0; d /= 2) {
            MEET();
            if (part < d) {
                s->work[ITEM] = s->work[ITEM] + s->work[ITEM + d];
            }
        }
        if (part == 0 && i < s->rows) {
            s->rows_at[i] = s->work[ITEM];
        }
        MEET();
#endif
    }
    MEET();
    return own ? s->rows_at[ITEM] : ZERO;
}

// w -+ V h of the work-item's row.
static inline number combine_row(const Share *s, __global const uchar *v, ulong stride, __local const number *h,
    uint columns, bool add, number w) {
    __global const uchar *at = v + (ulong)(s->first + ITEM) * sizeof(number);
    number sum = w;
    for (uint j = 0; j < columns; j += 8) {
        number value[8];
#pragma unroll
        for (uint c = 0; c < 8; c++) {
            value[c] = j + c < columns ? *(__global const number *)(at + (j + c) * stride) : ZERO;
        }
#pragma unroll
        for (uint c = 0; c < 8; c++) {
            if (j + c < columns) {
                number weight = add ? h[j + c] : -h[j + c];
                sum = is_zero(weight) ? sum : multiply_add(weight, value[c], sum);
            }
        }
    }
    return sum;
}

// The rotations so far on column `j`, and a new one that zeroes its last entry; see `rotate_column` in cells.cl.
static inline void rotate_near(__local number *near_cells, uint m, uint h, uint rotations, uint g, uint used, uint j,
    uint rr) {
    __local number *column = near_cells + h + j * (m + 1), *turns = near_cells + rotations;
    number a = column[0];
    for (uint i = 0; i < j; i += 4) {
        number c[4], s[4], b[4];
#pragma unroll
        for (uint k = 0; k < 4; k++) {
            uint at = min(i + k, j - 1);
            c[k] = turns[2 * at];
            s[k] = turns[2 * at + 1];
            b[k] = column[at + 1];
        }
#pragma unroll
        for (uint k = 0; k < 4; k++) {
            if (i + k < j) {
                column[i + k] = multiply_add(conjugate(s[k]), b[k], times(conjugate(c[k]), a));
                a = multiply_add(-s[k], a, times(c[k], b[k]));
            }
        }
    }
    number b = column[j + 1], gj = near_cells[g + j];
    number norm = root(dot_term(a, a) + dot_term(b, b));
    number c = ONE, s = ZERO;
    if (!is_zero(norm)) {
        c = quotient(a, norm);
        s = quotient(b, norm);
    }
    turns[2 * j] = c;
    turns[2 * j + 1] = s;
    column[j] = norm;
    column[j + 1] = ZERO;
    near_cells[g + j] = times(conjugate(c), gj);
    number last = times(-s, gj);
    near_cells[g + j + 1] = last;
    near_cells[rr] = dot_term(last, last);
    near_cells[used] = from_real((real)(j + 1));
}

// One iteration is done; whether that halts the section. See CODE_COUNT in cells.cl.
static inline bool count_near(const Share *s, number rr) {
    __local ulong *control = s->p.control;
    ulong iterations = control[LACUNA_CONTROL_ITERATIONS] + 1;
    control[LACUNA_CONTROL_ITERATIONS] = iterations;
    control[LACUNA_CONTROL_RECURRENCE] = REAL_BITS(RE(rr));
    bool finite = is_finite(rr), limit = iterations >= control[LACUNA_CONTROL_LIMIT];
    record(&s->p, RE(rr));
    if (finite && !limit) {
        return false;
    }
    stop(control, finite ? LACUNA_REASON_LIMIT : LACUNA_REASON_NOT_FINITE, false);
    return true;
}
