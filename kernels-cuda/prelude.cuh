// Defines the words of OpenCL C that generated kernels use, for CUDA's runtime compiler.
//
// Bytes moved: none. Launch shape: none, definitions only. The control block and the cells set by the host are kernel
// arguments here; OpenCL keeps them in a buffer.
// Assumes: the definitions of a number type, see `crates/gpu`; compiled with -default-device -fmad=false; compute
// capability 7.0 or newer.
#define uchar unsigned char
#define uint unsigned int
#define ushort unsigned short
#define ulong unsigned long long
#define __global
#define __local
#define restrict __restrict__
#define __asm__ asm
#define LACUNA_RARE __noinline__
#define __kernel extern "C" __global__

#define get_local_id(d) threadIdx.x
#define get_group_id(d) blockIdx.x
#define get_num_groups(d) gridDim.x
#define get_global_id(d) (blockIdx.x * blockDim.x + threadIdx.x)
#define CLK_LOCAL_MEM_FENCE 0
#define CLK_GLOBAL_MEM_FENCE 0
#define barrier(fences) __syncthreads()
#define mem_fence(fences) __threadfence()

static inline ulong as_ulong(double v) { return (ulong)__double_as_longlong(v); }
static inline uint as_uint(float v) { return __float_as_uint(v); }
static inline double as_double(ulong v) { return __longlong_as_double((long long)v); }
static inline float as_float(uint v) { return __uint_as_float(v); }
static inline ulong as_ulong(float2 v) { return (ulong)as_uint(v.y) << 32 | as_uint(v.x); }
static inline float2 as_float2(ulong v) { return make_float2(as_float((uint)v), as_float((uint)(v >> 32))); }

#if LACUNA_COMPLEX
#define MAKE_NARROW(re, im) make_float2((re), (im))
#define LACUNA_PAIRS(pair, make)                                                                     \
    static inline pair operator+(pair a, pair b) { return make(a.x + b.x, a.y + b.y); }              \
    static inline pair operator-(pair a, pair b) { return make(a.x - b.x, a.y - b.y); }              \
    static inline pair operator-(pair a) { return make(-a.x, -a.y); }
#if LACUNA_REAL_BITS == 64
LACUNA_PAIRS(double2, make_double2)
#define MAKE(re, im) make_double2((re), (im))
#else
LACUNA_PAIRS(float2, make_float2)
#define MAKE(re, im) make_float2((re), (im))
#endif
#endif

// What the host passes with a launch.
#define CHANGED_WORDS 128
struct Given {
    ulong words[LACUNA_CONTROL_WORDS + 2];
    ulong changed[CHANGED_WORDS];
    uint changed_first, changed_count;
};
#define LACUNA_GIVEN , const __grid_constant__ Given given
#define GIVEN(i) given.words[i]
#define TAKE_CHANGED(cells)                                                                          \
    for (uint i = ITEM; i < given.changed_count; i += SIZE) {                                        \
        (cells)[given.changed_first + i] = ((const number *)given.changed)[i];                       \
    }

// Arrays in shared memory: one whose size and offset in bytes the host passes, and one of fixed size.
extern __shared__ ulong lacuna_shared[];
#define LOCAL(type, name) const uint name##_at
#define OPEN_LOCAL(type, name) type *const name = (type *)((uchar *)lacuna_shared + name##_at);
#define FIXED_LOCAL(type, name, size) __shared__ type name[size]
#define LACUNA_ENTRY __launch_bounds__(LACUNA_SIZE, 1)
