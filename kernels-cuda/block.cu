// basis_gram and basis_combine: products and combinations of two blocks of vectors, with each column read from memory
// once.
//
// Formula: g[j * rows + i] = sum of conj(v[k, i]) w[k, j]; and x[k, j] <- fma(c[j * rows + i], v[k, i], x[k, j]) for i in
// order, from 0 or from what is there, skipping coefficients that are 0. Bytes per row: rows + columns numbers for the
// first, the same for the second and columns more if it adds; tiles read columns again from caches. Launch shape: see
// sweep.cuh; in basis_gram, a warp takes a tile of 32 pairs of columns of a segment, and warps of a block neighbouring
// tiles. Assumes: sizes are the columns of v and of the other block; columns are one stride apart and not narrow; no
// column of x is one of v.
#include "sweep.cuh"

LACUNA_FN float from_lane_across(float v, u32 d) { return __shfl_xor_sync(~0u, v, d); }
LACUNA_FN double from_lane_across(double v, u32 d) { return __shfl_xor_sync(~0u, v, d); }
template <typename R> LACUNA_FN Complex<R> from_lane_across(Complex<R> v, u32 d) {
    return complex(from_lane_across(v.re, d), from_lane_across(v.im, d));
}

// The sums over all lanes of 32 numbers, number l in lane l. Each is added as by `halved`: what a lane does not go on with
// it gives away.
template <u32 D, typename T> LACUNA_FN T halved_across(T (&e)[WARP], u32 lane) {
    const bool upper = (lane & D) != 0;
#pragma unroll
    for (u32 p = 0; p < D; p++) {
        const T give = upper ? e[p] : e[p + D], keep = upper ? e[p + D] : e[p];
        e[p] = add(keep, from_lane_across(give, D));
    }
    if constexpr (D > 1)
        return halved_across<D / 2>(e, lane);
    else
        return e[0];
}

// A tile of 32 pairs: columns on the right, whose rows of a segment stay in registers, and columns on the left.
template <typename T> struct Tile { static const u32 right = sizeof(T) > 8 ? 1 : 4, left = WARP / right; };

template <typename T> LACUNA_FN void gram_tile(const StreamOp &op, T *partial, u32 s, u32 i0, u32 j0) {
    const u32 lane = threadIdx.x % WARP, row = s * SEGMENT + lane, rows = op.sizes[0], columns = op.sizes[1];
    const T *v = (const T *)op.arrays[0], *w = (const T *)op.y;
    T mine[Tile<T>::right][8], e[WARP];
#pragma unroll
    for (u32 j = 0; j < Tile<T>::right; j++)
#pragma unroll
        for (u32 k = 0; k < 8; k++) {
            const bool live = row + WARP * k < op.n && j0 + j < columns;
            mine[j][k] = live ? w[(j0 + j) * op.y_stride + row + WARP * k] : zero<T>();
        }
#pragma unroll
    for (u32 i = 0; i < Tile<T>::left; i++) {
        T fetched[8];
#pragma unroll
        for (u32 k = 0; k < 8; k++) {
            const bool live = row + WARP * k < op.n && i0 + i < rows;
            fetched[k] = live ? v[(i0 + i) * op.stride + row + WARP * k] : zero<T>();
        }
#pragma unroll
        for (u32 j = 0; j < Tile<T>::right; j++) {
            T t[8];
#pragma unroll
            for (u32 k = 0; k < 8; k++)
                t[k] = row + WARP * k < op.n ? dot_term(fetched[k], mine[j][k]) : zero<T>();
#pragma unroll
            for (u32 k = 0; k < 4; k++) t[k] = add(t[k], t[k + 4]);
            e[j * Tile<T>::left + i] = add(add(t[0], t[2]), add(t[1], t[3]));
        }
    }
    const T sum = halved_across<WARP / 2>(e, lane);
    const u32 i = i0 + lane % Tile<T>::left, j = j0 + lane / Tile<T>::left;
    if (i < rows && j < columns) partial[(j * rows + i) * room_of(op.segments) + place_of(s)] = sum;
}

template <typename T> LACUNA_FN void basis_gram(const Common &c, const StreamOp &op) {
    if (!is_next(c, op)) return;
    u32 from, to;
    share(op, from, to);
    const u32 down = (op.sizes[0] + Tile<T>::left - 1) / Tile<T>::left;
    const u32 across = (op.sizes[1] + Tile<T>::right - 1) / Tile<T>::right, tiles = down * across;
    for (u32 at = threadIdx.x / WARP; at < (to - from) * tiles; at += WARPS) {
        const u32 tile = at % tiles;
        gram_tile(op, (T *)c.partial, from + at / tiles, tile % down * Tile<T>::left, tile / down * Tile<T>::right);
    }
    finish<T>(c, op, from, to);
}

// Combinations made at a time, and columns whose coefficients are fetched at a time: one for each thread.
#define MADE 8u
#define TAKEN (BLOCK / MADE)

template <typename T> LACUNA_FN void basis_combine(const Common &c, const StreamOp &op) {
    __shared__ __align__(16) unsigned char fetched[BLOCK * sizeof(T)];
    if (!is_next(c, op)) return;
    T *coefficient = (T *)fetched;
    const T *cells = (const T *)c.cells + op.h, *v = (const T *)op.arrays[0];
    T *x = (T *)op.y;
    const u32 rows = op.sizes[0], columns = op.sizes[1];
    u32 from, to;
    share(op, from, to);
    for (u32 s = from; s < to; s++) {
        const u32 row = s * SEGMENT + threadIdx.x;
        const bool live = row < op.n;
        for (u32 j0 = 0; j0 < columns; j0 += MADE) {
            T sum[MADE];
#pragma unroll
            for (u32 j = 0; j < MADE; j++)
                sum[j] = op.add && live && j0 + j < columns ? x[(j0 + j) * op.y_stride + row] : zero<T>();
            for (u32 i0 = 0; i0 < rows; i0 += TAKEN) {
                const u32 i = i0 + threadIdx.x / MADE, j = j0 + threadIdx.x % MADE;
                __syncthreads();
                coefficient[threadIdx.x] = i < rows && j < columns ? cells[j * rows + i] : zero<T>();
                __syncthreads();
                const u32 count = min(rows - i0, TAKEN);
#pragma unroll 4
                for (u32 k = 0; k < count; k++) {
                    const T value = live ? v[(i0 + k) * op.stride + row] : zero<T>();
#pragma unroll
                    for (u32 j = 0; j < MADE; j++) {
                        const T by = coefficient[k * MADE + j];
                        sum[j] = is_zero(by) ? sum[j] : fma_of(by, value, sum[j]);
                    }
                }
            }
#pragma unroll
            for (u32 j = 0; j < MADE; j++)
                if (live && j0 + j < columns) x[(j0 + j) * op.y_stride + row] = sum[j];
        }
    }
    finish<T>(c, op, from, to);
}

#define KERNELS(T, S)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        block_gram_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { basis_gram<T>(c, op); } \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        block_combine_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { basis_combine<T>(c, op); }
LACUNA_TYPES(KERNELS)
