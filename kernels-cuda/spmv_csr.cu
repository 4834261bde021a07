// spmv_dot for compressed rows: y <- A x, then a pass on the rows just computed.
//
// Formula: y[i] = sum of a[k] x[col[k]] over the entries k of row i; lane j of W takes entries j, j + W, ... with fused
// multiply-add in order from 0, lanes are summed by halving. A row whose lanes would have more than LONG_LANE entries
// is cut into pieces, each with W = 32, whose sums are added in order. Bytes per row: 4 for the row pointer, 4 and one
// number for each entry, one number for x and one for y, and what the pass moves. Launch shape: see sweep.cuh; 256 / W
// rows of a segment at a time, with their lanes in one warp. Assumes: W is a power of two, at most 32.
// A few rows with many entries give too few segments: `spmv_csr_first` computes y alone, 256 / W rows for each block at
// a time, and the pass follows as a sweep that reads y.
#include "product_rows.cuh"

struct CsrRows {
    const u32 *row_ptr, *col_idx;
    u32 n, lanes;
};

LACUNA_FN CsrRows rows_of(const StreamOp &op) {
    return {(const u32 *)op.arrays[0], (const u32 *)op.arrays[1], op.n, op.lanes};
}

// The sum of a row over its lanes, in the first of them; 0 beyond the last row. All threads of the warp call it.
template <bool N, typename T>
LACUNA_FN T row_by_lanes(const CsrRows &a, const T *__restrict__ values, typename Vector<N, T>::Source x, u32 row, u32 lane) {
    const u32 first = row < a.n ? __ldg(a.row_ptr + row) : 0, end = row < a.n ? __ldg(a.row_ptr + row + 1) : 0;
    const bool is_long = end - first > LACUNA_LONG_LANE * a.lanes;
    T sum = is_long ? zero<T>() : lane_sum<N>(a.col_idx, values, x, first + lane, end, a.lanes);
    sum = halved(sum, a.lanes);
    long_rows<N>(a.col_idx, values, x, first, end, is_long && lane == 0, sum);
    return sum;
}

template <bool N, typename T> LACUNA_FN void spmv_csr(const Common &c, const StreamOp &op) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) unsigned char coefficients[MAX_TERMS * sizeof(T)];
    const CsrRows a = rows_of(op);
    const T *values = (const T *)op.arrays[2];
    const auto x = Vector<N, T>::source(op.x);
    const u32 tid = threadIdx.x, lanes = op.lanes, lane = tid & (lanes - 1), step = BLOCK / lanes;
    over_segments<N>(c, op, memory, (T *)coefficients, [&](u32 base, T *slots) {
        if (lanes == 1) {
            const u32 row = base + tid;
            const T sum = row_by_lanes<N>(a, values, x, row, 0);
            if (row < op.n) slots[tid] = sum;
            return;
        }
        __syncthreads(); // the previous segment is done with slot 0
        for (u32 r = tid / lanes; r < SEGMENT; r += step) {
            const T sum = row_by_lanes<N>(a, values, x, base + r, lane);
            if (lane == 0) slots[r] = sum;
        }
        __syncthreads();
    });
}

template <bool N, typename T> LACUNA_FN void spmv_csr_first(const Common &c, const StreamOp &op) {
    if (!is_next(c, op)) return;
    const CsrRows a = rows_of(op);
    const T *values = (const T *)op.arrays[2];
    const auto x = Vector<N, T>::source(op.x);
    const u32 lanes = op.lanes, lane = threadIdx.x & (lanes - 1), step = BLOCK / lanes;
    const u64 first = u64(op.first) * SEGMENT, end = min(u64(op.end) * SEGMENT, u64(op.n));
    for (u64 base = first + u64(blockIdx.x) * step; base < end; base += u64(gridDim.x) * step) {
        const u32 row = u32(base) + threadIdx.x / lanes;
        const T sum = row_by_lanes<N>(a, values, x, row, lane);
        if (lane == 0 && row < op.n) Vector<N, T>::put(op.slot[0], row, sum);
    }
}

#define KERNELS(T, S, N)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmv_csr_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmv_csr<N, T>(c, op); }  \
    extern "C" __global__ void __launch_bounds__(256) spmv_csr_first_##S(                                            \
        const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmv_csr_first<N, T>(c, op); }
LACUNA_VECTORS(KERNELS)
