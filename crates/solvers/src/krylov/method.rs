//! The methods by name.
use super::{BiCgStab, Cg, ClassicalBiCgStab, ClassicalCg, Gmres, Orthogonalization, Side};
use crate::System;
use crate::named::{OptionInfo, Settings, name_of, unknown};
use lacuna_core::{Recorder, Result, Scalar};

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
    /// Whether it calls [`System::keep`] after its confirmations, for which it gets a vector: for a method that confirms often.
    fn keeps_best(&self) -> bool {
        false
    }
    /// The name of the form that goes on where this one stopped although the operator is what it needs: the textbook's, whose
    /// recurrences rounding takes longer to break.
    fn fallback(&self) -> Option<&'static str> {
        None
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
    /// Its options, for `NAME:key=value,…`.
    pub options: &'static [OptionInfo],
}

/// The options of [`Gmres`].
const GMRES: &[OptionInfo] = &[
    OptionInfo { key: "restart", default: "30", about: "iterations of a cycle" },
    OptionInfo {
        key: "orthogonalization",
        default: "selective",
        about: "selective, classical, classical-twice or modified Gram-Schmidt",
    },
    OptionInfo { key: "side", default: "right", about: "where the preconditioner goes: right or left" },
];

/// Every method, by name.
pub const METHODS: [MethodInfo; 5] = [
    MethodInfo {
        name: "cg",
        about: "conjugate gradients in two sweeps an iteration; Hermitian positive definite",
        positive_definite: true,
        options: &[],
    },
    MethodInfo {
        name: "classical-cg",
        about: "conjugate gradients as in the textbook; Hermitian positive definite",
        positive_definite: true,
        options: &[],
    },
    MethodInfo {
        name: "bicgstab",
        about: "stabilised bi-conjugate gradients in four sweeps an iteration; any square system",
        positive_definite: false,
        options: &[],
    },
    MethodInfo {
        name: "classical-bicgstab",
        about: "stabilised bi-conjugate gradients as in the textbook; any square system",
        positive_definite: false,
        options: &[],
    },
    MethodInfo {
        name: "gmres",
        about: "GMRES, restarted; any square system",
        positive_definite: false,
        options: GMRES,
    },
];

/// The method of a name with options, `NAME:key=value,…`, which go before the settings.
///
/// # Errors
/// [`Error::Argument`](lacuna_core::Error::Argument) where there is none of that name, with the names there are; for a
/// key it does not have, with those it has; for a value that is none.
pub fn method<T: Scalar>(text: &str, options: &Options) -> Result<Box<dyn Method<T>>> {
    let name = name_of(text);
    let info = METHODS.iter().find(|m| m.name == name);
    let info = info.ok_or_else(|| unknown("method", METHODS.iter().map(|m| m.name), name))?;
    let settings = Settings::parse("method", text, info.options)?;
    Ok(match name {
        "cg" => Box::new(Cg),
        "classical-cg" => Box::new(ClassicalCg),
        "bicgstab" => Box::new(BiCgStab),
        "classical-bicgstab" => Box::new(ClassicalBiCgStab),
        _ => Box::new(gmres(&settings, options)?),
    })
}

fn gmres(settings: &Settings<'_>, options: &Options) -> Result<Gmres> {
    use Orthogonalization::{Classical, ClassicalTwice, Modified, Selective};
    let ways = [
        ("selective", Selective),
        ("classical", Classical),
        ("classical-twice", ClassicalTwice),
        ("modified", Modified),
    ];
    let given = settings.given("restart").is_some();
    let named = settings.number("restart", "a whole number from 1", |restart| *restart > 0)?;
    Ok(Gmres {
        restart: options.restart.filter(|_| !given).unwrap_or(named),
        orthogonalization: settings.choice("orthogonalization", &ways)?.unwrap_or(options.orthogonalization),
        side: settings
            .choice("side", &[("right", Side::Right), ("left", Side::Left)])?
            .unwrap_or(options.side),
    })
}

#[cfg(test)]
mod tests {
    use super::{METHODS, Options, method};

    #[test]
    fn methods_go_by_the_names_they_are_listed_with() {
        for info in METHODS {
            assert_eq!(method::<f64>(info.name, &Options::default()).unwrap().name(), info.name);
        }
    }

    #[test]
    fn options_in_a_name_go_before_settings() {
        let error = |text: &str| method::<f64>(text, &Options::default()).err().unwrap().to_string();
        assert!(method::<f64>("gmres:restart=7,side=left", &Options::default()).is_ok());
        assert!(error("gmres:restart=0").contains("a whole number from 1"));
        assert!(error("gmres:side=up").contains("expected one of right, left"));
        assert!(error("cg:restart=3").contains("it has no options"));
        assert!(error("gmrs").contains("expected one of cg, classical-cg"));
    }
}
