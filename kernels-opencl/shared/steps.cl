// What the first work-item of a group does between operations: rotations of GMRES, and the count of iterations.
//
// Formula: CODE_ROTATE and CODE_COUNT of cells.cl, to the bit.
// Bytes moved: none beyond local memory but a residual for the history. Launch shape: one work-item of each group.
// Assumes: cells and control block in local memory.

// The rotations so far on column `j`, see `rotate_column` in cells.cl, `to` another place; its last entry but one.
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
// Places of `got` behind the few sums of an operation: what one work-item turns while the others combine columns, which
// still read the column as it was.
#define TURNED 4
#define TURNED_COLUMN 5
#define TURNS_AHEAD (ITEM == SIZE - 32)
// The turned column takes the place of the other.
static inline void keep_turned(const Share *s, __local number *column, uint j) {
    for (uint i = ITEM; i < j; i += SIZE) {
        column[i] = s->got[TURNED_COLUMN + i];
    }
}
// And a new rotation that zeroes the last entry `b` of column `j`, of which `a` is the one before.
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

// Cells that follow each other, added to as many others.
static inline void add_run(__local number *to, __local const number *from, uint count) {
    for (uint i = 0; i < count; i++) {
        to[i] = to[i] + from[i];
    }
}

// What counting an iteration needs to know, read before its number is there.
typedef struct {
    ulong iterations, at; // at: the place in the history, where there is one
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
// One iteration is done; whether that halts the section. See CODE_COUNT in cells.cl.
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
