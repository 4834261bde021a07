//! Factors of a matrix, of the first kind that works.
use crate::analysis::{Plan, next, not_solved};
use crate::arrangement::row_scales;
use crate::failure::{OPERATION, singular};
use crate::hermitian::Hermitian;
use crate::lu::BlockLu;
use crate::pivoted::Pivoted;
use crate::{Analysis, Cost, Kind, Limits, Number};
use lacuna_engine::{Complex64, Error, Result, Scalar, compiled_here};
use lacuna_formats::Csr;

/// What is called from time to time during a factorisation; its error ends the work.
pub type Check<'a> = &'a mut dyn FnMut() -> Result<()>;

/// The part of a right-hand side that one solve may leave.
const LEFT: f64 = 0.1;

/// Which system is solved with the factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// `A x = b`
    Plain,
    /// `Aᴴ x = b`
    Adjoint,
}

/// How many eigenvalues of a Hermitian matrix have which sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inertia {
    /// Above zero.
    pub positive: usize,
    /// Below zero.
    pub negative: usize,
    /// Zero to working precision.
    pub zero: usize,
}

impl Inertia {
    pub(crate) fn count(&mut self, v: f64) {
        let of = if v > 0.0 {
            &mut self.positive
        } else if v < 0.0 {
            &mut self.negative
        } else {
            &mut self.zero
        };
        *of += 1;
    }
}

/// Factors of a matrix.
pub struct Factors<W: Number> {
    form: Form<W>,
    cost: Cost,
    n: usize,
}

enum Form<W: Number> {
    Hermitian(Hermitian<W>, Kind),
    Blocks(BlockLu<W>, Kind),
    Pivoted(Pivoted<W>),
}

impl<W: Number> Factors<W> {
    /// Factors a matrix as analysed. Where that kind fails, the next one is tried; a solve with each is looked at. `check` is called
    /// from time to time, on this thread; its error ends the work.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a singular matrix, and if the cost exceeds the limits.
    pub fn new(a: &Csr<W>, analysis: Analysis, limits: &Limits, check: Check<'_>) -> Result<Self> {
        compiled_here!(W: Number [f64, Complex64], |a: &Csr<W>,
                                                    analysis: Analysis,
                                                    limits: &Limits,
                                                    check: Check<'_>|
         -> Result<Factors<W>> { Factors::made(a, analysis, limits, check) })(
            a, analysis, limits, check
        )
    }

    /// The same in no other kind than that of the analysis.
    ///
    /// # Errors
    /// As [`Factors::new`], and where another kind would do.
    pub fn of_that_kind(a: &Csr<W>, analysis: Analysis, limits: &Limits, check: Check<'_>) -> Result<Self> {
        compiled_here!(W: Number [f64, Complex64], |a: &Csr<W>,
                                                    analysis: Analysis,
                                                    limits: &Limits,
                                                    check: Check<'_>|
         -> Result<Factors<W>> {
            limits.check(&analysis.cost())?;
            Factors::of_kind(a, analysis, limits, check)?.looked_at(a)
        })(a, analysis, limits, check)
    }

    fn made(a: &Csr<W>, mut analysis: Analysis, limits: &Limits, check: Check<'_>) -> Result<Self> {
        loop {
            check()?;
            // What costs too much in one kind does in the next.
            limits.check(&analysis.cost())?;
            let kind = analysis.kind();
            let made = Factors::of_kind(a, analysis, limits, &mut *check).and_then(|made| made.looked_at(a));
            match made {
                Err(error) if !is_final(&error) => {
                    // The error of the last kind says most. A matrix that has a Hermitian kind has the next one too.
                    let Some(kind) = next(kind) else { return Err(error) };
                    analysis = Analysis::as_kind(a, kind)?;
                }
                made => return made,
            }
        }
    }

    fn of_kind(a: &Csr<W>, analysis: Analysis, limits: &Limits, check: Check<'_>) -> Result<Self> {
        let (cost, kind) = (analysis.cost(), analysis.kind());
        let form = match analysis.plan {
            Plan::Hermitian(plan, kind) => Form::Hermitian(Hermitian::new(a, plan)?, kind),
            Plan::Blocks(plan) => Form::Blocks(BlockLu::new(a, plan, limits, check)?, kind),
            Plan::Pivoted(plan) => Form::Pivoted(Pivoted::new(a, plan)?),
        };
        Ok(Factors { form, cost, n: a.rows() })
    }

    /// Factors a matrix of the same pattern, in the same order if its values allow it.
    ///
    /// # Errors
    /// As [`Factors::new`]; the former factors may be lost.
    pub fn renew(&mut self, a: &Csr<W>, limits: &Limits, check: Check<'_>) -> Result<()> {
        compiled_here!(W: Number [f64, Complex64], |factors: &mut Factors<W>,
                                                    a: &Csr<W>,
                                                    limits: &Limits,
                                                    check: Check<'_>|
         -> Result<()> { factors.renewed(a, limits, check) })(self, a, limits, check)
    }

    fn renewed(&mut self, a: &Csr<W>, limits: &Limits, check: Check<'_>) -> Result<()> {
        Error::check_length(OPERATION, "the rows", self.n, a.rows())?;
        check()?;
        let renewed = match &mut self.form {
            Form::Hermitian(factors, _) => {
                lacuna_formats::algebra::check_hermitian(OPERATION, a).and_then(|()| factors.renew(a))
            }
            Form::Blocks(factors, _) => factors.renew(a, limits, &mut *check),
            Form::Pivoted(factors) => factors.renew(a),
        };
        if let Err(error) = renewed.and_then(|()| self.look(a)) {
            if is_final(&error) {
                return Err(error);
            }
            *self = Factors::made(a, Analysis::of(a)?, limits, check)?;
        }
        Ok(())
    }

    /// `x ← A⁻¹ x` or `x ← A⁻ᴴ x`
    pub fn solve(&self, task: Task, x: &mut [W]) {
        compiled_here!(W: Number [f64, Complex64], |factors: &Factors<W>, task: Task, x: &mut [W]| -> () {
            factors.solve_with(task, x)
        })(self, task, x)
    }

    fn solve_with(&self, task: Task, x: &mut [W]) {
        match (&self.form, task) {
            // The matrix is its own adjoint.
            (Form::Hermitian(factors, _), _) => factors.solve(x),
            (Form::Blocks(factors, _), Task::Plain) => factors.solve(x),
            (Form::Pivoted(factors), Task::Plain) => factors.solve(x),
            (Form::Blocks(factors, _), Task::Adjoint) => conjugated(x, |x| factors.solve_transposed(x)),
            (Form::Pivoted(factors), Task::Adjoint) => conjugated(x, |x| factors.solve_transposed(x)),
        }
    }

    /// The kind of factors that worked.
    pub fn kind(&self) -> Kind {
        match &self.form {
            Form::Hermitian(_, kind) | Form::Blocks(_, kind) => *kind,
            Form::Pivoted(_) => Kind::Pivoted,
        }
    }

    /// What they were expected to cost.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// How many eigenvalues have which sign, if the matrix was factored as a Hermitian one.
    pub fn inertia(&self) -> Option<Inertia> {
        match &self.form {
            Form::Hermitian(factors, _) => Some(factors.inertia()),
            _ => None,
        }
    }

    /// What is worth knowing about the factors, with its name.
    pub fn report(&self) -> Vec<(&'static str, String)> {
        let bytes = |entries: f64| entries * size_of::<W>() as f64 / (1 << 20) as f64;
        let mut said = vec![("factorisation", self.kind().name().into())];
        match &self.form {
            Form::Hermitian(factors, kind) => {
                said.push(("size", format!("{:.1} MiB", bytes(self.cost.entries))));
                if *kind == Kind::Symmetric {
                    let Inertia { positive, negative, zero } = factors.inertia();
                    said.push((
                        "eigenvalues",
                        format!("{positive} above zero, {negative} below, {zero} zero"),
                    ));
                }
            }
            Form::Blocks(factors, _) => {
                said.push(("size", format!("{:.1} MiB", bytes(factors.entries() as f64))));
                if factors.blocks() > 1 {
                    said.push(("blocks", factors.blocks().to_string()));
                }
                if factors.replaced() > 0 {
                    said.push(("replaced pivots", factors.replaced().to_string()));
                }
            }
            Form::Pivoted(_) => said.push(("size", format!("at most {:.1} MiB", bytes(self.cost.entries)))),
        }
        said
    }

    fn looked_at(self, a: &Csr<W>) -> Result<Self> {
        self.look(a)?;
        Ok(self)
    }

    /// Fails unless a solve leaves little of a right-hand side of ones, with rows scaled to one: it leaves more where pivots were bad,
    /// and where the matrix is singular to working precision. Of the last kind, only whether the solution is finite.
    fn look(&self, a: &Csr<W>) -> Result<()> {
        let scales = row_scales(a);
        let mut x: Vec<W> = scales.iter().map(|by| W::one().scale_by_power_of_two(-by)).collect();
        self.solve_with(Task::Plain, &mut x);
        if !x.iter().all(|v| v.finite()) {
            return Err(singular());
        }
        if next(self.kind()).is_none() {
            return Ok(());
        }
        let left = |i: usize| {
            let terms = a.row_entries(i).map(|(j, v)| v * x[j]);
            let sum = terms.fold(W::zero(), |sum, term| sum + term).scale_by_power_of_two(scales[i]);
            (W::one() - sum).size()
        };
        match (0..self.n).map(left).find(|left| left.is_nan() || *left > LEFT) {
            None => Ok(()),
            Some(left) => Err(not_solved(self.kind(), left)),
        }
    }
}

/// `x ← conj(f(conj(x)))`
fn conjugated<W: Number>(x: &mut [W], f: impl FnOnce(&mut [W])) {
    let conjugate = |x: &mut [W]| x.iter_mut().for_each(|v| *v = Scalar::conj(*v));
    conjugate(x);
    f(x);
    conjugate(x);
}

/// Errors after which no other kind is tried.
fn is_final(error: &Error) -> bool {
    matches!(error, Error::OutOfMemory { .. } | Error::Cancelled { .. } | Error::Function { .. })
}
