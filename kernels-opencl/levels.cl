// The set-up of a level of algebraic multigrid, row by row; see crates/gpu/src/algebra and, for the same on the host,
// crates/solvers/src/precond/amg. Compiled for CUDA too, in double precision: kernels-cuda/levels.cuh.
//
// Formula: each kernel says its own. A row is computed in a fixed order by one work-item, or sums over rows are
// canonical, so that any schedule gives the same bits.
// Bytes moved: the rows of the matrix once for each kernel that takes them, what it writes once.
// Launch shape: a work-item for each row in work-groups of LEVEL_GROUP; a team for each row (`level_first_set`,
// `level_turn`).
// Assumes: rows of a few thousand entries at the most, columns in increasing order. Counters are zeros.
#ifndef FIXED_LOCAL
#define FIXED_LOCAL(type, name, size) __local type name[size]
#endif
#define LEVEL_GROUP 256u
#define LEVEL_NONE 0xffffffffu
// States of a row on its way into a set.
#define LEVEL_OPEN 0u
#define LEVEL_IN 1u
#define LEVEL_OUT 2u
// Words of what a work-group finds in `level_look`.
#define LOOK_WORDS 8u
// Part of a diagonal entry below which what is left of it after lumping is not divided by.
#define LEAST_OF_DIAGONAL 0.25
// A row with no coupling above the threshold, but a sum of couplings above this, has a threshold of its own.
#define STRONG_SUM 0.5
// Rounding errors of a diagonal entry of R A P, in units of the unit roundoff and of the moduli of its terms.
#define ROUNDING 64.0

#if LACUNA_REAL_BITS == 64
#if LACUNA_COMPLEX
#define LEVEL_IM(v) ((v).y)
#define LEVEL_NUMBER(re, im) MAKE(re, im)
static inline double level_size(number v) { return sqrt(v.x * v.x + v.y * v.y); }
#else
#define LEVEL_IM(v) 0.0
#define LEVEL_NUMBER(re, im) (re)
static inline double level_size(number v) { return fabs(v); }
#endif
// A number passed as two words.
static inline double level_double(uint low, uint high) { return as_double((ulong)high << 32 | low); }

static inline double level_coupling(number v, double scale_i, double scale_j) {
    return level_size(v) * (scale_i * scale_j);
}
static inline ulong level_mixed(ulong word) {
    ulong h = word * 0x9e3779b97f4a7c15ul;
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9ul;
    return h ^ h >> 32;
}
// A hash of an entry above the diagonal and of its image below.
static inline ulong level_hash(uint i, uint j, number v) {
    const ulong low = min(i, j), high = max(i, j);
    if (i > j) {
        v = conjugate(v);
    }
    const ulong im = as_ulong((double)(LEVEL_IM(v) + 0.0));
    const ulong bits = as_ulong((double)(RE(v) + 0.0)) ^ (im << 23 | im >> 41);
    return level_mixed(((low << 32 | high) * 0xd6e8feb86659fd93ul) ^ bits);
}

// diagonal[i] <- a_ii; scale[i] <- 1 / sqrt |a_ii|, 0 where that is not finite.
__kernel void KERNEL(level_diagonal)(__global const uint *rows, __global const uint *columns, __global const number *values,
    __global number *diagonal, __global double *scale, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i >= n) {
        return;
    }
    number d = ZERO;
    for (uint k = rows[i]; k < rows[i + 1]; k++) {
        if (columns[k] == i) {
            d = values[k];
        }
    }
    const double s = 1.0 / sqrt(level_size(d));
    diagonal[i] = d;
    scale[i] = isfinite(s) ? s : 0.0;
}

// Two work-items' finds as one: the smallest coupling, the largest norms, sums of hashes, whether the diagonal is real,
// the first row without a diagonal entry, and a count.
static inline void level_joined(__local ulong *words, uint to, uint from) {
    words[to] = as_ulong(fmin(as_double(words[to]), as_double(words[from])));
    for (uint w = 1; w < 3; w++) {
        const uint at = w * LEVEL_GROUP;
        words[at + to] = as_ulong(fmax(as_double(words[at + to]), as_double(words[at + from])));
    }
    for (uint w = 3; w < 6; w++) {
        words[w * LEVEL_GROUP + to] += words[w * LEVEL_GROUP + from];
    }
    const uint first = 6 * LEVEL_GROUP;
    words[first + to] = words[first + from] < words[first + to] ? words[first + from] : words[first + to];
    words[7 * LEVEL_GROUP + to] += words[7 * LEVEL_GROUP + from];
}

// SPAI(0), the strongest coupling of each row, whether its couplings are strong in sum; and what work-groups find:
// the weakest coupling, the norms of D^-1 A and W A, hashes above and below the diagonal, imaginary diagonal entries, the
// first row without one, rows whose strongest coupling is at least so strong.
__kernel void KERNEL(level_look)(__global const uint *rows, __global const uint *columns, __global const number *values,
    __global const number *diagonal, __global const double *scale, __global number *spai, __global double *strongest,
    __global uchar *in_sum, __global ulong *found, const uint hermitian_is_known, const uint least_low,
    const uint least_high, const uint n) {
    FIXED_LOCAL(ulong, words, LOOK_WORDS * LEVEL_GROUP);
    const uint item = (uint)get_local_id(0), i = (uint)get_global_id(0);
    double least = INFINITY, norm = 0.0, spai_norm = 0.0;
    ulong above = 0, below = 0, imaginary = 0, without = ~(ulong)0, count = 0;
    if (i < n) {
        const number d = diagonal[i], inverse = quotient(ONE, d);
        const double scale_i = scale[i], by = level_size(inverse);
        double sum = 0.0, squares = 0.0, all = 0.0, most = 0.0;
        for (uint k = rows[i]; k < rows[i + 1]; k++) {
            const uint j = columns[k];
            const number v = values[k];
            const double ratio = level_size(v) * by;
            sum += ratio;
            squares += ratio * ratio;
            if (j != i) {
                const double s = level_coupling(v, scale_i, scale[j]);
                all += s;
                most = s > most ? s : most;
                least = s < least ? s : least;
                if (!hermitian_is_known) {
                    const ulong h = level_hash(i, j, v);
                    above += i < j ? h : 0;
                    below += i < j ? 0 : h;
                }
            }
        }
        const number weight = times(inverse, from_real(1.0 / squares));
        spai[i] = is_finite(weight) ? weight : ZERO;
        strongest[i] = most;
        in_sum[i] = all > STRONG_SUM;
        norm = fmax(norm, sum);
        spai_norm = fmax(spai_norm, sum / squares);
        imaginary = LEVEL_IM(d) != 0.0;
        without = !is_finite(inverse) || is_zero(d) ? i : without;
        count = most >= level_double(least_low, least_high);
    }
    words[item] = as_ulong(least);
    words[LEVEL_GROUP + item] = as_ulong(norm);
    words[2 * LEVEL_GROUP + item] = as_ulong(spai_norm);
    words[3 * LEVEL_GROUP + item] = above;
    words[4 * LEVEL_GROUP + item] = below;
    words[5 * LEVEL_GROUP + item] = imaginary;
    words[6 * LEVEL_GROUP + item] = without;
    words[7 * LEVEL_GROUP + item] = count;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint part = LEVEL_GROUP / 2; part > 0; part /= 2) {
        if (item < part) {
            level_joined(words, item, item + part);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item < LOOK_WORDS) {
        found[get_group_id(0) * LOOK_WORDS + item] = words[item * LEVEL_GROUP];
    }
}

// The threshold of a row: half its strongest coupling where none is strong but all are in sum.
static inline double level_limit(__global const double *strongest, __global const uchar *in_sum, double threshold, uint i) {
    return strongest[i] <= threshold && in_sum[i] ? 0.5 * strongest[i] : threshold;
}

// strong[k] <- whether entry k couples strongly, by the lower threshold of its two rows, or is on the diagonal; counts[i] <-
// how many off the diagonal do.
__kernel void KERNEL(level_strong)(__global const uint *rows, __global const uint *columns, __global const number *values,
    __global const double *scale, __global const double *strongest, __global const uchar *in_sum, __global uchar *strong,
    __global uint *counts, const uint threshold_low, const uint threshold_high, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i >= n) {
        return;
    }
    const double threshold = level_double(threshold_low, threshold_high);
    const double own = level_limit(strongest, in_sum, threshold, i), scale_i = scale[i];
    uint count = 0;
    for (uint k = rows[i]; k < rows[i + 1]; k++) {
        const uint j = columns[k];
        bool is_strong = j == i;
        if (!is_strong) {
            const double limit = fmin(own, level_limit(strongest, in_sum, threshold, j));
            is_strong = level_coupling(values[k], scale_i, scale[j]) > limit;
            count += is_strong;
        }
        strong[k] = is_strong;
    }
    counts[i] = count;
}

// The graph of the strong entries off the diagonal.
__kernel void KERNEL(level_graph)(__global const uint *rows, __global const uint *columns, __global const uchar *strong,
    __global const uint *graph, __global uint *neighbours, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i >= n) {
        return;
    }
    uint at = graph[i];
    for (uint k = rows[i]; k < rows[i + 1]; k++) {
        if (strong[k] && columns[k] != i) {
            neighbours[at++] = columns[k];
        }
    }
}

// The diagonal of A_F, to which weak entries are added such that a near-null vector stays one, and what rows are divided by.
__kernel void KERNEL(level_lump)(__global const uint *rows, __global const uint *columns, __global const number *values,
    __global const uchar *strong, __global const number *diagonal, __global const number *near, __global number *lumped,
    __global number *by, const uint has_near, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i >= n) {
        return;
    }
    const number d = diagonal[i];
    number sum = d;
    for (uint k = rows[i]; k < rows[i + 1]; k++) {
        if (!strong[k]) {
            const number of = has_near ? quotient(near[columns[k]], near[i]) : ONE;
            sum = sum + times(of, values[k]);
        }
    }
    sum = is_finite(sum) ? sum : d;
    lumped[i] = sum;
    by[i] = level_size(sum) < LEAST_OF_DIAGONAL * level_size(d) ? d : sum;
}

// What a row of a matrix smoothed by SPAI(0) is divided by: the inverse of the weight.
__kernel void KERNEL(level_divisors)(__global const number *spai, __global const number *diagonal, __global number *by,
    const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i < n) {
        by[i] = is_zero(spai[i]) ? diagonal[i] : quotient(ONE, spai[i]);
    }
}

// to[i] <- by from[i]
__kernel void KERNEL(level_scaled)(__global const number *from, __global number *to, const uint low, const uint high,
    const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i < n) {
        to[i] = times(from_real(level_double(low, high)), from[i]);
    }
}

// sums[g] <- the canonical sum of the terms of segment g, one for each work-item of the group.
static inline void level_sum(__local number *terms, number term, __global number *sums) {
    const uint item = (uint)get_local_id(0);
    terms[item] = term;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint part = LEVEL_GROUP / 2; part > 0; part /= 2) {
        if (item < part) {
            terms[item] = terms[item] + terms[item + part];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) {
        sums[get_group_id(0)] = terms[0];
    }
}

// Entry i of a vector to begin with, between -1 and 1.
static inline number level_hashed_at(uint i) {
    ulong h = ((ulong)i + 1) * 0xd6e8feb86659fd93ul;
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93ul;
    return from_real((double)(h >> 12) / 2251799813685248.0 - 1.0);
}
// Row i of A_F v; all entries where all are strong.
static inline number level_row(__global const uint *rows, __global const uint *columns, __global const number *values,
    __global const uchar *strong, __global const number *lumped, __global const number *v, uint all, uint i) {
    number sum = ZERO;
    for (uint k = rows[i]; k < rows[i + 1]; k++) {
        if (all) {
            sum = sum + times(values[k], v[columns[k]]);
        } else if (strong[k]) {
            const uint j = columns[k];
            sum = sum + times(j == i ? lumped[i] : values[k], v[j]);
        }
    }
    return sum;
}

// Lanczos' method in the inner product of D: v <- a hashed vector, inverse <- D^-1, sums of v* D v; refused <- 1 if D is
// not positive.
__kernel void KERNEL(level_start)(__global const number *by, __global number *v, __global number *inverse,
    __global number *sums, __global uint *refused, const uint n) {
    FIXED_LOCAL(number, terms, LEVEL_GROUP);
    const uint i = (uint)get_global_id(0);
    number term = ZERO;
    if (i < n) {
        const number d = by[i], own = level_hashed_at(i);
        v[i] = own;
        inverse[i] = quotient(ONE, d);
        term = dot_term(own, times(d, own));
        const bool is_real = LEVEL_IM(d) == 0.0;
        if (!(RE(d) > 0.0 && is_real)) {
            *refused = 1;
        }
    }
    level_sum(terms, term, sums);
}

// av <- A_F v, sums of v* A_F v.
__kernel void KERNEL(level_energy)(__global const uint *rows, __global const uint *columns, __global const number *values,
    __global const uchar *strong, __global const number *lumped, __global const number *v, __global number *av,
    __global number *sums, const uint all, const uint n) {
    FIXED_LOCAL(number, terms, LEVEL_GROUP);
    const uint i = (uint)get_global_id(0);
    number term = ZERO;
    if (i < n) {
        const number sum = level_row(rows, columns, values, strong, lumped, v, all, i);
        av[i] = sum;
        term = dot_term(v[i], sum);
    }
    level_sum(terms, term, sums);
}

// w <- by D^-1 A v + own v + last w, sums of w* D w.
__kernel void KERNEL(level_step)(__global const number *av, __global const number *inverse, __global const number *v,
    __global number *w, __global const number *d, __global number *sums, const uint by_low, const uint by_high,
    const uint own_low, const uint own_high, const uint last_low, const uint last_high, const uint n) {
    FIXED_LOCAL(number, terms, LEVEL_GROUP);
    const uint i = (uint)get_global_id(0);
    number term = ZERO;
    if (i < n) {
        const number by = from_real(level_double(by_low, by_high)), own = from_real(level_double(own_low, own_high));
        const number last = from_real(level_double(last_low, last_high));
        const number next = times(by, times(av[i], inverse[i])) + times(own, v[i]) + times(last, w[i]);
        w[i] = next;
        term = dot_term(next, times(d[i], next));
    }
    level_sum(terms, term, sums);
}

// Arnoldi's method: w <- a hashed vector, sums of w* w.
__kernel void KERNEL(level_hashed)(__global number *w, __global number *sums, const uint n) {
    FIXED_LOCAL(number, terms, LEVEL_GROUP);
    const uint i = (uint)get_global_id(0);
    number term = ZERO;
    if (i < n) {
        w[i] = level_hashed_at(i);
        term = dot_term(w[i], w[i]);
    }
    level_sum(terms, term, sums);
}

// w <- D^-1 A_F v, 0 where that is not finite; sums of u* w.
__kernel void KERNEL(level_apply)(__global const uint *rows, __global const uint *columns, __global const number *values,
    __global const uchar *strong, __global const number *lumped, __global const number *by, __global const number *v,
    __global const number *u, __global number *w, __global number *sums, const uint all, const uint n) {
    FIXED_LOCAL(number, terms, LEVEL_GROUP);
    const uint i = (uint)get_global_id(0);
    number term = ZERO;
    if (i < n) {
        const number entry = quotient(level_row(rows, columns, values, strong, lumped, v, all, i), by[i]);
        w[i] = is_finite(entry) ? entry : ZERO;
        term = dot_term(u[i], w[i]);
    }
    level_sum(terms, term, sums);
}

// w <- w - c v, sums of u* w; u may be w.
__kernel void KERNEL(level_project)(__global number *w, __global const number *v, __global const number *u,
    __global number *sums, const uint re_low, const uint re_high, const uint im_low, const uint im_high, const uint is_own,
    const uint n) {
    FIXED_LOCAL(number, terms, LEVEL_GROUP);
    const uint i = (uint)get_global_id(0);
    number term = ZERO;
    if (i < n) {
        const number c = LEVEL_NUMBER(level_double(re_low, re_high), level_double(im_low, im_high));
        const number next = w[i] - times(c, v[i]);
        w[i] = next;
        term = dot_term(is_own ? next : u[i], next);
    }
    level_sum(terms, term, sums);
}

// A row without neighbours but itself is out of the set from the beginning. keys[i] <- a priority that falls with the row.
__kernel void KERNEL(level_open)(__global const uint *graph, __global const uint *neighbours, __global uint *states,
    __global ulong *keys, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i >= n) {
        return;
    }
    bool alone = true;
    for (uint k = graph[i]; k < graph[i + 1]; k++) {
        alone = alone && neighbours[k] == i;
    }
    states[i] = alone ? LEVEL_OUT : LEVEL_OPEN;
    keys[i] = alone ? 0 : (ulong)(n - i);
}

// states[i] <- that of the key of a row: see independent.cl.
__kernel void KERNEL(level_states)(__global const ulong *keys, __global uint *states, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i < n) {
        states[i] = keys[i] == ~(ulong)0 ? LEVEL_IN : LEVEL_OUT;
    }
}

#if LACUNA_PRELUDE || LACUNA_NVIDIA
// A bit for each work-item of the warp; all of them call it.
#if LACUNA_PRELUDE
#define LEVEL_BALLOT(holds) __ballot_sync(0xffffffffu, holds)
#else
static inline uint level_ballot(uint holds) {
    uint bits;
    __asm__ volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
                     : "=r"(bits)
                     : "r"(holds)
                     : "memory");
    return bits;
}
#define LEVEL_BALLOT(holds) level_ballot(holds)
#endif
// The first set in the order of rows no two of which are within two steps of each other, what a loop over them finds: a row
// for each team of `lanes` work-items, which go over its neighbours and theirs.
// A row waits for smaller ones alone, which an earlier group or another team of this one has: groups take their rows by a
// ticket, and those before it are running. Warps go round together, and no team waits within a round.
__kernel void KERNEL(level_first_set)(__global const uint *graph, __global const uint *neighbours,
    volatile __global uint *states, volatile __global uint *ticket, const uint lanes, const uint n) {
    FIXED_LOCAL(uint, first, 1);
    if (get_local_id(0) == 0) {
        first[0] = atomic_add(ticket, LEVEL_GROUP / lanes);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint item = (uint)get_local_id(0), i = first[0] + item / lanes, lane = item % lanes;
    const uint shift = item % 32 - lane, team = (lanes == 32 ? ~0u : (1u << lanes) - 1) << shift;
    bool is_decided = i >= n || states[i] != LEVEL_OPEN;
    const uint from = is_decided ? 0 : graph[i], to = is_decided ? 0 : graph[i + 1];
    // The row itself is the first of those whose neighbours this work-item goes over. It never looks twice at one that is out.
    uint next = lane, at = 0, end = 0;
    bool is_through = false;
    while (LEVEL_BALLOT(!is_decided) != 0) {
        bool meets = false;
        while (!is_decided && !is_through && !meets) {
            if (at == end) {
                is_through = next > to - from;
                if (!is_through) {
                    const uint q = next == 0 ? i : neighbours[from + next - 1];
                    at = graph[q];
                    end = graph[q + 1];
                    next += lanes;
                }
            } else {
                const uint p = neighbours[at], state = p < i ? states[p] : LEVEL_OUT;
                if (state == LEVEL_OPEN) {
                    break;
                }
                meets = state == LEVEL_IN;
                at++;
            }
        }
        const bool is_out = meets || (!is_decided && lane == 0 && states[i] == LEVEL_OUT);
        const bool out = (LEVEL_BALLOT(is_out) & team) != 0, in = (~LEVEL_BALLOT(is_through) & team) == 0;
        if (!is_decided && (out || in)) {
            is_decided = true;
            if (lane == 0) {
                states[i] = out ? LEVEL_OUT : LEVEL_IN;
            }
            // Those after it within two steps are out, which spares them the way.
            for (uint s = lane; !out && s <= to - from; s += lanes) {
                const uint q = s == 0 ? i : neighbours[from + s - 1];
                for (uint e = graph[q]; e < graph[q + 1]; e++) {
                    if (neighbours[e] > i) {
                        states[neighbours[e]] = LEVEL_OUT;
                    }
                }
            }
        }
    }
}
#endif

// counts[i] <- 1 for a row in the set, else 0.
__kernel void KERNEL(level_roots)(__global const uint *states, __global uint *counts, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i < n) {
        counts[i] = states[i] == LEVEL_IN;
    }
}

// The aggregate of a root and its neighbours: the number of roots before it.
__kernel void KERNEL(level_labels)(__global const uint *graph, __global const uint *neighbours,
    __global const uint *states, __global const uint *numbers, __global uint *labels, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i >= n) {
        return;
    }
    uint label = states[i] == LEVEL_IN ? numbers[i] : LEVEL_NONE;
    for (uint k = graph[i]; label == LEVEL_NONE && k < graph[i + 1]; k++) {
        if (states[neighbours[k]] == LEVEL_IN) {
            label = numbers[neighbours[k]];
        }
    }
    labels[i] = label;
}

// A row in no aggregate joins that of the neighbour it is coupled with most strongly, by the labels before. left[0] <- rows in
// none after that, left[1] <- those of them that have neighbours.
__kernel void KERNEL(level_join)(__global const uint *rows, __global const uint *columns, __global const number *values,
    __global const uchar *strong, __global const double *scale, __global const uint *founded, __global uint *labels,
    __global uint *left, const uint all, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i >= n) {
        return;
    }
    uint label = founded[i];
    if (label == LEVEL_NONE) {
        double best = 0.0;
        bool alone = true;
        for (uint k = rows[i]; k < rows[i + 1]; k++) {
            const uint j = columns[k];
            if (j == i || !(all || strong[k])) {
                continue;
            }
            alone = false;
            if (founded[j] != LEVEL_NONE) {
                const double s = level_coupling(values[k], scale[i], scale[j]);
                if (label == LEVEL_NONE || !(s <= best)) {
                    best = s;
                    label = founded[j];
                }
            }
        }
        if (label == LEVEL_NONE) {
            atomic_add((volatile __global uint *)left, 1u);
            if (!alone) {
                atomic_add((volatile __global uint *)left + 1, 1u);
            }
        }
    }
    labels[i] = label;
}

// counts[labels[k]] <- how often each label occurs.
__kernel void KERNEL(level_count)(__global const uint *labels, __global uint *counts, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i < n && labels[i] != LEVEL_NONE) {
        atomic_add((volatile __global uint *)counts + labels[i], 1u);
    }
}

// The rows of each aggregate in any order; counts are used up.
__kernel void KERNEL(level_members)(__global const uint *labels, __global const uint *ends, __global uint *counts,
    __global uint *members, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i < n && labels[i] != LEVEL_NONE) {
        const uint left = atomic_sub((volatile __global uint *)counts + labels[i], 1u);
        members[ends[labels[i]] + left - 1] = i;
    }
}

// The norm of the near-null vector on each aggregate, its rows in increasing order, and the inverse of it.
__kernel void KERNEL(level_norms)(__global const uint *ends, __global uint *members, __global const number *near,
    __global number *norms, __global double *inverses, const uint has_near, const uint count) {
    const uint c = (uint)get_global_id(0);
    if (c >= count) {
        return;
    }
    const uint from = ends[c], to = ends[c + 1];
    double squares = 0.0;
    if (has_near) {
        for (uint k = from + 1; k < to; k++) {
            const uint row = members[k];
            uint at = k;
            for (; at > from && members[at - 1] > row; at--) {
                members[at] = members[at - 1];
            }
            members[at] = row;
        }
        for (uint k = from; k < to; k++) {
            const number b = near[members[k]];
            squares += RE(b) * RE(b) + LEVEL_IM(b) * LEVEL_IM(b);
        }
    } else {
        squares = to - from;
    }
    const double norm = sqrt(squares), inverse = 1.0 / norm;
    norms[c] = from_real(norm);
    inverses[c] = isfinite(inverse) ? inverse : 0.0;
}

// The tentative prolongator: the near-null vector, normalised on each aggregate.
__kernel void KERNEL(level_tentative)(__global const uint *labels, __global const number *near,
    __global const double *inverses, __global number *t, const uint has_near, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i < n) {
        const uint label = labels[i];
        const number of = has_near ? near[i] : ONE;
        t[i] = label == LEVEL_NONE ? ZERO : times(of, from_real(inverses[label]));
    }
}

// The columns of P in each row, increasing: the aggregates of its strong neighbours, in the places of the row of A.
__kernel void KERNEL(level_prolong_columns)(__global const uint *rows, __global const uint *columns,
    __global const uchar *strong, __global const uint *labels, __global uint *found, __global uint *counts,
    const uint all, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i >= n) {
        return;
    }
    const uint from = rows[i];
    uint end = from;
    for (uint k = from; labels[i] != LEVEL_NONE && k < rows[i + 1]; k++) {
        const uint label = all || strong[k] ? labels[columns[k]] : LEVEL_NONE;
        uint at = end;
        while (at > from && found[at - 1] > label) {
            at--;
        }
        if (label == LEVEL_NONE || (at > from && found[at - 1] == label)) {
            continue;
        }
        for (uint moved = end++; moved > at; moved--) {
            found[moved] = found[moved - 1];
        }
        found[at] = label;
    }
    counts[i] = end - from;
}

// P = (I - omega D_F^-1 A_F) T; refused <- 1 if a value is not finite.
__kernel void KERNEL(level_prolong)(__global const uint *rows, __global const uint *columns, __global const number *values,
    __global const uchar *strong, __global const number *lumped, __global const number *by, __global const uint *labels,
    __global const number *t, __global const uint *found, __global const uint *p_rows, __global uint *p_columns,
    __global number *p_values, __global uint *refused, const uint low, const uint high, const uint all, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i >= n || p_rows[i] == p_rows[i + 1]) {
        return;
    }
    const uint from = p_rows[i], to = p_rows[i + 1];
    for (uint e = from; e < to; e++) {
        p_columns[e] = found[rows[i] + e - from];
        p_values[e] = ZERO;
    }
    const number factor = times(from_real(-level_double(low, high)), quotient(ONE, by[i]));
    const number own = ONE + times(factor, lumped[i]);
    for (uint k = rows[i]; k < rows[i + 1]; k++) {
        const uint j = columns[k], label = all || strong[k] ? labels[j] : LEVEL_NONE;
        for (uint e = from; label != LEVEL_NONE && e < to; e++) {
            if (p_columns[e] == label) {
                const number term = j == i ? times(own, t[i]) : times(times(factor, values[k]), t[j]);
                p_values[e] = p_values[e] + term;
                break;
            }
        }
    }
    for (uint e = from; e < to; e++) {
        if (!is_finite(p_values[e])) {
            *refused = 1;
        }
    }
}

// The rows and places of the entries of each column in any order; counts are used up.
__kernel void KERNEL(level_scatter)(__global const uint *rows, __global const uint *columns, __global const uint *ends,
    __global uint *counts, __global uint *from_rows, __global uint *places, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i >= n) {
        return;
    }
    for (uint k = rows[i]; k < rows[i + 1]; k++) {
        const uint left = atomic_sub((volatile __global uint *)counts + columns[k], 1u);
        const uint at = ends[columns[k]] + left - 1;
        from_rows[at] = i;
        places[at] = k;
    }
}

// The adjoint: each of its rows in increasing order, the place of an entry being the number of smaller ones.
__kernel void KERNEL(level_turn)(__global const uint *ends, __global const uint *from_rows, __global const uint *places,
    __global const number *values, __global uint *turned_columns, __global number *turned, const uint count) {
    const uint c = (uint)(get_global_id(0) / 32), lane = (uint)(get_global_id(0) % 32);
    if (c >= count) {
        return;
    }
    const uint from = ends[c], to = ends[c + 1];
    for (uint e = from + lane; e < to; e += 32) {
        uint at = from;
        for (uint other = from; other < to; other++) {
            at += from_rows[other] < from_rows[e];
        }
        turned_columns[at] = from_rows[e];
        turned[at] = conjugate(values[places[e]]);
    }
}

// A coarse row that is 0 but for rounding, and coupled with none, gets the size of the diagonal entries above it. count <- how
// many there are.
__kernel void KERNEL(level_regular)(__global const uint *rows, __global const uint *columns, __global number *values,
    __global const uint *r_rows, __global const uint *r_columns, __global const number *r_values,
    __global const number *diagonal, __global uint *count, const uint low, const uint high, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i >= n || rows[i + 1] - rows[i] != 1 || columns[rows[i]] != i) {
        return;
    }
    double scale = 0.0;
    for (uint k = r_rows[i]; k < r_rows[i + 1]; k++) {
        const double v = level_size(r_values[k]);
        scale += v * v * level_size(diagonal[r_columns[k]]);
    }
    if (level_size(values[rows[i]]) <= ROUNDING * level_double(low, high) * scale) {
        values[rows[i]] = from_real(scale);
        atomic_add((volatile __global uint *)count, 1u);
    }
}
#endif

// The places of a matrix in slices, as crates/gpu/src/slices.rs lays them out: column `at` of slice `s` is that of row
// `row_of[s * of_slice + at / lanes]`, or of the row with that number where rows keep their order (`row_at` is
// LEVEL_NONE). A row of a block of a matrix in blocks is a run of `run` values for each column.
__kernel void KERNEL(level_slices)(__global const uint *rows, __global const uint *columns, __global const number *values,
    __global const uint *windows, __global uint *to_columns, __global number *to_values, const uint slice_at,
    const uint row_at, const uint columns_at, const uint values_at, const uint of_slice, const uint width,
    const uint lanes, const uint block, const uint run, const uint slices, const uint n) {
    const uint place = (uint)get_global_id(0), s = place / width, at = place % width;
    if (s >= slices) {
        return;
    }
    const uint from = windows[slice_at + s], length = windows[slice_at + s + 1] - from;
    const uint number_of = s * of_slice + at / lanes;
    const uint row = row_at == LEVEL_NONE ? number_of : windows[row_at + number_of];
    __global uint *own_columns = to_columns + columns_at + (ulong)from * width + at;
    __global number *own_values = to_values + values_at + (ulong)from * width * run + at;
    const uint of = row / block, r = row % block, lane = at % lanes;
    uint k = 0, end = 0;
    if (row < n) {
        k = rows[of] + lane;
        end = rows[of + 1];
    }
    // An entry of a block at a time, `run` of them to a column.
    uint c = 0;
    for (uint e = 0; e < length * run; e++) {
        const bool there = k < end;
        if (e % run == 0) {
            own_columns[(ulong)(e / run) * width] = there ? columns[k] * block + c : LEVEL_NONE;
        }
        own_values[(ulong)e * width] = there ? values[((ulong)k * block + c) * block + r] : ZERO;
        if (++c == block) {
            c = 0;
            k += lanes;
        }
    }
}
