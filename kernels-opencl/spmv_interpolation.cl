// The product with linear interpolation between a grid and a coarser one, and the pass on the rows just computed.
//
// Formula: y[i] <- interpolation_row of grids.cl. Then the pass, with y in slot 0.
// Bytes moved per row: none for the matrix; x once in all, y once; then what the pass moves.
// Launch shape: as sweep.cl; points are numbered with x fastest, so that loads are nearly coalesced.
// Assumes: the words of `crates/formats/src/storage/interpolation.rs`; the pass does not write x.

typedef struct {
    __global const int4 *restrict grids;
    SOURCE x;
} Interpolation;

static inline Interpolation interpolation_of(const Place *p, uint op) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    Interpolation a = { (__global const int4 *)(p->fixed + m[MATRIX_ARGUMENTS]),
        VECTOR(*p, OP(*p, op, LACUNA_OP_X)) };
    return a;
}

static inline void interpolation_rows(const Interpolation *a, uint segment, uint count, __local number *slots) {
    const uint base = segment * SEGMENT;
    EACH(e, count) {
        slots[e] = e < count ? interpolation_row(a->grids, a->x, base + e) : ZERO;
    }
}

static inline void run_spmv_interpolation(const Place *p, uint op, uint group, uint groups, uint slot_cap,
    __local number *slots, __local number *work, __local number *local_memory, __global number *partials) {
    const Interpolation a = interpolation_of(p, op);
    OVER_SEGMENTS(if (count > 0) { interpolation_rows(&a, segment, count, mine); })
}

__kernel LACUNA_GROUP void KERNEL(spmv_interpolation)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_spmv_interpolation(p, op, group, groups, slot_cap, slots, work, local_memory, partials);
    END_OPERATION();
}
