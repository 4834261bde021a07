#!/bin/sh
# Builds the emulated driver: build.sh FOLDER WITH-LAYOUT-H OUTPUT-FOLDER. To run tests with it,
# set LD_LIBRARY_PATH=OUTPUT-FOLDER.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kernels=$here/../../../../kernels-cuda
mkdir -p "$2"
for f in sweep part spmv_csr spmv_dia spmv_sell spmv_bcsr spmv_hyb basis block tri_solve; do
    grep -v '#pragma unroll' "$kernels/$f.cu" |
        sed 's/extern __shared__ __align__(16) unsigned char memory\[\];/unsigned char *memory = emu_shared();/' |
        sed 's/^#define KERNELS/#undef KERNELS\n#define KERNELS/'
done | sed '/^#include ".*cuh"/d' > "$2/bodies.inc"
{ for h in sweep product_rows diagonals; do echo "#include \"$h.cuh\""; done; cat "$2/bodies.inc"; } > "$2/kernels.inc"
g++ -O2 -std=c++17 -mfma -fno-tree-vectorize -ffp-contract=off -fPIC -shared -Wno-unknown-pragmas -I "$2" -I "$1" -I "$kernels" \
    "$here/emulator.cpp" -o "$2/libcuda.so.1" -pthread
