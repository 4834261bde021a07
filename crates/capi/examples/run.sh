#!/usr/bin/env bash
# Installs the libraries to a temporary folder, builds the examples against them in every way that the guide names, and runs them.
#   run.sh [FOLDER]     FOLDER has what cargo built: target/release by default
# With VALGRIND=1 the shared examples run under valgrind too.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
"$here/../install.sh" "$prefix" "${1:-}"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
export LACUNA_NUM_THREADS=2
cd "$work"
say() { printf -- '-- %s\n' "$*"; }

strict=(-Wall -Wextra -pedantic -Werror -O1 -g)
# Each flag of pkg-config is a word of its own.
read -ra shared <<<"$(pkg-config --cflags --libs lacuna)"
read -ra include <<<"$(pkg-config --cflags lacuna)"
static=("${include[@]}" "$prefix/lib/liblacuna.a" -lm -lpthread -ldl)

say "C99 and C++11, shared, by pkg-config"
cc -std=c99 "${strict[@]}" "$here/solve.c" -o c_shared "${shared[@]}" -lm
c++ -std=c++11 "${strict[@]}" "$here/solve.cpp" -o cpp_shared "${shared[@]}"
./c_shared
./cpp_shared

say "the header alone, as C99 and as C++11"
echo '#include <lacuna.h>' >header.c
cc -std=c99 "${strict[@]}" "${include[@]}" -fsyntax-only header.c
c++ -std=c++11 "${strict[@]}" "${include[@]}" -fsyntax-only -x c++ header.c

say "C, static"
cc -std=c99 "${strict[@]}" "$here/solve.c" -o c_static "${static[@]}"
./c_static

say "Fortran 2018, shared"
gfortran -std=f2018 "${strict[@]}" -J"$work" "$prefix/share/lacuna/lacuna.f90" "$here/solve.f90" -o f_shared "${shared[@]}"
./f_shared

guide=$here/../../../docs/guide/c.md
if [ -f "$guide" ]; then
  say "the programs of the guide"
  # The first program of a language on the page.
  program() { awk -v fence='^```'"$1"'$' '$0 ~ fence { on = 1; next } /^```$/ { if (on) exit } on' "$guide"; }
  program c >guide.c
  program fortran >guide.f90
  cc -std=c99 "${strict[@]}" -Wno-missing-field-initializers guide.c -o guide_c "${shared[@]}"
  gfortran -std=f2018 "${strict[@]}" -J"$work" "$prefix/share/lacuna/lacuna.f90" guide.f90 -o guide_f "${shared[@]}"
  ./guide_c
  ./guide_f
fi

say "CMake: find_package, shared and static"
cmake -S "$here" -B cmake -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="-Wall -Wextra -pedantic -Werror" \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -pedantic -Werror" >cmake.log || { cat cmake.log; exit 1; }
cmake --build cmake >cmake.log || { cat cmake.log; exit 1; }
./cmake/solve_shared
./cmake/solve_static

say "what the library exports is what the header declares"
declared=$(grep -oE '\blac_[a-z0-9_]+\(' "$prefix/include/lacuna.h" | tr -d '(' | sort -u)
exported=$(nm -D --defined-only "$prefix/lib/liblacuna.so" | awk '$3 ~ /^lac_/ { print $3 }' | sort -u)
diff <(echo "$declared") <(echo "$exported")
readelf -d "$prefix/lib/liblacuna.so" | grep -q 'SONAME.*liblacuna.so.0'

if [ "${VALGRIND:-}" = 1 ]; then
  for program in c_shared cpp_shared f_shared; do
    say "valgrind: $program"
    valgrind --quiet --error-exitcode=1 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite "./$program"
  done
fi
say "all examples ran"
