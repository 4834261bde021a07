#!/usr/bin/env bash
# Multigrid beside PETSc's GAMG and hypre (2 ranks) and PyAMG, on the same matrices: conjugate gradients to 1e-8 for ones.
# Ours is `auto`, and `amg` with the matrix as csr; the least of three runs. MATRICES and BINARY as in run.sh.
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

row() { printf '%-28s %-22s %6s %8s %8s %10s\n' "$@"; }
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
  for kind in sa rs; do
    # shellcheck disable=SC2046
    row "$matrix" "pyamg $kind" $(python3 crates/bench/peers/multigrid.py $kind "$OUT/multigrid.npz" || echo - - - -)
  done
done
