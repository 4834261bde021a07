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

#if !LACUNA_STREAMING
// What a group has of the `n` rows of an operation over shorter vectors: those of its own rows that are among them. Half of
// `shared` is as long, and `window` as wide, as for the longest vectors: `n` stays theirs.
static inline Share shorter(const Share *s, uint n, uint run) {
    Share t = *s;
    const uint first = s->first + s->way, end = min(n, s->first + s->mine * SEGMENT);
    t.rows = end > first ? (end - first + WAYS - 1) / WAYS : 0;
    return t;
}
#endif

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
// Of matrix `m` and this group: the first row multiplied, how many from there on, where its slices are listed.
#define WINDOW(s, m) ((s)->windows + 3 * ((m) * get_num_groups(0) + get_group_id(0)))

// Brings what work-items from `from` on take of the rows that this group multiplies, the window of matrix `m`, to local
// memory.
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
        low = WINDOW(s, m)[0];
    }
#endif
    return low;
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
