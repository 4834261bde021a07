// How work is divided: segments, who takes which elements, and where tables name what.
//
// Bytes moved: none. Launch shape: a work-item for each element of a segment of 256, or, where LACUNA_CPU is 1, one for
// all of them.
// Assumes: LACUNA_CPU and LACUNA_NVIDIA (0 or 1); work-groups of a multiple of 256 work-items, or of one.

#define SEGMENT 256u

// EACH goes over the `count` live elements of a segment that belong to this work-item, PAD over the rest; MINE is the
// element's place in a private array.
#if LACUNA_CPU
#define ELEMENTS 256
#define EACH(e, count) for (uint e = 0; e < (count); e++)
#define PAD(e, count) for (uint e = (count); e < SEGMENT; e++)
#define MINE(e) (e)
#define SYNC()
#define SYNC_ALL()
#define SUBS 1u
#define SUB 0u
#define LANE 0u
#define THREADS SEGMENT
#else
#define ELEMENTS 1
#define EACH(e, count) for (uint e = LANE, once_ = e < (count); once_; once_ = 0)
#define PAD(e, count) for (uint e = LANE, once_ = e >= (count); once_; once_ = 0)
#define MINE(e) 0
#define SYNC() barrier(CLK_LOCAL_MEM_FENCE)
#define SYNC_ALL() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
// Segments a work-group handles at a time, which of them is this work-item's, and its place there.
#define SUBS ((uint)get_local_size(0) / SEGMENT)
#define SUB ((uint)get_local_id(0) / SEGMENT)
#define LANE ((uint)get_local_id(0) % SEGMENT)
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
