// The product of a program's block: y <- A x on its rows.
//
// Formula: see spmv_csr.cu. A block keeps its rows of x itself; the others it needs, its halo, it reads as words of value and
// tag, in a list that planning made. Column indices are local: below `rows` a row of the block, from there on a place in the
// halo. Bytes: the entries, and 16 for each row of the halo.
#pragma once
#include "program.cuh"

// The rows of x of other blocks, to the halo. Ends without a barrier.
template <typename T> LACUNA_FN void fetch_halo(const Block<T> &b, const MatrixPlace &m, const VectorPlace &x) {
    const u32 DEPTH = Parts<T>::count == 1 ? 4 : 2;
    const u32 *list = (const u32 *)m.list;
    T *halo = b.halo();
    const u64 words = x.words, tag = x.tag;
    const u32 count = m.count;
#pragma unroll 1
    for (u32 i = b.tid; i < count; i += DEPTH * b.threads) {
        u32 row[DEPTH];
        T v[DEPTH];
#pragma unroll
        for (u32 c = 0; c < DEPTH; c++) row[c] = list[min(i + c * b.threads, count - 1)];
        bool there;
        do {
            there = true;
#pragma unroll
            for (u32 c = 0; c < DEPTH; c++) there &= get_number(words, row[c], v[c], tag);
        } while (!there);
#pragma unroll
        for (u32 c = 0; c < DEPTH; c++)
            if (i + c * b.threads < count) halo[i + c * b.threads] = v[c];
    }
}

// The sum of a row's lane; see spmv_csr.cu. The arrays may be in shared memory; `far` is where the halo starts, less `bound`.
// Entries past the end are read as the last one, and left out: loads under conditions cost more.
template <typename T>
LACUNA_FN T row_lane(const u32 *col_idx, const T *values, const T *x, const T *far, u32 bound, u32 k, u32 end, u32 lanes) {
    const u32 DEPTH = sizeof(T) > 8 ? 4 : 8;
    T sum = zero<T>();
#pragma unroll 1
    for (; k < end; k += DEPTH * lanes) {
        u32 column[DEPTH];
        T a[DEPTH], v[DEPTH];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++) {
            const u32 at = min(k + i * lanes, end - 1);
            column[i] = col_idx[at];
            a[i] = values[at];
        }
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++) v[i] = (column[i] < bound ? x : far)[column[i]];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (k + i * lanes < end) sum = fma_of(a[i], v[i], sum);
    }
    return sum;
}

// y <- A x. With several lanes to a row, ends with a barrier: other threads than those that go on with a row have computed it.
template <typename T> LACUNA_FN void product(const Block<T> &b, u32 which, u32 xv, u32 yv, u64 tag) {
    const MatrixPlace &m = b.matrix(which);
    const VectorPlace &px = b.vector(xv);
    VectorPlace &py = b.vector(yv);
    if (!b.one) {
        fetch_halo(b, m, px);
        __syncthreads();
    }
    const u32 *row_ptr = (const u32 *)m.row_ptr, *col_idx = (const u32 *)m.col_idx;
    const T *values = (const T *)m.values, *x = (const T *)px.at, *far = b.one ? x : b.halo() - b.a.rows;
    T *y = (T *)py.at;
    const bool shared = !b.one && py.flags & VECTOR_SHARED;
    const u32 lanes = m.lanes, bound = b.a.rows;
    if (lanes == 1) {
#pragma unroll 1
        for (u32 i = b.tid; i < b.rows; i += b.threads) {
            T sum = row_lane(col_idx, values, x, far, bound, row_ptr[i], row_ptr[i + 1], 1);
            y[i] = sum;
            if (shared) b.publish(py, i, sum, tag);
        }
    } else {
        const u32 part = b.tid & (lanes - 1), step = b.threads / lanes;
#pragma unroll 1
        for (u32 base = 0; base < b.rows; base += step) {
            const u32 i = base + b.tid / lanes;
            T sum = zero<T>();
            if (i < b.rows) sum = row_lane(col_idx, values, x, far, bound, row_ptr[i] + part, row_ptr[i + 1], lanes);
            for (u32 d = lanes / 2; d > 0; d /= 2) sum = add(sum, from_lane_above(sum, d));
            if (part == 0 && i < b.rows) {
                y[i] = sum;
                if (shared) b.publish(py, i, sum, tag);
            }
        }
        __syncthreads();
    }
}
