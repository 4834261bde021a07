//! The CUDA backend: whole solves on the device.
//!
//! A program runs in one of three ways, all with equal bits: see [`Mode`]. The kernels are compiled when the
//! crate is built, and embedded; at run time only the driver is needed. If NVRTC, the compiler of the CUDA
//! toolkit, is found at run time, a kernel is generated and compiled for each program that loops: see
//! [`Compile`]. [`Cuda::new`] returns an error if there is no driver or device.
mod algebra;
mod backend;
mod carrier;
mod compiler;
mod device;
mod divided;
mod driver;
mod execute;
mod jit;
mod launches;
mod memory;
mod options;
mod plan;
mod plan_cache;
mod store;
mod transfer;

pub use backend::Cuda;
pub use compiler::compiler_found;
pub use device::devices;
pub use lacuna_gpu::{Runs, runs};
pub use options::{Compile, CudaOptions, Mode};
