//! The conformance suite on the OpenCL device that the environment names, or the first, in each mode.
use lacuna_engine::{Complex32, Complex64};
use lacuna_opencl::{Mode, OpenCl, OpenClOptions};
use lacuna_tests::conformance;

fn with(mode: Mode) -> lacuna_engine::Result<OpenCl> {
    OpenCl::new(OpenClOptions::from_env()?.mode(mode))
}

/// Cases that this backend leaves out, with the reason.
const LEFT_OUT: &[(&str, &str)] =
    &[("table::equal_bits", "it has hundreds of programs, each with kernels of its own to compile")];

conformance!(auto, "opencl", || with(Mode::Auto), [f32, f64, Complex32, Complex64], except LEFT_OUT);
conformance!(launches, "opencl", || with(Mode::Launches), [f64, Complex32], except LEFT_OUT);
