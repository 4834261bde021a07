// The product of a program's block: y <- A x on its rows.
//
// Formula: see spmv_csr.cu. A block keeps its rows of x itself; the others it needs, its halo, it reads as words of value and
// tag, in a list that planning made. Column indices are local: below `rows` a row of the block, from there on a place in the
// halo. Bytes: the entries, and 16 for each row of the halo.
#pragma once
#include "program.cuh"

// The rows of x of other blocks, to the halo. Ends without a barrier.
template <typename T>
LACUNA_FN void fetch_halo(const Block<T> &b, const MatrixPlace &m, const VectorPlace &x, u32 tid, u32 threads) {
    const u32 DEPTH = Parts<T>::count == 1 ? 4 : 2;
    const u32 *list = (const u32 *)m.list;
    T *halo = b.halo();
    const u64 words = x.words, tag = x.tag;
    const u32 count = m.count;
#pragma unroll 1
    for (u32 i = tid; i < count; i += DEPTH * threads) {
        u32 row[DEPTH];
        T v[DEPTH];
#pragma unroll
        for (u32 c = 0; c < DEPTH; c++) row[c] = list[min(i + c * threads, count - 1)];
        bool there;
        do {
            there = true;
#pragma unroll
            for (u32 c = 0; c < DEPTH; c++) there &= get_number(words, row[c], v[c], tag);
        } while (!there);
#pragma unroll
        for (u32 c = 0; c < DEPTH; c++)
            if (i + c * threads < count) halo[i + c * threads] = v[c];
    }
}

// The sum of a row's lane: the entries of the rows of a warp lie step by step, 32 at a time, one for each lane; see halo.rs. Near:
// everything is in shared memory, given as bytes of it, and steps past the last are those of the next rows, or zeros.
template <typename T>
LACUNA_FN T lane_sum_near(const unsigned char *memory, u32 col_idx, u32 values, u32 x, u32 far, u32 bound, u32 steps, u32 left,
                          u32 lanes) {
    const u32 DEPTH = sizeof(T) > 8 ? 4 : 8;
    T sum = zero<T>();
    const u32 *c = (const u32 *)(memory + col_idx);
    const T *a = (const T *)(memory + values);
#pragma unroll 1
    for (u32 s = 0; s < steps; s += DEPTH) {
        u32 column[DEPTH];
        T v[DEPTH];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++) column[i] = c[i * WARP];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            v[i] = *(const T *)(memory + ((column[i] < bound ? x : far) + column[i] * u32(sizeof(T)))); // far may be < 0
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++) {
            const T next = fma_of(a[i * WARP], v[i], sum);
            if ((s + i) * lanes < left) sum = next;
        }
        c += DEPTH * WARP;
        a += DEPTH * WARP;
    }
    return sum;
}

// The same anywhere; `far` is where the halo starts, less `bound`.
template <typename T>
LACUNA_FN T lane_sum(const u32 *c, const T *a, const T *x, const T *far, u32 bound, u32 steps, u32 left, u32 lanes) {
    const u32 DEPTH = sizeof(T) > 8 ? 4 : 8;
    T sum = zero<T>();
#pragma unroll 1
    for (u32 s = 0; s < steps; s += DEPTH) {
        u32 column[DEPTH];
        T value[DEPTH], v[DEPTH];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++) {
            column[i] = 0;
            value[i] = zero<T>();
            if (s + i < steps) {
                column[i] = c[i * WARP];
                value[i] = a[i * WARP];
            }
        }
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++) v[i] = (column[i] < bound ? x : far)[column[i]];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if ((s + i) * lanes < left) sum = fma_of(value[i], v[i], sum);
        c += DEPTH * WARP;
        a += DEPTH * WARP;
    }
    return sum;
}

// y <- A x, the halo at hand. With several lanes to a row, ends with a barrier: other threads than those that go on with a row
// have computed it.
template <typename T> LACUNA_FN void product(const Block<T> &b, u32 which, u32 xv, u32 yv, u64 tag) {
    const MatrixPlace &m = b.matrix(which);
    const VectorPlace &px = b.vector(xv);
    VectorPlace &py = b.vector(yv);
    const u32 *row_ptr = (const u32 *)m.row_ptr, *col_idx = (const u32 *)m.col_idx, *groups = (const u32 *)m.groups;
    const T *values = (const T *)m.values, *x = (const T *)px.at, *far = b.one ? x : b.halo() - b.a.rows;
    T *y = (T *)py.at;
    const bool shared = !b.one && py.flags & VECTOR_SHARED;
    const u32 lane = b.tid % WARP, lanes = m.lanes, bound = b.a.rows, mine = lane / lanes, part = lane & (lanes - 1);
    const bool near = b.near && which == 0 && px.home != LACUNA_NONE;
    const u32 x_bytes = px.home, far_bytes = b.one ? x_bytes : b.a.at_halo - bound * u32(sizeof(T));
    const u32 per_warp = WARP / lanes, warps = b.threads / WARP, last = (b.rows + per_warp - 1) / per_warp;
    const u32 end = b.rows > 0 ? b.rows - 1 : 0;
    // What the next group needs is on its way while this one is computed.
    u32 g = b.tid / WARP, at = min(g * per_warp + mine, end);
    u32 next = groups[min(g, last)], next_end = groups[min(g + 1, last)];
    u32 next_row = row_ptr[at], next_row_end = row_ptr[at + 1];
#pragma unroll 1
    for (; g < last; g += warps) {
        const u32 row = g * per_warp + mine, first = next, steps = (next_end - next) / WARP;
        const u32 length = next_row_end - next_row, left = length > part && row < b.rows ? length - part : 0;
        next = groups[min(g + warps, last)];
        next_end = groups[min(g + warps + 1, last)];
        at = min((g + warps) * per_warp + mine, end);
        next_row = row_ptr[at];
        next_row_end = row_ptr[at + 1];
        T sum;
        if (near)
            sum = lane_sum_near<T>(b.memory, b.a.at_col_idx + (first + lane) * 4, b.a.at_values + (first + lane) * u32(sizeof(T)),
                                   x_bytes, far_bytes, bound, steps, left, lanes);
        else
            sum = lane_sum(col_idx + first + lane, values + first + lane, x, far, bound, steps, left, lanes);
        sum = halved(sum, lanes);
        if (part == 0 && row < b.rows) {
            y[row] = sum;
            if (shared) b.publish(py, row, sum, tag);
        }
    }
    if (lanes > 1) __syncthreads();
}
