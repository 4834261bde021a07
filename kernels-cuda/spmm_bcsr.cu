// spmm for compressed rows of square blocks: Y <- A X, several columns at a time.
//
// Formula: Y[j][b i + r] = sum over the blocks of block row i, by W lanes (lane l takes blocks l, l + W, ...), of the
// block's columns in order, for each column j as in spmv_bcsr.cu. Bytes per row: its values, 1 / b of an offset and of
// the block columns, once for VECTORS columns; one number of each column of X and of Y. Launch shape: see sweep.cuh;
// 256 / W rows of a segment at a time, with their lanes in one warp. Assumes: a block is stored column by column; W is
// a power of two, at most 32; columns are one stride apart; no column of Y is a column of X.
#include "columns.cuh"

template <typename T> LACUNA_FN void spmm_bcsr(const Common &c, const StreamOp &op) {
    const u32 *row_ptr = (const u32 *)op.arrays[0], *col_idx = (const u32 *)op.arrays[1];
    const T *values = (const T *)op.arrays[2];
    const u32 lanes = op.lanes, lane = threadIdx.x & (lanes - 1), block = op.sizes[0];
    over_columns<T>(c, op, [&](u32 base) {
        for (u32 r = threadIdx.x / lanes; r < SEGMENT; r += BLOCK / lanes) {
            const u32 row = base + r, of = row / block;
            const bool live = row < op.n;
            const u32 at = live ? __ldg(row_ptr + of) + lane : 0, end = live ? __ldg(row_ptr + of + 1) : 0;
            for (u32 first = 0; first < op.columns; first += VECTORS) {
                Columns<T> part = columns_from<T>(op, first);
                for (u32 k = at; k < end; k += lanes) {
                    const T *entries = values + u64(k) * (block * block) + row % block;
                    const u64 column = u64(__ldg(col_idx + k)) * block;
                    for (u32 j = 0; j < block; j++) add_entry(part, entries[j * block], column + j);
                }
                halve_columns(part, lanes);
                put_columns(op, part, first, row, live && lane == 0);
            }
        }
    });
}

#define KERNELS(T, S)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmm_bcsr_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmm_bcsr<T>(c, op); }
LACUNA_TYPES(KERNELS)
