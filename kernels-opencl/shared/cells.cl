// Cells and control: formulas, tests, small dense problems, and the choice of the next operation; see `core/cells.rs`.
//
// Formula: the instructions of `after` of the operation that has ended, then of `before` of the next one, and of every
// operation without vectors in between.
// Bytes moved: the cells that an instruction names. Launch shape: one work-item runs instructions, in the launch that
// computed the sums; `advance` alone is one work-group.
// Assumes: the layout of `crates/engine/src/ir/encode`, whose constants precede this text.

// The buffers of a program. Cells are in local memory if `is_resident`, else in global memory.
typedef struct {
    __global uchar *arena;
    __global const uchar *restrict fixed;
    __global const uint *restrict table;
    __global const ulong *restrict names;
    __global number *global_cells;
    __local number *local_cells;
    __local ulong *control;
    __global real *history;
    uint first;
    uint cell_count;
    bool is_resident;
} Place;

// Word `field` of the record of operation `op`.
#define OP(p, op, field) ((p).table[(op) * LACUNA_OP_WORDS + (field)])
// The address of a vector. `names` holds: the index of the bases, the index of the matrices, then a byte offset for
// each vector; offset and stride for each basis; LACUNA_MATRIX_WORDS for each matrix.
#define VECTOR(p, v) vector_at((p).arena, (p).names[2 + (v)])
// The same for a vector that is known at compile time to be narrow or not.
#define STORED(p, v, is_narrow) vector_of((p).arena, (p).names[2 + (v)], is_narrow)
#define BASIS(p, b) ((p).names + (p).names[0] + 2 * (ulong)(b))
#define MATRIX(p, m) ((p).names + (p).names[1] + LACUNA_MATRIX_WORDS * (ulong)(m))

static inline number cell(const Place *p, uint c) {
    return p->is_resident ? p->local_cells[c - p->first] : p->global_cells[c];
}
static inline void set_cell(const Place *p, uint c, number value) {
    if (p->is_resident) {
        p->local_cells[c - p->first] = value;
    } else {
        p->global_cells[c] = value;
    }
}

static inline bool holds(const Place *p, uint test, uint a, uint b) {
    switch (test) {
        case LACUNA_TEST_ALWAYS: return true;
        case LACUNA_TEST_LESS_EQUAL: return RE(cell(p, a)) <= RE(cell(p, b));
        case LACUNA_TEST_GREATER: return RE(cell(p, a)) > RE(cell(p, b));
        case LACUNA_TEST_NOT_POSITIVE: return !(RE(cell(p, a)) > (real)0);
        case LACUNA_TEST_NOT_FINITE: return !is_finite(cell(p, a));
        default: return is_zero(cell(p, a));
    }
}

static inline void end(__local ulong *control, uint reason) {
    control[LACUNA_CONTROL_REASON] = reason;
    control[LACUNA_CONTROL_SECTION] = LACUNA_SECTION_STOPPED;
}
static inline void stop(__local ulong *control, uint reason, bool soft) {
    if (control[LACUNA_CONTROL_CONFIRMS] && control[LACUNA_CONTROL_SECTION] == LACUNA_SECTION_EACH) {
        control[LACUNA_CONTROL_PENDING] = 1 + (ulong)reason;
        control[LACUNA_CONTROL_SOFT] = soft;
        control[LACUNA_CONTROL_LEFT] = 1;
    } else {
        end(control, reason);
    }
}
static inline bool halted(__local const ulong *control) {
    return control[LACUNA_CONTROL_LEFT] || control[LACUNA_CONTROL_SECTION] == LACUNA_SECTION_STOPPED;
}

static inline void record(const Place *p, real value) {
    ulong stride = p->control[LACUNA_CONTROL_STRIDE], iteration = p->control[LACUNA_CONTROL_ITERATIONS];
    if (stride > 0 && iteration % stride == 0) {
        ulong at = min(iteration / stride, p->control[LACUNA_CONTROL_HISTORY]);
        if (at < p->control[LACUNA_CONTROL_CAPACITY]) {
            if (p->history) {
                p->history[at] = value;
            }
            p->control[LACUNA_CONTROL_HISTORY] = at + 1;
        }
    }
}

// Whether rr >= shrink * last, as if computed without rounding.
static inline bool no_progress(real rr, real shrink, real last) {
#if LACUNA_REAL_BITS == 64
    return rr >= shrink * last;
#elif defined(cl_khr_fp64)
    return (double)rr >= (double)shrink * (double)last;
#else
    real product = shrink * last;
    return rr > product || (rr == product && fma(shrink, last, -product) <= (real)0);
#endif
}

static inline void confirm(const Place *p, uint rr_cell, uint target, uint last, uint shrink) {
    __local ulong *control = p->control;
    real rr = RE(cell(p, rr_cell));
    if (control[LACUNA_CONTROL_ITERATIONS] == 0) {
        record(p, rr);
        control[LACUNA_CONTROL_RECURRENCE] = REAL_BITS(rr);
    }
    control[LACUNA_CONTROL_CONFIRMED] = REAL_BITS(rr);
    ulong pending = control[LACUNA_CONTROL_PENDING];
    bool soft = control[LACUNA_CONTROL_SOFT] != 0;
    control[LACUNA_CONTROL_PENDING] = 0;
    if (!isfinite(rr)) {
        end(control, LACUNA_REASON_NOT_FINITE);
    } else if (rr <= RE(cell(p, target))) {
        end(control, LACUNA_REASON_CONVERGED);
    } else if (pending && !soft) {
        end(control, (uint)(pending - 1));
    } else if (control[LACUNA_CONTROL_ITERATIONS] >= control[LACUNA_CONTROL_LIMIT]) {
        end(control, LACUNA_REASON_LIMIT);
    } else if (no_progress(rr, RE(cell(p, shrink)), RE(cell(p, last)))) {
        end(control, pending ? (uint)(pending - 1) : LACUNA_REASON_STAGNATED);
    } else {
        control[LACUNA_CONTROL_RESTARTS] += 1;
    }
    set_cell(p, last, cell(p, rr_cell));
}

// (a, b) <- (c' a + s' b, c b - s a) for the rotations so far, then a new one that zeroes the last entry of column j.
static inline void rotate_column(const Place *p, __global const uint *w) {
    uint m = w[LACUNA_INSTR_DST], rotations = w[LACUNA_INSTR_B], g = w[LACUNA_INSTR_C], j = w[LACUNA_INSTR_F];
    uint column = w[LACUNA_INSTR_A] + j * (m + 1);
    number a = cell(p, column);
    for (uint i = 0; i < j; i++) {
        number c = cell(p, rotations + 2 * i), s = cell(p, rotations + 2 * i + 1);
        number b = cell(p, column + i + 1);
        set_cell(p, column + i, multiply_add(conjugate(s), b, times(conjugate(c), a)));
        a = multiply_add(-s, a, times(c, b));
    }
    number b = cell(p, column + j + 1);
    number norm = root(dot_term(a, a) + dot_term(b, b));
    number c = ONE, s = ZERO;
    if (!is_zero(norm)) {
        c = quotient(a, norm);
        s = quotient(b, norm);
    }
    set_cell(p, rotations + 2 * j, c);
    set_cell(p, rotations + 2 * j + 1, s);
    set_cell(p, column + j, norm);
    set_cell(p, column + j + 1, ZERO);
    number gj = cell(p, g + j);
    set_cell(p, g + j, times(conjugate(c), gj));
    number last = times(-s, gj);
    set_cell(p, g + j + 1, last);
    set_cell(p, w[LACUNA_INSTR_G], dot_term(last, last));
    set_cell(p, w[LACUNA_INSTR_E], from_real((real)(j + 1)));
}

static inline void back_substitute(const Place *p, __global const uint *w) {
    uint m = w[LACUNA_INSTR_DST], h = w[LACUNA_INSTR_A], g = w[LACUNA_INSTR_C], y = w[LACUNA_INSTR_D];
    real in_use = RE(cell(p, w[LACUNA_INSTR_E]));
    uint used = in_use >= (real)m ? m : in_use >= (real)1 ? (uint)in_use : 0;
    for (uint i = used; i < m; i++) {
        set_cell(p, y + i, ZERO);
    }
    real largest = (real)0;
    for (uint i = 0; i < used; i++) {
        real diagonal = RE(cell(p, h + i * (m + 1) + i));
        largest = diagonal > largest ? diagonal : largest;
    }
    real negligible = largest * (real)(LACUNA_REAL_BITS == 64 ? 0x1p-48 : 0x1p-19f);
    for (uint i = used; i-- > 0;) {
        number sum = cell(p, g + i);
        // Eight loads are issued before the first is used.
        for (uint j = i + 1; j < used; j += 8) {
            number a[8], b[8];
            for (uint k = 0; k < 8; k++) {
                uint at = min(j + k, used - 1);
                a[k] = cell(p, h + at * (m + 1) + i);
                b[k] = cell(p, y + at);
            }
            for (uint k = 0; k < 8; k++) {
                sum = j + k < used ? multiply_add(-a[k], b[k], sum) : sum;
            }
        }
        number diagonal = cell(p, h + i * (m + 1) + i);
        set_cell(p, y + i, RE(diagonal) <= negligible ? ZERO : quotient(sum, diagonal));
    }
    set_cell(p, w[LACUNA_INSTR_E], ZERO);
}

// Evaluates instructions in order; returns whether the operation continues. It does not once an instruction has halted
// the section or skipped the operation; the remaining instructions are then skipped too.
static inline bool evaluate(const Place *p, uint at, uint count) {
    for (uint i = 0; i < count; i++) {
        __global const uint *w = p->table + at + i * LACUNA_INSTR_WORDS;
        uint code = w[LACUNA_INSTR_CODE], dst = w[LACUNA_INSTR_DST];
        if (code < LACUNA_CODE_STOP) {
            number a = cell(p, w[LACUNA_INSTR_A]), value = a;
            if (code == LACUNA_CODE_NEG) {
                value = -a;
            } else if (code == LACUNA_CODE_CONJ) {
                value = conjugate(a);
            } else if (code == LACUNA_CODE_SQRT) {
                value = root(a);
            } else if (code != LACUNA_CODE_COPY) {
                number b = cell(p, w[LACUNA_INSTR_B]);
                switch (code) {
                    case LACUNA_CODE_ADD: value = a + b; break;
                    case LACUNA_CODE_SUB: value = a - b; break;
                    case LACUNA_CODE_MUL: value = times(a, b); break;
                    case LACUNA_CODE_DIV: value = quotient(a, b); break;
                    default: value = RE(a) >= RE(b) ? a : b; break;
                }
            }
            set_cell(p, dst, value);
            continue;
        }
        switch (code) {
            case LACUNA_CODE_STOP:
                if (holds(p, dst, w[LACUNA_INSTR_A], w[LACUNA_INSTR_B])) {
                    stop(p->control, w[LACUNA_INSTR_C], w[LACUNA_INSTR_D] != 0);
                }
                break;
            case LACUNA_CODE_ONLY_IF:
                if (!holds(p, dst, w[LACUNA_INSTR_A], w[LACUNA_INSTR_B])) {
                    return false;
                }
                break;
            case LACUNA_CODE_LEAVE:
                if (holds(p, dst, w[LACUNA_INSTR_A], w[LACUNA_INSTR_B])) {
                    p->control[LACUNA_CONTROL_LEFT] = 1;
                }
                break;
            case LACUNA_CODE_COUNT: {
                number value = cell(p, dst);
                p->control[LACUNA_CONTROL_ITERATIONS] += 1;
                p->control[LACUNA_CONTROL_RECURRENCE] = REAL_BITS(RE(value));
                if (!is_finite(value)) {
                    stop(p->control, LACUNA_REASON_NOT_FINITE, false);
                } else if (p->control[LACUNA_CONTROL_ITERATIONS] >= p->control[LACUNA_CONTROL_LIMIT]) {
                    stop(p->control, LACUNA_REASON_LIMIT, false);
                }
                record(p, RE(value));
                break;
            }
            case LACUNA_CODE_CONFIRM:
                confirm(p, dst, w[LACUNA_INSTR_A], w[LACUNA_INSTR_B], w[LACUNA_INSTR_C]);
                break;
            case LACUNA_CODE_ROTATE: rotate_column(p, w); break;
            default: back_substitute(p, w); break;
        }
        if (halted(p->control)) {
            return false;
        }
    }
    return true;
}

// Whether an operation has only instructions.
static inline bool is_scalar(const Place *p, uint op) {
    return OP(*p, op, LACUNA_OP_KIND) == LACUNA_KIND_SWEEP && OP(*p, op, LACUNA_OP_UPDATE_COUNT) == 0
        && OP(*p, op, LACUNA_OP_DOT_COUNT) == 0;
}

// Where to begin: with the instructions after the operation, with those before it, or with what follows a halt.
#define MODE_DONE 0u
#define MODE_ENTER 1u
#define MODE_CANCEL 2u
// Maximum operations without vectors in one call.
#define MAX_SCALAR_OPS 4096u

#ifndef LACUNA_RARE
#define LACUNA_RARE inline
#endif
// Runs instructions from an operation up to the next one that has vectors. Called by one work-item.
static LACUNA_RARE void advance_from(const Place *p, uint op, uint mode) {
    __local ulong *control = p->control;
    bool entered = mode == MODE_ENTER;
    for (uint ops_left = MAX_SCALAR_OPS;; ops_left--) {
        bool goes_on = !halted(control);
        if (entered) {
            goes_on = evaluate(p, OP(*p, op, LACUNA_OP_BEFORE), OP(*p, op, LACUNA_OP_BEFORE_COUNT));
            if (goes_on && (ops_left == 0 || !is_scalar(p, op))) {
                control[LACUNA_CONTROL_OP] = op;
                return;
            }
        }
        if (goes_on) {
            evaluate(p, OP(*p, op, LACUNA_OP_AFTER), OP(*p, op, LACUNA_OP_AFTER_COUNT));
        }
        entered = true;
        if (!halted(control) && !OP(*p, op, LACUNA_OP_LAST)) {
            op += 1;
            continue;
        }
        bool left = control[LACUNA_CONTROL_LEFT] != 0;
        bool stopped = control[LACUNA_CONTROL_SECTION] == LACUNA_SECTION_STOPPED;
        uint section = OP(*p, op, left ? LACUNA_OP_NEXT_LEFT : LACUNA_OP_NEXT);
        control[LACUNA_CONTROL_LEFT] = 0;
        if (stopped || section == LACUNA_SECTION_STOPPED) {
            control[LACUNA_CONTROL_SECTION] = LACUNA_SECTION_STOPPED;
            control[LACUNA_CONTROL_OP] = LACUNA_NONE;
            return;
        }
        control[LACUNA_CONTROL_SECTION] = section;
        op = OP(*p, op, left ? LACUNA_OP_NEXT_LEFT_OP : LACUNA_OP_NEXT_OP);
    }
}

// Stops a program on behalf of the caller; returns whether that halts the current section.
static inline bool cancel(__local ulong *control) {
    if (control[LACUNA_CONTROL_SECTION] == LACUNA_SECTION_EACH) {
        stop(control, LACUNA_REASON_CANCELLED, false);
        return true;
    }
    control[LACUNA_CONTROL_PENDING] = 1 + LACUNA_REASON_CANCELLED;
    control[LACUNA_CONTROL_SOFT] = 0;
    return false;
}

#if !LACUNA_PRELUDE
// Starts a program (MODE_ENTER), continues one with only instructions left (MODE_DONE), or stops it on behalf of the
// caller (MODE_CANCEL).
__kernel void KERNEL(advance)(__global uchar *arena, __global const uchar *restrict fixed,
    __global const uint *restrict table, __global const ulong *restrict names, __global number *cells,
    __global ulong *control, __global real *history, const uint mode, __local ulong *local_control) {
    if (get_global_id(0) != 0 || control[LACUNA_CONTROL_OP] == LACUNA_NONE) {
        return;
    }
    for (uint i = 0; i < LACUNA_CONTROL_WORDS; i++) {
        local_control[i] = control[i];
    }
    Place p = { arena, fixed, table, names, cells, 0, local_control, history, 0, 0, false };
    uint op = (uint)local_control[LACUNA_CONTROL_OP];
    if (mode == MODE_CANCEL) {
        if (cancel(local_control)) {
            advance_from(&p, op, MODE_CANCEL);
        }
    } else if (mode == MODE_ENTER || is_scalar(&p, op)) {
        advance_from(&p, op, mode);
    }
    for (uint i = 0; i < LACUNA_CONTROL_WORDS; i++) {
        control[i] = local_control[i];
    }
}
#endif
