//! The methods by name.
use crate::{BiCgStab, Cg, Gmres, Orthogonalization, PipelinedBiCgStab, PipelinedCg, Side, System};
use lacuna_core::{Error, Recorder, Result, Scalar};

/// A method: what records a solve.
///
/// A method of your own is a closure: `|k: &mut Recorder<f64>, s: &System<f64>| { … }` is one.
pub trait Method<T: Scalar> {
    /// The method's name.
    fn name(&self) -> &'static str;
    /// Records the solve of a system: scratch vectors and cells, the restart section, the iteration.
    fn record(&self, k: &mut Recorder<'_, T>, s: &System<'_, T>);
    /// The factor of the squared true residual between two confirmations that counts as progress.
    fn shrink(&self) -> f64 {
        0.25
    }
}

impl<T: Scalar, F: Fn(&mut Recorder<'_, T>, &System<'_, T>)> Method<T> for F {
    fn name(&self) -> &'static str {
        "custom"
    }
    fn record(&self, k: &mut Recorder<'_, T>, s: &System<'_, T>) {
        self(k, s);
    }
}

/// Settings that some methods take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Iterations of a GMRES cycle; 30 where not given.
    pub restart: Option<usize>,
    /// How GMRES makes its basis orthogonal.
    pub orthogonalization: Orthogonalization,
    /// Where GMRES puts the preconditioner.
    pub side: Side,
}

/// A method in the list.
#[derive(Clone, Copy, Debug)]
pub struct MethodInfo {
    /// The name it goes by.
    pub name: &'static str,
    /// What it is for, in a line.
    pub about: &'static str,
    /// Whether it needs a Hermitian positive definite operator.
    pub positive_definite: bool,
}

/// Every method, by name.
pub const METHODS: [MethodInfo; 5] = [
    MethodInfo {
        name: "cg",
        about: "conjugate gradients in two sweeps an iteration; Hermitian positive definite",
        positive_definite: true,
    },
    MethodInfo {
        name: "classical-cg",
        about: "conjugate gradients as in the textbook; Hermitian positive definite",
        positive_definite: true,
    },
    MethodInfo {
        name: "bicgstab",
        about: "stabilised bi-conjugate gradients in four sweeps an iteration; any square system",
        positive_definite: false,
    },
    MethodInfo {
        name: "classical-bicgstab",
        about: "stabilised bi-conjugate gradients as in the textbook; any square system",
        positive_definite: false,
    },
    MethodInfo {
        name: "gmres",
        about: "GMRES restarted every --restart iterations; any square system",
        positive_definite: false,
    },
];

/// The method of that name.
///
/// # Errors
/// [`Error::Argument`] where there is none, with the names there are.
pub fn method<T: Scalar>(name: &str, options: &Options) -> Result<Box<dyn Method<T>>> {
    let default = Gmres::default();
    Ok(match name {
        "cg" | "pipelined-cg" => Box::new(PipelinedCg),
        "classical-cg" => Box::new(Cg),
        "bicgstab" | "pipelined-bicgstab" => Box::new(PipelinedBiCgStab),
        "classical-bicgstab" => Box::new(BiCgStab),
        "gmres" => Box::new(Gmres {
            restart: options.restart.unwrap_or(default.restart),
            orthogonalization: options.orthogonalization,
            side: options.side,
        }),
        _ => {
            let names: Vec<_> = METHODS.iter().map(|m| m.name).collect();
            let message = format!("expected one of {}, got `{name}`", names.join(", "));
            return Err(Error::Argument { what: "method".into(), message });
        }
    })
}
