//! The conformance suite on the CPU backend: with any number of threads, and with each set of instructions.
use lacuna_core::{Complex32, Complex64};
use lacuna_cpu::{Cpu, CpuOptions, Simd};
use lacuna_tests::conformance;

/// All threads take part however small the work is, so that every case is shared among them.
fn shared(threads: usize) -> lacuna_core::Result<Cpu> {
    Cpu::with(CpuOptions { threads: Some(threads), parallel_from: Some(0), ..CpuOptions::default() })
}
fn with(simd: Simd) -> lacuna_core::Result<Cpu> {
    Cpu::with(CpuOptions { threads: Some(2), simd, ..CpuOptions::default() })
}

conformance!(threads_1, "cpu", || shared(1), [f32, f64, Complex32, Complex64]);
conformance!(threads_2, "cpu", || shared(2), [f32, f64, Complex32, Complex64]);
conformance!(threads_3, "cpu", || shared(3), [f64, Complex32]);
conformance!(threads_7, "cpu", || shared(7), [f32, Complex64]);
conformance!(avx2, "cpu", || with(Simd::Avx2), [f32, Complex64]);
conformance!(baseline, "cpu", || with(Simd::Baseline), [f64, Complex32]);
