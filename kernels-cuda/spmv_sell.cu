// spmv_dot for slices of 32 rows (SELL-32-256, ELLPACK): y <- A x, then a pass on the rows just computed.
//
// Formula: y[i] = sum over the places of row i's lane, in order, of value x[column] with fused multiply-add from 0;
// places without an entry hold zero and take part. Bytes per row: a column and a number for each place, 4 if rows are
// sorted, one number for x and one for y, and what the pass moves. Launch shape: see sweep.cuh; one slice for each
// warp. Place j of lane l of a slice that begins at column p is at (p + j) 32 + l.
#include "product_rows.cuh"

template <bool N, typename T> LACUNA_FN void spmv_sell(const Common &c, const StreamOp &op) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) unsigned char coefficients[MAX_TERMS * sizeof(T)];
    const u32 *slice_ptr = (const u32 *)op.arrays[0], *row_of = (const u32 *)op.arrays[1];
    const u32 tid = threadIdx.x;
    const bool sorted = op.sizes[0] != 0;
    over_segments<N>(c, op, memory, (T *)coefficients, [&](u32 base, T *slots) {
        const u32 lane = base + tid, slices = (op.n + WARP - 1) / WARP;
        if (sorted) __syncthreads(); // the previous segment is done with slot 0
        if (lane / WARP < slices) {
            const u32 first = __ldg(slice_ptr + lane / WARP), width = __ldg(slice_ptr + lane / WARP + 1) - first;
            const u64 at = u64(first) * WARP + tid % WARP;
            const u32 row = sorted ? __ldg(row_of + lane) : lane;
            const auto x = Vector<N, T>::source(op.x);
            const T sum = slice_row<N>((const u32 *)op.arrays[2] + at, (const T *)op.arrays[3] + at, x, width);
            if (row < op.n) slots[row - base] = sum;
        }
        if (sorted) __syncthreads();
    });
}

#define KERNELS(T, S, N)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmv_sell_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmv_sell<N, T>(c, op); }
LACUNA_VECTORS(KERNELS)
