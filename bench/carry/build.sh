#!/bin/sh
# Builds the command with every backend, stripped, into .bin/, with the OpenCL loader beside it, for a machine with a GPU
# and without Rust. Run from anywhere; then bench/carry/compare.sh there.
set -eu
cd "$(dirname "$0")/../.."
eval "$(kernels-cuda/toolkit.sh)"
cargo build --release -p lacuna-cli --features cpu,opencl,cuda
mkdir -p .bin
cp "${CARGO_TARGET_DIR:-target}/release/lacuna" .bin/lacuna
strip .bin/lacuna
loader=$(ldconfig -p | sed -n 's/.*libOpenCL\.so\.1 .*=> //p' | head -n 1)
cp -L "$loader" .bin/libOpenCL.so.1
ls -l .bin/lacuna .bin/libOpenCL.so.1
