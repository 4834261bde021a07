// C = A B of matrices in compressed rows, a row of C for each team of 4 to 32 work-items, of 32 where teams are
// work-groups; see crates/gpu/src/algebra/product.rs.
//
// Formula: c[i][j] = sum of a[i][k] b[k][j] over increasing k, each term rounded before it is added, from 0.
// Bytes moved per term: the entries of A once for each work-item of a team, those of B once, a slot of a hash table (4), the
// columns of a row of C that a binary search meets, and the sum.
// Launch shape: one work-item for each row (`product_bounds`), or a team (`product_insert`, `product_compact`,
// `product_sort`, `product_sums`); a work-group of PRODUCT_GROUP for each PRODUCT_TILE elements
// (`product_tiles`, `product_ends`), one (`product_scan`).
// Assumes: arrays to be filled are zeros. The columns of a row of B differ, so that no two work-items add to a sum at a time.
#define PRODUCT_GROUP 256
#define PRODUCT_STRIP 8
#define PRODUCT_TILE (PRODUCT_STRIP * PRODUCT_GROUP)

// Orders what the work-items of a team have written: a part of a warp on NVIDIA's devices, a work-group elsewhere.
#if LACUNA_NVIDIA
static inline void product_sync(uint lane, uint team) {
    const uint mask = (team == 32 ? ~0u : (1u << team) - 1) << ((uint)get_local_id(0) % 32 - lane);
    __asm__ volatile("bar.warp.sync %0;" ::"r"(mask) : "memory");
}
#define PRODUCT_SYNC(lane, team) product_sync(lane, team)
#else
#define PRODUCT_SYNC(lane, team) barrier(CLK_GLOBAL_MEM_FENCE)
#endif

#define BEGIN_ROW() \
    const uint i = (uint)(get_global_id(0) / team), lane = (uint)(get_global_id(0) % team); \
    if (i >= rows) { \
        return; \
    }

// The slot of a column from which it is looked for.
static inline uint first_slot(uint column, uint slots) {
    return (uint)(((ulong)(column * 0x9E3779B1u) * slots) >> 32);
}

// The place of a column in a row of C that has it.
static inline uint place_of_column(__global const uint *columns, uint from, uint to, uint column) {
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

// The sum of `own` over this work-item and those before it; all work-items of the group call it.
static inline ulong sum_so_far(ulong own, __local ulong *sums) {
    const uint item = (uint)get_local_id(0);
    sums[item] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 1; step < PRODUCT_GROUP; step *= 2) {
        const ulong before = item >= step ? sums[item - step] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[item] += before;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return sums[item];
}

// The largest `own` of the group, in the first work-item; all work-items call it.
static inline uint largest_of(uint own, __local uint *most) {
    const uint item = (uint)get_local_id(0);
    most[item] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint part = PRODUCT_GROUP / 2; part > 0; part /= 2) {
        if (item < part) {
            most[item] = max(most[item], most[item + part]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return most[0];
}

// sums[t], largest[t] <- the sum and the largest of tile t of the counts.
__kernel void KERNEL(product_tiles)(__global const uint *counts, __global ulong *sums, __global uint *largest,
    const uint n) {
    __local ulong local_sums[PRODUCT_GROUP];
    __local uint local_most[PRODUCT_GROUP];
    const uint item = (uint)get_local_id(0);
    const ulong tile = get_group_id(0), first = tile * PRODUCT_TILE + item * PRODUCT_STRIP;
    ulong sum = 0;
    uint most = 0;
    for (ulong i = first; i < first + PRODUCT_STRIP && i < n; i++) {
        sum += counts[i];
        most = max(most, counts[i]);
    }
    sum = sum_so_far(sum, local_sums);
    most = largest_of(most, local_most);
    if (item == PRODUCT_GROUP - 1) {
        sums[tile] = sum;
    }
    if (item == 0) {
        largest[tile] = most;
    }
}

// sums[t] <- the sum of those before; totals <- the sum of all, and the largest.
__kernel void KERNEL(product_scan)(__global ulong *sums, __global const uint *largest, __global ulong *totals,
    const uint tiles) {
    __local ulong local_sums[PRODUCT_GROUP];
    __local uint local_most[PRODUCT_GROUP];
    const uint item = (uint)get_local_id(0), strip = tiles / PRODUCT_GROUP + 1;
    const uint from = min(item * strip, tiles), to = min(from + strip, tiles);
    ulong own = 0;
    uint most = 0;
    for (uint t = from; t < to; t++) {
        own += sums[t];
        most = max(most, largest[t]);
    }
    const ulong up_to_here = sum_so_far(own, local_sums);
    most = largest_of(most, local_most);
    if (item == PRODUCT_GROUP - 1) {
        totals[0] = up_to_here;
    }
    if (item == 0) {
        totals[1] = most;
    }
    ulong before = up_to_here - own;
    for (uint t = from; t < to; t++) {
        const ulong tile = sums[t];
        sums[t] = before;
        before += tile;
    }
}

// ends[i + 1] <- the sum of counts[0], ..., counts[i]; starts has that before each tile.
__kernel void KERNEL(product_ends)(__global const uint *counts, __global const ulong *starts, __global uint *ends,
    const uint n) {
    __local ulong local_sums[PRODUCT_GROUP];
    const ulong tile = get_group_id(0), first = tile * PRODUCT_TILE + get_local_id(0) * PRODUCT_STRIP;
    ulong own = 0;
    for (ulong i = first; i < first + PRODUCT_STRIP && i < n; i++) {
        own += counts[i];
    }
    ulong sum = starts[tile] + sum_so_far(own, local_sums) - own;
    for (ulong i = first; i < first + PRODUCT_STRIP && i < n; i++) {
        sum += counts[i];
        ends[i + 1] = (uint)sum;
    }
}

// counts[i] <- the number of columns in row i of C; each is in the table of the row, plus one.
__kernel void KERNEL(product_insert)(__global const uint *a_rows, __global const uint *a_columns,
    __global const uint *b_rows, __global const uint *b_columns, __global const uint *tables, __global uint *all,
    __global uint *counts, const uint team, const uint rows) {
    BEGIN_ROW();
    volatile __global uint *table = all + tables[i];
    const uint slots = tables[i + 1] - tables[i];
    uint found = 0;
    for (uint k = a_rows[i]; k < a_rows[i + 1]; k++) {
        const uint row = a_columns[k];
        for (uint e = b_rows[row] + lane; e < b_rows[row + 1]; e += team) {
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
    __global const uint *c_rows, __global uint *counts, __global uint *columns, const uint team,
    const uint rows) {
    BEGIN_ROW();
    for (uint at = tables[i] + lane; at < tables[i + 1]; at += team) {
        if (all[at] != 0) {
            columns[c_rows[i] + atomic_sub((volatile __global uint *)counts + i, 1u) - 1] = all[at] - 1;
        }
    }
}

// The columns of each row, increasing: the place of one is the number of smaller ones.
__kernel void KERNEL(product_sort)(__global const uint *c_rows, __global const uint *columns, __global uint *sorted,
    const uint team, const uint rows) {
    BEGIN_ROW();
    const uint from = c_rows[i], to = c_rows[i + 1];
    for (uint e = from + lane; e < to; e += team) {
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
    const uint team, const uint rows) {
    BEGIN_ROW();
    const uint from = c_rows[i], to = c_rows[i + 1];
    for (uint k = a_rows[i]; k < a_rows[i + 1]; k++) {
        const uint row = a_columns[k];
        const number factor = a[k];
        for (uint e = b_rows[row] + lane; e < b_rows[row + 1]; e += team) {
            const uint at = place_of_column(c_columns, from, to, b_columns[e]);
            c[at] = c[at] + times(factor, b[e]);
        }
        PRODUCT_SYNC(lane, team);
    }
    for (uint e = from + lane; e < to; e += team) {
        if (!is_finite(c[e])) {
            *not_finite = 1;
        }
    }
}
