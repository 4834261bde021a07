#!/usr/bin/env bash
# Assembly of a finite element matrix, ours beside SciPy, Eigen and sprs, which take the same triplets: linear triangles on a grid of
# N x N points, 10 million entries unless N is given. `THREADS=2 N=1200 REPEATS=5 crates/bench/peers/elements.sh`
set -euo pipefail
cd "$(dirname "$0")/../../.."
N=${N:-1200} REPEATS=${REPEATS:-5} TARGET=${CARGO_TARGET_DIR:-target}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cargo build --quiet --release -p lacuna-formats --example elements_time --features sprs011
RAYON_NUM_THREADS=${THREADS:-2} "$TARGET/release/examples/elements_time" "$N" "$REPEATS" "$folder"
python3 crates/bench/peers/elements.py "$folder" "$N" "$REPEATS" || echo "MISSING, LEFT OUT: SciPy" >&2
include=/usr/include/eigen3
if [ -d "$include" ]; then
  g++ -O3 -march=native -I"$include" crates/bench/peers/elements.cpp -o "$folder/eigen"
  "$folder/eigen" "$folder" "$N" "$REPEATS"
else
  echo "MISSING, LEFT OUT: Eigen" >&2
fi
