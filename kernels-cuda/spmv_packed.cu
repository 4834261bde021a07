// spmv_dot for compressed rows with packed columns: y <- A x, then a pass on the rows just computed.
//
// Formula: y[i] = sum of a[k] x[first[i] + distance[k]] over the entries k of row i; lane j of W takes entries j, j +
// W, ... with fused multiply-add in order from 0, lanes are summed by halving; narrow values are widened first. Bytes
// per row: 8 for the row pointer and the first column, 2 and one number (narrow: half of one) for each entry, one
// number for x and one for y, and what the pass moves. Launch shape: see sweep.cuh; 256 / W rows of a segment at a
// time, with their lanes in one warp. Assumes: W is a power of two, at most 32; the words of
// crates/formats/src/storage/packed.rs.
#include "sweep.cuh"

typedef unsigned short u16;

// A lane's sum of a row: entries `k`, `k + W`, ... up to `end`; `x` begins at the row's first column.
template <bool N, typename T, typename V>
LACUNA_FN T packed_lane(const u16 *__restrict__ distances, const V *__restrict__ values, typename Vector<N, T>::Source x, u32 k, u32 end,
                        u32 lanes) {
    const u32 DEPTH = Depth<T>::count;
    T sum = zero<T>();
    for (; k < end; k += DEPTH * lanes) {
        u32 column[DEPTH];
        T a[DEPTH], v[DEPTH];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (k + i * lanes < end) {
                column[i] = __ldg(distances + k + i * lanes);
                convert(values[k + i * lanes], a[i]);
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

template <typename V, bool N, typename T> LACUNA_FN void packed_rows(const StreamOp &op, u32 base, T *slots) {
    const u32 *row_ptr = (const u32 *)op.arrays[0], *first = row_ptr + op.n + 1;
    const u32 tid = threadIdx.x, lanes = op.lanes, lane = tid & (lanes - 1), step = BLOCK / lanes;
    __syncthreads(); // the previous segment is done with slot 0
    for (u32 r = tid / lanes; r < SEGMENT; r += step) {
        const u32 row = base + r;
        T sum = zero<T>();
        if (row < op.n)
            sum = packed_lane<N, T>((const u16 *)op.arrays[1], (const V *)op.arrays[2],
                                    Vector<N, T>::source(op.x) + __ldg(first + row),
                              __ldg(row_ptr + row) + lane, __ldg(row_ptr + row + 1), lanes);
        for (u32 d = lanes / 2; d > 0; d /= 2) sum = add(sum, from_lane_above(sum, d));
        if (lane == 0) slots[r] = sum;
    }
    __syncthreads();
}

template <bool N, typename T> LACUNA_FN void spmv_packed(const Common &c, const StreamOp &op) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) unsigned char coefficients[MAX_TERMS * sizeof(T)];
    over_segments<N>(c, op, memory, (T *)coefficients, [&](u32 base, T *slots) {
        if (op.sizes[0])
            packed_rows<typename Narrow<T>::type, N>(op, base, slots);
        else
            packed_rows<T, N>(op, base, slots);
    });
}

#define KERNELS(T, S, N)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmv_packed_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmv_packed<N, T>(c, op); }
LACUNA_VECTORS(KERNELS)
