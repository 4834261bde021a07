// spmv_dot for compressed rows: y <- A x, then a pass on the rows just computed.
//
// Formula: y[i] = sum of a[k] x[col[k]] over the entries k of row i; lane j of W takes entries j, j + W, ... with fused
// multiply-add in order from 0, lanes are summed by halving. Bytes per row: 4 for the row pointer, 4 and one number
// for each entry, one number for x and one for y, and what the pass moves. Launch shape: see sweep.cuh; within a
// segment 256 / W rows at a time, their lanes in one warp. Assumes: W is a power of two, 32 at the most.
#include "sweep.cuh"

// Entries a lane has under way at once.
template <typename T> struct Depth { static const u32 count = sizeof(T) > 8 ? 4 : 8; };

template <typename T>
LACUNA_FN T lane_sum(const u32 *__restrict__ col_idx, const T *__restrict__ values, const T *__restrict__ x, u32 k, u32 end,
                     u32 lanes) {
    const u32 DEPTH = Depth<T>::count;
    T sum = zero<T>();
    for (; k < end; k += DEPTH * lanes) {
        u32 column[DEPTH];
        T a[DEPTH], v[DEPTH];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (k + i * lanes < end) {
                column[i] = __ldg(col_idx + k + i * lanes);
                a[i] = values[k + i * lanes];
            }
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (k + i * lanes < end) v[i] = x[column[i]];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (k + i * lanes < end) sum = fma_of(a[i], v[i], sum);
    }
    return sum;
}

template <typename T> LACUNA_FN void spmv_csr(const Common &c, const StreamOp &op) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) unsigned char coefficients[MAX_TERMS * sizeof(T)];
    if (!is_next(c, op)) return;
    T *slots = (T *)memory, *terms = slots + op.slots * BLOCK, *coefficient = (T *)coefficients;
    const u32 *row_ptr = (const u32 *)op.row_ptr, *col_idx = (const u32 *)op.col_idx;
    const T *values = (const T *)op.values, *x = (const T *)op.x;
    fetch_coefficients(c, op, coefficient);
    __syncthreads();
    u32 from, to, tid = threadIdx.x, lanes = op.lanes;
    share(op, from, to);
    for (u32 s = from; s < to; s++) {
        u32 base = s * SEGMENT;
        if (lanes == 1) {
            u32 row = base + tid;
            if (row < op.n)
                slots[tid] = lane_sum(col_idx, values, x, __ldg(row_ptr + row), __ldg(row_ptr + row + 1), 1);
        } else {
            u32 lane = tid & (lanes - 1), step = BLOCK / lanes;
            __syncthreads(); // the rows of the segment before are done with slot 0
            for (u32 r = tid / lanes; r < SEGMENT; r += step) {
                u32 row = base + r;
                T sum = zero<T>();
                if (row < op.n)
                    sum = lane_sum(col_idx, values, x, __ldg(row_ptr + row) + lane, __ldg(row_ptr + row + 1), lanes);
                for (u32 d = lanes / 2; d > 0; d /= 2) sum = add(sum, from_lane_above(sum, d));
                if (lane == 0) slots[r] = sum;
            }
            __syncthreads();
        }
        sweep_rows(c, op, s, slots, terms + (s & 1) * op.dots * BLOCK, coefficient);
    }
    finish<T>(c, op, from, to);
}

#define KERNELS(T, S)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmv_csr_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmv_csr<T>(c, op); }
LACUNA_TYPES(KERNELS)
