#!/bin/sh
# Products in every format on a machine with a GPU and without Rust, by what crates/bench/carry/build.sh has made. Leaves
# NAME.jsonl, NAME.html and NAME.md in $OUT (else the current folder).
#
#   crates/bench/carry/formats.sh                   what docs/results/h200-formats.md has, in 300 seconds
#   BACKENDS=opencl ROUNDS=3 crates/bench/carry/formats.sh gen:alike:spheres gen:alike:harbor
#
# Kernels are compiled first, by processes side by side: NVIDIA's OpenCL compiler takes one program at a time of each process.
set -eu
# shellcheck source=crates/bench/carry/there.sh
. "$(dirname "$0")/there.sh"
kept=${NAME:-h200-formats}
lacuna=$here/.bin/lacuna
backends=${BACKENDS:-cuda,opencl}
[ $# -gt 0 ] || set -- gen:elasticity3d:16 gen:elasticity3d:28 gen:elasticity3d:47 gen:poisson-p1:255 gen:poisson-p1:511 \
    gen:poisson-p1:1023 gen:poisson2d:300x300 gen:poisson3d:40x40x40:27 gen:alike:protein gen:alike:spheres \
    gen:alike:cantilever gen:alike:wind-tunnel gen:alike:harbor gen:alike:qcd gen:alike:ship gen:alike:economics \
    gen:alike:epidemiology gen:alike:accelerator gen:alike:circuit gen:alike:webbase gen:alike:lp gen:alike:dense \
    gen:poisson1d:1000000 gen:poisson2d:1000x1000 gen:poisson2d:1000x1000:9 gen:poisson3d:100x100x100 \
    gen:poisson3d:100x100x100:27
products='--methods spmv --formats all'

for backend in $(echo "$backends" | tr , ' '); do
    for matrix in "$@"; do
        for type in f32 f64; do
            echo "$matrix --types $type --backends $backend"
        done
    done
done | xargs -P "${PROCESSES:-15}" -L 1 timeout 150 "$lacuna" compare $products --rounds 1 --quiet > /dev/null 2>&1 || true

# One after the other, so that each has its share of the time.
for backend in $(echo "$backends" | tr , ' '); do
    "$lacuna" compare "$@" $products --types f32,f64 --backends "$backend" --rounds "${ROUNDS:-5}" \
        --time-limit "${SECONDS_AT_MOST:-150}" --quiet --json "$kept.jsonl"
done
"$here/.bin/lacuna-bench" report "$kept.jsonl" --html "$kept.html" --markdown "$kept.md"
