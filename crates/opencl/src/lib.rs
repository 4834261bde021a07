//! The OpenCL backend of Lacuna: any device with an OpenCL 1.2 driver.
//!
//! A solve runs by launches of kernels that read tables (see [`lacuna_engine::encode`]), on CPUs also whole in one
//! work-group, on GPUs whole in a kernel generated for the program; see [`Mode`]. What the driver compiles is kept on disk.
//! The host waits for nothing but the read that follows the work.
mod backend;
mod device;
mod driver;
mod execute;
mod jit;
mod launches;
mod memory;
mod one_group;
mod options;
mod plan;
mod source;
mod status;

pub use backend::OpenCl;
pub use device::devices;
pub use options::{DeviceChoice, Mode, OpenClOptions, Shape};
pub use source::text;
