// The product with a matrix in compressed sparse rows, and the pass on the rows just computed.
//
// Formula: y[i] <- sum over the entries of row i of value * x[column], by W lanes: lane j takes entries j, j + W, ...
// with fused multiply-add in order, lanes are summed by halving. Then the pass, which finds y in slot 0.
// Bytes moved per row: an offset, its columns and values, x once in all (from cache where columns are near), y once;
// then what the pass moves (see sweep.cl).
// Launch shape: as sweep.cl. A team takes 32 / W rows at a time, a lane each work-item. Where a group is one team it reads
// the entries of those rows, which lie one behind the other, side by side into local memory, the next ones while it
// multiplies these.
// Assumes: W is a power of two up to 32; the pass does not write x.

#if !LACUNA_CPU
// The first of a team's `lanes` neighbours has their sum by halving; `at` has room for THREADS numbers.
static inline number sum_lanes(number sum, uint lanes, __local number *at) {
    if (lanes > 1) {
        at[ITEM] = sum;
        SYNC();
        for (uint width = lanes / 2; width > 0; width /= 2) {
            if (LANE % lanes < width) {
                at[ITEM] = at[ITEM] + at[ITEM + width];
            }
            SYNC();
        }
        sum = at[ITEM];
    }
    return sum;
}

// Entries that are multiplied before the first product is waited for.
#define AHEAD 8

// A row of a lane: entries from `at` up to `end`, a lane's stride apart.
#define SUM_ENTRIES(sum, at, end, stride, value, column) \
    while (at < end) { \
        number xs[AHEAD]; \
        UNROLLED \
        for (uint i = 0; i < AHEAD; i++) { \
            uint k = at + i * (stride); \
            xs[i] = k < end ? x[column] : ZERO; \
        } \
        UNROLLED \
        for (uint i = 0; i < AHEAD; i++) { \
            uint k = at + i * (stride); \
            sum = k < end ? multiply_add(value, xs[i], sum) : sum; \
        } \
        at += AHEAD * (stride); \
    }

// The rows of a segment by a group of one team, entries through local memory.
static inline void csr_staged(__global const uint *restrict row_ptr, __global const uint *restrict columns,
    __global const number *restrict values, __global const number *restrict x, uint lanes, uint count,
    __local number *slots, __local number *work) {
    __local number *near_values = work;
    __local uint *near_columns = (__local uint *)(work + SEGMENT), *starts = near_columns + SEGMENT;
    __local number *sums = (__local number *)(starts + LACUNA_STARTS);
    UNROLLED
    for (uint m = 0; m < ELEMENTS; m++) {
        uint e = LANE + TEAM * m;
        starts[e] = row_ptr[min(e, count)];
    }
    if (LANE == 0) {
        starts[SEGMENT] = row_ptr[count];
    }
    SYNC();
    const uint rows = TEAM / lanes, steps = (count + rows - 1) / rows, row_of = LANE / lanes, part = LANE % lanes;
    uint from = starts[0], to = starts[rows], at = starts[row_of] + part, end = starts[row_of + 1];
    uint c[ELEMENTS];
    number v[ELEMENTS], sum = ZERO;
#define FETCH() \
    UNROLLED \
    for (uint m = 0; m < ELEMENTS; m++) { \
        uint k = from + LANE + TEAM * m; \
        c[m] = k < to ? columns[k] : 0; \
        v[m] = k < to ? values[k] : ZERO; \
    }
    FETCH()
    for (uint step = 0; step < steps;) {
        UNROLLED
        for (uint m = 0; m < ELEMENTS; m++) {
            near_columns[LANE + TEAM * m] = c[m];
            near_values[LANE + TEAM * m] = v[m];
        }
        SYNC();
        const uint first = from, stop = min(to, from + SEGMENT);
        const bool complete = stop == to;
        from = stop;
        if (complete) {
            to = starts[min((step + 2) * rows, SEGMENT)];
        }
        FETCH()
        const uint here = min(end, stop);
        if (at < here) {
            SUM_ENTRIES(sum, at, here, lanes, near_values[k - first], near_columns[k - first])
            at = here + ((at - here) & (lanes - 1)); // the lane's next entry, here or in what comes next
        }
        if (complete) {
            sum = sum_lanes(sum, lanes, sums);
            uint row = step * rows + row_of;
            if (part == 0 && row < count) {
                slots[row] = sum;
            }
            step++;
            row = min(step * rows + row_of, SEGMENT - 1);
            at = starts[row] + part;
            end = starts[row + 1];
            sum = ZERO;
        }
        SYNC();
    }
#undef FETCH
}
#endif

static inline void csr_rows(const Place *p, uint op, uint segment, uint count, __local number *slots,
    __local number *work) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    const ulong base = (ulong)segment * SEGMENT;
    __global const uint *restrict row_ptr = (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS]) + base;
    __global const uint *restrict columns = (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 1]);
    __global const number *restrict values = (__global const number *)(p->fixed + m[MATRIX_ARGUMENTS + 2]);
    __global const number *restrict x = VECTOR(*p, OP(*p, op, LACUNA_OP_X));
    const uint lanes = (uint)m[MATRIX_LANES];
#if LACUNA_CPU
    if (lanes == 1) {
        EACH(e, count) {
            number sum = ZERO;
            for (uint k = row_ptr[e], end = row_ptr[e + 1]; k < end; k++) {
                sum = multiply_add(values[k], x[columns[k]], sum);
            }
            slots[e] = sum;
        }
        return;
    }
    EACH(e, count) {
        uint start = row_ptr[e], end = row_ptr[e + 1];
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
    if (get_local_size(0) == TEAM) {
        csr_staged(row_ptr, columns, values, x, lanes, count, slots, work);
        return;
    }
    const uint rows = TEAM / lanes;
    for (uint step = 0; step < SEGMENT / rows; step++) {
        uint row = step * rows + LANE / lanes;
        bool live = row < count;
        uint at = live ? row_ptr[row] + LANE % lanes : 0, end = live ? row_ptr[row + 1] : 0;
        number sum = ZERO;
        SUM_ENTRIES(sum, at, end, lanes, values[k], columns[k])
        sum = sum_lanes(sum, lanes, work);
        if (LANE % lanes == 0 && live) {
            slots[row] = sum;
        }
    }
    SYNC();
#endif
}

static inline void run_spmv_csr(const Place *p, uint op, uint group, uint groups, uint slot_cap,
    __local number *slots, __local number *work, __global number *partials) {
    OVER_SEGMENTS(csr_rows(p, op, segment, count, mine, work))
}

__kernel LACUNA_GROUP void KERNEL(spmv_csr)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_spmv_csr(&p, op, group, groups, slot_cap, slots, work, partials);
    END_OPERATION();
}
