// A whole program in one launch, written out for one program: what its operations, see `generate.rs`, are made of.
//
// Formula: operation by operation that of sweep.cl, spmv_csr.cl and basis.cl, to the bit.
// Bytes moved per row: the entries of the matrix and the columns of a basis in use; other vectors stay in registers. The
// operand of a product goes through global memory once: in words of value and tag where several groups run, in local
// memory where one does.
// Launch shape: one group of LACUNA_SIZE work-items, a row each, or several that each own whole segments, or every
// LACUNA_WAYS-th row of one: the last levels of a segment's sum are then made with those of all segments. The sums meet
// as words of value and epoch that every group waits for, so that barrier and reduction are one round trip; so do the
// rows of an operand, whose tag tells that they are there. Each group evaluates all formulas for itself.
// Assumes: several groups only where the device runs them all at once; no more rows of a group than work-items; at most
// 1024 segments; LACUNA_MINE, the most segments of a group, is 1 where LACUNA_WAYS is more; 16-byte accesses are single
// on NVIDIA, and elsewhere stores and loads are seen in order.

#define SIZE LACUNA_SIZE
// Words of the control buffer: the control block, then the state, then room for a short history, then the cells.
#define AT_HISTORY LACUNA_AT_HISTORY
#define AT_CELLS LACUNA_AT_CELLS
#define ONE_GROUP LACUNA_ONE
#define WAYS LACUNA_WAYS
// Rows of a segment that a group has.
#define SPAN (SEGMENT / WAYS)
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
#if LACUNA_PRELUDE
#define SHUFFLE(mode, v, d) __shfl_##mode##_sync(0xffffffffu, v, d)
#else
static inline uint shuffle_down(uint v, uint d) {
    uint r;
    __asm__ volatile("shfl.sync.down.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r) : "r"(v), "r"(d));
    return r;
}
static inline uint shuffle_xor(uint v, uint d) {
    uint r;
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r) : "r"(v), "r"(d));
    return r;
}
#define SHUFFLE(mode, v, d) shuffle_##mode(v, d)
#endif
#if LACUNA_REAL_BITS == 64
#define SHUFFLE_REAL(mode, v, d)                                                                     \
    as_double((ulong)SHUFFLE(mode, (uint)(as_ulong(v) >> 32), d) << 32 | SHUFFLE(mode, (uint)as_ulong(v), d))
#else
#define SHUFFLE_REAL(mode, v, d) as_float(SHUFFLE(mode, as_uint(v), d))
#endif
#if LACUNA_COMPLEX
static inline number down(number v, uint d) { return MAKE(SHUFFLE_REAL(down, v.x, d), SHUFFLE_REAL(down, v.y, d)); }
static inline number across(number v, uint d) { return MAKE(SHUFFLE_REAL(xor, v.x, d), SHUFFLE_REAL(xor, v.y, d)); }
#else
static inline number down(number v, uint d) { return SHUFFLE_REAL(down, v, d); }
static inline number across(number v, uint d) { return SHUFFLE_REAL(xor, v, d); }
#endif
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
    uint first, rows;         // rows of this group: the first of its segments, and how many it has
    uint way;                 // which of each WAYS rows it has
    uint upper;               // where a half has the sums of chunks, see far.cl
} Share;

// What all work-items of all groups know alike.
typedef struct {
    ulong epoch, tag;
    uint shown; // the vector whose rows are in `shared` or `window`
    uint reads; // products since the last exchange
    uint open;  // the matrix whose operand is in `window`
    bool busy;  // `window` may still be read
    bool dirty; // an operand has been written since then, see far.cl
} State;

#define WARP (ITEM / 32u)
#define WARPS (SIZE / 32u)
#define WARP_LANE (ITEM % 32u)
#define CELL(c) near_cells[c]
#define ROW(i) (s->first + (i) * WAYS + s->way)

// The sum of the chunks of a canonical sum, of which there are up to eight.
static inline number last_sum(__local const number *got, uint count) {
    if (count <= 1) {
        return got[0];
    }
    if (count > 4) {
        number e[8];
#pragma unroll
        for (uint k = 0; k < 8; k++) {
            e[k] = (k < count ? got[k] : ZERO) + ZERO;
        }
        return SUM_8(e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7]);
    }
    number a = got[0] + ZERO, b = got[1] + ZERO;
    number c = (count > 2 ? got[2] : ZERO) + ZERO, d = (count > 3 ? got[3] : ZERO) + ZERO;
    return (a + c) + (b + d);
}

#if LACUNA_NVIDIA
// The canonical sum of terms of which a lane of a warp has those of stride 32, `count` of them; in every lane.
static inline number warp_sum_of(const number *e, uint count) {
    number sum = count == 8 ? SUM_8(e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7])
        : count == 4 ? (e[0] + e[2]) + (e[1] + e[3]) : count == 2 ? e[0] + e[1] : e[0];
#pragma unroll
    for (uint d = 16; d > 0; d /= 2) {
        sum = sum + across(sum, d);
    }
    return sum;
}
static inline number warp_sum(const number *e) { return warp_sum_of(e, 8); }
static inline number segment_of(__local const number *terms) {
    number e[8];
#pragma unroll
    for (uint k = 0; k < SPAN / 32; k++) {
        e[k] = terms[WARP_LANE + 32 * k];
    }
    return warp_sum_of(e, SPAN / 32);
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

// Keeps the sum of segment `i` of this group for the next exchange.
static inline void put_sum(const Share *s, const State *state, uint slot, uint i, number sum) {
    if (ONE_GROUP) {
        s->got[slot * s->mine + i] = sum;
    } else {
        uint at = (slot * s->segments + s->from + i) * WAYS + s->way;
        put_number(half_of(s, state->epoch + 1), at, sum, state->epoch + 1);
    }
}

// The terms of `dots` sums, which lie in `work` segment after segment for each sum, are summed and sent, as sums
// `slot` and on. All work-items come here after the terms are written; a barrier must follow before they change.
static inline void send(const Share *s, State *state, uint slot, uint dots) {
    MEET();
    state->busy = false;
#if !LACUNA_NVIDIA
    halve(s->work, dots * s->mine);
    for (uint p = ITEM; p < dots * s->mine; p += SIZE) {
        put_sum(s, state, slot + p / s->mine, p % s->mine, s->work[p * SEGMENT]);
    }
#else
    for (uint p = WARP; p < dots * LACUNA_MINE; p += WARPS) {
        uint d = p / LACUNA_MINE, i = p % LACUNA_MINE;
        if (LACUNA_MINE == 1 || i < s->mine) {
            number sum = segment_of(s->work + (d * (LACUNA_MINE == 1 ? 1 : s->mine) + i) * SPAN);
            if (WARP_LANE == 0) {
                put_sum(s, state, slot + d, i, sum);
            }
        }
    }
#endif
}

// The same for columns of a basis: conj(v_j) . w, with w in `work`.
static inline void send_columns(const Share *s, State *state, __global const uchar *v, ulong stride, uint slot,
    uint columns) {
    MEET();
    state->busy = false;
#if LACUNA_NVIDIA
    for (uint p = WARP; p < columns * LACUNA_MINE; p += WARPS) {
        uint d = p / LACUNA_MINE, i = p % LACUNA_MINE;
        if (LACUNA_MINE > 1 && i >= s->mine) {
            continue;
        }
        __global const number *column = (__global const number *)(v + d * stride) + s->first + s->way;
        number e[8];
#pragma unroll
        for (uint k = 0; k < SPAN / 32; k++) {
            uint row = i * SPAN + WARP_LANE + 32 * k;
            e[k] = row < s->rows ? column[row * WAYS] : ZERO;
        }
#pragma unroll
        for (uint k = 0; k < SPAN / 32; k++) {
            uint row = i * SPAN + WARP_LANE + 32 * k;
            e[k] = row < s->rows ? dot_term(e[k], s->work[row]) : ZERO;
        }
        number sum = warp_sum_of(e, SPAN / 32);
        if (WARP_LANE == 0) {
            put_sum(s, state, slot + d, i, sum);
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
            put_sum(s, state, slot + d, i, terms[i * SEGMENT]);
        }
        MEET();
    }
#endif
}

// Chunks of the sums in `got` after `collect`.
static inline uint chunks_of(const Share *s) { return ONE_GROUP ? s->mine : LACUNA_CHUNKS; }

#if LACUNA_NVIDIA
// Segments of a chunk that a lane has at the most.
#define PIECES LACUNA_PIECES
// One chunk of `count` sums from `d` on, as soon as all segments of all of them are there; one warp, the sums in every
// lane. Up to FEW_WORDS words a lane are on their way at a time.
#define FEW_WORDS 16
static inline void collect_chunk(const Share *s, __global const ulong *words, ulong epoch, uint d, uint count,
    uint chunk, number *sums) {
    number e[FEW_WORDS];
    bool there;
    do {
        there = true;
#pragma unroll
        for (uint at = 0; at < count * PIECES * WAYS; at++) {
            const uint i = chunk * SEGMENT + WARP_LANE + 32 * (at / WAYS % PIECES);
            e[at] = ZERO;
            if (i < s->segments) {
                uint place = ((d + at / (PIECES * WAYS)) * s->segments + i) * WAYS + at % WAYS;
                there &= get_number(words, place, epoch, &e[at]);
            }
        }
    } while (!there);
    __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory");
#pragma unroll
    for (uint c = 0; c < count; c++) {
        number f[8];
#pragma unroll
        for (uint k = 0; k < PIECES; k++) {
            number *p = e + (c * PIECES + k) * WAYS;
            f[k] = WAYS == 8 ? SUM_8(p[0], p[1 % WAYS], p[2 % WAYS], p[3 % WAYS], p[4 % WAYS], p[5 % WAYS],
                    p[6 % WAYS], p[7 % WAYS])
                : WAYS == 4 ? (p[0] + p[2 % WAYS]) + (p[1 % WAYS] + p[3 % WAYS])
                : WAYS == 2 ? p[0] + p[1 % WAYS] : p[0];
        }
        // Zeros beyond the last segment change nothing but the sign of a zero, which the first of them takes.
        sums[c] = PIECES == 8 ? SUM_8(f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7])
            : PIECES == 4 ? (f[0] + f[2]) + (f[1] + f[3]) : PIECES == 2 ? f[0] + f[1] : f[0];
        if (LACUNA_SPREAD > 1) {
            sums[c] = sums[c] + ZERO;
        }
    }
#pragma unroll
    for (uint t = LACUNA_SPREAD / 2; t > 0; t /= 2) {
#pragma unroll
        for (uint c = 0; c < count; c++) {
            sums[c] = sums[c] + across(sums[c], t);
        }
    }
}
#endif

// Waits for the sums of all groups and puts them in `got`, chunk after chunk for each sum, seen by all work-items. All
// work-items come here.
static inline void collect(const Share *s, State *state, uint dots) {
    state->epoch += 1;
    state->reads = 0;
#if !ONE_GROUP
    __global const ulong *words = half_of(s, state->epoch);
#if LACUNA_NVIDIA
    for (uint p = WARP; p < dots * LACUNA_CHUNKS; p += WARPS) {
        number sum;
        collect_chunk(s, words, state->epoch, p / LACUNA_CHUNKS, 1, p % LACUNA_CHUNKS, &sum);
        if (WARP_LANE == 0) {
            s->got[p] = sum;
        }
    }
#else
    const uint chunks = chunks_of(s);
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

// The same for a few sums, `into` of the first work-item, which does not wait for the others.
static inline void collect_first(const Share *s, State *state, uint dots, number *into) {
#if LACUNA_NVIDIA && LACUNA_CHUNKS == 1 && !ONE_GROUP
    state->epoch += 1;
    state->reads = 0;
    if (WARP == 0) {
        collect_chunk(s, half_of(s, state->epoch), state->epoch, 0, dots, 0, into);
    }
#else
    collect(s, state, dots);
#pragma unroll
    for (uint d = 0; d < dots; d++) {
        into[d] = last_sum(s->got + d * chunks_of(s), chunks_of(s));
    }
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
    state->open = LACUNA_NONE;
    if (own) {
#if ONE_GROUP
        s->window[ITEM] = value;
#else
        put_number(s->shared + (state->tag & 1) * 2 * PARTS * s->n, ROW(ITEM), value, state->tag);
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

// Brings what work-items from `from` on take of the rows that this group multiplies, the window of matrix `m`, to local
// memory.
static inline void fetch_window(const Share *s, State *state, uint m, uint from) {
    state->reads += 1;
    state->open = m;
#if !ONE_GROUP
    __global const ulong *words = SHOWN(s, state);
    __global const uint *restrict window = s->windows + 4 * (m * get_num_groups(0) + get_group_id(0));
    const uint low = window[0], width = window[1];
    for (uint i = ITEM - from; ITEM >= from && i < width; i += 4 * (SIZE - from)) {
        number v[4];
        bool there;
        do {
            there = true;
#pragma unroll
            for (uint k = 0; k < 4; k++) {
                v[k] = ZERO;
                if (i + k * (SIZE - from) < width) {
                    there &= get_number(words, low + i + k * (SIZE - from), state->tag, &v[k]);
                }
            }
        } while (!there);
#pragma unroll
        for (uint k = 0; k < 4; k++) {
            if (i + k * (SIZE - from) < width) {
                s->window[i + k * (SIZE - from)] = v[k];
            }
        }
    }
#endif
}

// Work-items beyond the first warp, which waits for sums, fetch what the next operation multiplies.
static inline void fetch_ahead(const Share *s, State *state, uint m) {
#if LACUNA_NVIDIA && !ONE_GROUP
    if (SIZE > 32) {
        fetch_window(s, state, m, 32);
    }
#endif
}

// Makes the window of matrix `m` seen by all work-items, who all come here; its first row.
static inline uint open_window(const Share *s, State *state, uint m, bool fits) {
    uint low = 0;
    if (state->open != m || ONE_GROUP || !fits) {
        if (state->busy || ONE_GROUP || !fits) {
            MEET();
        }
        if (fits && !ONE_GROUP) {
            fetch_window(s, state, m, 0);
            MEET();
        } else {
            state->reads += 1;
        }
    }
    state->busy = true;
#if !ONE_GROUP
    if (fits) {
        low = s->windows[4 * (m * get_num_groups(0) + get_group_id(0))];
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
static inline number product_near(const Share *s, State *state, uint m, uint lanes, bool fits, uint steps,
    bool own) {
    __global const ulong *words = MATRIX(s->p, m);
    __global const uint *restrict row_ptr = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS]) + s->first + s->way;
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
        uint start = own ? row_ptr[ITEM * WAYS] : 0, end = own ? row_ptr[ITEM * WAYS + 1] : 0;
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
            sum = row_lane(s, state, fits, low, columns, values, row_ptr[i * WAYS] + part, row_ptr[i * WAYS + 1],
                lanes);
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

// Entries in registers: their columns, which count from the window, two to a register.
#define SET_COLUMN(column, e, c) column[(e) / 2] = (e) % 2 ? column[(e) / 2] | (c) << 16 : (c)
#define GET_COLUMN(column, e) (((e) % 2 ? column[(e) / 2] >> 16 : column[(e) / 2]) & 0xffffu)

// The entries of the work-item's row, up to `most` of them, for a matrix of one lane; how many there are.
static inline uint open_row(const Share *s, uint m, uint most, bool own, uint *column, number *a) {
    __global const ulong *words = MATRIX(s->p, m);
    __global const uint *restrict row_ptr = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS]);
    __global const uint *restrict columns = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS + 1]);
    __global const number *restrict values = (__global const number *)(s->p.fixed + words[MATRIX_ARGUMENTS + 2]);
    const uint low = ONE_GROUP ? 0 : s->windows[4 * (m * get_num_groups(0) + get_group_id(0))];
    const uint start = own ? row_ptr[ROW(ITEM)] : 0, count = own ? row_ptr[ROW(ITEM) + 1] - start : 0;
#pragma unroll
    for (uint e = 0; e < most; e++) {
        uint c = e < count ? columns[start + e] - low : 0;
        SET_COLUMN(column, e, c);
        a[e] = e < count ? values[start + e] : ZERO;
    }
    return count;
}
// The same where entries lie as they are taken; one turn of all rows.
static inline uint open_staged(const Share *s, uint m, uint lanes, uint most, uint turn, uint *column, number *a) {
    __global const uint *restrict window = s->windows + 4 * (m * get_num_groups(0) + get_group_id(0));
    __global const uint *restrict columns = s->columns + window[2];
    __global const number *restrict values = s->values + window[2];
    const uint entries = turn * (SIZE / lanes) < s->rows ? window[3] : 0;
    uint count = 0;
#pragma unroll
    for (uint e = 0; e < most; e++) {
        uint at = (turn * entries + e) * SIZE + ITEM, c = e < entries ? columns[at] : LACUNA_NONE;
        count += c != LACUNA_NONE;
        a[e] = c != LACUNA_NONE ? values[at] : ZERO;
        c = c != LACUNA_NONE ? c : 0;
        SET_COLUMN(column, e, c);
    }
    return count;
}
// The sum of entries in registers.
static inline number kept_lane(const Share *s, uint most, uint count, const uint *column, const number *a) {
    number sum = ZERO, x[64];
#pragma unroll
    for (uint e = 0; e < most; e++) {
        x[e] = s->window[GET_COLUMN(column, e)];
    }
#pragma unroll
    for (uint e = 0; e < most; e++) {
        sum = e < count ? multiply_add(a[e], x[e], sum) : sum;
    }
    return sum;
}
// What a lane has of a row is added up and kept for the work-item of the row.
static inline void keep_row(const Share *s, uint lanes, uint turn, number sum) {
    const uint i = turn * (SIZE / lanes) + ITEM / lanes;
#if LACUNA_NVIDIA
    for (uint d = lanes / 2; d > 0; d /= 2) {
        sum = sum + down(sum, d);
    }
#endif
    if (ITEM % lanes == 0 && i < s->rows) {
        s->rows_at[i] = sum;
    }
}

// w -+ V h of the work-item's row. Weights of zero, and those beyond the last column, change nothing.
#if LACUNA_COMPLEX
#define BATCH_OF_COLUMNS 8
#else
#define BATCH_OF_COLUMNS 16
#endif
static inline number combine_row(const Share *s, __global const uchar *v, ulong stride, __local const number *h,
    uint columns, bool add, number w) {
    __global const uchar *at = v + (ulong)ROW(ITEM) * sizeof(number);
    number sum = w;
    for (uint j = 0; j < columns; j += BATCH_OF_COLUMNS) {
        number value[BATCH_OF_COLUMNS];
#pragma unroll
        for (uint c = 0; c < BATCH_OF_COLUMNS; c++) {
            value[c] = *(__global const number *)(at + min(j + c, columns - 1) * stride);
        }
#pragma unroll
        for (uint c = 0; c < BATCH_OF_COLUMNS; c++) {
            number weight = j + c < columns ? h[j + c] : ZERO;
            sum = is_zero(weight) ? sum : multiply_add(add ? weight : -weight, value[c], sum);
        }
    }
    return sum;
}

// The rotations so far on column `j`, see `rotate_column` in cells.cl, `to` another place; its last entry but one.
static inline number turn_near(__local number *near_cells, uint m, uint h, uint rotations, uint j, __local number *to) {
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
                to[i + k] = multiply_add(conjugate(s[k]), b[k], times(conjugate(c[k]), a));
                a = multiply_add(-s[k], a, times(c[k], b[k]));
            }
        }
    }
    return a;
}
// Places of `got` behind the few sums of an operation: what one work-item turns while the others combine columns, which
// still read the column as it was.
#define TURNED 4
#define TURNED_COLUMN 5
#define TURNS_AHEAD (ITEM == SIZE - 32)
// The turned column takes the place of the other.
static inline void keep_turned(const Share *s, __local number *column, uint j) {
    for (uint i = ITEM; i < j; i += SIZE) {
        column[i] = s->got[TURNED_COLUMN + i];
    }
}
// And a new rotation that zeroes the last entry `b` of column `j`, of which `a` is the one before.
static inline number rotate_near(__local number *near_cells, uint m, uint h, uint rotations, uint g, uint used, uint j,
    uint rr, number a, number b) {
    __local number *column = near_cells + h + j * (m + 1), *turns = near_cells + rotations;
    number gj = near_cells[g + j];
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
    number square = dot_term(last, last);
    near_cells[rr] = square;
    near_cells[used] = from_real((real)(j + 1));
    return square;
}

// What counting an iteration needs to know, read before its number is there.
typedef struct {
    ulong iterations, at; // at: the place in the history, where there is one
    bool limit;
} Count;
static inline Count count_ahead(const Share *s) {
    __local const ulong *control = s->p.control;
    const ulong stride = control[LACUNA_CONTROL_STRIDE], iterations = control[LACUNA_CONTROL_ITERATIONS] + 1;
    Count c;
    c.iterations = iterations;
    c.limit = iterations >= control[LACUNA_CONTROL_LIMIT];
    c.at = LACUNA_NONE;
    if (stride == 1 || (stride > 0 && iterations % stride == 0)) {
        ulong at = min(stride == 1 ? iterations : iterations / stride, control[LACUNA_CONTROL_HISTORY]);
        c.at = at < control[LACUNA_CONTROL_CAPACITY] ? at : LACUNA_NONE;
    }
    return c;
}
// One iteration is done; whether that halts the section. See CODE_COUNT in cells.cl.
static inline bool count_near(const Share *s, Count c, number rr) {
    __local ulong *control = s->p.control;
    control[LACUNA_CONTROL_ITERATIONS] = c.iterations;
    control[LACUNA_CONTROL_RECURRENCE] = REAL_BITS(RE(rr));
    if (c.at != LACUNA_NONE) {
        if (s->p.history) {
            s->p.history[c.at] = RE(rr);
        }
        control[LACUNA_CONTROL_HISTORY] = c.at + 1;
    }
    bool finite = is_finite(rr);
    if (finite && !c.limit) {
        return false;
    }
    stop(control, finite ? LACUNA_REASON_LIMIT : LACUNA_REASON_NOT_FINITE, false);
    return true;
}
