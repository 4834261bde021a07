// A maximal set of rows no two of which are within two steps of each other in a graph; see
// crates/gpu/src/algebra/independent_set.rs.
//
// Formula: nearby[i] = the largest key of row i and its neighbours; a row whose own key is the largest of nearby[j] over
// itself and its neighbours j joins the set (IN), one where that is IN leaves (0).
// Bytes per row: its neighbours (4 each) and their keys (8 each), twice a round.
// Launch shape: one thread for each row, in blocks of 256.
// Assumes: keys differ unless they are 0 or IN. Rounds are launches: a kernel reads one of the arrays and writes the other.
#include "scalar.cuh"

static const u32 INDEPENDENT_BLOCK = 256;
static const u64 IN = ~u64(0);

// The largest key of row i and its neighbours.
LACUNA_FN u64 largest_near(const u32 *row_ptr, const u32 *neighbours, const u64 *keys, u32 i) {
    u64 most = keys[i];
    for (u32 k = row_ptr[i]; k < row_ptr[i + 1]; k++) most = max(most, keys[neighbours[k]]);
    return most;
}

// longest <- the neighbours of the row that has the most, or 0xffffffff if a row leaves the arrays.
extern "C" __global__ void __launch_bounds__(256)
    independent_check(const u32 *row_ptr, const u32 *neighbours, u32 *longest, u32 n, u32 entries) {
    const u32 i = blockIdx.x * INDEPENDENT_BLOCK + threadIdx.x;
    if (i >= n) return;
    const u32 from = row_ptr[i], to = row_ptr[i + 1];
    bool is_within = from <= to && to <= entries;
    for (u32 k = from; is_within && k < to; k++) is_within = neighbours[k] < n;
    const u32 length = is_within ? to - from : 0xffffffffu;
    if (length > *(volatile u32 *)longest) atomicMax(longest, length);
}

extern "C" __global__ void __launch_bounds__(256)
    independent_spread(const u32 *row_ptr, const u32 *neighbours, const u64 *keys, u64 *nearby, u32 n) {
    const u32 i = blockIdx.x * INDEPENDENT_BLOCK + threadIdx.x;
    // IN stays.
    if (i < n && nearby[i] != IN) nearby[i] = largest_near(row_ptr, neighbours, keys, i);
}

// undecided <- 1 if a row is neither in the set nor out of it.
extern "C" __global__ void __launch_bounds__(256)
    independent_decide(const u32 *row_ptr, const u32 *neighbours, const u64 *nearby, u64 *keys, u32 *undecided, u32 n) {
    const u32 i = blockIdx.x * INDEPENDENT_BLOCK + threadIdx.x;
    if (i >= n || keys[i] == 0 || keys[i] == IN) return;
    const u64 most = largest_near(row_ptr, neighbours, nearby, i);
    if (most == IN)
        keys[i] = 0;
    else if (most == keys[i])
        keys[i] = IN;
    else
        *undecided = 1;
}
