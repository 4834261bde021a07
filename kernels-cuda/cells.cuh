// Cell instructions: what one thread evaluates between sweeps, and the choice of the next operation.
//
// Formula: each operation as in Machine and Control of crates/engine/src/expr/cells.rs, the control flow as in
// Backend::execute. Bytes: the cells that an instruction names. Launch shape: one thread: in a persistent kernel, one
// in every block; in a kernel of one operation, one in the last block to end. Assumes: `layout.h`, generated from
// crates/engine/src/ir/encode/mod.rs; the thread can read and write the table, the cells and the control block, in shared
// or global memory.
#pragma once
#include "layout.h"
#include "scalar.cuh"

// Words of the control block that this backend adds.
#define LACUNA_CONTROL_NEXT 14u   // the next operation, or NONE; before a start: the section to begin with

// Code that is long or rarely run is kept out of line, so that hot code stays in the instruction cache.
#ifdef __CUDACC__
#define LACUNA_RARE __device__ __noinline__
#else
#define LACUNA_RARE inline
#endif

template <typename T> struct RealOf { typedef T type; };
template <typename R> struct RealOf<Complex<R>> { typedef R type; };

LACUNA_FN u64 bits_of(double v) {
#ifdef __CUDACC__
    return (u64)__double_as_longlong(v);
#else
    u64 b;
    __builtin_memcpy(&b, &v, 8);
    return b;
#endif
}
LACUNA_FN u64 bits_of(float v) {
#ifdef __CUDACC__
    return (u64)__float_as_uint(v);
#else
    u32 b;
    __builtin_memcpy(&b, &v, 4);
    return b;
#endif
}

// The table of a program, and the first operation of each section.
struct Flow {
    const u32 *words;
    u32 first[3];
    u32 pad;
};

// Whether a test of cells holds.
template <typename T> LACUNA_FN bool test_holds(const T *cells, u32 test, u32 a, u32 b) {
    switch (test) {
    case LACUNA_TEST_ALWAYS: return true;
    case LACUNA_TEST_LESS_EQUAL: return re_of(cells[a]) <= re_of(cells[b]);
    case LACUNA_TEST_GREATER: return re_of(cells[a]) > re_of(cells[b]);
    case LACUNA_TEST_NOT_POSITIVE: return !(re_of(cells[a]) > 0.0);
    case LACUNA_TEST_NOT_FINITE: return !is_finite(cells[a]);
    default: return is_zero(cells[a]);
    }
}

// The value of a plain instruction.
template <typename T> LACUNA_FN T value_of(u32 code, T u, T v) {
    if (code == LACUNA_CODE_DIV) return quotient(u, v);
    switch (code) {
    case LACUNA_CODE_COPY: return u;
    case LACUNA_CODE_NEG: return neg(u);
    case LACUNA_CODE_CONJ: return conj_of(u);
    case LACUNA_CODE_SQRT: return root(u);
    case LACUNA_CODE_ADD: return add(u, v);
    case LACUNA_CODE_SUB: return sub(u, v);
    case LACUNA_CODE_MUL: return mul(u, v);
    default: return re_of(u) >= re_of(v) ? u : v;
    }
}

template <typename T> struct Machine {
    typedef typename RealOf<T>::type R;
    Flow flow;
    T *cells;
    u64 *control;
    R *history;

    LACUNA_FN u64 &word(u32 at) { return control[at]; }
    LACUNA_FN bool halted() { return word(LACUNA_CONTROL_LEFT) || word(LACUNA_CONTROL_SECTION) == LACUNA_SECTION_STOPPED; }
    LACUNA_FN double re(u32 cell) { return re_of(cells[cell]); }

    LACUNA_FN void end(u32 reason) {
        word(LACUNA_CONTROL_REASON) = reason;
        word(LACUNA_CONTROL_SECTION) = LACUNA_SECTION_STOPPED;
    }
    LACUNA_FN void stop(u32 reason, u32 soft) {
        if (word(LACUNA_CONTROL_CONFIRMS) && word(LACUNA_CONTROL_SECTION) == LACUNA_SECTION_EACH) {
            word(LACUNA_CONTROL_PENDING) = reason + 1;
            word(LACUNA_CONTROL_SOFT) = soft;
            word(LACUNA_CONTROL_LEFT) = 1;
        } else {
            end(reason);
        }
    }
    LACUNA_RARE void record_at(u64 iteration, R value, u64 stride) {
        if (iteration % stride != 0) return;
        place(iteration / stride, value);
    }
    LACUNA_FN void place(u64 at, R value) {
        u64 count = word(LACUNA_CONTROL_HISTORY);
        if (at < count) count = at;
        if (count >= word(LACUNA_CONTROL_CAPACITY)) return;
        history[count] = value;
        word(LACUNA_CONTROL_HISTORY) = count + 1;
    }
    LACUNA_FN void record(u64 iteration, R value) {
        u64 stride = word(LACUNA_CONTROL_STRIDE);
        if (stride == 1)
            place(iteration, value);
        else if (stride != 0)
            record_at(iteration, value, stride);
    }
    LACUNA_RARE void count(u32 cell) { count_value(cells[cell]); }
    LACUNA_RARE void count_value(T value) {
        R rr = R(re_of(value));
        u64 iterations = word(LACUNA_CONTROL_ITERATIONS) + 1;
        word(LACUNA_CONTROL_ITERATIONS) = iterations;
        word(LACUNA_CONTROL_RECURRENCE) = bits_of(rr);
        if (!is_finite(value))
            stop(LACUNA_REASON_NOT_FINITE, 0);
        else if (iterations >= word(LACUNA_CONTROL_LIMIT))
            stop(LACUNA_REASON_LIMIT, 0);
        record(iterations, rr);
    }
    LACUNA_RARE void confirm(u32 rr_cell, u32 target_cell, u32 last_cell, u32 shrink_cell) {
        double rr = re(rr_cell), target = re(target_cell), last = re(last_cell), shrink = re(shrink_cell);
        u64 iterations = word(LACUNA_CONTROL_ITERATIONS);
        if (iterations == 0) record(0, R(rr));
        word(LACUNA_CONTROL_CONFIRMED) = bits_of(R(rr));
        if (iterations == 0) word(LACUNA_CONTROL_RECURRENCE) = bits_of(R(rr));
        u64 pending = word(LACUNA_CONTROL_PENDING), soft = word(LACUNA_CONTROL_SOFT);
        word(LACUNA_CONTROL_PENDING) = 0;
        if (!is_finite(rr))
            end(LACUNA_REASON_NOT_FINITE);
        else if (rr <= target)
            end(LACUNA_REASON_CONVERGED);
        else if (pending && !soft)
            end(u32(pending - 1));
        else if (iterations >= word(LACUNA_CONTROL_LIMIT))
            end(LACUNA_REASON_LIMIT);
        else if (rr >= shrink * last)
            end(pending ? u32(pending - 1) : LACUNA_REASON_STAGNATED);
        else
            word(LACUNA_CONTROL_RESTARTS) += 1;
        cells[last_cell] = cells[rr_cell];
    }
    LACUNA_FN bool holds(u32 test, u32 a, u32 b) { return test_holds(cells, test, a, b); }

    // (a, b) <- (conj(c) a + conj(s) b, c b - s a) down column j, then the rotation that zeroes its last entry.
    LACUNA_RARE void rotate(const u32 *w) {
        u32 m = w[LACUNA_INSTR_DST], j = w[LACUNA_INSTR_F];
        T *column = cells + w[LACUNA_INSTR_A] + j * (m + 1), *rotations = cells + w[LACUNA_INSTR_B];
        T *g = cells + w[LACUNA_INSTR_C];
        T a = column[0];
        // The operands of the next rotation are loaded while this one is computed.
        T c_next = rotations[0], s_next = rotations[1], b_next = column[1];
#pragma unroll 1
        for (u32 i = 0; i < j; i++) {
            T c = c_next, s = s_next, b = b_next;
            if (i + 1 < j) {
                c_next = rotations[2 * i + 2];
                s_next = rotations[2 * i + 3];
                b_next = column[i + 2];
            }
            column[i] = fma_of(conj_of(s), b, mul(conj_of(c), a));
            a = fma_of(neg(s), a, mul(c, b));
        }
        T b = column[j + 1];
        T norm = root(add(dot_term(a, a), dot_term(b, b)));
        T c = number<T>(1.0), s = zero<T>();
        if (!is_zero(norm)) {
            c = quotient(a, norm);
            s = quotient(b, norm);
        }
        rotations[2 * j] = c;
        rotations[2 * j + 1] = s;
        column[j] = norm;
        column[j + 1] = zero<T>();
        T gj = g[j], last = mul(neg(s), gj);
        g[j] = mul(conj_of(c), gj);
        g[j + 1] = last;
        cells[w[LACUNA_INSTR_G]] = dot_term(last, last);
        cells[w[LACUNA_INSTR_E]] = number<T>(double(j + 1));
    }
    LACUNA_RARE void back_substitute(const u32 *w) {
        u32 m = w[LACUNA_INSTR_DST];
        T *h = cells + w[LACUNA_INSTR_A], *g = cells + w[LACUNA_INSTR_C], *y = cells + w[LACUNA_INSTR_D];
        double in_use = re(w[LACUNA_INSTR_E]);
        u32 used = in_use >= double(m) ? m : in_use > 0.0 ? u32(in_use) : 0;
#pragma unroll 1
        for (u32 i = 0; i < m; i++) y[i] = zero<T>();
        R largest = 0;
#pragma unroll 1
        for (u32 i = 0; i < used; i++) {
            R diagonal = R(re_of(h[i * (m + 1) + i]));
            largest = diagonal > largest ? diagonal : largest;
        }
        R negligible = largest * R(sizeof(R) == 8 ? 0x1p-48 : 0x1p-19);
#pragma unroll 1
        for (u32 i = used; i-- > 0;) {
            T sum = g[i];
#pragma unroll 4
            for (u32 j = i + 1; j < used; j++) sum = fma_of(neg(h[j * (m + 1) + i]), y[j], sum);
            T diagonal = h[i * (m + 1) + i];
            y[i] = R(re_of(diagonal)) <= negligible ? zero<T>() : quotient(sum, diagonal);
        }
        cells[w[LACUNA_INSTR_E]] = zero<T>();
    }

    // Evaluates instructions in order; returns whether the operation continues. It does not once an instruction has
    // halted the section or skipped the operation; the remaining instructions are then skipped too.
    LACUNA_RARE bool run(u32 at, u32 count) {
        const u32 *w = flow.words + at;
#pragma unroll 1
        for (u32 i = 0; i < count; i++, w += LACUNA_INSTR_WORDS) {
            u32 code = w[LACUNA_INSTR_CODE], dst = w[LACUNA_INSTR_DST], a = w[LACUNA_INSTR_A], b = w[LACUNA_INSTR_B];
            if (code < LACUNA_CODE_STOP) {
                T u = cells[a], v = u;
                if (code >= LACUNA_CODE_ADD) v = cells[b];
                cells[dst] = value_of(code, u, v);
                continue;
            }
            switch (code) {
            case LACUNA_CODE_STOP:
                if (holds(dst, a, b)) stop(w[LACUNA_INSTR_C], w[LACUNA_INSTR_D]);
                break;
            case LACUNA_CODE_ONLY_IF:
                if (!holds(dst, a, b)) return false;
                continue;
            case LACUNA_CODE_LEAVE:
                if (holds(dst, a, b)) word(LACUNA_CONTROL_LEFT) = 1;
                break;
            case LACUNA_CODE_COUNT: this->count(dst); break;
            case LACUNA_CODE_CONFIRM: confirm(dst, a, b, w[LACUNA_INSTR_C]); break;
            case LACUNA_CODE_ROTATE: rotate(w); break;
            default: back_substitute(w); break;
            }
            if (halted()) return false;
        }
        return true;
    }

    // Continues after the sweep of `op`, or starts with the section in CONTROL_NEXT if `op` is NONE: instructions,
    // changes of section, operations without vectors. Stores in CONTROL_NEXT, and returns, the operation whose sweep
    // runs next, with its `before` done; NONE if the program has stopped.
    LACUNA_RARE u32 advance(u32 op) {
        const u32 *record = flow.words + op * LACUNA_OP_WORDS;
        u32 section = u32(word(LACUNA_CONTROL_NEXT));
        bool entering = op == LACUNA_NONE, after = !entering;
        while (true) {
            if (after) run(record[LACUNA_OP_AFTER], record[LACUNA_OP_AFTER_COUNT]);
            after = false;
            if (word(LACUNA_CONTROL_SECTION) == LACUNA_SECTION_STOPPED) break;
            if (!entering && !word(LACUNA_CONTROL_LEFT) && !record[LACUNA_OP_LAST]) {
                op++;
            } else {
                if (!entering) section = word(LACUNA_CONTROL_LEFT) ? record[LACUNA_OP_NEXT_LEFT] : record[LACUNA_OP_NEXT];
                entering = false;
                word(LACUNA_CONTROL_SECTION) = section;
                word(LACUNA_CONTROL_LEFT) = 0;
                if (section == LACUNA_SECTION_STOPPED) break;
                op = flow.first[section];
            }
            record = flow.words + op * LACUNA_OP_WORDS;
            if (record[LACUNA_OP_BEFORE_COUNT] && !run(record[LACUNA_OP_BEFORE], record[LACUNA_OP_BEFORE_COUNT]))
                continue;
            if (record[LACUNA_OP_KIND] == LACUNA_KIND_SWEEP && record[LACUNA_OP_SLOT_COUNT] == 0) {
                after = true;
                continue;
            }
            word(LACUNA_CONTROL_NEXT) = op;
            return op;
        }
        word(LACUNA_CONTROL_NEXT) = LACUNA_NONE;
        return LACUNA_NONE;
    }
};
