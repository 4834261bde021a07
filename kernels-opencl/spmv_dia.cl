// The product with a matrix in diagonals, and the pass on the rows just computed.
//
// Formula: y[i] <- sum over diagonals k, by increasing offset, of value[k][i] * x[i + offset[k]] with fused multiply-add;
// places outside the matrix take no part. Then the pass, which finds y in slot 0.
// Bytes moved per row: a value for each diagonal, no index; x once in all, y once; then what the pass moves.
// Launch shape: as spmv_csr.cl; the value at row 256 s + r on diagonal k of d is at (s d + k) 256 + r, so that a team reads
// whole lines.
// Assumes: the pass does not write x.

typedef struct {
    uint diagonals;
    long cols;
    __global const int *restrict offsets;
    __global const number *restrict values;
    __global const number *restrict x;
} Dia;

static inline Dia dia_of(const Place *p, uint op) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    Dia a = { (uint)m[MATRIX_ARGUMENTS], (long)m[MATRIX_ARGUMENTS + 1],
        (__global const int *)(p->fixed + m[MATRIX_ARGUMENTS + 2]),
        (__global const number *)(p->fixed + m[MATRIX_ARGUMENTS + 3]), VECTOR(*p, OP(*p, op, LACUNA_OP_X)) };
    return a;
}

// The rows of a segment, one after the other of `width` work-items, this being the one at `me`.
static inline void dia_rows(const Dia *a, uint segment, uint count, uint me, uint width, __local number *slots) {
    const uint diagonals = a->diagonals;
    const long cols = a->cols, base = (long)segment * SEGMENT;
    __global const int *restrict offsets = a->offsets;
    __global const number *restrict values = a->values + (ulong)segment * diagonals * SEGMENT;
    __global const number *restrict x = a->x;
    const bool within =
        diagonals > 0 && base + offsets[0] >= 0 && base + SEGMENT + offsets[diagonals - 1] <= cols;
#if LACUNA_CPU
    EACH(e, count) { slots[e] = ZERO; }
    uint d = 0;
    if (within) {
        // Four diagonals at a time.
        for (; d + 4 <= diagonals; d += 4) {
            __global const number *v = values + d * SEGMENT;
            __global const number *x0 = x + (base + offsets[d]), *x1 = x + (base + offsets[d + 1]),
                                  *x2 = x + (base + offsets[d + 2]), *x3 = x + (base + offsets[d + 3]);
            EACH(e, count) {
                number sum = multiply_add(v[e], x0[e], slots[e]);
                sum = multiply_add(v[e + SEGMENT], x1[e], sum);
                sum = multiply_add(v[e + 2 * SEGMENT], x2[e], sum);
                slots[e] = multiply_add(v[e + 3 * SEGMENT], x3[e], sum);
            }
        }
    }
    for (; d < diagonals; d++) {
        const long column = base + offsets[d];
        const uint from = (uint)clamp(-column, 0L, (long)count), to = (uint)clamp(cols - column, 0L, (long)count);
        for (uint e = from; e < to; e++) {
            slots[e] = multiply_add(values[d * SEGMENT + e], x[column + e], slots[e]);
        }
    }
#else
    number sum[ELEMENTS] = { ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO };
    for (uint d = 0; d < diagonals; d++, values += SEGMENT) {
        const long column = base + offsets[d];
        __global const number *xs = x + column;
        number v[ELEMENTS], b[ELEMENTS];
        if (within) {
            UNROLLED
            for (uint i = 0; i < SEGMENT / width; i++) {
                v[i] = values[me + width * i];
                b[i] = xs[me + width * i];
            }
            UNROLLED
            for (uint i = 0; i < SEGMENT / width; i++) {
                sum[i] = multiply_add(v[i], b[i], sum[i]);
            }
        } else {
            // Rows of places within the matrix.
            const uint from = (uint)clamp(-column, 0L, (long)count), to = (uint)clamp(cols - column, 0L, (long)count);
            UNROLLED
            for (uint i = 0; i < SEGMENT / width; i++) {
                const uint e = me + width * i;
                if (e >= from && e < to) {
                    sum[i] = multiply_add(values[e], xs[e], sum[i]);
                }
            }
        }
    }
    UNROLLED
    for (uint i = 0; i < SEGMENT / width; i++) {
        slots[me + width * i] = sum[i];
    }
#endif
}

static inline void run_spmv_dia(const Place *p, uint op, uint group, uint groups, uint slot_cap,
    __local number *slots, __local number *work, __local number *near, __global number *partials) {
    const Dia a = dia_of(p, op);
    OVER_SEGMENTS(dia_rows(&a, segment, count, LANE, TEAM, mine))
}

__kernel LACUNA_SHARING_GROUP void KERNEL(spmv_dia)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    const Dia a = dia_of(p, op);
    OVER_SHARED_SEGMENTS(dia_rows(&a, segment, count, ITEM, SHARING, mine))
    END_OPERATION();
}
