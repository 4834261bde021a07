// Row sums shared by several formats: over a lane of consecutive entries, and along a slice.
//
// Formula: fused multiply-add from 0, in order. Entries in flight: Depth<T>::count.
#pragma once
#include "sweep.cuh"

// The entries k, k + lanes, ... before `end`.
template <bool N, typename T>
LACUNA_FN T lane_sum(const u32 *__restrict__ col_idx, const T *__restrict__ values, typename Vector<N, T>::Source x, u32 k, u32 end,
                     u32 lanes) {
    const u32 DEPTH = Depth<T>::count;
    T sum = zero<T>();
    for (; k < end; k += DEPTH * lanes) {
        u32 column[DEPTH];
        T a[DEPTH], v[DEPTH];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (k + i * lanes < end) {
                column[i] = __ldg(col_idx + k + i * lanes);
                a[i] = values[k + i * lanes];
            }
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (k + i * lanes < end) v[i] = x[column[i]];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (k + i * lanes < end) sum = fma_of(a[i], v[i], sum);
    }
    return sum;
}

// Long rows of the threads of a warp for which `mine` holds, each with its entries `k` to `end`: all 32 lanes sum them
// in pieces. All threads of the warp call it.
LACUNA_FN u32 piece_of(u32 entries) { return max(LACUNA_PIECE, (entries - 1) / LACUNA_MOST_PIECES + 1); }
template <bool N, typename T>
LACUNA_FN void long_rows(const u32 *__restrict__ col_idx, const T *__restrict__ values, typename Vector<N, T>::Source x, u32 k, u32 end,
                         bool mine, T &sum) {
    const u32 lane = threadIdx.x % WARP;
    for (u32 left = __ballot_sync(~0u, mine); left != 0; left &= left - 1) {
        const u32 of = __ffs(left) - 1, first = __shfl_sync(~0u, k, of), last = __shfl_sync(~0u, end, of);
        const u32 piece = piece_of(last - first);
        T all = zero<T>();
        for (u32 at = first; at < last; at += piece) {
            const T part = lane_sum<N>(col_idx, values, x, at + lane, min(at + piece, last), LACUNA_MAX_LANES);
            const T whole = halved(part, LACUNA_MAX_LANES);
            all = at == first ? whole : add(all, whole);
        }
        const T there = from_lane(all, 0);
        if (lane == of) sum = there;
    }
}

// A lane of a slice, `width` places long.
template <bool N, typename T>
LACUNA_FN T slice_row(const u32 *__restrict__ col_idx, const T *__restrict__ values, typename Vector<N, T>::Source x, u32 width) {
    const u32 DEPTH = Depth<T>::count;
    T sum = zero<T>();
    for (u32 k = 0; k < width; k += DEPTH) {
        u32 column[DEPTH];
        T a[DEPTH], v[DEPTH];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++) {
            const u32 at = min(k + i, width - 1) * WARP;
            column[i] = col_idx[at];
            a[i] = values[at];
        }
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++) v[i] = x[column[i]];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (k + i < width) sum = fma_of(a[i], v[i], sum);
    }
    return sum;
}
