// A pass: every update and dot product of it in one sweep over memory, then its instructions.
//
// Formula: dst[i] <- sum of coefficient * factor[i] * vector[i], update by update; cell <- sum of conj(a[i]) b[i].
// Bytes moved per row: each vector whose old value is read once, each that is written once; beside them one partial
// sum for each dot product and 256 rows.
// Launch shape: work-groups of one team, which go over segments of 256 elements with the grid's stride; one work-item
// that goes over all 256 where LACUNA_CPU is 1. The last group to end sums the segment sums in canonical order and runs
// the instructions.
// Assumes: the operation is the one that is due (else the launch does nothing); slots below `slot_cap` are in local
// memory, the others stay where their vectors are, which only the work-item of an element touches.

// Where slot `s` is: in local memory, or where its vector is.
#define SLOT_HOME(p, op, s) VECTOR(p, (p).table[OP(p, op, LACUNA_OP_SLOTS) + (s)])

// OPERAND makes the values of a slot ready, OF is one of them: on a CPU each is read where it lies.
#if LACUNA_CPU
#define OPERAND(v, s) \
    __global const number *v = (s) < slot_cap ? (__global const number *)0 : SLOT_HOME(*p, op, s) + base
#define OF(v, s, e) ((s) < slot_cap ? slots[(s) * SEGMENT + (e)] : v[e])
#else
#define OPERAND(v, s) \
    number v[ELEMENTS]; \
    read_slot(p, op, s, base, count, slot_cap, slots, v)
#define OF(v, s, e) v[MINE(e)]
static inline void read_slot(const Place *p, uint op, uint slot, ulong base, uint count, uint slot_cap,
    __local const number *slots, number *v) {
    if (slot < slot_cap) {
        EACH(e, count) { v[MINE(e)] = slots[slot * SEGMENT + e]; }
    } else {
        __global const number *home = SLOT_HOME(*p, op, slot) + base;
        EACH(e, count) { v[MINE(e)] = home[e]; }
    }
}
#endif

// Loads, updates and stores of one segment, of which `count` elements exist. Slot 0 holds what a product computed.
static inline void pass(const Place *p, uint op, uint segment, uint count, uint slot_cap, __local number *slots) {
    __global const uint *restrict table = p->table;
    const ulong base = (ulong)segment * SEGMENT;
    uint at = OP(*p, op, LACUNA_OP_LOADS), loads = OP(*p, op, LACUNA_OP_LOAD_COUNT), k = 0;
#define MOVE_SLOT(k) table[at + (k) * LACUNA_MOVE_WORDS + LACUNA_MOVE_SLOT]
#define MOVE_HOME(k) (VECTOR(*p, table[at + (k) * LACUNA_MOVE_WORDS + LACUNA_MOVE_VECTOR]) + base)
#if !LACUNA_CPU
    // Several vectors are under way before the first is waited for. Slots of loads ascend.
    for (; k + LACUNA_BATCH <= loads && MOVE_SLOT(k + LACUNA_BATCH - 1) < slot_cap; k += LACUNA_BATCH) {
        number v[LACUNA_BATCH][ELEMENTS];
        UNROLLED
        for (uint b = 0; b < LACUNA_BATCH; b++) {
            __global const number *from = MOVE_HOME(k + b);
            EACH(e, count) { v[b][MINE(e)] = from[e]; }
        }
        UNROLLED
        for (uint b = 0; b < LACUNA_BATCH; b++) {
            __local number *to = slots + MOVE_SLOT(k + b) * SEGMENT;
            EACH(e, count) { to[e] = v[b][MINE(e)]; }
        }
    }
#endif
    for (; k < loads && MOVE_SLOT(k) < slot_cap; k++) {
        __global const number *from = MOVE_HOME(k);
        __local number *to = slots + MOVE_SLOT(k) * SEGMENT;
#if LACUNA_CPU
        EACH(e, count) { to[e] = from[e]; }
#else
        number v[ELEMENTS];
        EACH(e, count) { v[MINE(e)] = from[e]; }
        EACH(e, count) { to[e] = v[MINE(e)]; }
#endif
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
            OPERAND(vector, source);
#if LACUNA_COMPLEX
            bool first = term == 0, negative = kind == LACUNA_COEFFICIENT_MINUS_ONE;
            if (factor == LACUNA_NONE) {
                EACH(e, count) {
                    number v = OF(vector, source, e), s = sum[MINE(e)];
                    number signed_v = negative ? -v : v;
                    sum[MINE(e)] = of_cell ? (first ? times(c, v) : multiply_add(c, v, s))
                        : (first ? signed_v : negative ? s - v : s + v);
                }
            } else {
                OPERAND(factors, factor);
                EACH(e, count) {
                    number v = OF(vector, source, e), f = OF(factors, factor, e), s = sum[MINE(e)];
                    number fv = times(f, v);
                    sum[MINE(e)] = of_cell ? (first ? times(c, fv) : multiply_add(c, fv, s))
                        : first ? (negative ? -fv : fv) : multiply_add(negative ? -f : f, v, s);
                }
            }
#else
            if (factor == LACUNA_NONE) {
                EACH(e, count) { sum[MINE(e)] = fma(c, OF(vector, source, e), sum[MINE(e)]); }
            } else {
                OPERAND(factors, factor);
                EACH(e, count) {
                    number v = OF(vector, source, e), f = OF(factors, factor, e), s = sum[MINE(e)];
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
    for (k = 0; k < stores && MOVE_SLOT(k) < slot_cap; k++) {
        __global number *to = MOVE_HOME(k);
        __local const number *from = slots + MOVE_SLOT(k) * SEGMENT;
        EACH(e, count) { to[e] = from[e]; }
    }
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
            OPERAND(va, sa);
            OPERAND(vb, sb);
#if LACUNA_CPU
            __local number *w = work + b * SEGMENT;
            EACH(e, count) { w[e] = dot_term(OF(va, sa, e), OF(vb, sb, e)); }
            PAD(e, count) { w[e] = ZERO; }
#else
            number terms[ELEMENTS] = { ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO };
            EACH(e, count) { terms[MINE(e)] = dot_term(OF(va, sa, e), OF(vb, sb, e)); }
            work[b * THREADS + ITEM] = SUM_OF(terms);
#endif
        }
        sum_segments(work, batch, partials, first, segments, segment_base);
    }
}

// Goes over the segments that fall to this group: `rows` computes what slot 0 is to hold, then comes the pass.
#define OVER_SEGMENTS(rows) \
    uint n = OP(*p, op, LACUNA_OP_N), segments = segments_of(n); \
    __local number *mine = slots + (ulong)SUB * slot_cap * SEGMENT; \
    for (uint first = group * SUBS; first < segments; first += groups * SUBS) { \
        uint segment = first + SUB; \
        uint count = segment < segments ? min(SEGMENT, n - segment * SEGMENT) : 0; \
        rows; \
        pass(p, op, segment, count, slot_cap, mine); \
        dots(p, op, segment, count, segments, first, slot_cap, mine, work, partials); \
    }

static inline void run_sweep(const Place *p, uint op, uint group, uint groups, uint slot_cap, __local number *slots,
    __local number *work, __global number *partials) {
    OVER_SEGMENTS()
}

__kernel LACUNA_GROUP void KERNEL(sweep)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_sweep(&p, op, group, groups, slot_cap, slots, work, partials);
    END_OPERATION();
}
