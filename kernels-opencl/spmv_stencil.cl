// The product with coefficients on a grid, and the pass on the rows just computed.
//
// Formula: y[i] <- sum over neighbours k, by increasing distance, of coefficient[k] * x[i + distance[k]] with fused
// multiply-add; neighbours outside the grid are skipped. Then the pass, with y in slot 0.
// Bytes moved per row: none for the matrix; x once in all, y once; then what the pass moves.
// Launch shape: as sweep.cl; points are numbered with x fastest, so that loads are coalesced.
// Assumes: the words of `crates/formats/src/storage/stencil.rs`; the pass does not write x.

typedef struct {
    int nx, ny, nz;
    uint neighbours;
    // The coefficients of a position if each has its own, otherwise 0.
    uint of_position;
    // The steps to each neighbour in x, y and z, and its distance.
    __global const int4 *restrict steps;
    __global const number *restrict coefficients;
    SOURCE x;
} Stencil;

static inline Stencil stencil_of(const Place *p, uint op) {
    __global const ulong *m = MATRIX(*p, OP(*p, op, LACUNA_OP_MATRIX));
    __global const int4 *words = (__global const int4 *)(p->fixed + m[MATRIX_ARGUMENTS]);
    const int4 size = words[0];
    Stencil a = { size.x, size.y, size.z, (uint)size.w, (uint)words[1].x, words + GRID_HEAD,
        (__global const number *)(p->fixed + m[MATRIX_ARGUMENTS + 1]), VECTOR(*p, OP(*p, op, LACUNA_OP_X)) };
    return a;
}

static inline void stencil_rows(const Stencil *a, uint segment, uint count, __local number *slots) {
    const uint base = segment * SEGMENT;
    const int nx = a->nx, ny = a->ny, nz = a->nz;
    __global const int4 *restrict steps = a->steps;
    SOURCE x = a->x;
#if LACUNA_CPU
    EACH(e, count) { slots[e] = ZERO; }
    for (uint first = 0; first < count;) {
        // A piece of a line, whose points have the same coefficients.
        const uint line = (base + first) / (uint)nx;
        const int at = (int)(base + first - line * (uint)nx), py = (int)(line % (uint)ny), pz = (int)(line / (uint)ny);
        const uint px = POSITION(at, nx);
        const int end = a->of_position == 0 || px == 2 ? nx : px == 0 ? 1 : nx - 1;
        const int length = min(end - at, (int)(count - first));
        const uint position = px + 3u * (POSITION(py, ny) + 3u * POSITION(pz, nz));
        __global const number *restrict coefficients = a->coefficients + a->of_position * position;
        __local number *sums = slots + first;
        for (uint k = 0; k < a->neighbours; k++) {
            const int4 step = steps[k];
            if (ON_GRID(py, step.y, ny) && ON_GRID(pz, step.z, nz)) {
                const number c = coefficients[k];
                SOURCE xs = BEHIND(x, (long)base + first + step.w);
                const int from = clamp(-step.x - at, 0, length), to = clamp(nx - step.x - at, from, length);
                for (int i = from; i < to; i++) {
                    sums[i] = multiply_add(c, GET(xs, i), sums[i]);
                }
            }
        }
        first += (uint)length;
    }
#else
    if (a->of_position) {
        EACH(e, count) {
            slots[e] = e < count ? stencil_row(steps - GRID_HEAD, a->coefficients, x, base + e) : ZERO;
        }
        return;
    }
    number sum[ELEMENTS] = { ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO };
    int px[ELEMENTS], py[ELEMENTS], pz[ELEMENTS];
    EACH(e, count) {
        const uint line = (base + e) / (uint)nx;
        px[MINE(e)] = (int)(base + e - line * (uint)nx);
        py[MINE(e)] = (int)(line % (uint)ny);
        pz[MINE(e)] = (int)(line / (uint)ny);
    }
    for (uint k = 0; k < a->neighbours; k++) {
        const int4 step = steps[k];
        const number c = a->coefficients[k];
        SOURCE xs = BEHIND(x, (long)base + step.w);
        bool on[ELEMENTS];
        number b[ELEMENTS];
        EACH(e, count) {
            on[MINE(e)] = e < count && ON_GRID(px[MINE(e)], step.x, nx) && ON_GRID(py[MINE(e)], step.y, ny)
                && ON_GRID(pz[MINE(e)], step.z, nz);
            b[MINE(e)] = on[MINE(e)] ? GET(xs, e) : ZERO;
        }
        EACH(e, count) {
            const number next = multiply_add(c, b[MINE(e)], sum[MINE(e)]);
            sum[MINE(e)] = on[MINE(e)] ? next : sum[MINE(e)];
        }
    }
    EACH(e, count) { slots[e] = sum[MINE(e)]; }
#endif
}

static inline void run_spmv_stencil(const Place *p, uint op, uint group, uint groups, uint slot_cap,
    __local number *slots, __local number *work, __local number *local_memory, __global number *partials) {
    const Stencil a = stencil_of(p, op);
    OVER_SEGMENTS(if (count > 0) { stencil_rows(&a, segment, count, mine); })
}

__kernel LACUNA_GROUP void KERNEL(spmv_stencil)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    run_spmv_stencil(p, op, group, groups, slot_cap, slots, work, local_memory, partials);
    END_OPERATION();
}
