//! The OpenCL backend of Lacuna: any device with an OpenCL 1.2 driver.
//!
//! Kernels are table-driven (see [`lacuna_core::encode`]): one program for each device and number type, built once and
//! kept on disk, runs every pass. A solve is queued ahead in rounds, or runs as one launch; the host waits for nothing
//! but the read that follows it.
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
pub use source::{SOURCES, text};
