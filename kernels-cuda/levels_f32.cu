// The kernels of levels.cuh in f32.
//
// Formula, bytes moved, launch shapes and assumptions: as there.
#define LACUNA_REAL float
#define LACUNA_REAL_BITS 32
#define LACUNA_COMPLEX 0
#define LACUNA_SUFFIX f32
#include "levels.cuh"
