//! The conformance suite on the CUDA backend, in each of its modes. Without a device it prints a warning and
//! is skipped; that is a failure if `LACUNA_REQUIRE` names `cuda`.
use lacuna_cuda::{Compile, Cuda, CudaOptions, Mode, compiler_found, runs};
use lacuna_engine::{Complex32, Complex64, Device, Error, Result};
use lacuna_tests::counting::refined_solve_transfers_b_and_x;
use lacuna_tests::generated::{by_generated_kernels, own_cache};
use lacuna_tests::{available, conformance};

fn in_mode(mode: Mode) -> Result<Cuda> {
    own_cache();
    Cuda::with(&CudaOptions::default().mode(mode))
}

/// Planning waits for the compiler, so that a generated kernel runs each program that can have one.
fn compiled(mode: Mode) -> Result<Cuda> {
    own_cache();
    if !compiler_found() {
        return Err(Error::Device {
            device: "cuda".into(),
            operation: "generating kernels".into(),
            message: "NVRTC, the compiler of the CUDA toolkit, was not found: set CUDA_PATH to its folder"
                .into(),
        });
    }
    Cuda::with(&CudaOptions::default().mode(mode).compile(Compile::Always))
}

fn counted(name: &str, case: &dyn Fn()) {
    by_generated_kernels(name, case, || [runs().generated, runs().general]);
}

/// What the backend does not support yet.
const NOT_YET: &[(&str, &str)] = &[("passes::wide_passes", "a pass has at most 32 vectors and 96 terms")];

conformance!(auto, "cuda", || compiled(Mode::Auto), [f64, Complex32], except NOT_YET, around counted);
conformance!(stream, "cuda", || in_mode(Mode::Stream), [f32], except NOT_YET);
conformance!(graph, "cuda", || in_mode(Mode::Graph), [Complex64], except NOT_YET);

/// Sums, and two-level cycles, in one generated kernel; the mode refuses programs without one.
mod jit {
    use super::*;
    use lacuna_engine::Scalar;
    use lacuna_tests::{narrow, passes};

    fn there() -> bool {
        available("cuda", compiled(Mode::Jit).err())
    }

    fn make() -> Device {
        Device::new(compiled(Mode::Jit).expect("a device that was there before"))
    }

    fn sums<T: Scalar>() {
        if there() {
            passes::sums_in_a_loop::<T>(make);
        }
    }

    fn cycles<T: Scalar>() {
        if there() {
            narrow::two_levels::<T>(make);
            narrow::two_narrow_levels::<T>(make);
        }
    }

    #[test]
    fn sums_f64() {
        sums::<f64>();
    }
    #[test]
    fn sums_c64() {
        sums::<Complex64>();
    }
    #[test]
    fn two_levels_f32() {
        cycles::<f32>();
    }
    #[test]
    fn two_levels_f64() {
        cycles::<f64>();
    }
    #[test]
    fn two_levels_c64() {
        cycles::<Complex64>();
    }
}

#[test]
fn a_refined_solve_transfers_b_and_x() {
    let make = || in_mode(Mode::Stream);
    if available("cuda", make().err()) {
        refined_solve_transfers_b_and_x::<f64, Cuda>(make().expect("a device that was there before"));
    }
}
