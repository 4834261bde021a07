// kernels-opencl/levels.cl for CUDA, in one number type.
//
// Formula, bytes moved and launch shapes: as there.
// Assumes: LACUNA_REAL, LACUNA_REAL_BITS, LACUNA_COMPLEX and LACUNA_SUFFIX; -fmad=false, correctly rounded division and roots.
// The build script writes layout.h, scalar.cl and levels.cl.
#include <cmath>
#define LACUNA_PRELUDE 1
#define LACUNA_NARROW 0
#include "layout.h"
#define inline __device__ __forceinline__
#include "prelude.cuh"
#define atomic_add(at, by) atomicAdd((uint *)(at), by)
#define atomic_sub(at, by) atomicSub((uint *)(at), by)
#include "scalar.cl"
#include "levels.cl"
