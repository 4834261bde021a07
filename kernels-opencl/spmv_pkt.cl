// The product with a matrix in packets of 1024 rows (PKT), and the pass on the rows just computed.
//
// Formula: y[i] <- sum over the places of row i in its slice, padding included, of value * x[first of its packet +
// column], then over its far entries of value * x[column], with fused multiply-add. Then the pass, with y in slot 0.
// Bytes moved per row: 2 and a value for each place, 4 and a value for each far entry, an offset and an eighth; x once
// in all (a packet's part of it from cache), y once; then what the pass moves.
// Launch shape: as sweep.cl. Place j of lane l of a slice that starts at column c is at (c + j) 32 + l: one row for
// each work-item of a team, slice by slice, with coalesced loads.
// Assumes: the words of `crates/formats/src/storage/pkt.rs`, values of far entries after those of places; the pass does
// not write x.

#define PACKET 1024u

typedef struct {
    __global const uint *restrict slice_ptr;
    __global const uint *restrict far_ptr;
    __global const ushort *restrict near_columns;
    __global const uint *restrict far_columns;
    __global const number *restrict values;
    __global const number *restrict far_values;
    SOURCE x;
} Pkt;

static inline Pkt pkt_of(const Place *p, uint op) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    const uint n = OP(*p, op, LACUNA_OP_N), slices = n / 32 + (n % 32 != 0);
    __global const uint *slice_ptr = (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 1]);
    __global const number *values = (__global const number *)(p->fixed + m[MATRIX_ARGUMENTS + 4]);
    Pkt a = { slice_ptr, slice_ptr + slices + 1, (__global const ushort *)(p->fixed + m[MATRIX_ARGUMENTS + 2]),
        (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 3]), values, values + (ulong)slice_ptr[slices] * 32,
        VECTOR(*p, OP(*p, op, LACUNA_OP_X)) };
    return a;
}

static inline void pkt_rows(const Pkt *a, uint segment, uint count, __local number *slots) {
    __global const ushort *restrict near_columns = a->near_columns;
    __global const number *restrict values = a->values;
    const uint base = segment * SEGMENT, slices = (count + 31) / 32;
    SOURCE x = BEHIND(a->x, base / PACKET * PACKET);
    for (uint slice = 0; slice < slices; slice++) {
        const ulong first = (ulong)a->slice_ptr[base / 32 + slice] * 32;
        const ulong end = (ulong)a->slice_ptr[base / 32 + slice + 1] * 32;
#if LACUNA_CPU
        number sums[32];
        for (uint l = 0; l < 32; l++) {
            sums[l] = ZERO;
        }
        for (ulong at = first; at < end; at += 32) {
            for (uint l = 0; l < 32; l++) {
                sums[l] = multiply_add(values[at + l], GET(x, near_columns[at + l]), sums[l]);
            }
        }
        for (uint l = 0; l < min(32u, count - slice * 32); l++) {
            slots[slice * 32 + l] = sums[l];
        }
#else
        __global const ushort *restrict columns = near_columns + first;
        __global const number *restrict places = values + first;
        const uint row = slice * 32 + LANE, width = (uint)(end - first);
        if (row < count) {
            uint at = LANE;
            number sum = ZERO;
            SUM_ENTRIES(sum, at, width, 32u, places[k], columns[k])
            slots[row] = sum;
        }
#endif
    }
    EACH(e, count) {
        if (e < count) {
            uint k = a->far_ptr[base + e];
            const uint end = a->far_ptr[base + e + 1];
            number sum = slots[e];
            for (; k < end; k++) {
                sum = multiply_add(a->far_values[k], GET(a->x, a->far_columns[k]), sum);
            }
            slots[e] = sum;
        }
    }
    SYNC();
}

static inline void run_spmv_pkt(const Place *p, uint op, uint group, uint groups, uint slot_cap, __local number *slots,
    __local number *work, __local number *local_memory, __global number *partials) {
    const Pkt a = pkt_of(p, op);
    OVER_SEGMENTS(pkt_rows(&a, segment, count, mine))
}

__kernel LACUNA_GROUP void KERNEL(spmv_pkt)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_spmv_pkt(p, op, group, groups, slot_cap, slots, work, local_memory, partials);
    END_OPERATION();
}
