// Canonical sums: of the terms of a segment, and of the segment sums.
//
// Formula: crates/engine/src/run/sum.rs: inside a segment of 256 the stride halves (128, 64, ..., 1); of the segment sums
// neighbouring pairs are added. Missing terms are +0, missing segment sums -0, which changes no sum. Maxima, which are the
// last sums of an operation, go the same way with the larger of two in place of their sum.
// Bytes moved: one partial sum for each sum and 256 terms, written and read; 1/256 of that more if sums are folded.
// Launch shape: whole work-groups. The last work-group to end an operation adds the partial sums of all; if these are
// more than LACUNA_FOLD numbers, a launch of `fold` after the operation sums them 256 to 1 first, in as many
// work-groups as needed.
// Assumes: `work` has room for LACUNA_BATCH * THREADS + SEGMENT numbers; `partials` has room for the sums twice.

// Whether sum `d` is a maximum, if `maxima` is the first of them; never if the program has none, LACUNA_MAXIMA.
#define MAXIMUM(d, maxima) (LACUNA_MAXIMA && (d) >= (maxima))
#define NO_MAXIMA 0xffffffffu
// `maxima` counted from sum `first` on.
static inline uint behind(uint maxima, uint first) { return maxima > first ? maxima - first : 0; }

#if LACUNA_CPU
static inline void sum_256(__local number *w, bool maximum) {
    for (uint stride = SEGMENT / 2; stride > 0; stride /= 2) {
        for (uint j = 0; j < stride; j++) {
            w[j] = join(maximum, w[j], w[j + stride]);
        }
    }
}
#else
// Halves each block of 32 numbers in `work` to one; work-item `b` gets the result of block `b`, which is the `at + b`-th of
// the blocks of all sums, of `per` blocks each; from sum `maxima` on these are maxima.
static inline number sum_32(__local number *work, uint blocks, uint at, uint per, uint maxima) {
    SYNC();
    if (ITEM < blocks * 4) {
        const bool m = MAXIMUM((at + ITEM / 4) / per, maxima);
        __local number *w = work + (ITEM / 4) * 32 + ITEM % 4;
        w[0] = SUM_8(m, w[0], w[4], w[8], w[12], w[16], w[20], w[24], w[28]);
    }
    SYNC();
    const bool m = MAXIMUM((at + ITEM) / per, maxima);
    __local const number *w = work + (ITEM < blocks ? ITEM : 0) * 32;
    number sum = join(m, join(m, w[0], w[2]), join(m, w[1], w[3]));
    SYNC();
    return sum;
}
#endif

// Where the sum of segment `i` lies, and how many numbers the sums of `count` segments take. On a GPU a work-item takes eight
// neighbours of 256, and what work-items load at once is side by side.
#if LACUNA_CPU
static inline uint place_of(uint i) { return i; }
static inline uint room_of(uint count) { return count; }
#else
static inline uint place_of(uint i) { return i / SEGMENT * SEGMENT + i % 8 * 32 + i % SEGMENT / 8; }
static inline uint room_of(uint count) { return segments_of(count) * SEGMENT; }
#endif

// Sums the terms in `work`, for each of `batch` sums and each segment of this work-group from `first` on, into
// `partials`; from sum `maxima` on they are maxima. On a CPU these are all 256 terms of a segment, else what each work-item has
// left after halving its eight.
static inline void sum_segments(__local number *work, uint batch, __global number *partials, uint first_sum,
    uint maxima, uint segments, uint first) {
#if LACUNA_CPU
    for (uint b = 0; b < batch; b++) {
        sum_256(work + b * SEGMENT, MAXIMUM(first_sum + b, maxima));
        partials[(ulong)(first_sum + b) * segments + first] = work[b * SEGMENT];
    }
#else
    number sum = sum_32(work, batch * SUBS, 0, SUBS, behind(maxima, first_sum));
    uint segment = first + ITEM % SUBS;
    if (ITEM < batch * SUBS && segment < segments) {
        partials[(ulong)(first_sum + ITEM / SUBS) * room_of(segments) + place_of(segment)] = sum;
    }
#endif
}

// Whether the sums of an operation go to neighbouring cells.
static inline bool projects(const Place *p, uint op) {
    const uint kind = OP(*p, op, LACUNA_OP_KIND);
    return kind == LACUNA_KIND_BASIS_DOT || kind == LACUNA_KIND_BASIS_GRAM;
}
// Number of sums of an operation.
static inline uint sums_of(const Place *p, uint op) {
    return OP(*p, op, projects(p, op) ? LACUNA_OP_COLUMNS : LACUNA_OP_DOT_COUNT);
}
// The first of them that is a maximum.
static inline uint maxima_of(const Place *p, uint op) {
    const uint maxima = OP(*p, op, LACUNA_OP_MAXIMA);
    return maxima == 0 ? NO_MAXIMA : OP(*p, op, LACUNA_OP_DOT_COUNT) - maxima;
}
static inline void set_sum(const Place *p, uint op, uint sum, number value) {
    uint at = OP(*p, op, LACUNA_OP_DOTS) + sum * LACUNA_DOT_WORDS + LACUNA_DOT_CELL;
    set_cell(p, projects(p, op) ? OP(*p, op, LACUNA_OP_H) + sum : p->table[at], value);
}

// Whether the sums of an operation are left to `fold`.
static inline bool folds(const Place *p, uint op) {
    return !LACUNA_CPU && (ulong)sums_of(p, op) * segments_of(OP(*p, op, LACUNA_OP_N)) > LACUNA_FOLD;
}

#if !LACUNA_CPU
// This work-item's eight of the first 256 of `left` segment sums.
static inline void read_8(__global const number *sums, uint left, number *e) {
    const uint lane = ITEM % 32;
    UNROLLED
    for (uint m = 0; m < 8; m++) {
        e[m] = 8 * lane + m < left ? read_shared(sums + 32 * m + lane) : NOTHING;
    }
}
#define SUM_OF(m, e) SUM_8(m, (e)[0], (e)[1], (e)[2], (e)[3], (e)[4], (e)[5], (e)[6], (e)[7])
#define PAIRS_OF(m, e) PAIRS_8(m, (e)[0], (e)[1], (e)[2], (e)[3], (e)[4], (e)[5], (e)[6], (e)[7])
// Where number `i` of `work` goes so that `sum_32` adds neighbours.
static inline uint in_pairs(uint i) { return i / 32 * 32 + reversed(i % 32, 5); }
#endif

// Canonical sums of `terms` partial sums each, at most 65536, into cells, by one whole work-group.
static inline void sum_partials(const Place *p, uint op, uint terms, __global number *partials,
    __local number *work) {
    const uint sums = sums_of(p, op), maxima = maxima_of(p, op);
#if LACUNA_CPU
    for (uint d = 0; d < sums; d++) {
        __global number *own = partials + (ulong)d * terms;
        for (uint left = terms; left > 1; left = left / 2 + left % 2) {
            for (uint c = 0; c < left / 2; c++) {
                own[c] = join(MAXIMUM(d, maxima), own[2 * c], own[2 * c + 1]);
            }
            if (left % 2) {
                own[left / 2] = own[left - 1];
            }
        }
        set_sum(p, op, d, terms == 0 ? ZERO : own[0]);
    }
#else
    if (terms <= 1) {
        for (uint d = ITEM; d < sums; d += THREADS) {
            set_sum(p, op, d, terms == 0 ? ZERO : read_shared(partials + d * room_of(terms)));
        }
        SYNC_ALL();
        return;
    }
    __local number *level = work + LACUNA_BATCH * THREADS;
    const uint at_once = LACUNA_BATCH * THREADS / 32;
    const uint chunks = segments_of(terms), sums_at_once = max(1u, min(SEGMENT / chunks, at_once));
    for (uint d0 = 0; d0 < sums; d0 += sums_at_once) {
        uint here = min(sums - d0, sums_at_once), total = here * chunks;
        for (uint q0 = 0; q0 < total; q0 += at_once) {
            number e[LACUNA_BATCH][8];
            UNROLLED
            for (uint b = 0; b < LACUNA_BATCH; b++) {
                uint q = q0 + b * (THREADS / 32) + ITEM / 32, i = q % chunks * SEGMENT;
                read_8(partials + (ulong)(d0 + q / chunks) * room_of(terms) + i, q < total ? terms - i : 0, e[b]);
            }
            UNROLLED
            for (uint b = 0; b < LACUNA_BATCH; b++) {
                const uint q = q0 + b * (THREADS / 32) + ITEM / 32;
                work[b * THREADS + in_pairs(ITEM)] = PAIRS_OF(MAXIMUM(d0 + q / chunks, maxima), e[b]);
            }
            number sum = sum_32(work, at_once, q0, chunks, behind(maxima, d0));
            if (ITEM < at_once && q0 + ITEM < total) {
                if (chunks == 1) {
                    set_sum(p, op, d0 + ITEM, sum);
                } else {
                    level[q0 + ITEM] = sum;
                }
            }
            SYNC_ALL();
        }
        if (chunks > 1) {
            const uint k = ITEM % 32;
            for (uint x = ITEM; x < here * 32; x += THREADS) {
                __local const number *from = level + x / 32 * chunks;
#define TERM(m) (8 * k + (m) < chunks ? from[8 * k + (m)] : NOTHING)
                work[in_pairs(x)] = PAIRS_8(MAXIMUM(d0 + x / 32, maxima), TERM(0), TERM(1), TERM(2), TERM(3), TERM(4), TERM(5), TERM(6), TERM(7));
#undef TERM
            }
            number sum = sum_32(work, here, 0, 1, behind(maxima, d0));
            if (ITEM < here) {
                set_sum(p, op, d0 + ITEM, sum);
            }
            SYNC_ALL();
        }
    }
#endif
}

// The end of every launch of an operation: the last work-group to arrive computes the sums, runs the instructions and
// chooses the next operation. `local_memory` has room for `local_capacity` cells.
static LACUNA_RARE void finish(Place p, uint op, uint terms, __global ulong *control, __global number *partials,
    __global uint *counter, uint local_capacity, __local number *local_memory, __local number *work) {
    SYNC_ALL();
    if (ITEM == 0) {
        DEVICE_FENCE();
        p.control[LACUNA_CONTROL_WORDS - 1] = atomic_inc(counter) + 1 == get_num_groups(0);
    }
    SYNC();
    if (!p.control[LACUNA_CONTROL_WORDS - 1]) {
        return;
    }
    DEVICE_FENCE();
    if (ITEM == 0) {
        *counter = 0;
    }
    for (uint i = ITEM; i < LACUNA_CONTROL_WORDS - 1; i += get_local_size(0)) {
        p.control[i] = control[i];
    }
    p.is_resident = p.cell_count <= local_capacity;
    p.local_cells = local_memory;
    if (p.is_resident) {
        for (uint i = ITEM; i < p.cell_count; i += get_local_size(0)) {
            local_memory[i] = p.global_cells[p.first + i];
        }
    }
    SYNC_ALL();
    sum_partials(&p, op, terms, partials, work);
    if (ITEM == 0) {
        advance_from(&p, op, MODE_DONE);
    }
    SYNC_ALL();
    for (uint i = ITEM; i < LACUNA_CONTROL_WORDS - 1; i += get_local_size(0)) {
        control[i] = p.control[i];
    }
    if (p.is_resident) {
        for (uint i = ITEM; i < p.cell_count; i += get_local_size(0)) {
            p.global_cells[p.first + i] = local_memory[i];
        }
    }
}

// The arguments, the beginning and the end of the kernels of operations.
#define OPERATION_ARGUMENTS \
    __global uchar *arena, __global const uchar *restrict fixed, __global const uint *restrict table, \
    __global const ulong *restrict names, __global number *cells, __global ulong *control, \
    __global real *history, __global number *partials, __global uint *counter, const uint first_cell, \
    const uint cell_count, const uint op, const uint slot_cap, const uint local_capacity, \
    __local number *work, __local number *slots, __local ulong *local_control, __local ulong2 *local_table
#define BEGIN_OPERATION() \
    if (control[LACUNA_CONTROL_OP] != op) { \
        return; \
    } \
    Place place = { arena, fixed, table, names, cells, 0, local_control, history, first_cell, cell_count, false }; \
    const Place *p = &place; \
    __local number *local_memory = (__local number *)local_table; \
    const uint group = get_group_id(0), groups = get_num_groups(0)
#define END_OPERATION() \
    if (!folds(p, op)) { \
        finish(place, op, segments_of(OP(place, op, LACUNA_OP_N)), control, partials, counter, local_capacity, slots, work); \
    }

// Sums the segment sums 256 to 1, after an operation that leaves this to `fold`.
__kernel LACUNA_GROUP void KERNEL(fold)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
#if !LACUNA_CPU
    const uint terms = segments_of(OP(place, op, LACUNA_OP_N)), chunks = segments_of(terms), sums = sums_of(p, op);
    const uint maxima = maxima_of(p, op);
    __global number *folded = partials + (ulong)sums * room_of(terms);
    for (uint q = group; q < sums * chunks; q += groups) {
        number e[8];
        uint d = q / chunks, c = q % chunks, i = c * SEGMENT;
        read_8(partials + (ulong)d * room_of(terms) + i, terms - i, e);
        const bool maximum = MAXIMUM(d, maxima);
        work[in_pairs(ITEM)] = PAIRS_OF(maximum, e);
        number sum = sum_32(work, SUBS, 0, SUBS, maximum ? 0 : NO_MAXIMA);
        if (ITEM == 0) {
            folded[(ulong)d * room_of(chunks) + place_of(c)] = sum;
        }
    }
    finish(place, op, chunks, control, folded, counter, local_capacity, slots, work);
#endif
}
