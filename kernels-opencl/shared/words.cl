// The start of generated kernels: launch arguments, words of value and tag, and exchange within warps.
//
// Formula: none. A word is 16 bytes, a value and a tag that tells when it was written; a number takes PARTS words.
// Bytes moved per number: 16 for each of its words. Launch shape: as resident.cl and streaming.cl.
// Assumes: 16-byte accesses are atomic on NVIDIA; elsewhere stores and loads become visible in order.

#define SIZE LACUNA_SIZE
// Words of the control buffer: the control block, the state, space for a short history, the cells.
#define AT_HISTORY LACUNA_AT_HISTORY
#define AT_CELLS LACUNA_AT_CELLS
#define ONE_GROUP LACUNA_ONE
#define WAYS LACUNA_WAYS
// Rows of a segment in one work-group.
#define SPAN (SEGMENT / WAYS)
#if !LACUNA_PRELUDE
#define LACUNA_ENTRY __attribute__((reqd_work_group_size(LACUNA_SIZE, 1, 1)))
#define LACUNA_GIVEN
#define GIVEN(i) control[i]
#define TAKE_CHANGED(cells)
#define LOCAL(type, name) __local type *name
#define OPEN_LOCAL(type, name)
#define FIXED_LOCAL(type, name, size) __local type name[size]
#endif
// How a launch begins, other than continuing: from the start, or to cancel on behalf of the caller.
#define ENTER_CANCEL 2u
// What an operation leaves in `next`: the next operation, or one of these flags with the operation it comes from.
#define NEXT_DONE 0xC0000000u   // its instructions are to be evaluated
#define NEXT_HALT 0x80000000u   // it has halted the section
#define NEXT_ENTER 0x40000000u  // the instructions before it are to be evaluated
#define NEXT_RARE 0xC0000000u

#define PARTS (1u + LACUNA_COMPLEX * (LACUNA_REAL_BITS / 64u))
// 64-bit words after the control block: current epoch and tag.
#define STATE_EPOCH LACUNA_CONTROL_WORDS
#define STATE_TAG (LACUNA_CONTROL_WORDS + 1u)

// A value and the tag that tells when it was written.
typedef struct {
    ulong value, tag;
} Word;

#if LACUNA_NVIDIA
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
static inline void put_word(__global ulong *at, ulong value, ulong tag) {
    __asm__ volatile("{ .reg .b128 w; mov.b128 w, {%1, %2}; st.relaxed.gpu.global.b128 [%0], w; }"
                     :: "l"(at), "l"(value), "l"(tag) : "memory");
}
static inline Word get_word(__global const ulong *at) {
    Word word;
    __asm__ volatile("{ .reg .b128 w; ld.relaxed.gpu.global.b128 w, [%2]; mov.b128 {%0, %1}, w; }"
                     : "=l"(word.value), "=l"(word.tag) : "l"(at) : "memory");
    return word;
}
#if LACUNA_PRELUDE
#define SHUFFLE(mode, v, d) __shfl_##mode##_sync(0xffffffffu, v, d)
#else
static inline uint shuffle_down(uint v, uint d) {
    uint r;
    __asm__ volatile("shfl.sync.down.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r) : "r"(v), "r"(d));
    return r;
}
static inline uint shuffle_xor(uint v, uint d) {
    uint r;
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r) : "r"(v), "r"(d));
    return r;
}
#define SHUFFLE(mode, v, d) shuffle_##mode(v, d)
#endif
#if LACUNA_REAL_BITS == 64
#define SHUFFLE_REAL(mode, v, d)                                                                     \
    as_double((ulong)SHUFFLE(mode, (uint)(as_ulong(v) >> 32), d) << 32 | SHUFFLE(mode, (uint)as_ulong(v), d))
#else
#define SHUFFLE_REAL(mode, v, d) as_float(SHUFFLE(mode, as_uint(v), d))
#endif
#if LACUNA_COMPLEX
static inline number down(number v, uint d) { return MAKE(SHUFFLE_REAL(down, v.x, d), SHUFFLE_REAL(down, v.y, d)); }
static inline number across(number v, uint d) { return MAKE(SHUFFLE_REAL(xor, v.x, d), SHUFFLE_REAL(xor, v.y, d)); }
#else
static inline number down(number v, uint d) { return SHUFFLE_REAL(down, v, d); }
static inline number across(number v, uint d) { return SHUFFLE_REAL(xor, v, d); }
#endif
#else
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
static inline void put_word(volatile __global ulong *at, ulong value, ulong tag) {
    at[0] = value;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    at[1] = tag;
}
static inline Word get_word(volatile __global const ulong *at) {
    Word word;
    word.tag = at[1];
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    word.value = at[0];
    return word;
}
#endif

// A number as the values of PARTS words.
static inline ulong part_of(number v, uint part) {
#if LACUNA_COMPLEX && LACUNA_REAL_BITS == 64
    return as_ulong(part ? v.y : v.x);
#elif LACUNA_COMPLEX || LACUNA_REAL_BITS == 64
    return as_ulong(v);
#else
    return as_uint(v);
#endif
}
static inline number of_parts(ulong first, ulong second) {
#if LACUNA_COMPLEX && LACUNA_REAL_BITS == 64
    return MAKE(as_double(first), as_double(second));
#elif LACUNA_COMPLEX
    return as_float2(first);
#elif LACUNA_REAL_BITS == 64
    return as_double(first);
#else
    return as_float((uint)first);
#endif
}
static inline void put_number(__global ulong *words, uint i, number v, ulong tag) {
    for (uint part = 0; part < PARTS; part++) {
        put_word(words + 2 * (PARTS * i + part), part_of(v, part), tag);
    }
}
// Loads number `i`; returns whether its tag has arrived.
static inline bool get_number(__global const ulong *words, uint i, ulong tag, number *v) {
    Word a = get_word(words + 2 * PARTS * i), b = a;
#if LACUNA_COMPLEX && LACUNA_REAL_BITS == 64
    b = get_word(words + 2 * (PARTS * i + 1));
#endif
    *v = of_parts(a.value, b.value);
    return a.tag == tag && b.tag == tag;
}
