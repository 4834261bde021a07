#!/bin/sh
# Checks the CUDA backend on a machine with a GPU but without Rust: the test binaries of build-binaries.sh,
# compute-sanitizer on small cases, the bench. Usage: gpu-check.sh [tests|sanitize|bench]... (default: all three). OUT,
# if set, is the folder for output.
set -u
cd "$(dirname "$0")/../.."
out=${OUT:-/tmp/lacuna-gpu}
mkdir -p "$out"
export LACUNA_REQUIRE=cuda
failed=0
parts=${*:-tests sanitize bench}

run() { # NAME COMMAND...
    name=$1
    shift
    if timeout 540 "$@" > "$out/$name.txt" 2>&1; then
        echo "ok      $name: $(grep -E '^test result|ERROR SUMMARY' "$out/$name.txt" | tail -n 1)"
    else
        echo "FAILED  $name (status $?)"
        grep -E 'panicked|differ|FAILED|ERROR|Error|error' -A 3 "$out/$name.txt" | head -n 40
        failed=1
    fi
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2> /dev/null | head -n 1
for part in $parts; do
    case $part in
    tests)
        for binary in faults kernels conformance; do run "$binary" ".bin/cuda-$binary" --test-threads 4; done
        ;;
    sanitize)
        if command -v compute-sanitizer > /dev/null; then
            for tool in memcheck racecheck synccheck initcheck; do
                run "sanitize-$tool" compute-sanitizer --tool "$tool" --error-exitcode 9 \
                    .bin/cuda-kernels --test-threads 1 small
            done
        else
            echo "SKIPPED compute-sanitizer: not installed"
        fi
        ;;
    bench)
        run bench .bin/cuda-bench
        grep -v '^{' "$out/bench.txt"
        grep '^{' "$out/bench.txt" > "$out/bench.jsonl" || true
        ;;
    esac
done
exit $failed
