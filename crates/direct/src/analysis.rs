//! Which kind of factors a matrix gets, and what they cost.
use crate::Number;
use crate::cost::Cost;
use crate::failure::{OPERATION, failed, unsupported};
use crate::hermitian::{HermitianPlan, lacks_pivots};
use crate::lu::LuPlan;
use crate::pivoted::PivotedPlan;
use lacuna_engine::{Complex64, Error, Result, compiled_here};
use lacuna_formats::Csr;
use lacuna_formats::algebra::check_hermitian;

/// A kind of factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// `L Lᴴ`, of the matrix or of its negative.
    Cholesky,
    /// `L B Lᴴ` with pivots of one and two rows within supernodes.
    Symmetric,
    /// LU of each block, column by column.
    Sparse,
    /// LU of each block, some by dense fronts.
    Fronts,
    /// LU with partial pivoting.
    Pivoted,
}

impl Kind {
    /// What the factors are, as a report says.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Cholesky => "Cholesky",
            Kind::Symmetric => "Bunch-Kaufman within supernodes",
            Kind::Sparse => "LU by columns",
            Kind::Fronts => "LU by fronts",
            Kind::Pivoted => "LU with partial pivoting",
        }
    }
}

/// The order of a matrix, the kind of factors that promises least time, and its cost.
#[derive(Debug)]
pub struct Analysis {
    pub(crate) plan: Plan,
    rows: usize,
}

/// Seconds for each row, whatever the kind, in which a solve with the factors is looked at.
const LOOKING: f64 = 3e-8;

#[derive(Debug)]
pub(crate) enum Plan {
    Hermitian(HermitianPlan, Kind),
    Blocks(LuPlan),
    Pivoted(PivotedPlan),
}

impl Analysis {
    /// Of a square matrix.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a structurally singular matrix, [`Error::Shape`] for one that is not square.
    pub fn of<W: Number>(a: &Csr<W>) -> Result<Self> {
        Analysis::within(a, f64::INFINITY)?.ok_or_else(|| failed("it has no order"))
    }

    /// The same for factors that are only wanted if they take so many seconds at most. None if looking for an order takes too large a
    /// part of this time; and no better one is sought where it is not expected to bring them that far.
    ///
    /// # Errors
    /// As [`Analysis::of`].
    pub fn within<W: Number>(a: &Csr<W>, seconds: f64) -> Result<Option<Self>> {
        compiled_here!(W: Number [f64, Complex64], |a: &Csr<W>, seconds: f64| -> Result<Option<Analysis>> {
            check_square(a)?;
            if check_hermitian(OPERATION, a).is_err() {
                return Analysis::planned(a, Kind::Sparse, seconds);
            }
            let diagonal = a.diagonal();
            let may_be_definite =
                diagonal.iter().all(|d| d.re() > 0.0) || diagonal.iter().all(|d| d.re() < 0.0);
            let kind = match may_be_definite {
                true => Kind::Cholesky,
                false if lacks_pivots(a) => Kind::Sparse,
                false => Kind::Symmetric,
            };
            Analysis::planned(a, kind, seconds)
        })(a, seconds)
    }

    /// For a kind of factors; of [`Kind::Sparse`] and [`Kind::Fronts`] that which promises less time.
    ///
    /// # Errors
    /// As [`Analysis::of`]. [`Error::Entry`] if the kind needs a Hermitian matrix.
    pub fn as_kind<W: Number>(a: &Csr<W>, kind: Kind) -> Result<Self> {
        Analysis::as_kind_within(a, kind, f64::INFINITY)?.ok_or_else(|| failed("it has no order"))
    }

    /// The same for factors that are only wanted if they take so many seconds at most; see [`Analysis::within`].
    ///
    /// # Errors
    /// As [`Analysis::as_kind`].
    pub fn as_kind_within<W: Number>(a: &Csr<W>, kind: Kind, seconds: f64) -> Result<Option<Self>> {
        compiled_here!(W: Number [f64, Complex64], |a: &Csr<W>, kind: Kind, seconds: f64| -> Result<Option<Analysis>> {
            check_square(a)?;
            if matches!(kind, Kind::Cholesky | Kind::Symmetric) {
                check_hermitian(OPERATION, a)?;
            }
            Analysis::planned(a, kind, seconds)
        })(a, kind, seconds)
    }

    /// For a kind whose needs the matrix meets; see [`Analysis::within`].
    pub(crate) fn planned<W: Number>(a: &Csr<W>, kind: Kind, within: f64) -> Result<Option<Self>> {
        let plan = match kind {
            Kind::Cholesky | Kind::Symmetric => {
                let plan = HermitianPlan::of(a, kind == Kind::Cholesky, within)?;
                plan.map(|plan| Plan::Hermitian(plan, kind))
            }
            Kind::Sparse | Kind::Fronts => LuPlan::of(a, within)?.map(Plan::Blocks),
            Kind::Pivoted => Some(Plan::Pivoted(PivotedPlan::of(a)?)),
        };
        Ok(plan.map(|plan| Analysis { plan, rows: a.rows() }))
    }

    /// The kind of factors.
    pub fn kind(&self) -> Kind {
        match &self.plan {
            Plan::Hermitian(_, kind) => *kind,
            Plan::Blocks(plan) if plan.has_fronts() => Kind::Fronts,
            Plan::Blocks(_) => Kind::Sparse,
            Plan::Pivoted(_) => Kind::Pivoted,
        }
    }

    /// What they cost; for [`Kind::Pivoted`], at most.
    pub fn cost(&self) -> Cost {
        let cost = match &self.plan {
            Plan::Hermitian(plan, _) => plan.cost,
            Plan::Blocks(plan) => plan.cost,
            Plan::Pivoted(plan) => plan.cost,
        };
        Cost { seconds: cost.seconds + LOOKING * self.rows as f64, ..cost }
    }
}

fn check_square<W: Number>(a: &Csr<W>) -> Result<()> {
    if a.rows() == a.cols() {
        return Ok(());
    }
    let expected = "a square matrix".into();
    Err(Error::Shape { operation: OPERATION.into(), expected, got: (a.rows(), a.cols()) })
}

/// The kind that is tried after another has failed.
pub(crate) fn next(kind: Kind) -> Option<Kind> {
    match kind {
        Kind::Cholesky => Some(Kind::Symmetric),
        Kind::Symmetric => Some(Kind::Sparse),
        Kind::Sparse | Kind::Fronts => Some(Kind::Pivoted),
        Kind::Pivoted => None,
    }
}

pub(crate) fn not_solved(kind: Kind, residual: f64) -> Error {
    unsupported(format!(
        "{}: a solve with the factors leaves {residual:.1e} of the right-hand side: the matrix is singular to working precision",
        kind.name()
    ))
}
