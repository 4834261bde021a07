//! Incomplete factorisation with a threshold and pivoting.
use super::adjoint::{self, ADJOINT, kept_adjoint};
use super::triangles::{Factors, Solves, name_with};
use crate::named::{OptionInfo, Settings};
use crate::{Handles, Parts, PrecondInfo, Preconditioner, Setup};
use lacuna_engine::{Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::algebra::build_rows;
use lacuna_formats::factor::{self, IlutOptions};
use lacuna_formats::{Csr, interrupt};
use std::any::Any;
use std::borrow::Cow;

/// `M = (L U)⁻¹` with `L U ≈ A`. Small entries are dropped, pivot rows are chosen by the size of their
/// entries, rows and columns are scaled by powers of two, and columns are ordered to keep the factors sparse.
///
/// * Needs: nothing of the matrix. Meant for zeros on the diagonal, and for indefinite and badly scaled
///   matrices. A column without a pivot is given one, which is reported.
/// * Cost of an application: two triangular solves, and a product that permutes the elements. Storage: the
///   entries kept, up to `fill` times those of the matrix, the permutation, and two vectors; twice that, but
///   for the vectors, with the adjoint (`adjoint=yes`).
/// * Set-up: one thread. New values on the same pattern keep the entries, the pivots and the scaling; if a
///   pivot is then nearly zero, its row is named in an error.
/// * Reference: Saad 1994, doi:10.1002/nla.1680010405; Li and Shao 2011, doi:10.1145/1916461.1916467.
#[derive(Default)]
pub struct Ilut {
    options: IlutOptions,
    /// Whether the adjoint is stored too.
    adjoint: bool,
    /// The [`factor::Ilut`] of the last set-up, in double precision.
    made: Option<Box<dyn Any + Send>>,
}

impl Ilut {
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: "ilut",
        about: "incomplete LU with pivoting and a threshold; for general and indefinite matrices",
        options: &[
            OptionInfo { key: "drop", default: "0.001", about: "entries below it are dropped, 0 to 1" },
            OptionInfo { key: "fill", default: "10", about: "the most that entries grow by, from 1 on" },
            OptionInfo {
                key: "pivot",
                default: "0.1",
                about: "part of the largest that keeps the diagonal, 0 to 1",
            },
            OptionInfo { key: "order", default: "degree", about: "of the columns: degree or natural" },
            ADJOINT,
        ],
        needs_diagonal: false,
        needs_hermitian: false,
        needs_stencil: false,
    };

    /// With the given options.
    pub fn new(options: IlutOptions) -> Self {
        Ilut { options, ..Ilut::default() }
    }

    /// Stores the adjoint too, for methods with products by the adjoint.
    pub fn with_adjoint(mut self) -> Self {
        self.adjoint = true;
        self
    }

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        let part =
            |key: &str| settings.number(key, "a number from 0 to 1", |v: &f64| (0.0..=1.0).contains(v));
        let orders = [("degree", true), ("natural", false)];
        let options = IlutOptions::default()
            .drop(part("drop")?)
            .fill(settings.number("fill", "a number from 1 on", |f: &f64| *f >= 1.0)?)
            .threshold(part("pivot")?)
            .ordered(settings.choice("order", &orders)?.unwrap_or(true));
        Ok(Ilut { options, adjoint: adjoint::named(settings)?, made: None })
    }
}

/// What the factors need on a device: both, and the product that permutes and scales the elements; then the
/// adjoint of that product, and those of the factors.
fn parts<T: Scalar>(a: &Csr<T>, f: &factor::Ilut<T::Wide>, adjoint: bool) -> Result<Parts<T>> {
    let n = a.rows();
    let two = |exponent: i32| T::one().scale_by_power_of_two(exponent);
    // Step p is element `rows[p]` of the vectors, so that the solves read r in place. Scaling the rows of L
    // by the row scales of the matrix scales r.
    let of_row = |p: usize| f.row_exponents[f.rows[p] as usize];
    let scaled = |(p, _, v): (usize, usize, T::Wide)| v.scale_by_power_of_two(-of_row(p));
    let lower = f.lower.with_values(f.lower.entries().map(scaled).collect())?;
    let lower = Csr::<T>::rounded_from("ilut", lower)?;
    interrupt::check()?;
    let upper = Csr::<T>::rounded("ilut", &f.upper)?;
    let reciprocals: Vec<T> = (0..n).map(|p| two(of_row(p))).collect();
    interrupt::check()?;
    let factors = Factors {
        lower: &lower,
        lower_reciprocals: Some(&reciprocals),
        upper: &upper,
        upper_reciprocals: None,
        names: Some(&f.rows),
    };
    let mut from = vec![0u32; n];
    f.columns.iter().zip(&f.rows).for_each(|(&column, &row)| from[column as usize] = row);
    let order = build_rows("ilut", n, n, a.row_shares(), |run, out| {
        for j in run {
            out.row(&[from[j]], &[two(f.column_exponents[j])]);
        }
    })?;
    let growth = (f.lower.nnz() + f.upper.nnz()) as f64 / a.nnz().max(1) as f64;
    let parts = factors.parts(Solves::Levels, false)?.scratch(n);
    let parts = parts.report("entries", format!("{growth:.2} times those of the matrix"));
    let parts = match &f.replaced[..] {
        [] => parts,
        [first, ..] => parts.report(
            "pivots set",
            format!("{}, the first in column {first} (counted from 0), which had none", f.replaced.len()),
        ),
    };
    if !adjoint {
        return Ok(parts.matrix(order));
    }
    let turned = order.adjoint();
    factors.add_adjoint(parts.matrix(order).matrix(turned), Solves::Levels)
}

impl<T: Scalar> Preconditioner<T> for Ilut {
    fn name(&self) -> Cow<'static, str> {
        let (own, usual) = (self.options, IlutOptions::default());
        let mut said = Vec::new();
        let mut say = |differs: bool, what: String| said.extend(differs.then_some(what));
        say(own.drop != usual.drop, format!("drop={}", own.drop));
        say(own.fill != usual.fill, format!("fill={}", own.fill));
        say(own.threshold != usual.threshold, format!("pivot={}", own.threshold));
        say(!own.ordered, "order=natural".into());
        said.extend(adjoint::said(self.adjoint));
        name_with("ilut", said)
    }
    fn keeps_choices(&self) -> bool {
        true
    }
    fn set_up(&mut self, a: &Csr<T>, setup: &mut Setup<'_>) -> Result<Parts<T>> {
        setup.check()?;
        let made = self.made.as_ref().filter(|_| setup.is_update());
        if let Some(made) = made.and_then(|any| any.downcast_ref::<factor::Ilut<T::Wide>>()) {
            let f = made.refactored(&*a.wide()?)?;
            setup.check()?;
            return parts(a, &f, self.adjoint);
        }
        let f = factor::ilut(&*a.wide()?, &self.options, Some(&mut || setup.check()))?;
        setup.check()?;
        let parts = parts(a, &f, self.adjoint)?;
        self.made = Some(Box::new(f));
        Ok(parts)
    }
    fn outweighs_product(&self) -> bool {
        true
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        let ([lower, upper, order], [s, t]) = (on.matrices(), on.scratch());
        k.tri_solve(lower, r, s, Pass::nothing());
        k.tri_solve(upper, s, t, Pass::nothing());
        k.spmv_dot(&order, t, z, then);
    }
    kept_adjoint!(|_, k, on, [r, z], then| {
        let ([_, _, _, order, upper, lower], [s, t]) = (on.matrices(), on.scratch());
        k.spmv_dot(&order, r, s, Pass::nothing());
        k.tri_solve(upper, s, t, Pass::nothing());
        k.tri_solve(lower, t, z, then);
    });
}
