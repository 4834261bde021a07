// The updates of a program's block: dst[i] <- sum of c f[i] v[i] on its rows, and basis updates.
//
// Formula: see sweep.cuh for how each term is rounded. Real numbers take one path: fma(1, v, s) is s + v and fma(-1, v, s) is
// s - v, rounded once either way, and a first term is added to -0, which changes no product. Each thread keeps to its rows,
// so that what one update writes the next one reads without a barrier.
#pragma once
#include "program.cuh"

template <typename T> LACUNA_FN T nothing() {
    if constexpr (IsComplex<T>::value) return zero<T>();
    else return -zero<T>();
}

// Adds a term to the sum so far. `k`: the cell, or 1 or -1 of a real number.
template <typename T> LACUNA_FN T add_hot(u32 flags, T k, T v, T f, T sum) {
    if constexpr (IsComplex<T>::value) {
        return add_term(flags, k, v, f, sum);
    } else {
        if (flags & TERM_FACTOR) {
            if (flags & TERM_CELL) v = f * v;
            else k = k * f;
        }
        return fma_of(k, v, sum);
    }
}

// PLAIN: real numbers, no term with a factor, no update without terms.
template <typename T, bool PLAIN> LACUNA_FN void update(const Block<T> &b, const HotOp &op, u64 tag) {
    const unsigned char *cells = b.memory + b.a.at_cells;
#pragma unroll 1
    for (u32 i = b.tid; i < b.rows; i += b.threads) {
        T sum = nothing<T>();
        const HotTerm *at = (const HotTerm *)(b.table + op.at_terms), *end = at + (op.terms & ~TERMS_PLAIN);
        HotTerm term = *at;
#pragma unroll 1
        while (true) {
            const T k = *(const T *)(cells + term.cell);
            const T v = ((const T *)term.vector)[i];
            const u32 flags = term.flags;
            T *to = (T *)term.to;
            const u64 words = term.factor;
            if constexpr (PLAIN) {
                term = *++at; // one behind the last is there
                sum = fma_of(k, v, sum);
            } else {
                T f = v;
                if (flags & TERM_FACTOR) f = ((const T *)term.factor)[i];
                term = *++at;
                sum = add_hot(flags, k, v, f, sum);
                if (flags & TERM_EMPTY) sum = zero<T>();
            }
            if (flags & TERM_LAST) {
                to[i] = sum;
                if (flags & TERM_SHARED) {
                    if constexpr (PLAIN) {
                        put_number(words, i, sum, tag);
                        if (i == 0) b.vector(flags >> 16).tag = tag;
                    } else {
                        b.publish(b.vector(flags >> 16), i, sum, tag);
                    }
                }
                sum = nothing<T>();
                if (at == end) break;
            }
        }
    }
}

// The same for plain operations over many rows: four rows a thread, and the vector of the next term on its way while this one's
// is used, unless it is just being written.
template <typename T> LACUNA_FN void update_many(const Block<T> &b, const HotOp &op, u64 tag) {
    const u32 ROWS = 4;
    const unsigned char *cells = b.memory + b.a.at_cells;
    const u32 step = b.threads, last = b.rows - 1;
#pragma unroll 1
    for (u32 i = b.tid; i < b.rows; i += ROWS * step) {
        u32 row[ROWS];
        T sum[ROWS], v[ROWS];
        const HotTerm *at = (const HotTerm *)(b.table + op.at_terms), *end = at + (op.terms & ~TERMS_PLAIN);
        HotTerm term = *at;
#pragma unroll
        for (u32 r = 0; r < ROWS; r++) {
            row[r] = min(i + r * step, last);
            sum[r] = nothing<T>();
            v[r] = ((const T *)term.vector)[row[r]];
        }
#pragma unroll 1
        while (at != end) {
            const T k = *(const T *)(cells + term.cell);
            const u32 flags = term.flags;
            T *to = (T *)term.to, now[ROWS];
            const u64 words = term.factor;
            term = *++at; // one behind the last is there, and names a vector
            const bool fresh = term.flags & TERM_FRESH;
#pragma unroll
            for (u32 r = 0; r < ROWS; r++) {
                now[r] = v[r];
                if (!fresh) v[r] = ((const T *)term.vector)[row[r]];
            }
#pragma unroll
            for (u32 r = 0; r < ROWS; r++) sum[r] = fma_of(k, now[r], sum[r]);
            if (flags & TERM_LAST) {
#pragma unroll
                for (u32 r = 0; r < ROWS; r++)
                    if (i + r * step <= last) {
                        to[row[r]] = sum[r];
                        if (flags & TERM_SHARED) put_number(words, row[r], sum[r], tag);
                        sum[r] = nothing<T>();
                    }
                if (flags & TERM_SHARED && i == 0) b.vector(flags >> 16).tag = tag;
            }
            if (fresh)
#pragma unroll
                for (u32 r = 0; r < ROWS; r++) v[r] = ((const T *)term.vector)[row[r]];
        }
    }
}

// w <- w -/+ V h
template <typename T> LACUNA_FN void update_by_basis(const Block<T> &b, const HotOp &op, u64 tag) {
    const u32 DEPTH = 4;
    const u32 *column = b.table + op.at_columns;
    const T *h = b.cells + (op.h & ~H_ADDS);
    const bool adds = op.h & H_ADDS;
    VectorPlace &place = b.vector(op.y);
    T *w = (T *)place.at;
    const bool shared = !b.one && place.flags & VECTOR_SHARED;
#pragma unroll 1
    for (u32 i = b.tid; i < b.rows; i += b.threads) {
        T sum = w[i];
#pragma unroll 1
        for (u32 j = 0; j < op.columns; j += DEPTH) {
            T k[DEPTH], v[DEPTH];
#pragma unroll
            for (u32 c = 0; c < DEPTH; c++) {
                const u32 at = min(j + c, op.columns - 1);
                k[c] = adds ? h[at] : neg(h[at]);
                v[c] = b.at(column[at])[i];
            }
#pragma unroll
            for (u32 c = 0; c < DEPTH; c++)
                if (j + c < op.columns && !is_zero(k[c])) sum = fma_of(k[c], v[c], sum);
        }
        w[i] = sum;
        if (shared) b.publish(place, i, sum, tag);
    }
}
