// The four number types; each operation on them is rounded in one way.
//
// Formula: each operation as in crates/engine/src/expr/scalar.rs. A fused multiply-add only where `fma_of` is called;
// -fmad=false keeps the compiler from contracting anything else. Division and roots are correctly rounded.
// Assumes: -prec-div=true -prec-sqrt=true -ftz=false (nvcc's defaults). Also compiles as host C++, for tests.
#pragma once
#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define LACUNA_FN __device__ __forceinline__
#else
#define LACUNA_FN inline
#endif

typedef uint32_t u32;
typedef uint64_t u64;

template <typename R> struct alignas(2 * sizeof(R)) Complex {
    R re, im;
};
typedef float f32;
typedef double f64;
typedef Complex<float> c32;
typedef Complex<double> c64;

// Real numbers.
#define LACUNA_REAL(R, FMA, SQRT, ABS, COPYSIGN)                                                                     \
    LACUNA_FN R fma_real(R a, R b, R c) { return FMA(a, b, c); }                                                     \
    LACUNA_FN R sqrt_real(R a) { return SQRT(a); }                                                                   \
    LACUNA_FN R abs_real(R a) { return ABS(a); }                                                                     \
    LACUNA_FN R copysign_real(R a, R b) { return COPYSIGN(a, b); }                                                   \
    LACUNA_FN R zero_of(R *) { return R(0); }                                                                        \
    LACUNA_FN R from_real(R *, double re) { return R(re); }                                                          \
    LACUNA_FN R add(R a, R b) { return a + b; }                                                                      \
    LACUNA_FN R sub(R a, R b) { return a - b; }                                                                      \
    LACUNA_FN R mul(R a, R b) { return a * b; }                                                                      \
    LACUNA_FN R neg(R a) { return -a; }                                                                              \
    LACUNA_FN R conj_of(R a) { return a; }                                                                           \
    LACUNA_FN R fma_of(R a, R b, R c) { return FMA(a, b, c); }                                                       \
    LACUNA_FN R quotient(R a, R b) { return a / b; }                                                                 \
    LACUNA_FN R root(R a) { return SQRT(a); }                                                                        \
    LACUNA_FN R dot_term(R a, R b) { return a * b; }                                                                 \
    LACUNA_FN R square(R a) { return a * a; }                                                                        \
    LACUNA_FN double re_of(R a) { return double(a); }                                                                \
    LACUNA_FN bool is_zero(R a) { return a == R(0); }                                                                \
    LACUNA_FN bool is_finite(R a) { return a - a == R(0); }

#ifdef __CUDACC__
LACUNA_REAL(float, __fmaf_rn, __fsqrt_rn, fabsf, copysignf)
LACUNA_REAL(double, __fma_rn, __dsqrt_rn, fabs, copysign)
#else
LACUNA_REAL(float, std::fmaf, std::sqrt, std::fabs, std::copysign)
LACUNA_REAL(double, std::fma, std::sqrt, std::fabs, std::copysign)
#endif

// Complex numbers: z = re + im i.
template <typename R> LACUNA_FN Complex<R> complex(R re, R im) {
    Complex<R> z;
    z.re = re;
    z.im = im;
    return z;
}
template <typename R> LACUNA_FN Complex<R> zero_of(Complex<R> *) { return complex(R(0), R(0)); }
template <typename R> LACUNA_FN Complex<R> from_real(Complex<R> *, double re) { return complex(R(re), R(0)); }
template <typename R> LACUNA_FN Complex<R> add(Complex<R> a, Complex<R> b) { return complex(a.re + b.re, a.im + b.im); }
template <typename R> LACUNA_FN Complex<R> sub(Complex<R> a, Complex<R> b) { return complex(a.re - b.re, a.im - b.im); }
template <typename R> LACUNA_FN Complex<R> mul(Complex<R> a, Complex<R> b) {
    return complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
template <typename R> LACUNA_FN Complex<R> neg(Complex<R> a) { return complex(-a.re, -a.im); }
template <typename R> LACUNA_FN Complex<R> conj_of(Complex<R> a) { return complex(a.re, -a.im); }
template <typename R> LACUNA_FN Complex<R> fma_of(Complex<R> a, Complex<R> b, Complex<R> c) {
    return complex(fma_real(-a.im, b.im, fma_real(a.re, b.re, c.re)), fma_real(a.im, b.re, fma_real(a.re, b.im, c.im)));
}
// Smith 1962: divides by the larger part.
template <typename R> LACUNA_FN Complex<R> quotient(Complex<R> a, Complex<R> by) {
    if (abs_real(by.re) >= abs_real(by.im)) {
        R ratio = by.im / by.re, scale = fma_real(by.im, ratio, by.re);
        return complex(fma_real(a.im, ratio, a.re) / scale, fma_real(-a.re, ratio, a.im) / scale);
    }
    R ratio = by.re / by.im, scale = fma_real(by.re, ratio, by.im);
    return complex(fma_real(a.re, ratio, a.im) / scale, fma_real(a.im, ratio, -a.re) / scale);
}
template <typename R> LACUNA_FN Complex<R> root(Complex<R> a) {
    R re = abs_real(a.re), im = abs_real(a.im);
    R large = re >= im ? re : im, small = re >= im ? im : re;
    if (large == R(0)) return complex(R(0), a.im);
    R ratio = small / large;
    R modulus = large * sqrt_real(fma_real(ratio, ratio, R(1)));
    R half = sqrt_real(R(0.5) * (modulus + re));
    R other = R(0.5) * im / half;
    if (a.re >= R(0)) return complex(half, copysign_real(other, a.im));
    return complex(other, copysign_real(half, a.im));
}
template <typename R> LACUNA_FN Complex<R> dot_term(Complex<R> a, Complex<R> b) { return mul(conj_of(a), b); }
template <typename R> LACUNA_FN Complex<R> square(Complex<R> a) { return complex(dot_term(a, a).re, R(0)); }
template <typename R> LACUNA_FN double re_of(Complex<R> a) { return double(a.re); }
template <typename R> LACUNA_FN bool is_zero(Complex<R> a) { return a.re == R(0) && a.im == R(0); }
template <typename R> LACUNA_FN bool is_finite(Complex<R> a) { return is_finite(a.re) && is_finite(a.im); }

// How two terms of a reduction become one. Of a maximum the larger, NaN if one is; 0 is added, so that -0 for a missing term
// leaves +0.
struct Sum {
    template <typename T> static LACUNA_FN T of(T a, T b) { return add(a, b); }
};
struct Maximum {
    template <typename T> static LACUNA_FN T of(T a, T b) {
        double re = re_of(a);
        return add(re >= re_of(b) || re != re ? a : b, zero_of((T *)nullptr));
    }
};

template <typename T> LACUNA_FN T zero() { return zero_of((T *)nullptr); }
template <typename T> LACUNA_FN T number(double re) { return from_real((T *)nullptr, re); }

// The narrower type: for values of some matrices, and for the elements of some vectors.
template <typename T> struct Narrow { typedef f32 type; };
template <typename R> struct Narrow<Complex<R>> { typedef c32 type; };
LACUNA_FN void convert(f32 a, f32 &to) { to = a; }
LACUNA_FN void convert(f32 a, f64 &to) { to = f64(a); }
LACUNA_FN void convert(f64 a, f32 &to) { to = f32(a); }
LACUNA_FN void convert(f64 a, f64 &to) { to = a; }
template <typename S, typename R> LACUNA_FN void convert(Complex<S> a, Complex<R> &to) { to = complex(R(a.re), R(a.im)); }

template <typename T, typename V> LACUNA_FN T widened(V stored) {
    T value;
    convert(stored, value);
    return value;
}

// A vector by its address, in which bit 0 marks a narrow one: reads widen, writes round.
LACUNA_FN bool is_narrow(u64 address) { return address & 1; }
template <typename T> LACUNA_FN typename Narrow<T>::type *narrow_at(u64 address) {
    return (typename Narrow<T>::type *)(address - 1);
}
template <typename T> struct Tagged {
    u64 address;
    LACUNA_FN T operator[](u64 i) const {
        return is_narrow(address) ? widened<T>(narrow_at<T>(address)[i]) : ((const T *)address)[i];
    }
    LACUNA_FN void put(u64 i, T value) const {
        if (is_narrow(address))
            convert(value, narrow_at<T>(address)[i]);
        else
            ((T *)address)[i] = value;
    }
    LACUNA_FN Tagged operator+(u64 i) const {
        return {address + i * (is_narrow(address) ? sizeof(typename Narrow<T>::type) : sizeof(T))};
    }
};
// How kernels read a vector: kernels for operations without narrow vectors, where N is false, use plain pointers.
template <bool N, typename T> struct Vector {
    typedef const T *__restrict__ Source;
    static LACUNA_FN const T *source(u64 address) { return (const T *)address; }
    static LACUNA_FN void put(u64 address, u64 i, T value) { ((T *)address)[i] = value; }
    static LACUNA_FN T kept(u64, T value) { return value; } // as the vector stores it
};
template <typename T> struct Vector<true, T> {
    typedef Tagged<T> Source;
    static LACUNA_FN Tagged<T> source(u64 address) { return {address}; }
    static LACUNA_FN void put(u64 address, u64 i, T value) { Tagged<T>{address}.put(i, value); }
    static LACUNA_FN T kept(u64 address, T value) {
        typename Narrow<T>::type rounded;
        convert(value, rounded);
        if (is_narrow(address)) convert(rounded, value);
        return value;
    }
};

// Instantiates a macro of (type, suffix) for every number type; kernels are generated from this list. LACUNA_VECTORS
// has a third argument: it adds kernels that take narrow vectors, for types with a narrower one.
#define LACUNA_TYPES(X) X(f32, f32) X(f64, f64) X(c32, c32) X(c64, c64)
#define LACUNA_VECTORS(X)                                                                                            \
    X(f32, f32, false) X(f64, f64, false) X(c32, c32, false) X(c64, c64, false)                                      \
    X(f64, narrow_f64, true) X(c64, narrow_c64, true)
