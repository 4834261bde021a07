//! Devices by name: those of the backends that are built in, and of backends from outside.
#[cfg(all(feature = "cuda", feature = "ranks"))]
use crate::device_list;
use crate::device_list::check_list;
use lacuna_engine::text::did_you_mean;
use lacuna_engine::{Backend, Device, DeviceInfo, Error, Process, Result, WeakDevice};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// A backend in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackendInfo {
    /// Its name; for the backends of this crate also the feature that builds it in.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Whether it is there.
    pub built_in: bool,
}

/// How to open a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct DeviceOptions {
    /// Threads of the CPU; all cores by default.
    pub threads: Option<usize>,
    /// The device: its index in the list of [`devices`], a part of its name, or `auto`; for `opencl` also
    /// `gpu` or `cpu`; for `cuda` also several that share every system, by their indices, as in `0,1` or `0-3` (with the feature
    /// `ranks`). By default the value of `LACUNA_OPENCL_DEVICE` or `LACUNA_CUDA_DEVICE` in the
    /// environment, else `auto`.
    pub device: Option<String>,
    /// The CPU as so many devices that share every system, its *ranks*, each a thread: what several devices do, on one
    /// machine. The bits are those of one. Needs the feature `ranks`; threads are then for the work of the host alone.
    pub ranks: Option<usize>,
    /// The CPU without vector instructions, which is slow: to see what these gain. The bits are the same.
    pub scalar: bool,
}

lacuna_engine::setters!(DeviceOptions {
    threads: impl Into<Option<usize>>,
    device: impl Into<Option<String>>,
    ranks: impl Into<Option<usize>>,
    scalar: bool,
});

/// What opens the devices of a backend: see [`register`].
pub trait Provider: Send + Sync {
    /// The name of the backend. **Must not** contain a colon.
    fn name(&self) -> &'static str;
    /// What it is, in one line.
    fn about(&self) -> &'static str;
    /// Its devices, in the order of their indices.
    ///
    /// # Errors
    /// [`Error::Device`] without a driver.
    fn devices(&self) -> Result<Vec<DeviceInfo>>;
    /// Opens a device.
    ///
    /// # Errors
    /// [`Error::Device`] if it cannot be opened, [`Error::Argument`] for options that name none.
    fn open(&self, options: &DeviceOptions) -> Result<Box<dyn Backend>>;
}

/// Maximum number of ranks of one process, each of which is a thread.
const MOST_RANKS: usize = 256;

/// The backends of this crate, in order of preference.
const OWN: &[(&str, &str, bool)] = &[
    ("cuda", "an NVIDIA GPU, whole solves on the device", cfg!(feature = "cuda")),
    ("opencl", "any device with an OpenCL 1.2 driver, whole solves on the device", cfg!(feature = "opencl")),
    ("cpu", "the cores of this machine, one parallel region for a whole solve", cfg!(feature = "cpu")),
];

/// One of the backends of this crate.
struct Own(&'static str, &'static str);

impl Provider for Own {
    fn name(&self) -> &'static str {
        self.0
    }
    fn about(&self) -> &'static str {
        self.1
    }
    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        match self.0 {
            #[cfg(feature = "cuda")]
            "cuda" => lacuna_cuda::devices(),
            #[cfg(feature = "opencl")]
            "opencl" => lacuna_opencl::devices(),
            _ => Ok(vec![self.open(&DeviceOptions::default())?.info()]),
        }
    }
    fn open(&self, options: &DeviceOptions) -> Result<Box<dyn Backend>> {
        let named = options.device.as_deref().filter(|device| *device != "auto");
        match self.0 {
            #[cfg(all(feature = "cuda", feature = "ranks"))]
            "cuda" if named.is_some_and(device_list::is_list) => {
                let own = lacuna_cuda::devices()?.len();
                let devices = device_list::indices(named.unwrap_or_default(), own)?;
                Ok(Box::new(crate::divided::gpus(&devices)?))
            }
            #[cfg(feature = "cuda")]
            "cuda" => {
                let device = named.map(str::to_owned);
                let options = lacuna_cuda::CudaOptions::default().device(device);
                Ok(Box::new(lacuna_cuda::Cuda::with(&options)?))
            }
            #[cfg(feature = "opencl")]
            "opencl" => {
                let mut settings = lacuna_opencl::OpenClOptions::from_env()?;
                if let Some(device) = named {
                    settings.device = device.parse().unwrap_or_default();
                }
                Ok(Box::new(lacuna_opencl::OpenCl::new(settings)?))
            }
            #[cfg(all(feature = "cpu", feature = "ranks"))]
            "cpu" if options.ranks.is_some() && named.is_none() => {
                Ok(Box::new(crate::divided::group(options.ranks.unwrap_or(0))?))
            }
            #[cfg(feature = "cpu")]
            "cpu" => {
                let simd = if options.scalar { lacuna_cpu::Simd::Baseline } else { lacuna_cpu::Simd::Best };
                let settings = lacuna_cpu::CpuOptions::default().threads(options.threads).simd(simd);
                let cpu = lacuna_cpu::Cpu::with(settings)?;
                let own = cpu.info().name;
                match named {
                    Some(asked) if !["cpu", "0"].contains(&asked) && !is_part(asked, &own) => {
                        let message = format!(
                            "the backend cpu has one device, 0: {own}, got `{asked}`; opencl and cuda have more"
                        );
                        Err(Error::Argument { what: "device".into(), message })
                    }
                    _ => Ok(Box::new(cpu)),
                }
            }
            name => {
                let _ = named;
                Err(unknown(name, &registry().names()))
            }
        }
    }
}

/// Whether a text other than an index is a part of the name of a device, in letters of any case.
#[cfg(feature = "cpu")]
fn is_part(text: &str, name: &str) -> bool {
    let index = text.parse::<usize>().is_ok();
    !index && !text.is_empty() && name.to_lowercase().contains(&text.to_lowercase())
}

/// What is known of backends and open devices.
struct Registry {
    /// The process that the devices were opened in.
    process: Process,
    outside: Vec<Arc<dyn Provider>>,
    /// Devices opened by name, for as long as somebody holds them.
    open: HashMap<(String, DeviceOptions), WeakDevice>,
    /// The device for everybody who names none, and what was passed over when it was chosen.
    default: Option<(Device, String)>,
}

static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(|| {
    let process = Process::this();
    Mutex::new(Registry { process, outside: Vec::new(), open: HashMap::new(), default: None })
});

fn registry() -> MutexGuard<'static, Registry> {
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    if registry.process != Process::this() {
        // A fork of that process: its devices are not for this one, not even to close.
        registry.process = Process::this();
        registry.open.clear();
        std::mem::forget(registry.default.take());
    }
    registry
}

impl Registry {
    fn provider(&self, name: &str) -> Result<Arc<dyn Provider>> {
        let own = OWN.iter().find(|(own, _, built_in)| *built_in && *own == name);
        let own = own.map(|(name, about, _)| Arc::new(Own(name, about)) as Arc<dyn Provider>);
        let outside = || self.outside.iter().find(|provider| provider.name() == name).cloned();
        own.or_else(outside).ok_or_else(|| unknown(name, &self.names()))
    }
    fn names(&self) -> Vec<&'static str> {
        let own = OWN.iter().filter(|(.., built_in)| *built_in).map(|(name, ..)| *name);
        own.chain(self.outside.iter().map(|provider| provider.name())).collect()
    }
}

fn unknown(name: &str, names: &[&str]) -> Error {
    let list = if names.is_empty() { "no backend".into() } else { names.join(", ") };
    if OWN.iter().any(|(own, ..)| *own == name) {
        return Error::Unsupported {
            operation: format!("backend {name}"),
            message: format!("this build has {list}; turn on the feature `{name}` of the crate `lacuna`"),
        };
    }
    let near = did_you_mean(names.iter().copied(), name);
    Error::Argument {
        what: "backend".into(),
        message: format!("`{name}` is unknown; this build has {list}{near}"),
    }
}

/// Makes a backend from outside known by its name, to [`open`], [`LinearSystem::on`](crate::LinearSystem::on) and the rest.
/// The page on backends in the guide has one that is written out.
///
/// ```
/// use lacuna::backend::{Backend, Reference};
/// use lacuna::{DeviceInfo, DeviceOptions, Provider, Result};
///
/// struct Serial;
///
/// impl Provider for Serial {
///     fn name(&self) -> &'static str {
///         "serial"
///     }
///     fn about(&self) -> &'static str {
///         "the serial reference"
///     }
///     fn devices(&self) -> Result<Vec<DeviceInfo>> {
///         Ok(vec![Reference::new().info()])
///     }
///     fn open(&self, _: &DeviceOptions) -> Result<Box<dyn Backend>> {
///         Ok(Box::new(Reference::new()))
///     }
/// }
///
/// lacuna::register(Serial)?;
/// assert_eq!(lacuna::open("serial")?.info().backend, "reference");
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// [`Error::Argument`] if there is a backend of that name.
pub fn register(provider: impl Provider + 'static) -> Result<()> {
    let mut registry = registry();
    let name = provider.name();
    let taken =
        name == "ranks" || OWN.iter().any(|(own, ..)| *own == name) || registry.names().contains(&name);
    if taken || name.is_empty() || name.contains(':') {
        let why = if taken { "is taken" } else { "is no name: expected letters without a colon" };
        return Err(Error::Argument { what: "backend".into(), message: format!("`{name}` {why}") });
    }
    registry.outside.push(Arc::new(provider));
    Ok(())
}

/// Every backend: those of this crate in order of preference, then those from outside.
pub fn backends() -> Vec<BackendInfo> {
    let own = OWN.iter().map(|&(name, about, built_in)| BackendInfo { name, about, built_in });
    let outside = |p: &Arc<dyn Provider>| BackendInfo { name: p.name(), about: p.about(), built_in: true };
    own.chain(registry().outside.iter().map(outside)).collect()
}

/// The devices of a backend, in the order of their indices.
///
/// ```
/// let cpu = lacuna::devices("cpu")?;
/// assert_eq!(cpu.len(), 1);
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// As [`open`].
pub fn devices(backend: &str) -> Result<Vec<DeviceInfo>> {
    let provider = registry().provider(backend)?;
    provider.devices()
}

/// The device of a name: a backend, or a backend and a device, as in `"cuda:1"` (see [`DeviceOptions::device`]), or several
/// GPUs that share every system, as in `"cuda:0,1"`, or the CPU as several ranks, as in `"ranks:4"` (see [`DeviceOptions::ranks`]). As long as somebody holds it, everybody who asks for the same
/// name gets the same device.
///
/// ```
/// let device = lacuna::open("cpu")?;
/// assert_eq!(device.info().backend, "cpu");
/// assert!(lacuna::open("abacus").is_err());
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// [`Error::Argument`] for an unknown name, with those that there are; [`Error::Unsupported`] if the backend is not built in;
/// [`Error::Device`] if the device cannot be opened.
pub fn open(name: &str) -> Result<Device> {
    open_with(name, DeviceOptions::default())
}

/// [`open`] with options.
///
/// ```
/// use lacuna::{DeviceOptions, open_with};
///
/// let device = open_with("cpu", DeviceOptions::default().threads(2))?;
/// assert_eq!(device.info().units, 2);
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// As [`open`].
pub fn open_with(name: &str, options: DeviceOptions) -> Result<Device> {
    let (backend, options) = match name.split_once(':') {
        Some(("ranks", count)) => ("cpu", options.ranks(ranks(count)?)),
        None if name == "ranks" => ("cpu", options.ranks(ranks("")?)),
        Some((backend, device)) => (backend, options.device(device.to_owned())),
        None => (name, options),
    };
    check_ranks(backend, &options)?;
    check_list(backend, options.device.as_deref())?;
    let key = (backend.to_owned(), options);
    let known = |registry: &Registry| registry.open.get(&key).and_then(WeakDevice::upgrade);
    let provider = {
        let registry = registry();
        let provider = registry.provider(backend)?;
        if let Some(device) = known(&registry) {
            return Ok(device);
        }
        provider
    };
    let device = Device::from_box(provider.open(&key.1)?);
    let mut registry = registry();
    if let Some(device) = known(&registry) {
        return Ok(device); // another thread was faster
    }
    registry.open.retain(|_, device| device.upgrade().is_some());
    registry.open.insert(key, device.downgrade());
    Ok(device)
}

/// The number of ranks in a name.
fn ranks(text: &str) -> Result<usize> {
    text.parse().map_err(|_| Error::Argument {
        what: "ranks".into(),
        message: format!("expected `ranks:` and a number, as in `ranks:4`, got `{text}`"),
    })
}

/// Fails unless the backend can be divided in as many ranks as the options ask for.
fn check_ranks(backend: &str, options: &DeviceOptions) -> Result<()> {
    let Some(ranks) = options.ranks else { return Ok(()) };
    let refuse = |message| Err(Error::Argument { what: "ranks".into(), message });
    if !(1..=MOST_RANKS).contains(&ranks) {
        return refuse(format!("expected 1 to {MOST_RANKS}, got {ranks}"));
    }
    if backend != "cpu" {
        return refuse(format!("they are threads of the backend `cpu`; got the backend `{backend}`"));
    }
    if let Some(device) = options.device.as_deref().filter(|device| *device != "auto") {
        return refuse(format!("they take the place of a device; got the device `{device}` too"));
    }
    if cfg!(feature = "ranks") {
        return Ok(());
    }
    Err(Error::Unsupported {
        operation: format!("{ranks} ranks"),
        message: "this build has none; turn on the feature `ranks` of the crate `lacuna`".into(),
    })
}

/// The device for everybody in this process who names none: the first backend of [`backends`] that is built in and has a
/// device other than the CPU; otherwise the CPU, which `cpu` drives best. It stays open until the process ends.
///
/// # Errors
/// [`Error::Unsupported`] if no backend is built in, [`Error::Device`] if none has a device.
pub fn default_device() -> Result<Device> {
    chosen_default().map(|(device, _)| device)
}

/// The [`default_device`], and what was passed over, in words; empty if nothing was.
pub(crate) fn chosen_default() -> Result<(Device, String)> {
    let chosen = registry().default.clone();
    if let Some(chosen) = chosen {
        return Ok(chosen);
    }
    let names: Vec<&str> = OWN.iter().filter(|(.., built_in)| *built_in).map(|(name, ..)| *name).collect();
    let (device, passed) = preferred(&names, devices, open)?;
    Ok(registry().default.get_or_insert((device, passed)).clone())
}

/// What `open` makes of the backend to use if none is named, and why those before it were passed over.
fn preferred<D>(
    names: &[&str],
    devices: impl Fn(&str) -> Result<Vec<DeviceInfo>>,
    open: impl Fn(&str) -> Result<D>,
) -> Result<(D, String)> {
    let Some((last, others)) = names.split_last() else {
        return Err(Error::Unsupported {
            operation: "the default device".into(),
            message:
                "no backend is built in; turn on the feature `cpu`, `cuda` or `opencl` of the crate `lacuna`"
                    .into(),
        });
    };
    let processor = |device: &DeviceInfo| device.details.contains(&("kind", "cpu".into()));
    let mut passed = Vec::new();
    for name in others {
        match devices(name).map(|found| found.iter().any(|device| !processor(device))) {
            Ok(true) => match open(name) {
                Ok(device) => return Ok((device, passed.join("; "))),
                Err(error) => passed.push(format!("{name}: {error}")),
            },
            Ok(false) => passed.push(format!("{name} has no device but the CPU")),
            Err(error) => passed.push(format!("{name}: {error}")),
        }
    }
    Ok((open(last)?, passed.join("; ")))
}

/// Where a system is solved: see [`LinearSystem::on`](crate::LinearSystem::on).
#[derive(Clone, Debug, Default)]
pub enum Place {
    /// On the [`default_device`].
    #[default]
    Default,
    /// On the device of a name: see [`open`].
    Named(String),
    /// On a device that is open.
    Device(Device),
}

impl Place {
    /// The device, and what was passed over if it was chosen.
    pub(crate) fn open(&self) -> Result<(Device, String)> {
        match self {
            Place::Default => chosen_default(),
            Place::Named(name) => open(name).map(|device| (device, String::new())),
            Place::Device(device) => Ok((device.clone(), String::new())),
        }
    }
}

impl From<&str> for Place {
    fn from(name: &str) -> Self {
        Place::Named(name.into())
    }
}
impl From<String> for Place {
    fn from(name: String) -> Self {
        Place::Named(name)
    }
}
impl From<Device> for Place {
    fn from(device: Device) -> Self {
        Place::Device(device)
    }
}
impl From<&Device> for Place {
    fn from(device: &Device) -> Self {
        Place::Device(device.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(name: &str, operation: &str) -> Error {
        Error::Device { device: name.into(), operation: operation.into(), message: "no driver".into() }
    }

    #[test]
    fn the_processor_is_left_to_its_own_backend() {
        let first = |names: &[&'static str], of_opencl: &[&str], opens: &[&str]| {
            let of_kind = |kind: &&str| {
                DeviceInfo::new("opencl", "a device", 1).details(vec![("kind", kind.to_string())])
            };
            let devices = |name: &str| match name {
                "opencl" => Ok(of_opencl.iter().map(of_kind).collect()),
                name => Err(failure(name, "listing")),
            };
            let open = |name: &str| match opens.contains(&name) {
                true => Ok(name.to_owned()),
                false => Err(failure(name, "opening")),
            };
            preferred(names, devices, open)
        };
        let all = ["cuda", "opencl", "cpu"];
        let without_cuda = "cuda: cuda: listing: no driver";
        assert_eq!(first(&all, &["cpu", "gpu"], &all).unwrap(), ("opencl".into(), without_cuda.into()));
        let (name, passed) = first(&all, &["cpu"], &all).unwrap();
        assert_eq!(name, "cpu");
        assert!(passed.ends_with("; opencl has no device but the CPU"), "{passed}");
        let (name, passed) = first(&all, &["gpu"], &["cpu"]).unwrap();
        assert_eq!(
            (name.as_str(), passed),
            ("cpu", format!("{without_cuda}; opencl: opencl: opening: no driver"))
        );
        assert_eq!(first(&all, &[], &all).unwrap().0, "cpu");
        assert_eq!(first(&all[..2], &["cpu"], &all).unwrap().0, "opencl");
        assert_eq!(first(&all[..1], &[], &all).unwrap(), ("cuda".into(), String::new()));
        assert!(first(&all[..1], &[], &[]).unwrap_err().to_string().contains("opening"));
        assert!(first(&[], &[], &all).unwrap_err().to_string().contains("turn on the feature"));
    }
}
