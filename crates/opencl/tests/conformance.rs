//! The conformance suite on the OpenCL device that the environment names, or the first, in each mode.
use lacuna_engine::{Complex32, Complex64, Error, Result};
use lacuna_opencl::{Mode, OpenCl, OpenClOptions, runs};
use lacuna_tests::counting::refined_solve_transfers_b_and_x;
use lacuna_tests::generated::{by_generated_kernels, own_cache};
use lacuna_tests::{available, conformance};

/// In [`Mode::Jit`] planning waits for the driver's compiler.
fn with(mode: Mode) -> Result<OpenCl> {
    own_cache();
    let dev = OpenCl::new(OpenClOptions::from_env()?.mode(mode))?;
    if !dev.modes().contains(&mode) {
        let message = format!("this device runs programs by one of {:?}, not {mode:?}", dev.modes());
        return Err(Error::Unsupported { operation: "the tests of generated kernels".into(), message });
    }
    Ok(dev)
}

fn counted(name: &str, case: &dyn Fn()) {
    by_generated_kernels(name, case, || [runs().generated, runs().general]);
}

conformance!(auto, "opencl", || with(Mode::Auto), [f32, f64, Complex32, Complex64]);
conformance!(launches, "opencl", || with(Mode::Launches), [f64, Complex32]);
// A CPU has no generated kernels: only `LACUNA_REQUIRE=opencl-jit` makes that a failure.
conformance!(jit, "opencl-jit", || with(Mode::Jit), [f64, Complex32], except &[], around counted);

#[test]
fn a_refined_solve_transfers_b_and_x() {
    let make = || with(Mode::Auto);
    if available("opencl", make().err()) {
        refined_solve_transfers_b_and_x::<f64, OpenCl>(make().expect("a device that was there before"));
    }
}
