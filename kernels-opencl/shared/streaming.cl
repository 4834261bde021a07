// The counterpart of resident.cl for systems whose vectors do not fit registers: a warp takes a segment, eight rows for
// each lane, or shares it with LACUNA_SHARE - 1 others if there are more warps than segments.
//
// Formula: as resident.cl. Lane l of share h of a segment holds the rows l + 32 h, and every LACUNA_SHARE * 32 further
// on: the first levels of a canonical sum stay within a lane, the next go between warps, the others between lanes.
// Bytes moved per row: the entries of the matrix; each vector that an operation reads or writes, once; the operand of a
// product once, from cache if columns are near.
// Launch shape: work-groups of LACUNA_SIZE work-items, as many as the device runs at once; each takes consecutive
// segments, or for shorter vectors consecutive runs of rows, one row for each work-item.
// Many sums are exchanged in two steps: one warp of one work-group sums 256 segments, then every work-group sums the
// results.
// Assumes: NVIDIA's compiler; all work-groups run at once; at most 65536 segments.

#define SHARE LACUNA_SHARE
// Rows of a lane, and the distance between them.
#define PER (8u / SHARE)
#define STEP (32u * SHARE)
#define ROWS _Pragma("unroll") for (uint r = 0; r < PER; r++)
#define LIVE(r) (base + STEP * (r) < n)
// The first row of a lane in a unit: a share of a segment.
#define BASE(unit) ((unit) / SHARE * SEGMENT + (unit) % SHARE * 32u + WARP_LANE)
#define FENCE() __asm__ volatile("fence.acq_rel.gpu;" ::: "memory")
// For the sums of chunks what PIECES, SPREAD and ROOM are for those of segments.
#define UPPER_PIECES LACUNA_UPPER_PIECES
#define UPPER_SPREAD LACUNA_UPPER_SPREAD
#define UPPER_ROOM (32u * UPPER_PIECES)

// The share of a work-group in an operation over shorter vectors of `n` rows, which computes no sums: whole runs of
// `run` rows.
static inline Share shorter(const Share *s, uint n, uint run) {
    Share t = *s;
    const ulong runs = n / run + (n % run != 0), group = get_group_id(0), groups = get_num_groups(0);
    t.n = n;
    t.first = min((uint)(runs * group / groups) * run, n);
    t.rows = min((uint)(runs * (group + 1) / groups) * run, n) - t.first;
    return t;
}

// Loads two columns from column `j` on: `count` rows, `step` apart. They are widened where they are used, so that
// nothing waits for them before.
static inline void fetch_pair(GATHERED at, ulong stride, uint j, uint columns, uint base, uint n, uint count,
    uint step, Fetched *a, Fetched *b) {
    GATHERED left = COLUMN(at, j * stride);
    GATHERED right = COLUMN(at, (j + 1) * stride);
#pragma unroll
    for (uint r = 0; r < count; r++) {
        a[r] = FETCH(left, step * r, base + step * r < n && j < columns);
    }
#pragma unroll
    for (uint r = 0; r < count; r++) {
        b[r] = FETCH(right, step * r, base + step * r < n && j + 1 < columns);
    }
}

// w -+ V h for the rows of a unit.
static inline void combine_streaming(const Share *s, GATHERED v, ulong stride, __local const number *h,
    uint columns, bool add, uint unit, number *w) {
    const uint n = s->n, base = BASE(unit);
    GATHERED at = BEHIND(v, base);
    Fetched a[PER], b[PER];
    fetch_pair(at, stride, 0, columns, base, n, PER, STEP, a, b);
    for (uint j = 0; j < columns; j += 2) {
        Fetched c[PER], d[PER];
        fetch_pair(at, stride, j + 2, columns, base, n, PER, STEP, c, d);
        number p = add ? h[j] : -h[j], q = j + 1 < columns ? (add ? h[j + 1] : -h[j + 1]) : ZERO;
        if (!is_zero(p)) {
            ROWS w[r] = multiply_add(p, FETCHED(at, a[r]), w[r]);
        }
        if (!is_zero(q)) {
            ROWS w[r] = multiply_add(q, FETCHED(at, b[r]), w[r]);
        }
        ROWS a[r] = c[r];
        ROWS b[r] = d[r];
    }
}

// Stores what a lane's rows of a unit add to a sum, for the next exchange; if units are segments, the sum itself.
static inline void keep_sum(const Share *s, uint sum, uint unit, const number *e, bool m) {
    const uint at = sum * s->mine + unit / SHARE - s->from;
#if LACUNA_SHARE == 1
    const number total = warp_sum(e, m);
    if (WARP_LANE == 0) {
        s->got[at] = total;
    }
#else
    s->rows_at[(at * SHARE + unit % SHARE) * 32 + WARP_LANE] = PER == 4
        ? join(m, join(m, e[0], e[2 % PER]), join(m, e[1 % PER], e[3 % PER])) : join(m, e[0], e[1 % PER]);
#endif
}

// conj(v_j) . w for a segment, for the pairs of columns that belong to part `part` of `parts`.
static inline void project_streaming(const Share *s, GATHERED v, ulong stride, uint slot, uint columns,
    uint part, uint parts, uint segment, GATHERED x) {
    const uint n = s->n, base = segment * SEGMENT + WARP_LANE;
    GATHERED at = BEHIND(v, base);
    number w[8];
    Fetched a[8], b[8];
#pragma unroll
    for (uint r = 0; r < 8; r++) {
        w[r] = base + 32 * r < n ? GET(x, base + 32 * r) : ZERO;
    }
    fetch_pair(at, stride, 2 * part, columns, base, n, 8, 32, a, b);
    for (uint j = 2 * part; j < columns; j += 2 * parts) {
        Fetched c[8], d[8];
        fetch_pair(at, stride, j + 2 * parts, columns, base, n, 8, 32, c, d);
#pragma unroll
        for (uint k = 0; k < 2; k++) {
            number e[8];
            if (j + k < columns) {
#pragma unroll
                for (uint r = 0; r < 8; r++) {
                    e[r] = base + 32 * r < n ? dot_term(FETCHED(at, k == 0 ? a[r] : b[r]), w[r]) : ZERO;
                }
                const number sum = warp_sum(e, false);
                if (WARP_LANE == 0) {
                    s->got[(slot + j + k) * s->mine + segment - s->from] = sum;
                }
            }
        }
#pragma unroll
        for (uint r = 0; r < 8; r++) {
            a[r] = c[r];
            b[r] = d[r];
        }
    }
}

// Publishes the sums of this work-group's segments, after what it wrote to operands. The first `kept` sums are those of
// `keep_sum`.
static inline __global ulong *show_sums(const Share *s, State *state, uint dots, uint kept, uint maxima) {
    state->epoch += 1;
    __global ulong *words = half_of(s, state->epoch);
    BARRIER();
#if LACUNA_SHARE > 1
    for (uint p = WARP; p < kept * s->mine; p += WARPS) {
        __local const number *parts = s->rows_at + p * SHARE * 32 + WARP_LANE;
        const bool m = MAXIMUM(maxima, p / s->mine);
        number sum = SHARE == 4 ? join(m, join(m, parts[0], parts[64 % STEP]), join(m, parts[32], parts[96 % STEP]))
            : join(m, parts[0], parts[32]);
#pragma unroll
        for (uint d = 16; d > 0; d /= 2) {
            sum = join(m, sum, across(sum, d));
        }
        if (WARP_LANE == 0) {
            s->got[p] = sum;
        }
    }
    BARRIER();
#endif
    if (state->dirty && ITEM < dots * s->mine) {
        FENCE();
    }
    for (uint p = ITEM; p < dots * s->mine; p += SIZE) {
        uint d = p / s->mine, i = p - d * s->mine;
        put_number(words, d * ROOM + s->from + i, s->got[p], state->epoch);
    }
    return words;
}

// `count` warps have received what they waited for: makes it visible to all work-items, with what all work-groups wrote
// to operands before.
static inline void collected(State *state, uint count) {
    if (state->dirty && WARP < count) {
        FENCE();
    }
    BARRIER();
    state->dirty = false;
    state->reads = 0;
}

// Waits for the sums of all groups and puts them in `work`.
static inline void collect_streaming(const Share *s, State *state, uint dots, uint kept, uint maxima) {
    __global ulong *words = show_sums(s, state, dots, kept, maxima), *upper = words + s->upper;
    const uint group = get_group_id(0), groups = get_num_groups(0), chunks = LACUNA_CHUNKS;
    for (uint u = group + groups * WARP; u < dots * chunks; u += groups * WARPS) {
        number sum;
        collect_chunk(s, words, state->epoch, u / chunks, 1, u % chunks, &sum, maxima);
        if (WARP_LANE == 0) {
            if (state->dirty) {
                FENCE();
            }
            put_number(upper, u / chunks * UPPER_ROOM + u % chunks, sum, state->epoch);
        }
    }
    for (uint d = WARP; d < dots; d += WARPS) {
        number e[8];
        bool there;
        do {
            there = true;
#pragma unroll
            for (uint k = 0; k < UPPER_PIECES; k++) {
                e[k] = NOTHING;
                if (WARP_LANE + 32 * k < chunks) {
                    there &= get_number(upper, d * UPPER_ROOM + WARP_LANE + 32 * k, state->epoch, &e[k]);
                }
            }
        } while (!there);
        __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory");
        const number sum = pair_sum(e, UPPER_PIECES, UPPER_SPREAD, MAXIMUM(maxima, d));
        if (WARP_LANE == 0) {
            s->work[d] = sum;
        }
    }
    collected(state, dots);
}

// The same for few sums: every work-group waits for all of them, and `work` holds them chunk by chunk.
static inline void collect_few(const Share *s, State *state, uint dots, uint kept, uint maxima) {
    __global ulong *words = show_sums(s, state, dots, kept, maxima);
    if (WARP < dots * LACUNA_CHUNKS) {
        number sum;
        collect_chunk(s, words, state->epoch, WARP / LACUNA_CHUNKS, 1, WARP % LACUNA_CHUNKS, &sum, maxima);
        if (WARP_LANE == 0) {
            s->work[WARP] = sum;
        }
    }
    collected(state, dots * LACUNA_CHUNKS);
}
