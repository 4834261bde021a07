#!/bin/sh
# Builds the command with every backend, stripped, into .bin/, with the OpenCL loader and the headers of ViennaCL and OpenCL
# (apt install libviennacl-dev opencl-c-headers) beside it, for a machine with a GPU and without Rust. Run from anywhere; then one of the other
# scripts of this folder there.
set -eu
cd "$(dirname "$0")/../.."
eval "$(kernels-cuda/toolkit.sh)"
cargo build --release -p lacuna-cli --features cpu,opencl,cuda
mkdir -p .bin
cp "${CARGO_TARGET_DIR:-target}/release/lacuna" .bin/lacuna
strip .bin/lacuna
loader=$(ldconfig -p | sed -n 's/.*libOpenCL\.so\.1 .*=> //p' | head -n 1)
cp -L "$loader" .bin/libOpenCL.so.1
tar -czf .bin/headers.tar.gz -C /usr/include viennacl CL
git rev-parse --short HEAD > .bin/commit
ls -l .bin
