#!/bin/sh
# Enables a machine without CUDA to build lacuna-cuda, and prints the environment for it:
#
#     eval "$(kernels-cuda/toolkit.sh)" && cargo test -p lacuna-cuda
#
# Installs nvcc 13.0 from NVIDIA's Python wheels into a cache folder (LACUNA_CUDA_CACHE, else ~/.cache/lacuna-cuda),
# beside a libcuda to link with, which is empty: `crates/drivers` loads the driver at the first call. Needs python3 with venv. A
# second run installs nothing.
set -eu

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

# What stands for the driver's library when linking: an empty one, since `lacuna-drivers` has its functions.
lib=$cache/link/lib64
if [ ! -f "$lib/libcuda.so" ]; then
    mkdir -p "$lib"
    echo 'INPUT()' > "$lib/libcuda.so"
fi

echo "export NVCC='$root/bin/nvcc'"
echo "export CUDA_LIBRARY_PATH='$cache/link'"
