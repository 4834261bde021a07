#!/bin/sh
# Compares all backends on a machine with a GPU and without Rust, by what crates/bench/carry/build.sh has made. Leaves
# compare.jsonl and compare.html in $OUT (else the current folder).
#
#   crates/bench/carry/compare.sh                   in 100 seconds what fits them: small systems first
#   SECONDS_AT_MOST=300 ROUNDS=15 crates/bench/carry/compare.sh gen:poisson-p1:1023
#
# A second run on the same machine finds compiled kernels and spends its time measuring.
set -eu
# shellcheck source=crates/bench/carry/there.sh
. "$(dirname "$0")/there.sh"

# Sizes on which latency decides, then sizes on which memory does.
[ $# -gt 0 ] || set -- gen:poisson-p1:15 gen:poisson-p1:31 gen:poisson-p1:63 gen:poisson-p1:127 gen:poisson-p1:255 \
    gen:elasticity3d:4 gen:elasticity3d:8 gen:elasticity3d:16 gen:poisson-p1:511 gen:poisson-p1:1023 gen:elasticity3d:47
exec "$here/.bin/lacuna" compare "$@" --methods "${METHODS:-cg,bicgstab,gmres-once}" --formats "${FORMATS:-auto}" \
    --backends "${BACKENDS:-cuda,opencl,cpu}" --rounds "${ROUNDS:-5}" --time-limit "${SECONDS_AT_MOST:-95}" \
    --json compare.jsonl --html compare.html
