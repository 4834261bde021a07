// Products of a kernel that keeps vectors in registers, one row for each work-item.
//
// Formula: as spmv_csr.cl and the other products, to the bit.
// Bytes moved per row: a column and a value for each entry, padded to the longest row of 32 lanes, once for each
// product, or once for each launch if entries stay in registers; the operand comes from local memory if it fits.
// Launch shape: as resident.cl; lanes of a row side by side, row after row, in as many rounds as needed.
// Assumes: the layout of `crates/gpu/src/repacked.rs`, or compressed rows of one lane as stored.

// The entries of a row in order; x from local memory, or from words if the window does not fit.
static inline number row_entries(const Share *s, const State *state, bool fits, uint low,
    __global const uint *restrict columns, __global const number *restrict values, uint k, uint end) {
#if LACUNA_COMPLEX
#define DEPTH 4
#else
#define DEPTH 8
#endif
    number sum = ZERO;
    for (; k < end; k += DEPTH) {
        uint column[DEPTH];
        number a[DEPTH], x[DEPTH];
#pragma unroll
        for (uint i = 0; i < DEPTH; i++) {
            bool there = k + i < end;
            column[i] = there ? columns[k + i] : 0;
            a[i] = there ? values[k + i] : ZERO;
        }
#if !ONE_GROUP
        if (!fits) {
            __global const ulong *words = SHOWN(s, state);
            bool all;
            do {
                all = true;
#pragma unroll
                for (uint i = 0; i < DEPTH; i++) {
                    if (k + i < end) {
                        all &= get_number(words, column[i], state->tag, &x[i]);
                    }
                }
            } while (!all);
        } else
#endif
        {
#pragma unroll
            for (uint i = 0; i < DEPTH; i++) {
                x[i] = k + i < end ? OPERAND(column[i]) : ZERO;
            }
        }
#pragma unroll
        for (uint i = 0; i < DEPTH; i++) {
            if (k + i < end) {
                sum = multiply_add(a[i], x[i], sum);
            }
        }
    }
    return sum;
}

// One batch of the entries of a slice that a work-item has in flight; each batch starts with an entry of the first
// lane.
#define DEPTH_RESIDENT LACUNA_DEPTH
typedef struct {
    uint column[DEPTH_RESIDENT]; // counted from the window
    number value[DEPTH_RESIDENT];
} Entries;
// A place without an entry. For real numbers its value is -0 and its column the place just past the window, which holds 1:
// this changes no sum, not even one of -0, and needs no branch.
#if LACUNA_COMPLEX
#define HOLE(s, m, fits) LACUNA_NONE
#define HOLDS(fits, column) ((column) != LACUNA_NONE)
#else
#define HOLE(s, m, fits) ((fits) ? ONE_GROUP ? (s)->n : WINDOW(s, m)[1] : LACUNA_NONE)
#define HOLDS(fits, column) ((fits) || (column) != LACUNA_NONE)
#endif
#define NO_VALUE (-ZERO)

// The position of a work-group's entries: those from `first` to `limit` are also in local memory, from `stays` on.
typedef struct {
    uint first, limit, stays, hole;
    ulong policy;
} Places;
#define COLUMN_OF(c) (LACUNA_COMPLEX && (c) == 0xffffu ? LACUNA_NONE : (c))
static inline void fetch_entries(Entries *b, const Share *s, const Places *p, uint at, uint end) {
    if (at >= end) {
#pragma unroll
        for (uint e = 0; e < DEPTH_RESIDENT; e++) {
            b->column[e] = p->hole;
            b->value[e] = NO_VALUE;
        }
        return;
    }
    const bool whole = at + 32 * DEPTH_RESIDENT <= end;
    const uint last = end - 32;
    if (min(at + 32 * DEPTH_RESIDENT, end) <= p->limit) {
        __local const ushort *columns = s->local_columns + p->stays + WARP_LANE;
        __local const number *values = s->local_values + p->stays + WARP_LANE;
#pragma unroll
        for (uint e = 0; e < DEPTH_RESIDENT; e++) {
            const uint place = (whole ? at + 32 * e : min(at + 32 * e, last)) - p->first;
            b->column[e] = COLUMN_OF(columns[place]);
            b->value[e] = values[place];
        }
    } else {
        __global const uint *columns = s->columns + WARP_LANE;
        __global const number *values = s->values + WARP_LANE;
        if (whole) {
            columns += at;
            values += at;
#pragma unroll
            for (uint e = 0; e < DEPTH_RESIDENT; e++) {
                b->column[e] = index_once(columns + 32 * e, true, p->policy);
                b->value[e] = number_once(values + 32 * e, true, p->policy);
            }
        } else {
#pragma unroll
            for (uint e = 0; e < DEPTH_RESIDENT; e++) {
                const uint place = min(at + 32 * e, last);
                b->column[e] = index_once(columns + place, true, p->policy);
                b->value[e] = number_once(values + place, true, p->policy);
            }
        }
    }
    if (!whole) {
#pragma unroll
        for (uint e = 0; e < DEPTH_RESIDENT; e++) {
            b->column[e] = at + 32 * e < end ? b->column[e] : p->hole;
            b->value[e] = at + 32 * e < end ? b->value[e] : NO_VALUE;
        }
    }
}
// Copies up to `stay` of the group's entries of matrix `m` to local memory, from `stays` on.
static inline void stay_resident(const Share *s, uint m, uint lanes, uint stay, uint stays) {
    __global const uint *restrict slices = s->windows + WINDOW(s, m)[2];
    const uint step = SIZE / lanes, turns = (s->rows + step - 1) / step;
    const uint first = slices[0], count = min(slices[turns * WARPS] - first, stay);
    for (uint i = ITEM; i < count; i += SIZE) {
        s->local_columns[stays + i] = (ushort)s->columns[first + i];
        s->local_values[stays + i] = s->values[first + i];
    }
}
// The operand values of a batch.
static inline void fetch_operands(number *x, const Entries *b, const Share *s, const State *state, bool fits) {
#if !ONE_GROUP
    if (!fits) {
        __global const ulong *words = SHOWN(s, state);
        bool all;
        do {
            all = true;
#pragma unroll
            for (uint e = 0; e < DEPTH_RESIDENT; e++) {
                if (b->column[e] != LACUNA_NONE) {
                    all &= get_number(words, b->column[e], state->tag, &x[e]);
                }
            }
        } while (!all);
        return;
    }
#endif
#pragma unroll
    for (uint e = 0; e < DEPTH_RESIDENT; e++) {
        x[e] = HOLDS(fits, b->column[e]) ? s->window[b->column[e]] : ZERO;
    }
}
// Lanes taken in turn have one sum each.
static inline void add_entries(number *sum, uint sums, const Entries *b, const number *x, bool fits) {
#pragma unroll
    for (uint e = 0; e < DEPTH_RESIDENT; e++) {
        const uint k = e % sums;
        sum[k] = HOLDS(fits, b->column[e]) ? multiply_add(b->value[e], x[e], sum[k]) : sum[k];
    }
}

static inline number sum_of_lanes(number *sum, uint sums) {
#pragma unroll
    for (uint half_sums = sums / 2; half_sums > 0; half_sums /= 2) {
#pragma unroll
        for (uint k = 0; k < half_sums; k++) {
            sum[k] = sum[k] + sum[k + half_sums];
        }
    }
    return sum[0];
}

// Sums the lanes of a row and stores the result for the row's work-item. All work-items call it.
static inline void keep_row(const Share *s, uint lanes, uint turn, number sum) {
    const uint i = turn * (SIZE / lanes) + ITEM / lanes, part = ITEM % lanes;
#if LACUNA_NVIDIA
    __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    for (uint d = lanes / 2; d > 0; d /= 2) {
        sum = sum + down(sum, d);
    }
#else
    s->work[ITEM] = sum;
    for (uint d = lanes / 2; d > 0; d /= 2) {
        BARRIER();
        if (part < d) {
            s->work[ITEM] = s->work[ITEM] + s->work[ITEM + d];
        }
    }
    sum = s->work[ITEM];
    BARRIER();
#endif
    if (part == 0 && i < s->rows) {
        s->rows_at[i] = sum;
    }
}

// The work-item's row of the product with a repacked matrix, of which `stay` places are in local memory from `stays`
// on; `lanes` of a row lie side by side, or `sums` are taken in turn. The next batch is requested while the current one
// is in flight, across rounds too, and the first before the operand has arrived.
static inline number product_staged(const Share *s, State *state, uint m, uint lanes, uint sums, bool fits, uint stay,
    uint stays, bool own) {
    __global const uint *restrict slices = s->windows + WINDOW(s, m)[2];
    const uint step = SIZE / lanes, turns = (s->rows + step - 1) / step;
    const Places p = { slices[0], stay > 0 ? slices[0] + stay : 0, stays, HOLE(s, m, fits), read_once() };
    slices += WARP;
    uint at = slices[0], end = slices[1];
    number sum[2 * DEPTH_RESIDENT], x[DEPTH_RESIDENT];
#pragma unroll
    for (uint k = 0; k < sums; k++) {
        sum[k] = ZERO;
    }
    Entries b, ahead;
    fetch_entries(&b, s, &p, at, end);
#if LACUNA_NVIDIA
    if (lanes == 1) { // all in one round; two batches have up to twice as many lanes
        const uint other = sums > DEPTH_RESIDENT ? DEPTH_RESIDENT : 0;
        open_window(s, state, m, fits);
        while (at < end) {
            fetch_entries(&ahead, s, &p, at + 32 * DEPTH_RESIDENT, end);
            fetch_operands(x, &b, s, state, fits);
            add_entries(sum, sums, &b, x, fits);
            if (at + 32 * DEPTH_RESIDENT >= end) {
                break;
            }
            at += 64 * DEPTH_RESIDENT;
            fetch_entries(&b, s, &p, at, end);
            fetch_operands(x, &ahead, s, state, fits);
            add_entries(sum + other, sums, &ahead, x, fits);
        }
        return sum_of_lanes(sum, sums);
    }
    uint next = turns > 1 ? WARPS : 0, next_at = slices[next], next_end = slices[next + 1];
    open_window(s, state, m, fits);
    for (uint turn = 0; turn < turns;) {
        at += 32 * DEPTH_RESIDENT;
        const bool done = at >= end;
        if (done) {
            turn += 1;
            at = next_at;
            end = turn < turns ? next_end : 0;
            next = (turn + 1 < turns ? turn + 1 : turn) * WARPS;
            next_at = turn < turns ? slices[next] : 0;
            next_end = turn < turns ? slices[next + 1] : 0;
        }
        fetch_entries(&ahead, s, &p, at, end);
        fetch_operands(x, &b, s, state, fits);
        add_entries(sum, sums, &b, x, fits);
        if (done) {
            keep_row(s, lanes, turn - 1, sum[0]);
            sum[0] = ZERO;
        }
        b = ahead;
    }
#else
    open_window(s, state, m, fits);
    for (uint turn = 0; turn < turns; turn++) {
        at = slices[turn * WARPS];
        end = slices[turn * WARPS + 1];
        sum[0] = ZERO;
        for (; at < end; at += 32 * DEPTH_RESIDENT) {
            fetch_entries(&b, s, &p, at, end);
            fetch_operands(x, &b, s, state, fits);
            add_entries(sum, sums, &b, x, fits);
        }
        if (lanes > 1) {
            keep_row(s, lanes, turn, sum[0]);
        }
    }
#endif
    if (lanes == 1) {
        return sum_of_lanes(sum, sums);
    }
    BARRIER();
    return own ? s->rows_at[ITEM] : ZERO;
}

// The same for compressed rows of one lane as stored. All work-items call it.
static inline number product_rows_resident(const Share *s, State *state, uint m, bool fits, bool own) {
    __global const ulong *words = MATRIX(s->p, m);
    __global const uint *restrict row_ptr = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS]) + s->first + s->way;
    __global const uint *restrict columns = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS + 1]);
    __global const number *restrict values = (__global const number *)(s->p.fixed + words[MATRIX_ARGUMENTS + 2]);
    const uint start = own ? row_ptr[ITEM * WAYS] : 0, end = own ? row_ptr[ITEM * WAYS + 1] : 0;
    const uint low = open_window(s, state, m, fits);
    return row_entries(s, state, fits, low, columns, values, start, end);
}

// Entries in registers: their columns, counted from the window, two in each register.
#define SET_COLUMN(column, e, c) column[(e) / 2] = (e) % 2 ? column[(e) / 2] | (c) << 16 : (c)
#define GET_COLUMN(column, e) (((e) % 2 ? column[(e) / 2] >> 16 : column[(e) / 2]) & 0xffffu)

// Loads the entries of the work-item's row, up to `most`, for a matrix of one lane; returns their number.
static inline uint open_row(const Share *s, uint m, uint most, bool own, uint *column, number *a) {
    __global const ulong *words = MATRIX(s->p, m);
    __global const uint *restrict row_ptr = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS]);
    __global const uint *restrict columns = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS + 1]);
    __global const number *restrict values = (__global const number *)(s->p.fixed + words[MATRIX_ARGUMENTS + 2]);
    const uint low = ONE_GROUP ? 0 : WINDOW(s, m)[0], hole = HOLE(s, m, true);
    const uint start = own ? row_ptr[ROW(ITEM)] : 0, count = own ? row_ptr[ROW(ITEM) + 1] - start : 0;
#pragma unroll
    for (uint e = 0; e < most; e++) {
        uint c = e < count ? columns[start + e] - low : hole & 0xffffu;
        SET_COLUMN(column, e, c);
        a[e] = e < count ? values[start + e] : NO_VALUE;
    }
    return count;
}
// The same for entries in slices; one round over all rows.
static inline uint open_staged(const Share *s, uint m, uint lanes, uint most, uint turn, uint *column, number *a) {
    __global const uint *restrict slice = s->windows + WINDOW(s, m)[2] + turn * WARPS + WARP;
    const bool any = turn * (SIZE / lanes) < s->rows;
    const uint at = any ? slice[0] : 0, end = any ? slice[1] : 0, hole = HOLE(s, m, true);
    uint count = 0;
#pragma unroll
    for (uint e = 0; e < most; e++) {
        const uint place = at + 32 * e + WARP_LANE;
        const uint c = at + 32 * e < end ? s->columns[place] : hole;
        count += c != hole;
        a[e] = c != hole ? s->values[place] : NO_VALUE;
        SET_COLUMN(column, e, c & 0xffffu);
    }
    return count;
}
// The sum of the entries kept in registers.
static inline number kept_lane(const Share *s, uint most, uint count, const uint *column, const number *a) {
    number sum = ZERO, x[64];
#pragma unroll
    for (uint e = 0; e < most; e++) {
        x[e] = !LACUNA_COMPLEX || e < count ? s->window[GET_COLUMN(column, e)] : ZERO;
    }
#pragma unroll
    for (uint e = 0; e < most; e++) {
        sum = !LACUNA_COMPLEX || e < count ? multiply_add(a[e], x[e], sum) : sum;
    }
    return sum;
}
