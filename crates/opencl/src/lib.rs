//! The OpenCL backend of Lacuna: any device with an OpenCL 1.2 driver.
//!
//! Solves run as launches of kernels that read tables (see [`lacuna_engine::encode`]); on CPUs also entirely
//! in one work-group, on GPUs also entirely in a kernel generated for the program; see [`Mode`]. Compiled
//! programs are cached on disk. The host waits only for the read that follows the work.
mod algebra;
mod backend;
mod compiler;
mod device;
mod driver;
mod execute;
mod jit;
mod launches;
mod memory;
mod one_group;
mod options;
mod plan;
mod status;
mod store;

pub use backend::OpenCl;
pub use compiler::text;
pub use device::devices;
pub use lacuna_gpu::{Runs, runs};
pub use options::{DeviceChoice, Mode, OpenClOptions, Shape};
