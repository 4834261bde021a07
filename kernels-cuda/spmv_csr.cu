// spmv_dot for compressed rows: y <- A x, then a pass on the rows just computed.
//
// Formula: y[i] = sum of a[k] x[col[k]] over the entries k of row i; lane j of W takes entries j, j + W, ... with fused
// multiply-add in order from 0, lanes are summed by halving; a row whose lanes would have more than LONG_LANE is cut into pieces, each with
// W = 32, whose sums are added in order. Bytes per row: 4 for the row pointer, 4 and one number
// for each entry, one number for x and one for y, and what the pass moves. Launch shape: see sweep.cuh; within a
// segment 256 / W rows at a time, their lanes in one warp. Assumes: W is a power of two, 32 at the most.
#include "product_rows.cuh"

template <typename T> LACUNA_FN void spmv_csr(const Common &c, const StreamOp &op) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) unsigned char coefficients[MAX_TERMS * sizeof(T)];
    const u32 *row_ptr = (const u32 *)op.arrays[0], *col_idx = (const u32 *)op.arrays[1];
    const T *values = (const T *)op.arrays[2], *x = (const T *)op.x;
    const u32 tid = threadIdx.x, lanes = op.lanes;
    over_segments(c, op, memory, (T *)coefficients, [&](u32 base, T *slots) {
        if (lanes == 1) {
            const u32 row = base + tid;
            const u32 first = row < op.n ? __ldg(row_ptr + row) : 0, end = row < op.n ? __ldg(row_ptr + row + 1) : 0;
            const bool is_long = end - first > LACUNA_LONG_LANE;
            T sum = is_long ? zero<T>() : lane_sum(col_idx, values, x, first, end, 1);
            long_rows(col_idx, values, x, first, end, is_long, sum);
            if (row < op.n) slots[tid] = sum;
            return;
        }
        u32 lane = tid & (lanes - 1), step = BLOCK / lanes;
        __syncthreads(); // the rows of the segment before are done with slot 0
        for (u32 r = tid / lanes; r < SEGMENT; r += step) {
            const u32 row = base + r;
            const u32 first = row < op.n ? __ldg(row_ptr + row) : 0, end = row < op.n ? __ldg(row_ptr + row + 1) : 0;
            const bool is_long = end - first > LACUNA_LONG_LANE * lanes;
            T sum = is_long ? zero<T>() : lane_sum(col_idx, values, x, first + lane, end, lanes);
            sum = halved(sum, lanes);
            long_rows(col_idx, values, x, first, end, is_long && lane == 0, sum);
            if (lane == 0) slots[r] = sum;
        }
        __syncthreads();
    });
}

#define KERNELS(T, S)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmv_csr_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmv_csr<T>(c, op); }
LACUNA_TYPES(KERNELS)
