// The kernels of levels.cuh in c64.
//
// Formula, bytes moved, launch shapes and assumptions: as there.
#define LACUNA_REAL double
#define LACUNA_REAL_BITS 64
#define LACUNA_COMPLEX 1
#define LACUNA_SUFFIX c64
#include "levels.cuh"
