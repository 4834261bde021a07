// The product with a matrix in compressed sparse rows, and the pass on the rows just computed.
//
// Formula: y[i] <- sum over the entries of row i of value * x[column], by W lanes: lane j takes entries j, j + W, ...
// with fused multiply-add in order, lanes are summed by halving. Then the pass, which finds y in slot 0.
// Bytes moved per row: an offset, its columns and values, x once in all (from cache where columns are near), y once;
// then what the pass moves (see sweep.cl).
// Launch shape: as sweep.cl. With one lane a work-item takes a row; with W of them 256 / W rows at a time, their lanes
// summed in local memory.
// Assumes: W is a power of two up to 256; the pass does not write x.

#define CSR_SUM(start, end, step) \
    number sum = ZERO; \
    for (uint k = (start); k < (end); k += (step)) { \
        sum = multiply_add(values[k], x[columns[k]], sum); \
    }

static inline void csr_rows(const Place *p, uint op, uint segment, uint count, __local number *slots,
    __local number *work) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    __global const uint *restrict row_ptr = (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS]);
    __global const uint *restrict columns = (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 1]);
    __global const number *restrict values = (__global const number *)(p->fixed + m[MATRIX_ARGUMENTS + 2]);
    __global const number *x = VECTOR(*p, OP(*p, op, LACUNA_OP_X));
    const uint lanes = (uint)m[MATRIX_LANES];
    const ulong base = (ulong)segment * SEGMENT;
    if (lanes == 1) {
        EACH(e, count) {
            CSR_SUM(row_ptr[base + e], row_ptr[base + e + 1], 1)
            slots[e] = sum;
        }
        return;
    }
#if LACUNA_CPU
    EACH(e, count) {
        uint start = row_ptr[base + e], end = row_ptr[base + e + 1];
        for (uint j = 0; j < lanes; j++) {
            work[j] = ZERO;
        }
        for (uint at = start; at < end; at += lanes) {
            uint width = min(lanes, end - at);
            for (uint j = 0; j < width; j++) {
                work[j] = multiply_add(values[at + j], x[columns[at + j]], work[j]);
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
    const uint lane = LANE % lanes, row = LANE / lanes, rows = SEGMENT / lanes;
    for (uint step = 0; step < lanes; step += LACUNA_BATCH) {
        for (uint b = 0; b < LACUNA_BATCH; b++) {
            uint e = (step + b) * rows + row;
            bool live = step + b < lanes && e < count;
            uint start = live ? row_ptr[base + e] + lane : 0, end = live ? row_ptr[base + e + 1] : 0;
            CSR_SUM(start, end, lanes)
            work[b * THREADS + ITEM] = sum;
        }
        SYNC();
        for (uint half_width = lanes / 2; half_width > 0; half_width /= 2) {
            if (lane < half_width) {
                for (uint b = 0; b < LACUNA_BATCH; b++) {
                    __local number *w = work + b * THREADS + ITEM;
                    w[0] = w[0] + w[half_width];
                }
            }
            SYNC();
        }
        if (lane == 0) {
            for (uint b = 0; b < LACUNA_BATCH; b++) {
                uint e = (step + b) * rows + row;
                if (step + b < lanes && e < count) {
                    slots[e] = work[b * THREADS + ITEM];
                }
            }
        }
    }
    SYNC();
#endif
}

static inline void run_spmv_csr(const Place *p, uint op, uint group, uint groups, uint slot_cap, __local number *slots,
    __local number *work, __global number *partials) {
    uint n = OP(*p, op, LACUNA_OP_N), segments = segments_of(n);
    __local number *mine = slots + (ulong)SUB * slot_cap * SEGMENT;
    for (uint first = group * SUBS; first < segments; first += groups * SUBS) {
        uint segment = first + SUB;
        uint count = segment < segments ? min(SEGMENT, n - segment * SEGMENT) : 0;
        csr_rows(p, op, segment, count, mine, work);
        pass(p, op, segment, count, slot_cap, mine);
        dots(p, op, segment, count, segments, first, slot_cap, mine, work, partials);
    }
}

__kernel LACUNA_GROUP void KERNEL(spmv_csr)(__global uchar *arena, __global const uchar *restrict fixed,
    __global const uint *restrict table, __global const ulong *restrict names, __global number *cells,
    __global ulong *control, __global real *history, __global number *partials, __global uint *counter,
    const uint first, const uint cell_count, const uint op, const uint slot_cap, const uint near_capacity,
    __local number *work, __local number *slots, __local ulong *near_control) {
    if (control[LACUNA_CONTROL_OP] != op) {
        return;
    }
    Place p = { arena, fixed, table, names, cells, 0, near_control, history, first, cell_count, false };
    run_spmv_csr(&p, op, get_group_id(0), get_num_groups(0), slot_cap, slots, work, partials);
    finish(p, op, segments_of(OP(p, op, LACUNA_OP_N)), control, partials, counter, near_capacity, slots, work);
}
