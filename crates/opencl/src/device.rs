//! Finding a device and telling what it is.
use crate::driver::{self, Id};
use crate::{DeviceChoice, OpenClOptions, Shape};
use lacuna_core::{DeviceInfo, Error, Result};
use ocl_core::ffi;

/// A device with what this crate needs to know of it.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) id: Id,
    pub(crate) platform: String,
    pub(crate) name: String,
    pub(crate) vendor: String,
    pub(crate) driver: String,
    pub(crate) version: String,
    pub(crate) kind: u64,
    pub(crate) units: usize,
    pub(crate) memory: u64,
    pub(crate) largest_buffer: u64,
    pub(crate) local_memory: usize,
    pub(crate) largest_group: usize,
    pub(crate) doubles: bool,
    /// Division and square root of `f32` can be correctly rounded.
    pub(crate) rounded_floats: bool,
}

const CORRECTLY_ROUNDED: u64 = 1 << 7;

impl Device {
    fn new(id: Id, platform: String) -> Self {
        Device {
            id,
            platform,
            name: id.text(ffi::CL_DEVICE_NAME),
            vendor: id.text(ffi::CL_DEVICE_VENDOR),
            driver: id.text(ffi::CL_DRIVER_VERSION),
            version: id.text(ffi::CL_DEVICE_VERSION),
            kind: id.number(ffi::CL_DEVICE_TYPE),
            units: (id.number(ffi::CL_DEVICE_MAX_COMPUTE_UNITS) as usize).max(1),
            memory: id.number(ffi::CL_DEVICE_GLOBAL_MEM_SIZE),
            largest_buffer: id.number(ffi::CL_DEVICE_MAX_MEM_ALLOC_SIZE),
            local_memory: id.number(ffi::CL_DEVICE_LOCAL_MEM_SIZE) as usize,
            largest_group: id.number(ffi::CL_DEVICE_MAX_WORK_GROUP_SIZE) as usize,
            doubles: id.text(ffi::CL_DEVICE_EXTENSIONS).contains("cl_khr_fp64"),
            rounded_floats: id.number(ffi::CL_DEVICE_SINGLE_FP_CONFIG) & CORRECTLY_ROUNDED != 0,
        }
    }

    pub(crate) fn is_gpu(&self) -> bool {
        self.kind & (ffi::CL_DEVICE_TYPE_GPU | ffi::CL_DEVICE_TYPE_ACCELERATOR) != 0
    }
    fn is_cpu(&self) -> bool {
        self.kind & ffi::CL_DEVICE_TYPE_CPU != 0
    }
    /// Whether a work-item should take a whole segment.
    pub(crate) fn runs_segments(&self, shape: Shape) -> bool {
        match shape {
            Shape::Auto => self.is_cpu() && !self.platform.contains("Oclgrind"),
            Shape::Gpu => false,
            Shape::Cpu => true,
        }
    }
    /// Whether as many groups as there are units are known to run at once.
    pub(crate) fn runs_groups_together(&self) -> bool {
        self.is_gpu() && self.is_nvidia()
    }
    pub(crate) fn is_nvidia(&self) -> bool {
        self.vendor.contains("NVIDIA")
    }
    pub(crate) fn info(&self) -> DeviceInfo {
        let kind = if self.is_gpu() { "gpu" } else { "cpu" };
        let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        DeviceInfo {
            backend: "opencl",
            name: self.name.clone(),
            units: self.units,
            memory: Some(self.memory),
            details: vec![
                ("platform", self.platform.clone()),
                ("kind", kind.into()),
                ("driver", self.driver.clone()),
                ("version", self.version.clone()),
                ("f64", yes(self.doubles)),
                ("correctly rounded f32 division", yes(self.rounded_floats)),
                ("local memory", format!("{} KiB", self.local_memory / 1024)),
                ("largest buffer", format!("{} MiB", self.largest_buffer >> 20)),
            ],
        }
    }
}

fn all() -> Result<Vec<Device>> {
    let ids = driver::devices().map_err(|status| driver::failed("OpenCL", "listing devices", status))?;
    Ok(ids.into_iter().map(|(id, platform)| Device::new(id, platform)).collect())
}

/// Every OpenCL device of the system, platform by platform: what [`DeviceChoice::Index`] counts.
///
/// # Errors
/// [`Error::Device`] where the loader fails. A system without a platform has an empty list.
pub fn devices() -> Result<Vec<DeviceInfo>> {
    Ok(all()?.iter().map(Device::info).collect())
}

/// The device an option names.
pub(crate) fn find(options: &OpenClOptions) -> Result<Device> {
    let mut devices = all()?;
    let fail = |message: String| {
        Err(Error::Device { device: "OpenCL".into(), operation: "choosing a device".into(), message })
    };
    if devices.is_empty() {
        return fail(
            "there is no OpenCL platform with a device; install a driver (a GPU vendor's, or pocl-opencl-icd for \
             CPUs) and see `clinfo -l`"
                .into(),
        );
    }
    let position = match &options.device {
        DeviceChoice::Auto => devices.iter().position(Device::is_gpu).or(Some(0)),
        DeviceChoice::Gpu => devices.iter().position(Device::is_gpu),
        DeviceChoice::Cpu => devices.iter().position(Device::is_cpu),
        DeviceChoice::Index(index) => Some(*index).filter(|i| *i < devices.len()),
        DeviceChoice::Name(name) => {
            let name = name.to_lowercase();
            let has = |d: &Device| format!("{} {}", d.name, d.platform).to_lowercase().contains(&name);
            devices.iter().position(has)
        }
    };
    match position {
        Some(position) => Ok(devices.swap_remove(position)),
        None => {
            let names: Vec<_> = devices
                .iter()
                .enumerate()
                .map(|(i, d)| format!("{i}: {} ({})", d.name, d.platform))
                .collect();
            fail(format!("no device is {:?}; there are {}", options.device, names.join(", ")))
        }
    }
}
