//! The conformance suite on the CUDA backend, in each of its modes. Skipped, loudly, where there is no device; a failure where
//! `LACUNA_REQUIRE` names `cuda`.
use lacuna_core::{Complex32, Complex64};
use lacuna_cuda::{Cuda, CudaOptions, Mode};
use lacuna_tests::conformance;

fn in_mode(mode: Mode) -> lacuna_core::Result<Cuda> {
    Cuda::with(&CudaOptions { mode: Some(mode), ..CudaOptions::default() })
}

/// What the backend does not do yet.
const NOT_YET: &[(&str, &str)] = &[("passes::wide_passes", "a pass has at most 32 vectors and 96 terms")];

conformance!(auto, "cuda", || in_mode(Mode::Auto), [f64, Complex32], except NOT_YET);
conformance!(stream, "cuda", || in_mode(Mode::Stream), [f32], except NOT_YET);
conformance!(graph, "cuda", || in_mode(Mode::Graph), [Complex64], except NOT_YET);
