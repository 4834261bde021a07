// multi_axpy_dot: updates, then dot products of the new values, then cell instructions.
//
// Formula: dst[i] <- sum of c f[i] v[i]; cell <- sum of conj(a[i]) b[i], where b may have a factor too, or the largest
// |a[i]|^2; any number of each, from a table.
// Bytes per row: one number for each vector read and each vector written. Launch shape: see sweep.cuh.
#include "sweep.cuh"

template <bool N, typename T> LACUNA_FN void sweep(const Common &c, const StreamOp &op) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) unsigned char coefficients[MAX_TERMS * sizeof(T)];
    if (!is_next(c, op)) return;
    T *slots = (T *)memory, *terms = slots + op.slots * BLOCK, *coefficient = (T *)coefficients;
    fetch_coefficients(c, op, coefficient);
    __syncthreads();
    u32 from, to;
    share(op, from, to);
    for (u32 s = from; s < to; s++)
        sweep_rows<N>(c, op, s, slots, terms + (s & 1) * op.dots * BLOCK, coefficient);
    finish<T>(c, op, from, to);
}

// Starts a program with the section in CONTROL_NEXT. One thread.
template <typename T> LACUNA_FN void start(const Common &c) {
    if (threadIdx.x != 0) return;
    Machine<T> m;
    m.flow = c.flow;
    m.cells = (T *)c.cells;
    m.control = (u64 *)c.control;
    m.history = (typename Machine<T>::R *)c.history;
    m.advance(LACUNA_NONE);
}

#define KERNELS(T, S, N)                                                                                             \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        sweep_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { sweep<N, T>(c, op); }
LACUNA_VECTORS(KERNELS)
#define STARTS(T, S)                                                                                                 \
    extern "C" __global__ void __launch_bounds__(32) start_##S(const __grid_constant__ Common c) { start<T>(c); }
LACUNA_TYPES(STARTS)

// dst[i] <- src[i], 16 bytes for each thread: the copy bandwidth of the device, for the bench.
extern "C" __global__ void __launch_bounds__(256) copy_bytes(const uint4 *src, uint4 *dst, u64 count) {
    u64 stride = u64(gridDim.x) * 256;
    for (u64 i = u64(blockIdx.x) * 256 + threadIdx.x; i < count; i += stride) dst[i] = src[i];
}
