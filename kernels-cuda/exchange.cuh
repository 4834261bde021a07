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
          basis(op.kind == LACUNA_KIND_BASIS_DOT) {}
    LACUNA_FN const T *left(u32 d) const { return b.at(basis ? column[d] : list[d * LACUNA_DOT_WORDS + LACUNA_DOT_A]); }
    LACUNA_FN const T *right(u32 d) const { return b.at(basis ? w : list[d * LACUNA_DOT_WORDS + LACUNA_DOT_B]); }
    LACUNA_FN T &cell(u32 d) const { return b.cells[basis ? h + d : list[d * LACUNA_DOT_WORDS]]; }
};

// The sums of all segments, to the cells. `epoch` is that of this exchange. Ends with a barrier, unless the one sum there is was
// written by the first warp.
template <typename T> LACUNA_FN void sum_up(const Block<T> &b, const HotOp &op, u64 epoch) {
    const Sums<T> sums(b, op);
    const u32 warp = b.tid / WARP, lane = b.tid % WARP, warps = b.threads / WARP;
    const u32 segments = b.a.segments, groups = b.a.groups, mine = b.mine, dots = op.dots;
    const u64 half = half_of(b.a, epoch);
#pragma unroll 1
    for (u32 p = warp; p < dots * mine; p += warps) {
        const u32 d = mine == 1 ? p : p / mine, s = p - d * mine;
        const T *left = sums.left(d), *right = sums.right(d);
        T e[8];
#pragma unroll
        for (u32 k = 0; k < 8; k++) {
            const u32 i = s * SEGMENT + lane + WARP * k, at = min(i, b.rows - 1);
            e[k] = dot_term(left[at], right[at]);
            if (i >= b.rows) e[k] = zero<T>();
        }
        T sum = segment_sum(e);
        if (lane == 0) {
            if (segments == 1) sums.cell(d) = sum;
            else if (b.one) b.sums[d * segments + s] = sum;
            else put_number(half, d * segments + b.from + s, sum, epoch);
        }
    }
    if (segments == 1) {
        if (dots > 1) __syncthreads();
        else __syncwarp();
        return;
    }
    if (b.one) {
        __syncthreads();
#pragma unroll 1
        for (u32 d = warp; d < dots; d += warps) {
            T sum = sum_of(b.sums + d * segments, segments);
            if (lane == 0) sums.cell(d) = sum;
        }
        if (dots > 1) __syncthreads();
        else __syncwarp();
        return;
    }
#pragma unroll 1
    for (u32 p = warp; p < dots * groups; p += warps) {
        const u32 d = groups == 1 ? p : p / groups, g = p - d * groups;
        T e[8];
        bool there;
        do {
            there = true;
#pragma unroll
            for (u32 k = 0; k < 8; k++) {
                const u32 i = g * SEGMENT + lane + WARP * k;
                there &= get_number(half, d * segments + min(i, segments - 1), e[k], epoch);
                if (i >= segments) e[k] = zero<T>();
            }
        } while (!there);
        __syncwarp();
        T sum = segment_sum(e);
        if (lane == 0) (groups == 1 ? sums.cell(d) : b.sums[p]) = sum;
    }
    if (groups == 1) {
        if (dots > 1) __syncthreads();
        else __syncwarp();
        return;
    }
    __syncthreads();
#pragma unroll 1
    for (u32 d = warp; d < dots; d += warps) {
        T sum = sum_of(b.sums + d * groups, groups);
        if (lane == 0) sums.cell(d) = sum;
    }
    if (dots > 1) __syncthreads();
    else __syncwarp();
}
