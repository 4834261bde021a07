#!/usr/bin/env bash
# Ours against cuSPARSE with cuBLAS and against ViennaCL (CUDA, OpenCL), round by round on the same matrices, on a machine
# with an NVIDIA GPU, nvcc and both libraries, and without Rust, by what crates/bench/carry/build.sh has made; builds the peers there.
# Leaves NAME.jsonl, NAME.html, NAME.md and NAME.log in $OUT (else the current folder), also where the time ends it.
#
#   crates/bench/carry/peers.sh                     30 fixed iterations and products, f64, in 280 seconds
#   SECONDS_AT_MOST=900 ROUNDS=5 crates/bench/carry/peers.sh
#   MATRICES=gen:poisson-p1:255 METHODS=cg PRODUCTS= crates/bench/carry/peers.sh
#
# Programs and matrices stay in $WORK: a second run on the same machine spends its time measuring.
set -euo pipefail
begin=$(date +%s)
# shellcheck source=crates/bench/carry/there.sh
. "$(dirname "$0")/there.sh"

TYPE=${TYPE:-f64}
ROUNDS=${ROUNDS:-3}
REPEATS=${REPEATS:-10}
BACKENDS=${BACKENDS:-cuda,opencl}
METHODS=${METHODS-cg,bicgstab,gmres}
MATRICES=${MATRICES-gen:poisson-p1:15 gen:poisson-p1:31 gen:poisson-p1:63 gen:poisson-p1:127 gen:poisson-p1:255
  gen:elasticity3d:4 gen:elasticity3d:8 gen:elasticity3d:16 gen:poisson-p1:511 gen:poisson-p1:1023 gen:elasticity3d:47}
PRODUCTS=${PRODUCTS-gen:poisson2d:1000x1000 gen:poisson3d:100x100x100 gen:poisson3d:100x100x100:27 gen:elasticity3d:47
  gen:power-law:1000000 gen:poisson3d:256x256x256}
WORK=${WORK:-/tmp/lacuna-peers}
kept=${NAME:-h200-peers}
ours=$here/.bin/lacuna
mkdir -p "$WORK"
: >"$kept.jsonl"
: >"$kept.log"

left() { echo $((${SECONDS_AT_MOST:-280} - 5 - ($(date +%s) - begin))); }
say() { echo "$(left) s left: $*" | tee -a "$kept.log" >&2; }

# --- build, and write the matrices meanwhile -------------------------------------------------------------------
candidates=("$(command -v nvcc || true)" /usr/local/cuda*/bin/nvcc)
nvcc=nvcc
for candidate in "${candidates[@]}"; do if [[ -x $candidate ]]; then nvcc=$candidate && break; fi; done
# The libraries are in the toolkit or among Python's packages, which have no libNAME.so to link with.
toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
packages=$(python3 -c 'import nvidia.cu13 as p; print(list(p.__path__)[0])' 2>/dev/null || true)
link=()
for folder in "$toolkit" "$toolkit/targets/x86_64-linux" "$packages"; do
  if [[ -e $folder/include/cusparse.h ]]; then link+=("-I$folder/include"); fi
  for lib in "$folder/lib" "$folder/lib64"; do
    if [[ -d $lib ]]; then link+=("-L$lib" "-Xlinker" "-rpath=$lib"); fi
  done
done
library() {
  local found
  for found in "$toolkit"/{lib64,lib,targets/x86_64-linux/lib}/lib"$1".so* "$packages"/lib/lib"$1".so*; do
    if [[ -e $found ]]; then echo "-l:${found##*/}" && return; fi
  done
  echo "-l$1"
}
[[ -d $WORK/viennacl ]] || tar -xzf "$here/.bin/headers.tar.gz" -C "$WORK"
build() { # NAME COMPILER ARGUMENTS...
  local name=$1
  shift
  if [[ ! -x $WORK/$name ]]; then
    "$@" -o "$WORK/$name" -O3 -DNDEBUG -std=c++17 -w -I"$WORK" >"$WORK/$name.log" 2>&1 ||
      { say "$name does not build and is left out:" && head -n 20 "$WORK/$name.log" | tee -a "$kept.log" >&2; }
  fi
}
peers=$here/crates/bench/peers
compute=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d . || true)
ARCH=${ARCH:-${compute:+sm_$compute}}
build cusparse "$nvcc" -arch="${ARCH:-native}" "$peers/cusparse.cu" "${link[@]}" "$(library cusparse)" "$(library cublas)" &
build viennacl-cuda "$nvcc" -arch="${ARCH:-native}" -DVIENNACL_WITH_CUDA -x cu "$peers/viennacl.cpp" "${link[@]}" &
build viennacl-opencl g++ -DVIENNACL_WITH_OPENCL "$peers/viennacl.cpp" "$here/.bin/libOpenCL.so.1" &
file() { echo "$WORK/${1#gen:}.petsc"; }
for spec in $MATRICES $PRODUCTS; do
  [[ -s $(file "$spec") ]] && continue
  "$ours" generate "$spec" --output "$WORK/part.petsc" >>"$kept.log" && mv "$WORK/part.petsc" "$(file "$spec")"
done
wait
say "built, matrices written"

# --- rounds ----------------------------------------------------------------------------------------------------
compare() { # METHODS FORMATS SPEC...
  local methods=$1 formats=$2
  shift 2
  if [[ $# -gt 0 ]] && (($(left) > 10)); then
    "$ours" compare "$@" --types "$TYPE" --methods "$methods" --formats "$formats" --backends "$BACKENDS" --rounds 3 \
      --time-limit "$(($(left) - 10))" --quiet --json "$kept.jsonl" 2>>"$kept.log" || say "ours: exit code $?"
  fi
}
peer() { # NAME METHODS SPEC...
  local name=$1 methods=$2 arguments=()
  shift 2
  [[ -x $WORK/$name && $# -gt 0 ]] || return 0
  for spec in "$@"; do arguments+=("$(file "$spec")" "$spec" "$TYPE" "$REPEATS" "$methods"); done
  if (($(left) > 0)); then
    timeout "$(left)" "$WORK/$name" "${arguments[@]}" >>"$kept.jsonl" 2>>"$kept.log" || say "$name: exit code $?"
  fi
}
solves=${METHODS//gmres/gmres,gmres-once}
for ((r = 1; r <= ROUNDS && $(left) > 0; r++)); do
  say "round $r of $ROUNDS"
  # shellcheck disable=SC2086
  compare "$solves" auto $MATRICES
  for name in cusparse viennacl-cuda viennacl-opencl; do
    # shellcheck disable=SC2086
    peer $name "$METHODS" $MATRICES
  done
  say "round $r, products"
  # shellcheck disable=SC2086
  compare spmv csr,auto $PRODUCTS
  for name in cusparse viennacl-cuda viennacl-opencl; do
    # shellcheck disable=SC2086
    peer $name spmv $PRODUCTS
  done
done
# A program that was ended by the time may have left half a line.
sed -i '/}$/!d' "$kept.jsonl"
"$here/.bin/lacuna-bench" report "$kept.jsonl" --html "$kept.html" --markdown "$kept.md"
say "done"
