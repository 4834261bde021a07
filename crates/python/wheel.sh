#!/usr/bin/env bash
# Builds the wheel with all backends and checks it: one file for machines with and without drivers.
#   wheel.sh [FOLDER]     where the wheel goes: target/wheels by default
# Needs nvcc, as `eval "$(kernels-cuda/toolkit.sh)"` provides it. The tag follows the C library of the machine: for older systems,
# build where that is old, or give maturin `--zig`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$(cd "$here/../.." && pwd)/target
out=${1:-$target/wheels}
venv=$target/python/venv
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c 'import auditwheel, abi3audit, twine' 2>/dev/null && [ -x "$venv/bin/maturin" ] ||
  "$venv/bin/python" -m pip install --quiet 'maturin>=1.9,<2' auditwheel abi3audit twine
"$venv/bin/maturin" build --release --manifest-path "$here/Cargo.toml" --features cuda,opencl --out "$out"
wheel=$(ls -t "$out"/*.whl | head -n 1)
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
"$venv/bin/python" -m zipfile -e "$wheel" "$site"
say() { printf -- '-- %s\n' "$*"; }

say "$(basename "$wheel"): $(stat -c %s "$wheel") bytes of at most 12000000"
[ "$(stat -c %s "$wheel")" -le 12000000 ]

say "no driver among the libraries that it needs, and nothing exported but its entry"
! readelf -d "$site"/lacuna_sparse/_core*.so | grep NEEDED | grep -E 'libcuda|libOpenCL|libpython'
[ "$(nm -D --defined-only "$site"/lacuna_sparse/_core*.so | awk '{ print $3 }')" = PyInit__core ]

say "auditwheel"
"$venv/bin/auditwheel" show "$wheel"
"$venv/bin/abi3audit" --strict "$wheel"
"$venv/bin/twine" check --strict "$wheel"

say "it starts and solves in an environment of its own"
"$venv/bin/python" -m venv "$site/venv"
"$site/venv/bin/python" -m pip install --quiet "$wheel"
"$site/venv/bin/python" -m lacuna_sparse
