// The kernels of levels.cuh in c32.
//
// Formula, bytes moved, launch shapes and assumptions: as there.
#define LACUNA_REAL float
#define LACUNA_REAL_BITS 32
#define LACUNA_COMPLEX 1
#define LACUNA_SUFFIX c32
#include "levels.cuh"
