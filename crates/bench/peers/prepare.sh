# What automatic.sh and factors.sh begin with, sourced: finds or builds the command, installs SciPy and PETSc, and builds automatic.cpp.
peers=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TARGET=${CARGO_TARGET_DIR:-$peers/../../../target}
OUT=${OUT:-$TARGET/peers}
OURS=${BINARY:-$TARGET/release/lacuna}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mkdir -p "$OUT"
for package in g++ pkg-config petsc-dev libopenmpi-dev openmpi-bin; do
  dpkg -s "$package" >/dev/null 2>&1 || apt-get install -y -q "$package" >/dev/null
done
python3 -c 'import scipy' 2>/dev/null || pip install -q scipy
[[ ${BINARY:-} ]] || cargo build --release -q -p lacuna-cli --manifest-path "$peers/../../../Cargo.toml"
petsc=$(dpkg -L libpetsc-real-dev libpetsc-real3.18-dev 2>/dev/null | grep -m1 '/PETSc.pc$')
# shellcheck disable=SC2046
OMPI_CXX=g++ mpicxx -O3 -march=native -w "$peers/automatic.cpp" -o "$OUT/automatic" \
  $(PKG_CONFIG_PATH=$(dirname "$petsc") pkg-config --cflags --libs PETSc)
