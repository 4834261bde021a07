// A whole program in one launch, generated for it: the functions that its operations call, see `crates/gpu/src/write`.
//
// Formula: each operation as in sweep.cl, spmv_csr.cl and basis.cl, to the bit.
// Bytes moved per row: the entries of the matrix and the columns of a basis in use; other vectors stay in registers.
// The operand of a product is exchanged once: through global memory in words of value and tag if several work-groups
// run, through local memory if one does.
// Launch shape: one work-group of LACUNA_SIZE work-items, a row each; or several that each own whole segments, or every
// LACUNA_WAYS-th row of one, in which case the last levels of a segment's sum are summed with those of all segments.
// The rows of an operand are exchanged as words whose tag marks them as written. Each work-group evaluates all
// formulas.
// Assumes: several work-groups only if the device runs them all at once; a work-group has at most as many rows as
// work-items; at most 1024 segments; LACUNA_MINE, the maximum segments of a work-group, is 1 if LACUNA_WAYS is more.

#if !LACUNA_STREAMING
// The share of a work-group in an operation over shorter vectors of `n` rows: those of its own rows below `n`. `shared`
// and `window` stay sized for the longest vectors, so `n` remains theirs.
static inline Share shorter(const Share *s, uint n, uint run) {
    Share t = *s;
    const uint first = s->first + s->way, end = min(n, s->first + s->mine * SEGMENT);
    t.rows = end > first ? (end - first + WAYS - 1) / WAYS : 0;
    return t;
}
#endif

// Publishes the rows of vector `v` to all work-items that multiply it; each brings its own row.
static inline void show(const Share *s, State *state, uint v, bool own, number value) {
    if (state->reads >= (ONE_GROUP ? 1u : 2u)) {
        barrier_of_groups(s, state);
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
// For matrix `m` and this work-group: first row of the operand window, its width, start of its list of slices.
#define WINDOW(s, m) ((s)->windows + 3 * ((m) * get_num_groups(0) + get_group_id(0)))

// Loads the part that work-items from `from` on take of the operand window of matrix `m` into local memory.
static inline void fetch_window(const Share *s, State *state, uint m, uint from) {
    state->reads += 1;
    state->open = m;
#if !ONE_GROUP
    __global const ulong *words = SHOWN(s, state);
    __global const uint *restrict window = WINDOW(s, m);
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
    if (ITEM == from) {
        s->window[width] = ONE; // for places without an entry, see resident_rows.cl
    }
#endif
}

// Work-items beyond the first warp, which waits for sums, prefetch the operand of the next operation.
static inline void fetch_ahead(const Share *s, State *state, uint m) {
#if LACUNA_NVIDIA && !ONE_GROUP
    if (SIZE > 32) {
        fetch_window(s, state, m, 32);
    }
#endif
}

// Makes the window of matrix `m` visible to all work-items, which all call it; returns its first row.
static inline uint open_window(const Share *s, State *state, uint m, bool fits) {
    uint low = 0;
    if (state->open != m || ONE_GROUP || !fits) {
        if (state->busy || ONE_GROUP || !fits) {
            BARRIER();
        }
        if (fits && !ONE_GROUP) {
            fetch_window(s, state, m, 0);
            BARRIER();
        } else {
            state->reads += 1;
        }
    }
    state->busy = true;
#if !ONE_GROUP
    if (fits) {
        low = WINDOW(s, m)[0];
    }
#endif
    return low;
}

// w -+ V h for the work-item's row. Weights of zero, and those beyond the last column, change nothing.
#if LACUNA_COMPLEX
#define BATCH_OF_COLUMNS 8
#else
#define BATCH_OF_COLUMNS 16
#endif
static inline number combine_row(const Share *s, GATHERED v, ulong stride, __local const number *h,
    uint columns, bool add, number w) {
    GATHERED at = BEHIND(v, ROW(ITEM));
    number sum = w;
    for (uint j = 0; j < columns; j += BATCH_OF_COLUMNS) {
        number value[BATCH_OF_COLUMNS];
#pragma unroll
        for (uint c = 0; c < BATCH_OF_COLUMNS; c++) {
            value[c] = GET(COLUMN(at, min(j + c, columns - 1) * stride), 0);
        }
#pragma unroll
        for (uint c = 0; c < BATCH_OF_COLUMNS; c++) {
            number weight = j + c < columns ? h[j + c] : ZERO;
            sum = is_zero(weight) ? sum : multiply_add(add ? weight : -weight, value[c], sum);
        }
    }
    return sum;
}
