//! The settings of a system that may be left to the library, named, or given.
use lacuna_engine::{Error, Result, Scalar};
use lacuna_solvers::{Combined, Method, Preconditioner};

/// The method of a system.
pub(crate) enum MethodChoice<T: Scalar> {
    Auto,
    /// What solved a matrix of this structure before, else automatic.
    Tune,
    Named(String),
    Own(Box<dyn Method<T>>),
}

/// The preconditioner of a system.
pub(crate) enum PreconditionerChoice<T: Scalar> {
    Auto,
    Named(String),
    Own(Box<dyn Preconditioner<T>>),
}

/// The method of the combined ones.
pub(crate) const RICHARDSON: &str = "richardson";

/// Replaces a method that is Richardson's iteration with a preconditioner by these two.
pub(crate) fn combined<T: Scalar>(
    method: MethodChoice<T>,
    preconditioner: PreconditionerChoice<T>,
) -> Result<(MethodChoice<T>, PreconditionerChoice<T>)> {
    let named = match &method {
        MethodChoice::Named(name) => Combined::named(name),
        _ => None,
    };
    match (named, preconditioner) {
        (None, preconditioner) => Ok((method, preconditioner)),
        (Some((_, own)), PreconditionerChoice::Auto) => {
            Ok((MethodChoice::Named(RICHARDSON.into()), PreconditionerChoice::Named(own)))
        }
        (Some((combined, _)), _) => {
            let message = format!("method {} is a preconditioner itself; expected `auto`", combined.name);
            Err(Error::Argument { what: "preconditioner".into(), message })
        }
    }
}
