// The sums of a program's operation: of a block's segments, between blocks, and into the cells.
//
// A block publishes the sums of its segments as words of value and epoch; every block polls the words of all segments and
// sums them canonically. So barrier and reduction are one round trip through the second-level cache. Words alternate between
// two halves of a buffer: who writes epoch e + 2 has seen all words of e + 1, which were written after those of e had been read.
#pragma once
#include "program.cuh"

LACUNA_FN u64 half_of(const ProgramArgs &a, u64 epoch) { return a.exchange + (epoch & 1) * a.exchange_words * 16; }

// All blocks have come here: what they read before may be overwritten.
template <typename T> LACUNA_FN void barrier(const Block<T> &b, u64 epoch) {
    __syncthreads();
    if (b.tid < WARP) {
        const u64 half = half_of(b.a, epoch);
        if (b.tid == 0) put_word(half + blockIdx.x * 16, 0, epoch);
        for (u32 i = b.tid; i < gridDim.x; i += WARP) {
            u64 value, seen;
            do get_word(half + i * 16, value, seen);
            while (seen != epoch);
        }
    }
    __syncthreads();
}

// What the operands and the cells of an operation's sums are.
template <typename T> struct Sums {
    const Block<T> &b;
    const u32 *list, *column;
    u32 h, w, count;
    bool basis;

    LACUNA_FN Sums(const Block<T> &b, const HotOp &op)
        : b(b), list(b.table + op.at_dots), column(b.table + op.at_columns), h(op.h), w(op.y), count(op.dots),
          basis(op.what() == LACUNA_KIND_BASIS_DOT) {}
    LACUNA_FN const T *left(u32 d) const { return b.at(basis ? column[d] : list[d * LACUNA_DOT_WORDS + LACUNA_DOT_A]); }
    LACUNA_FN const T *right(u32 d) const { return b.at(basis ? w : list[d * LACUNA_DOT_WORDS + LACUNA_DOT_B]); }
    LACUNA_FN T &cell(u32 d) const { return b.cells[basis ? h + d : list[d * LACUNA_DOT_WORDS]]; }
};

// The sum of one segment of a dot's terms, in lane 0. Rows past the end are read as the last one, and left out.
template <typename T> LACUNA_FN T dot_segment(const T *left, const T *right, u32 from, u32 rows, u32 lane) {
    T e[8];
    if (from + SEGMENT <= rows) {
        left += from + lane;
        right += from + lane;
#pragma unroll
        for (u32 k = 0; k < 8; k++) e[k] = dot_term(left[WARP * k], right[WARP * k]);
    } else {
#pragma unroll
        for (u32 k = 0; k < 8; k++) {
            const u32 i = from + lane + WARP * k, at = min(i, rows > 0 ? rows - 1 : 0);
            e[k] = dot_term(left[at], right[at]);
            if (i >= rows) e[k] = zero<T>();
        }
    }
    return segment_sum(e);
}

// The sum of at most 32 COUNT published words from `first` on, once they are there, in lane 0. `left`: how many there are.
template <typename T, u32 COUNT> LACUNA_FN T poll(u64 half, u32 first, u32 left, u64 epoch, u32 lane) {
    T e[8];
#pragma unroll
    for (u32 k = 0; k < 8; k++) e[k] = zero<T>();
    bool there;
    do {
        there = true;
#pragma unroll
        for (u32 k = 0; k < COUNT; k++) there &= get_number(half, first + min(lane + WARP * k, left - 1), e[k], epoch);
    } while (!there);
#pragma unroll
    for (u32 k = 0; k < COUNT; k++)
        if (lane + WARP * k >= left) e[k] = zero<T>();
    __syncwarp();
    return segment_sum(e);
}

// The sums of all segments, to the cells. `epoch` is that of this exchange. Ends with a barrier, unless the one sum there is was
// written by the first warp. `meanwhile` is called with the number of the warps that wait for words.
template <typename T, typename F> LACUNA_FN void sum_up(const Block<T> &b, const HotOp &op, u64 epoch, F meanwhile) {
    const Sums<T> sums(b, op);
    const u32 warp = b.tid / WARP, lane = b.tid % WARP, warps = b.threads / WARP;
    const u32 segments = b.a.segments, groups = b.a.groups, mine = b.mine, dots = op.dots;
    const u64 half = half_of(b.a, epoch);
#pragma unroll 1
    for (u32 p = warp; p < dots * mine; p += warps) {
        const u32 d = mine == 1 ? p : mine == 2 ? p >> 1 : p / mine, s = p - d * mine;
        T sum = dot_segment(sums.left(d), sums.right(d), s * SEGMENT, b.rows, lane);
        if (lane == 0) {
            if (segments == 1) sums.cell(d) = sum;
            else if (b.one) b.sums[d * segments + s] = sum;
            else put_number(half, d * segments + b.from + s, sum, epoch);
        }
    }
    if (b.one) {
        if (segments > 1) {
            __syncthreads();
#pragma unroll 1
            for (u32 d = warp; d < dots; d += warps) {
                T sum = sum_of(b.sums + d * segments, segments);
                if (lane == 0) sums.cell(d) = sum;
            }
        }
    } else {
        meanwhile(dots * groups);
#pragma unroll 1
        for (u32 p = warp; p < dots * groups; p += warps) {
            const u32 d = groups == 1 ? p : p / groups, g = p - d * groups, left = segments - g * SEGMENT;
            const u32 first = d * segments + g * SEGMENT;
            T sum = left <= 64 ? poll<T, 2>(half, first, left, epoch, lane) : poll<T, 8>(half, first, left, epoch, lane);
            if (lane == 0) (groups == 1 ? sums.cell(d) : b.sums[p]) = sum;
        }
        if (groups > 1) {
            __syncthreads();
#pragma unroll 1
            for (u32 d = warp; d < dots; d += warps) {
                T sum = sum_of(b.sums + d * groups, groups);
                if (lane == 0) sums.cell(d) = sum;
            }
        }
    }
    if (dots > 1) __syncthreads();
    else __syncwarp();
}
