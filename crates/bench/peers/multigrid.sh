#!/usr/bin/env bash
# Multigrid beside PETSc's GAMG and hypre (2 ranks), the smoothed aggregation of ViennaCL (2 threads) and PyAMG, on the
# same matrices: conjugate gradients to 1e-8 for ones. Ours is `auto`, and `amg` with the matrix as csr; the least of three runs in one process. MATRICES and
# BINARY as in run.sh. Where NVCC names a compiler, ViennaCL's is also built for CUDA, for the devices of ARCH (else sm_90), and run
# where there is a device. Without ViennaCL its rows are left out.
set -euo pipefail
cd "$(dirname "$0")/../../.."
MATRICES=${MATRICES:-gen:poisson3d:100x100x100 gen:poisson2d:1000x1000 gen:spe10-like:1 gen:poisson-p1:511}
TARGET=${CARGO_TARGET_DIR:-target}
OUT=${OUT:-$TARGET/peers}
OURS=${BINARY:-$TARGET/release/lacuna}
mkdir -p "$OUT"
for package in g++ pkg-config petsc-dev libopenmpi-dev openmpi-bin; do
  dpkg -s "$package" >/dev/null 2>&1 || apt-get install -y -q "$package" >/dev/null
done
[[ ${BINARY:-} ]] || cargo build --release -q -p lacuna-cli
petsc=$(dpkg -L libpetsc-real-dev libpetsc-real3.18-dev 2>/dev/null | grep -m1 '/PETSc.pc$')
# shellcheck disable=SC2046
OMPI_CXX=g++ mpicxx -O3 -march=native -w crates/bench/peers/multigrid.cpp -o "$OUT/multigrid" \
  $(PKG_CONFIG_PATH=$(dirname "$petsc") pkg-config --cflags --libs PETSc)

missing() { echo "MISSING, LEFT OUT: $*" >&2; }
viennacl() { # NAME COMPILER FLAGS...
  local name=$1
  shift
  "$@" -O3 -DNDEBUG -std=c++17 -w crates/bench/peers/multigrid_viennacl.cpp -o "$OUT/$name" 2>"$OUT/$name.log" ||
    { rm -f "$OUT/$name"; missing "$name does not build, see $OUT/$name.log"; }
}
rm -f "$OUT"/multigrid-viennacl*
dpkg -s libviennacl-dev >/dev/null 2>&1 || apt-get install -y -q libviennacl-dev >/dev/null || true
if [[ ! -d /usr/include/viennacl ]]; then
  missing "ViennaCL"
else
  viennacl multigrid-viennacl g++ -march=native -DVIENNACL_WITH_OPENMP -fopenmp
  if [[ ${NVCC:-} ]]; then
    # ViennaCL 1.7 lets the threads of a warp exchange values through shared memory in step, which they have not been since Volta:
    # in a copy of its headers, by shuffles.
    rm -rf "$OUT/include" && mkdir "$OUT/include" && cp -r /usr/include/viennacl "$OUT/include"
    lanes='(~0u >> (32 - SubWarpSizeV)) << threadIdx.x % 32 \/ SubWarpSizeV * SubWarpSizeV'
    sed -i -e "s/__shfl_xor((int)\([a-z_]*\), (int)i)/__shfl_xor_sync($lanes, \1, i)/" \
      -e 's/subwarp_\(minimum\|accumulate\)_shared<SubWarpSizeV>(\([a-z_]*\), .*);/subwarp_\1_shuffle<SubWarpSizeV>(\2);/' \
      "$OUT/include/viennacl/linalg/cuda/spgemm_rmerge.hpp"
    sed -i -e "s/shared_elements\[threadIdx.x\] += .* \([0-9]*\)\];/dot_prod += __shfl_xor_sync($lanes, dot_prod, \1);/" \
      -e 's/alpha, shared_elements\[threadIdx.x\], beta/alpha, dot_prod, beta/' \
      "$OUT/include/viennacl/linalg/cuda/sparse_matrix_operations.hpp"
    viennacl multigrid-viennacl-cuda "$NVCC" -x cu -arch="${ARCH:-sm_90}" -cudart static -I"$OUT/include" -DVIENNACL_WITH_CUDA \
      -DVIENNACL_WITH_OPENMP -Xcompiler -fopenmp,-march=native -L"$(dirname "$NVCC")/../lib" -L"$(dirname "$NVCC")/../lib64" -lgomp
  fi
fi

row() { printf '%-28s %-24s %6s %8s %8s %10s\n' "$@"; }
row matrix solver its set-up solve residual
for matrix in $MATRICES; do
  for form in petsc npz; do "$OURS" convert "$matrix" "$OUT/multigrid.$form" --quiet; done
  # shellcheck disable=SC2046
  row "$matrix" "lacuna auto" $(python3 crates/bench/peers/multigrid.py ours "$OURS" "$matrix")
  # shellcheck disable=SC2046
  row "$matrix" "lacuna amg, csr" \
    $(python3 crates/bench/peers/multigrid.py ours "$OURS" "$matrix" --method cg --precond amg --format csr)
  for kind in gamg hypre; do
    # shellcheck disable=SC2046
    row "$matrix" "petsc $kind, 2 ranks" \
      $(mpirun --allow-run-as-root --oversubscribe -n 2 "$OUT/multigrid" -f "$OUT/multigrid.petsc" -pc_type $kind)
  done
  if [[ -x $OUT/multigrid-viennacl ]]; then
    # shellcheck disable=SC2046
    row "$matrix" "viennacl amg, 2 threads" $(OMP_NUM_THREADS=2 "$OUT/multigrid-viennacl" "$OUT/multigrid.petsc" || echo - - - -)
  fi
  if [[ -x $OUT/multigrid-viennacl-cuda ]] && nvidia-smi >/dev/null 2>&1; then
    for kind in "" mis2; do
      # shellcheck disable=SC2046,SC2086
      row "$matrix" "viennacl amg, cuda $kind" $("$OUT/multigrid-viennacl-cuda" "$OUT/multigrid.petsc" $kind || echo - - - -)
    done
  fi
  for kind in sa rs; do
    # shellcheck disable=SC2046
    row "$matrix" "pyamg $kind" $(python3 crates/bench/peers/multigrid.py $kind "$OUT/multigrid.npz" || echo - - - -)
  done
done
