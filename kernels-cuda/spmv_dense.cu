// spmv_dot for a dense matrix: y <- A x, then a pass on the rows just computed.
//
// Formula: y[i] = sum of a[i][j] x[j] over the columns j; lane l of W takes columns l, l + W, ... with fused
// multiply-add in order from 0, lanes are summed by halving. Bytes per row: one number for each column, one for x and
// one for y, and what the pass moves. Launch shape: see sweep.cuh; 256 / W rows of a segment at a time, with their
// lanes in one warp. Assumes: W is a power of two, at most 32.
#include "sweep.cuh"

template <bool N, typename T>
LACUNA_FN T dense_lane(const T *__restrict__ values, typename Vector<N, T>::Source x, u32 k, u32 cols, u32 lanes) {
    const u32 DEPTH = Depth<T>::count;
    T sum = zero<T>();
    for (; k < cols; k += DEPTH * lanes) {
        T a[DEPTH], v[DEPTH];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++) {
            const u32 at = min(k + i * lanes, cols - 1);
            a[i] = values[at];
            v[i] = x[at];
        }
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (k + i * lanes < cols) sum = fma_of(a[i], v[i], sum);
    }
    return sum;
}

template <bool N, typename T> LACUNA_FN void spmv_dense(const Common &c, const StreamOp &op) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) unsigned char coefficients[MAX_TERMS * sizeof(T)];
    const T *values = (const T *)op.arrays[0];
    const auto x = Vector<N, T>::source(op.x);
    const u32 tid = threadIdx.x, lanes = op.lanes, cols = op.sizes[0], lane = tid & (lanes - 1), step = BLOCK / lanes;
    over_segments<N>(c, op, memory, (T *)coefficients, [&](u32 base, T *slots) {
        __syncthreads(); // the previous segment is done with slot 0
        for (u32 r = tid / lanes; r < SEGMENT; r += step) {
            const u32 row = base + r;
            T sum = zero<T>();
            if (row < op.n) sum = dense_lane<N>(values + u64(row) * cols, x, lane, cols, lanes);
            for (u32 d = lanes / 2; d > 0; d /= 2) sum = add(sum, from_lane_above(sum, d));
            if (lane == 0) slots[r] = sum;
        }
        __syncthreads();
    });
}

#define KERNELS(T, S, N)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmv_dense_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmv_dense<N, T>(c, op); }
LACUNA_VECTORS(KERNELS)
