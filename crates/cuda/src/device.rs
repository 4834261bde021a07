//! The devices of the system, and their properties.
use crate::driver::failure;
use cust::device::{Device, DeviceAttribute};
use cust::error::CudaError;
use cust::sys;
use lacuna_engine::{DeviceInfo, Result};

/// Properties of a device, read once.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) name: String,
    pub(crate) multiprocessors: u32,
    /// Maximum shared memory of a block, in bytes.
    pub(crate) shared: u32,
    pub(crate) cooperative: bool,
    /// The compute capability.
    pub(crate) capability: (i32, i32),
    /// Bytes of the second-level cache.
    pub(crate) cache: usize,
    memory: u64,
    details: Vec<(&'static str, String)>,
}

/// The CUDA devices of the system.
///
/// # Errors
/// [`Error::Device`](lacuna_engine::Error::Device) if there is no driver.
pub fn devices() -> Result<Vec<DeviceInfo>> {
    let failed = |e| failure("cuda", "listing devices", e);
    cust::init(cust::CudaFlags::empty()).map_err(failed)?;
    let mut list = Vec::new();
    for device in Device::devices().map_err(failed)? {
        list.push(limits(device.map_err(failed)?).map_err(failed)?.info());
    }
    Ok(list)
}

pub(crate) fn limits(device: Device) -> Result<Limits, CudaError> {
    let attribute = |a| device.get_attribute(a);
    let major = attribute(DeviceAttribute::ComputeCapabilityMajor)?;
    let minor = attribute(DeviceAttribute::ComputeCapabilityMinor)?;
    let mut version = 0;
    // SAFETY: writes one integer.
    unsafe { sys::cuDriverGetVersion(&mut version) };
    let details = vec![
        ("compute capability", format!("{major}.{minor}")),
        ("second-level cache", format!("{} bytes", attribute(DeviceAttribute::L2CacheSize)?)),
        ("driver's CUDA", format!("{}.{}", version / 1000, version % 1000 / 10)),
    ];
    Ok(Limits {
        name: device.name()?,
        multiprocessors: attribute(DeviceAttribute::MultiprocessorCount)?.max(1) as u32,
        shared: raw_attribute(
            device,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )
        .max(attribute(DeviceAttribute::MaxSharedMemoryPerBlock)?) as u32,
        cooperative: raw_attribute(device, sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)
            != 0,
        capability: (major, minor),
        cache: attribute(DeviceAttribute::L2CacheSize)?.max(0) as usize,
        memory: device.total_memory()? as u64,
        details,
    })
}

fn raw_attribute(device: Device, attribute: sys::CUdevice_attribute) -> i32 {
    let mut value = 0;
    // SAFETY: writes one integer; an attribute unknown to the driver leaves it 0.
    unsafe { sys::cuDeviceGetAttribute(&mut value, attribute, device.as_raw()) };
    value
}

impl Limits {
    pub(crate) fn info(&self) -> DeviceInfo {
        let info = DeviceInfo::new("cuda", &*self.name, self.multiprocessors as usize);
        info.memory(self.memory).details(self.details.clone())
    }
}
