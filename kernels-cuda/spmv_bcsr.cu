// spmv_dot for compressed rows of square blocks: y <- A x, then a pass on the rows just computed.
//
// Formula: y[b i + r] = sum over the blocks of block row i, by W lanes (lane j takes blocks j, j + W, ...), of the
// block's columns in order: value[r][c] x[b column + c] with fused multiply-add from 0; lanes are summed by halving.
// Bytes per row: its values, 1 / b of an offset and of the block columns, one number for x and one for y, and what the
// pass moves. Launch shape: see sweep.cuh; 256 / W rows of a segment at a time, with their lanes in one warp. Assumes:
// a block is stored column by column; b is 2 to 8; W is a power of two, at most 32.
#include "sweep.cuh"

// A lane's sum of row `r` of blocks with `B` rows: blocks `k`, `k + W`, ... up to `end`.
template <u32 B, bool N, typename T>
LACUNA_FN T block_lane(const u32 *__restrict__ col_idx, const T *__restrict__ values, typename Vector<N, T>::Source x, u32 r, u32 k,
                       u32 end, u32 lanes) {
    const u32 DEPTH = B > 4 ? 1 : Depth<T>::count / 2; // one large block at a time is enough
    T sum = zero<T>();
    for (; k < end; k += DEPTH * lanes) {
        T a[DEPTH][B], v[DEPTH][B];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++) {
            const u64 at = min(k + i * lanes, end - 1);
            const auto from = x + u64(__ldg(col_idx + at)) * B;
#pragma unroll
            for (u32 c = 0; c < B; c++) {
                a[i][c] = values[at * (B * B) + c * B + r];
                v[i][c] = from[c];
            }
        }
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
#pragma unroll
            for (u32 c = 0; c < B; c++)
                if (k + i * lanes < end) sum = fma_of(a[i][c], v[i][c], sum);
    }
    return sum;
}

template <u32 B, bool N, typename T> LACUNA_FN void block_rows(const StreamOp &op, u32 base, T *slots) {
    const u32 *row_ptr = (const u32 *)op.arrays[0], *col_idx = (const u32 *)op.arrays[1];
    const T *values = (const T *)op.arrays[2];
    const auto x = Vector<N, T>::source(op.x);
    const u32 lanes = op.lanes, lane = threadIdx.x & (lanes - 1), step = BLOCK / lanes;
    __syncthreads(); // the previous segment is done with slot 0
    for (u32 r = threadIdx.x / lanes; r < SEGMENT; r += step) {
        const u32 row = base + r;
        T sum = zero<T>();
        if (row < op.n) {
            const u32 of = row / B;
            sum = block_lane<B, N>(col_idx, values, x, row % B, __ldg(row_ptr + of) + lane, __ldg(row_ptr + of + 1), lanes);
        }
        sum = halved(sum, lanes);
        if (lane == 0) slots[r] = sum;
    }
    __syncthreads();
}

template <bool N, typename T> LACUNA_FN void spmv_bcsr(const Common &c, const StreamOp &op) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) unsigned char coefficients[MAX_TERMS * sizeof(T)];
    const u32 block = op.sizes[0];
    over_segments<N>(c, op, memory, (T *)coefficients, [&](u32 base, T *slots) {
        if (block == 2)
            block_rows<2, N>(op, base, slots);
        else if (block == 3)
            block_rows<3, N>(op, base, slots);
        else if (block == 4)
            block_rows<4, N>(op, base, slots);
        else if (block == 5)
            block_rows<5, N>(op, base, slots);
        else if (block == 6)
            block_rows<6, N>(op, base, slots);
        else if (block == 7)
            block_rows<7, N>(op, base, slots);
        else
            block_rows<8, N>(op, base, slots);
    });
}

#define KERNELS(T, S, N)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmv_bcsr_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmv_bcsr<N, T>(c, op); }
LACUNA_VECTORS(KERNELS)
