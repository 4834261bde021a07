// The sums of a program, and their exchange between work-groups.
//
// Formula: the canonical sum, `crates/engine/src/run/sum.rs`: a segment is summed by the work-group that owns it, the
// levels above by every work-group, in chunks of up to 256 segments. Missing segment sums are -0, which changes no sum.
// Some of the sums may be maxima, which go the same way: where `maxima` is an argument, those of its bits; see `join`.
// Bytes moved per sum: PARTS words for each segment, written once and read by every work-group.
// Launch shape: as resident.cl. Sums are exchanged as words of value and epoch that every work-group polls, so that
// barrier and reduction take one round trip; the two halves of the buffer alternate.
// Assumes: several work-groups only if the device runs them all at once.

// Constants of this work-group while the kernel runs.
typedef struct {
    Place p;
    __global ulong *exchange; // two halves of sums
    __global ulong *shared;   // two vectors of words
    __global const uint *restrict windows;
    __global const uint *restrict columns;  // of repacked entries
    __global const number *restrict values;
    __local number *work;     // terms: LACUNA_WORK segments for each segment of the group
    __local number *got;      // sums
    __local number *rows_at;  // rows of a product
    __local number *window;   // the operand of a product
    __local ushort *local_columns; // of entries kept in local memory
    __local number *local_values;
    uint n, segments, half_words;
    uint from, mine;          // segments of this group
    uint first, rows;         // rows of this group: first row of its segments, and their number
    uint way;                 // which of every WAYS rows belongs to it
    uint upper;               // offset of the chunk sums in a half, see streaming.cl
} Share;

// State that is identical in all work-items of all work-groups.
typedef struct {
    ulong epoch, tag;
    uint shown; // the vector whose rows are in `shared` or `window`
    uint reads; // products since the last exchange
    uint open;  // the matrix whose operand is in `window`
    bool busy;  // `window` may still be read
    bool dirty; // an operand was written since the last exchange, see streaming.cl
} State;

#define WARP (ITEM / 32u)
#define WARPS (SIZE / 32u)
#define WARP_LANE (ITEM % 32u)
#define CELL(c) local_cells[c]
#define ROW(i) (s->first + (i) * WAYS + s->way)

// Sums of a chunk for one lane of a warp, 32 apart, and lanes of a chunk, both powers of two.
#define PIECES LACUNA_PIECES
#define SPREAD LACUNA_SPREAD
// Numbers that a sum takes in an exchange: whole chunks.
#define ROOM (LACUNA_CHUNKS * 32u * PIECES)

// Whether sum `d` is a maximum; never if the program has none. Sums of columns, which may be more than bits, are none.
#define MAXIMUM(maxima, d) (LACUNA_MAXIMA && (d) < 32u && ((maxima) >> ((d) & 31u) & 1u))

// The sum of the chunks by neighbouring pairs; there are at most eight.
static inline number last_sum(__local const number *got, uint count, bool m) {
    if (count <= 1) {
        return got[0];
    }
    if (count > 4) {
        number e[8];
#pragma unroll
        for (uint k = 0; k < 8; k++) {
            e[k] = k < count ? got[k] : NOTHING;
        }
        return PAIRS_8(m, e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7]);
    }
    number c = count > 2 ? got[2] : NOTHING, d = count > 3 ? got[3] : NOTHING;
    return join(m, join(m, got[0], got[1]), join(m, c, d));
}

#if LACUNA_NVIDIA
// The sum by neighbouring pairs of the first `32 * pieces` numbers of a chunk, of which lane l of `spread` holds l, l + 32 and so
// on; in every lane. At each of the first strides a lane gives half of what it has to its neighbour, until one is left.
static inline number pair_sum(number *e, uint pieces, uint spread, bool m) {
#pragma unroll
    for (uint t = 1; t < pieces; t *= 2) {
        const bool upper = (WARP_LANE & t) != 0;
        const uint left = pieces / (2 * t);
#pragma unroll
        for (uint k = 0; k < left; k++) {
            const number kept = upper ? e[k + left] : e[k], given = upper ? e[k] : e[k + left];
            e[k] = join(m, kept, across(given, t));
        }
    }
    number sum = e[0];
#pragma unroll
    for (uint t = pieces; t < spread; t *= 2) {
        sum = join(m, sum, across(sum, t));
    }
    // Lanes that differ in these bits hold the sums of different runs of 32: neighbouring runs first.
#pragma unroll
    for (uint t = pieces / 2; t > 0; t /= 2) {
        sum = join(m, sum, across(sum, t));
    }
    return sum;
}
// The sum of a segment whose terms a warp holds with stride 32, `count` in each lane; the result is in every lane.
static inline number warp_sum_of(const number *e, uint count, bool m) {
    number sum = count == 8 ? SUM_8(m, e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7])
        : count == 4 ? join(m, join(m, e[0], e[2]), join(m, e[1], e[3])) : count == 2 ? join(m, e[0], e[1]) : e[0];
#pragma unroll
    for (uint d = 16; d > 0; d /= 2) {
        sum = join(m, sum, across(sum, d));
    }
    return sum;
}
static inline number warp_sum(const number *e, bool m) { return warp_sum_of(e, 8, m); }
static inline number segment_of(__local const number *terms, bool m) {
    number e[8];
#pragma unroll
    for (uint k = 0; k < SPAN / 32; k++) {
        e[k] = terms[WARP_LANE + 32 * k];
    }
    return warp_sum_of(e, SPAN / 32, m);
}
#else
// Sums blocks of 256 terms in place by halving the stride, by all work-items; every `per` blocks are of one sum.
static inline void halve(__local number *terms, uint blocks, uint per, uint maxima) {
    for (uint stride = SEGMENT / 2; stride > 0; stride /= 2) {
        BARRIER();
        for (uint x = ITEM; x < blocks * stride; x += SIZE) {
            __local number *at = terms + x / stride * SEGMENT + x % stride;
            at[0] = join(MAXIMUM(maxima, x / stride / per), at[0], at[stride]);
        }
    }
    BARRIER();
}
#endif

// The words of the next exchange.
static inline __global ulong *half_of(const Share *s, ulong epoch) {
    return s->exchange + (epoch & 1) * s->half_words;
}

// Stores the sum of segment `i` of this work-group for the next exchange.
static inline void put_sum(const Share *s, const State *state, uint slot, uint i, number sum) {
    if (ONE_GROUP) {
        s->got[slot * s->mine + i] = sum;
    } else {
        uint at = (slot * ROOM + s->from + i) * WAYS + s->way;
        put_number(half_of(s, state->epoch + 1), at, sum, state->epoch + 1);
    }
}

// Sums and sends the terms of `dots` sums, which lie in `work` segment by segment for each sum, as sums `slot` and on.
// Bits of `maxima` count from there on. All work-items call it after the terms are written; a barrier must follow before the
// terms change.
static inline void send(const Share *s, State *state, uint slot, uint dots, uint maxima) {
    BARRIER();
    state->busy = false;
#if !LACUNA_NVIDIA
    halve(s->work, dots * s->mine, s->mine, maxima);
    for (uint p = ITEM; p < dots * s->mine; p += SIZE) {
        put_sum(s, state, slot + p / s->mine, p % s->mine, s->work[p * SEGMENT]);
    }
#else
    for (uint p = WARP; p < dots * LACUNA_MINE; p += WARPS) {
        uint d = p / LACUNA_MINE, i = p % LACUNA_MINE;
        if (LACUNA_MINE == 1 || i < s->mine) {
            number sum = segment_of(s->work + (d * (LACUNA_MINE == 1 ? 1 : s->mine) + i) * SPAN, MAXIMUM(maxima, d));
            if (WARP_LANE == 0) {
                put_sum(s, state, slot + d, i, sum);
            }
        }
    }
#endif
}

// The same for columns of a basis: conj(v_j) . w, with w in `work`.
static inline void send_columns(const Share *s, State *state, GATHERED v, ulong stride, uint slot,
    uint columns) {
    BARRIER();
    state->busy = false;
#if LACUNA_NVIDIA
    for (uint p = WARP; p < columns * LACUNA_MINE; p += WARPS) {
        uint d = p / LACUNA_MINE, i = p % LACUNA_MINE;
        if (LACUNA_MINE > 1 && i >= s->mine) {
            continue;
        }
        GATHERED column = BEHIND(COLUMN(v, d * stride), s->first + s->way);
        number e[8];
#pragma unroll
        for (uint k = 0; k < SPAN / 32; k++) {
            uint row = i * SPAN + WARP_LANE + 32 * k;
            e[k] = row < s->rows ? GET(column, row * WAYS) : ZERO;
        }
#pragma unroll
        for (uint k = 0; k < SPAN / 32; k++) {
            uint row = i * SPAN + WARP_LANE + 32 * k;
            e[k] = row < s->rows ? dot_term(e[k], s->work[row]) : ZERO;
        }
        number sum = warp_sum_of(e, SPAN / 32, false);
        if (WARP_LANE == 0) {
            put_sum(s, state, slot + d, i, sum);
        }
    }
#else
    __local number *terms = s->work + s->mine * SEGMENT;
    for (uint d = 0; d < columns; d++) {
        GATHERED column = BEHIND(COLUMN(v, d * stride), s->first);
        for (uint x = ITEM; x < s->mine * SEGMENT; x += SIZE) {
            terms[x] = x < s->rows ? dot_term(GET(column, x), s->work[x]) : ZERO;
        }
        halve(terms, s->mine, s->mine, 0);
        for (uint i = ITEM; i < s->mine; i += SIZE) {
            put_sum(s, state, slot + d, i, terms[i * SEGMENT]);
        }
        BARRIER();
    }
#endif
}

// Chunks of each sum in `got` after `collect`.
static inline uint chunks_of(const Share *s) { return ONE_GROUP ? s->mine : LACUNA_CHUNKS; }

#if LACUNA_NVIDIA
// Chunk `chunk` of `count` sums from `d` on, polled until all their segments have arrived. By one warp, the sums in
// every lane; at most FEW_WORDS words a lane are in flight.
#define FEW_WORDS 16
static inline void collect_chunk(const Share *s, __global const ulong *words, ulong epoch, uint d, uint count,
    uint chunk, number *sums, uint maxima) {
    number e[FEW_WORDS];
    bool there;
    do {
        there = true;
#pragma unroll
        for (uint at = 0; at < count * PIECES * WAYS; at++) {
            const uint i = chunk * SEGMENT + WARP_LANE + 32 * (at / WAYS % PIECES);
            e[at] = NOTHING;
            if (i < s->segments) {
                uint place = ((d + at / (PIECES * WAYS)) * ROOM + i) * WAYS + at % WAYS;
                there &= get_number(words, place, epoch, &e[at]);
            }
        }
    } while (!there);
    __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory");
#pragma unroll
    for (uint c = 0; c < count; c++) {
        const bool m = MAXIMUM(maxima, d + c);
        number f[8];
#pragma unroll
        for (uint k = 0; k < PIECES; k++) {
            number *p = e + (c * PIECES + k) * WAYS;
            f[k] = WAYS == 8 ? SUM_8(m, p[0], p[1 % WAYS], p[2 % WAYS], p[3 % WAYS], p[4 % WAYS], p[5 % WAYS],
                    p[6 % WAYS], p[7 % WAYS])
                : WAYS == 4 ? join(m, join(m, p[0], p[2 % WAYS]), join(m, p[1 % WAYS], p[3 % WAYS]))
                : WAYS == 2 ? join(m, p[0], p[1 % WAYS]) : p[0];
        }
        sums[c] = pair_sum(f, PIECES, SPREAD, m);
    }
}
#endif

// Waits for the sums of all work-groups and puts them in `got`, chunk by chunk for each sum, visible to all work-items.
// All work-items call it.
static inline void collect(const Share *s, State *state, uint dots, uint maxima) {
    state->epoch += 1;
    state->reads = 0;
#if !ONE_GROUP
    __global const ulong *words = half_of(s, state->epoch);
#if LACUNA_NVIDIA
    for (uint p = WARP; p < dots * LACUNA_CHUNKS; p += WARPS) {
        number sum;
        collect_chunk(s, words, state->epoch, p / LACUNA_CHUNKS, 1, p % LACUNA_CHUNKS, &sum, maxima);
        if (WARP_LANE == 0) {
            s->got[p] = sum;
        }
    }
#else
    const uint chunks = chunks_of(s);
    BARRIER();
    for (uint d = 0; d < dots; d++) {
        for (uint c = 0; c < chunks; c++) {
            for (uint x = ITEM; x < SEGMENT; x += SIZE) {
                uint i = c * SEGMENT + reversed(x, 8);
                number v = NOTHING;
                while (i < s->segments && !get_number(words, d * ROOM + i, state->epoch, &v)) {
                }
                s->work[x] = v;
            }
            halve(s->work, 1, 1, MAXIMUM(maxima, d));
            if (ITEM == 0) {
                s->got[d * chunks + c] = s->work[0];
            }
            BARRIER();
        }
    }
#endif
#endif
    BARRIER();
}

// The same for a few sums, into `into` of the first work-item, which does not wait for the others.
static inline void collect_first(const Share *s, State *state, uint dots, number *into, uint maxima) {
#if LACUNA_NVIDIA && LACUNA_CHUNKS == 1 && !ONE_GROUP
    state->epoch += 1;
    state->reads = 0;
    if (WARP == 0) {
        collect_chunk(s, half_of(s, state->epoch), state->epoch, 0, dots, 0, into, maxima);
    }
#else
    collect(s, state, dots, maxima);
#pragma unroll
    for (uint d = 0; d < dots; d++) {
        into[d] = last_sum(s->got + d * chunks_of(s), chunks_of(s), MAXIMUM(maxima, d));
    }
#endif
}

// A barrier for all work-groups.
static inline void barrier_of_groups(const Share *s, State *state) {
    BARRIER();
#if !ONE_GROUP
    state->epoch += 1;
    __global ulong *words = half_of(s, state->epoch);
    if (ITEM == 0) {
#if LACUNA_STREAMING
        __asm__ volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
        put_word(words + 2 * get_group_id(0), 0, state->epoch);
    }
    for (uint i = ITEM; i < get_num_groups(0); i += SIZE) {
        while (get_word(words + 2 * i).tag != state->epoch) {
        }
    }
#if LACUNA_STREAMING
    if (ITEM < get_num_groups(0)) {
        __asm__ volatile("fence.acq_rel.gpu;" ::: "memory");
    }
#endif
    BARRIER();
#endif
    state->reads = 0;
    state->dirty = false;
}
