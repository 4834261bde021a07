// A maximal set of rows no two of which are within two steps of each other in a graph; see
// crates/gpu/src/algebra/independent_set.rs.
//
// Formula: nearby[i] = the largest key of row i and its neighbours; a row whose own key is the largest of nearby[j] over
// itself and its neighbours j joins the set (INDEPENDENT_IN), one where that is INDEPENDENT_IN leaves (0).
// Bytes moved per row: its neighbours (4 each) and their keys (8 each), twice a round.
// Launch shape: one work-item for each row.
// Assumes: keys differ unless they are 0 or INDEPENDENT_IN. Rounds are launches: a kernel reads one of the arrays and writes
// the other.
#define INDEPENDENT_IN 0xfffffffffffffffful

// The largest key of row i and its neighbours.
static inline ulong largest_near(__global const uint *row_ptr, __global const uint *neighbours,
    __global const ulong *keys, uint i) {
    ulong most = keys[i];
    for (uint k = row_ptr[i]; k < row_ptr[i + 1]; k++) {
        most = max(most, keys[neighbours[k]]);
    }
    return most;
}

// longest <- the neighbours of the row that has the most, or 0xffffffff if a row leaves the arrays.
__kernel void KERNEL(independent_check)(__global const uint *row_ptr, __global const uint *neighbours,
    __global uint *longest, const uint n, const uint entries) {
    const uint i = (uint)get_global_id(0);
    if (i >= n) {
        return;
    }
    const uint from = row_ptr[i], to = row_ptr[i + 1];
    bool is_within = from <= to && to <= entries;
    for (uint k = from; is_within && k < to; k++) {
        is_within = neighbours[k] < n;
    }
    const uint length = is_within ? to - from : 0xffffffffu;
    if (length > *(volatile __global uint *)longest) {
        atomic_max((volatile __global uint *)longest, length);
    }
}

__kernel void KERNEL(independent_spread)(__global const uint *row_ptr, __global const uint *neighbours,
    __global const ulong *keys, __global ulong *nearby, const uint n) {
    const uint i = (uint)get_global_id(0);
    // INDEPENDENT_IN stays.
    if (i < n && nearby[i] != INDEPENDENT_IN) {
        nearby[i] = largest_near(row_ptr, neighbours, keys, i);
    }
}

// undecided <- 1 if a row is neither in the set nor out of it.
__kernel void KERNEL(independent_decide)(__global const uint *row_ptr, __global const uint *neighbours,
    __global const ulong *nearby, __global ulong *keys, __global uint *undecided, const uint n) {
    const uint i = (uint)get_global_id(0);
    if (i >= n || keys[i] == 0 || keys[i] == INDEPENDENT_IN) {
        return;
    }
    const ulong most = largest_near(row_ptr, neighbours, nearby, i);
    if (most == INDEPENDENT_IN) {
        keys[i] = 0;
    } else if (most == keys[i]) {
        keys[i] = INDEPENDENT_IN;
    } else {
        *undecided = 1;
    }
}
