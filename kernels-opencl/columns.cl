// Products with several columns: shared parts of spmm_*.cl.
//
// Formula: Y[j][i] <- row i of A times X[j], for each column j in the order of the product with one vector. VECTORS
// columns share each entry that is loaded; the last column stands in for missing ones.
// Bytes moved: each entry once for VECTORS columns; each column of x once in all (from cache if columns are near) and
// of y once.
// Launch shape: as sweep.cl.
// Assumes: columns are one stride apart; no column of Y is a column of X.

// Columns multiplied by one loaded entry.
#define VECTORS 8u

typedef struct {
    __global const number *restrict x;
    __global number *restrict y;
    ulong x_stride, y_stride;
    uint count;
} Columns;

static inline Columns columns_of(const Place *p, uint op) {
    __global const ulong *x = BASIS(*p, OP(*p, op, LACUNA_OP_X)), *y = BASIS(*p, OP(*p, op, LACUNA_OP_Y));
    Columns c = { (__global const number *)(p->arena + x[0]), (__global number *)(p->arena + y[0]),
        x[1] / sizeof(number), y[1] / sizeof(number), OP(*p, op, LACUNA_OP_COLUMNS) };
    return c;
}

// Zero sums for VECTORS columns.
#define NO_SUMS(sum) \
    number sum[VECTORS]; \
    UNROLLED \
    for (uint v = 0; v < VECTORS; v++) { \
        sum[v] = ZERO; \
    }

// Adds an entry to the sums of the columns from `first` on.
#define ADD_ENTRY(sum, c, first, value, column) \
    { \
        const number entry = value; \
        __global const number *restrict from = (c)->x + (column); \
        UNROLLED \
        for (uint v = 0; v < VECTORS; v++) { \
            sum[v] = multiply_add(entry, from[min(first + v, (c)->count - 1) * (c)->x_stride], sum[v]); \
        } \
    }

// Stores the sums in row `row` of the columns from `first` on.
#define PUT_COLUMNS(sum, c, first, row) \
    UNROLLED \
    for (uint v = 0; v < VECTORS; v++) { \
        if (first + v < (c)->count) { \
            (c)->y[(first + v) * (c)->y_stride + (row)] = sum[v]; \
        } \
    }

// For CPUs: the rows of a segment by `lanes` lanes, summed by halving. `lane_rows` are statements that accumulate into
// `sum` the part of row `row` of lane `lane`, for the columns from `first` on.
#define ROWS_BY_LANES(c, lanes, base, count, work, lane_rows) \
    EACH(e, count) { \
        const uint row = base + e; \
        for (uint first = 0; first < (c)->count; first += VECTORS) { \
            const uint here = min(VECTORS, (c)->count - first); \
            for (uint lane = 0; lane < lanes; lane++) { \
                NO_SUMS(sum) \
                lane_rows \
                for (uint v = 0; v < here; v++) { \
                    work[v * lanes + lane] = sum[v]; \
                } \
            } \
            for (uint v = 0; v < here; v++) { \
                __local number *sums = work + v * lanes; \
                for (uint half_width = lanes / 2; half_width > 0; half_width /= 2) { \
                    for (uint j = 0; j < half_width; j++) { \
                        sums[j] = sums[j] + sums[j + half_width]; \
                    } \
                } \
                (c)->y[(first + v) * (c)->y_stride + row] = sums[0]; \
            } \
        } \
    }

// Runs `rows` for every segment of this work-group, with `columns` the columns and `count` the rows of the segment.
#define OVER_COLUMNS(rows) \
    const Columns columns = columns_of(p, op); \
    const uint n = OP(*p, op, LACUNA_OP_N), segments = segments_of(n); \
    for (uint segment = group; segment < segments; segment += groups) { \
        const uint count = min(SEGMENT, n - segment * SEGMENT); \
        rows; \
    }
