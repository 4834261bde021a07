#!/usr/bin/env bash
# Tests the package around an extension that cargo has built: our tests, then SciPy's and PyAMG's with our functions in place of theirs.
#   run.sh [FOLDER]     FOLDER has what cargo built: target/release by default
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$(cd "$here/../../../target" && pwd)
built=${1:-$target/release}
venv=$target/python/venv
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
fi
"$venv/bin/python" -c 'import mypy, numpy, pyamg, pytest, scipy' 2>/dev/null || "$venv/bin/python" -m pip install --quiet numpy 'scipy>=1.17' pytest mypy pyamg
# The package with the extension, as a wheel has it.
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
cp -r "$here/../lacuna_sparse" "$site/"
cp "$built/lib_core.so" "$site/lacuna_sparse/_core.abi3.so"
export PYTHONPATH=$site PYTHONDONTWRITEBYTECODE=1
cd "$here"
"$venv/bin/python" -m pytest -q -p no:cacheprovider .
"$venv/bin/python" scipy_suite.py
"$venv/bin/python" pyamg_suite.py
