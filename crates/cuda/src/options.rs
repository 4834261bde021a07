//! How a backend computes.
use lacuna_core::{Error, Result};
use std::str::FromStr;

/// How a program is executed. Every way gives the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// By size: one block, a grid, or graphs.
    #[default]
    Auto,
    /// One operation after the other, the host deciding between them: for debugging.
    Steps,
    /// A kernel launch for each operation; the device decides the flow.
    Stream,
    /// As `Stream`, but the kernels of several iterations are captured once and replayed.
    Graph,
    /// The whole program in one kernel of one block.
    Block,
    /// The whole program in one kernel over the whole device.
    Grid,
}

impl Mode {
    /// Every mode with its name.
    pub const ALL: [(&'static str, Mode); 6] = [
        ("auto", Mode::Auto),
        ("steps", Mode::Steps),
        ("stream", Mode::Stream),
        ("graph", Mode::Graph),
        ("block", Mode::Block),
        ("grid", Mode::Grid),
    ];

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

/// Whether a kernel is written and compiled for each program that runs as one kernel, its passes and formulas as plain
/// code, or one kernel that reads tables runs all of them. What is compiled is kept on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compile {
    /// Where the compiler of the CUDA toolkit (NVRTC) is found and takes the text.
    #[default]
    Auto,
    /// Always: an error where there is no compiler.
    Always,
    /// Never: the driver alone is used.
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

/// How a [`Cuda`](crate::Cuda) computes. [`CudaOptions::default`] honours the environment variables `LACUNA_CUDA_MODE`,
/// `LACUNA_CUDA_DEVICE` and `LACUNA_CUDA_COMPILE` when the backend is opened.
#[derive(Clone, Debug, Default)]
pub struct CudaOptions {
    /// The index of the device, or a part of its name; `LACUNA_CUDA_DEVICE`, else the first, where not given.
    pub device: Option<String>,
    /// How programs are executed; `LACUNA_CUDA_MODE`, else by size, where not given. A program that cannot run in the
    /// mode asked for is refused when it is planned.
    pub mode: Option<Mode>,
    /// Whether kernels are written for each program; `LACUNA_CUDA_COMPILE`, else where there is a compiler, where not
    /// given.
    pub compile: Option<Compile>,
}

impl CudaOptions {
    pub(crate) fn device(&self) -> String {
        self.device.clone().or_else(|| std::env::var("LACUNA_CUDA_DEVICE").ok()).unwrap_or_else(|| "0".into())
    }
    pub(crate) fn mode(&self) -> Result<Mode> {
        match (self.mode, std::env::var("LACUNA_CUDA_MODE")) {
            (Some(mode), _) => Ok(mode),
            (None, Ok(text)) => text.parse(),
            (None, Err(_)) => Ok(Mode::Auto),
        }
    }
    pub(crate) fn compile(&self) -> Result<Compile> {
        match (self.compile, std::env::var("LACUNA_CUDA_COMPILE")) {
            (Some(compile), _) => Ok(compile),
            (None, Ok(text)) => text.parse(),
            (None, Err(_)) => Ok(Compile::Auto),
        }
    }
}
