//! The method and the preconditioner of a system: left open, by name, or as values.
use crate::{Given, Method, Preconditioner};
use lacuna_engine::{LinOp, Scalar};

/// A method: `"auto"`, `"tune"`, a name with options as `"gmres:restart=50"`, or a [`Method`], a function that records one
/// included.
pub enum MethodChoice<T: Scalar> {
    /// Chosen for the matrix.
    Auto,
    /// What solved a matrix of this structure fastest before, if that is remembered, else chosen.
    Tune,
    /// By name.
    Named(String),
    /// A value.
    Own(Box<dyn Method<T>>),
}

/// A preconditioner: `"auto"`, a name with options as `"amg:coarsest=100"`, or a [`Preconditioner`].
pub enum PreconditionerChoice<T: Scalar> {
    /// Chosen for the matrix.
    Auto,
    /// By name.
    Named(String),
    /// A value.
    Own(Box<dyn Preconditioner<T>>),
}

impl<T: Scalar> MethodChoice<T> {
    /// Whether it is left open.
    pub fn is_open(&self) -> bool {
        matches!(self, MethodChoice::Auto | MethodChoice::Tune)
    }
}

impl<T: Scalar> From<&str> for MethodChoice<T> {
    fn from(name: &str) -> Self {
        match name {
            "auto" => MethodChoice::Auto,
            "tune" => MethodChoice::Tune,
            name => MethodChoice::Named(name.into()),
        }
    }
}

impl<T: Scalar> PreconditionerChoice<T> {
    /// Whether it needs no matrix.
    pub(super) fn is_operator(&self) -> bool {
        matches!(self, PreconditionerChoice::Own(own) if own.operator().is_some())
    }
}

impl<T: Scalar> From<&str> for PreconditionerChoice<T> {
    fn from(name: &str) -> Self {
        match name {
            "auto" => PreconditionerChoice::Auto,
            name => PreconditionerChoice::Named(name.into()),
        }
    }
}

/// What names or is a method: text, a [`Method`], a function, or a [`MethodChoice`]. `By` tells the compiler which, and is inferred.
pub trait IntoMethod<T: Scalar, By> {
    /// The choice.
    fn into_method(self) -> MethodChoice<T>;
}

/// What names or is a preconditioner: text, a [`Preconditioner`], a [`LinOp`], or a [`PreconditionerChoice`]. `By` as in [`IntoMethod`].
pub trait IntoPreconditioner<T: Scalar, By> {
    /// The choice.
    fn into_preconditioner(self) -> PreconditionerChoice<T>;
}

/// Marks a choice given by name.
pub enum ByName {}
/// Marks a choice given by value.
pub enum ByValue {}
/// Marks a preconditioner given as an operator.
pub enum ByOperator {}
/// Marks a choice given as what it is.
pub enum AsChoice {}

macro_rules! into_choice {
    ($($into:ident $function:ident $choice:ident $value:ident)*) => {$(
        impl<T: Scalar, N: AsRef<str>> $into<T, ByName> for N {
            fn $function(self) -> $choice<T> {
                self.as_ref().into()
            }
        }
        impl<T: Scalar, V: $value<T> + 'static> $into<T, ByValue> for V {
            fn $function(self) -> $choice<T> {
                $choice::Own(Box::new(self))
            }
        }
        impl<T: Scalar> $into<T, AsChoice> for $choice<T> {
            fn $function(self) -> $choice<T> {
                self
            }
        }
    )*};
}
into_choice! {
    IntoMethod into_method MethodChoice Method
    IntoPreconditioner into_preconditioner PreconditionerChoice Preconditioner
}

impl<T: Scalar, O: LinOp<T> + Send + 'static> IntoPreconditioner<T, ByOperator> for O {
    fn into_preconditioner(self) -> PreconditionerChoice<T> {
        PreconditionerChoice::Own(Box::new(Given(self)))
    }
}
