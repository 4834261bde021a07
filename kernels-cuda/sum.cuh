// The canonical sum within a warp: of a segment of 256 terms, and of 256 segment sums, eight in each lane.
//
// Formula: crates/engine/src/run/sum.rs. Of a segment, lane l holds the terms l, l + 32, ..., l + 224; strides 128, 64
// and 32 stay within a lane, 16 to 1 go between lanes; missing terms are +0. Of segment sums, lane l holds 8 l to
// 8 l + 7; neighbours within a lane are added first, then neighbouring lanes; missing sums are -0, which changes no sum.
// Maxima go the same way: see `Maximum`.
// Launch shape: whole warps.
#pragma once
#include "scalar.cuh"

#define SEGMENT 256u
#define WARP 32u

LACUNA_FN float from_lane_above(float v, u32 d) { return __shfl_down_sync(~0u, v, d); }
LACUNA_FN double from_lane_above(double v, u32 d) { return __shfl_down_sync(~0u, v, d); }
template <typename R> LACUNA_FN Complex<R> from_lane_above(Complex<R> v, u32 d) {
    return complex(from_lane_above(v.re, d), from_lane_above(v.im, d));
}

LACUNA_FN float from_lane(float v, u32 lane) { return __shfl_sync(~0u, v, lane); }
LACUNA_FN double from_lane(double v, u32 lane) { return __shfl_sync(~0u, v, lane); }
template <typename R> LACUNA_FN Complex<R> from_lane(Complex<R> v, u32 lane) {
    return complex(from_lane(v.re, lane), from_lane(v.im, lane));
}

// The sum of `lanes` neighbours by halving, in the first of them.
template <typename Join = Sum, typename T> LACUNA_FN T halved(T sum, u32 lanes) {
#pragma unroll
    for (u32 d = lanes / 2; d > 0; d /= 2) sum = Join::of(sum, from_lane_above(sum, d));
    return sum;
}

// The sum of a segment, in lane 0.
template <typename Join = Sum, typename T> LACUNA_FN T segment_sum(T (&e)[8]) {
#pragma unroll
    for (u32 k = 0; k < 4; k++) e[k] = Join::of(e[k], e[k + 4]);
    e[0] = Join::of(e[0], e[2]);
    e[1] = Join::of(e[1], e[3]);
    return halved<Join>(Join::of(e[0], e[1]), WARP);
}

// Where the sum of segment `i` lies: of 256 a lane takes eight neighbours, and what the lanes load at once is side by side.
LACUNA_FN u32 place_of(u32 i) { return i / SEGMENT * SEGMENT + i % 8 * WARP + i % SEGMENT / 8; }

// Numbers that the sums of `count` segments take.
LACUNA_FN u32 room_of(u32 count) { return (count + SEGMENT - 1) / SEGMENT * SEGMENT; }

// The sum of `from` to `to` of 256 segment sums by neighbouring pairs, in lane 0.
template <typename Join = Sum, typename T> LACUNA_FN T pair_sum_within(const T *sums, u32 from, u32 to) {
    u32 lane = threadIdx.x % WARP;
    T e[8];
#pragma unroll
    for (u32 k = 0; k < 8; k++) {
        const u32 i = 8 * lane + k;
        e[k] = from <= i && i < to ? sums[WARP * k + lane] : neg(zero<T>());
    }
#pragma unroll
    for (u32 k = 0; k < 8; k += 2) e[k] = Join::of(e[k], e[k + 1]);
    T sum = Join::of(Join::of(e[0], e[2]), Join::of(e[4], e[6]));
#pragma unroll
    for (u32 d = 1; d < WARP; d *= 2) sum = Join::of(sum, from_lane_above(sum, d));
    return sum;
}

// The sum of the first 256 of `count` segment sums by neighbouring pairs, in lane 0.
template <typename Join = Sum, typename T> LACUNA_FN T pair_sum(const T *sums, u32 count) {
    return pair_sum_within<Join>(sums, 0, count);
}
