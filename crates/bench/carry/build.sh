#!/bin/sh
# Builds the command and the laboratory with every backend, stripped, into .bin/, with the OpenCL loader and the headers of
# ViennaCL and OpenCL (apt install libviennacl-dev opencl-c-headers) beside them, for a machine with a GPU and without Rust.
# Run from anywhere; then one of the other scripts of this folder there.
set -eu
cd "$(dirname "$0")/../../.."
eval "$(kernels-cuda/toolkit.sh)"
cargo build --release -p lacuna-cli -p lacuna-bench --features cpu,opencl,cuda
mkdir -p .bin
for binary in lacuna lacuna-bench; do
    strip -o ".bin/$binary" "${CARGO_TARGET_DIR:-target}/release/$binary"
done
loader=$(ldconfig -p | sed -n 's/.*libOpenCL\.so\.1 .*=> //p' | head -n 1)
cp -L "$loader" .bin/libOpenCL.so.1
tar -czf .bin/headers.tar.gz -C /usr/include viennacl CL
git rev-parse --short HEAD > .bin/commit
ls -l .bin
