// Sums of single rows of matrices that follow from a grid and are not stored: coefficients of neighbours, and linear
// interpolation between a grid and a coarser one.
//
// Formula: stencil_row: sum over neighbours k, by increasing distance, of coefficient[k] * x[row + distance[k]];
// interpolation_row: sum over the points that the row reads, by increasing number, of weight * x, weights being
// products of 1 and 1/2; both with fused multiply-add from 0, skipping what is outside the grid.
// Bytes moved per row: none for the matrix; x from cache.
// Launch shape: any; one row for each call.
// Assumes: the words of `crates/formats/src/storage/stencil.rs` and `interpolation.rs`; points are numbered with x
// fastest.

// Groups of four words before the neighbours.
#define GRID_HEAD 2
// Neighbours in flight.
#if LACUNA_COMPLEX
#define GRID_DEPTH 4u
#else
#define GRID_DEPTH 9u
#endif
// Whether a step along an axis stays on the grid.
#define ON_GRID(at, step, side) ((uint)((at) + (step)) < (uint)(side))
// First, inner or last along an axis.
#define POSITION(at, side) ((at) == 0 ? 0u : (at) + 1 == (side) ? 2u : 1u)

static inline number stencil_row(__global const int4 *restrict grid, __global const number *restrict coefficients,
    GATHERED x, uint row) {
    const int4 size = grid[0];
    const uint line = row / (uint)size.x, neighbours = (uint)size.w;
    const int px = (int)(row - line * (uint)size.x), py = (int)(line % (uint)size.y), pz = (int)(line / (uint)size.y);
    const uint position = POSITION(px, size.x) + 3u * (POSITION(py, size.y) + 3u * POSITION(pz, size.z));
    // Of this position, if each has its own.
    __global const number *restrict own = coefficients + (uint)grid[1].x * position;
    __global const int4 *restrict steps = grid + GRID_HEAD;
    number sum = ZERO;
    for (uint first = 0; first < neighbours; first += GRID_DEPTH) {
        bool on[GRID_DEPTH];
        number c[GRID_DEPTH], v[GRID_DEPTH];
#pragma unroll
        for (uint e = 0; e < GRID_DEPTH; e++) {
            const uint k = min(first + e, neighbours - 1);
            const int4 step = steps[k];
            on[e] = first + e < neighbours && ON_GRID(px, step.x, size.x) && ON_GRID(py, step.y, size.y)
                && ON_GRID(pz, step.z, size.z);
            c[e] = own[k];
            v[e] = on[e] ? GET(x, row + (uint)step.w) : ZERO;
        }
#pragma unroll
        for (uint e = 0; e < GRID_DEPTH; e++) {
            sum = on[e] ? multiply_add(c[e], v[e], sum) : sum;
        }
    }
    return sum;
}

// The points of an axis that a point reads: the first, how many, and which of them have weight 1/2.
typedef struct {
    uint first, count, halves;
} Taps;
static inline Taps taps_of(uint at, uint from, bool coarsened, bool restricts) {
    Taps t = { at, 1, 0 };
    if (coarsened && restricts) {
        t.first = 2 * at;
        t.count = 2 * at + 2 < from ? 3 : 2;
        t.halves = 5;
    } else if (coarsened && at % 2 == 1) {
        t.first = at / 2;
    } else if (coarsened) {
        t.first = at < 2 ? 0 : at / 2 - 1;
        t.count = min(at / 2 + 1, from) - t.first;
        t.halves = 3;
    }
    return t;
}
#define TAP_WEIGHT(t, k) ((t).halves >> (k) & 1 ? (real)0.5 : (real)1)

static inline number interpolation_row(__global const int4 *restrict grids, GATHERED x, uint row) {
    const int4 to = grids[0], from = grids[1];
    const uint line = row / (uint)to.x;
    const bool restricts = to.w != 0;
    const Taps tx = taps_of(row - line * (uint)to.x, (uint)from.x, from.w & 1, restricts);
    const Taps ty = taps_of(line % (uint)to.y, (uint)from.y, from.w >> 1 & 1, restricts);
    const Taps tz = taps_of(line / (uint)to.y, (uint)from.z, from.w >> 2 & 1, restricts);
    number sum = ZERO;
    for (uint k = 0; k < tz.count; k++) {
        const uint start = tx.first + (uint)from.x * (ty.first + (uint)from.y * (tz.first + k));
        number v[9];
#pragma unroll
        for (uint e = 0; e < 9; e++) {
            const bool there = e / 3 < ty.count && e % 3 < tx.count;
            v[e] = there ? GET(x, start + (uint)from.x * (e / 3) + e % 3) : ZERO;
        }
#pragma unroll
        for (uint e = 0; e < 9; e++) {
            const bool there = e / 3 < ty.count && e % 3 < tx.count;
            const real weight = TAP_WEIGHT(tx, e % 3) * TAP_WEIGHT(ty, e / 3) * TAP_WEIGHT(tz, k);
            sum = there ? multiply_add(from_real(weight), v[e], sum) : sum;
        }
    }
    return sum;
}
