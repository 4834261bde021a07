//! The built-in backends: a default chosen at compile time, and any of them by name at run time.
use lacuna_engine::{Backend, DeviceInfo, Error, Result};

/// The backend selected by the features of this crate.
#[cfg(feature = "cuda")]
pub type DefaultBackend = lacuna_cuda::Cuda;
/// The backend selected by the features of this crate.
#[cfg(all(feature = "opencl", not(feature = "cuda")))]
pub type DefaultBackend = lacuna_opencl::OpenCl;
/// The backend selected by the features of this crate.
#[cfg(all(feature = "cpu", not(any(feature = "cuda", feature = "opencl"))))]
pub type DefaultBackend = lacuna_cpu::Cpu;
/// No backend is built in: turn on a feature of this crate. The serial reference takes its place so that
/// generic code compiles; [`default_backend`] returns an error.
#[cfg(not(any(feature = "cuda", feature = "opencl", feature = "cpu")))]
pub type DefaultBackend = lacuna_engine::Reference;

/// A backend in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendInfo {
    /// Its name, which is also the feature that builds it in.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Whether it is built in.
    pub built_in: bool,
}

/// Every backend, in order of preference. The first that is built in is the [`DefaultBackend`].
pub const BACKENDS: [BackendInfo; 3] = [
    BackendInfo {
        name: "cuda",
        about: "an NVIDIA GPU, whole solves on the device",
        built_in: cfg!(feature = "cuda"),
    },
    BackendInfo {
        name: "opencl",
        about: "any device with an OpenCL 1.2 driver, whole solves on the device",
        built_in: cfg!(feature = "opencl"),
    },
    BackendInfo {
        name: "cpu",
        about: "the cores of this machine, one parallel region for a whole solve",
        built_in: cfg!(feature = "cpu"),
    },
];

/// Options for opening a backend.
#[derive(Clone, Debug, Default)]
pub struct BackendOptions {
    /// Threads of the CPU; all cores by default.
    pub threads: Option<usize>,
    /// The device: its index in the list of [`devices`], a part of its name, or `auto`; for `opencl` also
    /// `gpu` or `cpu`. By default the value of `LACUNA_OPENCL_DEVICE` or `LACUNA_CUDA_DEVICE` in the
    /// environment, else `auto`.
    pub device: Option<String>,
}

/// The devices of a built-in backend, in the order of their indices.
///
/// ```
/// let cpu = lacuna::devices("cpu")?;
/// assert_eq!(cpu.len(), 1);
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// As [`on`].
pub fn devices(backend: &str) -> Result<Vec<DeviceInfo>> {
    struct Describe;
    impl OnBackend for Describe {
        type Output = DeviceInfo;
        fn run<B: Backend>(self, dev: B) -> DeviceInfo {
            dev.device()
        }
    }
    match backend {
        #[cfg(feature = "cuda")]
        "cuda" => lacuna_cuda::devices(),
        #[cfg(feature = "opencl")]
        "opencl" => lacuna_opencl::devices(),
        name => on(Some(name), BackendOptions::default(), Describe).map(|device| vec![device]),
    }
}

/// The backend selected by the features of this crate, with its default options.
///
/// # Errors
/// [`Error::Unsupported`] if no backend is built in, [`Error::Device`] if it cannot start.
pub fn default_backend() -> Result<DefaultBackend> {
    #[cfg(feature = "cuda")]
    return lacuna_cuda::Cuda::new();
    #[cfg(all(feature = "opencl", not(feature = "cuda")))]
    return lacuna_opencl::OpenCl::new(lacuna_opencl::OpenClOptions::from_env()?);
    #[cfg(all(feature = "cpu", not(any(feature = "cuda", feature = "opencl"))))]
    return lacuna_cpu::Cpu::new();
    #[cfg(not(any(feature = "cuda", feature = "opencl", feature = "cpu")))]
    Err(Error::Unsupported {
        operation: "default_backend".into(),
        message:
            "no backend is built in; turn on the feature `cpu`, `cuda` or `opencl` of the crate `lacuna`"
                .into(),
    })
}

/// The backend that [`on`] uses if none is named: the first of [`BACKENDS`] that is built in and has a device
/// other than the CPU, otherwise the last that is built in, since `cpu` drives the CPU best.
pub fn preferred() -> Option<&'static str> {
    let built_in: Vec<_> = BACKENDS.iter().filter(|b| b.built_in).map(|b| b.name).collect();
    first_beside_the_processor(&built_in, |name| devices(name).unwrap_or_default())
}

fn first_beside_the_processor(
    names: &[&'static str],
    devices: impl Fn(&str) -> Vec<DeviceInfo>,
) -> Option<&'static str> {
    let (last, others) = names.split_last()?;
    let processor = |device: &DeviceInfo| device.details.contains(&("kind", "cpu".into()));
    let found = others.iter().find(|name| devices(name).iter().any(|device| !processor(device)));
    found.or(Some(last)).copied()
}

/// A task for a backend whose type is known only at run time.
pub trait OnBackend {
    /// The result of the task.
    type Output;
    /// Runs the task.
    fn run<B: Backend>(self, dev: B) -> Self::Output;
}

/// Opens the backend with the given name, or the [`preferred`] one for `None`, and runs `task` on it.
///
/// ```
/// use lacuna::{Backend, BackendOptions, OnBackend};
///
/// struct Name;
/// impl OnBackend for Name {
///     type Output = String;
///     fn run<B: Backend>(self, dev: B) -> String {
///         dev.device().backend.into()
///     }
/// }
/// assert_eq!(lacuna::on(Some("cpu"), BackendOptions::default(), Name)?, "cpu");
/// assert!(lacuna::on(Some("abacus"), BackendOptions::default(), Name).is_err());
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// [`Error::Unsupported`] if the backend is not built in, [`Error::Argument`] for an unknown name,
/// [`Error::Device`] if it cannot start.
pub fn on<F: OnBackend>(name: Option<&str>, options: BackendOptions, task: F) -> Result<F::Output> {
    let built_in = || BACKENDS.iter().filter(|b| b.built_in).map(|b| b.name);
    let preferred = if name.is_none() { preferred() } else { None };
    let Some(name) = name.or(preferred) else {
        return default_backend().map(|dev| task.run(dev));
    };
    match name {
        #[cfg(feature = "cuda")]
        "cuda" => {
            let device = options.device.filter(|device| device != "auto");
            let options = lacuna_cuda::CudaOptions { device, ..lacuna_cuda::CudaOptions::default() };
            Ok(task.run(lacuna_cuda::Cuda::with(&options)?))
        }
        #[cfg(feature = "opencl")]
        "opencl" => {
            let mut settings = lacuna_opencl::OpenClOptions::from_env()?;
            if let Some(device) = options.device {
                settings.device = device.parse().unwrap_or_default();
            }
            Ok(task.run(lacuna_opencl::OpenCl::new(settings)?))
        }
        #[cfg(feature = "cpu")]
        "cpu" => {
            let threads = options.threads;
            let dev = lacuna_cpu::Cpu::with(lacuna_cpu::CpuOptions { threads, ..Default::default() })?;
            let (asked, own) = (options.device.unwrap_or_else(|| "auto".into()), dev.device().name);
            if !["auto", "cpu", "0"].contains(&asked.as_str()) && !is_part(&asked, &own) {
                let message = format!(
                    "the backend cpu has one device, 0: {own}, got `{asked}`; opencl and cuda have more"
                );
                return Err(Error::Argument { what: "device".into(), message });
            }
            Ok(task.run(dev))
        }
        _ => {
            let _ = (options, task);
            let known = BACKENDS.iter().any(|b| b.name == name);
            let list: Vec<_> = built_in().collect();
            let list = if list.is_empty() { "no backend".into() } else { list.join(", ") };
            Err(if known {
                Error::Unsupported {
                    operation: format!("backend {name}"),
                    message: format!(
                        "this build has {list}; turn on the feature `{name}` of the crate `lacuna`"
                    ),
                }
            } else {
                Error::Argument {
                    what: "backend".into(),
                    message: format!("`{name}` is unknown; this build has {list}"),
                }
            })
        }
    }
}

/// Whether a text other than an index is a part of the name of a device, in letters of any case.
#[cfg(feature = "cpu")]
fn is_part(text: &str, name: &str) -> bool {
    let index = text.parse::<usize>().is_ok();
    !index && !text.is_empty() && name.to_lowercase().contains(&text.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::first_beside_the_processor;
    use lacuna_engine::DeviceInfo;

    #[test]
    fn the_processor_is_left_to_its_own_backend() {
        let first = |names: &[&'static str], of_opencl: &[&str]| {
            first_beside_the_processor(names, |name| {
                let kinds = if name == "opencl" { of_opencl } else { &[] };
                let device = |kind: &&str| DeviceInfo {
                    backend: "opencl",
                    name: "a device".into(),
                    units: 1,
                    memory: None,
                    details: vec![("kind", kind.to_string())],
                };
                kinds.iter().map(device).collect()
            })
        };
        let all = ["cuda", "opencl", "cpu"];
        assert_eq!(first(&all, &["cpu", "gpu"]), Some("opencl"));
        assert_eq!(first(&all, &["cpu"]), Some("cpu"));
        assert_eq!(first(&all, &[]), Some("cpu"));
        assert_eq!(first(&all[..2], &["cpu"]), Some("opencl"));
        assert_eq!(first(&all[..1], &[]), Some("cuda"));
        assert_eq!(first(&[], &[]), None);
    }
}
