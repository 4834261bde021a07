// How work is divided: segments, the elements of each work-item, and the indices of tables.
//
// Bytes moved: none. Launch shape: a team of 32 work-items for each segment of 256 elements, eight elements each, so
// that table words are read once for eight elements and eight loads of a vector are in flight; if LACUNA_CPU is 1, one
// work-item for all 256.
// Assumes: LACUNA_CPU and LACUNA_NVIDIA (0 or 1); work-groups of whole teams, or of one work-item.

#define SEGMENT 256u
#define UNROLLED _Pragma("unroll")

// EACH loops over the elements of a segment that belong to this work-item; MINE is an element's index in a private
// array. On a CPU these are the `count` live elements, and PAD loops over the rest. On a GPU all eight are visited:
// vectors are padded to whole segments and sums skip dead elements, since a branch for each element would cost more
// than the elements.
#if LACUNA_CPU
#define ELEMENTS 256
#define EACH(e, count) for (uint e = 0; e < (count); e++)
#define PAD(e, count) for (uint e = (count); e < SEGMENT; e++)
#define MINE(e) (e)
#define TEAM 1u
#define SYNC()
#define SYNC_ALL()
#define SUBS 1u
#define SUB 0u
#define LANE 0u
#define THREADS SEGMENT
#else
#define ELEMENTS 8
#define TEAM 32u
#define EACH(e, count) \
    UNROLLED \
    for (uint at_##e = 0, e = LANE; at_##e < ELEMENTS; at_##e++, e += TEAM)
#define MINE(e) at_##e
#define SYNC() barrier(CLK_LOCAL_MEM_FENCE)
#define SYNC_ALL() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
// The teams of a work-group, the work-item's team, and its index there.
#define SUBS ((uint)get_local_size(0) / TEAM)
#define SUB ((uint)get_local_id(0) / TEAM)
#define LANE ((uint)get_local_id(0) % TEAM)
#define THREADS ((uint)get_local_size(0))
#endif
#define ITEM ((uint)get_local_id(0))

// Orders this work-item's writes before what it does next, as seen by other work-groups, and the reverse. OpenCL 1.2
// guarantees that only within a work-group; NVIDIA's compiler takes inline PTX.
#if LACUNA_NVIDIA
#define DEVICE_FENCE() __asm__ volatile("membar.gl;" ::: "memory")
#else
#define DEVICE_FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif

static inline uint segments_of(uint n) { return n / SEGMENT + (n % SEGMENT != 0); }

// The lowest `bits` bits of `x` in reverse order. Halving the stride of numbers that lie in this order adds neighbouring
// pairs.
static inline uint reversed(uint x, uint bits) {
    uint r = 0;
    for (uint b = 0; b < bits; b++) {
        r |= (x >> b & 1u) << (bits - 1 - b);
    }
    return r;
}

// The words of a matrix in `names`: format, lanes, then a byte offset (or a number) for each argument.
#define MATRIX_FORMAT 0
#define MATRIX_LANES 1
#define MATRIX_ARGUMENTS 2
#define FORMAT_CSR 0
#define FORMAT_DIA 1
#define FORMAT_SELL 2
#define FORMAT_BCSR 3
#define FORMAT_HYB 4
#define FORMAT_STENCIL 5
#define FORMAT_PACKED 6
#define FORMAT_DENSE 7
#define FORMAT_PKT 8
// A matrix for triangular solves has 9.
#define FORMAT_INTERPOLATION 10
