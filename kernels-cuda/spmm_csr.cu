// spmm for compressed rows: Y <- A X, several columns at a time.
//
// Formula: Y[j][i] = sum of a[k] X[j][col[k]] over the entries k of row i, for each column j in the order of
// spmv_csr.cu. Bytes per row: 4 for the row pointer, 4 and one number for each entry, once for VECTORS columns; one
// number of each column of X and of Y. Launch shape: see sweep.cuh; 256 / W rows of a segment at a time, with their
// lanes in one warp. Assumes: W is a power of two, at most 32; columns are one stride apart; no column of Y is a column
// of X.
#include "columns.cuh"

template <typename T> LACUNA_FN void spmm_csr(const Common &c, const StreamOp &op) {
    const u32 *row_ptr = (const u32 *)op.arrays[0], *col_idx = (const u32 *)op.arrays[1];
    const T *values = (const T *)op.arrays[2];
    const u32 lanes = op.lanes, lane = threadIdx.x & (lanes - 1);
    over_columns<T>(c, op, [&](u32 base) {
        for (u32 r = threadIdx.x / lanes; r < SEGMENT; r += BLOCK / lanes) {
            const u32 row = base + r;
            const bool live = row < op.n;
            const u32 at = live ? __ldg(row_ptr + row) + lane : 0, end = live ? __ldg(row_ptr + row + 1) : 0;
            for (u32 first = 0; first < op.columns; first += VECTORS) {
                Columns<T> part = columns_from<T>(op, first);
                for (u32 k = at; k < end; k += lanes) add_entry(part, values[k], __ldg(col_idx + k));
                halve_columns(part, lanes);
                put_columns(op, part, first, row, live && lane == 0);
            }
        }
    });
}

#define KERNELS(T, S)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmm_csr_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmm_csr<T>(c, op); }
LACUNA_TYPES(KERNELS)
