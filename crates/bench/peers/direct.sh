#!/usr/bin/env bash
# Complete factorisations, ours beside KLU, UMFPACK and CHOLMOD (SuiteSparse), PARDISO (MKL) and SuperLU (SciPy), on one thread, on
# Matrix Market files. The peers come from Debian (libsuitesparse-dev) and PyPI (pypardiso, scipy).
#
#   crates/bench/peers/direct.sh A.mtx B.mtx ...
set -euo pipefail
peers=$(cd "$(dirname "$0")" && pwd)
OUT=${OUT:-$(mktemp -d)}
dpkg -s libsuitesparse-dev >/dev/null 2>&1 || apt-get install -y -q libsuitesparse-dev >/dev/null
python3 -c "import pypardiso, scipy" 2>/dev/null || python3 -m pip install -q pypardiso scipy
g++ -O3 -march=native -std=c++17 "$peers/direct.cpp" -o "$OUT/direct" -lklu -lumfpack -lcholmod
(cd "$peers/../../.." && cargo build --release -q -p lacuna-direct --example direct_time)
python3 "$peers/direct.py" "$peers/../../../target/release/examples/direct_time" "$OUT/direct" "$@"
