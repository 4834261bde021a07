// The kernels of levels.cuh in f64.
//
// Formula, bytes moved, launch shapes and assumptions: as there.
#define LACUNA_REAL double
#define LACUNA_REAL_BITS 64
#define LACUNA_COMPLEX 0
#define LACUNA_SUFFIX f64
#include "levels.cuh"
