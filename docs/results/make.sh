#!/bin/sh
# Measures what docs/results keeps of a machine; run it where nothing else runs. Each part leaves NAME-PART.jsonl and a page of tables
# (NAME.* for `compare`). `lacuna-bench report FILE.jsonl --html PAGE.html` makes a page of plots. keep.py drops the lines that no table uses.
#
#   docs/results/make.sh two-cores                      backends compared; what five papers measured
#   PARTS=bench docs/results/make.sh two-cores          the project's own measurements: passes, products, solvers
#   PARTS=formats docs/results/make.sh two-cores        products in every format: grids, look-alikes, and the files of $MATRICES
#   PARTS=peers docs/results/make.sh two-cores          other libraries, with what crates/bench/peers/run.sh takes from the environment
#   PARTS=compare FEATURES=cpu ROUNDS=3 docs/results/make.sh laptop
#
# BINARY names a command to use, with lacuna-bench beside it, instead of building both.
set -eu
cd "$(dirname "$0")/../.."
name=${1:?the name of the machine}
LACUNA_COMMIT=${LACUNA_COMMIT:-$(git rev-parse --short HEAD)}
export LACUNA_COMMIT
[ -n "${BINARY:-}" ] || cargo build --release -q -p lacuna-cli -p lacuna-bench --features "${FEATURES:-cpu,opencl}"
target=${CARGO_TARGET_DIR:-target}
lacuna=${BINARY:-$target/release/lacuna}
bench=$(dirname "$lacuna")/lacuna-bench
# An empty table of results, below a title.
table() {
    [ -z "${2:-}" ] || printf '\n## %s\n\n' "$2" >>"$kept.md"
    printf '<!-- table: %s -->\n<!-- end of table -->\n' "$1" >>"$kept.md"
}
for part in ${PARTS:-compare papers}; do
    kept=docs/results/$name-$part
    case $part in
    compare)
        title="Backends compared: $name"
        kept=docs/results/$name
        set -- "$lacuna" compare gen:poisson-p1:15 gen:poisson-p1:31 gen:poisson-p1:63 gen:poisson-p1:127 gen:poisson-p1:255 \
            gen:elasticity3d:4 gen:elasticity3d:8 gen:elasticity3d:16 gen:convection:64x64 \
            --methods cg,bicgstab,gmres,gmres-once,spmv
        ;;
    papers)
        title="What five papers measured: $name"
        set -- "$lacuna" papers
        ;;
    formats)
        title="Products in every format: $name"
        set -- "$lacuna" compare
        for matrix in poisson1d:1000000 poisson2d:1000x1000 poisson2d:1000x1000:9 poisson3d:100x100x100 \
            poisson3d:100x100x100:27 poisson2d:300x300 poisson3d:40x40x40:27 poisson-p1:255 elasticity3d:16 \
            elasticity3d:28 elasticity3d:47 alike:protein alike:spheres alike:cantilever alike:wind-tunnel alike:harbor \
            alike:qcd alike:ship alike:economics alike:epidemiology alike:accelerator alike:circuit alike:webbase alike:lp \
            alike:dense; do
            set -- "$@" "gen:$matrix"
        done
        set -- "$@" --types f32,f64 --methods spmv --formats all --backends "${BACKENDS:-cpu}"
        ;;
    bench)
        title="The project's own measurements: $name"
        set -- "$bench" run
        ;;
    peers)
        title="Other libraries beside ours: $name"
        set --
        ;;
    esac
    load=$(cut -d ' ' -f 1 /proc/loadavg 2>/dev/null || echo unknown)
    base=${kept##*/}
    files=$base.jsonl
    if [ $# -gt 0 ]; then
        rm -f "$kept.jsonl"
        "$@" --rounds "${ROUNDS:-9}" --json "$kept.jsonl"
        if [ "$part" = formats ] && [ -n "${MATRICES:-}" ]; then
            # shellcheck disable=SC2086
            "$lacuna" compare $MATRICES --methods spmv --formats all --backends "${BACKENDS:-cpu}" --rounds "${ROUNDS:-9}" \
                --json "$kept.jsonl"
        fi
    else
        crates/bench/peers/run.sh
        cp "${OUT:-$target/peers}/peers.jsonl" "$kept.jsonl"
        cp "${OUT:-$target/peers}/ours.jsonl" "docs/results/$name-ours.jsonl"
        files="$name-ours.jsonl $files"
    fi
    printf '# %s\n\nMade by `PARTS=%s docs/results/make.sh %s`, load average %s before; every result:' \
        "$title" "$part" "$name" "$load" >"$kept.md"
    for file in $files; do printf ' [%s](%s)' "$file" "$file" >>"$kept.md"; done
    printf '.\n\n' >>"$kept.md"
    if [ "$part" = peers ]; then
        sed -e 1,2d -e "s/ours.jsonl peers.jsonl/$name-ours.jsonl $base.jsonl/" "${OUT:-$target/peers}/peers.md" >>"$kept.md"
        docs/results/keep.py "docs/results/$name-ours.jsonl" "units=${THREADS:-2}"
    fi
    docs/results/keep.py "$kept.jsonl"
    case $part in
    papers)
        table "formats $base.jsonl suite=Bell" "Products in every format (Bell and Garland 2008)"
        table "backends $base.jsonl suite=Buatois" "Jacobi-CG in rows and blocks (Buatois et al. 2009)"
        table "backends $base.jsonl suite=Jost" "BiCGStab by diagonals (Jost et al. 2009)"
        table "backends $base.jsonl suite=Wang" "GMRES(20) (Wang et al. 2009)"
        table "backends $base.jsonl suite=Rupp" "Pipelined and classical methods (Rupp et al. 2016)"
        ;;
    formats) table "formats $base.jsonl" ;;
    compare | bench) table "all $base.jsonl" ;;
    esac
    "$bench" report --fill "$kept.md"
done
