// x <- A^-1 b with a triangular matrix: the places of one level, or several levels in sequence.
//
// Formula: x[i] = (b[i] - a[k] x[col[k]] - ...) r, one fused multiply-add for each entry of the row in order. The last
// entry of a place has the row i as its column and r, the reciprocal of the diagonal entry, as its value.
// Bytes per row: 4 for the offset, 4 and one number for each entry, including the diagonal, one number for b and one
// for x.
// Launch shape: `tri_solve_level`: one thread for each place, any number of blocks. `tri_solve_levels`: one block with
// a barrier between levels. `tri_solve_groups`: a warp for each group of rows that depend on each other alone.
// Assumes: `sizes` are two places of one level for the first kernel, two levels for the second, for the third the numbers
// of levels and of groups; the last array has the levels for the first two, the borders of the groups and the level of
// each row for the third. Vectors are not narrow.
// The instructions of the operation run afterwards (see sweep.cu).
#include "sweep.cuh"

template <typename T> LACUNA_FN void solve_place(const StreamOp &op, u32 place) {
    const u32 *row_ptr = (const u32 *)op.arrays[0], *columns = (const u32 *)op.arrays[1];
    const T *values = (const T *)op.arrays[2], *b = (const T *)op.x;
    T *x = (T *)op.y;
    u32 k = __ldg(row_ptr + place);
    const u32 end = __ldg(row_ptr + place + 1) - 1, row = __ldg(columns + end);
    T sum = b[row];
    for (; k < end; k++) sum = fma_of(neg(values[k]), x[__ldg(columns + k)], sum);
    x[row] = mul(sum, values[end]);
}

template <typename T> LACUNA_FN void tri_solve_level(const Common &c, const StreamOp &op) {
    if (!is_next(c, op)) return;
    for (u32 at = op.sizes[0] + blockIdx.x * BLOCK + threadIdx.x; at < op.sizes[1]; at += gridDim.x * BLOCK)
        solve_place<T>(op, at);
}

template <typename T> LACUNA_FN void tri_solve_levels(const Common &c, const StreamOp &op) {
    if (!is_next(c, op)) return;
    const u32 *levels = (const u32 *)op.arrays[3];
    for (u32 level = op.sizes[0]; level < op.sizes[1]; level++) {
        const u32 end = __ldg(levels + level + 1);
        for (u32 at = __ldg(levels + level) + threadIdx.x; at < end; at += BLOCK) solve_place<T>(op, at);
        __syncthreads();
    }
}

// Entries of a row that a lane fetches before its level is due.
#define FETCHED 4u

// A group with a row for each lane at most, which everything but x is fetched for at first.
template <typename T> LACUNA_FN void solve_small_group(const StreamOp &op, u32 depth, u32 place, u32 mine) {
    const u32 *row_ptr = (const u32 *)op.arrays[0], *columns = (const u32 *)op.arrays[1];
    const T *values = (const T *)op.arrays[2], *b = (const T *)op.x;
    T *x = (T *)op.y;
    u32 k = 0, end = 0, row = 0, column[FETCHED];
    T sum = zero<T>(), by = zero<T>(), value[FETCHED];
    if (mine < depth) {
        k = __ldg(row_ptr + place), end = __ldg(row_ptr + place + 1) - 1, row = __ldg(columns + end), by = values[end];
#pragma unroll
        for (u32 e = 0; e < FETCHED; e++)
            if (k + e < end) column[e] = __ldg(columns + k + e), value[e] = neg(values[k + e]);
        sum = b[row];
    }
    for (u32 level = 0; level < depth; level++) {
        if (mine == level) {
#pragma unroll
            for (u32 e = 0; e < FETCHED; e++)
                if (k + e < end) sum = fma_of(value[e], x[column[e]], sum);
            for (k += FETCHED; k < end; k++) sum = fma_of(neg(values[k]), x[__ldg(columns + k)], sum);
            x[row] = mul(sum, by);
        }
        __syncwarp();
    }
}

template <typename T> LACUNA_FN void tri_solve_groups(const Common &c, const StreamOp &op) {
    if (!is_next(c, op)) return;
    const u32 depth = op.sizes[0], groups = op.sizes[1], lane = threadIdx.x % WARP;
    const u32 *borders = (const u32 *)op.arrays[3], *levels = borders + groups + 1;
    for (u32 group = blockIdx.x * WARPS + threadIdx.x / WARP; group < groups; group += gridDim.x * WARPS) {
        const u32 first = __ldg(borders + group) + lane, end = __ldg(borders + group + 1);
        if (end + lane - first <= WARP) {
            solve_small_group<T>(op, depth, first, first < end ? __ldg(levels + first) : depth);
            continue;
        }
        for (u32 level = 0; level < depth; level++) {
            for (u32 at = first; at < end; at += WARP)
                if (__ldg(levels + at) == level) solve_place<T>(op, at);
            __syncwarp();
        }
    }
}

#define KERNELS(T, S)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        tri_solve_level_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { tri_solve_level<T>(c, op); }  \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        tri_solve_levels_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { tri_solve_levels<T>(c, op); }  \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        tri_solve_groups_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { tri_solve_groups<T>(c, op); }
LACUNA_TYPES(KERNELS)
