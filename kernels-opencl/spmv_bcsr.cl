// The product with a matrix in compressed rows of square blocks, and the pass on the rows just computed.
//
// Formula: y[b i + r] <- sum over the blocks of block row i, by W lanes (lane j takes blocks j, j + W, ...), of the
// block's columns in order: value[r][c] * x[b column + c] with fused multiply-add; lanes are summed by halving. Then
// the pass, with y in slot 0.
// Bytes moved per row: its values, 1 / b of an offset and of the block columns, x once in all (from cache if columns
// are near), y once; then what the pass moves.
// Launch shape: as sweep.cl. Blocks are stored column by column; a team takes 32 / W rows at a time, one lane for each
// work-item.
// Assumes: b is 2 to 8, with specialised code for 2, 3 and 4; W is a power of two up to 32; the pass does not write x.

typedef struct {
    uint block;
    uint lanes;
    __global const uint *restrict row_ptr;
    __global const uint *restrict columns;
    __global const number *restrict values;
    SOURCE x;
} Bcsr;

static inline Bcsr bcsr_of(const Place *p, uint op) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    Bcsr a = { (uint)m[MATRIX_ARGUMENTS], (uint)m[MATRIX_LANES],
        (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 1]),
        (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 2]),
        (__global const number *)(p->fixed + m[MATRIX_ARGUMENTS + 3]), VECTOR(*p, OP(*p, op, LACUNA_OP_X)) };
    return a;
}

// Blocks whose loads are issued before the first is multiplied; the last block stands in for missing ones.
#if LACUNA_CPU
#define BLOCKS 1
#else
#define BLOCKS LACUNA_BATCH
#endif

// Adds row `r` of the blocks `at`, `at + W`, ... up to `end` to a lane's sum; blocks have `B` rows.
#define SUM_BLOCKS(B) \
    for (; at < end; at += BLOCKS * lanes) { \
        number v[BLOCKS][B], b[BLOCKS][B]; \
        UNROLLED \
        for (uint i = 0; i < BLOCKS; i++) { \
            const uint k = min(at + i * lanes, end - 1); \
            const ulong column = (ulong)columns[k] * B; \
            UNROLLED \
            for (uint c = 0; c < B; c++) { \
                v[i][c] = values[(ulong)k * (B * B) + c * B + r]; \
                b[i][c] = GET(x, column + c); \
            } \
        } \
        UNROLLED \
        for (uint i = 0; i < BLOCKS; i++) { \
            UNROLLED \
            for (uint c = 0; c < B; c++) { \
                const number next = multiply_add(v[i][c], b[i][c], sum); \
                sum = at + i * lanes < end ? next : sum; \
            } \
        } \
    }

static inline number sum_blocks(__global const uint *restrict columns, __global const number *restrict values,
    SOURCE x, uint block, uint r, uint at, uint end, uint lanes) {
    number sum = ZERO;
    if (block == 2) {
        SUM_BLOCKS(2)
    } else if (block == 3) {
        SUM_BLOCKS(3)
    } else if (block == 4) {
        SUM_BLOCKS(4)
    } else {
        for (; at < end; at += lanes) {
            __global const number *v = values + (ulong)at * (block * block) + r;
            const ulong column = (ulong)columns[at] * block;
            for (uint c = 0; c < block; c++) {
                sum = multiply_add(v[c * block], GET(x, column + c), sum);
            }
        }
    }
    return sum;
}

static inline void bcsr_rows(const Bcsr *a, uint segment, uint count, __local number *slots, __local number *work) {
    const uint lanes = a->lanes, block = a->block, base = segment * SEGMENT;
    __global const uint *restrict row_ptr = a->row_ptr;
    __global const uint *restrict columns = a->columns;
    __global const number *restrict values = a->values;
    SOURCE x = a->x;
#if LACUNA_CPU
    EACH(e, count) {
        const uint of = (base + e) / block, r = (base + e) % block;
        for (uint j = 0; j < lanes; j++) {
            work[j] = sum_blocks(columns, values, x, block, r, row_ptr[of] + j, row_ptr[of + 1], lanes);
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
        const uint of = live ? (base + row) / block : 0, r = (base + row) % block;
        const uint at = live ? row_ptr[of] + LANE % lanes : 0, end = live ? row_ptr[of + 1] : 0;
        number sum = sum_lanes(sum_blocks(columns, values, x, block, r, at, end, lanes), lanes, work);
        if (LANE % lanes == 0 && live) {
            slots[row] = sum;
        }
    }
    SYNC();
#endif
}

static inline void run_spmv_bcsr(const Place *p, uint op, uint group, uint groups, uint slot_cap,
    __local number *slots, __local number *work, __local number *local_memory, __global number *partials) {
    const Bcsr a = bcsr_of(p, op);
    OVER_SEGMENTS(bcsr_rows(&a, segment, count, mine, work))
}

__kernel LACUNA_GROUP void KERNEL(spmv_bcsr)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_spmv_bcsr(p, op, group, groups, slot_cap, slots, work, local_memory, partials);
    END_OPERATION();
}
