// A part of a system on several devices: the sums that it contributes, and rows of vectors on their way to and from others.
//
// Formula: a subtree sum is a node of the canonical sum over segments: crates/engine/src/run/division.rs. Bytes: one number for each
// segment sum and each sum of 256; for rows, one number read and one written. Launch shape: blocks of 256 threads. In `part_sums` a
// warp sums 256 segments; the last block to end sums the subtrees from those. In `part_rows` a thread copies a word.
// Assumes: segment sums as `sweep_rows` leaves them; a subtree of 2^k segments begins at a multiple of 2^k.
#include "sweep.cuh"

#define MOST_TREES 64u

// The segments of a part, and its subtrees.
struct Part {
    u32 segments, dots; // of the whole system
    u32 first, end;     // of the part
    u32 trees, maxima;  // the sums from `maxima` on are maxima
    u64 out; // for each sum, for each subtree
    u32 tree_first[MOST_TREES], tree_size[MOST_TREES];
};

// The sum, or the largest, of `count` segment sums or sums of 256 from `at` on, in lane 0. Overwrites those of more than 256.
template <typename Join, typename T> LACUNA_FN T subtree(T *sums, u32 at, u32 count) {
    const u32 base = at / SEGMENT * SEGMENT;
    return count > SEGMENT ? sum_levels<Join>(sums + at, count) : pair_sum_within<Join>(sums + base, at - base, at - base + count);
}

template <typename T> LACUNA_FN void part_sums(const Common &c, const Part &p) {
    __shared__ bool last;
    const u32 warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const u32 groups = (p.segments + SEGMENT - 1) / SEGMENT;
    // The groups of 256 segments that the part has whole.
    const u32 low = (p.first + SEGMENT - 1) / SEGMENT, high = p.end == p.segments ? groups : p.end / SEGMENT;
    const u32 own = high > low ? high - low : 0;
    T *partial = (T *)c.partial, *group = (T *)c.group;
    for (u32 task = blockIdx.x * WARPS + warp; task < own * p.dots; task += gridDim.x * WARPS) {
        const u32 d = task / own, g = low + task % own, first = g * SEGMENT;
        const u32 count = min(p.segments - first, SEGMENT);
        const T *sums = partial + d * room_of(p.segments) + first;
        const T sum = d >= p.maxima ? pair_maximum(sums, count) : pair_sum(sums, count);
        if (lane == 0) group[d * room_of(groups) + place_of(g)] = sum;
    }
    u32 *tickets = (u32 *)c.tickets;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(tickets, 1u) + 1 == gridDim.x;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    if (threadIdx.x == 0) tickets[0] = 0;
    for (u32 task = warp; task < p.dots * p.trees; task += WARPS) {
        const u32 d = task / p.trees, first = p.tree_first[task % p.trees], size = p.tree_size[task % p.trees];
        const bool of_groups = size > SEGMENT;
        const u32 all = of_groups ? groups : p.segments, at = of_groups ? first / SEGMENT : first;
        const u32 count = min(of_groups ? size / SEGMENT : size, all - at);
        T *sums = (of_groups ? group : partial) + d * room_of(all);
        const T sum = d >= p.maxima ? subtree<Maximum>(sums, at, count) : subtree<Sum>(sums, at, count);
        if (lane == 0) ((T *)p.out)[task] = sum;
    }
}

#define KERNELS(T, S)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        part_sums_##S(const __grid_constant__ Common c, const __grid_constant__ Part p) { part_sums<T>(c, p); }
LACUNA_TYPES(KERNELS)

// Copies rows of `words` words each between a vector and a list of them, one range of rows after the other. `table` has the
// first row of each of `count` ranges, then the rows before each, and in total.
extern "C" __global__ void __launch_bounds__(256)
    part_rows(const u32 *from, u32 *to, const u32 *table, u32 count, u32 words, u32 into_vector) {
    const u32 *before = table + count;
    const u64 all = u64(before[count]) * words;
    for (u64 i = u64(blockIdx.x) * BLOCK + threadIdx.x; i < all; i += u64(gridDim.x) * BLOCK) {
        const u32 row = u32(i / words);
        u32 low = 0, high = count; // the last range with at most `row` rows before it
        while (high - low > 1) {
            const u32 middle = (low + high) / 2;
            if (before[middle] <= row)
                low = middle;
            else
                high = middle;
        }
        const u64 in_vector = u64(table[low] + (row - before[low])) * words + i % words;
        if (into_vector)
            to[in_vector] = from[i];
        else
            to[i] = from[in_vector];
    }
}
