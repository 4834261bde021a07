// The product with a matrix in compressed rows with packed columns, and the pass on the rows just computed.
//
// Formula: y[i] <- sum over the entries of row i of value * x[first + distance], by W lanes: lane j takes entries j, j
// + W, ... with fused multiply-add in order, lanes are summed by halving; narrow values are widened first. Then the
// pass, with y in slot 0.
// Bytes moved per row: an offset and a first column, 2 for each entry's column, its value; x once in all (from cache if
// columns are near), y once; then what the pass moves.
// Launch shape: as sweep.cl. A team takes 32 / W rows at a time, one lane for each work-item.
// Assumes: W is a power of two up to 32; the words of `crates/formats/src/storage/packed.rs`; the pass does not write x.

typedef struct {
    bool is_narrow;
    __global const uint *restrict row_ptr;
    __global const uint *restrict first;
    __global const ushort *restrict distances;
    // Of type `narrow` if `is_narrow`.
    __global const uchar *restrict values;
    SOURCE x;
    uint lanes;
} Packed;

static inline Packed packed_of(const Place *p, uint op) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    __global const uint *words = (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 1]);
    Packed a = { m[MATRIX_ARGUMENTS] != 0, words, words + OP(*p, op, LACUNA_OP_N) + 1,
        (__global const ushort *)(p->fixed + m[MATRIX_ARGUMENTS + 2]), p->fixed + m[MATRIX_ARGUMENTS + 3],
        VECTOR(*p, OP(*p, op, LACUNA_OP_X)), (uint)m[MATRIX_LANES] };
    return a;
}

// The sum of a lane's entries of a row: `at`, `at + W`, ... up to `end`.
static inline number packed_lane(const Packed *a, SOURCE x, uint at, uint end) {
    const uint lanes = a->lanes;
    __global const ushort *restrict distances = a->distances;
    __global const number *restrict full = (__global const number *)a->values;
    __global const narrow *restrict half_values = (__global const narrow *)a->values;
    number sum = ZERO;
#if LACUNA_CPU
    if (a->is_narrow) {
        for (; at < end; at += lanes) {
            sum = multiply_add(widened(half_values[at]), GET(x, distances[at]), sum);
        }
    } else {
        for (; at < end; at += lanes) {
            sum = multiply_add(full[at], GET(x, distances[at]), sum);
        }
    }
#else
    if (a->is_narrow) {
        SUM_ENTRIES(sum, at, end, lanes, widened(half_values[k]), distances[k])
    } else {
        SUM_ENTRIES(sum, at, end, lanes, full[k], distances[k])
    }
#endif
    return sum;
}

static inline void packed_rows(const Packed *a, uint segment, uint count, __local number *slots, __local number *work) {
    const uint lanes = a->lanes, base = segment * SEGMENT;
    __global const uint *restrict row_ptr = a->row_ptr + base;
    __global const uint *restrict first = a->first + base;
#if LACUNA_CPU
    EACH(e, count) {
        SOURCE x = BEHIND(a->x, first[e]);
        for (uint j = 0; j < lanes; j++) {
            work[j] = packed_lane(a, x, row_ptr[e] + j, row_ptr[e + 1]);
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
        const uint at = live ? row_ptr[row] + LANE % lanes : 0, end = live ? row_ptr[row + 1] : 0;
        number sum = packed_lane(a, BEHIND(a->x, live ? first[row] : 0), at, end);
        sum = sum_lanes(sum, lanes, work);
        if (LANE % lanes == 0 && live) {
            slots[row] = sum;
        }
    }
    SYNC();
#endif
}

static inline void run_spmv_packed(const Place *p, uint op, uint group, uint groups, uint slot_cap,
    __local number *slots, __local number *work, __local number *local_memory, __global number *partials) {
    const Packed a = packed_of(p, op);
    OVER_SEGMENTS(packed_rows(&a, segment, count, mine, work))
}

__kernel LACUNA_GROUP void KERNEL(spmv_packed)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_spmv_packed(p, op, group, groups, slot_cap, slots, work, local_memory, partials);
    END_OPERATION();
}
