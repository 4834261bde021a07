// Instructions evaluated together by the lanes of a warp, one each.
//
// Formula: those of cells.cuh. Planning sorts the instructions of an operation into steps of one kind each; operands are cells
// as they were before, or what another lane has computed, which a shuffle brings. Cells are written at the end: what stands
// behind an instruction that halts the section is left out. All of it is on the way from one sum to the next update: few
// instructions, and few branches, which cost a lone warp twenty cycles each.
#pragma once
#include "program.cuh"

// The value of an instruction. What only some lanes need, all compute: lanes that part cost more.
// A real number's simple instructions are one fma: 1 u + v, -1 v + u, u v - 0, 1 u - 0, -1 u - 0.
template <typename T> struct Simple {
    bool adds, subtracts, multiplies, largest, minus;
    u32 code;
    LACUNA_FN explicit Simple(u32 code)
        : adds(code == LACUNA_CODE_ADD), subtracts(code == LACUNA_CODE_SUB), multiplies(code == LACUNA_CODE_MUL),
          largest(code == LACUNA_CODE_MAX), minus(code == LACUNA_CODE_NEG || code == LACUNA_CODE_SUB), code(code) {}
    LACUNA_FN T operator()(T u, T v) const {
        if constexpr (IsComplex<T>::value) {
            T value = u;
            if (adds) value = add(u, v);
            if (subtracts) value = sub(u, v);
            if (multiplies) value = mul(u, v);
            if (code == LACUNA_CODE_NEG) value = neg(u);
            if (code == LACUNA_CODE_CONJ) value = conj_of(u);
            if (largest) value = re_of(u) >= re_of(v) ? u : v;
            return value;
        } else {
            const T factor = multiplies ? v : minus ? T(-1) : T(1);
            const T rest = adds ? v : subtracts ? u : T(-0.0);
            const T value = fma_of(subtracts ? v : u, factor, rest);
            return largest ? (u >= v ? u : v) : value;
        }
    }
};

// All tests at once, a bit each, and the one asked for of them: branches cost more.
template <typename T> LACUNA_FN bool value_holds(u32 test, T u, T v) {
    const u32 holds = 1u << LACUNA_TEST_ALWAYS | u32(re_of(u) <= re_of(v)) << LACUNA_TEST_LESS_EQUAL |
                      u32(re_of(u) > re_of(v)) << LACUNA_TEST_GREATER | u32(!(re_of(u) > 0.0)) << LACUNA_TEST_NOT_POSITIVE |
                      u32(!is_finite(u)) << LACUNA_TEST_NOT_FINITE | u32(is_zero(u)) << LACUNA_TEST_ZERO;
    return holds >> test & 1u;
}

// A number the compiler takes for another: so that it divides what it is told to.
#ifdef __CUDACC__
LACUNA_FN float opaque(float v) { asm volatile("" : "+f"(v)); return v; }
LACUNA_FN double opaque(double v) { asm volatile("" : "+d"(v)); return v; }
#else
template <typename R> LACUNA_FN R opaque(R v) { return v; }
#endif
template <typename R> LACUNA_FN Complex<R> opaque(Complex<R> v) { return complex(opaque(v.re), opaque(v.im)); }

// A lane's instruction of a chunk, read before the sums are there.
struct Ready {
    uint4 w;
    u32 steps, special;
    bool in_use;
};
LACUNA_FN Ready ready(const u32 *table, const Chunk *chunk, u32 lane) {
    const uint4 packed = *(const uint4 *)chunk;
    Ready r = {{0xffffu, 0, 0, 0}, packed.z, packed.w, lane < packed.y};
    if (r.in_use) r.w = ((const uint4 *)(table + packed.x))[lane];
    return r;
}

// Evaluates a chunk; every lane of a warp. True where nothing was decided.
template <typename T> LACUNA_FN bool evaluate(const Block<T> &b, Machine<T> &m, const Ready &r, u32 lane) {
    unsigned char *cells = b.memory + b.a.at_cells;
    u64 *control = b.control;
    const uint4 w = r.w;
    const u32 code = w.x & 0xffu, mine = w.x >> 8 & 0xffu;
    const bool plain = code < LACUNA_CODE_STOP, counts = code == LACUNA_CODE_COUNT;
    const bool u_comes = w.z & FROM_LANE, v_comes = w.w & FROM_LANE;
    const u32 u_lane = w.z >> 26 & 31u, v_lane = w.w >> 26 & 31u;
    T u = *(const T *)(cells + (w.z & CELL_BYTES)), v = *(const T *)(cells + (w.w & CELL_BYTES)), value = u;
    const ulonglong2 *words = (const ulonglong2 *)control;
    const ulonglong2 limits = words[LACUNA_CONTROL_ITERATIONS / 2]; // iterations, limit
    const ulonglong2 history = words[LACUNA_CONTROL_HISTORY / 2];   // values, room for values
    const Simple<T> simple(code);
    const u32 steps = r.steps & 0xffu;
    u32 kinds = r.steps >> 8;
#pragma unroll 1
    for (u32 step = 0; step < steps; step++) {
        const bool now = mine == step;
        T fresh;
        if (kinds & 1u) {
            fresh = quotient(opaque(now ? u : number<T>(1.0)), opaque(now ? v : number<T>(1.0)));
        } else if (kinds & 2u) {
            fresh = root(opaque(now ? u : number<T>(1.0)));
        } else {
            fresh = simple(u, v);
        }
        kinds >>= 2;
        if (now) value = fresh;
        const T from_u = from_lane(value, u_lane), from_v = from_lane(value, v_lane);
        if (u_comes) u = from_u;
        if (v_comes) v = from_v;
    }
    const u64 iterations = limits.x + 1;
    bool fires = !plain && r.in_use && value_holds(w.x >> 16 & 0xffu, u, v);
    if (counts) fires = !is_finite(u) || iterations >= limits.y;
    const u32 fired = __ballot_sync(~0u, fires);
    if (fired == 0) {
        if (plain) *(T *)(cells + w.y) = value;
        if (counts) {
            const typename RealOf<T>::type rr = typename RealOf<T>::type(re_of(u));
            control[LACUNA_CONTROL_ITERATIONS] = iterations;
            control[LACUNA_CONTROL_RECURRENCE] = bits_of(rr);
            const u64 stride = control[LACUNA_CONTROL_STRIDE];
            if (stride == 1) {
                const u64 at = iterations < history.x ? iterations : history.x;
                if (at < history.y) {
                    ((typename RealOf<T>::type *)b.a.history)[at] = rr;
                    control[LACUNA_CONTROL_HISTORY] = at + 1;
                }
            } else if (stride != 0) {
                m.record(iterations, rr);
            }
        }
        __syncwarp();
        return true;
    }
    const u32 stop = __ffs(fired) - 1;
    if (plain && lane < stop) *(T *)(cells + w.y) = value;
    __syncwarp();
    if (counts && lane <= stop) m.count_value(u);
    if (lane == stop && code == LACUNA_CODE_LEAVE) m.word(LACUNA_CONTROL_LEFT) = 1;
    __syncwarp(); // a count before it
    if (lane == stop && code == LACUNA_CODE_STOP) m.stop(w.y, w.x >> 24);
    __syncwarp();
    return false;
}

// Machine::rotate by the lanes of a warp: the rotations come from the lanes, 32 at a time.
template <typename T> LACUNA_RARE void rotate_together(T *cells, const u32 *w, u32 lane) {
    const u32 m = w[LACUNA_INSTR_DST], j = w[LACUNA_INSTR_F];
    T *column = cells + w[LACUNA_INSTR_A] + j * (m + 1), *rotations = cells + w[LACUNA_INSTR_B];
    T *g = cells + w[LACUNA_INSTR_C];
    T a = column[0];
    const T last = column[j + 1], gj = g[j];
#pragma unroll 1
    for (u32 base = 0; base < j; base += WARP) {
        const u32 i = base + lane;
        T c = zero<T>(), s = c, below = c, mine = c;
        if (i < j) {
            c = rotations[2 * i];
            s = rotations[2 * i + 1];
            below = column[i + 1];
        }
        const T cb = mul(c, below), minus = neg(s);
        const u32 count = min(j - base, WARP);
#pragma unroll 4
        for (u32 k = 0; k < count; k++) {
            if (lane == k) mine = a;
            a = fma_of(from_lane(minus, k), a, from_lane(cb, k));
        }
        __syncwarp(); // the next 32 read what is written here no more
        if (i < j) column[i] = fma_of(conj_of(s), below, mul(conj_of(c), mine));
    }
    const T norm = root(add(dot_term(a, a), dot_term(last, last)));
    T c = number<T>(1.0), s = zero<T>();
    if (!is_zero(norm)) {
        c = quotient(a, norm);
        s = quotient(last, norm);
    }
    __syncwarp();
    if (lane == 0) {
        rotations[2 * j] = c;
        rotations[2 * j + 1] = s;
        column[j] = norm;
        column[j + 1] = zero<T>();
        const T end = mul(neg(s), gj);
        g[j] = mul(conj_of(c), gj);
        g[j + 1] = end;
        cells[w[LACUNA_INSTR_G]] = dot_term(end, end);
        cells[w[LACUNA_INSTR_E]] = number<T>(double(j + 1));
    }
    __syncwarp();
}

// What one lane does alone, or the warp as a whole. True where nothing was decided.
template <typename T> LACUNA_FN bool evaluate_alone(const Block<T> &b, Machine<T> &m, const u32 *w, u32 lane) {
    const u32 code = w[LACUNA_INSTR_CODE];
    if (code == LACUNA_CODE_ROTATE) {
        rotate_together(b.cells, w, lane);
        return true;
    }
    if (lane == 0) {
        if (code == LACUNA_CODE_CONFIRM)
            m.confirm(w[LACUNA_INSTR_DST], w[LACUNA_INSTR_A], w[LACUNA_INSTR_B], w[LACUNA_INSTR_C]);
        else
            m.back_substitute(w);
    }
    __syncwarp();
    return !m.halted();
}
