// C = A B of matrices in compressed rows, a row of C for each team of 4 to 32 threads; see crates/gpu/src/algebra/product.rs.
//
// Formula: c[i][j] = sum of a[i][k] b[k][j] over increasing k, each term rounded before it is added, from 0.
// Bytes per term: the entries of A once for each thread of a team, those of B once, a slot of a hash table (4), the columns
// of a row of C that a binary search meets, and the sum.
// Launch shape: one thread for each row (`product_bounds`), or a team (`product_insert`, `product_compact`, `product_sort`,
// `product_sums`), in blocks of 256; a block for each TILE elements (`product_tiles`, `product_ends`); one block
// (`product_scan`).
// Assumes: arrays to be filled are zeros. The columns of a row of B differ, so that no two threads add to a sum at a time.
#include "scalar.cuh"

// Elements of a block that scans.
static const u32 PRODUCT_BLOCK = 256, STRIP = 8, TILE = STRIP * PRODUCT_BLOCK;

// The slot of a column from which it is looked for.
LACUNA_FN u32 first_slot(u32 column, u32 slots) { return u32((u64(column * 0x9E3779B1u) * slots) >> 32); }

// The place of a column in a row of C that has it.
LACUNA_FN u32 place_of_column(const u32 *columns, u32 from, u32 to, u32 column) {
    while (from < to) {
        const u32 middle = from + (to - from) / 2;
        if (columns[middle] < column)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

// slots[i] <- one and a half times the products of entries in row i.
extern "C" __global__ void __launch_bounds__(256)
    product_bounds(const u32 *a_rows, const u32 *a_columns, const u32 *b_rows, u32 *slots, u32 rows) {
    const u32 i = blockIdx.x * PRODUCT_BLOCK + threadIdx.x;
    if (i >= rows) return;
    u64 products = 0;
    for (u32 k = a_rows[i]; k < a_rows[i + 1]; k++) products += b_rows[a_columns[k] + 1] - b_rows[a_columns[k]];
    products += products / 2;
    slots[i] = products < 0xffffffffu ? u32(products) : 0xffffffffu;
}

// The sum of `own` over this thread and those before it; all threads of the block call it.
LACUNA_FN u64 sum_so_far(u64 own, u64 *sums) {
    sums[threadIdx.x] = own;
    __syncthreads();
    for (u32 step = 1; step < PRODUCT_BLOCK; step *= 2) {
        const u64 before = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
        __syncthreads();
    }
    return sums[threadIdx.x];
}

// The largest `own` of the block, in the first thread; all threads call it.
LACUNA_FN u32 largest_of(u32 own, u32 *most) {
    most[threadIdx.x] = own;
    __syncthreads();
    for (u32 half = PRODUCT_BLOCK / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) most[threadIdx.x] = max(most[threadIdx.x], most[threadIdx.x + half]);
        __syncthreads();
    }
    return most[0];
}

// sums[t], largest[t] <- the sum and the largest of tile t of the counts.
extern "C" __global__ void __launch_bounds__(256)
    product_tiles(const u32 *counts, u64 *sums, u32 *largest, u32 n) {
    __shared__ u64 shared_sums[PRODUCT_BLOCK];
    __shared__ u32 shared_most[PRODUCT_BLOCK];
    const u64 first = u64(blockIdx.x) * TILE + threadIdx.x * STRIP;
    u64 sum = 0;
    u32 most = 0;
    for (u64 i = first; i < first + STRIP && i < n; i++) {
        sum += counts[i];
        most = max(most, counts[i]);
    }
    sum = sum_so_far(sum, shared_sums);
    most = largest_of(most, shared_most);
    if (threadIdx.x == PRODUCT_BLOCK - 1) sums[blockIdx.x] = sum;
    if (threadIdx.x == 0) largest[blockIdx.x] = most;
}

// sums[t] <- the sum of those before; totals <- the sum of all, and the largest.
extern "C" __global__ void __launch_bounds__(256) product_scan(u64 *sums, const u32 *largest, u64 *totals, u32 tiles) {
    __shared__ u64 shared_sums[PRODUCT_BLOCK];
    __shared__ u32 shared_most[PRODUCT_BLOCK];
    const u32 strip = tiles / PRODUCT_BLOCK + 1, from = min(threadIdx.x * strip, tiles), to = min(from + strip, tiles);
    u64 own = 0;
    u32 most = 0;
    for (u32 t = from; t < to; t++) {
        own += sums[t];
        most = max(most, largest[t]);
    }
    const u64 up_to_here = sum_so_far(own, shared_sums);
    most = largest_of(most, shared_most);
    if (threadIdx.x == PRODUCT_BLOCK - 1) totals[0] = up_to_here;
    if (threadIdx.x == 0) totals[1] = most;
    u64 before = up_to_here - own;
    for (u32 t = from; t < to; t++) {
        const u64 tile = sums[t];
        sums[t] = before;
        before += tile;
    }
}

// ends[i + 1] <- the sum of counts[0], ..., counts[i]; starts has that before each tile.
extern "C" __global__ void __launch_bounds__(256)
    product_ends(const u32 *counts, const u64 *starts, u32 *ends, u32 n) {
    __shared__ u64 shared_sums[PRODUCT_BLOCK];
    const u64 first = u64(blockIdx.x) * TILE + threadIdx.x * STRIP;
    u64 own = 0;
    for (u64 i = first; i < first + STRIP && i < n; i++) own += counts[i];
    u64 sum = starts[blockIdx.x] + sum_so_far(own, shared_sums) - own;
    for (u64 i = first; i < first + STRIP && i < n; i++) ends[i + 1] = u32(sum += counts[i]);
}

// counts[i] <- the number of columns in row i of C; each is in the table of the row, plus one.
extern "C" __global__ void __launch_bounds__(256)
    product_insert(const u32 *a_rows, const u32 *a_columns, const u32 *b_rows, const u32 *b_columns,
                   const u32 *tables, u32 *all, u32 *counts, u32 team, u32 rows) {
    const u64 thread = u64(blockIdx.x) * PRODUCT_BLOCK + threadIdx.x;
    const u32 i = u32(thread / team), lane = u32(thread % team);
    if (thread / team >= rows) return;
    u32 *table = all + tables[i];
    const u32 slots = tables[i + 1] - tables[i];
    u32 found = 0;
    for (u32 k = a_rows[i]; k < a_rows[i + 1]; k++) {
        const u32 row = a_columns[k];
        for (u32 e = b_rows[row] + lane; e < b_rows[row + 1]; e += team) {
            const u32 key = b_columns[e] + 1;
            for (u32 at = first_slot(key, slots);; at = at + 1 < slots ? at + 1 : 0) {
                u32 there = *(volatile u32 *)(table + at);
                if (there == 0) there = atomicCAS(table + at, 0, key);
                found += there == 0;
                if (there == 0 || there == key) break;
            }
        }
    }
    if (found != 0) atomicAdd(counts + i, found);
}

// The columns of row i, in any order; counts[i] is used up.
extern "C" __global__ void __launch_bounds__(256)
    product_compact(const u32 *tables, const u32 *all, const u32 *c_rows, u32 *counts, u32 *columns, u32 team, u32 rows) {
    const u64 thread = u64(blockIdx.x) * PRODUCT_BLOCK + threadIdx.x;
    const u32 i = u32(thread / team), lane = u32(thread % team);
    if (thread / team >= rows) return;
    for (u32 at = tables[i] + lane; at < tables[i + 1]; at += team)
        if (all[at] != 0) columns[c_rows[i] + atomicSub(counts + i, 1) - 1] = all[at] - 1;
}

// The columns of each row, increasing: the place of one is the number of smaller ones.
extern "C" __global__ void __launch_bounds__(256)
    product_sort(const u32 *c_rows, const u32 *columns, u32 *sorted, u32 team, u32 rows) {
    const u64 thread = u64(blockIdx.x) * PRODUCT_BLOCK + threadIdx.x;
    const u32 i = u32(thread / team), lane = u32(thread % team);
    if (thread / team >= rows) return;
    const u32 from = c_rows[i], to = c_rows[i + 1];
    for (u32 e = from + lane; e < to; e += team) {
        u32 place = from;
        for (u32 other = from; other < to; other++) place += columns[other] < columns[e];
        sorted[place] = columns[e];
    }
}

template <typename T>
LACUNA_FN void product_sums(const u32 *a_rows, const u32 *a_columns, const T *a, const u32 *b_rows, const u32 *b_columns,
                            const T *b, const u32 *c_rows, const u32 *c_columns, T *c, u32 *not_finite, u32 team,
                            u32 rows) {
    const u64 thread = u64(blockIdx.x) * PRODUCT_BLOCK + threadIdx.x;
    const u32 i = u32(thread / team), lane = u32(thread % team);
    if (thread / team >= rows) return;
    const u32 from = c_rows[i], to = c_rows[i + 1];
    const u32 mask = (team == 32 ? ~0u : (1u << team) - 1) << (threadIdx.x % 32 - lane);
    for (u32 k = a_rows[i]; k < a_rows[i + 1]; k++) {
        const u32 row = a_columns[k];
        const T factor = a[k];
        for (u32 e = b_rows[row] + lane; e < b_rows[row + 1]; e += team) {
            T *sum = c + place_of_column(c_columns, from, to, b_columns[e]);
            *sum = add(*sum, mul(factor, b[e]));
        }
        __syncwarp(mask);
    }
    for (u32 e = from + lane; e < to; e += team)
        if (!is_finite(c[e])) *not_finite = 1;
}

#define KERNELS(T, S)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        product_sums_##S(const u32 *a_rows, const u32 *a_columns, const T *a, const u32 *b_rows,                     \
                         const u32 *b_columns, const T *b, const u32 *c_rows, const u32 *c_columns, T *c,            \
                         u32 *not_finite, u32 team, u32 rows) {                                                      \
        product_sums<T>(a_rows, a_columns, a, b_rows, b_columns, b, c_rows, c_columns, c, not_finite, team, rows);   \
    }
LACUNA_TYPES(KERNELS)
