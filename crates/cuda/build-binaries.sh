#!/bin/sh
# Builds the test binaries and the bench, stripped, into .bin/, to run on a machine with a GPU but without Rust. Run
# from anywhere.
set -eu
cd "$(dirname "$0")/../.."
eval "$(kernels-cuda/toolkit.sh)"
mkdir -p .bin
names=$({
    cargo test --release -p lacuna-cuda --no-run --tests --message-format=json
    cargo build --release -p lacuna-cuda --example bench --message-format=json
} | python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable") and message["target"]["kind"] != ["lib"]:
        print(message["target"]["name"], message["executable"])')
echo "$names" | while read -r name path; do
    cp "$path" ".bin/cuda-$name"
    strip ".bin/cuda-$name"
done
ls -l .bin
