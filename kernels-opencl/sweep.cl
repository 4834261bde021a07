// A pass: all its updates and dot products in one sweep over memory, then its instructions.
//
// Formula: dst[i] <- sum of coefficient * factor[i] * vector[i], update by update; cell <- sum of conj(a[i]) b[i],
// where b may have a factor too, or the largest |a[i]|^2.
// Bytes moved per row: each vector whose old value is read, once; each vector that is written, once; also one partial
// sum for each dot product and 256 rows.
// Launch shape: work-groups of one team in a grid-stride loop over segments of 256 elements; if LACUNA_CPU is 1, one
// work-item processes all 256. The last work-group to end sums the segment sums in canonical order and runs the
// instructions.
// Assumes: the operation is the next one (else the launch does nothing); slots below `slot_cap` are in local memory,
// the others stay in their vectors, where only the work-item of an element touches it.

// What a work-group reads of the table for every segment: the words of its lists, its vectors, its coefficients. On a
// GPU all of that is in local memory, since streaming data would evict it from the cache.
typedef struct {
    const Place *place;
    uint op, slot_cap, first_word, cached_loads;
    uint loads, load_count, updates, update_count, stores, store_count, dots, dot_count, maxima;
    __local const uint *words;
    __local const ulong *homes;
    __local const number *coefficients;
} Sweep;

// `local_memory` is aligned for any type.
static inline Sweep sweep_of(const Place *p, uint op, uint slot_cap, __local number *local_memory) {
    Sweep s = { p, op, slot_cap, OP(*p, op, LACUNA_OP_SLOTS), 0, OP(*p, op, LACUNA_OP_LOADS),
        OP(*p, op, LACUNA_OP_LOAD_COUNT), OP(*p, op, LACUNA_OP_UPDATES), OP(*p, op, LACUNA_OP_UPDATE_COUNT),
        OP(*p, op, LACUNA_OP_STORES), OP(*p, op, LACUNA_OP_STORE_COUNT), OP(*p, op, LACUNA_OP_DOTS),
        OP(*p, op, LACUNA_OP_DOT_COUNT), maxima_of(p, op), 0, 0, 0 };
#if !LACUNA_CPU
    // Vector addresses, coefficients, words: from those that name slots to the last one of a dot product.
    const uint terms = OP(*p, op, LACUNA_OP_TERM_COUNT), slots = OP(*p, op, LACUNA_OP_SLOT_COUNT);
    __local ulong *homes = (__local ulong *)local_memory;
    __local number *coefficients = (__local number *)(homes + (slots + 1) / 2 * 2);
    __local uint *words = (__local uint *)(coefficients + terms);
    const uint count = s.dots + s.dot_count * LACUNA_DOT_WORDS - s.first_word;
    SYNC();
    for (uint i = ITEM; i < count; i += THREADS) {
        words[i] = p->table[s.first_word + i];
    }
    SYNC();
    for (uint i = ITEM; i < slots; i += THREADS) {
        homes[i] = p->names[2 + words[i]];
    }
    uint at = s.updates - s.first_word, before = 0;
    for (uint u = 0; u < s.update_count; u++) {
        const uint here = words[at + LACUNA_UPDATE_TERMS];
        at += LACUNA_UPDATE_WORDS;
        for (uint term = ITEM; term < here; term += THREADS) {
            __local const uint *w = words + at + term * LACUNA_TERM_WORDS;
            const uint kind = w[LACUNA_TERM_COEFFICIENT];
            coefficients[before + term] = kind == LACUNA_COEFFICIENT_CELL ? cell(p, w[LACUNA_TERM_CELL])
                : kind == LACUNA_COEFFICIENT_ONE ? ONE : -ONE;
        }
        before += here;
        at += here * LACUNA_TERM_WORDS;
    }
    SYNC();
    for (; s.cached_loads < s.load_count; s.cached_loads++) {
        const uint load = s.loads - s.first_word + s.cached_loads * LACUNA_MOVE_WORDS;
        if (words[load + LACUNA_MOVE_SLOT] >= slot_cap) {
            break;
        }
    }
    s.words = words;
    s.homes = homes;
    s.coefficients = coefficients;
#endif
    return s;
}

// OPERAND prepares the values of a slot, OF is one of them; a CPU reads each in place. A slot is in local memory or in
// its vector.
#if LACUNA_CPU
#define WORD(i) s->place->table[i]
#define HOME(slot) VECTOR(*s->place, WORD(s->first_word + (slot)))
#define OPERAND(v, slot) SOURCE v = BEHIND(HOME(slot), base)
#define OF(v, slot, e) ((slot) < s->slot_cap ? slots[(slot) * SEGMENT + (e)] : GET(v, e))
#else
#define WORD(i) s->words[(i) - s->first_word]
#define HOME(slot) vector_at(s->place->arena, s->homes[slot])
#define OPERAND(v, slot) \
    number v[ELEMENTS]; \
    read_slot(s, slot, base, count, slots, v)
#define OF(v, slot, e) v[MINE(e)]
static inline void read_slot(const Sweep *s, uint slot, ulong base, uint count, __local const number *slots,
    number *v) {
    if (slot < s->slot_cap) {
        EACH(e, count) { v[MINE(e)] = slots[slot * SEGMENT + e]; }
    } else {
        SOURCE home = BEHIND(HOME(slot), base);
        EACH(e, count) { v[MINE(e)] = GET(home, e); }
    }
}
#endif

// Loads, updates and stores of one segment, of which `count` elements exist. Slot 0 holds the result of a product.
static inline void pass(const Sweep *s, uint segment, uint count, __local number *slots) {
    const ulong base = (ulong)segment * SEGMENT;
    const uint slot_cap = s->slot_cap;
    uint at = s->loads, k = 0;
#if LACUNA_NARROW
    // The result of a product is rounded to the type of its vector.
    if (slot_cap > 0) {
        EACH(e, count) { slots[e] = KEPT(HOME(0), slots[e]); }
    }
#endif
#define MOVE_SLOT(k) WORD(at + (k) * LACUNA_MOVE_WORDS + LACUNA_MOVE_SLOT)
#if LACUNA_CPU
    for (; k < s->load_count && MOVE_SLOT(k) < slot_cap; k++) {
        SOURCE from = BEHIND(HOME(MOVE_SLOT(k)), base);
        __local number *to = slots + MOVE_SLOT(k) * SEGMENT;
        EACH(e, count) { to[e] = GET(from, e); }
    }
#else
    // Several vectors are loaded before the first is used. The slots of loads ascend.
#define LOAD(B) \
    for (; k + B <= s->cached_loads; k += B) { \
        number v[B][ELEMENTS]; \
        UNROLLED \
        for (uint b = 0; b < B; b++) { \
            SOURCE from = BEHIND(HOME(MOVE_SLOT(k + b)), base); \
            EACH(e, count) { v[b][MINE(e)] = GET(from, e); } \
        } \
        UNROLLED \
        for (uint b = 0; b < B; b++) { \
            __local number *to = slots + MOVE_SLOT(k + b) * SEGMENT; \
            EACH(e, count) { to[e] = v[b][MINE(e)]; } \
        } \
    }
    LOAD(LACUNA_BATCH)
    LOAD(2)
    LOAD(1)
#endif

    at = s->updates;
    uint ordinal = 0;
    for (uint u = 0; u < s->update_count; u++) {
        uint dst = WORD(at + LACUNA_UPDATE_SLOT), terms = WORD(at + LACUNA_UPDATE_TERMS);
        at += LACUNA_UPDATE_WORDS;
        number sum[ELEMENTS];
        // For real numbers, adding to -0 gives the first term itself, to the bit.
        EACH(e, count) { sum[MINE(e)] = !LACUNA_COMPLEX && terms ? -ZERO : ZERO; }
        for (uint term = 0; term < terms; term++, ordinal++, at += LACUNA_TERM_WORDS) {
            uint kind = WORD(at + LACUNA_TERM_COEFFICIENT), factor = WORD(at + LACUNA_TERM_FACTOR);
            uint source = WORD(at + LACUNA_TERM_SLOT);
            bool of_cell = kind == LACUNA_COEFFICIENT_CELL;
#if LACUNA_CPU
            number c = of_cell ? cell(s->place, WORD(at + LACUNA_TERM_CELL))
                : kind == LACUNA_COEFFICIENT_ONE ? ONE : -ONE;
#else
            number c = s->coefficients[ordinal];
#endif
            OPERAND(vector, source);
#if LACUNA_COMPLEX
            bool first = term == 0, negative = kind == LACUNA_COEFFICIENT_MINUS_ONE;
            if (factor == LACUNA_NONE) {
                EACH(e, count) {
                    number v = OF(vector, source, e), old = sum[MINE(e)];
                    number signed_v = negative ? -v : v;
                    sum[MINE(e)] = of_cell ? (first ? times(c, v) : multiply_add(c, v, old))
                        : (first ? signed_v : negative ? old - v : old + v);
                }
            } else {
                OPERAND(factors, factor);
                EACH(e, count) {
                    number v = OF(vector, source, e), f = OF(factors, factor, e), old = sum[MINE(e)];
                    number fv = times(f, v);
                    sum[MINE(e)] = of_cell ? (first ? times(c, fv) : multiply_add(c, fv, old))
                        : first ? (negative ? -fv : fv) : multiply_add(negative ? -f : f, v, old);
                }
            }
#else
            if (factor == LACUNA_NONE) {
                EACH(e, count) { sum[MINE(e)] = fma(c, OF(vector, source, e), sum[MINE(e)]); }
            } else {
                OPERAND(factors, factor);
                EACH(e, count) {
                    number v = OF(vector, source, e), f = OF(factors, factor, e), old = sum[MINE(e)];
                    sum[MINE(e)] = of_cell ? fma(c, f * v, old) : fma(c * f, v, old);
                }
            }
#endif
        }
        if (dst < slot_cap) {
            EACH(e, count) { slots[dst * SEGMENT + e] = KEPT(HOME(dst), sum[MINE(e)]); }
        } else {
            TARGET to = BEHIND(HOME(dst), base);
            EACH(e, count) { PUT(to, e, sum[MINE(e)]); }
        }
    }

    at = s->stores;
    for (k = 0; k < s->store_count && MOVE_SLOT(k) < slot_cap; k++) {
        TARGET to = BEHIND(HOME(MOVE_SLOT(k)), base);
        __local const number *from = slots + MOVE_SLOT(k) * SEGMENT;
        EACH(e, count) { PUT(to, e, from[e]); }
    }
}

// The dot products of one segment; a work-group has the segments from `first` on, one team for each.
static inline void dots(const Sweep *s, uint segment, uint count, uint segments, uint first, __local number *slots,
    __local number *work, __global number *partials) {
    const ulong base = (ulong)segment * SEGMENT;
    for (uint sum = 0; sum < s->dot_count; sum += LACUNA_BATCH) {
        uint batch = min(s->dot_count - sum, (uint)LACUNA_BATCH);
        for (uint b = 0; b < batch; b++) {
            const uint at = s->dots + (sum + b) * LACUNA_DOT_WORDS;
            const uint sa = WORD(at + LACUNA_DOT_A), sb = WORD(at + LACUNA_DOT_B);
            const uint sf = WORD(at + LACUNA_DOT_FACTOR);
            const bool maximum = MAXIMUM(sum + b, s->maxima);
#if LACUNA_CPU
            OPERAND(va, sa);
            OPERAND(vb, sb);
            __local number *w = work + b * SEGMENT;
            if (maximum) {
                EACH(e, count) { w[e] = square(OF(vb, sb, e)); }
            } else if (sf == LACUNA_NONE) {
                EACH(e, count) { w[e] = dot_term(OF(va, sa, e), OF(vb, sb, e)); }
            } else {
                OPERAND(factors, sf);
                EACH(e, count) { w[e] = dot_term(OF(va, sa, e), times(OF(factors, sf, e), OF(vb, sb, e))); }
            }
            PAD(e, count) { w[e] = ZERO; }
#else
            if (count > 0) {
                OPERAND(va, sa);
                OPERAND(vb, sb);
                if (sf != LACUNA_NONE) {
                    OPERAND(factors, sf);
                    EACH(e, count) { vb[MINE(e)] = times(factors[MINE(e)], vb[MINE(e)]); }
                }
                number terms[ELEMENTS];
                EACH(e, count) {
                    terms[MINE(e)] = maximum ? square(OF(vb, sb, e)) : dot_term(OF(va, sa, e), OF(vb, sb, e));
                    terms[MINE(e)] = e < count ? terms[MINE(e)] : ZERO;
                }
                work[b * THREADS + ITEM] = SUM_OF(maximum, terms);
            }
#endif
        }
        sum_segments(work, batch, partials, sum, s->maxima, segments, first);
    }
}

// Loops over the segments of this work-group, one team for each: `rows` computes slot 0, then the pass follows.
#define OVER_SEGMENTS(rows) \
    const Sweep s = sweep_of(p, op, slot_cap, local_memory); \
    const uint n = OP(*p, op, LACUNA_OP_N), segments = segments_of(n); \
    __local number *mine = slots + (ulong)SUB * slot_cap * SEGMENT; \
    for (uint first = group * SUBS; first < segments; first += groups * SUBS) { \
        const uint segment = first + SUB; \
        const uint count = segment < segments ? min(SEGMENT, n - segment * SEGMENT) : 0; \
        rows; \
        if (count > 0) { \
            pass(&s, segment, count, mine); \
        } \
        dots(&s, segment, count, segments, first, mine, work, partials); \
    }

static inline void run_sweep(const Place *p, uint op, uint group, uint groups, uint slot_cap, __local number *slots,
    __local number *work, __local number *local_memory, __global number *partials) {
    OVER_SEGMENTS()
}

__kernel LACUNA_GROUP void KERNEL(sweep)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_sweep(p, op, group, groups, slot_cap, slots, work, local_memory, partials);
    END_OPERATION();
}
