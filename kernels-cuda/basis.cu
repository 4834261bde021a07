// basis_dot and basis_axpy: a tall, thin block of vectors, with each column read once.
//
// Formula: h[j] = sum of conj(v[i, j]) w[i]; and w[i] <- fma(-h[j], v[i, j], w[i]) for j in order (+h[j] if it adds),
// skipping columns with coefficient 0, then a pass on the rows. Bytes per row: k + 1 numbers for the first; at most k +
// 2 and what the pass moves for the second. Launch shape: see sweep.cuh; in basis_dot, a warp takes a segment, with
// eight rows in each lane that stay in registers over all columns. Columns may be narrow: all are fetched as they are
// stored before any is widened, so that no load waits for the one before.
#include "sweep.cuh"

// The partial sums of a warp's segments for every column, stored as V.
template <typename V, typename W, typename T>
LACUNA_FN void dot_columns(const StreamOp &op, const V *__restrict__ v, W w, T *partial, u32 from, u32 to) {
    const u32 lane = threadIdx.x % WARP;
    for (u32 s = from + threadIdx.x / WARP; s < to; s += WARPS) {
        u32 row = s * SEGMENT + lane;
        T mine[8];
#pragma unroll
        for (u32 k = 0; k < 8; k++) mine[k] = row + WARP * k < op.n ? w[row + WARP * k] : zero<T>();
        for (u32 j = 0; j < op.columns; j++) {
            const V *column = v + j * op.stride;
            V fetched[8];
            T e[8];
#pragma unroll
            for (u32 k = 0; k < 8; k++)
                if (row + WARP * k < op.n) fetched[k] = column[row + WARP * k];
#pragma unroll
            for (u32 k = 0; k < 8; k++)
                e[k] = row + WARP * k < op.n ? dot_term(widened<T>(fetched[k]), mine[k]) : zero<T>();
            T sum = segment_sum(e);
            if (lane == 0) partial[j * room_of(op.segments) + place_of(s)] = sum;
        }
    }
}

// w - h[0] v[0] - ..., for one row, of columns stored as V.
template <typename V, typename T> LACUNA_FN T less_columns(const StreamOp &op, const V *__restrict__ v, const T *h, u32 row, T w) {
    const u32 DEPTH = 8;
    for (u32 j = 0; j < op.columns; j += DEPTH) {
        V fetched[DEPTH];
        T k[DEPTH];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (j + i < op.columns) {
                k[i] = h[j + i];
                if (!op.add) k[i] = neg(k[i]);
                if (!is_zero(k[i])) fetched[i] = v[(j + i) * op.stride + row];
            }
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (j + i < op.columns && !is_zero(k[i])) w = fma_of(k[i], widened<T>(fetched[i]), w);
    }
    return w;
}

template <bool N, typename T> LACUNA_FN void basis_dot(const Common &c, const StreamOp &op) {
    if (!is_next(c, op)) return;
    const auto w = Vector<N, T>::source(op.x);
    T *partial = (T *)c.partial;
    u32 from, to;
    share(op, from, to);
    if (N && is_narrow(op.arrays[0]))
        dot_columns(op, narrow_at<T>(op.arrays[0]), w, partial, from, to);
    else
        dot_columns(op, (const T *)op.arrays[0], w, partial, from, to);
    finish<T>(c, op, from, to);
}

template <bool N, typename T> LACUNA_FN void basis_axpy(const Common &c, const StreamOp &op) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) unsigned char coefficients[MAX_TERMS * sizeof(T)];
    if (!is_next(c, op)) return;
    T *slots = (T *)memory, *terms = slots + op.slots * BLOCK, *coefficient = (T *)coefficients;
    const T *h = (const T *)c.cells + op.h;
    fetch_coefficients(c, op, coefficient);
    __syncthreads();
    u32 from, to;
    share(op, from, to);
    for (u32 s = from; s < to; s++) {
        u32 row = s * SEGMENT + threadIdx.x;
        if (row < op.n) {
            T w = Vector<N, T>::source(op.x)[row];
            if (N && is_narrow(op.arrays[0]))
                w = less_columns(op, narrow_at<T>(op.arrays[0]), h, row, w);
            else
                w = less_columns(op, (const T *)op.arrays[0], h, row, w);
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
