#!/bin/sh
# Enables a machine without CUDA to build lacuna-cuda, and prints the environment for it:
#
#     eval "$(kernels-cuda/toolkit.sh)" && cargo test -p lacuna-cuda
#
# Installs nvcc 13.0 from NVIDIA's Python wheels into a cache folder (LACUNA_CUDA_CACHE, else ~/.cache/lacuna-cuda),
# with a libcuda that loads the real driver when the process starts. Without a driver, programs still start, and cuInit
# answers "no device". Needs python3 with venv, cc, ar and cargo. A second run installs nothing.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
cache=${LACUNA_CUDA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lacuna-cuda}
mkdir -p "$cache"

find_root() {
    for nvcc in "$cache"/venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc; do
        [ -x "$nvcc" ] && dirname "$(dirname "$nvcc")" && return
    done
    true
}
root=$(find_root)
if [ -z "$root" ]; then
    python3 -m venv "$cache/venv" >&2
    "$cache/venv/bin/pip" install --quiet 'cuda-toolkit[nvcc,cudart,crt,nvvm,cccl]==13.0.*' >&2
    root=$(find_root)
fi
[ -n "$root" ] || { echo "toolkit.sh: the wheels brought no nvcc" >&2; exit 1; }

# The driver library to link with: every function that cust_raw declares, as a jump through a table filled at startup.
lib=$cache/driver/lib64
if [ ! -f "$lib/libcuda.so" ]; then
    cargo_home=${CARGO_HOME:-$HOME/.cargo}
    source_of() { ls -d "$cargo_home"/registry/src/*/cust_raw-*/src/cuda.rs 2>/dev/null | tail -n 1; }
    [ -n "$(source_of)" ] || (cd "$here" && cargo fetch --locked >&2)
    names=$(grep -oE 'pub fn cu[A-Za-z0-9_]+' "$(source_of)" | cut -d' ' -f3 | sort -u)
    build=$cache/driver/build
    mkdir -p "$lib" "$build"
    {
        echo '#include <dlfcn.h>'
        echo '#include <string.h>'
        echo '#include <stddef.h>'
        echo 'static int no_driver(void) { return 100; /* CUDA_ERROR_NO_DEVICE */ }'
        echo 'static int no_function(void) { return 500; /* CUDA_ERROR_NOT_FOUND */ }'
        echo 'static const char *const names[] = {'
        for name in $names; do echo "    \"$name\","; done
        echo '};'
        echo 'enum { COUNT = sizeof names / sizeof *names };'
        echo '__attribute__((visibility("hidden"))) void *lacuna_driver_table[COUNT];'
        echo '__attribute__((constructor)) static void load_driver(void) {'
        echo '    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);'
        echo '    for (int i = 0; i < COUNT; i++) {'
        echo '        void *f = driver ? dlsym(driver, names[i]) : NULL;'
        echo '        lacuna_driver_table[i] = f ? f : driver ? (void *)no_function : (void *)no_driver;'
        echo '    }'
        echo '}'
    } > "$build/driver.c"
    case $(uname -m) in
        aarch64) kind=%function jump='adrp x16, T; add x16, x16, :lo12:T; ldr x16, [x16]; br x16' ;;
        *) kind=@function jump='jmp *T(%rip)' ;;
    esac
    {
        echo '.text'
        i=0
        for name in $names; do
            printf '.globl %s\n.type %s,%s\n%s: %s\n' "$name" "$name" "$kind" "$name" \
                "$(echo "$jump" | sed "s/T\([ ;(]\)/lacuna_driver_table+$((8 * i))\1/g; s/T\$/lacuna_driver_table+$((8 * i))/")"
            i=$((i + 1))
        done
        echo '.section .note.GNU-stack,"",%progbits'
    } > "$build/jumps.s"
    cc -O1 -fPIC -c "$build/driver.c" -o "$build/driver.o"
    cc -c "$build/jumps.s" -o "$build/jumps.o"
    ar rcs "$lib/liblacuna_driver.a" "$build/driver.o" "$build/jumps.o"
    echo "INPUT($lib/liblacuna_driver.a)" > "$lib/libcuda.so"
fi

echo "export NVCC='$root/bin/nvcc'"
echo "export CUDA_LIBRARY_PATH='$cache/driver'"
