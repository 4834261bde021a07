// A whole program in one launch, written out for one program: what its operations, see `generate.rs`, are made of.
//
// Formula: operation by operation that of sweep.cl, spmv_csr.cl and basis.cl, to the bit.
// Bytes moved per row: the entries of the matrix and the columns of a basis in use; other vectors stay in registers. The
// operand of a product goes through global memory once: in words of value and tag where several groups run, in local
// memory where one does.
// Launch shape: one group of LACUNA_SIZE work-items, a row each, or several that each own whole segments, or every
// LACUNA_WAYS-th row of one: the last levels of a segment's sum are then made with those of all segments. The rows of an
// operand meet as words whose tag tells that they are there. Each group evaluates all formulas for itself.
// Assumes: several groups only where the device runs them all at once; no more rows of a group than work-items; at most
// 1024 segments; LACUNA_MINE, the most segments of a group, is 1 where LACUNA_WAYS is more.

// Makes the rows of vector `v` known to all who multiply it; each work-item brings its own.
static inline void show(const Share *s, State *state, uint v, bool own, number value) {
    if (state->reads >= (ONE_GROUP ? 1u : 2u)) {
        meet_groups(s, state);
    }
    state->tag += 1;
    state->shown = v;
    state->open = LACUNA_NONE;
    if (own) {
#if ONE_GROUP
        s->window[ITEM] = value;
#else
        put_number(s->shared + (state->tag & 1) * 2 * PARTS * s->n, ROW(ITEM), value, state->tag);
#endif
    }
}

#if ONE_GROUP
#define SHOWN(s, state) 0
#define OPERAND(column) s->window[column]
#else
#define SHOWN(s, state) ((s)->shared + ((state)->tag & 1) * 2 * PARTS * (s)->n)
#define OPERAND(column) s->window[(column) - low]
#endif

// Brings what work-items from `from` on take of the rows that this group multiplies, the window of matrix `m`, to local
// memory.
static inline void fetch_window(const Share *s, State *state, uint m, uint from) {
    state->reads += 1;
    state->open = m;
#if !ONE_GROUP
    __global const ulong *words = SHOWN(s, state);
    __global const uint *restrict window = s->windows + 4 * (m * get_num_groups(0) + get_group_id(0));
    const uint low = window[0], width = window[1];
    for (uint i = ITEM - from; ITEM >= from && i < width; i += 4 * (SIZE - from)) {
        number v[4];
        bool there;
        do {
            there = true;
#pragma unroll
            for (uint k = 0; k < 4; k++) {
                v[k] = ZERO;
                if (i + k * (SIZE - from) < width) {
                    there &= get_number(words, low + i + k * (SIZE - from), state->tag, &v[k]);
                }
            }
        } while (!there);
#pragma unroll
        for (uint k = 0; k < 4; k++) {
            if (i + k * (SIZE - from) < width) {
                s->window[i + k * (SIZE - from)] = v[k];
            }
        }
    }
#endif
}

// Work-items beyond the first warp, which waits for sums, fetch what the next operation multiplies.
static inline void fetch_ahead(const Share *s, State *state, uint m) {
#if LACUNA_NVIDIA && !ONE_GROUP
    if (SIZE > 32) {
        fetch_window(s, state, m, 32);
    }
#endif
}

// Makes the window of matrix `m` seen by all work-items, who all come here; its first row.
static inline uint open_window(const Share *s, State *state, uint m, bool fits) {
    uint low = 0;
    if (state->open != m || ONE_GROUP || !fits) {
        if (state->busy || ONE_GROUP || !fits) {
            MEET();
        }
        if (fits && !ONE_GROUP) {
            fetch_window(s, state, m, 0);
            MEET();
        } else {
            state->reads += 1;
        }
    }
    state->busy = true;
#if !ONE_GROUP
    if (fits) {
        low = s->windows[4 * (m * get_num_groups(0) + get_group_id(0))];
    }
#endif
    return low;
}

// The entries of a row that fall to a lane, in order; x from local memory, or from words where the window does not fit.
static inline number row_lane(const Share *s, const State *state, bool fits, uint low,
    __global const uint *restrict columns, __global const number *restrict values, uint k, uint end, uint lanes) {
#if LACUNA_COMPLEX
#define DEPTH 4
#else
#define DEPTH 8
#endif
    number sum = ZERO;
    for (; k < end; k += DEPTH * lanes) {
        uint column[DEPTH];
        number a[DEPTH], x[DEPTH];
#pragma unroll
        for (uint i = 0; i < DEPTH; i++) {
            bool there = k + i * lanes < end;
            column[i] = there ? columns[k + i * lanes] : 0;
            a[i] = there ? values[k + i * lanes] : ZERO;
        }
#if !ONE_GROUP
        if (!fits) {
            __global const ulong *words = SHOWN(s, state);
            bool all;
            do {
                all = true;
#pragma unroll
                for (uint i = 0; i < DEPTH; i++) {
                    if (k + i * lanes < end) {
                        all &= get_number(words, column[i], state->tag, &x[i]);
                    }
                }
            } while (!all);
        } else
#endif
        {
#pragma unroll
            for (uint i = 0; i < DEPTH; i++) {
                x[i] = k + i * lanes < end ? OPERAND(column[i]) : ZERO;
            }
        }
#pragma unroll
        for (uint i = 0; i < DEPTH; i++) {
            if (k + i * lanes < end) {
                sum = multiply_add(a[i], x[i], sum);
            }
        }
    }
    return sum;
}

// The same where entries lie as they are taken: entry by entry for all work-items; columns count from the window.
static inline number staged_lane(const Share *s, const State *state, bool fits, __global const uint *restrict columns,
    __global const number *restrict values, uint entries) {
    number sum = ZERO;
    for (uint e = 0; e < entries; e += DEPTH) {
        uint column[DEPTH];
        number a[DEPTH], x[DEPTH];
#pragma unroll
        for (uint i = 0; i < DEPTH; i++) {
            bool there = e + i < entries;
            column[i] = there ? columns[(e + i) * SIZE + ITEM] : LACUNA_NONE;
            a[i] = there ? values[(e + i) * SIZE + ITEM] : ZERO;
        }
#if !ONE_GROUP
        if (!fits) {
            __global const ulong *words = SHOWN(s, state);
            bool all;
            do {
                all = true;
#pragma unroll
                for (uint i = 0; i < DEPTH; i++) {
                    if (column[i] != LACUNA_NONE) {
                        all &= get_number(words, column[i], state->tag, &x[i]);
                    }
                }
            } while (!all);
        } else
#endif
        {
#pragma unroll
            for (uint i = 0; i < DEPTH; i++) {
                x[i] = column[i] != LACUNA_NONE ? s->window[column[i]] : ZERO;
            }
        }
#pragma unroll
        for (uint i = 0; i < DEPTH; i++) {
            sum = column[i] != LACUNA_NONE ? multiply_add(a[i], x[i], sum) : sum;
        }
    }
    return sum;
}

// The work-item's row of the product of matrix `m` with what is shown. All work-items come here.
static inline number product_near(const Share *s, State *state, uint m, uint lanes, bool fits, uint steps,
    bool own) {
    __global const ulong *words = MATRIX(s->p, m);
    __global const uint *restrict row_ptr = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS]) + s->first + s->way;
    __global const uint *restrict columns = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS + 1]);
    __global const number *restrict values = (__global const number *)(s->p.fixed + words[MATRIX_ARGUMENTS + 2]);
    __global const uint *restrict window = s->windows + 4 * (m * get_num_groups(0) + get_group_id(0));
    __global const uint *restrict at_columns = s->columns + window[2];
    __global const number *restrict at_values = s->values + window[2];
    const uint entries = window[3];
    if (lanes == 1 && steps > 0) {
        open_window(s, state, m, fits);
        return staged_lane(s, state, fits, at_columns, at_values, entries);
    }
    if (lanes == 1) {
        uint start = own ? row_ptr[ITEM * WAYS] : 0, end = own ? row_ptr[ITEM * WAYS + 1] : 0;
        uint low = open_window(s, state, m, fits);
        return row_lane(s, state, fits, low, columns, values, start, end, 1);
    }
    uint low = open_window(s, state, m, fits);
    const uint part = ITEM % lanes, step = SIZE / lanes;
    for (uint base = 0, turn = 0; base < s->rows; base += step, turn++) {
        uint i = base + ITEM / lanes;
        number sum = ZERO;
        if (steps > 0) {
            uint at = turn * entries * SIZE;
            sum = staged_lane(s, state, fits, at_columns + at, at_values + at, entries);
        } else if (i < s->rows) {
            sum = row_lane(s, state, fits, low, columns, values, row_ptr[i * WAYS] + part, row_ptr[i * WAYS + 1],
                lanes);
        }
#if LACUNA_NVIDIA
        __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory");
        for (uint d = lanes / 2; d > 0; d /= 2) {
            sum = sum + down(sum, d);
        }
        if (part == 0 && i < s->rows) {
            s->rows_at[i] = sum;
        }
#else
        s->work[ITEM] = sum;
        for (uint d = lanes / 2; d > 0; d /= 2) {
            MEET();
            if (part < d) {
                s->work[ITEM] = s->work[ITEM] + s->work[ITEM + d];
            }
        }
        if (part == 0 && i < s->rows) {
            s->rows_at[i] = s->work[ITEM];
        }
        MEET();
#endif
    }
    MEET();
    return own ? s->rows_at[ITEM] : ZERO;
}

// Entries in registers: their columns, which count from the window, two to a register.
#define SET_COLUMN(column, e, c) column[(e) / 2] = (e) % 2 ? column[(e) / 2] | (c) << 16 : (c)
#define GET_COLUMN(column, e) (((e) % 2 ? column[(e) / 2] >> 16 : column[(e) / 2]) & 0xffffu)

// The entries of the work-item's row, up to `most` of them, for a matrix of one lane; how many there are.
static inline uint open_row(const Share *s, uint m, uint most, bool own, uint *column, number *a) {
    __global const ulong *words = MATRIX(s->p, m);
    __global const uint *restrict row_ptr = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS]);
    __global const uint *restrict columns = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS + 1]);
    __global const number *restrict values = (__global const number *)(s->p.fixed + words[MATRIX_ARGUMENTS + 2]);
    const uint low = ONE_GROUP ? 0 : s->windows[4 * (m * get_num_groups(0) + get_group_id(0))];
    const uint start = own ? row_ptr[ROW(ITEM)] : 0, count = own ? row_ptr[ROW(ITEM) + 1] - start : 0;
#pragma unroll
    for (uint e = 0; e < most; e++) {
        uint c = e < count ? columns[start + e] - low : 0;
        SET_COLUMN(column, e, c);
        a[e] = e < count ? values[start + e] : ZERO;
    }
    return count;
}
// The same where entries lie as they are taken; one turn of all rows.
static inline uint open_staged(const Share *s, uint m, uint lanes, uint most, uint turn, uint *column, number *a) {
    __global const uint *restrict window = s->windows + 4 * (m * get_num_groups(0) + get_group_id(0));
    __global const uint *restrict columns = s->columns + window[2];
    __global const number *restrict values = s->values + window[2];
    const uint entries = turn * (SIZE / lanes) < s->rows ? window[3] : 0;
    uint count = 0;
#pragma unroll
    for (uint e = 0; e < most; e++) {
        uint at = (turn * entries + e) * SIZE + ITEM, c = e < entries ? columns[at] : LACUNA_NONE;
        count += c != LACUNA_NONE;
        a[e] = c != LACUNA_NONE ? values[at] : ZERO;
        c = c != LACUNA_NONE ? c : 0;
        SET_COLUMN(column, e, c);
    }
    return count;
}
// The sum of entries in registers.
static inline number kept_lane(const Share *s, uint most, uint count, const uint *column, const number *a) {
    number sum = ZERO, x[64];
#pragma unroll
    for (uint e = 0; e < most; e++) {
        x[e] = s->window[GET_COLUMN(column, e)];
    }
#pragma unroll
    for (uint e = 0; e < most; e++) {
        sum = e < count ? multiply_add(a[e], x[e], sum) : sum;
    }
    return sum;
}
// What a lane has of a row is added up and kept for the work-item of the row.
static inline void keep_row(const Share *s, uint lanes, uint turn, number sum) {
    const uint i = turn * (SIZE / lanes) + ITEM / lanes;
#if LACUNA_NVIDIA
    for (uint d = lanes / 2; d > 0; d /= 2) {
        sum = sum + down(sum, d);
    }
#endif
    if (ITEM % lanes == 0 && i < s->rows) {
        s->rows_at[i] = sum;
    }
}

// w -+ V h of the work-item's row. Weights of zero, and those beyond the last column, change nothing.
#if LACUNA_COMPLEX
#define BATCH_OF_COLUMNS 8
#else
#define BATCH_OF_COLUMNS 16
#endif
static inline number combine_row(const Share *s, __global const uchar *v, ulong stride, __local const number *h,
    uint columns, bool add, number w) {
    __global const uchar *at = v + (ulong)ROW(ITEM) * sizeof(number);
    number sum = w;
    for (uint j = 0; j < columns; j += BATCH_OF_COLUMNS) {
        number value[BATCH_OF_COLUMNS];
#pragma unroll
        for (uint c = 0; c < BATCH_OF_COLUMNS; c++) {
            value[c] = *(__global const number *)(at + min(j + c, columns - 1) * stride);
        }
#pragma unroll
        for (uint c = 0; c < BATCH_OF_COLUMNS; c++) {
            number weight = j + c < columns ? h[j + c] : ZERO;
            sum = is_zero(weight) ? sum : multiply_add(add ? weight : -weight, value[c], sum);
        }
    }
    return sum;
}
