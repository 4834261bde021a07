#!/usr/bin/env bash
# Solves on several processes, joined by Open MPI and by MPICH where they are installed: the same bits as one process; and what
# happens when one of them fails. Installs Open MPI where there is none.
set -euo pipefail
cd "$(dirname "$0")/../../.."
if ! command -v mpirun >/dev/null; then
  apt-get install -y -qq --no-install-recommends libopenmpi-dev openmpi-bin libclang1 >/dev/null
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

# A command without MPI, whose answers are those of one process, and one for the MPI that is tried. With all default members, so
# that dependencies have the features that they have elsewhere.
cargo build --release --quiet
cp target/release/lacuna "$work/one"

# Matrix, method, preconditioner, format.
CASES=(
  "gen:poisson2d:80x81 cg amg csr"
  "gen:poisson2d:80x81 cg multigrid stencil"
  "gen:poisson2d:80x81 pipelined-cg chebyshev dia"
  "gen:convection:70x71:40 gmres block-jacobi csr"
  "gen:convection:70x71:40 bicgstab spai hyb"
  "gen:convection:70x71:40 idr ilu0 csr"
  "gen:power-law:9000 auto auto auto"
  "gen:elasticity3d:10 auto auto auto"
)

# Solves each case by so many processes, started by a command, and compares with one.
equal() {
  local count=$1
  shift
  for case in "${CASES[@]}"; do
    read -r matrix method precond format <<<"$case"
    local options=(solve "$matrix" --method "$method" --precond "$precond" --format "$format" --backend cpu --max-iters 25 -q)
    "$work/one" "${options[@]}" --threads 1 --output "$work/one.npy" || true
    timeout 120 "$@" -n "$count" "$work/several" "${options[@]}" --output "$work/several.npy" </dev/null 2>"$work/err" || [ $? -eq 1 ] || {
      cat "$work/err"
      fail "$case on $count processes"
    }
    cmp "$work/one.npy" "$work/several.npy" || fail "$case on $count processes has other bits"
    rm -f "$work"/*.npy
  done
}

# Runs a command that must fail within ten seconds and say something.
refuses() {
  local expected=$1 start=$SECONDS
  shift
  if timeout 60 "$@" >"$work/out" 2>&1; then fail "accepted: $*"; fi
  grep -q -- "$expected" "$work/out" || { cat "$work/out"; fail "expected \`$expected\` of $*"; }
  [ $((SECONDS - start)) -le 10 ] || fail "took $((SECONDS - start)) s: $*"
}

faults() {
  local run=("$@") solve=(solve gen:poisson1d:2000000 --method cg --precond none --rtol 1e-300 --max-iters 1000000 -q)
  refuses "rank 1 has" "${run[@]}" -n 1 "$work/several" solve gen:poisson2d:60x60 -q : -n 1 "$work/several" solve gen:poisson2d:61x60 -q
  refuses "only .lacuna solve. runs on several processes" "${run[@]}" -n 2 "$work/several" info gen:poisson2d:60x60
  refuses ".tune. is not for several processes" "${run[@]}" -n 2 "$work/several" solve gen:poisson2d:60x60 --format tune
  refuses "are divided among" "${run[@]}" -n 3 "$work/several" solve gen:poisson2d:16x16
  refuses "no such file\|No such file\|cannot\|not found" "${run[@]}" -n 2 "$work/several" solve "$work/none.mtx"
  refuses "built without MPI" "${run[@]}" -n 2 "$work/one" solve gen:poisson2d:60x60
  # Another file on one of them.
  "$work/one" generate gen:poisson2d:60x60 --output "$work/a.mtx" >"$work/err" 2>&1 || { cat "$work/err"; fail "no file"; }
  mkdir -p "$work/0" "$work/1"
  cp "$work/a.mtx" "$work/0/a.mtx"
  sed 's/^\(2 1 \).*/\1-0.5/' "$work/a.mtx" >"$work/1/a.mtx"
  printf '#!/bin/sh\ncd "%s/${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" && exec "%s/several" "$@"\n' "$work" "$work" >"$work/each"
  chmod +x "$work/each"
  refuses "the matrix and the vectors: rank 1 has" "${run[@]}" -n 2 "$work/each" solve a.mtx -q
  # One of them is killed.
  (
    code=0
    "${run[@]}" -n 2 "$work/several" "${solve[@]}" </dev/null >"$work/out" 2>&1 || code=$?
    echo $code >"$work/code"
  ) &
  for _ in $(seq 100); do pgrep -f "^$work/several" >/dev/null && break; sleep 0.1; done
  sleep 1
  pkill -KILL -n -f "^$work/several" || fail "nothing to kill"
  for _ in $(seq 100); do [ -f "$work/code" ] && break; sleep 0.1; done
  [ -f "$work/code" ] && [ "$(cat "$work/code")" -ne 0 ] || fail "went on after one of two was killed"
  rm "$work/code"
}

# An MPI: its compiler, how it starts programs, the most processes.
try() {
  local mpicc=$1 most=$2
  shift 2
  echo "$mpicc"
  # Its build script does not look whether the compiler is another one.
  cargo clean --release --quiet -p mpi-sys
  MPICC=$mpicc cargo build --release --quiet --features lacuna-cli/mpi
  cp target/release/lacuna "$work/several"
  for count in $(seq "$most"); do equal "$count" "$@"; done
  faults "$@"
}
export MPICC
found=no
if command -v mpicc.openmpi >/dev/null; then
  try mpicc.openmpi 4 mpirun.openmpi --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1
  found=yes
fi
if command -v mpicc.mpich >/dev/null; then
  try mpicc.mpich 2 mpirun.mpich
  found=yes
fi
[ $found = yes ] || fail "no MPI is installed"
# The command that the workspace has otherwise.
cargo build --release --quiet
echo "several processes have the bits of one, and end together"
