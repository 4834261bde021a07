//! The settings of a system that may be left to the library, named, or given.
use lacuna_engine::{Error, Result, Scalar};
use lacuna_solvers::{
    Combined, METHODS, Method, Options, PRECONDITIONERS, Preconditioner, method, name_of, preconditioner,
};

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

/// What [`LinearSystem::method`](crate::LinearSystem::method) and
/// [`LinearSystem::preconditioner`](crate::LinearSystem::preconditioner) accept besides names of the lists.
const AUTOMATIC_METHODS: &[&str] = &["auto", "tune"];
const AUTOMATIC_PRECONDITIONERS: &[&str] = &["auto"];

/// Checks a text for [`LinearSystem::method`](crate::LinearSystem::method).
///
/// # Errors
/// [`Error::Argument`] for an unknown name, with the names there are; for an unknown key or an invalid value.
pub fn check_method(text: &str) -> Result<()> {
    if AUTOMATIC_METHODS.contains(&text) {
        return Ok(());
    }
    check_method_name(text)?;
    match Combined::named(text) {
        Some((combined, own)) => check_own(&combined, &own),
        None => method::<f64>(text, &Options::default()).map(drop),
    }
}

/// Checks a text for [`LinearSystem::preconditioner`](crate::LinearSystem::preconditioner).
///
/// # Errors
/// As [`check_method`].
pub fn check_preconditioner(text: &str) -> Result<()> {
    if AUTOMATIC_PRECONDITIONERS.contains(&text) {
        return Ok(());
    }
    check_preconditioner_name(text)?;
    preconditioner::<f64>(text).map(drop)
}

/// Checks the options of a combined method, which its preconditioner takes.
fn check_own(combined: &Combined, own: &str) -> Result<()> {
    preconditioner::<f64>(own).map(drop).map_err(|error| match error {
        Error::Argument { message, .. } => {
            Error::Argument { what: format!("method {}", combined.name), message }
        }
        other => other,
    })
}

fn check_method_name(text: &str) -> Result<()> {
    let listed: Vec<_> = METHODS.iter().map(|m| m.name).chain(Combined::all().map(|m| m.name)).collect();
    check_name("method", AUTOMATIC_METHODS, &listed, text)
}

fn check_preconditioner_name(text: &str) -> Result<()> {
    let listed: Vec<_> = PRECONDITIONERS.iter().map(|p| p.name).collect();
    check_name("preconditioner", AUTOMATIC_PRECONDITIONERS, &listed, text)
}

/// Checks that a text, with or without options, begins with a name of a list.
fn check_name(what: &str, automatic: &[&str], listed: &[&str], text: &str) -> Result<()> {
    if listed.contains(&name_of(text)) {
        return Ok(());
    }
    let names = [automatic, listed].concat().join(", ");
    Err(Error::Argument { what: what.into(), message: format!("expected one of {names}, got `{text}`") })
}

/// Replaces a method that is Richardson's iteration with a preconditioner by these two, and returns its name.
///
/// # Errors
/// [`Error::Argument`] for an unknown name, for an invalid option, and for a preconditioner beside a method that has
/// its own.
pub(crate) fn combined<T: Scalar>(
    method: MethodChoice<T>,
    preconditioner: PreconditionerChoice<T>,
) -> Result<(MethodChoice<T>, PreconditionerChoice<T>, Option<&'static str>)> {
    let named = match &method {
        MethodChoice::Named(name) => {
            check_method_name(name)?;
            Combined::named(name)
        }
        _ => None,
    };
    if let PreconditionerChoice::Named(name) = &preconditioner {
        check_preconditioner_name(name)?;
    }
    match (named, preconditioner) {
        (None, preconditioner) => Ok((method, preconditioner, None)),
        (Some((combined, own)), PreconditionerChoice::Auto) => {
            check_own(&combined, &own)?;
            let richardson = MethodChoice::Named(RICHARDSON.into());
            Ok((richardson, PreconditionerChoice::Named(own), Some(combined.name)))
        }
        (Some((combined, _)), _) => {
            let message = format!("method {} is a preconditioner itself; expected `auto`", combined.name);
            Err(Error::Argument { what: "preconditioner".into(), message })
        }
    }
}
