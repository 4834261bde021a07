#!/usr/bin/env bash
# Ours against the peers installed here, round by round, on the same matrices; ends with one table.
#
#   bench/peers/run.sh                 all rows, f64: 30 fixed iterations, products
#   TYPE=f32 ROUNDS=9 bench/peers/run.sh
#   MATRICES="gen:poisson-p1:15 gen:poisson-p1:31" METHODS=cg PRODUCTS="" bench/peers/run.sh
#
# Peers: Eigen, ViennaCL (OpenMP), PETSc (1 and 2 ranks) from apt; MKL where MKL_ROOT has include/mkl.h and
# lib/libmkl_rt.so.* (pip install --prefix "$MKL_ROOT" mkl-devel). What is missing is said and left out.
set -euo pipefail
cd "$(dirname "$0")/../.."

TYPE=${TYPE:-f64}
ROUNDS=${ROUNDS:-5}
REPEATS=${REPEATS:-10}
THREADS=${THREADS:-2}
METHODS=${METHODS-cg,bicgstab,gmres}
MATRICES=${MATRICES-gen:poisson-p1:15 gen:poisson-p1:31 gen:poisson-p1:63 gen:poisson-p1:127 gen:poisson-p1:255
  gen:poisson-p1:511 gen:elasticity3d:47}
PRODUCTS=${PRODUCTS-gen:poisson2d:1000x1000 gen:poisson3d:100x100x100 gen:poisson3d:100x100x100:27 gen:poisson-p1:255
  gen:poisson-p1:511 gen:elasticity3d:47 gen:power-law:1000000}
TARGET=${CARGO_TARGET_DIR:-target}
OUT=${OUT:-$TARGET/peers}
OURS=$TARGET/release
mkdir -p "$OUT/matrices"

missing() { echo "MISSING, LEFT OUT: $*" >&2; }

# --- install ---------------------------------------------------------------------------------------------------
for package in g++ pkg-config libeigen3-dev libviennacl-dev petsc-dev libopenmpi-dev openmpi-bin; do
  dpkg -s "$package" >/dev/null 2>&1 && continue
  echo "installing $package" >&2
  apt-get install -y -q "$package" >/dev/null 2>&1 || missing "$package could not be installed"
done

# --- build -----------------------------------------------------------------------------------------------------
cargo build --release -q -p lacuna-bench
FLAGS="-O3 -march=native -std=c++17"
build() { # NAME COMPILER FLAGS...
  local name=$1 source=bench/peers/$1.cpp
  shift
  if [[ ! $OUT/$name -nt $source || ! $OUT/$name -nt bench/peers/peer.hpp ]]; then
    local compiler=$1
    shift
    # shellcheck disable=SC2086
    "$compiler" $FLAGS -w "$source" -o "$OUT/$name" "$@" 2>"$OUT/$name.log" ||
      { rm -f "$OUT/$name"; missing "$name does not build, see $OUT/$name.log"; }
  fi
}
build eigen g++ -fopenmp -I/usr/include/eigen3
build viennacl g++ -fopenmp
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

# --- matrices --------------------------------------------------------------------------------------------------
for spec in $MATRICES $PRODUCTS; do
  file=$OUT/matrices/${spec#gen:}
  [[ -s $file ]] || "$OURS/solves" --matrices "$spec" --dump "$file"
done

# --- rounds ----------------------------------------------------------------------------------------------------
lines=$OUT/lines-$TYPE.txt
: >"$lines"
export MKL_THREADING_LAYER=GNU
peer() { # THREADS NAME ARGUMENTS...
  [[ -x $OUT/$2 ]] || return 0
  local threads=$1 name=$2
  shift 2
  OMP_NUM_THREADS=$threads MKL_NUM_THREADS=$threads "$OUT/$name" "$@" >>"$lines" || missing "$name $* failed"
}
ranks() { # RANKS ARGUMENTS...
  [[ -x $OUT/petsc && $TYPE == f64 ]] || return 0
  local count=$1
  shift
  mpirun -n "$count" --allow-run-as-root --oversubscribe --bind-to none "$OUT/petsc" "$@" >>"$lines" ||
    missing "petsc $* failed"
}
round() { # SPEC METHODS REPEATS
  local name=${1#gen:} methods=$2 repeats=$3
  local arguments=("$OUT/matrices/$name" "$name" "$TYPE" "$repeats" "$methods")
  for threads in 1 "$THREADS"; do
    for program in eigen viennacl mkl; do
      peer "$threads" "$program" "${arguments[@]}"
    done
    ranks "$threads" "${arguments[@]}"
  done
}
# Large systems take long enough that fewer solves a round will do.
repeats() { if (($(stat -c %s "$OUT/matrices/${1#gen:}") > 20000000)); then echo $(((REPEATS + 4) / 5)); else echo "$REPEATS"; fi; }

for ((r = 1; r <= ROUNDS; r++)); do
  echo "round $r of $ROUNDS" >&2
  for spec in $MATRICES; do
    "$OURS/solves" --type "$TYPE" --matrices "$OUT/matrices/${spec#gen:}" --lines "${spec#gen:}" --rounds 1 \
      --repeats "$(repeats "$spec")" --methods "${METHODS//gmres/gmres,gmres-once}" --threads "1,$THREADS,auto" >>"$lines"
    round "$spec" "$METHODS" "$(repeats "$spec")"
  done
  for spec in $PRODUCTS; do
    "$OURS/spmv" --type "$TYPE" --matrices "$OUT/matrices/${spec#gen:}" --lines "${spec#gen:}" --rounds 3 \
      --threads "1,$THREADS,auto" >>"$lines"
    round "$spec" spmv 10
  done
done

"$OURS/table" --lines "$lines"
