// The product of a matrix in compressed sparse rows with several vectors.
//
// Formula: Y[j][i] <- sum over the entries of row i of value * X[j][column], for each column j in the order of spmv_csr.cl.
// Bytes moved per row: an offset, its columns and values once for VECTORS columns; of each column x once in all (from cache
// where columns are near) and y once.
// Launch shape: as sweep.cl. A team takes 32 / W rows at a time, a lane each work-item, and VECTORS columns.
// Assumes: W is a power of two up to 32; columns lie one stride apart; no column of Y is one of X.

// Columns that are multiplied with an entry at a time; the last one stands in for those behind it.
#define VECTORS 8u

typedef struct {
    __global const uint *restrict row_ptr;
    __global const uint *restrict columns;
    __global const number *restrict values;
    __global const number *restrict x;
    __global number *restrict y;
    ulong x_stride, y_stride;
    uint lanes, count;
} CsrColumns;

static inline CsrColumns csr_columns_of(const Place *p, uint op) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    __global const ulong *x = BASIS(*p, OP(*p, op, LACUNA_OP_X)), *y = BASIS(*p, OP(*p, op, LACUNA_OP_Y));
    CsrColumns a = { (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS]),
        (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 1]),
        (__global const number *)(p->fixed + m[MATRIX_ARGUMENTS + 2]), (__global const number *)(p->arena + x[0]),
        (__global number *)(p->arena + y[0]), x[1] / sizeof(number), y[1] / sizeof(number), (uint)m[MATRIX_LANES],
        OP(*p, op, LACUNA_OP_COLUMNS) };
    return a;
}

// What a lane adds up of VECTORS columns from `first` on: entries `at`, `at + W`, ... up to `end`.
#define SUM_COLUMNS(sum) \
    number sum[VECTORS]; \
    UNROLLED \
    for (uint v = 0; v < VECTORS; v++) { \
        sum[v] = ZERO; \
    } \
    for (uint k = at; k < end; k += a->lanes) { \
        const number value = values[k]; \
        __global const number *restrict from = x + columns[k]; \
        UNROLLED \
        for (uint v = 0; v < VECTORS; v++) { \
            sum[v] = multiply_add(value, from[min(first + v, a->count - 1) * a->x_stride], sum[v]); \
        } \
    }

static inline void csr_columns_rows(const CsrColumns *a, uint segment, uint count, __local number *work) {
    const ulong base = (ulong)segment * SEGMENT;
    __global const uint *restrict row_ptr = a->row_ptr + base;
    __global const uint *restrict columns = a->columns;
    __global const number *restrict values = a->values;
    __global const number *restrict x = a->x;
    __global number *restrict y = a->y + base;
    const uint lanes = a->lanes;
#if LACUNA_CPU
    EACH(e, count) {
        const uint end = row_ptr[e + 1];
        for (uint first = 0; first < a->count; first += VECTORS) {
            const uint here = min(VECTORS, a->count - first);
            for (uint lane = 0; lane < lanes; lane++) {
                const uint at = row_ptr[e] + lane;
                SUM_COLUMNS(sum)
                for (uint v = 0; v < here; v++) {
                    work[v * lanes + lane] = sum[v];
                }
            }
            for (uint v = 0; v < here; v++) {
                __local number *sums = work + v * lanes;
                for (uint half_width = lanes / 2; half_width > 0; half_width /= 2) {
                    for (uint j = 0; j < half_width; j++) {
                        sums[j] = sums[j] + sums[j + half_width];
                    }
                }
                y[(first + v) * a->y_stride + e] = sums[0];
            }
        }
    }
#else
    const uint rows = TEAM / lanes;
    for (uint step = 0; step < SEGMENT / rows; step++) {
        const uint row = step * rows + LANE / lanes;
        const bool live = row < count;
        const uint at = live ? row_ptr[row] + LANE % lanes : 0, end = live ? row_ptr[row + 1] : 0;
        for (uint first = 0; first < a->count; first += VECTORS) {
            SUM_COLUMNS(sum)
            UNROLLED
            for (uint v = 0; v < VECTORS; v++) {
                const number whole = sum_lanes(sum[v], lanes, work);
                if (LANE % lanes == 0 && live && first + v < a->count) {
                    y[(first + v) * a->y_stride + row] = whole;
                }
            }
        }
    }
#endif
}

__kernel LACUNA_GROUP void KERNEL(spmm_csr)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    const CsrColumns a = csr_columns_of(p, op);
    const uint n = OP(*p, op, LACUNA_OP_N), segments = segments_of(n);
    for (uint segment = group; segment < segments; segment += groups) {
        csr_columns_rows(&a, segment, min(SEGMENT, n - segment * SEGMENT), work);
    }
    END_OPERATION();
}
