// spmm for diagonals: Y <- A X, several columns at a time.
//
// Formula: Y[j][i] = sum over the diagonals k, by increasing offset, of value[k][i] X[j][i + offset[k]], for each
// column j as in spmv_dia.cu. Bytes per row: one number for each diagonal, once for VECTORS columns; one number of each
// column of X and of Y. Launch shape: see sweep.cuh; one row for each thread. Assumes: values are stored as in
// spmv_dia.cu; columns are one stride apart; no column of Y is a column of X.
#include "columns.cuh"
#include "diagonals.cuh"

template <typename T> LACUNA_FN void spmm_dia(const Common &c, const StreamOp &op) {
    const int *table = (const int *)op.arrays[0];
    const u32 diagonals = op.sizes[0], cols = op.sizes[1];
    over_columns<T>(c, op, [&](u32 base) {
        const u32 row = base + threadIdx.x;
        if (row >= op.n) return;
        const T *values = (const T *)op.arrays[1] + place_of_row(row, table, diagonals);
        for (u32 first = 0; first < op.columns; first += VECTORS) {
            Columns<T> part = columns_from<T>(op, first);
            for (u32 d = 0; d < diagonals; d++) {
                const u32 column = row + u32(__ldg(table + d)); // a negative column also exceeds `cols`
                if (column < cols) add_entry(part, values[__ldg(table + diagonals + d)], column);
            }
            put_columns(op, part, first, row, true);
        }
    });
}

#define KERNELS(T, S)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        spmm_dia_##S(const __grid_constant__ Common c, const __grid_constant__ StreamOp op) { spmm_dia<T>(c, op); }
LACUNA_TYPES(KERNELS)
