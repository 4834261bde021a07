//! What a caller asks for: settings that are left open, named, or given.
use super::{MethodChoice, PreconditionerChoice};
use crate::named::unknown;
use crate::{Combined, METHODS, Observer, Options, PRECONDITIONERS, Stop};
use crate::{method, name_of, preconditioner};
use lacuna_engine::{Error, Result, Scalar};
use lacuna_formats::Csr;
use std::sync::Arc;

/// A matrix, or what stands for it, and what is settled of its solver.
pub struct Request<T: Scalar, A = Arc<Csr<T>>> {
    /// The matrix.
    pub a: A,
    /// The method.
    pub method: MethodChoice<T>,
    /// The preconditioner.
    pub preconditioner: PreconditionerChoice<T>,
    /// The storage format by name, unless that is open.
    pub format: Option<String>,
    /// The order of rows and columns by name.
    pub reorder: String,
    /// How rows and columns are scaled, by name.
    pub scale: String,
    /// Whether the conjugate transpose is stored too.
    pub adjoint: bool,
    /// Settings of methods.
    pub options: Options,
    /// Stopping criteria.
    pub stop: Stop,
    /// Whether the method chosen first is the only one, and a result that falls short is not explained.
    pub strict: bool,
    /// Whether an open format of a small matrix is `csr` without a look at others.
    pub quick: bool,
    /// Who sees each iteration.
    pub observer: Option<Observer<T>>,
    /// The method and preconditioner that solved a matrix of this structure fastest, to be taken for what is open.
    pub remembered: Option<(String, String)>,
}

impl<T: Scalar> Request<T> {
    /// The default relative tolerance: 1e-8, or 1e-5 in single precision, whose unit roundoff of 6e-8 is
    /// magnified by the condition number of the matrix.
    pub const DEFAULT_RTOL: f64 = if T::EPSILON > 1e-10 { 1e-5 } else { 1e-8 };
}

impl<T: Scalar, A> Request<T, A> {
    /// Everything is open.
    pub fn new(a: A) -> Self {
        Request {
            a,
            method: MethodChoice::Auto,
            preconditioner: PreconditionerChoice::Auto,
            format: None,
            reorder: "none".into(),
            scale: "none".into(),
            adjoint: false,
            options: Options::default(),
            stop: Stop::default().rtol(<Request<T>>::DEFAULT_RTOL),
            strict: false,
            quick: false,
            observer: None,
            remembered: None,
        }
    }

    /// What it is for, and the same for something else.
    pub fn replace<B>(self, a: B) -> (A, Request<T, B>) {
        let Request {
            a: former,
            method,
            preconditioner,
            format,
            reorder,
            scale,
            adjoint,
            options,
            stop,
            strict,
            quick,
            observer,
            remembered,
        } = self;
        let same = Request {
            a,
            method,
            preconditioner,
            format,
            reorder,
            scale,
            adjoint,
            options,
            stop,
            strict,
            quick,
            observer,
            remembered,
        };
        (former, same)
    }
}

/// What a method and a preconditioner may be called besides the names of the lists.
const AUTOMATIC_METHODS: &[&str] = &["auto", "tune"];
const AUTOMATIC_PRECONDITIONERS: &[&str] = &["auto"];

/// Checks a text for a method: `auto`, `tune`, or a name with options.
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

/// Checks a text for a preconditioner: `auto`, or a name with options.
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

/// Checks the options of a combined method; they are its preconditioner's.
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
    Err(unknown(what, automatic.iter().chain(listed).copied(), text))
}

/// The error of an unknown name that is like no other, where a value can be given instead.
fn or_a_value(error: Error) -> Error {
    match error {
        Error::Argument { what, message } if !message.contains("did you mean") => {
            let message = format!("{message}; one of your own is given as a value, not by name");
            Error::Argument { what, message }
        }
        other => other,
    }
}

/// Replaces a method that is Richardson's iteration with a preconditioner by these two, and returns its name.
///
/// # Errors
/// [`Error::Argument`] for an unknown name, for an invalid option, and for a preconditioner beside a method that has
/// its own.
pub(super) fn combined<T: Scalar>(
    method: MethodChoice<T>,
    preconditioner: PreconditionerChoice<T>,
) -> Result<(MethodChoice<T>, PreconditionerChoice<T>, Option<&'static str>)> {
    let method = match method {
        MethodChoice::Tune => MethodChoice::Auto, // what is remembered is part of the request
        method => method,
    };
    let named = match &method {
        MethodChoice::Named(name) => {
            check_method_name(name).map_err(or_a_value)?;
            Combined::named(name)
        }
        _ => None,
    };
    if let PreconditionerChoice::Named(name) = &preconditioner {
        check_preconditioner_name(name).map_err(or_a_value)?;
    }
    match (named, preconditioner) {
        (None, preconditioner) => Ok((method, preconditioner, None)),
        (Some((combined, own)), PreconditionerChoice::Auto) => {
            check_own(&combined, &own)?;
            let richardson = MethodChoice::Named(Combined::METHOD.into());
            Ok((richardson, PreconditionerChoice::Named(own), Some(combined.name)))
        }
        (Some((combined, _)), _) => {
            let message = format!("method {} is a preconditioner itself; expected `auto`", combined.name);
            Err(Error::Argument { what: "preconditioner".into(), message })
        }
    }
}
