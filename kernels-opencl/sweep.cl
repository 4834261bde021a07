// A pass: every update and dot product of it in one sweep over memory, then its instructions.
//
// Formula: dst[i] <- sum of coefficient * factor[i] * vector[i], update by update; cell <- sum of conj(a[i]) b[i].
// Bytes moved per row: each vector whose old value is read once, each that is written once; beside them one partial
// sum for each dot product and 256 rows.
// Launch shape: work-groups of 256 work-items, one element each, that go over segments of 256 elements with the grid's
// stride; one work-item that goes over all 256 where LACUNA_CPU is 1. The last group to end sums the segment sums in
// canonical order and runs the instructions.
// Assumes: the operation is the one that is due (else the launch does nothing); slots below `slot_cap` are in local
// memory, the others stay where their vectors are, which only the work-item of an element touches.

// The value of slot `s` at element `e` of a segment, wherever it is.
#define SLOT_HOME(p, op, s) VECTOR(p, (p).table[OP(p, op, LACUNA_OP_SLOTS) + (s)])
#define GET(s, home, e) ((s) < slot_cap ? slots[(s) * SEGMENT + (e)] : (home)[base + (e)])
#define HOME(s) ((s) < slot_cap ? (__global number *)0 : SLOT_HOME(*p, op, s))

// Loads, updates and stores of one segment, of which `count` elements exist. Slot 0 holds what a product computed.
static inline void pass(const Place *p, uint op, uint segment, uint count, uint slot_cap, __local number *slots) {
    __global const uint *restrict table = p->table;
    const ulong base = (ulong)segment * SEGMENT;
    uint at = OP(*p, op, LACUNA_OP_LOADS), loads = OP(*p, op, LACUNA_OP_LOAD_COUNT), k = 0;
#define LOAD_SLOT(k) table[at + (k) * LACUNA_MOVE_WORDS + LACUNA_MOVE_SLOT]
#define LOAD_FROM(k) (VECTOR(*p, table[at + (k) * LACUNA_MOVE_WORDS + LACUNA_MOVE_VECTOR]) + base)
#if !LACUNA_CPU
    // Four loads are under way before the first is waited for. Slots of loads ascend.
    for (; k + 4 <= loads && LOAD_SLOT(k + 3) < slot_cap; k += 4) {
        __global const number *f0 = LOAD_FROM(k), *f1 = LOAD_FROM(k + 1), *f2 = LOAD_FROM(k + 2),
                              *f3 = LOAD_FROM(k + 3);
        uint s0 = LOAD_SLOT(k), s1 = LOAD_SLOT(k + 1), s2 = LOAD_SLOT(k + 2), s3 = LOAD_SLOT(k + 3);
        EACH(e, count) {
            number v0 = f0[e], v1 = f1[e], v2 = f2[e], v3 = f3[e];
            slots[s0 * SEGMENT + e] = v0;
            slots[s1 * SEGMENT + e] = v1;
            slots[s2 * SEGMENT + e] = v2;
            slots[s3 * SEGMENT + e] = v3;
        }
    }
#endif
    for (; k < loads && LOAD_SLOT(k) < slot_cap; k++) {
        __global const number *from = LOAD_FROM(k);
        uint slot = LOAD_SLOT(k);
        EACH(e, count) { slots[slot * SEGMENT + e] = from[e]; }
    }

    at = OP(*p, op, LACUNA_OP_UPDATES);
    uint updates = OP(*p, op, LACUNA_OP_UPDATE_COUNT);
    for (uint u = 0; u < updates; u++) {
        uint dst = table[at + LACUNA_UPDATE_SLOT], terms = table[at + LACUNA_UPDATE_TERMS];
        at += LACUNA_UPDATE_WORDS;
        number sum[ELEMENTS];
        // Adding to -0 is the first term itself, to the bit, where numbers are real.
        EACH(e, count) { sum[MINE(e)] = !LACUNA_COMPLEX && terms ? -ZERO : ZERO; }
        for (uint term = 0; term < terms; term++, at += LACUNA_TERM_WORDS) {
            uint kind = table[at + LACUNA_TERM_COEFFICIENT], factor = table[at + LACUNA_TERM_FACTOR];
            uint source = table[at + LACUNA_TERM_SLOT];
            bool of_cell = kind == LACUNA_COEFFICIENT_CELL;
            number c = of_cell ? cell(p, table[at + LACUNA_TERM_CELL])
                : kind == LACUNA_COEFFICIENT_ONE ? ONE : -ONE;
            __global const number *home = HOME(source);
#if LACUNA_COMPLEX
            bool first = term == 0, negative = kind == LACUNA_COEFFICIENT_MINUS_ONE;
            if (factor == LACUNA_NONE) {
                EACH(e, count) {
                    number v = GET(source, home, e), s = sum[MINE(e)];
                    number signed_v = negative ? -v : v;
                    sum[MINE(e)] = of_cell ? (first ? times(c, v) : multiply_add(c, v, s))
                        : (first ? signed_v : negative ? s - v : s + v);
                }
            } else {
                __global const number *factor_home = HOME(factor);
                EACH(e, count) {
                    number v = GET(source, home, e), f = GET(factor, factor_home, e), s = sum[MINE(e)];
                    number fv = times(f, v);
                    sum[MINE(e)] = of_cell ? (first ? times(c, fv) : multiply_add(c, fv, s))
                        : first ? (negative ? -fv : fv) : multiply_add(negative ? -f : f, v, s);
                }
            }
#else
            if (factor == LACUNA_NONE) {
                EACH(e, count) { sum[MINE(e)] = fma(c, GET(source, home, e), sum[MINE(e)]); }
            } else {
                __global const number *factor_home = HOME(factor);
                EACH(e, count) {
                    number v = GET(source, home, e), f = GET(factor, factor_home, e), s = sum[MINE(e)];
                    sum[MINE(e)] = of_cell ? fma(c, f * v, s) : fma(c * f, v, s);
                }
            }
#endif
        }
        if (dst < slot_cap) {
            EACH(e, count) { slots[dst * SEGMENT + e] = sum[MINE(e)]; }
        } else {
            __global number *to = SLOT_HOME(*p, op, dst) + base;
            EACH(e, count) { to[e] = sum[MINE(e)]; }
        }
    }

    at = OP(*p, op, LACUNA_OP_STORES);
    uint stores = OP(*p, op, LACUNA_OP_STORE_COUNT);
    for (k = 0; k < stores && LOAD_SLOT(k) < slot_cap; k++) {
        __global number *to = VECTOR(*p, table[at + k * LACUNA_MOVE_WORDS + LACUNA_MOVE_VECTOR]) + base;
        uint slot = LOAD_SLOT(k);
        EACH(e, count) { to[e] = slots[slot * SEGMENT + e]; }
    }
}

// Sums blocks of 256 terms in `work`, one for each of `batch` sums and each segment of this group, into `partials`.
static inline void sum_segments(__local number *work, uint batch, __global number *partials, uint first_sum,
    uint segments, uint segment_base) {
#if LACUNA_CPU
    for (uint b = 0; b < batch; b++) {
        __local number *w = work + b * SEGMENT;
        for (uint stride = SEGMENT / 2; stride > 0; stride /= 2) {
            for (uint j = 0; j < stride; j++) {
                w[j] = w[j] + w[j + stride];
            }
        }
        partials[(ulong)(first_sum + b) * segments + segment_base] = w[0];
    }
#else
    uint blocks = batch * SUBS;
    SYNC();
    if (ITEM < blocks * 32) {
        __local number *w = work + (ITEM / 32) * SEGMENT + ITEM % 32;
        w[0] = SUM_8(w[0], w[32], w[64], w[96], w[128], w[160], w[192], w[224]);
    }
    SYNC();
    if (ITEM < blocks * 4) {
        __local number *w = work + (ITEM / 4) * SEGMENT + ITEM % 4;
        w[0] = SUM_8(w[0], w[4], w[8], w[12], w[16], w[20], w[24], w[28]);
    }
    SYNC();
    if (ITEM < blocks) {
        __local number *w = work + ITEM * SEGMENT;
        uint segment = segment_base + ITEM % SUBS;
        if (segment < segments) {
            partials[(ulong)(first_sum + ITEM / SUBS) * segments + segment] = (w[0] + w[2]) + (w[1] + w[3]);
        }
    }
    SYNC();
#endif
}

// The dot products of one segment.
static inline void dots(const Place *p, uint op, uint segment, uint count, uint segments, uint segment_base,
    uint slot_cap, __local number *slots, __local number *work, __global number *partials) {
    const ulong base = (ulong)segment * SEGMENT;
    uint at = OP(*p, op, LACUNA_OP_DOTS), sums = OP(*p, op, LACUNA_OP_DOT_COUNT);
    for (uint first = 0; first < sums; first += LACUNA_BATCH) {
        uint batch = min(sums - first, (uint)LACUNA_BATCH);
        for (uint b = 0; b < batch; b++) {
            __global const uint *dot = p->table + at + (first + b) * LACUNA_DOT_WORDS;
            uint sa = dot[LACUNA_DOT_A], sb = dot[LACUNA_DOT_B];
            __global const number *home_a = HOME(sa), *home_b = HOME(sb);
            __local number *w = work + (b * SUBS + SUB) * SEGMENT;
            EACH(e, count) { w[e] = dot_term(GET(sa, home_a, e), GET(sb, home_b, e)); }
            PAD(e, count) { w[e] = ZERO; }
        }
        sum_segments(work, batch, partials, first, segments, segment_base);
    }
}

// Sums of an operation.
static inline uint sums_of(const Place *p, uint op) {
    bool projects = OP(*p, op, LACUNA_OP_KIND) == LACUNA_KIND_BASIS_DOT;
    return OP(*p, op, projects ? LACUNA_OP_COLUMNS : LACUNA_OP_DOT_COUNT);
}
static inline void set_sum(const Place *p, uint op, uint sum, number value) {
    bool projects = OP(*p, op, LACUNA_OP_KIND) == LACUNA_KIND_BASIS_DOT;
    uint at = OP(*p, op, LACUNA_OP_DOTS) + sum * LACUNA_DOT_WORDS + LACUNA_DOT_CELL;
    set_cell(p, projects ? OP(*p, op, LACUNA_OP_H) + sum : p->table[at], value);
}

// Canonical sums of the segment sums into cells, by one whole work-group. `work` has LACUNA_BATCH * THREADS numbers
// and SEGMENT more. More than 65536 segment sums are first summed in place.
static inline void sum_partials(const Place *p, uint op, uint segments, __global number *partials,
    __local number *work) {
    uint sums = sums_of(p, op);
#if LACUNA_CPU
    for (uint d = 0; d < sums; d++) {
        __global number *terms = partials + (ulong)d * segments;
        for (uint left = segments; left > 1; left = segments_of(left)) {
            for (uint c = 0; c < segments_of(left); c++) {
                uint count = min(SEGMENT, left - c * SEGMENT);
                EACH(e, count) { work[e] = terms[c * SEGMENT + e]; }
                PAD(e, count) { work[e] = ZERO; }
                sum_segments(work, 1, terms, 0, 0, c);
            }
        }
        set_sum(p, op, d, segments == 0 ? ZERO : terms[0]);
    }
#else
    __local number *level = work + LACUNA_BATCH * THREADS;
    const uint at_once = LACUNA_BATCH * THREADS / 32;
    const uint k = ITEM % 32;
    uint stride = segments, terms = segments;
    if (terms <= 1) {
        for (uint d = ITEM; d < sums; d += THREADS) {
            set_sum(p, op, d, terms == 0 ? ZERO : read_shared(partials + d));
        }
        SYNC_ALL();
        return;
    }
    bool in_place = terms > SEGMENT * SEGMENT;
    do {
        uint chunks = segments_of(terms);
        uint sums_at_once = in_place ? 1 : max(1u, min(SEGMENT / chunks, at_once));
        for (uint d0 = 0; d0 < sums; d0 += sums_at_once) {
            uint here = min(sums - d0, sums_at_once), total = here * chunks;
            for (uint q0 = 0; q0 < total; q0 += at_once) {
                for (uint b = 0; b < LACUNA_BATCH; b++) {
                    uint q = q0 + b * (THREADS / 32) + ITEM / 32;
                    number sum = ZERO;
                    if (q < total) {
                        uint i = q % chunks * SEGMENT + k;
                        __global const number *from = partials + (ulong)(d0 + q / chunks) * stride;
#define TERM(m) (i + 32 * (m) < terms ? read_shared(from + i + 32 * (m)) : ZERO)
                        number e0 = TERM(0), e1 = TERM(1), e2 = TERM(2), e3 = TERM(3);
                        number e4 = TERM(4), e5 = TERM(5), e6 = TERM(6), e7 = TERM(7);
#undef TERM
                        sum = SUM_8(e0, e1, e2, e3, e4, e5, e6, e7);
                    }
                    work[b * THREADS + ITEM] = sum;
                }
                SYNC();
                if (ITEM < at_once * 4) {
                    __local number *w = work + (ITEM / 4) * 32 + ITEM % 4;
                    w[0] = SUM_8(w[0], w[4], w[8], w[12], w[16], w[20], w[24], w[28]);
                }
                SYNC();
                if (ITEM < at_once && q0 + ITEM < total) {
                    __local number *w = work + ITEM * 32;
                    number sum = (w[0] + w[2]) + (w[1] + w[3]);
                    if (in_place) {
                        partials[(ulong)d0 * stride + q0 + ITEM] = sum;
                    } else if (chunks == 1) {
                        set_sum(p, op, d0 + ITEM, sum);
                    } else {
                        level[q0 + ITEM] = sum;
                    }
                }
                SYNC_ALL();
            }
            if (!in_place && chunks > 1) {
                for (uint x = ITEM; x < here * 32; x += THREADS) {
                    __local const number *from = level + x / 32 * chunks;
#define TERM(m) (k + 32 * (m) < chunks ? from[k + 32 * (m)] : ZERO)
                    work[x] = SUM_8(TERM(0), TERM(1), TERM(2), TERM(3), TERM(4), TERM(5), TERM(6), TERM(7));
#undef TERM
                }
                SYNC();
                if (ITEM < here * 4) {
                    __local number *w = work + (ITEM / 4) * 32 + ITEM % 4;
                    w[0] = SUM_8(w[0], w[4], w[8], w[12], w[16], w[20], w[24], w[28]);
                }
                SYNC();
                if (ITEM < here) {
                    __local number *w = work + ITEM * 32;
                    set_sum(p, op, d0 + ITEM, (w[0] + w[2]) + (w[1] + w[3]));
                }
                SYNC_ALL();
            }
        }
        if (!in_place) {
            return;
        }
        in_place = false;
        terms = segments_of(terms);
        // What one work-item wrote in place is read by others.
        DEVICE_FENCE();
        SYNC_ALL();
    } while (true);
#endif
}

// What every launch of an operation ends with: the last group to come here makes the sums, runs the instructions and
// says what is due next. `near` has room for `near_capacity` cells.
static inline void finish(Place p, uint op, uint segments, __global ulong *control, __global number *partials,
    __global uint *counter, uint near_capacity, __local number *near, __local number *work) {
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
        for (uint i = 0; i < LACUNA_CONTROL_WORDS - 1; i++) {
            p.control[i] = control[i];
        }
    }
    p.is_near = p.cell_count <= near_capacity;
    p.near_cells = near;
    if (p.is_near) {
        for (uint i = ITEM; i < p.cell_count; i += get_local_size(0)) {
            near[i] = p.far_cells[p.first + i];
        }
    }
    SYNC_ALL();
    sum_partials(&p, op, segments, partials, work);
    if (ITEM == 0) {
        advance_from(&p, op, MODE_DONE);
        for (uint i = 0; i < LACUNA_CONTROL_WORDS - 1; i++) {
            control[i] = p.control[i];
        }
    }
    SYNC_ALL();
    if (p.is_near) {
        for (uint i = ITEM; i < p.cell_count; i += get_local_size(0)) {
            p.far_cells[p.first + i] = near[i];
        }
    }
}

// The segments of an operation of one of the kinds that fall to this group.
static inline void run_sweep(const Place *p, uint op, uint group, uint groups, uint slot_cap, __local number *slots,
    __local number *work, __global number *partials) {
    uint n = OP(*p, op, LACUNA_OP_N), segments = segments_of(n);
    __local number *mine = slots + (ulong)SUB * slot_cap * SEGMENT;
    for (uint first = group * SUBS; first < segments; first += groups * SUBS) {
        uint segment = first + SUB;
        uint count = segment < segments ? min(SEGMENT, n - segment * SEGMENT) : 0;
        pass(p, op, segment, count, slot_cap, mine);
        dots(p, op, segment, count, segments, first, slot_cap, mine, work, partials);
    }
}

__kernel LACUNA_GROUP void KERNEL(sweep)(__global uchar *arena, __global const uchar *restrict fixed,
    __global const uint *restrict table, __global const ulong *restrict names, __global number *cells,
    __global ulong *control, __global real *history, __global number *partials, __global uint *counter,
    const uint first, const uint cell_count, const uint op, const uint slot_cap, const uint near_capacity,
    __local number *work, __local number *slots, __local ulong *near_control) {
    if (control[LACUNA_CONTROL_OP] != op) {
        return;
    }
    Place p = { arena, fixed, table, names, cells, 0, near_control, history, first, cell_count, false };
    run_sweep(&p, op, get_group_id(0), get_num_groups(0), slot_cap, slots, work, partials);
    finish(p, op, segments_of(OP(p, op, LACUNA_OP_N)), control, partials, counter, near_capacity, slots, work);
}
