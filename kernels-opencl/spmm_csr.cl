// The product of a matrix in compressed sparse rows with several vectors.
//
// Formula: Y[j][i] <- sum over the entries of row i of value * X[j][column], for each column j in the order of spmv_csr.cl.
// Bytes moved per row: an offset, its columns and values, once for VECTORS columns; each column of x once in all (from
// cache if columns are near) and of y once.
// Launch shape: as sweep.cl.
// Assumes: W is a power of two up to 32; columns are one stride apart; no column of Y is a column of X.

// On GPUs one product after another is as fast, so these are not built.
#if LACUNA_CPU

static inline void csr_columns(
    const Place *p, uint op, const Columns *c, uint segment, uint count, __local number *work) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    __global const uint *restrict row_ptr = (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS]);
    __global const uint *restrict columns = (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 1]);
    __global const number *restrict values = (__global const number *)(p->fixed + m[MATRIX_ARGUMENTS + 2]);
    const uint lanes = (uint)m[MATRIX_LANES], base = segment * SEGMENT;
    ROWS_BY_LANES(c, lanes, base, count, work, {
        const uint end = row_ptr[row + 1];
        for (uint k = row_ptr[row] + lane; k < end; k += lanes) {
            ADD_ENTRY(sum, c, first, values[k], columns[k])
        }
    })
}

__kernel LACUNA_GROUP void KERNEL(spmm_csr)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    OVER_COLUMNS(csr_columns(p, op, &columns, segment, count, work))
    END_OPERATION();
}
#endif
