// C = A B of matrices in compressed rows, a row of C for each team of work-items; see crates/gpu/src/sparse_product.rs.
//
// Formula: c[i][j] = sum of a[i][k] b[k][j] over increasing k, each term rounded before it is added, from 0.
// Bytes moved per term: the entries of A once for each work-item of a team, those of B once, a slot of a hash table (4), the
// columns of a row of C that a binary search meets, and the sum.
// Launch shape: one work-item for each row (`product_bounds`), or a work-group of PRODUCT_TEAM (`product_insert`,
// `product_compact`, `product_sort`, `product_sums`); `product_scan` is one work-group of PRODUCT_SCAN.
// Assumes: arrays to be filled are zeros. The columns of a row of B differ, so that no two work-items add to a sum at a time.
#define PRODUCT_TEAM 32
#define PRODUCT_SCAN 256

#define BEGIN_ROW() \
    const uint i = (uint)get_group_id(0), lane = (uint)get_local_id(0); \
    if (i >= rows) { \
        return; \
    }

// The slot of a column from which it is looked for.
static inline uint first_slot(uint column, uint slots) {
    return (uint)(((ulong)(column * 0x9E3779B1u) * slots) >> 32);
}

// The place of a column in a row of C that has it.
static inline uint place_of(__global const uint *columns, uint from, uint to, uint column) {
    while (from < to) {
        const uint middle = from + (to - from) / 2;
        if (columns[middle] < column) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

// slots[i] <- one and a half times the products of entries in row i.
__kernel void KERNEL(product_bounds)(__global const uint *a_rows, __global const uint *a_columns,
    __global const uint *b_rows, __global uint *slots, const uint rows) {
    const uint i = (uint)get_global_id(0);
    if (i >= rows) {
        return;
    }
    ulong products = 0;
    for (uint k = a_rows[i]; k < a_rows[i + 1]; k++) {
        products += b_rows[a_columns[k] + 1] - b_rows[a_columns[k]];
    }
    products += products / 2;
    slots[i] = products < 0xffffffffu ? (uint)products : 0xffffffffu;
}

// ends[i + 1] <- the sum of counts[0], ..., counts[i]; totals <- the sum of all, and the largest.
__kernel void KERNEL(product_scan)(__global const uint *counts, __global uint *ends, __global ulong *totals,
    const uint n) {
    __local ulong sums[PRODUCT_SCAN];
    __local uint largest[PRODUCT_SCAN];
    const uint item = (uint)get_local_id(0), strip = n / PRODUCT_SCAN + 1;
    const uint from = min(item * strip, n), to = min(from + strip, n);
    ulong sum = 0;
    uint most = 0;
    for (uint i = from; i < to; i++) {
        sum += counts[i];
        most = max(most, counts[i]);
    }
    sums[item] = sum;
    largest[item] = most;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        sum = 0;
        for (uint t = 0; t < PRODUCT_SCAN; t++) {
            const ulong own = sums[t];
            sums[t] = sum;
            sum += own;
            most = max(most, largest[t]);
        }
        totals[0] = sum;
        totals[1] = most;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = sums[item];
    for (uint i = from; i < to; i++) {
        sum += counts[i];
        ends[i + 1] = (uint)sum;
    }
}

// counts[i] <- the number of columns in row i of C; each is in the table of the row, plus one.
__kernel void KERNEL(product_insert)(__global const uint *a_rows, __global const uint *a_columns,
    __global const uint *b_rows, __global const uint *b_columns, __global const uint *tables, __global uint *all,
    __global uint *counts, const uint rows) {
    BEGIN_ROW();
    volatile __global uint *table = all + tables[i];
    const uint slots = tables[i + 1] - tables[i];
    uint found = 0;
    for (uint k = a_rows[i]; k < a_rows[i + 1]; k++) {
        const uint row = a_columns[k];
        for (uint e = b_rows[row] + lane; e < b_rows[row + 1]; e += PRODUCT_TEAM) {
            const uint key = b_columns[e] + 1;
            for (uint at = first_slot(key, slots);; at = at + 1 < slots ? at + 1 : 0) {
                uint there = table[at];
                if (there == 0) {
                    there = atomic_cmpxchg(table + at, 0u, key);
                }
                found += there == 0;
                if (there == 0 || there == key) {
                    break;
                }
            }
        }
    }
    if (found != 0) {
        atomic_add((volatile __global uint *)counts + i, found);
    }
}

// The columns of row i, in any order; counts[i] is used up.
__kernel void KERNEL(product_compact)(__global const uint *tables, __global const uint *all,
    __global const uint *c_rows, __global uint *counts, __global uint *columns, const uint rows) {
    BEGIN_ROW();
    for (uint at = tables[i] + lane; at < tables[i + 1]; at += PRODUCT_TEAM) {
        if (all[at] != 0) {
            columns[c_rows[i] + atomic_sub((volatile __global uint *)counts + i, 1u) - 1] = all[at] - 1;
        }
    }
}

// The columns of each row, increasing: the place of one is the number of smaller ones.
__kernel void KERNEL(product_sort)(__global const uint *c_rows, __global const uint *columns, __global uint *sorted,
    const uint rows) {
    BEGIN_ROW();
    const uint from = c_rows[i], to = c_rows[i + 1];
    for (uint e = from + lane; e < to; e += PRODUCT_TEAM) {
        uint place = from;
        for (uint other = from; other < to; other++) {
            place += columns[other] < columns[e];
        }
        sorted[place] = columns[e];
    }
}

__kernel void KERNEL(product_sums)(__global const uint *a_rows, __global const uint *a_columns,
    __global const number *a, __global const uint *b_rows, __global const uint *b_columns, __global const number *b,
    __global const uint *c_rows, __global const uint *c_columns, __global number *c, __global uint *not_finite,
    const uint rows) {
    BEGIN_ROW();
    const uint from = c_rows[i], to = c_rows[i + 1];
    for (uint k = a_rows[i]; k < a_rows[i + 1]; k++) {
        const uint row = a_columns[k];
        const number factor = a[k];
        for (uint e = b_rows[row] + lane; e < b_rows[row + 1]; e += PRODUCT_TEAM) {
            const uint at = place_of(c_columns, from, to, b_columns[e]);
            c[at] = c[at] + times(factor, b[e]);
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
    for (uint e = from + lane; e < to; e += PRODUCT_TEAM) {
        if (!is_finite(c[e])) {
            *not_finite = 1;
        }
    }
}
