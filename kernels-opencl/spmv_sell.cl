// The product with a matrix in slices of 32 rows (SELL-32-256 and ELLPACK), and the pass on the rows just computed.
//
// Formula: y[i] <- sum along the places of row i of value * x[column] with fused multiply-add, padding included. Then the
// pass, which finds y in slot 0.
// Bytes moved per row: its places' columns and values, an eighth of an offset, 4 bytes more where rows are sorted; x once
// in all (from cache where columns are near), y once; then what the pass moves.
// Launch shape: as sweep.cl; place j of lane l of a slice that starts at column c is at (c + j) 32 + l: a row each
// work-item of a team, slice by slice, whole lines at a time.
// Assumes: sorting stays within segments of 256 rows; the pass does not write x.

static inline void sell_rows(const Place *p, uint op, uint segment, uint count, __local number *slots) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    const bool sorted = m[MATRIX_ARGUMENTS] != 0;
    __global const uint *restrict slice_ptr = (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 1]);
    __global const uint *restrict row_of = (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 2]);
    __global const uint *restrict columns = (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 3]);
    __global const number *restrict values = (__global const number *)(p->fixed + m[MATRIX_ARGUMENTS + 4]);
    __global const number *restrict x = VECTOR(*p, OP(*p, op, LACUNA_OP_X));
    const uint base = segment * SEGMENT;
    for (uint lane0 = 0; lane0 < count; lane0 += 32) {
        const uint slice = (base + lane0) / 32;
        ulong at = (ulong)slice_ptr[slice] * 32, end = (ulong)slice_ptr[slice + 1] * 32;
#if LACUNA_CPU
        number sums[32];
        for (uint l = 0; l < 32; l++) {
            sums[l] = ZERO;
        }
        for (; at < end; at += 32) {
            for (uint l = 0; l < 32; l++) {
                sums[l] = multiply_add(values[at + l], x[columns[at + l]], sums[l]);
            }
        }
        for (uint l = 0; l < 32; l++) {
            uint row = sorted ? row_of[base + lane0 + l] - base : lane0 + l;
            if (row < count) {
                slots[row] = sums[l];
            }
        }
#else
        at += LANE;
        number sum = ZERO;
        while (at < end) {
            number v[AHEAD], xs[AHEAD];
            uint c[AHEAD];
            UNROLLED
            for (uint i = 0; i < AHEAD; i++) {
                bool there = at + 32 * i < end;
                c[i] = there ? columns[at + 32 * i] : 0;
                v[i] = there ? values[at + 32 * i] : ZERO;
            }
            UNROLLED
            for (uint i = 0; i < AHEAD; i++) {
                xs[i] = at + 32 * i < end ? x[c[i]] : ZERO;
            }
            UNROLLED
            for (uint i = 0; i < AHEAD; i++) {
                sum = at + 32 * i < end ? multiply_add(v[i], xs[i], sum) : sum;
            }
            at += 32 * AHEAD;
        }
        uint row = sorted ? row_of[base + lane0 + LANE] - base : lane0 + LANE;
        if (row < count) {
            slots[row] = sum;
        }
#endif
    }
    SYNC();
}

static inline void run_spmv_sell(const Place *p, uint op, uint group, uint groups, uint slot_cap,
    __local number *slots, __local number *work, __global number *partials) {
    OVER_SEGMENTS(sell_rows(p, op, segment, count, mine))
}

__kernel LACUNA_GROUP void KERNEL(spmv_sell)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_spmv_sell(&p, op, group, groups, slot_cap, slots, work, partials);
    END_OPERATION();
}
