//! Device selection and device properties.
use crate::driver::{self, Id};
use crate::{DeviceChoice, OpenClOptions, Shape};
use lacuna_engine::{DeviceInfo, Error, NumberType, Result};
use ocl::ffi;
use std::sync::{Mutex, PoisonError};

/// A device with the properties that this crate needs.
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
    /// Whether division and square root of `f32` can be correctly rounded.
    pub(crate) rounded_floats: bool,
    /// NVIDIA's major compute capability; 0 for other devices.
    pub(crate) capability: u64,
}

/// `CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV` of `cl_nv_device_attribute_query`.
const CAPABILITY_MAJOR: u32 = 0x4000;
const CORRECTLY_ROUNDED: u64 = 1 << 7;

impl Device {
    fn new(id: Id, platform: String) -> Self {
        let extensions = id.text(ffi::CL_DEVICE_EXTENSIONS);
        let tells_capability = extensions.contains("cl_nv_device_attribute_query");
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
            doubles: extensions.contains("cl_khr_fp64"),
            rounded_floats: id.number(ffi::CL_DEVICE_SINGLE_FP_CONFIG) & CORRECTLY_ROUNDED != 0,
            capability: if tells_capability { id.number(CAPABILITY_MAJOR) } else { 0 },
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
    /// Whether as many work-groups as compute units are known to run at once.
    pub(crate) fn runs_groups_together(&self) -> bool {
        self.is_gpu() && self.is_nvidia()
    }
    pub(crate) fn is_nvidia(&self) -> bool {
        self.vendor.contains("NVIDIA")
    }
    /// Bytes of a GPU's second-level cache, which OpenCL does not report: those of NVIDIA's A100 and, from
    /// compute capability 9.0 on, H200.
    pub(crate) fn cache(&self) -> usize {
        if self.capability >= 9 { 60 << 20 } else { 40 << 20 }
    }
    /// Whether loads can set an eviction policy of that cache.
    pub(crate) fn asks_cache(&self) -> bool {
        self.capability >= 8
    }
    /// Fails if the device lacks the precision of a number type.
    pub(crate) fn check_type(&self, kind: NumberType) -> Result<()> {
        if kind != kind.narrow() && !self.doubles {
            return Err(Error::Unsupported {
                operation: format!("{} on {}", kind.name(), self.name),
                message: "the device has no double precision (cl_khr_fp64); use f32 or Complex<f32>, or \
                          another device"
                    .into(),
            });
        }
        Ok(())
    }
    pub(crate) fn info(&self) -> DeviceInfo {
        let kind = if self.is_gpu() { "gpu" } else { "cpu" };
        let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        let details = vec![
            ("platform", self.platform.clone()),
            ("kind", kind.into()),
            ("driver", self.driver.clone()),
            ("version", self.version.clone()),
            ("f64", yes(self.doubles)),
            ("correctly rounded f32 division", yes(self.rounded_floats)),
            ("local memory", format!("{} KiB", self.local_memory / 1024)),
            ("largest buffer", format!("{} MiB", self.largest_buffer >> 20)),
        ];
        DeviceInfo::new("opencl", &*self.name, self.units).memory(self.memory).details(details)
    }
}

fn all() -> Result<Vec<Device>> {
    // PoCL must not be asked about a device while another thread makes it look for them.
    static LISTING: Mutex<()> = Mutex::new(());
    let _alone = LISTING.lock().unwrap_or_else(PoisonError::into_inner);
    let ids = driver::devices();
    if let Some(files) = lacuna_drivers::opencl::missing() {
        return Err(Error::Device {
            device: "OpenCL".into(),
            operation: "listing devices".into(),
            message: format!(
                "no loader of OpenCL drivers is installed: found neither {files}; it comes with a GPU vendor's driver, or as \
                 ocl-icd-libopencl1"
            ),
        });
    }
    let ids = ids.map_err(|status| driver::failed("OpenCL", "listing devices", status))?;
    Ok(ids.into_iter().map(|(id, platform)| Device::new(id, platform)).collect())
}

/// Every OpenCL device of the system, platform by platform, in the order of [`DeviceChoice::Index`].
///
/// # Errors
/// [`Error::Device`] if there is no loader or it fails. A system without a platform has an empty list.
pub fn devices() -> Result<Vec<DeviceInfo>> {
    Ok(all()?.iter().map(Device::info).collect())
}

/// The device that the options name.
pub(crate) fn find(options: &OpenClOptions) -> Result<Device> {
    let mut devices = all()?;
    let position = position(&options.device, &devices)?;
    Ok(devices.swap_remove(position))
}

/// The index of the chosen device.
fn position(choice: &DeviceChoice, devices: &[Device]) -> Result<usize> {
    if devices.is_empty() {
        return Err(Error::Device {
            device: "OpenCL".into(),
            operation: "choosing a device".into(),
            message: "no platform offers a device; install a driver (a GPU vendor's, or pocl-opencl-icd for CPUs); \
                      `clinfo -l` shows what the loader finds, which reads the .icd files of /etc/OpenCL/vendors or of \
                      $OCL_ICD_VENDORS"
                .into(),
        });
    }
    let gpu = devices.iter().position(Device::is_gpu);
    let (found, wanted) = match choice {
        DeviceChoice::Auto => (gpu.or(Some(0)), "auto".to_owned()),
        DeviceChoice::Gpu => (gpu, "gpu".into()),
        DeviceChoice::Cpu => (devices.iter().position(Device::is_cpu), "cpu".into()),
        DeviceChoice::Index(index) => (Some(*index).filter(|i| *i < devices.len()), index.to_string()),
        DeviceChoice::Name(name) => {
            let part = name.to_lowercase();
            let has = |d: &Device| format!("{} {}", d.name, d.platform).to_lowercase().contains(&part);
            (devices.iter().position(has), name.clone())
        }
    };
    found.ok_or_else(|| {
        let there = |(i, d): (usize, &Device)| format!("{i}: {} ({})", d.name, d.platform);
        let list: Vec<_> = devices.iter().enumerate().map(there).collect();
        let message = format!("no OpenCL device is `{wanted}`; expected one of [{}]", list.join(", "));
        Error::Argument { what: "device".into(), message }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, kind: u64) -> Device {
        let text = |text: &str| text.to_owned();
        Device {
            id: Id::none(),
            platform: text("Somebody's Platform"),
            name: name.into(),
            vendor: text("Somebody"),
            driver: text("1"),
            version: text("OpenCL 1.2"),
            kind,
            units: 1,
            memory: 1 << 30,
            largest_buffer: 1 << 28,
            local_memory: 1 << 15,
            largest_group: 256,
            doubles: false,
            rounded_floats: true,
            capability: 0,
        }
    }

    #[test]
    fn a_device_is_chosen_by_place_name_and_kind() {
        let devices =
            [device("Slow Core", ffi::CL_DEVICE_TYPE_CPU), device("Fast Card", ffi::CL_DEVICE_TYPE_GPU)];
        for (text, expected) in [
            ("auto", 1),
            ("", 1),
            ("gpu", 1),
            ("cpu", 0),
            ("0", 0),
            ("1", 1),
            ("slow", 0),
            ("CARD", 1),
            ("somebody", 0),
        ] {
            let choice = text.parse().unwrap();
            assert_eq!(position(&choice, &devices).unwrap(), expected, "{text}");
        }
        assert_eq!(position(&DeviceChoice::Auto, &devices[..1]).unwrap(), 0);
    }

    #[test]
    fn a_choice_that_names_none_lists_what_there_is() {
        let devices = [device("Slow Core", ffi::CL_DEVICE_TYPE_CPU)];
        for text in ["gpu", "7", "fast"] {
            let error = position(&text.parse().unwrap(), &devices).unwrap_err();
            assert!(matches!(error, Error::Argument { .. }));
            let error = error.to_string();
            assert!(error.contains(text) && error.contains("0: Slow Core (Somebody's Platform)"), "{error}");
        }
    }

    #[test]
    fn without_a_device_the_error_says_what_to_install() {
        let error = position(&DeviceChoice::Auto, &[]).unwrap_err();
        assert!(error.is_device_failure());
        let error = error.to_string();
        assert!(error.contains("install") && error.contains("clinfo -l"), "{error}");
    }

    #[test]
    fn a_device_without_double_precision_is_named_and_takes_single() {
        let device = device("Small Card", ffi::CL_DEVICE_TYPE_GPU);
        assert!([NumberType::F32, NumberType::C32].iter().all(|kind| device.check_type(*kind).is_ok()));
        for kind in [NumberType::F64, NumberType::C64] {
            let error = device.check_type(kind).unwrap_err().to_string();
            assert!(
                error.contains("Small Card") && error.contains("cl_khr_fp64") && error.contains("f32"),
                "{error}"
            );
        }
    }
}
