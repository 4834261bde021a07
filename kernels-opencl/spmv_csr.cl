// The product with a matrix in compressed sparse rows, and the pass on the rows just computed.
//
// Formula: y[i] <- sum over the entries of row i of value * x[column], by W lanes: lane j takes entries j, j + W, ...
// with fused multiply-add in order, lanes are summed by halving. A row whose lanes would have more than LONG_LANE
// entries is cut into pieces, each with W = 32, whose sums are added in order. Then the pass, with y in slot 0.
// Bytes moved per row: an offset, its columns and values, x once in all (from cache if columns are near), y once; then
// what the pass moves (see sweep.cl).
// Launch shape: as sweep.cl. A team takes 32 / W rows at a time, one lane for each work-item. A work-group of one team
// loads the entries of these rows, which are contiguous, into local memory with coalesced reads, the next ones while it
// multiplies the current ones; the team sums long rows together. Otherwise (program.cl) lanes read entries in place,
// and one work-item sums a long row.
// A few rows with many entries give too few segments: `spmv_csr_first` computes y alone, one row for each work-group at
// a time, and the pass follows as a sweep that reads y.
// Assumes: W is a power of two up to 32; the pass does not write x.

typedef struct {
    __global const uint *restrict row_ptr;
    __global const uint *restrict columns;
    __global const number *restrict values;
    SOURCE x;
    uint lanes;
} Csr;

static inline Csr csr_of(const Place *p, uint op) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    Csr a = { (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS]),
        (__global const uint *)(p->fixed + m[MATRIX_ARGUMENTS + 1]),
        (__global const number *)(p->fixed + m[MATRIX_ARGUMENTS + 2]), VECTOR(*p, OP(*p, op, LACUNA_OP_X)),
        (uint)m[MATRIX_LANES] };
    return a;
}

static inline bool is_long(uint first, uint end, uint lanes) {
    return end - first > LACUNA_LONG_LANE * lanes;
}

// A row by one work-item, which takes the lanes in turn; `sums` has room for them.
#define ROW_OF_LANES(sums, first, end, lanes, columns, values, x) \
    for (uint j = 0; j < (lanes); j++) { \
        sums[j] = ZERO; \
    } \
    for (uint at = (first); at < (end); at += (lanes)) { \
        const uint width = min((uint)(lanes), (end) - at); \
        for (uint j = 0; j < width; j++) { \
            sums[j] = multiply_add(values[at + j], GET(x, columns[at + j]), sums[j]); \
        } \
    } \
    for (uint half_width = (lanes) / 2; half_width > 0; half_width /= 2) { \
        for (uint j = 0; j < half_width; j++) { \
            sums[j] = sums[j] + sums[j + half_width]; \
        } \
    }

static inline number long_row(const Csr *a, uint first, uint end) {
    __global const uint *restrict columns = a->columns;
    __global const number *restrict values = a->values;
    SOURCE x = a->x;
    const uint piece = max(LACUNA_PIECE, (end - first - 1) / LACUNA_MOST_PIECES + 1);
    number all = ZERO;
    for (uint from = first; from < end; from += piece) {
        number sums[LACUNA_MAX_LANES];
        const uint to = min(from + piece, end);
        ROW_OF_LANES(sums, from, to, LACUNA_MAX_LANES, columns, values, x)
        all = from == first ? sums[0] : all + sums[0];
    }
    return all;
}

#if LACUNA_CPU
// A row by the only work-item.
static inline number row_alone(const Csr *a, uint first, uint end, __local number *work) {
    __global const uint *restrict columns = a->columns;
    __global const number *restrict values = a->values;
    SOURCE x = a->x;
    const uint lanes = a->lanes;
    if (is_long(first, end, lanes)) {
        return long_row(a, first, end);
    }
    if (lanes > 1) {
        ROW_OF_LANES(work, first, end, lanes, columns, values, x)
        return work[0];
    }
    number sum = ZERO;
    for (uint k = first; k < end; k++) {
        sum = multiply_add(values[k], GET(x, columns[k]), sum);
    }
    return sum;
}
#else
// Sums `lanes` neighbours of a team by halving, into the first of them; `at` has room for THREADS numbers.
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

// Operand values loaded before the first multiplication.
#define AHEAD 8

// A lane's entries of a row: from `at` up to `end`, a lane's stride apart; the last one stands in for missing ones.
#define SUM_ENTRIES(sum, at, end, stride, value, column) \
    while (at < end) { \
        number xs[AHEAD]; \
        UNROLLED \
        for (uint i = 0; i < AHEAD; i++) { \
            const uint k = min(at + i * (stride), end - 1); \
            xs[i] = GET(x, column); \
        } \
        UNROLLED \
        for (uint i = 0; i < AHEAD; i++) { \
            const uint k = min(at + i * (stride), end - 1); \
            const number next = multiply_add(value, xs[i], sum); \
            sum = at + i * (stride) < end ? next : sum; \
        } \
        at += AHEAD * (stride); \
    }

// A row by a work-group of one team, `piece` entries at a time; the first work-item has the sum.
static inline number in_pieces_of(uint piece, const Csr *a, uint first, uint end, __local number *work) {
    __global const uint *restrict columns = a->columns;
    __global const number *restrict values = a->values;
    SOURCE x = a->x;
    number all = ZERO;
    for (uint from = first; from < end; from += piece) {
        const uint to = end - from < piece ? end : from + piece;
        uint at = from + LANE;
        number sum = ZERO;
        SUM_ENTRIES(sum, at, to, TEAM, values[k], columns[k])
        sum = sum_lanes(sum, LACUNA_MAX_LANES, work);
        all = from == first ? sum : all + sum;
    }
    return all;
}

static inline number long_row_of_team(const Csr *a, uint first, uint end, __local number *work) {
    return in_pieces_of(max(LACUNA_PIECE, (end - first - 1) / LACUNA_MOST_PIECES + 1), a, first, end, work);
}

static inline number row_of_team(const Csr *a, uint first, uint end, __local number *work) {
    return is_long(first, end, TEAM) ? long_row_of_team(a, first, end, work)
        : in_pieces_of(max(end - first, 1u), a, first, end, work);
}

// The rows of a segment by a work-group of one team, with entries staged in local memory.
static inline void csr_staged(const Csr *a, ulong base, uint count, __local number *slots, __local number *work) {
    const uint lanes = a->lanes;
    __global const uint *restrict row_ptr = a->row_ptr + base;
    __global const uint *restrict columns = a->columns;
    __global const number *restrict values = a->values;
    SOURCE x = a->x;
    __local number *local_values = work + TEAM;
    __local uint *local_columns = (__local uint *)(local_values + SEGMENT), *starts = local_columns + SEGMENT;
    __local uint *any_long = starts + SEGMENT + 1;
    SYNC();
    UNROLLED
    for (uint m = 0; m < ELEMENTS; m++) {
        starts[LANE + TEAM * m] = row_ptr[min(LANE + TEAM * m, count)];
    }
    if (LANE == 0) {
        starts[SEGMENT] = row_ptr[count];
        *any_long = 0;
    }
    SYNC();
    UNROLLED
    for (uint m = 0; m < ELEMENTS; m++) {
        if (is_long(starts[LANE + TEAM * m], starts[LANE + TEAM * m + 1], lanes)) {
            *any_long = 1;
        }
    }
    const uint rows = TEAM / lanes, row_of = LANE / lanes, part = LANE % lanes;
    uint step = 0, row = row_of, from = starts[0], to = starts[rows], end = starts[row + 1];
    uint at = is_long(starts[row], end, lanes) ? end : starts[row] + part;
    uint c[ELEMENTS];
    number v[ELEMENTS], sum = ZERO;
#define FETCH_ENTRIES() \
    UNROLLED \
    for (uint m = 0; m < ELEMENTS; m++) { \
        const uint k = min(from + LANE + TEAM * m, max(to, 1u) - 1); \
        c[m] = columns[k]; \
        v[m] = values[k]; \
    }
    FETCH_ENTRIES()
    while (step * rows < count) {
        UNROLLED
        for (uint m = 0; m < ELEMENTS; m++) {
            local_columns[LANE + TEAM * m] = c[m];
            local_values[LANE + TEAM * m] = v[m];
        }
        SYNC();
        const uint first = from, stop = min(to, from + SEGMENT);
        const bool complete = stop == to;
        from = stop;
        if (complete) {
            to = starts[min((step + 2) * rows, SEGMENT)];
        }
        FETCH_ENTRIES()
        const uint here = min(end, stop);
        if (at < here) {
            SUM_ENTRIES(sum, at, here, lanes, local_values[k - first], local_columns[k - first])
            at = here + ((at - here) & (lanes - 1)); // the lane's next entry, in this batch or the next
        }
        SYNC();
        if (complete) {
            sum = sum_lanes(sum, lanes, work);
            if (part == 0 && row < count) {
                slots[row] = sum;
            }
            step++;
            row = min(step * rows + row_of, SEGMENT - 1);
            end = starts[row + 1];
            at = is_long(starts[row], end, lanes) ? end : starts[row] + part;
            sum = ZERO;
        }
    }
    SYNC(); // other work-items own these rows' elements
    for (uint r = 0; *any_long && r < count; r++) {
        if (is_long(starts[r], starts[r + 1], lanes)) {
            const number whole = long_row_of_team(a, starts[r], starts[r + 1], work);
            if (LANE == 0) {
                slots[r] = whole;
            }
        }
    }
    SYNC();
#undef FETCH_ENTRIES
}
#endif

static inline void csr_rows(const Csr *a, uint segment, uint count, __local number *slots, __local number *work) {
    const ulong base = (ulong)segment * SEGMENT;
    __global const uint *restrict row_ptr = a->row_ptr + base;
#if LACUNA_CPU
    EACH(e, count) { slots[e] = row_alone(a, row_ptr[e], row_ptr[e + 1], work); }
#else
    __global const uint *restrict columns = a->columns;
    __global const number *restrict values = a->values;
    SOURCE x = a->x;
    const uint lanes = a->lanes;
    if (get_local_size(0) == TEAM) {
        csr_staged(a, base, count, slots, work);
        return;
    }
    const uint rows = TEAM / lanes;
    for (uint step = 0; step < SEGMENT / rows; step++) {
        uint row = step * rows + LANE / lanes;
        bool live = row < count;
        const uint first = live ? row_ptr[row] : 0, end = live ? row_ptr[row + 1] : 0;
        uint at = is_long(first, end, lanes) ? end : first + LANE % lanes;
        number sum = ZERO;
        SUM_ENTRIES(sum, at, end, lanes, values[k], columns[k])
        sum = sum_lanes(sum, lanes, work);
        if (LANE % lanes == 0 && live) {
            slots[row] = is_long(first, end, lanes) ? long_row(a, first, end) : sum;
        }
    }
    SYNC();
#endif
}

static inline void run_spmv_csr(const Place *p, uint op, uint group, uint groups, uint slot_cap,
    __local number *slots, __local number *work, __local number *local_memory, __global number *partials) {
    const Csr a = csr_of(p, op);
    OVER_SEGMENTS(csr_rows(&a, segment, count, mine, work))
}

__kernel LACUNA_GROUP void KERNEL(spmv_csr)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_spmv_csr(p, op, group, groups, slot_cap, slots, work, local_memory, partials);
    END_OPERATION();
}

// One lane for each work-item; a work-group is one team.
__kernel LACUNA_GROUP void KERNEL(spmv_csr_first)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    const Csr a = csr_of(p, op);
    TARGET y = VECTOR(place, OP(place, op, LACUNA_OP_Y));
    const uint n = OP(place, op, LACUNA_OP_N);
    for (uint row = group; row < n; row += groups) {
        const uint first = a.row_ptr[row], end = a.row_ptr[row + 1];
#if LACUNA_CPU
        PUT(y, row, row_alone(&a, first, end, work));
#else
        const number sum = row_of_team(&a, first, end, work);
        if (LANE == 0) {
            PUT(y, row, sum);
        }
#endif
    }
}
