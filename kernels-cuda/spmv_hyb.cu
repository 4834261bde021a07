// spmv_dot for slices of 32 rows and coordinates (HYB), or coordinates alone (COO): y <- A x, then a pass on the rows just
// computed.
//
// Formula: y[i] = sum over the places of row i in its slice, padding included, then over its coordinates, of value
// x[column] with fused multiply-add from 0. If the coordinates of a row are in pieces, 32 lanes take the entries of
// each in turn and are summed by halving; the sums of the pieces are added in order, and their sum to that of the
// slice. Bytes per row: a column and a number for each place, also a row for a coordinate in no piece, about a quarter
// of an offset, one number for x and one for y, and what the pass moves. Launch shape: see sweep.cuh; one slice for
// each warp, then one thread for each row with coordinates, then one warp for each piece of a row, row by row.
// Assumes: the offsets of `crates/formats/src/storage/hyb_layout.rs`, at most MOST_PIECES pieces in a row.
#include "product_rows.cuh"


struct HybPlaces {
    u32 in_slices;
    const u32 *slice_ptr, *segment_ptr, *segment_long, *long_rows, *long_ptr, *piece_ptr;
};

LACUNA_FN HybPlaces places_of(const StreamOp &op) {
    const u32 *words = (const u32 *)op.arrays[0], *slice_ptr = words + 3;
    const u32 longs = words[1], *segment_ptr = slice_ptr + (op.n + WARP - 1) / WARP + 1;
    const u32 *segment_long = segment_ptr + op.segments + 1, *long_rows = segment_long + op.segments + 1;
    const u32 *long_ptr = long_rows + longs;
    return {words[0], slice_ptr, segment_ptr, segment_long, long_rows, long_ptr, long_ptr + longs + 1};
}

template <bool N, typename T> LACUNA_FN void spmv_hyb(const Common &c, const StreamOp &op) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) unsigned char coefficients[MAX_TERMS * sizeof(T)];
    __shared__ __align__(16) unsigned char pieces[LACUNA_MOST_PIECES * sizeof(T)];
    const HybPlaces a = places_of(op);
    const u32 *rows = (const u32 *)op.arrays[1] - a.in_slices, *columns = (const u32 *)op.arrays[2];
    const T *values = (const T *)op.arrays[3];
    const auto x = Vector<N, T>::source(op.x);
    const u32 tid = threadIdx.x, lane = tid % WARP;
    T *sums = (T *)pieces;
    over_segments<N>(c, op, memory, (T *)coefficients, [&](u32 base, T *slots) {
        __syncthreads(); // the previous segment is done with slot 0
        const u32 segment = base / SEGMENT, slice = (base + tid) / WARP;
        if (base + tid < op.n) {
            const u32 first = __ldg(a.slice_ptr + slice), width = __ldg(a.slice_ptr + slice + 1) - first;
            const u64 at = u64(first) * WARP + lane;
            slots[tid] = slice_row<N>(columns + at, values + at, x, width);
        }
        __syncthreads();
        const u32 begin = a.segment_ptr[segment], end = a.segment_ptr[segment + 1];
        for (u32 k = begin + tid; k < end; k += BLOCK) {
            const u32 row = rows[k];
            if (k > begin && rows[k - 1] == row) continue;
            T sum = slots[row - base];
            for (u32 i = k; i < end && rows[i] == row; i++) sum = fma_of(values[i], x[columns[i]], sum);
            slots[row - base] = sum;
        }
        __syncthreads();
        for (u32 l = a.segment_long[segment]; l < a.segment_long[segment + 1]; l++) {
            const u32 first = a.long_ptr[l], count = a.long_ptr[l + 1] - first;
            for (u32 q = tid / WARP; q < count; q += WARPS) {
                const u32 at = a.piece_ptr[first + q] + lane, last = a.piece_ptr[first + q + 1];
                const T sum = halved(lane_sum<N>(columns, values, x, at, last, WARP), WARP);
                if (lane == 0) sums[q] = sum;
            }
            __syncthreads();
            if (tid == 0) {
                T rest = sums[0];
                for (u32 q = 1; q < count; q++) rest = add(rest, sums[q]);
                slots[a.long_rows[l] - base] = add(slots[a.long_rows[l] - base], rest);
            }
            __syncthreads();
        }
    });
}

#define KERNELS(T, S, N)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmv_hyb_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmv_hyb<N, T>(c, op); }
LACUNA_VECTORS(KERNELS)
