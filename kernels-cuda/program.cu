// A whole program in one launch: the operations of its table, over and over, until it stops.
//
// Formula: operation by operation what sweep.cu, spmv_csr.cu and basis.cu compute. Each block keeps consecutive segments of
// the rows: the vectors' share of them in shared memory as far as that goes, where a pass changes it in place. The table and
// the cells are in shared memory; each block evaluates all cell instructions for itself and so knows what runs next.
//
// Blocks meet through words (words.cuh): a product reads the rows of x of other blocks as words of value and tag; an operation
// with sums ends with an exchange (exchange.cuh). Where a vector is written as words that another block may still have to
// read, and no sums came between, a barrier does.
//
// Bytes per row and iteration: the entries of the matrix, where they are not in shared memory, and 16 for each row of x another
// block needs. Launch shape: a cooperative launch, at most one block for each segment, up to 512 threads; one block exchanges
// nothing. Assumes: all operations go over the same n rows and square matrices; 16-byte accesses to aligned words are single.
#include "evaluate.cuh"
#include "exchange.cuh"
#include "product.cuh"
#include "update.cuh"

// Fills the table in: addresses for indices, and the rows of matrix 0 in shared memory.
template <typename T> LACUNA_FN void settle(const Block<T> &b, u64 tag) {
    const ProgramArgs &a = b.a;
    const u32 first = b.first, rows = b.rows;
    for (u32 v = b.tid; v < a.vectors; v += b.threads) {
        VectorPlace &p = b.vector(v);
        p.global += u64(first) * sizeof(T);
        p.at = p.home == LACUNA_NONE ? p.global : u64(b.memory + p.home);
        p.tag = tag;
    }
    if (b.tid < a.matrices) {
        MatrixPlace &m = ((MatrixPlace *)(b.table + a.at_matrices))[b.tid];
        m.row_ptr += u64(first) * 4;
        m.groups += u64(first / (WARP / m.lanes)) * 4;
        m.count = 0;
        if (!b.one) {
            const u32 *offsets = (const u32 *)m.offsets;
            const u32 from = offsets[blockIdx.x];
            m.count = offsets[blockIdx.x + 1] - from;
            m.list += u64(from) * 4;
        }
    }
    __syncthreads();
    for (u32 t = b.tid; t <= a.terms; t += b.threads) { // and the one behind the last, which is read ahead of
        HotTerm &term = ((HotTerm *)(b.table + a.at_terms))[t];
        term.vector = b.vector(u32(term.vector)).at;
        term.to = b.vector(u32(term.to)).at;
        const VectorPlace &to = b.vector(term.flags >> 16);
        if (term.flags & TERM_WORDS) term.factor = to.words + u64(first) * Parts<T>::count * 16;
        else term.factor = b.vector(u32(term.factor)).at;
    }
    for (u32 v = 0; v < a.vectors; v++) {
        const VectorPlace &p = b.vector(v);
        const bool shared = !b.one && p.flags & VECTOR_SHARED;
        if (p.home == LACUNA_NONE && !shared) continue;
        const T *from = (const T *)p.global;
        T *to = (T *)p.at;
#pragma unroll 1
        for (u32 i = b.tid; i < rows; i += b.threads) {
            T value = from[i];
            if (p.home != LACUNA_NONE) to[i] = value;
            if (shared) put_number(p.words, first + i, value, tag);
        }
    }
    if (a.at_values) {
        MatrixPlace &m = ((MatrixPlace *)(b.table + a.at_matrices))[0];
        const u32 *row_ptr = (const u32 *)m.row_ptr, *list = (const u32 *)m.list, *groups = (const u32 *)m.groups;
        const u32 last = (rows + WARP / m.lanes - 1) / (WARP / m.lanes), begin = groups[0], count = groups[last] - begin;
        const u32 *col_idx = (const u32 *)m.col_idx + begin;
        const T *values = (const T *)m.values + begin;
        u32 *rp = (u32 *)(b.memory + a.at_row_ptr), *ci = (u32 *)(b.memory + a.at_col_idx);
        u32 *li = (u32 *)(b.memory + a.at_list), *gr = (u32 *)(b.memory + a.at_groups);
        T *va = (T *)(b.memory + a.at_values);
        for (u32 i = b.tid; i <= rows; i += b.threads) rp[i] = row_ptr[i];
        for (u32 i = b.tid; i <= last; i += b.threads) gr[i] = groups[i] - begin;
        for (u32 i = b.tid; i < m.count; i += b.threads) li[i] = list[i];
#pragma unroll 4
        for (u32 i = b.tid; i < count; i += b.threads) {
            ci[i] = col_idx[i];
            va[i] = values[i];
        }
        for (u32 i = count + b.tid; i < count + AHEAD * WARP; i += b.threads) {
            ci[i] = 0;
            va[i] = zero<T>();
        }
        __syncthreads();
        if (b.tid == 0) {
            m.row_ptr = u64(rp);
            m.col_idx = u64(ci);
            m.values = u64(va);
            m.list = u64(li);
            m.groups = u64(gr);
        }
    }
}

template <typename T> LACUNA_FN void program(const ProgramArgs &a) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) u64 control[LACUNA_CONTROL_WORDS];
    __shared__ u32 next;
    __shared__ __align__(16) unsigned char machine[sizeof(Machine<T>)];
    const u32 tid = threadIdx.x, threads = blockDim.x, lane = tid % WARP;
    const bool one = gridDim.x == 1;
    const u32 from = u32(u64(a.segments) * blockIdx.x / gridDim.x);
    const u32 to = u32(u64(a.segments) * (blockIdx.x + 1) / gridDim.x);
    const u32 first = from * SEGMENT, rows = min(a.n, to * SEGMENT) - first;
    u32 *table = (u32 *)memory;
    T *cells = (T *)(memory + a.at_cells) - a.cell_first;
    const Block<T> b = {a, memory, table, cells, (T *)(memory + a.at_sums), control, first, rows, from, to - from,
                        tid, threads, one, a.at_values && (one || a.at_halo != LACUNA_NONE)};

    // The table, the cells and the control block.
    for (u32 i = tid; i < a.table_words / 4; i += threads) ((uint4 *)table)[i] = ((const uint4 *)a.table)[i];
    for (u32 i = tid; i < a.cell_count; i += threads) {
        const u32 c = a.cell_first + i, k = c - a.changed_first;
        cells[c] = k < a.changed_count ? ((const T *)a.changed)[k] : ((const T *)a.cells)[c];
    }
    if (tid < LACUNA_CONTROL_WORDS) control[tid] = a.control[tid];
    if (tid == 0) {
        T *ones = cells + a.cell_first + a.cell_count;
        ones[0] = number<T>(1.0);
        ones[1] = number<T>(-1.0);
    }
    __syncthreads();
    u64 epoch = a.control[LACUNA_CONTROL_EPOCH], tag = epoch;
    settle(b, tag);

    Machine<T> &m = *(Machine<T> *)machine;
    if (tid == 0) {
        m.flow.words = a.at_words != LACUNA_NONE ? table + a.at_words : (const u32 *)a.words;
        for (u32 i = 0; i < 3; i++) m.flow.first[i] = a.first[i];
        m.cells = cells;
        m.control = control;
        m.history = (typename Machine<T>::R *)a.history;
        m.passes = a.passes;
    }
    // Every block evaluates; only the first keeps the history.
    if (tid == 0) {
        if (blockIdx.x != 0) control[LACUNA_CONTROL_STRIDE] = 0;
        next = m.advance(LACUNA_NONE, false);
    }
    __syncthreads();

    const bool watched = a.passes != ~0ull;
    const HotOp *ops = (const HotOp *)(table + a.at_ops);
    u32 read = 0;                 // as words, since the last exchange
    u32 fetched = LACUNA_NONE;    // the operation whose halo is there
    u32 at = next;
    HotOp op = ops[at != LACUNA_NONE ? at : 0];
    while (at != LACUNA_NONE) {
        tag++;
        if (!one) {
            if (op.writes & read) {
                barrier(b, ++epoch);
                read = 0;
            }
            read |= op.reads;
        }
        if (op.what() == LACUNA_KIND_SPMV) {
            if (!one && fetched != at) {
                fetch_halo(b, b.matrix(op.matrix), b.vector(op.x), tid, threads);
                __syncthreads();
            }
            product(b, op.matrix, op.x, op.y, tag);
        } else if (op.what() == LACUNA_KIND_BASIS_AXPY) {
            update_by_basis(b, op, tag);
        }
        if (!IsComplex<T>::value && op.terms & TERMS_PLAIN && rows > 2 * threads) update_many(b, op, tag);
        else if (op.terms & TERMS_PLAIN) update<T, !IsComplex<T>::value>(b, op, tag);
        else if (op.terms > 0) update<T, false>(b, op, tag);
        // What most likely comes next.
        const u32 guess = op.next != LACUNA_NONE ? op.next & ~NEXT_WRAPS : at;
        const HotOp ahead = ops[guess];
        fetched = LACUNA_NONE;
        __syncthreads();
        if (op.dots > 0) {
            if (!one) {
                epoch++;
                read = 0;
                if (op.next != LACUNA_NONE && ahead.what() == LACUNA_KIND_SPMV && op.dots * a.groups < threads / WARP) {
                    fetched = guess;
                    read = ahead.reads;
                }
            }
            // The halo of the next operation comes while the first warps wait for the sums of this one.
            sum_up(b, op, epoch, [&](u32 waiting) {
                if (fetched != LACUNA_NONE && tid >= waiting * WARP)
                    fetch_halo(b, b.matrix(ahead.matrix), b.vector(ahead.x), tid - waiting * WARP, threads - waiting * WARP);
            });
        } else if (op.chunks == 0 && op.next != LACUNA_NONE && ahead.section() == op.section() && !(watched && op.next & NEXT_WRAPS)) {
            at = guess;
            op = ahead;
            continue;
        }
        if (tid < WARP) {
            bool goes_on = op.chunks != LACUNA_NONE;
            const bool evaluated = goes_on;
            const u32 chunks = watched && op.next & NEXT_WRAPS ? op.chunks >> 16 : op.chunks & 0xffffu;
#pragma unroll 1
            for (u32 c = 0; goes_on && c < chunks; c++) {
                const Ready r = ready(table, (const Chunk *)(table + op.at_plan) + c, lane);
                goes_on = evaluate(b, m, r, lane);
                if (goes_on && r.special != LACUNA_NONE) goes_on = evaluate_alone(b, m, m.flow.words + r.special, lane);
            }
            goes_on = goes_on && op.next != LACUNA_NONE && !(watched && op.next & NEXT_WRAPS);
            if (lane == 0) {
                if (goes_on && ahead.section() != op.section()) control[LACUNA_CONTROL_SECTION] = ahead.section();
                next = goes_on ? guess : m.advance(at, evaluated);
            }
        }
        __syncthreads();
        at = next;
        op = ahead;
        if (at != guess && at != LACUNA_NONE) op = ops[at];
    }

    // What has changed, back to global memory, and what the host asks for to the host's; once every block has read the cells it
    // began with, which an exchange says too.
    if (!one && epoch == a.control[LACUNA_CONTROL_EPOCH]) barrier(b, ++epoch);
    for (u32 v = 0; v < a.vectors; v++) {
        const VectorPlace &p = b.vector(v);
        if (!(p.flags & VECTOR_WRITTEN) || p.home == LACUNA_NONE) continue;
        const T *from = (const T *)p.at;
        T *to = (T *)p.global;
#pragma unroll 1
        for (u32 i = tid; i < rows; i += threads) to[i] = from[i];
    }
    if (blockIdx.x == 0) {
        for (u32 i = tid; i < a.cell_count; i += threads) {
            T value = cells[a.cell_first + i];
            ((T *)a.cells)[a.cell_first + i] = value;
            if (a.result_cells) ((T *)(a.result + RESULT_CELLS))[i] = value;
        }
        if (tid < LACUNA_CONTROL_WORDS)
            ((u64 *)a.result)[tid] = tid == LACUNA_CONTROL_EPOCH ? max(epoch, tag) + 1 : control[tid];
        const u64 count = control[LACUNA_CONTROL_HISTORY];
        typedef typename Machine<T>::R R;
        for (u32 i = tid; i < count && i < a.short_history; i += threads)
            ((R *)(a.result + RESULT_HISTORY))[i] = ((const R *)a.history)[i];
    }
}

#define KERNELS(T, S)                                                                                                \
    extern "C" __global__ void __launch_bounds__(512, 1)                                                             \
        program_##S(const __grid_constant__ ProgramArgs a) { program<T>(a); }
LACUNA_TYPES(KERNELS)
