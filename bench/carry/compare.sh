#!/bin/sh
# Compares all backends on a machine with a GPU and without Rust, by the binary that bench/carry/build.sh has made. Leaves
# compare.jsonl and compare.html in $OUT (else the current folder).
#
#   bench/carry/compare.sh                          in 100 seconds what fits them: small systems first
#   SECONDS_AT_MOST=300 ROUNDS=15 bench/carry/compare.sh gen:poisson-p1:1023
#
# Kernels that a driver has to compile are kept in $LACUNA_CACHE: a second run on the same machine spends its time measuring.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
out=${OUT:-.}
mkdir -p "$out"
export LD_LIBRARY_PATH="$here/.bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LACUNA_CACHE="${LACUNA_CACHE:-/tmp/lc}"

# The OpenCL driver that comes with NVIDIA's, where no installation has told the loader of it.
for driver in /usr/local/nvidia/lib64/libnvidia-opencl.so.1 /usr/lib/x86_64-linux-gnu/libnvidia-opencl.so.1; do
    if [ -z "${OCL_ICD_VENDORS:-}" ] && [ -e "$driver" ] && ! grep -qs nvidia /etc/OpenCL/vendors/*.icd; then
        mkdir -p /tmp/icd
        echo "$driver" > /tmp/icd/nvidia.icd
        export OCL_ICD_VENDORS=/tmp/icd
    fi
done

# Sizes on which latency decides, then sizes on which memory does.
[ $# -gt 0 ] || set -- gen:poisson-p1:15 gen:poisson-p1:31 gen:poisson-p1:63 gen:poisson-p1:127 gen:poisson-p1:255 \
    gen:elasticity3d:4 gen:elasticity3d:8 gen:elasticity3d:16 gen:poisson-p1:511 gen:poisson-p1:1023 gen:elasticity3d:47
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2> /dev/null || true
exec "$here/.bin/lacuna" compare "$@" --methods "${METHODS:-cg,bicgstab,gmres-once}" --formats "${FORMATS:-auto}" \
    --backends "${BACKENDS:-cuda,opencl,cpu}" --rounds "${ROUNDS:-5}" --time-limit "${SECONDS_AT_MOST:-95}" \
    --json "$out/compare.jsonl" --html "$out/compare.html"
