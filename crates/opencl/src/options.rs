//! Which device, and how to run on it.
use lacuna_core::{Error, Result};

/// Which device of all platforms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first GPU or accelerator, or else the first CPU; see [`crate::devices`] for their order.
    #[default]
    Auto,
    /// The first GPU or accelerator.
    Gpu,
    /// The first CPU.
    Cpu,
    /// By place in the list of [`crate::devices`].
    Index(usize),
    /// The first whose name or platform contains this, in any case.
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

/// How a program is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// By the size of the system and the kind of device.
    #[default]
    Auto,
    /// One launch for each operation, rounds of iterations queued ahead.
    Launches,
    /// The whole loop in one work-group.
    OneGroup,
    /// The whole loop in several work-groups that wait for each other. Only for a device that runs as many groups as
    /// it has units at once; elsewhere it would hang, so it is refused unless the device is known.
    Persistent,
}

/// How the kernels divide their work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// By the kind of device.
    #[default]
    Auto,
    /// A work-item for each element.
    Gpu,
    /// A work-item for each segment of 256 elements, in loops the compiler can vectorise.
    Cpu,
}

/// Whether a kernel is written and built for each program, its passes and formulas as plain code, or kernels that read
/// tables run all of them. NVIDIA's driver takes one to three seconds to build one (measured on an H200), once for each
/// method, number type and shape of launch: what is built is kept on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compile {
    /// For whole programs on GPUs.
    #[default]
    Auto,
    /// Wherever a program has such a form.
    Always,
    /// Nowhere.
    Never,
}

/// Settings of the backend. [`OpenClOptions::from_env`] reads them from the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenClOptions {
    /// Which device.
    pub device: DeviceChoice,
    /// How a program is run.
    pub mode: Mode,
    /// How the kernels divide their work.
    pub shape: Shape,
    /// Whether kernels are written for each program.
    pub compile: Compile,
    /// How many work-groups run at once, where the caller knows; `None` goes by what is known of the device.
    pub together: Option<usize>,
    /// Work-items of the group of [`Mode::OneGroup`] and [`Mode::Persistent`], in whole 256s and at least as many as its rows need;
    /// 0 chooses.
    pub group: usize,
    /// Rows up to which [`Mode::Auto`] runs the whole loop in one group; `None` chooses.
    pub one_group_rows: Option<usize>,
    /// Rows up to which [`Mode::Auto`] runs it in several groups, where the device is known; `None` chooses.
    pub persistent_rows: Option<usize>,
}

impl OpenClOptions {
    /// What the environment says: `LACUNA_OPENCL_DEVICE` (`auto`, `gpu`, `cpu`, a number, a part of a name),
    /// `LACUNA_OPENCL_MODE` (`auto`, `launches`, `one-group`, `persistent`), `LACUNA_OPENCL_SHAPE` (`auto`, `gpu`, `cpu`),
    /// `LACUNA_OPENCL_COMPILE` (`auto`, `always`, `never`), `LACUNA_OPENCL_TOGETHER`, `LACUNA_OPENCL_GROUP`,
    /// `LACUNA_OPENCL_ONE_GROUP_ROWS` and `LACUNA_OPENCL_PERSISTENT_ROWS` (numbers).
    ///
    /// # Errors
    /// [`Error::Argument`] for a value that is none of these.
    pub fn from_env() -> Result<Self> {
        let get = |name: &str| std::env::var(name).unwrap_or_default();
        let wrong = |what: &str, expected: &str| {
            let message = format!("expected {expected}, got `{}`", get(what));
            Error::Argument { what: what.into(), message }
        };
        let number = |what: &str| match get(what).as_str() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| wrong(what, "a number")),
        };
        let mode = match get("LACUNA_OPENCL_MODE").as_str() {
            "" | "auto" => Mode::Auto,
            "launches" => Mode::Launches,
            "one-group" => Mode::OneGroup,
            "persistent" => Mode::Persistent,
            _ => return Err(wrong("LACUNA_OPENCL_MODE", "auto, launches, one-group or persistent")),
        };
        let shape = match get("LACUNA_OPENCL_SHAPE").as_str() {
            "" | "auto" => Shape::Auto,
            "gpu" => Shape::Gpu,
            "cpu" => Shape::Cpu,
            _ => return Err(wrong("LACUNA_OPENCL_SHAPE", "auto, gpu or cpu")),
        };
        let compile = match get("LACUNA_OPENCL_COMPILE").as_str() {
            "" | "auto" => Compile::Auto,
            "always" => Compile::Always,
            "never" => Compile::Never,
            _ => return Err(wrong("LACUNA_OPENCL_COMPILE", "auto, always or never")),
        };
        Ok(OpenClOptions {
            compile,
            together: number("LACUNA_OPENCL_TOGETHER")?,
            device: get("LACUNA_OPENCL_DEVICE").parse().unwrap_or_default(),
            mode,
            shape,
            group: number("LACUNA_OPENCL_GROUP")?.unwrap_or(0),
            one_group_rows: number("LACUNA_OPENCL_ONE_GROUP_ROWS")?,
            persistent_rows: number("LACUNA_OPENCL_PERSISTENT_ROWS")?,
        })
    }
}
