// spmv_dot for packets of 1024 rows (PKT): y <- A x, then a pass on the rows just computed.
//
// Formula: y[i] = sum over the places of row i in its slice, padding included, of value x[first of its packet +
// column], then over its far entries of value x[column], with fused multiply-add from 0. Bytes moved per row: 2 and a
// number for each place, 4 and a number for each far entry, an offset and an eighth, one number for x and one for y,
// and what the pass moves. Launch shape: see sweep.cuh; one slice for each warp, then one thread for the far entries of
// each row. A block keeps the packet's part of x in 1024 numbers of shared memory, after the slots and terms, and
// loads another part when it reaches the next packet. Place j of lane l of a slice that begins at column p is at (p +
// j) 32 + l.
// Assumes: the words of `crates/formats/src/storage/pkt.rs`, values of far entries after those of places.
#include "product_rows.cuh"

typedef unsigned short u16;
#define PACKET 1024u

// A lane of a slice, `width` places long, with its part of x in shared memory.
template <typename T>
LACUNA_FN T near_row(const u16 *__restrict__ columns, const T *__restrict__ values, const T *x, u32 width) {
    const u32 DEPTH = Depth<T>::count;
    T sum = zero<T>();
    for (u32 k = 0; k < width; k += DEPTH) {
        u32 column[DEPTH];
        T a[DEPTH];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++) {
            const u32 at = min(k + i, width - 1) * WARP;
            column[i] = columns[at];
            a[i] = values[at];
        }
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (k + i < width) sum = fma_of(a[i], x[column[i]], sum);
    }
    return sum;
}

// Adds the far entries `k` to `end` of a row to the sum of the near ones.
template <bool N, typename T>
LACUNA_FN T far_row(const u32 *__restrict__ columns, const T *__restrict__ values, typename Vector<N, T>::Source x, u32 k, u32 end, T sum) {
    for (; k < end; k++) sum = fma_of(values[k], x[columns[k]], sum);
    return sum;
}

template <bool N, typename T> LACUNA_FN void spmv_pkt(const Common &c, const StreamOp &op) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) unsigned char coefficients[MAX_TERMS * sizeof(T)];
    const u32 slices = (op.n + WARP - 1) / WARP, tid = threadIdx.x;
    const u32 *slice_ptr = (const u32 *)op.arrays[0], *far_ptr = slice_ptr + slices + 1;
    const u16 *near_columns = (const u16 *)op.arrays[1];
    const u32 *far_columns = (const u32 *)op.arrays[2];
    const T *values = (const T *)op.arrays[3];
    const auto x = Vector<N, T>::source(op.x);
    const T *far_values = values + u64(slice_ptr[slices]) * WARP;
    const u32 columns = op.sizes[0];
    T *near_x = (T *)memory + (op.slots + 2 * op.dots) * BLOCK;
    u32 held = LACUNA_NONE; // the packet whose part of x is in shared memory
    over_segments<N>(c, op, memory, (T *)coefficients, [&](u32 base, T *slots) {
        if (base / PACKET != held) {
            held = base / PACKET;
            __syncthreads(); // the previous packet's rows are done with its part
            for (u32 i = tid; i < PACKET && held * PACKET + i < columns; i += BLOCK) near_x[i] = x[held * PACKET + i];
            __syncthreads();
        }
        const u32 row = base + tid;
        if (row < op.n) {
            const u32 first = __ldg(slice_ptr + row / WARP), width = __ldg(slice_ptr + row / WARP + 1) - first;
            const u64 at = u64(first) * WARP + tid % WARP;
            const T sum = near_row(near_columns + at, values + at, near_x, width);
            slots[tid] = far_row<N>(far_columns, far_values, x, __ldg(far_ptr + row), __ldg(far_ptr + row + 1), sum);
        }
    });
}

#define KERNELS(T, S, N)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmv_pkt_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmv_pkt<N, T>(c, op); }
LACUNA_VECTORS(KERNELS)
