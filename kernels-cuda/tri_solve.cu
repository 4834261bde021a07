// x <- A^-1 b with a triangular matrix: the places of one level, or several levels in sequence.
//
// Formula: x[i] = (b[i] - a[k] x[col[k]] - ...) r, one fused multiply-add for each entry of the row in order. The last
// entry of a place has the row i as its column and r, the reciprocal of the diagonal entry, as its value.
// Bytes per row: 4 for the offset, 4 and one number for each entry, including the diagonal, one number for b and one
// for x.
// Launch shape: `tri_solve_level`: one thread for each place, any number of blocks. `tri_solve_levels`: one block with
// a barrier between levels.
// Assumes: `sizes` are two places of one level for the first kernel, two levels for the second. Vectors are not narrow.
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

#define KERNELS(T, S)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        tri_solve_level_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { tri_solve_level<T>(c, op); }  \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        tri_solve_levels_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { tri_solve_levels<T>(c, op); }
LACUNA_TYPES(KERNELS)
