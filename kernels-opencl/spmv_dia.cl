// The product with a matrix in diagonals, and the pass on the rows just computed.
//
// Formula: y[i] <- sum over diagonals k, by increasing offset, of value[k][i] * x[i + offset[k]] with fused
// multiply-add; places outside the matrix are skipped. Then the pass, with y in slot 0.
// Bytes moved per row: a value for each diagonal, no index; x once in all, y once; then what the pass moves.
// Launch shape: as sweep.cl. The value at row 64 s + r on diagonal k of d is at start[k] + s step + r, where the table
// of a matrix holds d offsets, d starts and the step (`crates/formats/src/storage/dia.rs`): loads of a team are
// coalesced, or nearly so.
// Assumes: the pass does not write x.

typedef struct {
    uint diagonals;
    uint step;
    long cols;
    __global const int *restrict offsets;
    __global const int *restrict starts;
    __global const number *restrict values;
    SOURCE x;
} Dia;

static inline Dia dia_of(const Place *p, uint op) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    const uint diagonals = (uint)m[MATRIX_ARGUMENTS];
    __global const int *table = (__global const int *)(p->fixed + m[MATRIX_ARGUMENTS + 2]);
    Dia a = { diagonals, (uint)table[2 * diagonals], (long)m[MATRIX_ARGUMENTS + 1], table, table + diagonals,
        (__global const number *)(p->fixed + m[MATRIX_ARGUMENTS + 3]), VECTOR(*p, OP(*p, op, LACUNA_OP_X)) };
    return a;
}

// Rows of a diagonal that are contiguous.
#define DIA_ROWS 64u

static inline void dia_rows(const Dia *a, uint segment, uint count, __local number *slots) {
    const uint diagonals = a->diagonals, step = a->step;
    const long cols = a->cols, base = (long)segment * SEGMENT;
    __global const int *restrict offsets = a->offsets, *restrict starts = a->starts;
    __global const number *restrict values = a->values + (ulong)segment * (SEGMENT / DIA_ROWS) * step;
    SOURCE x = a->x;
    // Whether all places are inside the matrix.
    const bool within = diagonals > 0 && count == SEGMENT && base + offsets[0] >= 0
        && base + SEGMENT + offsets[diagonals - 1] <= cols;
#if LACUNA_CPU
    EACH(e, count) { slots[e] = ZERO; }
    for (uint row = 0; row < count; row += DIA_ROWS, values += step) {
        const uint rows = min(DIA_ROWS, count - row);
        __local number *sums = slots + row;
        uint d = 0;
        for (; within && d + 4 <= diagonals; d += 4) {
            SOURCE xs = BEHIND(x, base + row);
            __global const number *v0 = values + starts[d], *v1 = values + starts[d + 1], *v2 = values + starts[d + 2],
                                  *v3 = values + starts[d + 3];
            SOURCE x0 = BEHIND(xs, offsets[d]);
            SOURCE x1 = BEHIND(xs, offsets[d + 1]);
            SOURCE x2 = BEHIND(xs, offsets[d + 2]);
            SOURCE x3 = BEHIND(xs, offsets[d + 3]);
            for (uint e = 0; e < rows; e++) {
                number sum = multiply_add(v0[e], GET(x0, e), sums[e]);
                sum = multiply_add(v1[e], GET(x1, e), sum);
                sum = multiply_add(v2[e], GET(x2, e), sum);
                sums[e] = multiply_add(v3[e], GET(x3, e), sum);
            }
        }
        for (; d < diagonals; d++) {
            const long column = base + row + offsets[d];
            __global const number *v = values + starts[d];
            const uint from = (uint)clamp(-column, 0L, (long)rows), to = (uint)clamp(cols - column, 0L, (long)rows);
            for (uint e = from; e < to; e++) {
                sums[e] = multiply_add(v[e], GET(x, column + e), sums[e]);
            }
        }
    }
#else
#define PLACE(e) (MINE(e) / 2 * step + LANE + TEAM * (MINE(e) % 2))
    number sum[ELEMENTS] = { ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO };
    for (uint d = 0; d < diagonals; d++) {
        const long column = base + offsets[d];
        SOURCE xs = BEHIND(x, column);
        __global const number *vs = values + starts[d];
        if (within) {
            number v[ELEMENTS], b[ELEMENTS];
            EACH(e, count) {
                v[MINE(e)] = vs[PLACE(e)];
                b[MINE(e)] = GET(xs, e);
            }
            EACH(e, count) { sum[MINE(e)] = multiply_add(v[MINE(e)], b[MINE(e)], sum[MINE(e)]); }
        } else {
            const uint from = (uint)clamp(-column, 0L, (long)count), to = (uint)clamp(cols - column, 0L, (long)count);
            EACH(e, count) {
                if (e >= from && e < to) {
                    sum[MINE(e)] = multiply_add(vs[PLACE(e)], GET(xs, e), sum[MINE(e)]);
                }
            }
        }
    }
#undef PLACE
    EACH(e, count) { slots[e] = sum[MINE(e)]; }
#endif
}

static inline void run_spmv_dia(const Place *p, uint op, uint group, uint groups, uint slot_cap,
    __local number *slots, __local number *work, __local number *local_memory, __global number *partials) {
    const Dia a = dia_of(p, op);
    OVER_SEGMENTS(if (count > 0) { dia_rows(&a, segment, count, mine); })
}

__kernel LACUNA_GROUP void KERNEL(spmv_dia)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_spmv_dia(p, op, group, groups, slot_cap, slots, work, local_memory, partials);
    END_OPERATION();
}
