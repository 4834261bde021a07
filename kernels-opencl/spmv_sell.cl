// The product with a matrix in slices of 32 rows (SELL-32-256 and ELLPACK), and the pass on the rows just computed.
//
// Formula: y[i] <- sum over the places of row i of value * x[column] with fused multiply-add, padding included. Then
// the pass, with y in slot 0.
// Bytes moved per row: the columns and values of its places, an eighth of an offset, 4 bytes more if rows are sorted; x
// once in all (from cache if columns are near), y once; then what the pass moves.
// Launch shape: as sweep.cl. Place j of lane l of a slice that starts at column c is at (c + j) 32 + l: one row for
// each work-item of a team, slice by slice, with coalesced loads.
// Assumes: sorting stays within segments of 256 rows; the pass does not write x.

typedef struct {
    bool sorted;
    __global const uint *restrict slice_ptr;
    __global const uint *restrict row_of;
    __global const uint *restrict columns;
    __global const number *restrict values;
    SOURCE x;
} Sell;

static inline Sell sell_of(const Place *p, uint op) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    Sell a = { m[MATRIX_ARGUMENTS] != 0, (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 1]),
        (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 2]),
        (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 3]),
        (__global const number *)(p->fixed + m[MATRIX_ARGUMENTS + 4]), VECTOR(*p, OP(*p, op, LACUNA_OP_X)) };
    return a;
}

static inline void sell_rows(const Sell *a, uint segment, uint count, __local number *slots) {
    __global const uint *restrict columns = a->columns;
    __global const number *restrict values = a->values;
    SOURCE x = a->x;
    const uint base = segment * SEGMENT, first = base / 32, slices = (count + 31) / 32;
#if LACUNA_CPU
    for (uint slice = 0; slice < slices; slice++) {
        ulong at = (ulong)a->slice_ptr[first + slice] * 32, end = (ulong)a->slice_ptr[first + slice + 1] * 32;
        number sums[32];
        for (uint l = 0; l < 32; l++) {
            sums[l] = ZERO;
        }
        for (; at < end; at += 32) {
            for (uint l = 0; l < 32; l++) {
                sums[l] = multiply_add(values[at + l], GET(x, columns[at + l]), sums[l]);
            }
        }
        for (uint l = 0; l < 32; l++) {
            const uint lane = slice * 32 + l, row = a->sorted ? a->row_of[base + lane] - base : lane;
            if (row < count) {
                slots[row] = sums[l];
            }
        }
    }
#else
    // The next places are loaded while the current ones are multiplied.
    uint slice = 0, c[AHEAD];
    number v[AHEAD], sum = ZERO;
    ulong at = 0, end = 0;
#define OPEN() \
    if (slice < slices) { \
        at = (ulong)a->slice_ptr[first + slice] * 32 + LANE; \
        end = (ulong)a->slice_ptr[first + slice + 1] * 32; \
    }
    // The last place of a lane stands in for missing ones.
#define FETCH_ENTRIES() \
    if (at < end) { \
        UNROLLED \
        for (uint i = 0; i < AHEAD; i++) { \
            const ulong place = min(at + 32 * i, end - 32 + LANE); \
            c[i] = columns[place]; \
            v[i] = values[place]; \
        } \
    }
    OPEN()
    FETCH_ENTRIES()
    while (slice < slices) {
        number xs[AHEAD], vs[AHEAD];
        const uint now = slice, places = at < end ? (uint)min((end - at + 31) / 32, (ulong)AHEAD) : 0;
        if (places > 0) {
            UNROLLED
            for (uint i = 0; i < AHEAD; i++) {
                vs[i] = v[i];
                xs[i] = GET(x, c[i]);
            }
        }
        at += 32 * AHEAD;
        if (at >= end) {
            slice++;
            OPEN()
        }
        FETCH_ENTRIES()
        UNROLLED
        for (uint i = 0; i < AHEAD; i++) {
            const number next = multiply_add(vs[i], xs[i], sum);
            sum = i < places ? next : sum;
        }
        if (slice != now) {
            const uint lane = now * 32 + LANE, row = a->sorted ? a->row_of[base + lane] - base : lane;
            if (row < count) {
                slots[row] = sum;
            }
            sum = ZERO;
        }
    }
#undef OPEN
#undef FETCH_ENTRIES
#endif
    SYNC();
}

static inline void run_spmv_sell(const Place *p, uint op, uint group, uint groups, uint slot_cap,
    __local number *slots, __local number *work, __local number *local_memory, __global number *partials) {
    const Sell a = sell_of(p, op);
    OVER_SEGMENTS(sell_rows(&a, segment, count, mine))
}

__kernel LACUNA_GROUP void KERNEL(spmv_sell)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_spmv_sell(p, op, group, groups, slot_cap, slots, work, local_memory, partials);
    END_OPERATION();
}
