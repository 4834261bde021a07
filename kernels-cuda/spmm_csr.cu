// spmm for compressed rows: Y <- A X, several columns at a time.
//
// Formula: Y[j][i] = sum of a[k] X[j][col[k]] over the entries k of row i, for each column j in the order of spmv_csr.cu.
// Bytes per row: 4 for the row pointer, 4 and one number for each entry, once for VECTORS columns; one number of each column
// of X and of Y. Launch shape: see sweep.cuh; within a segment 256 / W rows at a time, their lanes in one warp. Assumes: W is
// a power of two, 32 at the most; columns lie one stride apart; no column of Y is one of X.
#include "sweep.cuh"

// Columns that are multiplied with an entry at a time; the last one stands in for those behind it.
#define VECTORS 8u

template <typename T> LACUNA_FN void spmm_csr(const Common &c, const StreamOp &op) {
    if (!is_next(c, op)) return;
    const u32 *row_ptr = (const u32 *)op.arrays[0], *col_idx = (const u32 *)op.arrays[1];
    const T *values = (const T *)op.arrays[2], *x = (const T *)op.x;
    T *y = (T *)op.y;
    const u32 lanes = op.lanes, lane = threadIdx.x & (lanes - 1);
    u32 from, to;
    share(op, from, to);
    for (u32 s = from; s < to; s++) {
        for (u32 r = threadIdx.x / lanes; r < SEGMENT; r += BLOCK / lanes) {
            const u32 row = s * SEGMENT + r;
            const bool live = row < op.n;
            const u32 at = live ? __ldg(row_ptr + row) + lane : 0, end = live ? __ldg(row_ptr + row + 1) : 0;
            for (u32 first = 0; first < op.columns; first += VECTORS) {
                const T *of[VECTORS];
                T sum[VECTORS];
#pragma unroll
                for (u32 v = 0; v < VECTORS; v++) {
                    of[v] = x + min(first + v, op.columns - 1) * op.stride;
                    sum[v] = zero<T>();
                }
                for (u32 k = at; k < end; k += lanes) {
                    const u32 column = __ldg(col_idx + k);
                    const T value = values[k];
#pragma unroll
                    for (u32 v = 0; v < VECTORS; v++) sum[v] = fma_of(value, of[v][column], sum[v]);
                }
#pragma unroll
                for (u32 v = 0; v < VECTORS; v++) {
                    const T whole = halved(sum[v], lanes);
                    if (live && lane == 0 && first + v < op.columns) y[(first + v) * op.y_stride + row] = whole;
                }
            }
        }
    }
    finish<T>(c, op, from, to);
}

#define KERNELS(T, S)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmm_csr_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmm_csr<T>(c, op); }
LACUNA_TYPES(KERNELS)
