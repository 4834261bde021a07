// Instructions evaluated together by the lanes of a warp, one each.
//
// Formula: those of cells.cuh. Planning sorts the instructions of an operation into levels; operands are cells as they were
// before, or what another lane has computed, which a shuffle brings. Cells are written at the end: what stands behind an
// instruction that halts the section is left out.
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

// Evaluates a chunk; every lane of a warp. True where nothing was decided.
template <typename T> LACUNA_FN bool evaluate(const Block<T> &b, Machine<T> &m, const Chunk &chunk, u32 lane) {
    T *cells = b.cells;
    u64 *control = b.control;
    uint4 w = {LACUNA_NONE, 0, 0, 0};
    if (lane < chunk.count) w = ((const uint4 *)(b.table + chunk.at))[lane];
    const u32 code = w.x & 0xffu, level = w.x >> 8 & 0xffu;
    const bool plain = code < LACUNA_CODE_STOP, counts = code == LACUNA_CODE_COUNT;
    const bool u_comes = w.z & FROM_LANE, v_comes = w.w & FROM_LANE;
    T u = zero<T>(), v = u, value = u;
    if (lane < chunk.count) {
        if (!u_comes) u = cells[w.z];
        if (!v_comes) v = cells[w.w];
    }
    const u32 levels = chunk.levels & 0xffu;
    const Simple<T> simple(code);
    const ulonglong2 *words = (const ulonglong2 *)control;
    const ulonglong2 limits = words[LACUNA_CONTROL_ITERATIONS / 2]; // iterations, limit
    const ulonglong2 history = words[LACUNA_CONTROL_HISTORY / 2];   // values, room for values
#pragma unroll 1
    for (u32 l = 0; l <= levels; l++) {
        if (l > 0) {
            const T a = from_lane(value, w.z & 31u), c = from_lane(value, w.w & 31u);
            if (u_comes) u = a;
            if (v_comes) v = c;
        }
        if (l == levels) break;
        const bool now = plain && level == l;
        T fresh = simple(u, v);
        // Behind a branch: what other lanes hold may be slow to divide.
        if (now && code == LACUNA_CODE_DIV) fresh = quotient(u, v);
        if (now && code == LACUNA_CODE_SQRT) fresh = root(u);
        if (now) value = fresh;
    }
    const u64 iterations = limits.x + 1;
    bool fires = !plain && lane < chunk.count && value_holds(w.x >> 16 & 0xffu, u, v);
    if (counts) fires = !is_finite(u) || iterations >= limits.y;
    const u32 fired = __ballot_sync(~0u, fires), stop = fired ? __ffs(fired) - 1 : WARP;
    if (plain && lane < stop) cells[w.y] = value;
    if (fired == 0) {
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
