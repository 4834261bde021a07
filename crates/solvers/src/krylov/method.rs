//! The interface of a method, and the options that methods share.
use super::{Orthogonalization, Side};
use crate::named::{OptionInfo, Settings};
use crate::{Columns, PrecondInfo, System, preconditioner};
use lacuna_engine::{Recorder, Result, Scalar};

/// The reduction of the squared residual between two confirmations that counts as progress, unless a method says otherwise.
const SHRINK: f64 = 0.25;

/// A method: records the operations of a solve.
///
/// A method of your own is a closure: `|k: &mut Recorder<f64>, s: &System<f64>| { … }` is one.
pub trait Method<T: Scalar>: Send {
    /// Its name and what it needs. Provided: `custom`, which needs a square operator.
    fn info(&self) -> &'static MethodInfo {
        &MethodInfo::CUSTOM
    }
    /// The method's name.
    fn name(&self) -> &'static str {
        self.info().name
    }
    /// Records a solve: scratch vectors and cells, the restart section, the iteration.
    fn record(&self, k: &mut Recorder<'_, T>, s: &System<'_, T>);
    /// The form of the method that takes several right-hand sides at once. Provided: there is none.
    fn columns(&self) -> Option<&dyn ColumnMethod> {
        None
    }
    /// The reduction of the squared true residual between two confirmations that counts as progress, as a
    /// factor.
    fn shrink(&self) -> f64 {
        SHRINK
    }
    /// Whether it calls [`System::keep`] after its confirmations, which takes an extra vector. For methods
    /// that confirm often.
    fn keeps_best(&self) -> bool {
        false
    }
    /// Whether it estimates variances in [`System::variances`], which takes an extra vector.
    fn estimates_variances(&self) -> bool {
        false
    }
    /// Whether it reads [`System::norm2`], a bound that takes a pass over the matrix and is 0 otherwise.
    fn reads_norm(&self) -> bool {
        false
    }
    /// Whether it records products with `Aᴴ`; the operator must then provide its adjoint.
    fn needs_adjoint(&self) -> bool {
        self.info().adjoint
    }
    /// Whether it solves `min ‖b − A x‖` for a matrix of any shape. The residual that is confirmed, counted
    /// and reported is then that of the normal equations, `‖Aᴴ (b − A x)‖` relative to `‖Aᴴ b‖`.
    fn least_squares(&self) -> bool {
        self.info().least_squares()
    }
    /// The name of the variant that continues if this method stopped although the operator meets its needs:
    /// the textbook's, whose recurrences are less sensitive to rounding.
    fn fallback(&self) -> Option<&'static str> {
        None
    }
}

/// The form of a method that takes several right-hand sides at once. It is recorded alike in all number types.
pub trait ColumnMethod {
    /// Records the solve of all columns of a system.
    fn record_columns(&self, k: &mut Recorder<'_>, s: &Columns<'_>);
    /// Vectors of a basis that an iteration reads for each column, beside a few others: the more, the less
    /// the shared products save. Provided: none.
    fn basis(&self) -> usize {
        0
    }
}

impl<T: Scalar, F: Fn(&mut Recorder<'_, T>, &System<'_, T>) + Send> Method<T> for F {
    fn record(&self, k: &mut Recorder<'_, T>, s: &System<'_, T>) {
        self(k, s);
    }
}

/// Settings that some methods take.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
#[non_exhaustive]
pub struct Options {
    /// Iterations of a GMRES cycle; 30 by default.
    pub restart: Option<usize>,
    /// How GMRES orthogonalises its basis.
    pub orthogonalization: Orthogonalization,
    /// The side on which GMRES applies the preconditioner.
    pub side: Side,
}

lacuna_engine::setters!(Options {
    restart: impl Into<Option<usize>>,
    orthogonalization: Orthogonalization,
    side: Side,
});

/// What a method needs of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// It must be Hermitian and positive definite, and so must the preconditioner.
    PositiveDefinite,
    /// It must be Hermitian; the preconditioner must be Hermitian positive definite.
    Hermitian,
    /// It must be square.
    Square,
    /// It may be of any shape: least squares.
    Nothing,
    /// It may be of any shape, with the right-hand side in its range: the solution of least norm. A
    /// preconditioner would change the norm, so there **must** be none.
    Range,
}

/// A method in the list.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MethodInfo {
    /// Its name.
    pub name: &'static str,
    /// Its purpose, in one line.
    pub about: &'static str,
    /// What it needs of the operator.
    pub needs: Needs,
    /// Whether it needs products with `Aᴴ`, and with `Mᴴ` if there is a preconditioner.
    pub adjoint: bool,
    /// Its options, for `NAME:key=value,…`.
    pub options: &'static [OptionInfo],
}

impl MethodInfo {
    /// The entry of a method that is in no list.
    const CUSTOM: Self = Self::new("custom", "a method of one's own", Needs::Square);

    /// A method without options that needs no adjoint.
    pub const fn new(name: &'static str, about: &'static str, needs: Needs) -> Self {
        MethodInfo { name, about, needs, adjoint: false, options: &[] }
    }

    /// The same with products with the adjoint.
    #[must_use]
    pub const fn with_adjoint(self) -> Self {
        MethodInfo { adjoint: true, ..self }
    }

    /// The same with options.
    #[must_use]
    pub const fn with_options(self, options: &'static [OptionInfo]) -> Self {
        MethodInfo { options, ..self }
    }

    /// Whether it needs a Hermitian positive definite operator.
    pub fn positive_definite(&self) -> bool {
        self.needs == Needs::PositiveDefinite
    }
    /// Whether it needs a Hermitian operator, definite or not.
    pub fn hermitian(&self) -> bool {
        matches!(self.needs, Needs::PositiveDefinite | Needs::Hermitian)
    }
    /// Whether it solves least-squares problems.
    pub fn least_squares(&self) -> bool {
        matches!(self.needs, Needs::Nothing | Needs::Range)
    }
    /// Whether a preconditioner of the list provides what the method needs: its adjoint, if the method uses
    /// adjoints. A method for the solution of least norm takes none.
    pub fn accepts(&self, precond: &PrecondInfo) -> bool {
        if self.needs == Needs::Range {
            return precond.name == "none";
        }
        let made = preconditioner::<f64>(precond.name).ok().flatten();
        !self.adjoint || made.is_none_or(|m| m.knows_adjoint())
    }
}

/// A method in the list. It is a [`Method`] in every number type, and recorded by code that is compiled once: handles know their
/// number type, and real numbers in formulas are rounded to it.
pub(super) trait Listed: Default {
    /// Its entry.
    const INFO: MethodInfo;

    /// The method with the options of a name, which take precedence over the settings.
    fn named(_: &Settings<'_>, _: &Options) -> Result<Self> {
        Ok(Self::default())
    }
    /// See [`Method::record`].
    fn record(&self, k: &mut Recorder<'_>, s: &System<'_>);
    /// See [`Method::columns`].
    fn columns(&self) -> Option<&dyn ColumnMethod> {
        None
    }
    /// See [`Method::shrink`].
    fn shrink(&self) -> f64 {
        SHRINK
    }
    /// See [`Method::keeps_best`].
    fn keeps_best(&self) -> bool {
        false
    }
    /// See [`Method::estimates_variances`].
    fn estimates_variances(&self) -> bool {
        false
    }
    /// See [`Method::reads_norm`].
    fn reads_norm(&self) -> bool {
        false
    }
    /// See [`Method::fallback`].
    fn fallback(&self) -> Option<&'static str> {
        None
    }
}
