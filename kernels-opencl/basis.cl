// All columns of a basis in one sweep over memory.
//
// Formula: basis_dot: h[j] <- sum of conj(v_j[i]) w[i]; basis_axpy: w <- w -+ sum of h[j] v_j by fma in order of j,
// where a column with coefficient 0 is skipped; then the pass, with w in slot 0. basis_gram: basis_dot for each column on
// the right; basis_combine: basis_axpy with a plus for each column of x, from 0 or from what is there.
// Bytes moved per row: basis_dot: each column in use and w, once; basis_axpy: the same, w written, and what the pass
// moves (see sweep.cl); of blocks each column once, as a segment of them stays in caches.
// Launch shape: as sweep.cl; LACUNA_BATCH columns are projected on at a time, four are combined at a time.
// Assumes: columns are one stride apart; the pass writes no column in use.

// Products of a vector with each column of a basis, over the rows of a segment from `base` on, as the sums from `first_sum` on.
static inline void dots_of_segment(const Place *p, ulong v, ulong stride, uint columns, SOURCE w, ulong base, uint count,
    uint first_sum, uint segments, uint first, __local number *work, __global number *partials) {
#if !LACUNA_CPU
    number own[ELEMENTS];
    if (count > 0) {
        EACH(e, count) { own[MINE(e)] = GET(w, e); }
    }
#endif
    for (uint j = 0; j < columns; j += LACUNA_BATCH) {
        uint batch = min(columns - j, (uint)LACUNA_BATCH);
#if LACUNA_CPU
        for (uint b = 0; b < batch; b++) {
            SOURCE column = BEHIND(vector_at(p->arena, v + (j + b) * stride), base);
            __local number *to = work + b * SEGMENT;
            EACH(e, count) { to[e] = dot_term(GET(column, e), GET(w, e)); }
            PAD(e, count) { to[e] = ZERO; }
        }
#else
        if (count > 0) {
            number terms[LACUNA_BATCH][ELEMENTS];
            UNROLLED
            for (uint b = 0; b < LACUNA_BATCH; b++) {
                const uint column = min(j + b, columns - 1);
                SOURCE from = BEHIND(vector_at(p->arena, v + column * stride), base);
                EACH(e, count) { terms[b][MINE(e)] = GET(from, e); }
            }
            UNROLLED
            for (uint b = 0; b < LACUNA_BATCH; b++) {
                EACH(e, count) {
                    const number term = dot_term(terms[b][MINE(e)], own[MINE(e)]);
                    terms[b][MINE(e)] = e < count ? term : ZERO;
                }
                work[b * THREADS + ITEM] = SUM_OF(false, terms[b]);
            }
        }
#endif
        sum_segments(work, batch, partials, first_sum + j, NO_MAXIMA, segments, first);
    }
}

static inline void run_basis_dot(const Place *p, uint op, uint group, uint groups, __local number *work,
    __global number *partials) {
    uint n = OP(*p, op, LACUNA_OP_N), segments = segments_of(n), columns = OP(*p, op, LACUNA_OP_COLUMNS);
    __global const ulong *basis = BASIS(*p, OP(*p, op, LACUNA_OP_BASIS));
    for (uint first = group * SUBS; first < segments; first += groups * SUBS) {
        uint segment = first + SUB;
        uint count = segment < segments ? min(SEGMENT, n - segment * SEGMENT) : 0;
        const ulong base = (ulong)segment * SEGMENT;
        SOURCE w = BEHIND(VECTOR(*p, OP(*p, op, LACUNA_OP_Y)), base);
        dots_of_segment(p, basis[0], basis[1], columns, w, base, count, 0, segments, first, work, partials);
    }
}

// All columns of the left basis and of a segment stay in caches while those on the right take turns.
static inline void run_basis_gram(const Place *p, uint op, uint group, uint groups, __local number *work,
    __global number *partials) {
    uint n = OP(*p, op, LACUNA_OP_N), segments = segments_of(n), rows = OP(*p, op, LACUNA_OP_X);
    __global const ulong *left = BASIS(*p, OP(*p, op, LACUNA_OP_BASIS)), *right = BASIS(*p, OP(*p, op, LACUNA_OP_Y));
    const uint sums = OP(*p, op, LACUNA_OP_COLUMNS);
    for (uint first = group * SUBS; first < segments; first += groups * SUBS) {
        uint segment = first + SUB;
        uint count = segment < segments ? min(SEGMENT, n - segment * SEGMENT) : 0;
        const ulong base = (ulong)segment * SEGMENT;
        for (uint sum = 0, j = 0; sum < sums; sum += rows, j++) {
            SOURCE w = BEHIND(vector_at(p->arena, right[0] + j * right[1]), base);
            dots_of_segment(p, left[0], left[1], rows, w, base, count, sum, segments, first, work, partials);
        }
    }
}

// Combinations made at a time.
#define MADE 4u

static inline void run_basis_combine(const Place *p, uint op, uint group, uint groups) {
    uint n = OP(*p, op, LACUNA_OP_N), segments = segments_of(n), rows = OP(*p, op, LACUNA_OP_X);
    __global const ulong *v = BASIS(*p, OP(*p, op, LACUNA_OP_BASIS)), *x = BASIS(*p, OP(*p, op, LACUNA_OP_Y));
    const uint columns = OP(*p, op, LACUNA_OP_COLUMNS), h = OP(*p, op, LACUNA_OP_H);
    const bool adds = OP(*p, op, LACUNA_OP_ADD) != 0;
    for (uint first = group * SUBS; first < segments; first += groups * SUBS) {
        uint segment = first + SUB;
        if (segment >= segments) {
            continue;
        }
        const uint count = min(SEGMENT, n - segment * SEGMENT);
        const ulong base = (ulong)segment * SEGMENT;
        for (uint j = 0; j < columns; j += MADE) {
            number sum[MADE][ELEMENTS];
            UNROLLED
            for (uint m = 0; m < MADE; m++) {
                SOURCE from = BEHIND(vector_at(p->arena, x[0] + min(j + m, columns - 1) * x[1]), base);
                EACH(e, count) { sum[m][MINE(e)] = adds ? GET(from, e) : ZERO; }
            }
            for (uint i = 0; i < rows; i++) {
                SOURCE column = BEHIND(vector_at(p->arena, v[0] + i * v[1]), base);
                number own[ELEMENTS];
                EACH(e, count) { own[MINE(e)] = GET(column, e); }
                UNROLLED
                for (uint m = 0; m < MADE; m++) {
                    const number weight = cell(p, h + min(j + m, columns - 1) * rows + i);
                    if (!is_zero(weight)) {
                        EACH(e, count) { sum[m][MINE(e)] = multiply_add(weight, own[MINE(e)], sum[m][MINE(e)]); }
                    }
                }
            }
            UNROLLED
            for (uint m = 0; m < MADE; m++) {
                if (j + m < columns) {
                    TARGET to = BEHIND(vector_at(p->arena, x[0] + (j + m) * x[1]), base);
                    EACH(e, count) {
                        if (e < count) {
                            PUT(to, e, sum[m][MINE(e)]);
                        }
                    }
                }
            }
        }
    }
}

// A basis update: the columns, the updated vector, and the weights, which a GPU keeps in local memory.
typedef struct {
    const Place *place;
    ulong v; // the word of column 0
    SOURCE w;
    ulong stride;
    uint columns, h;
    bool add;
    __local const number *weights;
} Combination;

static inline Combination combination_of(const Place *p, uint op, __local number *weights) {
    __global const ulong *basis = BASIS(*p, OP(*p, op, LACUNA_OP_BASIS));
    Combination c = { p, basis[0], VECTOR(*p, OP(*p, op, LACUNA_OP_Y)), basis[1],
        OP(*p, op, LACUNA_OP_COLUMNS), OP(*p, op, LACUNA_OP_H), OP(*p, op, LACUNA_OP_ADD) != 0, weights };
#if !LACUNA_CPU
    for (uint j = ITEM; j < c.columns; j += THREADS) {
        number h = cell(p, c.h + j);
        weights[j] = c.add ? h : -h;
    }
    SYNC();
#endif
    return c;
}

// w -+ V h of one segment into slot 0.
static inline void combine(const Combination *c, uint segment, uint count, __local number *slots) {
    const ulong base = (ulong)segment * SEGMENT, stride = c->stride;
    const uint columns = c->columns;
    SOURCE w = BEHIND(c->w, base);
#define COLUMN_AT(j) BEHIND(vector_at(c->place->arena, c->v + (j) * stride), base)
#if LACUNA_CPU
#define WEIGHT(j) (c->add ? cell(c->place, c->h + (j)) : -cell(c->place, c->h + (j)))
#else
#define WEIGHT(j) c->weights[j]
#endif
    number sum[ELEMENTS];
    EACH(e, count) { sum[MINE(e)] = GET(w, e); }
    uint j = 0;
    for (; j + 4 <= columns; j += 4) {
        number h0 = WEIGHT(j), h1 = WEIGHT(j + 1), h2 = WEIGHT(j + 2), h3 = WEIGHT(j + 3);
        SOURCE c0 = COLUMN_AT(j);
        SOURCE c1 = COLUMN_AT(j + 1);
        SOURCE c2 = COLUMN_AT(j + 2);
        SOURCE c3 = COLUMN_AT(j + 3);
        bool z0 = is_zero(h0), z1 = is_zero(h1), z2 = is_zero(h2), z3 = is_zero(h3);
        if (z0 || z1 || z2 || z3) {
            EACH(e, count) {
                number s = sum[MINE(e)];
                s = z0 ? s : multiply_add(h0, GET(c0, e), s);
                s = z1 ? s : multiply_add(h1, GET(c1, e), s);
                s = z2 ? s : multiply_add(h2, GET(c2, e), s);
                sum[MINE(e)] = z3 ? s : multiply_add(h3, GET(c3, e), s);
            }
        } else {
#if LACUNA_CPU
#define COLUMN_OF(i, c, e) GET(c, e)
#else
            // All loads are issued before the first is used.
            number vs[4][ELEMENTS];
            EACH(e, count) {
                vs[0][MINE(e)] = GET(c0, e);
                vs[1][MINE(e)] = GET(c1, e);
                vs[2][MINE(e)] = GET(c2, e);
                vs[3][MINE(e)] = GET(c3, e);
            }
#define COLUMN_OF(i, c, e) vs[i][MINE(e)]
#endif
            EACH(e, count) {
                number s = multiply_add(h0, COLUMN_OF(0, c0, e), sum[MINE(e)]);
                s = multiply_add(h1, COLUMN_OF(1, c1, e), s);
                s = multiply_add(h2, COLUMN_OF(2, c2, e), s);
                sum[MINE(e)] = multiply_add(h3, COLUMN_OF(3, c3, e), s);
            }
        }
    }
    for (; j < columns; j++) {
        number weight = WEIGHT(j);
        SOURCE column = COLUMN_AT(j);
        if (!is_zero(weight)) {
            EACH(e, count) { sum[MINE(e)] = multiply_add(weight, GET(column, e), sum[MINE(e)]); }
        }
    }
    EACH(e, count) { slots[e] = sum[MINE(e)]; }
#undef COLUMN_AT
#undef WEIGHT
}

static inline void run_basis_axpy(const Place *p, uint op, uint group, uint groups, uint slot_cap,
    __local number *slots, __local number *work, __local number *local_memory, __global number *partials) {
    const Combination c = combination_of(p, op, local_memory);
    local_memory += (c.columns + 3) / 4 * 4;
    OVER_SEGMENTS(if (count > 0) { combine(&c, segment, count, mine); })
}

__kernel LACUNA_GROUP void KERNEL(basis_dot)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_basis_dot(p, op, group, groups, work, partials);
    END_OPERATION();
}

__kernel LACUNA_GROUP void KERNEL(basis_gram)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_basis_gram(p, op, group, groups, work, partials);
    END_OPERATION();
}

__kernel LACUNA_GROUP void KERNEL(basis_combine)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_basis_combine(p, op, group, groups);
    END_OPERATION();
}

__kernel LACUNA_GROUP void KERNEL(basis_axpy)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_basis_axpy(p, op, group, groups, slot_cap, slots, work, local_memory, partials);
    END_OPERATION();
}
