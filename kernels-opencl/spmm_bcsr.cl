// The product of a matrix in compressed rows of square blocks with several vectors.
//
// Formula: Y[j][b i + r] <- sum over the blocks of block row i, by W lanes (lane l takes blocks l, l + W, ...), of the
// block's columns in order, for each column j as in spmv_bcsr.cl.
// Bytes moved per row: its values, 1 / b of an offset and of the block columns, once for VECTORS columns; each column
// of x once in all (from cache if columns are near) and of y once.
// Launch shape: as sweep.cl.
// Assumes: a block is stored column by column; W is a power of two up to 32; columns are one stride apart; no column of
// Y is a column of X.

// On GPUs one product after another is as fast, so these are not built.
#if LACUNA_CPU

static inline void bcsr_columns(
    const Place *p, uint op, const Columns *c, uint segment, uint count, __local number *work) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    __global const uint *restrict row_ptr = (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 1]);
    __global const uint *restrict columns = (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 2]);
    __global const number *restrict values = (__global const number *)(p->fixed + m[MATRIX_ARGUMENTS + 3]);
    const uint block = (uint)m[MATRIX_ARGUMENTS], lanes = (uint)m[MATRIX_LANES], base = segment * SEGMENT;
    ROWS_BY_LANES(c, lanes, base, count, work, {
        const uint end = row_ptr[row / block + 1];
        for (uint k = row_ptr[row / block] + lane; k < end; k += lanes) {
            __global const number *restrict entries = values + (ulong)k * (block * block) + row % block;
            for (uint j = 0; j < block; j++) {
                ADD_ENTRY(sum, c, first, entries[j * block], (ulong)columns[k] * block + j)
            }
        }
    })
}

__kernel LACUNA_GROUP void KERNEL(spmm_bcsr)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    OVER_COLUMNS(bcsr_columns(p, op, &columns, segment, count, work))
    END_OPERATION();
}
#endif
