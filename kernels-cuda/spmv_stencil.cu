// spmv_dot for coefficients on a grid: y <- A x, then a pass on the rows just computed.
//
// Formula: y[i] = sum over neighbours k, by increasing distance, of coefficient[k] x[i + distance[k]] with fused
// multiply-add from 0; neighbours outside the grid are skipped. Bytes per row: none for the matrix, one number for x
// and one for y, and what the pass moves. Launch shape: see sweep.cuh; one point for each thread, numbered with x
// fastest. Assumes: the words of crates/formats/src/storage/stencil.rs: the size of the grid and the number of
// neighbours, the coefficients of a position if each has its own, then the steps to each neighbour in x, y and z and
// its distance.
#include "sweep.cuh"

LACUNA_FN bool on_grid(int at, int step, int side) { return u32(at + step) < u32(side); }

// First, inner or last along an axis.
LACUNA_FN u32 position_of(int at, int side) { return at == 0 ? 0 : at + 1 == side ? 2 : 1; }

template <bool N, typename T>
LACUNA_FN T stencil_row(const int4 *__restrict__ words, const T *__restrict__ coefficients, typename Vector<N, T>::Source x, u32 row) {
    const u32 DEPTH = Depth<T>::count;
    const int4 size = __ldg(words);
    const u32 line = row / u32(size.x), neighbours = u32(size.w);
    const int px = int(row - line * u32(size.x)), py = int(line % u32(size.y)), pz = int(line / u32(size.y));
    const u32 of_position = u32(__ldg(words + 1).x);
    if (of_position)
        coefficients += of_position *
                        (position_of(px, size.x) + 3 * (position_of(py, size.y) + 3 * position_of(pz, size.z)));
    T sum = zero<T>();
    for (u32 k = 0; k < neighbours; k += DEPTH) {
        bool on[DEPTH];
        T c[DEPTH], v[DEPTH];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++) {
            const u32 at = min(k + i, neighbours - 1);
            const int4 step = __ldg(words + 2 + at);
            on[i] = k + i < neighbours && on_grid(px, step.x, size.x) && on_grid(py, step.y, size.y) &&
                    on_grid(pz, step.z, size.z);
            c[i] = coefficients[at];
            v[i] = on[i] ? x[row + u32(step.w)] : zero<T>();
        }
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (on[i]) sum = fma_of(c[i], v[i], sum);
    }
    return sum;
}

template <bool N, typename T> LACUNA_FN void spmv_stencil(const Common &c, const StreamOp &op) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) unsigned char coefficients[MAX_TERMS * sizeof(T)];
    over_segments<N>(c, op, memory, (T *)coefficients, [&](u32 base, T *slots) {
        const u32 row = base + threadIdx.x;
        if (row < op.n)
            slots[threadIdx.x] =
                stencil_row<N>((const int4 *)op.arrays[0], (const T *)op.arrays[1], Vector<N, T>::source(op.x), row);
    });
}

#define KERNELS(T, S, N)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmv_stencil_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmv_stencil<N, T>(c, op); }
LACUNA_VECTORS(KERNELS)
