// Products of rows whose columns follow from the row, with streamed vectors: diagonals, coefficients on a grid, and
// interpolation between grids.
//
// Formula: as spmv_dia.cl, spmv_stencil.cl and spmv_interpolation.cl, to the bit.
// Bytes moved per row: a value for each diagonal, none on grids; the operand from cache if columns are near.
// Launch shape: as streaming.cl; the pass that uses a product computes it, unit by unit, or row by row.
// Assumes: the layouts of `crates/formats/src/storage/dia.rs`, `stencil.rs` and `interpolation.rs`; the pass does not
// write the operand.

// Diagonals as stored: the rows of a unit. The next diagonal is loaded while the current one is multiplied.
#define DIA_ROWS 64u
#define DIA_PLACE(row, step) ((row) / DIA_ROWS * (step) + (row) % DIA_ROWS)
typedef struct {
    number a[PER], v[PER];
    uint within;
} Diagonal;
static inline void fetch_diagonal(Diagonal *d, __global const number *values, uint step, int offset, uint base, uint n,
    uint cols, GATHERED x, ulong policy) {
    d->within = 0;
    ROWS {
        const uint column = base + STEP * r + (uint)offset; // a negative column also exceeds `cols`
        const bool within = LIVE(r) && column < cols;
        d->a[r] = number_once(values + DIA_PLACE(STEP * r, step), within, policy);
        d->v[r] = within ? GET(x, column) : ZERO;
        d->within |= (uint)within << r;
    }
}
static inline void multiply_diagonals(const Share *s, uint m, GATHERED x, uint unit, number *y) {
    __global const ulong *words = MATRIX(s->p, m) + MATRIX_ARGUMENTS;
    const uint diagonals = (uint)words[0], cols = (uint)words[1];
    const uint n = s->n, base = BASE(unit);
    __global const int *restrict offsets = (__global const int *)(s->p.fixed + words[2]);
    __global const int *restrict starts = offsets + diagonals;
    const uint step = (uint)starts[diagonals];
    __global const number *values = (__global const number *)(s->p.fixed + words[3]);
    values += (ulong)(unit / SHARE) * DIA_PLACE(SEGMENT, step) + DIA_PLACE(unit % SHARE * 32, step) + WARP_LANE;
    // If diagonals are stored one after the other, each stands for two.
    const ulong policy = step == DIA_ROWS ? read_twice() : read_once();
    ROWS y[r] = ZERO;
    if (diagonals == 0) {
        return;
    }
    Diagonal d;
    fetch_diagonal(&d, values + starts[0], step, offsets[0], base, n, cols, x, policy);
#pragma unroll 2
    for (uint k = 0; k < diagonals; k++) {
        Diagonal ahead;
        const uint next = min(k + 1, diagonals - 1);
        fetch_diagonal(&ahead, values + starts[next], step, offsets[next], base, k + 1 < diagonals ? n : 0, cols, x,
            policy);
        ROWS y[r] = d.within >> r & 1 ? multiply_add(d.a[r], d.v[r], y[r]) : y[r];
        d = ahead;
    }
}

// The same coefficients all over a grid, see spmv_stencil.cl: the rows of a unit. The next neighbour is loaded while
// the current one is added.
typedef struct {
    int px[PER], py[PER], pz[PER];
} Points;
typedef struct {
    number c, v[PER];
    uint within;
} Neighbour;
static inline void fetch_neighbour(Neighbour *d, const Points *p, int4 size, int4 step, number c, uint base, uint n,
    GATHERED x) {
    d->c = c;
    d->within = 0;
    ROWS {
        const bool within = LIVE(r) && ON_GRID(p->px[r], step.x, size.x) && ON_GRID(p->py[r], step.y, size.y)
            && ON_GRID(p->pz[r], step.z, size.z);
        d->v[r] = within ? GET(x, base + STEP * r + (uint)step.w) : ZERO;
        d->within |= (uint)within << r;
    }
}
static inline void multiply_stencil(const Share *s, uint m, GATHERED x, uint unit, number *y) {
    __global const ulong *words = MATRIX(s->p, m) + MATRIX_ARGUMENTS;
    __global const int4 *restrict grid = (__global const int4 *)(s->p.fixed + words[0]);
    __global const number *restrict coefficients = (__global const number *)(s->p.fixed + words[1]);
    const int4 size = grid[0];
    const uint n = s->n, base = BASE(unit), neighbours = (uint)size.w;
    Points p;
    ROWS {
        const uint row = base + STEP * r, line = row / (uint)size.x;
        p.px[r] = (int)(row - line * (uint)size.x);
        p.py[r] = (int)(line % (uint)size.y);
        p.pz[r] = (int)(line / (uint)size.y);
        y[r] = ZERO;
    }
    Neighbour d;
    fetch_neighbour(&d, &p, size, grid[GRID_HEAD], coefficients[0], base, n, x);
#pragma unroll 2
    for (uint k = 0; k < neighbours; k++) {
        Neighbour ahead;
        const uint next = min(k + 1, neighbours - 1);
        fetch_neighbour(&ahead, &p, size, grid[GRID_HEAD + next], coefficients[next], base, k + 1 < neighbours ? n : 0, x);
        ROWS y[r] = d.within >> r & 1 ? multiply_add(d.c, d.v[r], y[r]) : y[r];
        d = ahead;
    }
}

// A row of matrix `m`, a stencil or an interpolation.
static inline number multiply_stencil_row(const Share *s, uint m, GATHERED x, uint row) {
    __global const ulong *words = MATRIX(s->p, m) + MATRIX_ARGUMENTS;
    return stencil_row((__global const int4 *)(s->p.fixed + words[0]),
        (__global const number *)(s->p.fixed + words[1]), x, row);
}
static inline number multiply_interpolation_row(const Share *s, uint m, GATHERED x, uint row) {
    __global const ulong *words = MATRIX(s->p, m) + MATRIX_ARGUMENTS;
    return interpolation_row((__global const int4 *)(s->p.fixed + words[0]), x, row);
}
