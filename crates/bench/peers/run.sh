#!/usr/bin/env bash
# Ours against the peers installed here, round by round, on the same matrices; ends with a page and tables of ratios.
#
#   crates/bench/peers/run.sh          every row, f64 and f32: 30 fixed iterations, products, a solve until converged, reading,
#                                      assembling and converting matrices, passes beside loops written by hand
#   TYPES=f32 ROUNDS=9 crates/bench/peers/run.sh
#   MATRICES="gen:poisson-p1:15 gen:poisson-p1:31" METHODS=cg PRODUCTS= CONVERGED= DATA= PASSES= crates/bench/peers/run.sh
#
# BACKENDS names ours (cpu, and opencl where there is a loader); BINARY a command that is there already, with lacuna-bench
# beside it, instead of building both.
# Leaves ours.jsonl, peers.jsonl, peers.html and peers.md in $OUT (else target/peers). Of several rounds the middle one counts.
# `lacuna compare --peers` shows peers.jsonl beside other runs.
#
# Peers: Eigen, ViennaCL (OpenMP, and OpenCL where there is a loader), PETSc (1 and 2 ranks) from apt; MKL where MKL_ROOT has
# include/mkl.h and lib/libmkl_rt.so.* (pip install --prefix "$MKL_ROOT" mkl-devel); SciPy from apt. What is missing is said
# and left out.
set -euo pipefail
cd "$(dirname "$0")/../../.."

TYPES=${TYPES:-f64 f32}
ROUNDS=${ROUNDS:-5}
REPEATS=${REPEATS:-10}
THREADS=${THREADS:-2}
METHODS=${METHODS-cg,bicgstab,gmres}
MATRICES=${MATRICES-gen:poisson-p1:15 gen:poisson-p1:31 gen:poisson-p1:63 gen:poisson-p1:127 gen:poisson-p1:255
  gen:poisson-p1:511 gen:elasticity3d:47}
PRODUCTS=${PRODUCTS-gen:poisson2d:1000x1000 gen:poisson3d:100x100x100 gen:poisson3d:100x100x100:27 gen:poisson-p1:255
  gen:poisson-p1:511 gen:elasticity3d:47 gen:power-law:1000000}
# Solved by CG with Jacobi's preconditioner until |b - A x| <= 1e-8 |b|, in f64.
CONVERGED=${CONVERGED-gen:poisson3d:100x100x100}
# Made: what, and the matrix, in f64. Ours makes the same two.
DATA=${DATA-read,assemble,to-coo,to-dia=gen:poisson3d:100x100x100:27 to-bcsr3=gen:elasticity3d:47}
PASSES=${PASSES-yes}
TARGET=${CARGO_TARGET_DIR:-target}
OUT=${OUT:-$TARGET/peers}
OURS=${BINARY:-$TARGET/release/lacuna}
BENCH=$(dirname "$OURS")/lacuna-bench
LACUNA_COMMIT=${LACUNA_COMMIT:-$(git rev-parse --short HEAD)}
export LACUNA_COMMIT
mkdir -p "$OUT/matrices"

missing() { echo "MISSING, LEFT OUT: $*" >&2; }

# --- install ---------------------------------------------------------------------------------------------------
for package in g++ pkg-config libeigen3-dev libviennacl-dev petsc-dev libopenmpi-dev openmpi-bin python3-scipy; do
  dpkg -s "$package" >/dev/null 2>&1 && continue
  echo "installing $package" >&2
  apt-get install -y -q "$package" >/dev/null 2>&1 || missing "$package could not be installed"
done

# --- build -----------------------------------------------------------------------------------------------------
if [[ -z ${BACKENDS:-} ]]; then
  BACKENDS=cpu
  if ldconfig -p | grep -q libOpenCL.so; then BACKENDS=cpu,opencl; fi
fi
[[ ${BINARY:-} ]] || cargo build --release -q -p lacuna-cli -p lacuna-bench --features "$BACKENDS"
FLAGS="-O3 -march=native -std=c++17"
build() { # NAME COMPILER FLAGS...
  local name=$1 source=crates/bench/peers/$1.cpp
  shift
  [[ -e $source ]] || source=crates/bench/peers/${name%%-*}.cpp
  if [[ ! $OUT/$name -nt $source || ! $OUT/$name -nt crates/bench/peers/peer.hpp ]]; then
    local compiler=$1
    shift
    # shellcheck disable=SC2086
    "$compiler" $FLAGS -w "$source" -o "$OUT/$name" "$@" 2>"$OUT/$name.log" ||
      { rm -f "$OUT/$name"; missing "$name does not build, see $OUT/$name.log"; }
  fi
}
build eigen g++ -fopenmp -I/usr/include/eigen3
build viennacl g++ -fopenmp
if [[ $BACKENDS == *opencl* ]]; then
  build viennacl-opencl g++ -DVIENNACL_WITH_OPENCL -lOpenCL
fi
petsc=$(dpkg -L libpetsc-real-dev libpetsc-real3.18-dev 2>/dev/null | grep -m1 '/PETSc.pc$' || true)
export OMPI_CXX=g++
# shellcheck disable=SC2046
build petsc mpicxx $(PKG_CONFIG_PATH=$(dirname "${petsc:-.}") pkg-config --cflags --libs PETSc 2>/dev/null)
mkl=$(find "${MKL_ROOT:-/opt/intel/oneapi/mkl/latest}/lib" -name 'libmkl_rt.so*' 2>/dev/null | head -1 || true)
if [[ $mkl ]]; then
  build mkl g++ -fopenmp -I"$MKL_ROOT/include" "$mkl" -Wl,-rpath,"$(dirname "$mkl")"
else
  missing "MKL (set MKL_ROOT)"
fi

PYTHON=${PYTHON:-/usr/bin/python3}

# --- matrices --------------------------------------------------------------------------------------------------
stem() { echo "$OUT/matrices/${1#gen:}"; }
for spec in $MATRICES $PRODUCTS $CONVERGED; do
  [[ -s $(stem "$spec").petsc ]] || "$OURS" generate "$spec" --output "$(stem "$spec").petsc" >/dev/null
done
for item in $DATA; do
  spec=${item#*=}
  [[ -s $(stem "$spec").petsc ]] || "$OURS" generate "$spec" --output "$(stem "$spec").petsc" >/dev/null
  if [[ $item == *read* && ! -s $(stem "$spec").mtx ]]; then
    "$OURS" generate "$spec" --general --output "$(stem "$spec").mtx" >/dev/null
  fi
done

# --- rounds ----------------------------------------------------------------------------------------------------
ours=$OUT/ours.jsonl
lines=$OUT/peers.jsonl
: >"$ours"
: >"$lines"
export MKL_THREADING_LAYER=GNU
peer() { # THREADS NAME ARGUMENTS...
  [[ -x $OUT/$2 ]] || return 0
  local threads=$1 name=$2
  shift 2
  OMP_NUM_THREADS=$threads MKL_NUM_THREADS=$threads "$OUT/$name" "$@" >>"$lines" || missing "$name $* failed"
}
ranks() { # RANKS ARGUMENTS...
  [[ -x $OUT/petsc ]] || return 0
  local count=$1
  shift
  mpirun -n "$count" --allow-run-as-root --oversubscribe --bind-to none "$OUT/petsc" "$@" >>"$lines" ||
    missing "petsc $* failed"
}
round() { # TYPE SPEC METHODS REPEATS
  local type=$1 spec=$2 methods=$3 repeats=$4
  local arguments=("$(stem "$spec").petsc" "$spec" "$type" "$repeats" "$methods")
  case $methods in cg* | bicgstab* | gmres*) peer 1 viennacl-opencl "${arguments[@]}" ;; esac
  "$PYTHON" crates/bench/peers/scipy_peer.py "${arguments[@]}" >>"$lines" || missing "scipy $* failed"
  for threads in 1 "$THREADS"; do
    for program in eigen viennacl mkl; do
      peer "$threads" "$program" "${arguments[@]}"
    done
    if [[ $type == f64 ]]; then ranks "$threads" "${arguments[@]}"; fi
  done
}
made() { # SPEC WORK
  local arguments=("$(stem "$1").petsc" "$1" f64 1 "$2")
  "$PYTHON" crates/bench/peers/scipy_peer.py "${arguments[@]}" >>"$lines" || missing "scipy $* failed"
  peer 1 eigen "${arguments[@]}"
}
# Large systems take long enough that fewer solves a round will do.
repeats() { if (($(stat -c %s "$(stem "$1").petsc") > 20000000)); then echo $(((REPEATS + 4) / 5)); else echo "$REPEATS"; fi; }

compare() { # TYPE SPEC METHODS ARGUMENTS...
  local common=(--types "$1" --methods "$3" --rounds "${EACH:-3}" --quiet --json "$ours" "${@:4}")
  "$OURS" compare "$2" "${common[@]}" --backends cpu --threads 1
  "$OURS" compare "$2" "${common[@]}" --backends "$BACKENDS"
}

for ((r = 1; r <= ROUNDS; r++)); do
  for type in $TYPES; do
    echo "round $r of $ROUNDS, $type" >&2
    for spec in $MATRICES; do
      compare "$type" "$spec" "${METHODS//gmres/gmres,gmres-once}"
      round "$type" "$spec" "$METHODS" "$(repeats "$spec")"
    done
    for spec in $PRODUCTS; do
      compare "$type" "$spec" spmv --formats csr,auto
      round "$type" "$spec" spmv 10
    done
    if [[ $PASSES ]]; then "$BENCH" run passes --types "$type" --backends cpu --rounds 3 --quiet --json "$ours"; fi
    [[ $type == f64 ]] || continue
    for spec in $CONVERGED; do
      EACH=1 compare f64 "$spec" cg --precond jacobi --rtol 1e-8
      round f64 "$spec" jacobi-cg 1
    done
    if [[ $DATA ]]; then "$BENCH" run matrices --backends cpu --rounds 1 --quiet --json "$ours"; fi
    for item in $DATA; do made "${item#*=}" "${item%=*}"; done
  done
done

# --- tables ----------------------------------------------------------------------------------------------------
"$BENCH" report "$ours" "$lines" --html "$OUT/peers.html"
tables=$OUT/peers.md
echo "# Ours beside the peers" >"$tables"
table() { # TITLE KIND OPTIONS...
  local title=$1 kind=$2
  printf '\n## %s\n\n<!-- table: %s ours.jsonl peers.jsonl %s -->\n<!-- end of table -->\n' "$title" "$kind" "${*:3}" >>"$tables"
}
solvers=method=cg,bicgstab,gmres,gmres-once
for type in $TYPES; do
  if [[ $MATRICES ]]; then table "30 iterations, $type" beside "$solvers" precond=none "type=$type" "units=$THREADS"; fi
  if [[ $PRODUCTS ]]; then
    table "Products, csr against csr, $type" beside method=spmv format=csr "type=$type" "units=$THREADS"
    table "Products, best against best, $type" best method=spmv "type=$type" "units=$THREADS"
  fi
  if [[ $PASSES ]]; then table "Passes beside loops by hand, $type" passes suite=passes "type=$type"; fi
done
if [[ $TYPES == *f64* ]]; then
  if [[ $CONVERGED ]]; then table "Solved to 1e-8" beside precond=jacobi "units=$THREADS"; fi
  if [[ $DATA ]]; then table "Matrices made" beside suite=matrices; fi
fi
"$BENCH" report --fill "$tables"
cat "$tables"
