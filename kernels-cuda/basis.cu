// basis_dot and basis_axpy: a tall, thin block of vectors, with each column read once.
//
// Formula: h[j] = sum of conj(v[i, j]) w[i]; and w[i] <- fma(-h[j], v[i, j], w[i]) for j in order (+h[j] if it adds),
// skipping columns with coefficient 0, then a pass on the rows. Bytes per row: k + 1 numbers for the first; at most k +
// 2 and what the pass moves for the second. Launch shape: see sweep.cuh; in basis_dot, a warp takes a segment, with
// eight rows in each lane that stay in registers over all columns.
#include "sweep.cuh"

template <bool N, typename T> LACUNA_FN void basis_dot(const Common &c, const StreamOp &op) {
    if (!is_next(c, op)) return;
    const auto v = Vector<N, T>::source(op.arrays[0]), w = Vector<N, T>::source(op.x);
    T *partial = (T *)c.partial;
    u32 from, to, lane = threadIdx.x % WARP;
    share(op, from, to);
    for (u32 s = from + threadIdx.x / WARP; s < to; s += WARPS) {
        u32 row = s * SEGMENT + lane;
        T mine[8];
#pragma unroll
        for (u32 k = 0; k < 8; k++) mine[k] = row + WARP * k < op.n ? w[row + WARP * k] : zero<T>();
        for (u32 j = 0; j < op.columns; j++) {
            const auto column = v + j * op.stride;
            T e[8];
#pragma unroll
            for (u32 k = 0; k < 8; k++)
                e[k] = row + WARP * k < op.n ? dot_term(column[row + WARP * k], mine[k]) : zero<T>();
            T sum = segment_sum(e);
            if (lane == 0) partial[j * op.segments + s] = sum;
        }
    }
    finish<T>(c, op, from, to);
}

template <bool N, typename T> LACUNA_FN void basis_axpy(const Common &c, const StreamOp &op) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) unsigned char coefficients[MAX_TERMS * sizeof(T)];
    if (!is_next(c, op)) return;
    T *slots = (T *)memory, *terms = slots + op.slots * BLOCK, *coefficient = (T *)coefficients;
    const auto v = Vector<N, T>::source(op.arrays[0]);
    const T *h = (const T *)c.cells + op.h;
    fetch_coefficients(c, op, coefficient);
    __syncthreads();
    u32 from, to;
    share(op, from, to);
    const u32 DEPTH = 8;
    for (u32 s = from; s < to; s++) {
        u32 row = s * SEGMENT + threadIdx.x;
        if (row < op.n) {
            T w = Vector<N, T>::source(op.x)[row];
            for (u32 j = 0; j < op.columns; j += DEPTH) {
                T a[DEPTH], k[DEPTH];
#pragma unroll
                for (u32 i = 0; i < DEPTH; i++)
                    if (j + i < op.columns) {
                        k[i] = h[j + i];
                        if (!op.add) k[i] = neg(k[i]);
                        if (!is_zero(k[i])) a[i] = v[(j + i) * op.stride + row];
                    }
#pragma unroll
                for (u32 i = 0; i < DEPTH; i++)
                    if (j + i < op.columns && !is_zero(k[i])) w = fma_of(k[i], a[i], w);
            }
            slots[threadIdx.x] = w;
        }
        sweep_rows<N>(c, op, s, slots, terms + (s & 1) * op.dots * BLOCK, coefficient);
    }
    finish<T>(c, op, from, to);
}

#define KERNELS(T, S, N)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        basis_dot_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { basis_dot<N, T>(c, op); } \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        basis_axpy_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { basis_axpy<N, T>(c, op); }
LACUNA_VECTORS(KERNELS)
