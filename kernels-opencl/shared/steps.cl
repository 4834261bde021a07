// What the first work-item of a work-group does between operations: the rotations of GMRES and the count of iterations.
//
// Formula: CODE_ROTATE and CODE_COUNT of cells.cl, to the bit.
// Bytes moved: local memory only, and a residual for the history. Launch shape: one work-item of each work-group.
// Assumes: cells and the control block are in local memory.

// Applies the rotations so far to column `j`, see `rotate_column` in cells.cl, into `to`; returns its last entry but
// one.
static inline number turn_resident(__local number *local_cells, uint m, uint h, uint rotations, uint j, __local number *to) {
    __local number *column = local_cells + h + j * (m + 1), *turns = local_cells + rotations;
    number a = column[0];
    for (uint i = 0; i < j; i += 4) {
        number c[4], s[4], b[4];
#pragma unroll
        for (uint k = 0; k < 4; k++) {
            uint at = min(i + k, j - 1);
            c[k] = turns[2 * at];
            s[k] = turns[2 * at + 1];
            b[k] = column[at + 1];
        }
#pragma unroll
        for (uint k = 0; k < 4; k++) {
            if (i + k < j) {
                to[i + k] = multiply_add(conjugate(s[k]), b[k], times(conjugate(c[k]), a));
                a = multiply_add(-s[k], a, times(c[k], b[k]));
            }
        }
    }
    return a;
}
// Indices in `got` after the few sums of an operation: one work-item applies the rotations there while the others
// combine columns, which still read the old column.
#define TURNED 4
#define TURNED_COLUMN 5
#define TURNS_AHEAD (ITEM == SIZE - 32)
// Replaces the column by the rotated one.
static inline void keep_turned(const Share *s, __local number *column, uint j) {
    for (uint i = ITEM; i < j; i += SIZE) {
        column[i] = s->got[TURNED_COLUMN + i];
    }
}
// Adds a new rotation that zeroes the last entry `b` of column `j`, whose entry before it is `a`.
static inline number rotate_resident(__local number *local_cells, uint m, uint h, uint rotations, uint g, uint used, uint j,
    uint rr, number a, number b) {
    __local number *column = local_cells + h + j * (m + 1), *turns = local_cells + rotations;
    number gj = local_cells[g + j];
    number norm = root(dot_term(a, a) + dot_term(b, b));
    number c = ONE, s = ZERO;
    if (!is_zero(norm)) {
        c = quotient(a, norm);
        s = quotient(b, norm);
    }
    turns[2 * j] = c;
    turns[2 * j + 1] = s;
    column[j] = norm;
    column[j + 1] = ZERO;
    local_cells[g + j] = times(conjugate(c), gj);
    number last = times(-s, gj);
    local_cells[g + j + 1] = last;
    number square = dot_term(last, last);
    local_cells[rr] = square;
    local_cells[used] = from_real((real)(j + 1));
    return square;
}

// Adds consecutive cells to consecutive cells.
static inline void add_run(__local number *to, __local const number *from, uint count) {
    for (uint i = 0; i < count; i++) {
        to[i] = to[i] + from[i];
    }
}

// Values needed to count an iteration, read before its residual is known.
typedef struct {
    ulong iterations, at; // at: index in the history, if it is recorded
    bool limit;
} Count;
static inline Count count_ahead(const Share *s) {
    __local const ulong *control = s->p.control;
    const ulong stride = control[LACUNA_CONTROL_STRIDE], iterations = control[LACUNA_CONTROL_ITERATIONS] + 1;
    Count c;
    c.iterations = iterations;
    c.limit = iterations >= control[LACUNA_CONTROL_LIMIT];
    c.at = LACUNA_NONE;
    if (stride == 1 || (stride > 0 && iterations % stride == 0)) {
        ulong at = min(stride == 1 ? iterations : iterations / stride, control[LACUNA_CONTROL_HISTORY]);
        c.at = at < control[LACUNA_CONTROL_CAPACITY] ? at : LACUNA_NONE;
    }
    return c;
}
// Counts one iteration; returns whether that halts the section. See CODE_COUNT in cells.cl.
static inline bool count_resident(const Share *s, Count c, number rr) {
    __local ulong *control = s->p.control;
    control[LACUNA_CONTROL_ITERATIONS] = c.iterations;
    control[LACUNA_CONTROL_RECURRENCE] = REAL_BITS(RE(rr));
    if (c.at != LACUNA_NONE) {
        if (s->p.history) {
            s->p.history[c.at] = RE(rr);
        }
        control[LACUNA_CONTROL_HISTORY] = c.at + 1;
    }
    bool finite = is_finite(rr);
    if (finite && !c.limit) {
        return false;
    }
    stop(control, finite ? LACUNA_REASON_LIMIT : LACUNA_REASON_NOT_FINITE, false);
    return true;
}
