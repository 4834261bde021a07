// How work is divided: segments, who takes which elements, and where tables name what.
//
// Bytes moved: none. Launch shape: a team of 32 work-items for each segment of 256 elements, eight elements each, so that
// what a table says is read once for eight elements and eight loads of a vector are under way at a time; where LACUNA_CPU
// is 1, one work-item for all 256.
// Assumes: LACUNA_CPU and LACUNA_NVIDIA (0 or 1); work-groups of whole teams, or of one work-item.

#define SEGMENT 256u
#define UNROLLED _Pragma("unroll")

// EACH goes over the elements of a segment that belong to this work-item, MINE is the element's place in a private array.
// On a CPU these are the `count` live ones, and PAD goes over the rest. On a GPU all eight are: vectors have room for whole
// segments, and a sum leaves out what is not live; a branch for each element would cost more than the elements.
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
// Teams of a work-group, which of them is this work-item's, and its place there.
#define SUBS ((uint)get_local_size(0) / TEAM)
#define SUB ((uint)get_local_id(0) / TEAM)
#define LANE ((uint)get_local_id(0) % TEAM)
#define THREADS ((uint)get_local_size(0))
#endif
#define ITEM ((uint)get_local_id(0))

// Makes what this work-item wrote visible to other work-groups before what it does next, and the reverse. OpenCL 1.2
// promises that for a work-group alone; NVIDIA's compiler is told in its own words.
#if LACUNA_NVIDIA
#define DEVICE_FENCE() __asm__ volatile("membar.gl;" ::: "memory")
#else
#define DEVICE_FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif

static inline uint segments_of(uint n) { return n / SEGMENT + (n % SEGMENT != 0); }

// The place of a matrix in `names`: the format, the lanes, then a byte offset (or a number) for each argument.
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
