// Loads of matrix entries, which an operation reads once.
//
// Bytes moved: the entries. Launch shape: none.
// Assumes: NVIDIA's compiler, compute capability 8.0 if LACUNA_KEEP is below 100.

// LACUNA_KEEP percent of the entries stay in the second-level cache from one operation to the next; the others are
// evicted first. Without this, entries that exceed the cache and are read in the same order each time would evict one
// another before reuse.
#if LACUNA_KEEP < 100
static inline ulong read_once(void) {
    ulong policy;
#if LACUNA_KEEP > 0
    __asm__("createpolicy.fractional.L2::evict_normal.L2::evict_first.b64 %0, %1;" : "=l"(policy) : "f"(LACUNA_KEEP * 0.01f));
#else
    __asm__("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
    return policy;
}
// The policy for entries that are read twice in short succession.
static inline ulong read_twice(void) {
    ulong policy;
    __asm__("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
#define ONCE(type, operands) "{ .reg .pred p; setp.ne.u32 p, " operands                              \
    "; @p ld.global.nc.L1::no_allocate.L2::cache_hint." type " "
static inline uint index_once(__global const uint *at, bool there, ulong policy) {
    uint v = LACUNA_NONE;
    __asm__(ONCE("u32", "%3, 0") "%0, [%1], %2; }" : "+r"(v) : "l"(at), "l"(policy), "r"((uint)there));
    return v;
}
static inline number number_once(__global const number *at, bool there, ulong policy) {
    number v = ZERO;
#if LACUNA_COMPLEX && LACUNA_REAL_BITS == 64
    double re = 0, im = 0;
    __asm__(ONCE("v2.f64", "%4, 0") "{%0, %1}, [%2], %3; }" : "+d"(re), "+d"(im) : "l"(at), "l"(policy), "r"((uint)there));
    v = MAKE(re, im);
#elif LACUNA_COMPLEX
    float re = 0, im = 0;
    __asm__(ONCE("v2.f32", "%4, 0") "{%0, %1}, [%2], %3; }" : "+f"(re), "+f"(im) : "l"(at), "l"(policy), "r"((uint)there));
    v = MAKE(re, im);
#elif LACUNA_REAL_BITS == 64
    __asm__(ONCE("f64", "%3, 0") "%0, [%1], %2; }" : "+d"(v) : "l"(at), "l"(policy), "r"((uint)there));
#else
    __asm__(ONCE("f32", "%3, 0") "%0, [%1], %2; }" : "+f"(v) : "l"(at), "l"(policy), "r"((uint)there));
#endif
    return v;
}
static inline narrow narrow_once(__global const narrow *at, bool there, ulong policy) {
#if LACUNA_COMPLEX
    float re = 0, im = 0;
    __asm__(ONCE("v2.f32", "%4, 0") "{%0, %1}, [%2], %3; }" : "+f"(re), "+f"(im) : "l"(at), "l"(policy), "r"((uint)there));
    return MAKE_NARROW(re, im);
#else
    float v = 0;
    __asm__(ONCE("f32", "%3, 0") "%0, [%1], %2; }" : "+f"(v) : "l"(at), "l"(policy), "r"((uint)there));
    return v;
#endif
}
#else
static inline ulong read_once(void) { return 0; }
static inline ulong read_twice(void) { return 0; }
static inline uint index_once(__global const uint *at, bool there, ulong policy) { return there ? at[0] : LACUNA_NONE; }
static inline number number_once(__global const number *at, bool there, ulong policy) { return there ? at[0] : ZERO; }
static inline narrow narrow_once(__global const narrow *at, bool there, ulong policy) { return there ? at[0] : narrowed(ZERO); }
#endif
