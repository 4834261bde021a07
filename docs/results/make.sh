#!/bin/sh
# Makes what docs/results keeps of a machine: NAME.html with NAME.jsonl, backends against each other from small systems to
# large; NAME-papers.html with NAME-papers.jsonl, the tables and figures of five papers. For a machine with nothing else to do.
#
#   docs/results/make.sh two-cores
#   PARTS=compare FEATURES=cpu ROUNDS=3 docs/results/make.sh laptop
set -eu
cd "$(dirname "$0")/../.."
name=${1:?the name of the machine}
cargo build --release -q -p lacuna-cli --features "${FEATURES:-cpu,opencl}"
lacuna=${CARGO_TARGET_DIR:-target}/release/lacuna
for part in ${PARTS:-compare papers}; do
    case $part in
    compare)
        kept=docs/results/$name
        set -- compare gen:poisson-p1:15 gen:poisson-p1:31 gen:poisson-p1:63 gen:poisson-p1:127 gen:poisson-p1:255 \
            gen:elasticity3d:4 gen:elasticity3d:8 gen:elasticity3d:16 gen:convection:64x64 \
            --methods cg,bicgstab,gmres,gmres-once,spmv
        ;;
    papers)
        kept=docs/results/$name-papers
        set -- bench papers
        ;;
    esac
    rm -f "$kept.jsonl"
    "$lacuna" "$@" --rounds "${ROUNDS:-9}" --json "$kept.jsonl" --html "$kept.html"
done
