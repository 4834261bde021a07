//! Eigenvalues and singular values of matrices whose number type is known at run time.
use super::Matrix;
use super::bytes::{bytes_of, numbers};
use lacuna_eigen::{Check, EigenProblem, Extreme, GeneralProblem, Part, SvdProblem, Which};
use lacuna_engine::{Complex64, Device, Error, NumberType, Result, Scalar, with_each};
use std::ops::ControlFlow;

/// What is sought. Names are those of the command.
#[derive(Clone, Copy)]
pub struct Sought<'a> {
    /// How many values.
    pub count: usize,
    /// `smallest`, `largest` or `near`; for a matrix that need not be Hermitian `modulus`, `rightmost`, `leftmost` or `near`.
    pub which: &'a str,
    /// The number that the values are to be near to.
    pub sigma: Complex64,
    /// The mass matrix, for eigenvalues of a Hermitian matrix.
    pub mass: Option<&'a Matrix>,
    /// The method, or `auto`.
    pub method: &'a str,
    /// The preconditioner, or `auto`.
    pub preconditioner: &'a str,
    /// The tolerance relative to a value.
    pub rtol: Option<f64>,
    /// The most iterations or products.
    pub max_iters: Option<u64>,
    /// `auto`, `counted`, `probed` or `off`.
    pub complete: &'a str,
    /// The seed of the vectors to begin with, below 1000.
    pub seed: u32,
    /// Vectors to begin with, one after the other, as bytes of the type of the matrix.
    pub start: Option<&'a [u8]>,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Spectrum {
    /// The number type of the vectors.
    pub kind: NumberType,
    /// The values, those that were sought first.
    pub values: Vec<Complex64>,
    /// The eigenvectors or right singular vectors, one after the other, as bytes.
    pub vectors: Vec<u8>,
    /// The left singular vectors.
    pub left: Vec<u8>,
    /// Whether all is well.
    pub converged: bool,
    /// How it ended.
    pub reason: String,
    /// Whether values are missing, in words.
    pub complete: String,
    /// The residual of each value: the larger one of both sides.
    pub residuals: Vec<f64>,
    /// Which values meet their tolerance.
    pub met: Vec<bool>,
    /// Iterations, and products with the matrix.
    pub work: [u64; 2],
    /// The largest residual over its tolerance, for each iteration or cycle.
    pub history: Vec<f64>,
    /// What was chosen, and what is worth knowing.
    pub said: Vec<String>,
}

/// Looks whether to go on.
type Watching<'w> = &'w mut dyn FnMut() -> ControlFlow<()>;

fn unknown(what: &str, expected: &str, got: &str) -> Error {
    Error::Argument { what: what.into(), message: format!("expected {expected}, got `{got}`") }
}

fn flat<T: Scalar>(vectors: Vec<Vec<T>>) -> Vec<u8> {
    vectors.iter().flat_map(|v| bytes_of(v)).copied().collect()
}

/// A problem of any kind with what is asked of all kinds.
macro_rules! asked {
    ($sought:expr, $problem:expr) => {{
        let mut problem = $problem.count($sought.count).seed($sought.seed);
        if let Some(rtol) = $sought.rtol {
            problem = problem.rtol(rtol);
        }
        if let Some(most) = $sought.max_iters {
            problem = problem.max_iters(most);
        }
        problem
    }};
}

/// A [`Spectrum`] with what all kinds of outcomes have.
macro_rules! spectrum {
    ($outcome:ident, { $($field:ident: $value:expr,)* }) => {
        Spectrum {
            converged: $outcome.converged(),
            reason: $outcome.reason.name().into(),
            $($field: $value,)*
            met: $outcome.converged,
            history: $outcome.history,
            said: [$outcome.choices, $outcome.notes].concat(),
        }
    };
}

impl Sought<'_> {
    fn check(&self) -> Result<Check> {
        match self.complete {
            "auto" => Ok(Check::Auto),
            "counted" => Ok(Check::Counted),
            "probed" => Ok(Check::Probed),
            "off" => Ok(Check::Off),
            other => Err(unknown("complete", "auto, counted, probed or off", other)),
        }
    }
    fn start<T: Scalar>(&self, n: usize) -> Result<Vec<Vec<T>>> {
        let start = self.start.map_or(Ok(&[][..]), |bytes| numbers::<T>("a vector to begin with", bytes))?;
        Ok(start.chunks(n.max(1)).map(<[T]>::to_vec).collect())
    }

    fn eigen<T: Scalar>(
        &self,
        dev: &Device,
        problem: EigenProblem<T>,
        watch: Watching<'_>,
    ) -> Result<Spectrum> {
        let which = match self.which {
            "smallest" => Which::Smallest,
            "largest" => Which::Largest,
            "near" => Which::Near(self.sigma.re),
            other => return Err(unknown("which", "smallest, largest or near", other)),
        };
        let problem = problem.which(which).method(self.method).preconditioner(self.preconditioner);
        let problem = asked!(self, problem.check(self.check()?));
        let found = problem.solve_watched(dev, &mut |_| watch())?;
        let outcome = found.outcome;
        Ok(spectrum!(outcome, {
            kind: T::KIND,
            values: found.values.into_iter().map(Complex64::from).collect(),
            vectors: flat(found.vectors),
            left: Vec::new(),
            complete: outcome.complete.to_string(),
            residuals: outcome.residuals,
            work: [outcome.iterations, outcome.products],
        }))
    }

    fn svd<T: Scalar>(&self, dev: &Device, problem: SvdProblem<T>, watch: Watching<'_>) -> Result<Spectrum> {
        let which = match self.which {
            "smallest" => Extreme::Smallest,
            "largest" => Extreme::Largest,
            other => return Err(unknown("which", "smallest or largest", other)),
        };
        let problem = asked!(self, problem.which(which).check(self.check()?));
        let found = problem.solve_watched(dev, &mut |_| watch())?;
        let outcome = found.outcome;
        Ok(spectrum!(outcome, {
            kind: T::KIND,
            values: found.values.into_iter().map(Complex64::from).collect(),
            vectors: flat(found.right),
            left: flat(found.left),
            complete: outcome.complete.to_string(),
            residuals: outcome.residuals.iter().map(|[a, b]| a.max(*b)).collect(),
            work: [outcome.restarts + 1, outcome.products],
        }))
    }
}

/// Eigenvalues of a Hermitian matrix: see [`EigenProblem`].
///
/// # Errors
/// As there; [`Error::Argument`] for names that are none, and for a mass matrix of another number type.
pub fn eigen(dev: &Device, a: &Matrix, sought: &Sought<'_>, watch: Watching<'_>) -> Result<Spectrum> {
    fn of<T: Scalar>(
        dev: &Device,
        mut problem: EigenProblem<T>,
        n: usize,
        sought: &Sought<'_>,
        watch: Watching<'_>,
    ) -> Result<Spectrum> {
        if let Some(mass) = sought.mass {
            let other = || unknown("the mass matrix", T::KIND.name(), mass.kind().name());
            problem = problem.mass(mass.0.get::<T>().ok_or_else(other)?.clone());
        }
        let problem = problem.start(sought.start::<T>(n)?);
        sought.eigen(dev, problem, watch)
    }
    let n = a.shape().0;
    with_each!(&a.0, a => of(dev, EigenProblem::new(a.clone()), n, sought, watch))
}

/// Singular values of a matrix of any shape: see [`SvdProblem`].
///
/// # Errors
/// As there; [`Error::Argument`] for names that are none.
pub fn svd(dev: &Device, a: &Matrix, sought: &Sought<'_>, watch: Watching<'_>) -> Result<Spectrum> {
    with_each!(&a.0, a => sought.svd(dev, SvdProblem::new(a.clone()), watch))
}

/// Eigenvalues of a matrix that need not be Hermitian: see [`GeneralProblem`]. The vectors are complex and in double precision, and
/// so is a vector to begin with.
///
/// # Errors
/// As there; [`Error::Argument`] for names that are none.
pub fn general(dev: &Device, a: &Matrix, sought: &Sought<'_>, watch: Watching<'_>) -> Result<Spectrum> {
    let which = match sought.which {
        "modulus" => Part::Modulus,
        "rightmost" => Part::Rightmost,
        "leftmost" => Part::Leftmost,
        "near" => Part::Near(sought.sigma),
        other => return Err(unknown("which", "modulus, rightmost, leftmost or near", other)),
    };
    let mut problem = with_each!(&a.0, a => GeneralProblem::new(a)?);
    problem = asked!(sought, problem.which(which));
    if let Some(start) = sought.start {
        problem = problem.start(numbers::<Complex64>("a vector to begin with", start)?.to_vec());
    }
    let found = problem.solve_watched(dev, &mut |_| watch())?;
    let outcome = found.outcome;
    Ok(spectrum!(outcome, {
        kind: NumberType::C64,
        values: found.values,
        vectors: flat(found.vectors),
        left: Vec::new(),
        complete: "not known".into(),
        residuals: outcome.residuals,
        work: [outcome.restarts + 1, outcome.products],
    }))
}
