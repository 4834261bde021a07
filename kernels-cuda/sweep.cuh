// One operation in one kernel: shared parts of sweep.cu, the products (spmv_*.cu) and basis.cu.
//
// Formula: a row of a pass is a list of terms over slots; see crates/engine/src/ir/lower.rs for the rounding of each.
// Launch shape: blocks of 256 threads process a segment of 256 rows at a time, one row for each thread; a block takes
// consecutive segments. The slots of a row and its dot terms are in dynamic shared memory. Sums: a warp sums one dot
// product of a segment. The last block to end among those of 256 segments sums these; the last of all sums the rest and
// evaluates the instructions, so that the device is ready for the next kernel. A kernel whose operation is not the next
// one in the control block returns at once.
#pragma once
#include "cells.cuh"
#include "sum.cuh"

#define BLOCK 256u
#define WARPS 8u

// A term, four words: flags; its cell, or NONE; slot of the vector and, in the upper 16 bits, of the factor; the slot
// written.
#define TERM_MINUS 1u   // coefficient -1
#define TERM_CELL 2u    // coefficient in a cell
#define TERM_FIRST 4u   // begins an update
#define TERM_LAST 8u    // ends an update
#define TERM_FACTOR 16u // has an element-wise factor
#define TERM_EMPTY 32u  // an update without terms: 0

#define MAX_SLOTS 32u
#define MAX_TERMS 96u
#define MAX_DOTS 32u
#define NO_SLOT 255u

#define ALONE 1u
#define PART 2u

// Adds a term to the sum so far.
template <typename T> LACUNA_FN T add_term(u32 flags, T c, T v, T f, T sum) {
    if (flags & TERM_CELL) {
        if (flags & TERM_FACTOR) v = mul(f, v);
        return flags & TERM_FIRST ? mul(c, v) : fma_of(c, v, sum);
    }
    if (flags & TERM_FACTOR) {
        if (flags & TERM_FIRST) return flags & TERM_MINUS ? neg(mul(f, v)) : mul(f, v);
        return fma_of(flags & TERM_MINUS ? neg(f) : f, v, sum);
    }
    if (flags & TERM_FIRST) return flags & TERM_MINUS ? neg(v) : v;
    return flags & TERM_MINUS ? sub(sum, v) : add(sum, v);
}

// The arguments common to all kernels of a program.
struct Common {
    Flow flow;
    u64 cells, control, history;
    u64 partial; // sums of segments, dot by dot, at `place_of`
    u64 group;   // sums of 256 segments each, in the same way
    u64 tickets; // one for the whole grid, then one for each group; 0 between kernels
    u32 alone;   // 0 in a program; ALONE: no control block, no instructions; PART: of a system on several devices, and sums stay
                 // those of segments
    u32 pad;
};

// One operation.
struct StreamOp {
    u32 op, n, segments, groups;
    u32 terms, loads, stores, dots;
    u32 slots, lanes, columns, h;
    u32 add, dot_cells_follow; // dot_cells_follow: cell of sum d is h + d
    u32 maxima, pad;           // the sums from this one on are maxima
    u32 sizes[2];              // the sizes among the arguments of a matrix's format
    u32 first, end;            // the segments that are computed
    u64 x, arrays[4];          // the operand of a product and the arrays of its matrix; a basis is arrays[0]
    u64 stride;                // elements between columns of a basis, or of X
    u64 y, y_stride;           // the columns of Y, and elements between columns
    u64 slot[MAX_SLOTS];
    uint4 term[MAX_TERMS];
    u32 dot_cell[MAX_DOTS];
    unsigned char load[MAX_SLOTS], store[MAX_SLOTS], dot_a[MAX_DOTS], dot_b[MAX_DOTS];
    unsigned char dot_factor[MAX_DOTS]; // NO_SLOT for none
};

LACUNA_FN bool is_next(const Common &c, const StreamOp &op) {
    return c.alone || ((const u64 *)c.control)[LACUNA_CONTROL_NEXT] == op.op;
}

// Maxima are rare: apart, so that they take no registers of sums.
template <typename T> __device__ __noinline__ T segment_maximum(const T *terms) {
    T e[8];
#pragma unroll
    for (u32 k = 0; k < 8; k++) e[k] = terms[threadIdx.x % WARP + WARP * k];
    return segment_sum<Maximum>(e);
}
template <typename T> __device__ __noinline__ T pair_maximum(const T *sums, u32 count) {
    return pair_sum<Maximum>(sums, count);
}

// The consecutive segments of this block.
LACUNA_FN void share(const StreamOp &op, u32 &from, u32 &to) {
    const u64 count = op.end - op.first;
    from = op.first + u32(count * blockIdx.x / gridDim.x);
    to = op.first + u32(count * (blockIdx.x + 1) / gridDim.x);
}

// Copies the coefficients of the terms to shared memory. Ends without a barrier.
template <typename T> LACUNA_FN void fetch_coefficients(const Common &c, const StreamOp &op, T *coefficient) {
    const T *cells = (const T *)c.cells;
    for (u32 t = threadIdx.x; t < op.terms; t += BLOCK)
        if (op.term[t].x & TERM_CELL) coefficient[t] = cells[op.term[t].y];
}

// The rows of one segment, once slot 0 of a product or basis update is computed: loads, updates, stores, and the sums
// of the dot products. `terms` has room for the dot terms of one segment. Every thread of the block calls it.
template <bool N, typename T>
LACUNA_FN void sweep_rows(const Common &c, const StreamOp &op, u32 segment, T *slots, T *terms, const T *coefficient) {
    u32 tid = threadIdx.x, row = segment * SEGMENT + tid;
    bool live = row < op.n;
    T *mine = slots + tid;
    if (live) {
        // The result of a product is rounded to the type of its vector.
        if (N) mine[0] = Vector<N, T>::kept(op.slot[0], mine[0]);
        for (u32 l = 0; l < op.loads; l++) {
            u32 s = op.load[l];
            mine[s * BLOCK] = Vector<N, T>::source(op.slot[s])[row];
        }
        T sum = zero<T>();
        for (u32 t = 0; t < op.terms; t++) {
            uint4 term = op.term[t];
            if (term.x & TERM_EMPTY) {
                sum = zero<T>();
            } else {
                T v = mine[(term.z & 0xffffu) * BLOCK], f = v, k = v;
                if (term.x & TERM_FACTOR) f = mine[(term.z >> 16) * BLOCK];
                if (term.x & TERM_CELL) k = coefficient[t];
                sum = add_term(term.x, k, v, f, sum);
            }
            if (term.x & TERM_LAST) mine[term.w * BLOCK] = Vector<N, T>::kept(op.slot[term.w], sum);
        }
        for (u32 l = 0; l < op.stores; l++) {
            u32 s = op.store[l];
            Vector<N, T>::put(op.slot[s], row, mine[s * BLOCK]);
        }
    }
    if (op.dots == 0) return;
    for (u32 d = 0; d < op.dots; d++) {
        T term = zero<T>();
        if (live) {
            T b = mine[op.dot_b[d] * BLOCK];
            if (op.dot_factor[d] != NO_SLOT) b = mul(mine[op.dot_factor[d] * BLOCK], b);
            term = d >= op.maxima ? square(b) : dot_term(mine[op.dot_a[d] * BLOCK], b);
        }
        terms[d * BLOCK + tid] = term;
    }
    __syncthreads();
    T *partial = (T *)c.partial + place_of(segment);
    for (u32 d = tid / WARP; d < op.dots; d += WARPS) {
        T sum;
        if (d >= op.maxima) {
            sum = segment_maximum(terms + d * BLOCK);
        } else {
            T e[8];
#pragma unroll
            for (u32 k = 0; k < 8; k++) e[k] = terms[d * BLOCK + tid % WARP + WARP * k];
            sum = segment_sum(e);
        }
        if (tid % WARP == 0) partial[d * room_of(op.segments)] = sum;
    }
}

// The sum of `count` sums by neighbouring pairs, in lane 0. Overwrites them.
template <typename Join, typename T> LACUNA_FN T sum_levels(T *sums, u32 count) {
    while (count > SEGMENT) {
        u32 next = (count + SEGMENT - 1) / SEGMENT;
        for (u32 g = 0; g < next; g++) {
            T sum = pair_sum<Join>(sums + g * SEGMENT, count - g * SEGMENT);
            __syncwarp();
            if (threadIdx.x % WARP == 0) sums[place_of(g)] = sum; // among those just summed, or before them
            __syncwarp();
        }
        count = next;
    }
    return pair_sum<Join>(sums, count);
}

template <typename T> __device__ __noinline__ T maximum_levels(T *sums, u32 count) {
    return sum_levels<Maximum>(sums, count);
}

// The last block to end sums what is left, sets the cells and continues the program. Every thread calls it.
template <typename T> __device__ __noinline__ void conclude(const Common &c, const StreamOp &op) {
    u32 tid = threadIdx.x, warp = tid / WARP;
    T *cells = (T *)c.cells;
    // Prefetches what the instructions will read into the first-level cache.
    if (!c.alone) {
        const u32 *record = c.flow.words + op.op * LACUNA_OP_WORDS;
        const volatile u32 *touch = c.flow.words;
        if (warp == WARPS - 1) {
            u32 words = record[LACUNA_OP_AFTER_COUNT] * LACUNA_INSTR_WORDS;
            for (u32 i = tid % WARP * 8; i < words; i += 8 * WARP) (void)touch[record[LACUNA_OP_AFTER] + i];
            (void)((const volatile u64 *)c.control)[tid % 16];
        }
    }
    for (u32 d = warp; d < op.dots; d += WARPS) {
        T sum;
        if (op.groups > 1) {
            T *sums = (T *)c.group + d * room_of(op.groups);
            sum = d >= op.maxima ? maximum_levels(sums, op.groups) : sum_levels<Sum>(sums, op.groups);
        } else
            sum = ((const T *)(op.segments > 1 ? c.group : c.partial))[d * room_of(1)];
        if (tid % WARP == 0) cells[op.dot_cells_follow ? op.h + d : op.dot_cell[d]] = sum;
    }
    __syncthreads();
    if (tid == 0 && !c.alone) {
        Machine<T> m;
        m.flow = c.flow;
        m.cells = cells;
        m.control = (u64 *)c.control;
        m.history = (typename Machine<T>::R *)c.history;
        m.advance(op.op);
    }
}

// After the last segment of a block: the last block to end continues. Every thread calls it.
template <typename T> LACUNA_FN void finish(const Common &c, const StreamOp &op, u32 from, u32 to) {
    __shared__ bool last;
    if (c.alone == PART) return;
    u32 tid = threadIdx.x;
    u32 *tickets = (u32 *)c.tickets;
    u32 goal = gridDim.x; // arrivals at the top ticket
    if (op.dots > 0 && op.segments > 1) {
        goal = op.groups;
        bool any = false;
        for (u32 g = from / SEGMENT; g * SEGMENT < to; g++) {
            u32 first = g * SEGMENT, count = min(op.segments - first, SEGMENT);
            __syncthreads();
            if (tid == 0) {
                u32 mine = min(to, first + count) - max(from, first);
                __threadfence();
                last = atomicAdd(tickets + 1 + g, mine) + mine == count;
            }
            __syncthreads();
            if (!last) continue;
            __threadfence();
            if (tid == 0) tickets[1 + g] = 0;
            for (u32 d = tid / WARP; d < op.dots; d += WARPS) {
                const T *sums = (const T *)c.partial + d * room_of(op.segments) + first;
                T sum = d >= op.maxima ? pair_maximum(sums, count) : pair_sum(sums, count);
                if (tid % WARP == 0) ((T *)c.group)[d * room_of(op.groups) + place_of(g)] = sum;
            }
            __syncthreads();
            if (tid == 0) {
                __threadfence();
                last = atomicAdd(tickets, 1u) + 1 == goal;
            }
            __syncthreads();
            any = any || last;
        }
        if (!any) return;
    } else {
        __syncthreads();
        if (tid == 0) {
            __threadfence();
            last = atomicAdd(tickets, 1u) + 1 == goal;
        }
        __syncthreads();
        if (!last) return;
    }
    __threadfence();
    if (tid == 0) tickets[0] = 0;
    conclude<T>(c, op);
}

// Entries that a thread has in flight.
template <typename T> struct Depth { static const u32 count = sizeof(T) > 8 ? 4 : 8; };

// A product and the pass on the rows just computed: `rows(base, slots)` leaves the rows of the segment that begins at
// row `base` in slot 0, either each in its own thread or all visible to all threads.
template <bool N, typename T, typename Rows>
LACUNA_FN void over_segments(const Common &c, const StreamOp &op, unsigned char *memory, T *coefficient, Rows rows) {
    if (!is_next(c, op)) return;
    T *slots = (T *)memory, *terms = slots + op.slots * BLOCK;
    fetch_coefficients(c, op, coefficient);
    __syncthreads();
    u32 from, to;
    share(op, from, to);
    for (u32 s = from; s < to; s++) {
        rows(s * SEGMENT, slots);
        sweep_rows<N>(c, op, s, slots, terms + (s & 1) * op.dots * BLOCK, coefficient);
    }
    finish<T>(c, op, from, to);
}
