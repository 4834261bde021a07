#!/usr/bin/env bash
# Eigenvalues, ours beside SciPy, PRIMME and SLEPc, on one thread: milliseconds, and how many values are missed. SLEPc comes from Debian
# (python3-slepc4py python3-scipy), the others from PyPI; those that are not there are shown as `-`. BINARY names a command to use instead of
# building it, PYTHON an interpreter that has the peers.
#
#   crates/bench/peers/eigenvalues.sh [A.mtx B.mtx ...]
set -euo pipefail
peers=$(cd "$(dirname "$0")" && pwd)
OUT=${OUT:-$(mktemp -d)}
if [ -z "${BINARY:-}" ]; then
  (cd "$peers/../../.." && cargo build --release -q -p lacuna-cli)
  BINARY=$peers/../../../target/release/lacuna
fi
"${PYTHON:-python3}" "$peers/eigenvalues.py" "$BINARY" "$OUT" "$@"
