#!/usr/bin/env bash
# `lacuna solve` with no option beside SciPy and PETSc as they come, on Matrix Market files: what is solved to a true residual of
# 1e-8, and the milliseconds of set-up and solve, the least of three runs. BINARY names a command to use instead of building it.
#
#   crates/bench/peers/automatic.sh A.mtx B.mtx ...
set -euo pipefail
# shellcheck source=prepare.sh
source "$(dirname "$0")/prepare.sh"
python3 "$peers/automatic.py" "$OURS" "$OUT/automatic" "$OUT" "$@"
