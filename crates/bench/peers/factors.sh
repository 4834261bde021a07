#!/usr/bin/env bash
# Incomplete factors, ours beside those of Eigen, SciPy and PETSc (1 process, and THREADS ranks with block Jacobi), on Matrix Market
# files: iterations and milliseconds of set-up and of solve to a true residual of 1e-8, the least of three runs, each in a process of
# its own. BINARY names a command to use instead of building it.
#
#   crates/bench/peers/factors.sh A.mtx B.mtx ...
set -euo pipefail
peers=$(cd "$(dirname "$0")" && pwd)
TARGET=${CARGO_TARGET_DIR:-$peers/../../../target}
OUT=${OUT:-$TARGET/peers}
OURS=${BINARY:-$TARGET/release/lacuna}
mkdir -p "$OUT"
for package in g++ pkg-config libeigen3-dev petsc-dev libopenmpi-dev openmpi-bin; do
  dpkg -s "$package" >/dev/null 2>&1 || apt-get install -y -q "$package" >/dev/null
done
python3 -c 'import scipy' 2>/dev/null || pip install -q scipy
[[ ${BINARY:-} ]] || cargo build --release -q -p lacuna-cli --manifest-path "$peers/../../../Cargo.toml"
petsc=$(dpkg -L libpetsc-real-dev libpetsc-real3.18-dev 2>/dev/null | grep -m1 '/PETSc.pc$')
# shellcheck disable=SC2046
OMPI_CXX=g++ mpicxx -O3 -march=native -w "$peers/automatic.cpp" -o "$OUT/automatic" \
  $(PKG_CONFIG_PATH=$(dirname "$petsc") pkg-config --cflags --libs PETSc)
g++ -O3 -march=native -std=c++17 -DNDEBUG -fopenmp -I/usr/include/eigen3 "$peers/factors.cpp" -o "$OUT/factors"
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
  python3 "$peers/factors.py" "$OURS" "$OUT/factors" "$OUT/automatic" "$OUT" "${THREADS:-2}" "$@"
