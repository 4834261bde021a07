#!/usr/bin/env bash
# Incomplete factors, ours beside those of Eigen, SciPy and PETSc (1 process, and THREADS ranks with block Jacobi), on Matrix Market
# files: iterations and milliseconds of set-up and of solve to a true residual of 1e-8, the least of three runs in one process. BINARY
# names a command to use instead of building it.
#
#   crates/bench/peers/factors.sh A.mtx B.mtx ...
set -euo pipefail
# shellcheck source=prepare.sh
source "$(dirname "$0")/prepare.sh"
dpkg -s libeigen3-dev >/dev/null 2>&1 || apt-get install -y -q libeigen3-dev >/dev/null
g++ -O3 -march=native -std=c++17 -DNDEBUG -fopenmp -I/usr/include/eigen3 "$peers/factors.cpp" -o "$OUT/factors"
python3 "$peers/factors.py" "$OURS" "$OUT/factors" "$OUT/automatic" "$OUT" "${THREADS:-2}" "$@"
