// The product of a matrix in diagonals with several vectors.
//
// Formula: Y[j][i] <- sum over diagonals k, by increasing offset, of value[k][i] * X[j][i + offset[k]], for each column j as in
// spmv_dia.cl.
// Bytes moved per row: a value for each diagonal, once for VECTORS columns; each column of x once in all and of y once.
// Launch shape: as sweep.cl; one row for each work-item of a team. Values are stored as in spmv_dia.cl.
// Assumes: columns are one stride apart; no column of Y is a column of X.

// On GPUs one product after another is as fast, so these are not built.
#if LACUNA_CPU

static inline void dia_columns(const Place *p, uint op, const Columns *c, uint segment, uint count) {
    const Dia a = dia_of(p, op); // its x is not a column and is not used
    const long base = (long)segment * SEGMENT;
    EACH(e, count) {
        const long row = base + e;
        __global const number *restrict values
            = a.values + (ulong)(row / DIA_ROWS) * a.step + row % DIA_ROWS;
        for (uint first = 0; first < c->count; first += VECTORS) {
            NO_SUMS(sum)
            for (uint d = 0; d < a.diagonals; d++) {
                const long column = row + a.offsets[d];
                if (column >= 0 && column < a.cols) {
                    ADD_ENTRY(sum, c, first, values[a.starts[d]], column)
                }
            }
            PUT_COLUMNS(sum, c, first, row)
        }
    }
}

__kernel LACUNA_GROUP void KERNEL(spmm_dia)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    OVER_COLUMNS(dia_columns(p, op, &columns, segment, count))
    END_OPERATION();
}
#endif
