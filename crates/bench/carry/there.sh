# shellcheck shell=sh
# What the scripts of this folder share, on the machine that they run on: `. crates/bench/carry/there.sh` sets $here and what the
# command needs, and goes to $OUT. Kernels that a driver has to compile are kept in $LACUNA_CACHE.
here=$(cd "$(dirname "$0")/../../.." && pwd)
mkdir -p "${OUT:=.}"
cd "$OUT" || exit
export LD_LIBRARY_PATH="$here/.bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LACUNA_CACHE="${LACUNA_CACHE:-/tmp/lc}"
LACUNA_COMMIT=$(cat "$here/.bin/commit" 2> /dev/null || true)
export LACUNA_COMMIT

# The OpenCL driver that comes with NVIDIA's, where no installation has told the loader of it.
for driver in /usr/local/nvidia/lib64/libnvidia-opencl.so.1 /usr/lib/x86_64-linux-gnu/libnvidia-opencl.so.1; do
    if [ -z "${OCL_ICD_VENDORS:-}" ] && [ -e "$driver" ] && ! grep -qs nvidia /etc/OpenCL/vendors/*.icd; then
        mkdir -p /tmp/icd
        echo "$driver" > /tmp/icd/nvidia.icd
        export OCL_ICD_VENDORS=/tmp/icd
    fi
done
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2> /dev/null || true
