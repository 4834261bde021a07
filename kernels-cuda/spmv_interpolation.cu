// spmv_dot for linear interpolation between a grid and a coarser one: y <- A x, then a pass on the rows just computed.
//
// Formula: y[i] = sum over the points that row i reads, by increasing number, of weight x with fused multiply-add from
// 0; weights are products of 1 and 1/2. Bytes per row: none for the matrix, one number for x and one for y, and what
// the pass moves. Launch shape: see sweep.cuh; one point for each thread, numbered with x fastest. Assumes: the words of
// crates/formats/src/storage/interpolation.rs.
#include "sweep.cuh"

// The points of an axis that a point reads: the first, how many, and which of them have weight 1/2.
struct Taps {
    u32 first, count, halves;
};
LACUNA_FN Taps taps_of(u32 at, u32 from, bool coarsened, bool restricts) {
    if (!coarsened) return {at, 1, 0};
    if (restricts) return {2 * at, 2 * at + 2 < from ? 3u : 2u, 5};
    if (at % 2 == 1) return {at / 2, 1, 0};
    const u32 first = at < 2 ? 0 : at / 2 - 1;
    return {first, min(at / 2 + 1, from) - first, 3};
}
LACUNA_FN double weight_of(const Taps &t, u32 k) { return t.halves >> k & 1 ? 0.5 : 1.0; }

template <bool N, typename T>
LACUNA_FN T interpolation_row(const int4 *__restrict__ grids, typename Vector<N, T>::Source x, u32 row) {
    const int4 to = __ldg(grids), from = __ldg(grids + 1);
    const u32 line = row / u32(to.x), nx = u32(from.x);
    const bool restricts = to.w != 0;
    const Taps tx = taps_of(row - line * u32(to.x), nx, from.w & 1, restricts);
    const Taps ty = taps_of(line % u32(to.y), u32(from.y), from.w >> 1 & 1, restricts);
    const Taps tz = taps_of(line / u32(to.y), u32(from.z), from.w >> 2 & 1, restricts);
    T sum = zero<T>();
    for (u32 k = 0; k < tz.count; k++) {
        const u32 start = tx.first + nx * (ty.first + u32(from.y) * (tz.first + k));
        T v[9];
#pragma unroll
        for (u32 e = 0; e < 9; e++)
            if (e / 3 < ty.count && e % 3 < tx.count) v[e] = x[start + nx * (e / 3) + e % 3];
#pragma unroll
        for (u32 e = 0; e < 9; e++)
            if (e / 3 < ty.count && e % 3 < tx.count)
                sum = fma_of(number<T>(weight_of(tx, e % 3) * weight_of(ty, e / 3) * weight_of(tz, k)), v[e], sum);
    }
    return sum;
}

template <bool N, typename T> LACUNA_FN void spmv_interpolation(const Common &c, const StreamOp &op) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) unsigned char coefficients[MAX_TERMS * sizeof(T)];
    over_segments<N>(c, op, memory, (T *)coefficients, [&](u32 base, T *slots) {
        const u32 row = base + threadIdx.x;
        if (row < op.n)
            slots[threadIdx.x] =
                interpolation_row<N, T>((const int4 *)op.arrays[0], Vector<N, T>::source(op.x), row);
    });
}

#define KERNELS(T, S, N)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmv_interpolation_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) {              \
        spmv_interpolation<N, T>(c, op);                                                                             \
    }
LACUNA_VECTORS(KERNELS)
