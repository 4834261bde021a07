// The product with a dense matrix, and the pass on the rows just computed.
//
// Formula: y[i] <- sum over the columns j of value[i][j] * x[j], by W lanes: lane l takes columns l, l + W, ... with
// fused multiply-add in order, lanes are summed by halving. Then the pass, with y in slot 0.
// Bytes moved per row: a value for each column; x once in all (from cache), y once; then what the pass moves.
// Launch shape: as sweep.cl. A team takes 32 / W rows at a time, one lane for each work-item.
// Assumes: W is a power of two up to 32; the pass does not write x.

typedef struct {
    uint cols;
    __global const number *restrict values;
    SOURCE x;
    uint lanes;
} Dense;

static inline Dense dense_of(const Place *p, uint op) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    Dense a = { (uint)m[MATRIX_ARGUMENTS], (__global const number *)(p->fixed + m[MATRIX_ARGUMENTS + 1]),
        VECTOR(*p, OP(*p, op, LACUNA_OP_X)), (uint)m[MATRIX_LANES] };
    return a;
}

static inline void dense_rows(const Dense *a, uint segment, uint count, __local number *slots, __local number *work) {
    const uint lanes = a->lanes, cols = a->cols, base = segment * SEGMENT;
    SOURCE x = a->x;
#if LACUNA_CPU
    EACH(e, count) {
        __global const number *restrict values = a->values + (ulong)(base + e) * cols;
        for (uint j = 0; j < lanes; j++) {
            work[j] = ZERO;
        }
        for (uint at = 0; at < cols; at += lanes) {
            const uint width = min(lanes, cols - at);
            for (uint j = 0; j < width; j++) {
                work[j] = multiply_add(values[at + j], GET(x, at + j), work[j]);
            }
        }
        for (uint half_width = lanes / 2; half_width > 0; half_width /= 2) {
            for (uint j = 0; j < half_width; j++) {
                work[j] = work[j] + work[j + half_width];
            }
        }
        slots[e] = work[0];
    }
#else
    const uint rows = TEAM / lanes;
    for (uint step = 0; step < SEGMENT / rows; step++) {
        const uint row = step * rows + LANE / lanes;
        const bool live = row < count;
        __global const number *restrict values = a->values + (ulong)(base + (live ? row : 0)) * cols;
        uint at = LANE % lanes;
        const uint end = live ? cols : 0;
        number sum = ZERO;
        SUM_ENTRIES(sum, at, end, lanes, values[k], k)
        sum = sum_lanes(sum, lanes, work);
        if (LANE % lanes == 0 && live) {
            slots[row] = sum;
        }
    }
    SYNC();
#endif
}

static inline void run_spmv_dense(const Place *p, uint op, uint group, uint groups, uint slot_cap,
    __local number *slots, __local number *work, __local number *local_memory, __global number *partials) {
    const Dense a = dense_of(p, op);
    OVER_SEGMENTS(dense_rows(&a, segment, count, mine, work))
}

__kernel LACUNA_GROUP void KERNEL(spmv_dense)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_spmv_dense(p, op, group, groups, slot_cap, slots, work, local_memory, partials);
    END_OPERATION();
}
