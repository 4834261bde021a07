// spmv_dot for diagonals: y <- A x, then a pass on the rows just computed.
//
// Formula: y[i] = sum over the diagonals k, by increasing offset, of value[k][i] x[i + offset[k]] with fused
// multiply-add from 0; places outside the matrix are skipped. Bytes per row: one number for each diagonal, no index,
// one number for x and one for y, and what the pass moves. Launch shape: see sweep.cuh; one row for each thread.
// Assumes: values are stored as described in diagonals.cuh.
#include "diagonals.cuh"

template <bool N, typename T>
LACUNA_FN T dia_row(const int *__restrict__ table, const T *__restrict__ values, typename Vector<N, T>::Source x, u32 diagonals,
                    u32 cols, u32 row) {
    const u32 DEPTH = Depth<T>::count;
    values += place_of_row(row, table, diagonals);
    T sum = zero<T>();
    for (u32 k = 0; k < diagonals; k += DEPTH) {
        bool within[DEPTH];
        T a[DEPTH], v[DEPTH];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++) {
            const u32 d = min(k + i, diagonals - 1);
            const u32 column = row + u32(__ldg(table + d)); // a negative column also exceeds `cols`
            within[i] = k + i < diagonals && column < cols;
            a[i] = within[i] ? values[__ldg(table + diagonals + d)] : zero<T>();
            v[i] = within[i] ? x[column] : zero<T>();
        }
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (within[i]) sum = fma_of(a[i], v[i], sum);
    }
    return sum;
}

template <bool N, typename T> LACUNA_FN void spmv_dia(const Common &c, const StreamOp &op) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) unsigned char coefficients[MAX_TERMS * sizeof(T)];
    const u32 diagonals = op.sizes[0], cols = op.sizes[1];
    over_segments<N>(c, op, memory, (T *)coefficients, [&](u32 base, T *slots) {
        const u32 row = base + threadIdx.x;
        if (row < op.n)
            slots[threadIdx.x] =
                dia_row<N>((const int *)op.arrays[0], (const T *)op.arrays[1], Vector<N, T>::source(op.x), diagonals, cols, row);
    });
}

#define KERNELS(T, S, N)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmv_dia_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmv_dia<N, T>(c, op); }
LACUNA_VECTORS(KERNELS)
