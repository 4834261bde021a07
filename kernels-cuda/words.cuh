// Numbers that pass between blocks of one launch, as 16-byte words of a value and a tag.
//
// A word is written and read in one access (sm_70 and later), by relaxed operations of device scope. Who polls one until it
// has the tag expected has the value that belongs to it, whatever else is on its way: no fence is needed, and none is used.
#pragma once
#include "sum.cuh"

#ifdef __CUDACC__
LACUNA_FN void put_word(u64 address, u64 value, u64 tag) {
    asm volatile("{ .reg .b128 w; mov.b128 w, {%1, %2}; st.relaxed.gpu.global.b128 [%0], w; }"
                 :: "l"(address), "l"(value), "l"(tag) : "memory");
}
LACUNA_FN void get_word(u64 address, u64 &value, u64 &tag) {
    asm volatile("{ .reg .b128 w; ld.relaxed.gpu.global.b128 w, [%2]; mov.b128 {%0, %1}, w; }"
                 : "=l"(value), "=l"(tag) : "l"(address) : "memory");
}
#endif

// A number as the values of words.
LACUNA_FN void to_words(f32 v, u64 (&w)[1]) { w[0] = __float_as_uint(v); }
LACUNA_FN void to_words(f64 v, u64 (&w)[1]) { w[0] = u64(__double_as_longlong(v)); }
LACUNA_FN void to_words(c32 v, u64 (&w)[1]) { w[0] = u64(__float_as_uint(v.im)) << 32 | __float_as_uint(v.re); }
LACUNA_FN void to_words(c64 v, u64 (&w)[2]) {
    w[0] = u64(__double_as_longlong(v.re));
    w[1] = u64(__double_as_longlong(v.im));
}
LACUNA_FN void of_words(f32 &v, const u64 (&w)[1]) { v = __uint_as_float(u32(w[0])); }
LACUNA_FN void of_words(f64 &v, const u64 (&w)[1]) { v = __longlong_as_double((long long)w[0]); }
LACUNA_FN void of_words(c32 &v, const u64 (&w)[1]) {
    v = complex(__uint_as_float(u32(w[0])), __uint_as_float(u32(w[0] >> 32)));
}
LACUNA_FN void of_words(c64 &v, const u64 (&w)[2]) {
    v = complex(__longlong_as_double((long long)w[0]), __longlong_as_double((long long)w[1]));
}
// Words of a number.
template <typename T> struct Parts { static const u32 count = sizeof(T) > 8 ? 2 : 1; };

// The number at place `i` of a run of words.
template <typename T> LACUNA_FN void put_number(u64 words, u32 i, T v, u64 tag) {
    u64 w[Parts<T>::count];
    to_words(v, w);
#pragma unroll
    for (u32 q = 0; q < Parts<T>::count; q++) put_word(words + (u64(i) * Parts<T>::count + q) * 16, w[q], tag);
}
// The same, read; false where it is not there yet.
template <typename T> LACUNA_FN bool get_number(u64 words, u32 i, T &v, u64 tag) {
    u64 w[Parts<T>::count], seen;
    bool there = true;
#pragma unroll
    for (u32 q = 0; q < Parts<T>::count; q++) {
        get_word(words + (u64(i) * Parts<T>::count + q) * 16, w[q], seen);
        there = there && seen == tag;
    }
    of_words(v, w);
    return there;
}
