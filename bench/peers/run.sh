#!/usr/bin/env bash
# Ours against the peers installed here, round by round, on the same matrices; ends with a page and tables in Markdown.
#
#   bench/peers/run.sh                 all rows, f64: 30 fixed iterations, products
#   TYPE=f32 ROUNDS=9 bench/peers/run.sh
#   MATRICES="gen:poisson-p1:15 gen:poisson-p1:31" METHODS=cg PRODUCTS="" bench/peers/run.sh
#
# Leaves ours-TYPE.jsonl, peers-TYPE.jsonl, peers-TYPE.html and peers-TYPE.md in $OUT (else target/peers). Of several rounds the
# middle one counts. `lacuna compare --peers` shows peers-TYPE.jsonl beside other runs.
#
# Peers: Eigen, ViennaCL (OpenMP, and OpenCL where there is a loader), PETSc (1 and 2 ranks) from apt; MKL where MKL_ROOT has
# include/mkl.h and lib/libmkl_rt.so.* (pip install --prefix "$MKL_ROOT" mkl-devel); SciPy from apt. What is missing is said
# and left out.
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
OURS=$TARGET/release/lacuna
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
BACKENDS=cpu
if ldconfig -p | grep -q libOpenCL.so; then BACKENDS=cpu,opencl; fi
cargo build --release -q -p lacuna-cli --features "$BACKENDS"
FLAGS="-O3 -march=native -std=c++17"
build() { # NAME COMPILER FLAGS...
  local name=$1 source=bench/peers/$1.cpp
  shift
  [[ -e $source ]] || source=bench/peers/${name%%-*}.cpp
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
for spec in $MATRICES $PRODUCTS; do
  file=$OUT/matrices/${spec#gen:}.laccsr
  [[ -s $file ]] || "$OURS" generate "$spec" --output "$file" >/dev/null
done

# --- rounds ----------------------------------------------------------------------------------------------------
ours=$OUT/ours-$TYPE.jsonl
lines=$OUT/peers-$TYPE.jsonl
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
  [[ -x $OUT/petsc && $TYPE == f64 ]] || return 0
  local count=$1
  shift
  mpirun -n "$count" --allow-run-as-root --oversubscribe --bind-to none "$OUT/petsc" "$@" >>"$lines" ||
    missing "petsc $* failed"
}
round() { # SPEC METHODS REPEATS
  local name=$1 methods=$2 repeats=$3
  local arguments=("$OUT/matrices/${name#gen:}.laccsr" "$name" "$TYPE" "$repeats" "$methods")
  if [[ $methods != spmv ]]; then peer 1 viennacl-opencl "${arguments[@]}"; fi
  "$PYTHON" bench/peers/scipy_peer.py "${arguments[@]}" >>"$lines" || missing "scipy $* failed"
  for threads in 1 "$THREADS"; do
    for program in eigen viennacl mkl; do
      peer "$threads" "$program" "${arguments[@]}"
    done
    ranks "$threads" "${arguments[@]}"
  done
}
# Large systems take long enough that fewer solves a round will do.
repeats() { if (($(stat -c %s "$OUT/matrices/${1#gen:}.laccsr") > 20000000)); then echo $(((REPEATS + 4) / 5)); else echo "$REPEATS"; fi; }

compare() { # SPEC METHODS FORMATS
  local common=(--types "$TYPE" --methods "$2" --formats "$3" --rounds 3 --quiet --json "$ours")
  "$OURS" compare "$1" "${common[@]}" --backends cpu --threads 1
  "$OURS" compare "$1" "${common[@]}" --backends "$BACKENDS"
}

for ((r = 1; r <= ROUNDS; r++)); do
  echo "round $r of $ROUNDS" >&2
  for spec in $MATRICES; do
    compare "$spec" "${METHODS//gmres/gmres,gmres-once}" auto
    round "$spec" "$METHODS" "$(repeats "$spec")"
  done
  for spec in $PRODUCTS; do
    compare "$spec" spmv csr,auto
    round "$spec" spmv 10
  done
done

"$OURS" report "$ours" "$lines" --html "$OUT/peers-$TYPE.html" --markdown "$OUT/peers-$TYPE.md"
cat "$OUT/peers-$TYPE.md"
