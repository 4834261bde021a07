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

// The same where everything is in shared memory, given as bytes of it; entries past the end of the row are the next row's, or
// what was put behind the last.
template <typename T>
LACUNA_FN T row_lane_near(const unsigned char *memory, u32 col_idx, u32 values, u32 x, u32 far, u32 bound, u32 k, u32 end,
                          u32 lanes) {
    const u32 DEPTH = sizeof(T) > 8 ? 4 : 8;
    T sum = zero<T>();
    const u32 *c = (const u32 *)(memory + col_idx) + k;
    const T *a = (const T *)(memory + values) + k;
#pragma unroll 1
    for (; k < end; k += DEPTH * lanes) {
        u32 column[DEPTH];
        T v[DEPTH];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++) column[i] = c[i * lanes];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            v[i] = *(const T *)(memory + (column[i] < bound ? x : far) + column[i] * u32(sizeof(T)));
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++) {
            const T next = fma_of(a[i * lanes], v[i], sum);
            if (k + i * lanes < end) sum = next;
        }
        c += DEPTH * lanes;
        a += DEPTH * lanes;
    }
    return sum;
}

// y <- A x, the halo at hand. With several lanes to a row, ends with a barrier: other threads than those that go on with a row
// have computed it.
template <typename T> LACUNA_FN void product(const Block<T> &b, u32 which, u32 xv, u32 yv, u64 tag) {
    const MatrixPlace &m = b.matrix(which);
    const VectorPlace &px = b.vector(xv);
    VectorPlace &py = b.vector(yv);
    const u32 *row_ptr = (const u32 *)m.row_ptr, *col_idx = (const u32 *)m.col_idx;
    const T *values = (const T *)m.values, *x = (const T *)px.at, *far = b.one ? x : b.halo() - b.a.rows;
    T *y = (T *)py.at;
    const bool shared = !b.one && py.flags & VECTOR_SHARED;
    const u32 lanes = m.lanes, bound = b.a.rows;
    const bool near = b.near && which == 0 && px.home != LACUNA_NONE;
    const u32 x_bytes = px.home, far_bytes = b.one ? x_bytes : b.a.at_halo - bound * u32(sizeof(T));
    const u32 part = b.tid & (lanes - 1), step = b.threads / lanes;
#pragma unroll 1
    for (u32 base = 0, i = lanes == 1 ? b.tid : b.tid / lanes; base < b.rows; base += step, i += step) {
        const u32 row = min(i, b.rows - 1), k = row_ptr[row] + part, end = i < b.rows ? row_ptr[row + 1] : 0;
        T sum;
        if (near)
            sum = row_lane_near<T>(b.memory, b.a.at_col_idx, b.a.at_values, x_bytes, far_bytes, bound, k, end, lanes);
        else
            sum = row_lane(col_idx, values, x, far, bound, k, end, lanes);
        if (lanes > 1)
            for (u32 d = lanes / 2; d > 0; d /= 2) sum = add(sum, from_lane_above(sum, d));
        if (part == 0 && i < b.rows) {
            y[i] = sum;
            if (shared) b.publish(py, i, sum, tag);
        }
    }
    if (lanes > 1) __syncthreads();
}
