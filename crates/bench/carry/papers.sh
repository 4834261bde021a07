#!/bin/sh
# What five papers measured, on a machine with a GPU and without Rust, by what crates/bench/carry/build.sh has made. Leaves
# NAME.jsonl, NAME.html and NAME.md in $OUT (else the current folder).
#
#   crates/bench/carry/papers.sh                    in 280 seconds what fits them
#   BACKENDS=cuda NAME=h200-cuda-papers crates/bench/carry/papers.sh
set -eu
# shellcheck source=crates/bench/carry/there.sh
. "$(dirname "$0")/there.sh"
kept=${NAME:-h200-papers}
"$here/.bin/lacuna" papers --backends "${BACKENDS:-cuda,opencl}" --rounds "${ROUNDS:-3}" \
    --time-limit "${SECONDS_AT_MOST:-280}" --quiet --json "$kept.jsonl" --html "$kept.html"
"$here/.bin/lacuna-bench" report "$kept.jsonl" --markdown "$kept.md"
