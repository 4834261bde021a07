#!/usr/bin/env bash
# Ours against ViennaCL's OpenCL backend on the same OpenCL device, round by round: 30 fixed iterations, f64.
#
#   bench/peers/opencl.sh
#   ROUNDS=9 MATRICES="gen:poisson-p1:15 gen:poisson-p1:31" bench/peers/opencl.sh
#
# Both take the first device of the first platform; OCL_ICD_VENDORS chooses the platform. Ends with the median of the
# rounds in microseconds an iteration, and theirs over ours.
set -euo pipefail
cd "$(dirname "$0")/../.."

ROUNDS=${ROUNDS:-5}
REPEATS=${REPEATS:-10}
MATRICES=${MATRICES-gen:poisson-p1:15 gen:poisson-p1:31 gen:poisson-p1:63 gen:poisson-p1:127 gen:poisson-p1:255
  gen:elasticity3d:4 gen:elasticity3d:8 gen:elasticity3d:16}
TARGET=${CARGO_TARGET_DIR:-target}
OUT=${OUT:-$TARGET/peers}
mkdir -p "$OUT/matrices"

cargo build --release -q -p lacuna-bench
cargo build --release -q -p lacuna-opencl --example bench
[[ $OUT/viennacl-opencl -nt bench/peers/viennacl.cpp ]] ||
  g++ -O3 -march=native -std=c++17 -w -DVIENNACL_WITH_OPENCL bench/peers/viennacl.cpp -o "$OUT/viennacl-opencl" -lOpenCL

lines=$OUT/lines-opencl.txt
: >"$lines"
for ((r = 1; r <= ROUNDS; r++)); do
  echo "round $r of $ROUNDS" >&2
  for spec in $MATRICES; do
    name=${spec#gen:}
    [[ -s $OUT/matrices/$name ]] || "$TARGET/release/solves" --matrices "$spec" --dump "$OUT/matrices/$name"
    LACUNA_OPENCL_DEVICE=0 "$TARGET/release/examples/bench" auto "systems=$spec" methods=cg,bicgstab,gmres |
      sed -n 's/^{"bench":"solve".*"method":"\([^"]*\)".*"us":\([0-9.]*\).*/ours \1 '"$name"' \2/p' >>"$lines"
    "$OUT/viennacl-opencl" "$OUT/matrices/$name" "$name" f64 "$REPEATS" cg,bicgstab,gmres |
      awk '{ print "viennacl", $2, $3, $5 }' >>"$lines"
  done
done

echo "| system | method | ours | ViennaCL | ratio |"
echo "|---|---|--:|--:|--:|"
sort -k2,3 -k1,1 -k4,4n "$lines" | awk '
  { at = $3 "|" $2; seen[at] = 1; times[$1 "|" at, ++count[$1 "|" at]] = $4 }
  function median(key, n) { n = count[key]; return (times[key, int((n + 1) / 2)] + times[key, int(n / 2) + 1]) / 2 }
  END {
    for (at in seen) {
      split(at, part, "|")
      ours = median("ours|" at); theirs = median("viennacl|" part[1] "|" (part[2] == "gmres-once" ? "gmres" : part[2]))
      if (ours > 0) printf "| %s | %s | %.2f | %.2f | %.2f |\n", part[1], part[2], ours, theirs, theirs / ours
    }
  }' | sort
