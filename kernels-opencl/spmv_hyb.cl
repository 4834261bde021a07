// The product with a matrix in slices of 32 rows and coordinates (HYB), or coordinates alone (COO), and the pass on the
// rows just computed.
//
// Formula: y[i] <- sum over the places of row i in its slice, padding included, then over its coordinates, of value *
// x[column] with fused multiply-add. If the coordinates of a row are in pieces, 32 lanes take the entries of each in
// turn and are summed by halving; the sums of the pieces are added in order, and their sum to that of the slice. Then
// the pass, with y in slot 0.
// Bytes moved per row: a column and a value for each place, also a row for a coordinate in no piece; about a quarter of
// an offset; x once in all (from cache if columns are near), y once; then what the pass moves.
// Launch shape: `spmv_pieces` first, one team for each piece; then as sweep.cl. A work-item sums a row's places in its
// slice; the one that finds the first coordinate of a row sums the row's others.
// Assumes: the offsets of `crates/formats/src/storage/hyb_layout.rs`; the pass does not write x.

typedef struct {
    uint pieces;
    __global const uint *restrict slice_ptr;
    __global const uint *restrict segment_ptr;
    __global const uint *restrict segment_long;
    __global const uint *restrict long_rows;
    __global const uint *restrict long_ptr;
    __global const uint *restrict piece_ptr;
    // Indexed by place, including those of slices.
    __global const uint *restrict rows;
    __global const uint *restrict columns;
    __global const number *restrict values;
    SOURCE x;
    __global number *sums;
} Hyb;

static inline Hyb hyb_of(const Place *p, uint op) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    const uint n = OP(*p, op, LACUNA_OP_N), slices = n / 32 + (n % 32 != 0), segments = segments_of(n);
    __global const uint *head = (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS]);
    const uint longs = head[1];
    __global const uint *slice_ptr = head + 3, *segment_ptr = slice_ptr + slices + 1;
    __global const uint *segment_long = segment_ptr + segments + 1, *long_rows = segment_long + segments + 1;
    __global const uint *long_ptr = long_rows + longs;
    Hyb a = { head[2], slice_ptr, segment_ptr, segment_long, long_rows, long_ptr, long_ptr + longs + 1,
        (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 1]) - head[0],
        (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 2]),
        (__global const number *)(p->fixed + m[MATRIX_ARGUMENTS + 3]), VECTOR(*p, OP(*p, op, LACUNA_OP_X)),
        (__global number *)(p->arena + m[MATRIX_ARGUMENTS + 4]) };
    return a;
}

// Sums the pieces of this work-group, one team for each.
static inline void sum_pieces(const Hyb *a, uint group, uint groups, __local number *work) {
    __global const uint *restrict columns = a->columns;
    __global const number *restrict values = a->values;
    SOURCE x = a->x;
    for (uint first = group * SUBS; first < a->pieces; first += groups * SUBS) {
        const uint piece = first + SUB;
        const bool live = piece < a->pieces;
        uint at = live ? a->piece_ptr[piece] : 0;
        const uint end = live ? a->piece_ptr[piece + 1] : 0;
#if LACUNA_CPU
        for (uint j = 0; j < LACUNA_MAX_LANES; j++) {
            work[j] = ZERO;
        }
        for (; at < end; at += LACUNA_MAX_LANES) {
            const uint width = min(LACUNA_MAX_LANES, end - at);
            for (uint j = 0; j < width; j++) {
                work[j] = multiply_add(values[at + j], GET(x, columns[at + j]), work[j]);
            }
        }
        for (uint half_width = LACUNA_MAX_LANES / 2; half_width > 0; half_width /= 2) {
            for (uint j = 0; j < half_width; j++) {
                work[j] = work[j] + work[j + half_width];
            }
        }
        a->sums[piece] = work[0];
#else
        number sum = ZERO;
        at += LANE;
        SUM_ENTRIES(sum, at, end, LACUNA_MAX_LANES, values[k], columns[k])
        sum = sum_lanes(sum, LACUNA_MAX_LANES, work);
        if (live && LANE == 0) {
            a->sums[piece] = sum;
        }
        SYNC();
#endif
    }
}

// Adds the coordinates of a row to `sum`, if `k` is the first of them.
static inline number along_row(const Hyb *a, uint k, uint end, number sum) {
    for (const uint row = a->rows[k]; k < end && a->rows[k] == row; k++) {
        sum = multiply_add(a->values[k], GET(a->x, a->columns[k]), sum);
    }
    return sum;
}

static inline void hyb_rows(const Hyb *a, uint segment, uint count, __local number *slots) {
    __global const uint *restrict columns = a->columns;
    __global const number *restrict values = a->values;
    SOURCE x = a->x;
    const uint base = segment * SEGMENT, slices = (count + 31) / 32;
    for (uint slice = 0; slice < slices; slice++) {
        const ulong first = (ulong)a->slice_ptr[base / 32 + slice] * 32;
        const ulong end = (ulong)a->slice_ptr[base / 32 + slice + 1] * 32;
        const uint rows = min(32u, count - slice * 32);
        for (uint l = LANE; l < rows; l += TEAM) {
            number sum = ZERO;
            for (ulong at = first + l; at < end; at += 32) {
                sum = multiply_add(values[at], GET(x, columns[at]), sum);
            }
            slots[slice * 32 + l] = sum;
        }
    }
    SYNC();
    if (count > 0) {
        const uint begin = a->segment_ptr[segment], end = a->segment_ptr[segment + 1];
        for (uint k = begin + LANE; k < end; k += TEAM) {
            const uint row = a->rows[k];
            if (k == begin || a->rows[k - 1] != row) {
                slots[row - base] = along_row(a, k, end, slots[row - base]);
            }
        }
        for (uint l = a->segment_long[segment] + LANE; l < a->segment_long[segment + 1]; l += TEAM) {
            number rest = a->sums[a->long_ptr[l]];
            for (uint q = a->long_ptr[l] + 1; q < a->long_ptr[l + 1]; q++) {
                rest = rest + a->sums[q];
            }
            slots[a->long_rows[l] - base] = slots[a->long_rows[l] - base] + rest;
        }
    }
    SYNC();
}

static inline void run_spmv_hyb(const Place *p, uint op, uint group, uint groups, uint slot_cap,
    __local number *slots, __local number *work, __local number *local_memory, __global number *partials) {
    const Hyb a = hyb_of(p, op);
    OVER_SEGMENTS(hyb_rows(&a, segment, count, mine))
}

__kernel LACUNA_GROUP void KERNEL(spmv_pieces)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    const Hyb a = hyb_of(p, op);
    sum_pieces(&a, group, groups, work);
}

__kernel LACUNA_GROUP void KERNEL(spmv_hyb)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_spmv_hyb(p, op, group, groups, slot_cap, slots, work, local_memory, partials);
    END_OPERATION();
}
