//! The conformance suite on the OpenCL device that the environment names, or the first, in each mode.
use lacuna_engine::{Complex32, Complex64, Error, Result};
use lacuna_opencl::{Mode, OpenCl, OpenClOptions, runs};
use lacuna_tests::conformance;
use lacuna_tests::generated::{by_generated_kernels, own_cache};

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
