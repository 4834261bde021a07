//! Choice of device, and how to run on it.
use lacuna_engine::{Error, Result};

/// Selects a device among all platforms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first GPU or accelerator, else the first CPU; see [`crate::devices`] for their order.
    #[default]
    Auto,
    /// The first GPU or accelerator.
    Gpu,
    /// The first CPU.
    Cpu,
    /// By index in the list of [`crate::devices`].
    Index(usize),
    /// The first whose name or platform contains this, ignoring case.
    Name(String),
}

impl std::str::FromStr for DeviceChoice {
    type Err = std::convert::Infallible;
    /// `auto`, `gpu`, `cpu`, a number, or a part of a name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.trim() {
            "" | "auto" => DeviceChoice::Auto,
            "gpu" => DeviceChoice::Gpu,
            "cpu" => DeviceChoice::Cpu,
            other => match other.parse() {
                Ok(index) => DeviceChoice::Index(index),
                Err(_) => DeviceChoice::Name(other.into()),
            },
        })
    }
}

/// How a program is run; the bits are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The fastest mode available for the device and the size of the system: launches while a generated
    /// kernel compiles, that kernel from the next solve on.
    #[default]
    Auto,
    /// A kernel generated for the program runs the whole loop in one launch. Planning waits for the driver's
    /// compiler, which takes one to three seconds on an H200, once for each method and number type: binaries
    /// are cached on disk. A program for which no kernel can be generated runs by launches. Not for
    /// [`Shape::Cpu`].
    Jit,
    /// One launch for each operation, with rounds of iterations queued ahead.
    Launches,
    /// The whole loop in one work-group. Only for [`Shape::Cpu`].
    OneGroup,
}

/// How kernels divide their work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// By the kind of device.
    #[default]
    Auto,
    /// One work-item for each element.
    Gpu,
    /// One work-item for each segment of 256 elements, in loops that the compiler can vectorise.
    Cpu,
}

/// Settings of the backend. [`OpenClOptions::from_env`] reads them from the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenClOptions {
    /// Which device to use.
    pub device: DeviceChoice,
    /// How a program is run.
    pub mode: Mode,
    /// How the kernels divide their work.
    pub shape: Shape,
    /// Number of work-groups that run at once, if the caller knows it; `None` uses what is known of the
    /// device. A generated kernel of several work-groups hangs on a device that runs fewer at once.
    pub together: Option<usize>,
}

lacuna_engine::setters!(OpenClOptions {
    device: DeviceChoice,
    mode: Mode,
    shape: Shape,
    together: impl Into<Option<usize>>,
});

impl OpenClOptions {
    /// Options from the environment: `LACUNA_OPENCL_DEVICE` (`auto`, `gpu`, `cpu`, a number, a part of a
    /// name), `LACUNA_OPENCL_MODE` (`auto`, `jit`, `launches`, `one-group`), `LACUNA_OPENCL_SHAPE` (`auto`,
    /// `gpu`, `cpu`) and `LACUNA_OPENCL_TOGETHER` (a number).
    ///
    /// # Errors
    /// [`Error::Argument`] for a value that is none of these.
    pub fn from_env() -> Result<Self> {
        let get = |name: &str| std::env::var(name).unwrap_or_default();
        let wrong = |what: &str, expected: &str| {
            let message = format!("expected {expected}, got `{}`", get(what));
            Error::Argument { what: what.into(), message }
        };
        let mode = match get("LACUNA_OPENCL_MODE").as_str() {
            "" | "auto" => Mode::Auto,
            "jit" => Mode::Jit,
            "launches" => Mode::Launches,
            "one-group" => Mode::OneGroup,
            _ => return Err(wrong("LACUNA_OPENCL_MODE", "auto, jit, launches or one-group")),
        };
        let shape = match get("LACUNA_OPENCL_SHAPE").as_str() {
            "" | "auto" => Shape::Auto,
            "gpu" => Shape::Gpu,
            "cpu" => Shape::Cpu,
            _ => return Err(wrong("LACUNA_OPENCL_SHAPE", "auto, gpu or cpu")),
        };
        let together = match get("LACUNA_OPENCL_TOGETHER").as_str() {
            "" => None,
            text => Some(text.parse().map_err(|_| wrong("LACUNA_OPENCL_TOGETHER", "a number"))?),
        };
        let device = get("LACUNA_OPENCL_DEVICE").parse().unwrap_or_default();
        Ok(OpenClOptions { device, mode, shape, together })
    }
}
