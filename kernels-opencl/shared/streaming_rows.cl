// Products of rows with column indices, with streamed vectors.
//
// Formula: as spmv_csr.cl, spmv_bcsr.cl, spmv_sell.cl and spmv_hyb.cl, to the bit.
// Bytes moved per row: a column for each run of entries, and their values, padded to the longest row of 32 lanes; the
// operand from cache if columns are near.
// Launch shape: as streaming.cl; every warp takes slices, so that all have work even with few segments.
// Assumes: the layout of `crates/gpu/src/slices.rs`, or of the format itself; coordinates in pieces are added to
// vectors that are not narrow, since a row is rounded once.

// Entries that a work-item has in flight.
#if LACUNA_COMPLEX
#define DEPTH_STREAMING 4
#else
#define DEPTH_STREAMING 8
#endif

// Products: the rows of this work-group of matrix `m` times `x`, into `y` in global memory. Every warp takes rows, so
// that all have work even with few segments. All work-items call them.

// The sum of one of the `lanes` lanes of a row.
static inline number lane_sum(__global const uint *restrict columns, __global const number *restrict values,
    GATHERED x, uint k, uint end, uint lanes) {
    number sum = ZERO;
    for (; k < end; k += DEPTH_STREAMING * lanes) {
        uint c[DEPTH_STREAMING];
        number a[DEPTH_STREAMING], v[DEPTH_STREAMING];
#pragma unroll
        for (uint e = 0; e < DEPTH_STREAMING; e++) {
            bool there = k + e * lanes < end;
            c[e] = there ? columns[k + e * lanes] : 0;
            a[e] = there ? values[k + e * lanes] : ZERO;
        }
#pragma unroll
        for (uint e = 0; e < DEPTH_STREAMING; e++) {
            v[e] = k + e * lanes < end ? GET(x, c[e]) : ZERO;
        }
#pragma unroll
        for (uint e = 0; e < DEPTH_STREAMING; e++) {
            sum = k + e * lanes < end ? multiply_add(a[e], v[e], sum) : sum;
        }
    }
    return sum;
}
static inline number halved(number sum, uint lanes) {
    __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    for (uint d = lanes / 2; d > 0; d /= 2) {
        sum = sum + down(sum, d);
    }
    return sum;
}

// Compressed rows as stored, without long rows.
static inline void product_rows(const Share *s, uint m, uint lanes, GATHERED x, TARGET y) {
    __global const ulong *words = MATRIX(s->p, m);
    __global const uint *restrict row_ptr = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS]);
    __global const uint *restrict columns = (__global const uint *)(s->p.fixed + words[MATRIX_ARGUMENTS + 1]);
    __global const number *restrict values = (__global const number *)(s->p.fixed + words[MATRIX_ARGUMENTS + 2]);
    const uint part = ITEM % lanes, step = SIZE / lanes, last = s->first + s->rows;
    for (uint first = s->first; first < last; first += step) {
        const uint i = first + ITEM / lanes;
        number sum = i < last ? lane_sum(columns, values, x, row_ptr[i] + part, row_ptr[i + 1], lanes) : ZERO;
        if (lanes > 1) {
            sum = halved(sum, lanes);
        }
        if (part == 0 && i < last) {
            PUT(y, i, sum);
        }
    }
    BARRIER();
}

// A batch of runs of entries: the first column and `run` values of each.
#define RUNS_STREAMING 16
typedef struct {
    uint column[DEPTH_STREAMING];
    number value[RUNS_STREAMING];
} Batch;
// Equally many for each row of a lane; values are `slim` if they are in the narrower type.
static inline void fetch_batch(Batch *b, __global const uint *columns, __global const number *values,
    __global const narrow *slims, bool slim, uint at, uint end, uint depth, uint rows, uint run, ulong policy) {
#pragma unroll
    for (uint e = 0; e < depth; e++) {
        const bool there = at + e / rows < end;
        const ulong place = (ulong)at * rows + e;
        b->column[e] = index_once(columns + place * 32, there, policy);
#pragma unroll
        for (uint c = 0; c < run; c++) {
            b->value[e * run + c] = slim ? widened(narrow_once(slims + (place * run + c) * 32, there, policy))
                : number_once(values + (place * run + c) * 32, there, policy);
        }
    }
}

// Slices of 32 lanes, `lanes` of them for each row, or with `twice` as many rows, two for each lane; `row_of` if rows
// are reordered. Takes every `step`-th slice from `slice` on, before `last`. The next batch is loaded while the current
// one waits for its operand.
#define ROWS_STREAMING 2u
static inline uint slices_end(const Share *s, uint height) {
    return (s->first + s->rows + height - 1) / height;
}
static inline void rows_of_slice(uint *row, __global const uint *restrict row_of, bool sorted, uint first, uint rows) {
#pragma unroll
    for (uint r = 0; r < rows; r++) {
        row[r] = sorted ? row_of[first + 32 * r] : first + 32 * r;
    }
}
static inline void multiply_slices(const Share *s, __global const uint *restrict slice_ptr,
    __global const uint *restrict columns, __global const number *restrict values,
    __global const uint *restrict row_of, bool sorted, uint lanes, bool twice, uint run, bool slim, uint slice, uint last, uint step,
    GATHERED x, TARGET y) {
    // As many as leave registers for two batches.
    const bool few = run == 1 || run * sizeof(number) <= 8;
    const uint depth = few ? DEPTH_STREAMING : DEPTH_STREAMING / 2, rows = twice ? ROWS_STREAMING : 1, height = rows * 32 / lanes;
    const ulong policy = read_once();
    columns += WARP_LANE;
    __global const narrow *slims = (__global const narrow *)values + WARP_LANE;
    values += WARP_LANE;
    const uint part = WARP_LANE % lanes, mine = WARP_LANE / lanes;
    if (slice < last) {
        uint at = slice_ptr[slice], end = slice_ptr[slice + 1];
        uint next = min(slice + step, last - 1), next_at = slice_ptr[next], next_end = slice_ptr[next + 1];
        uint row[ROWS_STREAMING], next_row[ROWS_STREAMING];
        rows_of_slice(row, row_of, sorted, slice * height + mine, rows);
        rows_of_slice(next_row, row_of, sorted, next * height + mine, rows);
        Batch b;
        fetch_batch(&b, columns, values, slims, slim, at, end, depth, rows, run, policy);
        number sum[ROWS_STREAMING] = { ZERO, ZERO };
        for (;;) {
            number v[RUNS_STREAMING];
#pragma unroll
            for (uint e = 0; e < depth; e++) {
                const bool there = b.column[e] != LACUNA_NONE;
                GATHERED from = BEHIND(x, there ? b.column[e] : 0);
#pragma unroll
                for (uint c = 0; c < run; c++) {
                    v[e * run + c] = there ? GET(from, c) : ZERO;
                }
            }
            uint to[ROWS_STREAMING];
#pragma unroll
            for (uint r = 0; r < rows; r++) {
                to[r] = row[r];
            }
            at += depth / rows;
            const bool done = at >= end;
            if (done) {
                slice += step;
                at = next_at;
                end = next_end;
#pragma unroll
                for (uint r = 0; r < rows; r++) {
                    row[r] = next_row[r];
                }
                next = min(slice + step, last - 1);
                next_at = slice_ptr[next];
                next_end = slice_ptr[next + 1];
                rows_of_slice(next_row, row_of, sorted, next * height + mine, rows);
            }
            Batch ahead;
            fetch_batch(&ahead, columns, values, slims, slim, at, slice < last ? end : 0, depth, rows, run, policy);
#pragma unroll
            for (uint e = 0; e < depth; e++) {
#pragma unroll
                for (uint c = 0; c < run; c++) {
                    const number more = multiply_add(b.value[e * run + c], v[e * run + c], sum[e % rows]);
                    sum[e % rows] = b.column[e] != LACUNA_NONE ? more : sum[e % rows];
                }
            }
            if (done) {
                for (uint d = lanes / 2; d > 0; d /= 2) {
                    sum[0] = sum[0] + down(sum[0], d);
                }
#pragma unroll
                for (uint r = 0; r < rows; r++) {
                    if (part == 0 && to[r] < s->n) {
                        PUT(y, to[r], sum[r]);
                    }
                    sum[r] = ZERO;
                }
                if (slice >= last) {
                    break;
                }
            }
            b = ahead;
        }
    }
}

// The head of a matrix in slices: see `crates/gpu/src/slices.rs`.
#define SLICES_HEAD 6u

// The pieces of this work-group's long rows: of coordinates, see `spmv_hyb.cl`, or of compressed rows, see
// `spmv_csr.cl`.
#define APART_COORDINATES 1u
#define APART_ROWS 2u
typedef struct {
    __global const uint *rows;     // the long rows
    __global const uint *long_ptr; // the first piece of each
    __global const uint *starts, *ends;
    __global const uint *columns;
    __global const number *values;
    uint first, last;              // rows of this work-group
} Pieces;
static inline Pieces pieces_of(const Share *s, uint m, uint apart) {
    __global const ulong *words = MATRIX(s->p, m) + MATRIX_ARGUMENTS;
    Pieces p;
    if (apart == APART_ROWS) {
        __global const uint *list = s->windows + s->windows[SLICES_HEAD * m + 4];
        const uint longs = list[0];
        p.rows = list + 2 + get_num_groups(0);
        p.long_ptr = p.rows + longs;
        p.starts = p.long_ptr + longs + 1;
        p.ends = p.starts + p.long_ptr[longs];
        p.first = list[1 + get_group_id(0)];
        p.last = list[2 + get_group_id(0)];
    } else {
        __global const uint *head = (__global const uint *)(s->p.fixed + words[0]);
        const uint longs = head[1], slices = s->n / 32 + (s->n % 32 != 0);
        __global const uint *of_segment = head + 3 + slices + 1 + s->segments + 1;
        p.rows = of_segment + s->segments + 1;
        p.long_ptr = p.rows + longs;
        p.starts = p.long_ptr + longs + 1;
        p.ends = p.starts + 1;
        p.first = of_segment[s->from];
        p.last = of_segment[s->from + s->mine];
    }
    p.columns = (__global const uint *)(s->p.fixed + words[apart == APART_ROWS ? 1 : 2]);
    p.values = (__global const number *)(s->p.fixed + words[apart == APART_ROWS ? 2 : 3]);
    return p;
}
// Sums them into `rows_at`, one warp for each piece.
static inline void sum_pieces(const Share *s, const Pieces *p, GATHERED x) {
    const uint first = p->long_ptr[p->first], last = p->long_ptr[p->last];
    for (uint q = first + WARP; q < last; q += WARPS) {
        const uint at = p->starts[q] + WARP_LANE;
        const number sum = halved(lane_sum(p->columns, p->values, x, at, p->ends[q], 32), 32);
        if (WARP_LANE == 0) {
            s->rows_at[q - first] = sum;
        }
    }
}
// Adds these sums to their rows; coordinates are only a part of a row.
static inline void add_pieces(const Share *s, const Pieces *p, bool part, TARGET y) {
    const uint first = p->long_ptr[p->first];
    for (uint l = p->first + ITEM; l < p->last; l += SIZE) {
        number rest = s->rows_at[p->long_ptr[l] - first];
        for (uint q = p->long_ptr[l] + 1; q < p->long_ptr[l + 1]; q++) {
            rest = rest + s->rows_at[q - first];
        }
        const uint row = p->rows[l];
        PUT(y, row, part ? GET(y, row) + rest : rest);
    }
    BARRIER();
}

// Rows of any format, repacked in slices; `apart` is the part that is in no slice.
static inline void product_slices(const Share *s, uint m, uint lanes, bool twice, uint run, bool slim, bool sorted, uint apart,
    GATHERED x, TARGET y) {
    __global const uint *restrict head = s->windows + SLICES_HEAD * m;
    Pieces p;
    if (apart) {
        p = pieces_of(s, m, apart);
        sum_pieces(s, &p, x);
    }
    const uint height = (twice ? ROWS_STREAMING : 1) * 32 / lanes;
    uint slice = s->first / height + WARP, last = slices_end(s, height), step = WARPS;
    if (sorted) { // rows of very different lengths: divided by cost
        __global const uint *shares = s->windows + head[5] + (WARPS + 1) * get_group_id(0) + WARP;
        slice = shares[0];
        last = shares[1];
        step = 1;
    }
    multiply_slices(s, s->windows + head[0], s->columns + head[1], s->values + head[2], s->windows + head[3], sorted,
        lanes, twice, run, slim, slice, last, step, x, y);
    BARRIER();
    if (apart) {
        add_pieces(s, &p, apart == APART_COORDINATES, y);
    }
}

// Sliced ELLPACK as stored.
static inline void product_sell(const Share *s, uint m, GATHERED x, TARGET y) {
    __global const ulong *words = MATRIX(s->p, m) + MATRIX_ARGUMENTS;
    multiply_slices(s, (__global const uint *)(s->p.fixed + words[1]), (__global const uint *)(s->p.fixed + words[3]),
        (__global const number *)(s->p.fixed + words[4]), (__global const uint *)(s->p.fixed + words[2]), words[0] != 0,
        1, false, 1, false, s->first / 32 + WARP, slices_end(s, 32), WARPS, x, y);
    BARRIER();
}
