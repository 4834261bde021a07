#!/bin/sh
# Makes what docs/results keeps of a machine: NAME.jsonl with NAME.html and NAME.md, backends against each other from small
# systems to large; NAME-papers.* likewise, the tables and figures of five papers. For a machine with nothing else to do.
#
#   docs/results/make.sh two-cores
#   PARTS=compare FEATURES=cpu ROUNDS=3 docs/results/make.sh laptop
#
# BINARY names a command that is there already, instead of building one.
set -eu
cd "$(dirname "$0")/../.."
name=${1:?the name of the machine}
[ -n "${BINARY:-}" ] || cargo build --release -q -p lacuna-cli --features "${FEATURES:-cpu,opencl}"
lacuna=${BINARY:-${CARGO_TARGET_DIR:-target}/release/lacuna}
for part in ${PARTS:-compare papers}; do
    case $part in
    compare)
        title="Backends compared: $name"
        kept=docs/results/$name
        set -- compare gen:poisson-p1:15 gen:poisson-p1:31 gen:poisson-p1:63 gen:poisson-p1:127 gen:poisson-p1:255 \
            gen:elasticity3d:4 gen:elasticity3d:8 gen:elasticity3d:16 gen:convection:64x64 \
            --methods cg,bicgstab,gmres,gmres-once,spmv
        ;;
    papers)
        title="What five papers measured: $name"
        kept=docs/results/$name-papers
        set -- bench papers
        ;;
    esac
    rm -f "$kept.jsonl"
    load=$(cut -d ' ' -f 1 /proc/loadavg 2>/dev/null || echo unknown)
    "$lacuna" "$@" --rounds "${ROUNDS:-9}" --json "$kept.jsonl" --html "$kept.html"
    base=${kept##*/}
    printf '# %s\n\nMade by `docs/results/make.sh %s`, load average %s before; [plots](%s.html), [every result](%s.jsonl).\n\n' \
        "$title" "$name" "$load" "$base" "$base" >"$kept.md"
    "$lacuna" report "$kept.jsonl" >>"$kept.md"
done
