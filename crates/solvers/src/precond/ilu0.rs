//! Incomplete factorisations without fill-in.
use super::adjoint::{self, ADJOINT, kept_adjoint};
use super::triangles::{Factors, Solves, apply, apply_adjoint, name_with};
use crate::named::{OptionInfo, Settings};
use crate::{Handles, Parts, PrecondInfo, Preconditioner, Setup};
use lacuna_engine::{Error, Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::algebra::check_hermitian;
use lacuna_formats::factor::{Incomplete, Pivots, ic0, ilu0};
use lacuna_formats::{Csr, Permutation, by_colours, interrupt, parallel};
use std::borrow::Cow;

/// How small pivots are handled.
const PIVOTS: OptionInfo =
    OptionInfo { key: "pivots", default: "shift", about: "shift or refuse: for pivots that are almost zero" };

fn options(settings: &Settings<'_>) -> Result<(Solves, Pivots)> {
    let choices = [("shift", Pivots::Shift), ("refuse", Pivots::Refuse)];
    Ok((Solves::named(settings)?, settings.choice("pivots", &choices)?.unwrap_or(Pivots::Shift)))
}

fn name(name: &'static str, solves: Solves, pivots: Pivots, adjoint: bool) -> Cow<'static, str> {
    let refuses = (pivots == Pivots::Refuse).then(|| "pivots=refuse".into());
    name_with(name, solves.said().into_iter().chain(refuses).chain(adjoint::said(adjoint)).collect())
}

/// `M = (L U)⁻¹` with `L U ≈ A` on the pattern of `A`.
///
/// * Needs: nothing of the matrix. If a pivot is nearly zero, `A + α D` is factored instead and `α` is
///   reported, or with `pivots=refuse` the row is named in an error.
/// * Cost of an application: two triangular solves with half the entries each, level by level; colouring
///   needs few levels. With sweeps, two products with half the entries per sweep, which is far from exact
///   under strong convection. Storage: the entries of the matrix, and a vector (two, and the diagonals, for
///   sweeps); twice the entries and the diagonals with the adjoint (`adjoint=yes`).
/// * Set-up: one thread. New values: the same cost again.
/// * Reference: Meijerink and van der Vorst 1977, doi:10.1090/S0025-5718-1977-0438681-4; sweeps by Anzt, Chow
///   and Dongarra 2015, doi:10.1007/978-3-662-48096-0_50.
#[derive(Clone, Copy, Debug)]
pub struct Ilu0 {
    /// How the factors are applied.
    pub solves: Solves,
    /// How small pivots are handled.
    pub pivots: Pivots,
    /// Whether the adjoint is stored too.
    pub adjoint: bool,
}

/// `M = (L Lᴴ)⁻¹` with `L Lᴴ ≈ A` on the pattern of the lower triangle of `A`.
///
/// * Needs: a Hermitian matrix. If a pivot is not positive, `A + α D` is factored instead and `α` is
///   reported, or with `pivots=refuse` the row is named in an error.
/// * Cost of an application, storage, set-up and references: as [`Ilu0`]. With one or two sweeps `M` may not be definite.
#[derive(Clone, Copy, Debug)]
pub struct Ic0 {
    /// How the factors are applied.
    pub solves: Solves,
    /// How pivots that are not positive are handled.
    pub pivots: Pivots,
}

impl Default for Ilu0 {
    fn default() -> Self {
        Ilu0 { solves: Solves::Levels, pivots: Pivots::Shift, adjoint: false }
    }
}
impl Default for Ic0 {
    fn default() -> Self {
        Ic0 { solves: Solves::Levels, pivots: Pivots::Shift }
    }
}

impl Ilu0 {
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: "ilu0",
        about: "incomplete LU factorisation without fill; for matrices that are not symmetric",
        options: &[Solves::SOLVE, Solves::SWEEPS, PIVOTS, ADJOINT],
        needs_diagonal: false,
        needs_hermitian: false,
        needs_stencil: false,
    };

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        let (solves, pivots) = options(settings)?;
        Ok(Ilu0 { solves, pivots, adjoint: adjoint::named(settings)? })
    }
}

impl Ic0 {
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: "ic0",
        about: "incomplete Cholesky factorisation without fill; for Hermitian positive definite matrices",
        options: &[Solves::SOLVE, Solves::SWEEPS, PIVOTS],
        needs_diagonal: true,
        needs_hermitian: true,
        needs_stencil: false,
    };

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        options(settings).map(|(solves, pivots)| Ic0 { solves, pivots })
    }
}

/// Factors a matrix in the order that the solves need, and adds a report.
fn factored<T: Scalar>(
    a: &Csr<T>,
    solves: Solves,
    operation: &str,
    factor: impl Fn(&Csr<T::Wide>) -> Result<Incomplete<T::Wide>>,
    parts: impl Fn(&Csr<T>, Option<&[u32]>) -> Result<Parts<T>>,
) -> Result<Parts<T>> {
    let colours = (solves == Solves::Colours).then(|| by_colours(a));
    let (made, names) = match &colours {
        None => (factor(&*a.wide()?)?, None),
        Some((order, _)) => {
            let made = factor(&*a.permuted(order)?.wide()?).map_err(|error| in_order(error, order))?;
            (made, Some(order.order()))
        }
    };
    interrupt::check()?;
    let rounded = Csr::<T>::rounded(operation, &made.factor).map_err(|error| match &colours {
        Some((order, _)) => in_order(error, order),
        None => error,
    })?;
    interrupt::check()?;
    let mut parts = parts(&rounded, names)?;
    if let Some((_, count)) = colours {
        parts = parts.report("colours", count);
    }
    if made.shift > 0.0 {
        parts = parts.report("shift", format!("{:.0e} of the diagonal: a pivot was almost zero", made.shift));
    }
    Ok(parts)
}

/// Maps an error about a row of a permuted matrix to the row of the original.
pub(super) fn in_order(error: Error, order: &Permutation) -> Error {
    let of = |i: usize| order.order().get(i).map_or(i, |&row| row as usize);
    match error {
        Error::Entry { operation, row, column, message } => {
            Error::Entry { operation, row: of(row), column: of(column), message }
        }
        other => other,
    }
}

impl<T: Scalar> Preconditioner<T> for Ilu0 {
    fn name(&self) -> Cow<'static, str> {
        name("ilu0", self.solves, self.pivots, self.adjoint)
    }
    fn set_up(&mut self, a: &Csr<T>, setup: &mut Setup<'_>) -> Result<Parts<T>> {
        let ones = vec![T::one(); a.rows()];
        let parts = |f: &Csr<T>, names: Option<&[u32]>| {
            let lower_reciprocals = Some(&ones[..]);
            let factors = Factors { lower: f, lower_reciprocals, upper: f, upper_reciprocals: None, names };
            factors.parts(self.solves, self.adjoint)
        };
        setup.check()?;
        let made = factored(a, self.solves, "ilu0", |a| ilu0(a, self.pivots), parts)?;
        setup.check().map(|()| made)
    }
    fn outweighs_product(&self) -> bool {
        true
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        apply(k, on, self.solves, [r, z], then);
    }
    kept_adjoint!(|ilu, k, on, rz, then| apply_adjoint(k, on, ilu.solves, rz, then));
}

impl<T: Scalar> Preconditioner<T> for Ic0 {
    fn name(&self) -> Cow<'static, str> {
        name("ic0", self.solves, self.pivots, false)
    }
    fn set_up(&mut self, a: &Csr<T>, setup: &mut Setup<'_>) -> Result<Parts<T>> {
        let parts = |lower: &Csr<T>, names: Option<&[u32]>| {
            let upper = lower.adjoint();
            let (lower_reciprocals, upper_reciprocals) = (None, None);
            let factors = Factors { lower, lower_reciprocals, upper: &upper, upper_reciprocals, names };
            factors.parts(self.solves, false)
        };
        setup.check()?;
        // The factorisation reads one triangle only.
        let (checked, made) = parallel::both(
            a.nnz(),
            || check_hermitian("preconditioner `ic0`", a),
            || factored(a, self.solves, "ic0", |a| ic0(a, self.pivots), parts),
        );
        let made = checked.and(made)?;
        setup.check().map(|()| made)
    }
    fn outweighs_product(&self) -> bool {
        true
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        apply(k, on, self.solves, [r, z], then);
    }
    fn is_hermitian(&self) -> bool {
        true
    }
}
