// spmm for slices of 32 rows (SELL-32-256, ELLPACK): Y <- A X, several columns at a time.
//
// Formula: Y[j][i] = sum over the places of row i's lane, in order, of value X[j][column], for each column j as in
// spmv_sell.cu. Bytes per row: a column and a number for each place, once for VECTORS columns, 4 if rows are sorted;
// one number of each column of X and of Y. Launch shape: see sweep.cuh; one slice for each warp. Assumes: places are
// stored as in spmv_sell.cu; columns are one stride apart; no column of Y is a column of X.
#include "columns.cuh"

template <typename T> LACUNA_FN void spmm_sell(const Common &c, const StreamOp &op) {
    const u32 *slice_ptr = (const u32 *)op.arrays[0], *row_of = (const u32 *)op.arrays[1];
    const u32 *col_idx = (const u32 *)op.arrays[2];
    const T *values = (const T *)op.arrays[3];
    const bool sorted = op.sizes[0] != 0;
    over_columns<T>(c, op, [&](u32 base) {
        const u32 lane = base + threadIdx.x, slice = lane / WARP;
        if (slice >= (op.n + WARP - 1) / WARP) return;
        const u64 at = u64(__ldg(slice_ptr + slice)) * WARP + lane % WARP, end = u64(__ldg(slice_ptr + slice + 1)) * WARP;
        const u32 row = sorted ? __ldg(row_of + lane) : lane;
        for (u32 first = 0; first < op.columns; first += VECTORS) {
            Columns<T> part = columns_from<T>(op, first);
            for (u64 k = at; k < end; k += WARP) add_entry(part, values[k], __ldg(col_idx + k));
            put_columns(op, part, first, row, row < op.n);
        }
    });
}

#define KERNELS(T, S)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmm_sell_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmm_sell<T>(c, op); }
LACUNA_TYPES(KERNELS)
