// The product with a matrix in diagonals, and the pass on the rows just computed.
//
// Formula: y[i] <- sum over diagonals k, by increasing offset, of value[k][i] * x[i + offset[k]] with fused multiply-add;
// places outside the matrix take no part. Then the pass, which finds y in slot 0.
// Bytes moved per row: a value for each diagonal, no index; x once in all, y once; then what the pass moves.
// Launch shape: as sweep.cl; the value at row 256 s + r on diagonal k of d is at (s d + k) 256 + r, so that a team reads
// whole lines.
// Assumes: the pass does not write x.

static inline void dia_rows(const Place *p, uint op, uint segment, uint count, __local number *slots) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    const uint diagonals = (uint)m[MATRIX_ARGUMENTS];
    const long cols = (long)m[MATRIX_ARGUMENTS + 1], base = (long)segment * SEGMENT;
    __global const int *restrict offsets = (__global const int *)(p->fixed + m[MATRIX_ARGUMENTS + 2]);
    __global const number *restrict values = (__global const number *)(p->fixed + m[MATRIX_ARGUMENTS + 3])
        + (ulong)segment * diagonals * SEGMENT;
    __global const number *restrict x = VECTOR(*p, OP(*p, op, LACUNA_OP_X));
#if LACUNA_CPU
    EACH(e, count) { slots[e] = ZERO; }
    uint d = 0;
    if (diagonals > 0 && base + offsets[0] >= 0 && base + count + offsets[diagonals - 1] <= cols) {
        // Within the matrix: four diagonals at a time.
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
        number a[ELEMENTS], b[ELEMENTS];
        bool inside[ELEMENTS];
        UNROLLED
        for (uint i = 0; i < ELEMENTS; i++) {
            uint e = LANE + TEAM * i;
            inside[i] = e < count && column + e >= 0 && column + e < cols;
            a[i] = inside[i] ? values[e] : ZERO;
            b[i] = inside[i] ? x[column + e] : ZERO;
        }
        UNROLLED
        for (uint i = 0; i < ELEMENTS; i++) {
            sum[i] = inside[i] ? multiply_add(a[i], b[i], sum[i]) : sum[i];
        }
    }
    EACH(e, count) { slots[e] = sum[MINE(e)]; }
#endif
}

static inline void run_spmv_dia(const Place *p, uint op, uint group, uint groups, uint slot_cap,
    __local number *slots, __local number *work, __global number *partials) {
    OVER_SEGMENTS(dia_rows(p, op, segment, count, mine))
}

__kernel LACUNA_GROUP void KERNEL(spmv_dia)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_spmv_dia(&p, op, group, groups, slot_cap, slots, work, partials);
    END_OPERATION();
}
