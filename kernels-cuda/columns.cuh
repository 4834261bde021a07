// Products with several columns: shared parts of spmm_*.cu.
//
// Formula: Y[j][i] = row i of A times X[j], for each column j in the order of the product with one vector. VECTORS
// columns share an entry in registers; the last column stands in for missing ones. Launch shape: see sweep.cuh.
#pragma once
#include "sweep.cuh"

// Columns multiplied by one loaded entry.
#define VECTORS 8u

// VECTORS consecutive columns of X, and their sums so far.
template <typename T> struct Columns {
    const T *x[VECTORS];
    T sum[VECTORS];
};

template <typename T> LACUNA_FN Columns<T> columns_from(const StreamOp &op, u32 first) {
    Columns<T> part;
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++) {
        part.x[v] = (const T *)op.x + min(first + v, op.columns - 1) * op.stride;
        part.sum[v] = zero<T>();
    }
    return part;
}

template <typename T> LACUNA_FN void add_entry(Columns<T> &part, T value, u64 column) {
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++) part.sum[v] = fma_of(value, part.x[v][column], part.sum[v]);
}

// Stores the sums of the columns from `first` on in a row, in threads where `mine` holds.
template <typename T> LACUNA_FN void put_columns(const StreamOp &op, const Columns<T> &part, u32 first, u32 row, bool mine) {
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++)
        if (mine && first + v < op.columns) ((T *)op.y)[(first + v) * op.y_stride + row] = part.sum[v];
}

// Sums over `lanes` neighbours; all of them call it.
template <typename T> LACUNA_FN void halve_columns(Columns<T> &part, u32 lanes) {
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++) part.sum[v] = halved(part.sum[v], lanes);
}

// Calls `rows` with the first row of each segment of this block.
template <typename T, typename Rows> LACUNA_FN void over_columns(const Common &c, const StreamOp &op, Rows rows) {
    if (!is_next(c, op)) return;
    u32 from, to;
    share(op, from, to);
    for (u32 s = from; s < to; s++) rows(s * SEGMENT);
    finish<T>(c, op, from, to);
}
