//! Options of the backend.
use lacuna_engine::{Error, Result};
use std::str::FromStr;

/// How a program is executed. All modes give equal bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// `Jit` if the program loops, a kernel can be generated for it and is compiled, else `Graph`; see
    /// [`Compile`].
    #[default]
    Auto,
    /// The whole program in one launch of a persistent kernel generated for it. Planning waits for the
    /// compiler.
    Jit,
    /// The kernels of several iterations, captured once and replayed; the device decides the control flow.
    Graph,
    /// One kernel launch for each operation; the device decides the control flow. For debugging.
    Stream,
}

impl Mode {
    /// Every mode with its name.
    pub const ALL: [(&'static str, Mode); 4] =
        [("auto", Mode::Auto), ("jit", Mode::Jit), ("graph", Mode::Graph), ("stream", Mode::Stream)];

    /// The name of this mode.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, m)| *m == self).map_or("", |(name, _)| name)
    }
}

impl FromStr for Mode {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, mode)| *mode).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|(name, _)| *name).collect();
            let message = format!("expected one of {}, got `{text}`", names.join(", "));
            Error::Argument { what: "mode".into(), message }
        })
    }
}

/// Whether [`Mode::Auto`] generates and compiles a kernel for each program that loops. Compiled kernels are
/// cached on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compile {
    /// If the compiler of the CUDA toolkit (NVRTC) is found. Planning does not wait for it: a plan runs as a
    /// graph until a background thread has compiled its kernel, with equal bits.
    #[default]
    Auto,
    /// Always: planning waits for the compiler; an error if there is none.
    Always,
    /// Never: only the driver is used.
    Never,
}

impl FromStr for Compile {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "" | "auto" => Ok(Compile::Auto),
            "always" => Ok(Compile::Always),
            "never" => Ok(Compile::Never),
            _ => {
                let message = format!("expected auto, always or never, got `{text}`");
                Err(Error::Argument { what: "compile".into(), message })
            }
        }
    }
}

/// How programs are to be executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) mode: Mode,
    pub(crate) compile: Compile,
}

/// Options of a [`Cuda`](crate::Cuda) backend. [`CudaOptions::default`] uses the environment variables
/// `LACUNA_CUDA_MODE`, `LACUNA_CUDA_DEVICE` and `LACUNA_CUDA_COMPILE` when the backend is opened.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CudaOptions {
    /// The index of the device, or a part of its name. Default: `LACUNA_CUDA_DEVICE`, else the first device.
    pub device: Option<String>,
    /// How programs are executed. Default: `LACUNA_CUDA_MODE`, else `auto`. A program that cannot run in the
    /// requested mode is refused when it is planned.
    pub mode: Option<Mode>,
    /// Whether kernels are generated for programs. Default: `LACUNA_CUDA_COMPILE`, else if a compiler is
    /// found.
    pub compile: Option<Compile>,
}

lacuna_engine::setters!(CudaOptions {
    device: impl Into<Option<String>>,
    mode: impl Into<Option<Mode>>,
    compile: impl Into<Option<Compile>>,
});

impl CudaOptions {
    pub(crate) fn device_name(&self) -> String {
        self.device.clone().or_else(|| std::env::var("LACUNA_CUDA_DEVICE").ok()).unwrap_or_else(|| "0".into())
    }
    pub(crate) fn wanted(&self) -> Result<Wanted> {
        fn chosen<X: FromStr<Err = Error> + Default>(option: Option<X>, variable: &str) -> Result<X> {
            match (option, std::env::var(variable)) {
                (Some(chosen), _) => Ok(chosen),
                (None, Ok(text)) => text.parse(),
                (None, Err(_)) => Ok(X::default()),
            }
        }
        Ok(Wanted {
            mode: chosen(self.mode, "LACUNA_CUDA_MODE")?,
            compile: chosen(self.compile, "LACUNA_CUDA_COMPILE")?,
        })
    }
}
