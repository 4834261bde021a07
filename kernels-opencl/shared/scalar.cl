// The number type: each operation is rounded in one way, the same as in `core/scalar.rs`, to the bit.
//
// Bytes moved: none. Launch shape: none, functions only.
// Assumes: LACUNA_REAL (float or double), LACUNA_REAL_BITS, LACUNA_COMPLEX and LACUNA_NARROW (0 or 1), LACUNA_SUFFIX;
// products and sums are not contracted; division and square root are correctly rounded
// (-cl-fp32-correctly-rounded-divide-sqrt).
#if !LACUNA_PRELUDE
#pragma OPENCL FP_CONTRACT OFF
#endif
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define LACUNA_JOIN_(a, b) a##_##b
#define LACUNA_JOIN(a, b) LACUNA_JOIN_(a, b)
// The entry point of this number type: KERNEL(sweep) is sweep_f64.
#define KERNEL(name) LACUNA_JOIN(name, LACUNA_SUFFIX)

typedef LACUNA_REAL real;
#if LACUNA_REAL_BITS == 64
#define REAL_BITS(x) as_ulong(x)
#else
#define REAL_BITS(x) ((ulong)as_uint(x))
#endif

#if LACUNA_COMPLEX
#if LACUNA_REAL_BITS == 64
typedef double2 number;
#else
typedef float2 number;
#endif
#ifndef MAKE
#define MAKE(re, im) ((number)((re), (im)))
#endif
#define ZERO MAKE((real)0, (real)0)
#define RE(a) ((a).x)

static inline number conjugate(number a) { return MAKE(a.x, -a.y); }
static inline number times(number a, number b) { return MAKE(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
static inline number multiply_add(number a, number b, number c) {
    return MAKE(fma(-a.y, b.y, fma(a.x, b.x, c.x)), fma(a.y, b.x, fma(a.x, b.y, c.y)));
}
// Smith 1962: divides by the larger part, so that no square overflows.
static inline number quotient(number a, number by) {
    if (fabs(by.x) >= fabs(by.y)) {
        real ratio = by.y / by.x;
        real scale = fma(by.y, ratio, by.x);
        return MAKE(fma(a.y, ratio, a.x) / scale, fma(-a.x, ratio, a.y) / scale);
    }
    real ratio = by.x / by.y;
    real scale = fma(by.x, ratio, by.y);
    return MAKE(fma(a.x, ratio, a.y) / scale, fma(a.y, ratio, -a.x) / scale);
}
// |z| from the larger part; then the half-angle formulas on the side that does not cancel.
static inline number root(number a) {
    real re = fabs(a.x), im = fabs(a.y);
    real large = re >= im ? re : im, small = re >= im ? im : re;
    if (large == (real)0) {
        return MAKE((real)0, a.y);
    }
    real ratio = small / large;
    real modulus = large * sqrt(fma(ratio, ratio, (real)1));
    real half_root = sqrt((real)0.5 * (modulus + re));
    real other = (real)0.5 * im / half_root;
    return a.x >= (real)0 ? MAKE(half_root, copysign(other, a.y)) : MAKE(other, copysign(half_root, a.y));
}
static inline bool is_finite(number a) { return isfinite(a.x) && isfinite(a.y); }
static inline bool is_zero(number a) { return a.x == (real)0 && a.y == (real)0; }
static inline number from_real(real a) { return MAKE(a, (real)0); }
// A read that sees what other work-groups have written.
static inline number read_shared(volatile __global const number *at) {
    volatile __global const real *parts = (volatile __global const real *)at;
    return MAKE(parts[0], parts[1]);
}
#else
typedef real number;
#define ZERO ((real)0)
#define RE(a) (a)

static inline number conjugate(number a) { return a; }
static inline number times(number a, number b) { return a * b; }
static inline number multiply_add(number a, number b, number c) { return fma(a, b, c); }
static inline number quotient(number a, number by) { return a / by; }
static inline number root(number a) { return sqrt(a); }
static inline bool is_finite(number a) { return isfinite(a); }
static inline bool is_zero(number a) { return a == (real)0; }
static inline number from_real(real a) { return a; }
static inline number read_shared(volatile __global const number *at) { return *at; }
#endif
#define ONE from_real((real)1)
// What changes no number when added: -0.
#define NOTHING (-ZERO)

// The narrower type: for values of some matrices, and for some vectors if LACUNA_NARROW is 1.
#if LACUNA_COMPLEX
typedef float2 narrow;
#ifndef MAKE_NARROW
#define MAKE_NARROW(re, im) ((narrow)((re), (im)))
#endif
static inline number widened(narrow a) { return MAKE((real)a.x, (real)a.y); }
static inline narrow narrowed(number a) { return MAKE_NARROW((float)a.x, (float)a.y); }
#else
typedef float narrow;
static inline number widened(narrow a) { return (number)a; }
static inline narrow narrowed(number a) { return (narrow)a; }
#endif

// A vector, from the table word that holds its offset. GET widens the value it reads, PUT rounds the value it writes,
// KEPT is what GET then returns, FETCH reads an element as it is stored, which does not wait for it, and FETCHED widens it, BEHIND is the vector from an element on, COLUMN that a number of bytes after it. A SOURCE is constant while it is read; a
// GATHERED vector may be written in between. If no vector of a program is narrow, vectors are plain pointers.
#if LACUNA_NARROW
typedef struct {
    __global uchar *at;
    bool is_narrow;
} Vector;
// Bit 0 of the word marks a narrow vector.
static inline Vector vector_at(__global uchar *arena, ulong word) {
    Vector v = { arena + (word & ~(ulong)1), (word & 1) != 0 };
    return v;
}
// The same, if that is known at compile time.
static inline Vector vector_of(__global uchar *arena, ulong word, bool is_narrow) {
    Vector v = { arena + (word & ~(ulong)1), is_narrow };
    return v;
}
static inline number get_from(Vector v, long i) {
    return v.is_narrow ? widened(((__global const narrow *)v.at)[i]) : ((__global const number *)v.at)[i];
}
static inline void put_to(Vector v, long i, number value) {
    if (v.is_narrow) {
        ((__global narrow *)v.at)[i] = narrowed(value);
    } else {
        ((__global number *)v.at)[i] = value;
    }
}
static inline Vector vector_behind(Vector v, long i) {
    v.at += i * (long)(v.is_narrow ? sizeof(narrow) : sizeof(number));
    return v;
}
static inline Vector vector_after(Vector v, ulong bytes) {
    v.at += bytes;
    return v;
}
// A number as the vector stores it.
static inline number kept_in(Vector v, number value) { return v.is_narrow ? widened(narrowed(value)) : value; }
// An element as it is stored.
typedef struct {
    narrow slim;
    number full;
} Fetched;
static inline Fetched fetch_from(Vector v, long i, bool there) {
    Fetched f;
    f.slim = there && v.is_narrow ? ((__global const narrow *)v.at)[i] : narrowed(ZERO);
    f.full = there && !v.is_narrow ? ((__global const number *)v.at)[i] : ZERO;
    return f;
}
static inline number fetched_of(Vector v, Fetched f) { return v.is_narrow ? widened(f.slim) : f.full; }
#define FETCH(v, i, there) fetch_from(v, i, there)
#define FETCHED(v, f) fetched_of(v, f)
#define SOURCE Vector
#define GATHERED Vector
#define TARGET Vector
#define GET(v, i) get_from(v, i)
#define PUT(v, i, value) put_to(v, i, value)
#define BEHIND(v, i) vector_behind(v, i)
#define COLUMN(v, bytes) vector_after(v, bytes)
#define KEPT(v, value) kept_in(v, value)
#else
static inline __global number *vector_at(__global uchar *arena, ulong word) { return (__global number *)(arena + word); }
#define vector_of(arena, word, is_narrow) vector_at(arena, word)
#define SOURCE __global const number *restrict
#define GATHERED __global const number *
#define TARGET __global number *
#define GET(v, i) (v)[i]
#define PUT(v, i, value) ((v)[i] = (value))
#define BEHIND(v, i) ((v) + (i))
#define COLUMN(v, bytes) ((__global const number *)((__global const uchar *)(v) + (bytes)))
#define KEPT(v, value) (value)
typedef number Fetched;
#define FETCH(v, i, there) ((there) ? (v)[i] : ZERO)
#define FETCHED(v, f) (f)
#endif

// A term of a dot product.
static inline number dot_term(number a, number b) { return times(conjugate(a), b); }

// A term of a maximum: of a dot product of a number with itself, without the imaginary part that rounding may leave.
static inline number square(number a) { return from_real(RE(dot_term(a, a))); }
// Two terms of a reduction as one. Of a maximum that is the larger, NaN if one is; 0 is added, so that -0 for a missing
// term leaves +0.
static inline number join(bool maximum, number a, number b) {
    return maximum ? (RE(a) >= RE(b) || RE(a) != RE(a) ? a : b) + ZERO : a + b;
}

// Eight terms of a segment, `step` apart, by halving; and eight segment sums by neighbouring pairs.
#define SUM_8(m, e0, e1, e2, e3, e4, e5, e6, e7) PAIRS_8(m, e0, e4, e2, e6, e1, e5, e3, e7)
#define PAIRS_8(m, e0, e1, e2, e3, e4, e5, e6, e7) \
    join(m, join(m, join(m, e0, e1), join(m, e2, e3)), join(m, join(m, e4, e5), join(m, e6, e7)))
