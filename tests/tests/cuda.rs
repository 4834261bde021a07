//! The conformance suite on the CUDA backend, in each of its modes. Without a device it prints a warning and
//! is skipped; that is a failure if `LACUNA_REQUIRE` names `cuda`.
use lacuna_cuda::{Cuda, CudaOptions, Mode};
use lacuna_engine::{Complex32, Complex64, Device};
use lacuna_tests::conformance;

fn in_mode(mode: Mode) -> lacuna_engine::Result<Cuda> {
    Cuda::with(&CudaOptions::default().mode(mode))
}

/// What the backend does not support yet.
const NOT_YET: &[(&str, &str)] = &[("passes::wide_passes", "a pass has at most 32 vectors and 96 terms")];

/// What [`Mode::Auto`] leaves out too.
const TOO_LONG: &[(&str, &str)] = &[
    NOT_YET[0],
    ("table::equal_bits", "it has hundreds of programs, each with a kernel of its own to compile"),
];

conformance!(auto, "cuda", || in_mode(Mode::Auto), [f64, Complex32], except TOO_LONG);
conformance!(stream, "cuda", || in_mode(Mode::Stream), [f32], except NOT_YET);
conformance!(graph, "cuda", || in_mode(Mode::Graph), [Complex64], except NOT_YET);

/// Sums, and two-level cycles, in one generated kernel; the mode refuses programs without one.
mod jit {
    use super::*;
    use lacuna_engine::Scalar;
    use lacuna_tests::{available, narrow, passes};

    fn there() -> bool {
        available("cuda", in_mode(Mode::Jit).err()) && lacuna_cuda::compiler_found()
    }

    fn make() -> Device {
        Device::new(in_mode(Mode::Jit).expect("a device that was there before"))
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
