#!/usr/bin/env bash
# Installs the header, the libraries, the Fortran module's source, and what pkg-config and CMake look for.
#   install.sh PREFIX [FOLDER]     FOLDER has what cargo built: target/release by default
set -euo pipefail
if [ $# -lt 1 ]; then
  echo "usage: install.sh PREFIX [FOLDER]" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
prefix=$(cd "$1" && pwd)
built=${2:-$here/../../target/release}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -n 1)
for file in liblacuna.so liblacuna.a; do
  if [ ! -f "$built/$file" ]; then
    echo "$built/$file is not there: cargo build --release -p lacuna-capi" >&2
    exit 1
  fi
done
install -d "$prefix/include" "$prefix/lib/pkgconfig" "$prefix/lib/cmake/lacuna" "$prefix/share/lacuna"
install -m 644 "$here/include/lacuna.h" "$prefix/include/"
install -m 755 "$built/liblacuna.so" "$prefix/lib/liblacuna.so.$version"
ln -sf "liblacuna.so.$version" "$prefix/lib/liblacuna.so.0"
ln -sf liblacuna.so.0 "$prefix/lib/liblacuna.so"
install -m 644 "$built/liblacuna.a" "$prefix/lib/"
install -m 644 "$here/fortran/lacuna.f90" "$prefix/share/lacuna/"
fill() { sed -e "s|@PREFIX@|$prefix|g" -e "s|@VERSION@|$version|g" "$1" >"$2"; }
fill "$here/lacuna.pc.in" "$prefix/lib/pkgconfig/lacuna.pc"
for file in lacuna-config lacuna-config-version; do
  fill "$here/cmake/$file.cmake.in" "$prefix/lib/cmake/lacuna/$file.cmake"
done
echo "installed lacuna $version in $prefix"
