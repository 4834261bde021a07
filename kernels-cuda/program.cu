// A whole program in one launch: the operations of its table, over and over, until it stops.
//
// Formula: operation by operation what sweep.cu, spmv_csr.cu and basis.cu compute. Each block keeps consecutive segments
// of the rows, and for `resident` programs every vector's share of them in shared memory, where a pass changes it in
// place; what other blocks read (the operands of products) is written to global memory too. The table and the cells
// are in shared memory; each block evaluates all cell instructions for itself and so knows what runs next.
//
// Exchange: an operation with sums ends with one. A block publishes the sums of its segments as 16-byte words of value
// and epoch; every block polls the words of all segments and sums them canonically. So barrier and reduction are one
// round trip through the second-level cache. Words alternate between two halves of a buffer: who writes epoch e + 2 has
// seen all words of e + 1, which were written after those of e had been read. Operations without sums exchange only
// where one reads across blocks what was written since, or writes what was read.
//
// Bytes per row and iteration: the entries of the matrix, and x through the second-level cache; with a resident program
// nothing else, with a staged matrix (its rows copied to shared memory) x alone. Launch shape: a cooperative launch, at
// most one block for each segment, up to 512 threads; one block exchanges nothing. Assumes: all operations go over the
// same n rows and square matrices; 16-byte accesses to aligned words are single (sm_70 and later).
#include "sweep.cuh"

#define VECTOR_WRITTEN 1u // differs from global memory at the end
#define VECTOR_SHARED 2u  // read across blocks

struct ProgramArgs {
    u64 words, cells, control, history, exchange;
    u64 passes;
    u32 word_count; // a multiple of 4
    u32 first[3];
    u32 at_vectors; // words: address and flags as two 64-bit numbers each
    u32 at_columns; // words: the vectors that are the columns of the bases
    u32 at_bases;   // words: where the columns of a basis start
    u32 at_matrices; // words: row_ptr, col_idx, values as 64-bit numbers, lanes as one; NONE in unused places
    u32 at_plans;   // words: for each operation its short plan, four words: see `Plan`
    u32 at_hazards; // words: for each operation what it writes for others, what it reads of others, 64 bits each
    u32 vectors;
    u32 cell_first, cell_count;
    u32 n, segments, groups;
    u32 exchange_words; // 16-byte words of one half
    u32 at_cells, at_sums, at_home, home_stride; // bytes; elements
    u32 at_row_ptr, at_col_idx, at_values;       // bytes: the rows of matrix 0; all 0 where they are not staged
};

// How the instructions after an operation are evaluated by the lanes of one warp, one each: words where they start, how
// many, how many levels, and the operation that comes next where nothing is decided. `levels` NONE: one by one.
struct Plan {
    u32 at, count, levels, next;
};
// An instruction of a plan: x: its code, above 8 bits its level, above 16 the test, above 24 whether it is soft; y: the
// cell written or the reason; z and w: the operands. An instruction of a level needs nothing of its own level or later.
#define PLAN_WRAPS 0x80000000u // of `next`: a pass through `each` ends

#ifdef __CUDACC__
LACUNA_FN void put_word(u64 address, u64 value, u64 epoch) {
    asm volatile("{ .reg .b128 w; mov.b128 w, {%1, %2}; st.relaxed.gpu.global.b128 [%0], w; }"
                 :: "l"(address), "l"(value), "l"(epoch) : "memory");
}
LACUNA_FN void get_word(u64 address, u64 &value, u64 &epoch) {
    asm volatile("{ .reg .b128 w; ld.relaxed.gpu.global.b128 w, [%2]; mov.b128 {%0, %1}, w; }"
                 : "=l"(value), "=l"(epoch) : "l"(address) : "memory");
}
#endif

// A number as words of an exchange.
LACUNA_FN void to_words(f32 v, u64 (&w)[1]) { w[0] = __float_as_uint(v); }
LACUNA_FN void to_words(f64 v, u64 (&w)[1]) { w[0] = u64(__double_as_longlong(v)); }
LACUNA_FN void to_words(c32 v, u64 (&w)[1]) { w[0] = u64(__float_as_uint(v.im)) << 32 | __float_as_uint(v.re); }
LACUNA_FN void to_words(c64 v, u64 (&w)[2]) {
    w[0] = u64(__double_as_longlong(v.re));
    w[1] = u64(__double_as_longlong(v.im));
}
LACUNA_FN void of_words(f32 &v, const u64 (&w)[1]) { v = __uint_as_float(u32(w[0])); }
LACUNA_FN void of_words(f64 &v, const u64 (&w)[1]) { v = __longlong_as_double((long long)w[0]); }
LACUNA_FN void of_words(c32 &v, const u64 (&w)[1]) {
    v = complex(__uint_as_float(u32(w[0])), __uint_as_float(u32(w[0] >> 32)));
}
LACUNA_FN void of_words(c64 &v, const u64 (&w)[2]) {
    v = complex(__longlong_as_double((long long)w[0]), __longlong_as_double((long long)w[1]));
}
template <typename T> struct Parts { static const u32 count = sizeof(T) > 8 ? 2 : 1; };

LACUNA_FN u64 wide(const u32 *words) { return *(const u64 *)words; }

// The sum of a row's lane; see spmv_csr.cu. The arrays may be in shared memory.
template <typename T>
LACUNA_FN T row_lane(const u32 *col_idx, const T *values, const T *x, u32 k, u32 end, u32 lanes) {
    const u32 DEPTH = sizeof(T) > 8 ? 4 : 8;
    T sum = zero<T>();
#pragma unroll 1
    for (; k < end; k += DEPTH * lanes) {
        u32 column[DEPTH];
        T a[DEPTH], v[DEPTH];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (k + i * lanes < end) {
                column[i] = col_idx[k + i * lanes];
                a[i] = values[k + i * lanes];
            }
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (k + i * lanes < end) v[i] = x[column[i]];
#pragma unroll
        for (u32 i = 0; i < DEPTH; i++)
            if (k + i * lanes < end) sum = fma_of(a[i], v[i], sum);
    }
    return sum;
}

template <typename T, bool RESIDENT> struct Share {
    const ProgramArgs &a;
    const u32 *words;
    T *home;
    u32 first, rows;

    // The share of a vector, by row of the block.
    LACUNA_FN T *at(u32 v) const { return RESIDENT ? home + v * a.home_stride : global(v) + first; }
    LACUNA_FN T *global(u32 v) const { return (T *)wide(words + a.at_vectors + 4 * v); }
    LACUNA_FN u32 flags(u32 v) const { return words[a.at_vectors + 4 * v + 2]; }
};

// Evaluates a plan; every lane of a warp. Instructions behind one that halts the section are taken back: they are passed
// over. True where nothing was decided.
template <typename T> LACUNA_FN bool evaluate(Machine<T> &m, const u32 *words, const Plan &plan, T *cells, u64 *control, u32 lane) {
    uint4 w = {LACUNA_NONE, 0, 0, 0};
    if (lane < plan.count) w = ((const uint4 *)(words + plan.at))[lane];
    const u32 code = w.x & 0xffu, level = w.x >> 8 & 0xffu;
    bool fires = false;
    T old = zero<T>(), counted = zero<T>();
    u64 iterations = control[LACUNA_CONTROL_ITERATIONS] + 1, limit = control[LACUNA_CONTROL_LIMIT];
    u64 stride = control[LACUNA_CONTROL_STRIDE];
#pragma unroll 1
    for (u32 l = 0; l < plan.levels; l++) {
        if (level == l) {
            if (code < LACUNA_CODE_STOP) {
                T u = cells[w.z], v = cells[w.w];
                old = cells[w.y];
                cells[w.y] = value_of(code, u, v);
            } else if (code == LACUNA_CODE_COUNT) {
                counted = cells[w.z];
                fires = !is_finite(counted) || iterations >= limit;
            } else if (lane < plan.count) {
                fires = test_holds(cells, w.x >> 16 & 0xffu, w.z, w.w);
            }
        }
        __syncwarp();
    }
    const u32 fired = __ballot_sync(~0u, fires), stop = fired ? __ffs(fired) - 1 : WARP;
    if (code == LACUNA_CODE_COUNT && lane <= stop) {
        if (fires || stride > 1) {
            m.count(w.z);
        } else {
            typename RealOf<T>::type rr = typename RealOf<T>::type(re_of(counted));
            control[LACUNA_CONTROL_ITERATIONS] = iterations;
            control[LACUNA_CONTROL_RECURRENCE] = bits_of(rr);
            if (stride == 1) m.place(iterations, rr);
        }
    }
    if (fired == 0) {
        __syncwarp();
        return true;
    }
    if (lane > stop && code < LACUNA_CODE_STOP) cells[w.y] = old;
    if (lane == stop && code == LACUNA_CODE_LEAVE) m.word(LACUNA_CONTROL_LEFT) = 1;
    __syncwarp(); // a count before it
    if (lane == stop && code == LACUNA_CODE_STOP) m.stop(w.y, w.x >> 24);
    __syncwarp();
    return false;
}

// All blocks have come here, and see what each wrote before.
LACUNA_FN void barrier(const ProgramArgs &a, u64 epoch) {
    __syncthreads();
    if (threadIdx.x < WARP) {
        u64 half = a.exchange + (epoch & 1) * a.exchange_words * 16;
        if (threadIdx.x == 0) {
            __threadfence();
            put_word(half + blockIdx.x * 16, 0, epoch);
        }
        for (u32 i = threadIdx.x; i < gridDim.x; i += WARP) {
            u64 value, seen;
            do get_word(half + i * 16, value, seen);
            while (seen != epoch);
        }
        __threadfence();
    }
    __syncthreads();
}

template <typename T, bool RESIDENT> LACUNA_FN void program(const ProgramArgs &a) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ u64 control[LACUNA_CONTROL_WORDS];
    __shared__ u32 next;
    const u32 tid = threadIdx.x, threads = blockDim.x, warp = tid / WARP, lane = tid % WARP, warps = threads / WARP;
    const bool one = gridDim.x == 1;
    u32 *words = (u32 *)memory;
    T *cells = (T *)(memory + a.at_cells) - a.cell_first;
    T *sums = (T *)(memory + a.at_sums);

    const u32 from = u32(u64(a.segments) * blockIdx.x / gridDim.x);
    const u32 to = u32(u64(a.segments) * (blockIdx.x + 1) / gridDim.x);
    const u32 first = from * SEGMENT, mine = to - from;
    const u32 rows = min(a.n, to * SEGMENT) - first;
    const Share<T, RESIDENT> share = {a, words, (T *)(memory + a.at_home), first, rows};

    // The table, the cells and the control block.
    for (u32 i = tid; i < a.word_count / 4; i += threads) ((uint4 *)words)[i] = ((const uint4 *)a.words)[i];
    for (u32 i = tid; i < a.cell_count; i += threads) cells[a.cell_first + i] = ((const T *)a.cells)[a.cell_first + i];
    if (tid < LACUNA_CONTROL_WORDS) control[tid] = ((const u64 *)a.control)[tid];
    __syncthreads();
    if (RESIDENT)
        for (u32 v = 0; v < a.vectors; v++) {
            const T *from_global = share.global(v) + first;
            T *at = share.at(v);
            for (u32 i = tid; i < rows; i += threads) at[i] = from_global[i];
        }
    // The rows of matrix 0.
    const u32 *staged_row_ptr = nullptr, *staged_col_idx = nullptr;
    const T *staged_values = nullptr;
    if (a.at_values) {
        const u32 *m = words + a.at_matrices;
        const u32 *row_ptr = (const u32 *)wide(m) + first;
        u32 begin = row_ptr[0], count = row_ptr[rows] - begin;
        u32 *rp = (u32 *)(memory + a.at_row_ptr), *ci = (u32 *)(memory + a.at_col_idx);
        T *va = (T *)(memory + a.at_values);
        for (u32 i = tid; i <= rows; i += threads) rp[i] = row_ptr[i];
        for (u32 i = tid; i < count; i += threads) {
            ci[i] = ((const u32 *)wide(m + 2))[begin + i];
            va[i] = ((const T *)wide(m + 4))[begin + i];
        }
        staged_row_ptr = rp;
        staged_col_idx = ci - begin;
        staged_values = va - begin;
    }

    Machine<T> m;
    m.flow.words = words;
    for (u32 i = 0; i < 3; i++) m.flow.first[i] = a.first[i];
    m.cells = cells;
    m.control = control;
    m.history = (typename Machine<T>::R *)a.history;
    m.passes = a.passes;
    u64 epoch = control[LACUNA_CONTROL_EPOCH];
    __syncthreads();
    // Every block evaluates; only the first keeps the history.
    if (tid == 0) {
        if (blockIdx.x != 0) control[LACUNA_CONTROL_STRIDE] = 0;
        next = m.advance(LACUNA_NONE, false);
    }
    __syncthreads();

    u64 written = 0, read = 0; // since the last exchange
    for (u32 op = next; op != LACUNA_NONE; op = next) {
        const u32 *record = words + op * LACUNA_OP_WORDS;
        const u32 kind = record[LACUNA_OP_KIND];
        if (!one) {
            const u64 writes = wide(words + a.at_hazards + 4 * op), reads = wide(words + a.at_hazards + 4 * op + 2);
            if ((reads & written) | (writes & read)) {
                barrier(a, ++epoch);
                written = read = 0;
            }
            written |= writes;
            read |= reads;
        }

        if (kind == LACUNA_KIND_SPMV) {
            u32 which = record[LACUNA_OP_MATRIX], xv = record[LACUNA_OP_X], yv = record[LACUNA_OP_Y];
            const u32 *table = words + a.at_matrices + 8 * which;
            const u32 *row_ptr = (const u32 *)wide(table) + first, *col_idx = (const u32 *)wide(table + 2);
            const T *values = (const T *)wide(table + 4);
            const u32 lanes = table[6];
            if (which == 0 && staged_values) {
                row_ptr = staged_row_ptr;
                col_idx = staged_col_idx;
                values = staged_values;
            }
            const T *x = RESIDENT && one ? share.at(xv) : share.global(xv);
            T *y = share.at(yv), *y_shared = nullptr;
            if (RESIDENT && !one && share.flags(yv) & VECTOR_SHARED) y_shared = share.global(yv) + first;
            if (lanes == 1) {
#pragma unroll 1
                for (u32 i = tid; i < rows; i += threads) {
                    T sum = row_lane(col_idx, values, x, row_ptr[i], row_ptr[i + 1], 1);
                    y[i] = sum;
                    if (y_shared) y_shared[i] = sum;
                }
            } else {
                u32 part = tid & (lanes - 1), step = threads / lanes;
#pragma unroll 1
                for (u32 base = 0; base < rows; base += step) {
                    u32 i = base + tid / lanes;
                    T sum = zero<T>();
                    if (i < rows) sum = row_lane(col_idx, values, x, row_ptr[i] + part, row_ptr[i + 1], lanes);
                    for (u32 d = lanes / 2; d > 0; d /= 2) sum = add(sum, from_lane_above(sum, d));
                    if (part == 0 && i < rows) {
                        y[i] = sum;
                        if (y_shared) y_shared[i] = sum;
                    }
                }
                __syncthreads();
            }
        } else if (kind == LACUNA_KIND_BASIS_AXPY) {
            u32 wv = record[LACUNA_OP_Y], columns = record[LACUNA_OP_COLUMNS];
            const u32 *column = words + a.at_columns + words[a.at_bases + record[LACUNA_OP_BASIS]];
            const T *h = cells + record[LACUNA_OP_H];
            const bool adds = record[LACUNA_OP_ADD] != 0;
            T *w = share.at(wv), *w_shared = nullptr;
            if (RESIDENT && !one && share.flags(wv) & VECTOR_SHARED) w_shared = share.global(wv) + first;
#pragma unroll 1
            for (u32 i = tid; i < rows; i += threads) {
                T sum = w[i];
#pragma unroll 1
                for (u32 j = 0; j < columns; j += 4) {
                    T k[4], v[4];
#pragma unroll
                    for (u32 c = 0; c < 4; c++)
                        if (j + c < columns) {
                            k[c] = adds ? h[j + c] : neg(h[j + c]);
                            v[c] = share.at(column[j + c])[i];
                        }
#pragma unroll
                    for (u32 c = 0; c < 4; c++)
                        if (j + c < columns && !is_zero(k[c])) sum = fma_of(k[c], v[c], sum);
                }
                w[i] = sum;
                if (w_shared) w_shared[i] = sum;
            }
        }

        // Updates; the table of this kernel names vectors where the others name slots.
        const u32 term_count = record[LACUNA_OP_TERM_COUNT];
        if (term_count > 0) {
            const uint4 *terms = (const uint4 *)(words + record[LACUNA_OP_UPDATES]);
            const u32 DEPTH = 4;
#pragma unroll 1
            for (u32 i = tid; i < rows; i += threads) {
                T sum = zero<T>();
#pragma unroll 1
                for (u32 t = 0; t < term_count; t += DEPTH) {
                    uint4 term[DEPTH];
                    T v[DEPTH], k[DEPTH];
#pragma unroll
                    for (u32 c = 0; c < DEPTH; c++)
                        term[c] = t + c < term_count ? terms[t + c] : uint4{TERM_EMPTY | TERM_FRESH, 0, 0, 0};
#pragma unroll
                    for (u32 c = 0; c < DEPTH; c++) {
                        k[c] = v[c] = zero<T>();
                        if (term[c].x & TERM_CELL) k[c] = cells[term[c].y];
                        if (!(term[c].x & (TERM_FRESH | TERM_EMPTY))) v[c] = share.at(term[c].z & 0xffffu)[i];
                    }
#pragma unroll
                    for (u32 c = 0; c < DEPTH; c++) {
                        const uint4 now = term[c];
                        if (now.x & TERM_EMPTY) {
                            sum = zero<T>();
                        } else {
                            if (now.x & TERM_FRESH) v[c] = share.at(now.z & 0xffffu)[i];
                            T f = v[c];
                            if (now.x & TERM_FACTOR) f = share.at(now.z >> 16)[i];
                            sum = add_term(now.x, k[c], v[c], f, sum);
                        }
                        if (now.x & TERM_LAST) {
                            share.at(now.w)[i] = sum;
                            if (RESIDENT && !one && now.x & TERM_SHARED) share.global(now.w)[first + i] = sum;
                        }
                    }
                }
            }
        }

        // Sums.
        const bool basis_dot = kind == LACUNA_KIND_BASIS_DOT;
        const u32 dots = basis_dot ? record[LACUNA_OP_COLUMNS] : record[LACUNA_OP_DOT_COUNT];
        __syncthreads();
        if (dots > 0) {
            const u32 *list = words + record[LACUNA_OP_DOTS];
            const u32 *column = basis_dot ? words + a.at_columns + words[a.at_bases + record[LACUNA_OP_BASIS]] : list;
            const u32 h = record[LACUNA_OP_H], wv = record[LACUNA_OP_Y];
            const u64 half = a.exchange + ((epoch + 1) & 1) * a.exchange_words * 16;
            bool fenced = false;
#pragma unroll 1
            for (u32 p = warp; p < dots * mine; p += warps) {
                u32 d = mine == 1 ? p : p / mine, s = p - d * mine;
                const T *left = share.at(basis_dot ? column[d] : list[d * LACUNA_DOT_WORDS + LACUNA_DOT_A]);
                const T *right = share.at(basis_dot ? wv : list[d * LACUNA_DOT_WORDS + LACUNA_DOT_B]);
                T e[8];
#pragma unroll
                for (u32 k = 0; k < 8; k++) {
                    u32 i = s * SEGMENT + lane + WARP * k;
                    e[k] = i < rows ? dot_term(left[i], right[i]) : zero<T>();
                }
                T sum = segment_sum(e);
                if (lane == 0) {
                    if (a.segments == 1) {
                        cells[basis_dot ? h + d : list[d * LACUNA_DOT_WORDS]] = sum;
                    } else if (one) {
                        sums[d * a.segments + s] = sum;
                    } else {
                        u64 w[Parts<T>::count];
                        to_words(sum, w);
                        if (!fenced && written) __threadfence();
                        fenced = true;
#pragma unroll
                        for (u32 q = 0; q < Parts<T>::count; q++)
                            put_word(half + ((d * a.segments + from + s) * Parts<T>::count + q) * 16, w[q], epoch + 1);
                    }
                }
            }
            if (a.segments == 1) {
                __syncthreads();
            } else if (one) {
                __syncthreads();
#pragma unroll 1
                for (u32 d = warp; d < dots; d += warps) {
                    T sum = sum_of(sums + d * a.segments, a.segments);
                    if (lane == 0) cells[basis_dot ? h + d : list[d * LACUNA_DOT_WORDS]] = sum;
                }
                __syncthreads();
            } else {
                epoch++;
#pragma unroll 1
                for (u32 p = warp; p < dots * a.groups; p += warps) {
                    u32 d = a.groups == 1 ? p : p / a.groups, g = p - d * a.groups;
                    T e[8];
                    bool there;
                    do {
                        there = true;
#pragma unroll
                        for (u32 k = 0; k < 8; k++) {
                            u32 i = g * SEGMENT + lane + WARP * k;
                            e[k] = zero<T>();
                            if (i < a.segments) {
                                u64 w[Parts<T>::count], seen;
#pragma unroll
                                for (u32 q = 0; q < Parts<T>::count; q++) {
                                    get_word(half + ((d * a.segments + i) * Parts<T>::count + q) * 16, w[q], seen);
                                    there = there && seen == epoch;
                                }
                                of_words(e[k], w);
                            }
                        }
                    } while (!there);
                    __syncwarp();
                    T sum = segment_sum(e);
                    if (lane == 0) {
                        if (a.groups == 1)
                            cells[basis_dot ? h + d : list[d * LACUNA_DOT_WORDS]] = sum;
                        else
                            sums[p] = sum;
                    }
                }
                // What other blocks wrote since the last exchange is seen from here on.
                if (written && warp < dots * a.groups) __threadfence();
                if (a.groups > 1) {
                    __syncthreads();
#pragma unroll 1
                    for (u32 d = warp; d < dots; d += warps) {
                        T sum = sum_of(sums + d * a.groups, a.groups);
                        if (lane == 0) cells[basis_dot ? h + d : list[d * LACUNA_DOT_WORDS]] = sum;
                    }
                }
                __syncthreads();
                written = read = 0;
            }
        }
        if (warp == 0) {
            const uint4 packed = *(const uint4 *)(words + a.at_plans + 4 * op);
            const Plan plan = {packed.x, packed.y, packed.z, packed.w};
            const bool evaluated = plan.levels != LACUNA_NONE;
            bool goes_on = evaluated && evaluate(m, words, plan, cells, control, lane) && plan.next != LACUNA_NONE;
            if (goes_on && plan.next & PLAN_WRAPS) goes_on = a.passes == ~0ull;
            if (lane == 0) next = goes_on ? plan.next & ~PLAN_WRAPS : m.advance(op, evaluated);
        }
        __syncthreads();
    }

    // What has changed, back to global memory, once every block has read what it began with.
    if (!one) barrier(a, ++epoch);
    if (RESIDENT)
        for (u32 v = 0; v < a.vectors; v++) {
            u32 flags = share.flags(v);
            if (!(flags & VECTOR_WRITTEN) || (!one && flags & VECTOR_SHARED)) continue;
            T *to_global = share.global(v) + first;
            const T *at = share.at(v);
            for (u32 i = tid; i < rows; i += threads) to_global[i] = at[i];
        }
    if (blockIdx.x == 0) {
        for (u32 i = tid; i < a.cell_count; i += threads) ((T *)a.cells)[a.cell_first + i] = cells[a.cell_first + i];
        if (tid < LACUNA_CONTROL_WORDS)
            ((u64 *)a.control)[tid] = tid == LACUNA_CONTROL_EPOCH ? epoch : control[tid];
    }
}

#define KERNELS(T, S)                                                                                                \
    extern "C" __global__ void __launch_bounds__(512)                                                                \
        program_##S(const __grid_constant__ ProgramArgs a) { program<T, false>(a); }                                 \
    extern "C" __global__ void __launch_bounds__(512)                                                                \
        program_resident_##S(const __grid_constant__ ProgramArgs a) { program<T, true>(a); }
LACUNA_TYPES(KERNELS)
