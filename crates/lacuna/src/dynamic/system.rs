//! A prepared system of a number type that is known at run time.
use super::bytes::{bytes_of, bytes_of_mut, numbers, numbers_mut};
use super::derived::{damped, shifted};
use super::operator::Function;
use super::{Matrix, Observing, Operator, Precondition, Settings};
use crate::{LinearSystem, Prepared};
use lacuna_engine::{
    Device, Each, Error, Family, NumberType, Outside, Result, Scalar, with_each, with_number,
};
use lacuna_formats::Pair;
use lacuna_solvers::{Options, Outcome, SetupWatch, Stop, Watch, vector_norm};
use ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder};
use std::ops::ControlFlow;
use std::time::Duration;

/// Prepared systems, by number type.
struct Systems;

impl Family for Systems {
    type Of<T: Scalar> = Prepared<T>;
}

/// A system on a device, ready to solve for any right-hand side: see [`Prepared`].
pub struct System {
    prepared: Each<Systems>,
    shape: (usize, usize),
    damped: bool,
    /// The product with the operator that is solved, if that is a function.
    product: Option<Function>,
}

/// Called from time to time during a solve.
type Watching<'a> = Option<&'a mut dyn FnMut(Watch) -> ControlFlow<()>>;

impl System {
    /// Prepares a system. A preconditioner that is given goes before the one that the settings name. The set-up of the latter is
    /// watched: see [`LinearSystem::prepare_watched`].
    ///
    /// # Errors
    /// [`Error::Argument`] for a preconditioner of another number type; as [`LinearSystem::prepare`].
    pub fn new(
        dev: &Device,
        operator: Operator,
        settings: &Settings,
        m: Option<Precondition<'_>>,
        observing: Option<Observing>,
        watch: Option<SetupWatch<'_>>,
    ) -> Result<Self> {
        let shape = operator.shape();
        let is_damped = settings.damp != 0.0;
        let operator = if settings.shift != 0.0 { shifted(operator, settings.shift)? } else { operator };
        let operator = if is_damped { damped(operator, settings.damp)? } else { operator };
        let product = match &operator {
            Operator::Functions(a) => Some(a.product.clone()),
            Operator::Matrix(_) => None,
        };
        let prepared = with_number!(operator.kind(), T => {
            T::each(prepared::<T>(dev, operator, settings, m, observing, watch)?)
        });
        Ok(System { prepared, shape, damped: is_damped, product })
    }

    /// Solves for `b` from the guess in `x`, which receives the solution. A least-squares problem of a function has a
    /// [`misfit`](Outcome::misfit) too, by one more call of it.
    ///
    /// # Errors
    /// [`Error::Argument`] for bytes that are no numbers of the type; as [`Prepared::solve_into`].
    pub fn solve(&mut self, b: &[u8], x: &mut [u8], watch: Watching<'_>) -> Result<Outcome> {
        let (shape, damped, product) = (self.shape, self.damped, self.product.as_ref());
        with_each!(&mut self.prepared, s => solve(s, (shape, damped, product), (b, x), watch))
    }

    /// Solves for a right-hand side in the memory of the device, and stores the solution there: see [`Prepared::solve_on_device`]. The
    /// guess is what is there, or 0.
    ///
    /// # Errors
    /// As there; [`Error::Length`] for other numbers of bytes; [`Error::Unsupported`] for a damped system, and on a device whose memory
    /// others have no addresses of.
    pub fn solve_at(
        &mut self,
        b: Outside,
        x: Outside,
        from_guess: bool,
        watch: Watching<'_>,
    ) -> Result<Outcome> {
        if self.damped {
            return Err(Error::Unsupported {
                operation: "a solve for vectors on the device".into(),
                message: "a damped system takes vectors on the host".into(),
            });
        }
        let dev = self.device().clone();
        with_each!(&mut self.prepared, s => {
            let mut fill = |on_device, guess| {
                dev.copy_in(b, on_device)?;
                if from_guess { dev.copy_in(x, guess) } else { Ok(()) }
            };
            let (solution, outcome) = s.solve_on_device(&mut fill, watch)?;
            dev.copy_out(solution, x)?;
            Ok(outcome.clone())
        })
    }

    /// The bytes of a right-hand side, and of a solution.
    pub fn bytes(&self) -> [usize; 2] {
        let (rows, cols) = self.shape();
        [rows, cols].map(|n| n * self.kind().size())
    }

    /// Writes the numbers of [`Prepared::variances`], if there are any. Returns whether there are.
    ///
    /// # Errors
    /// As there; [`Error::Length`] unless there is room for as many as there are columns.
    pub fn variances(&mut self, to: &mut [u8]) -> Result<bool> {
        with_each!(&mut self.prepared, s => {
            let Some(found) = s.variances()? else { return Ok(false) };
            let to = numbers_mut("variances", to)?;
            Error::check_length("variances", "the result", found.len(), to.len())?;
            to.copy_from_slice(&found);
            Ok(true)
        })
    }

    /// Shows somebody each iteration of the following solves, or nobody.
    ///
    /// # Errors
    /// As [`Prepared::observe`].
    pub fn observe(&mut self, observing: Option<Observing>) -> Result<()> {
        with_each!(&mut self.prepared, s => s.observe(observing.map(Observing::typed)))
    }

    /// Solves for `columns` right-hand sides, each column of `b` from the same of `x`. A column of `b` begins `ldb` numbers after the
    /// one before, one of `x` `ldx`.
    ///
    /// # Errors
    /// [`Error::Argument`] for columns that overlap or are not there; as [`Prepared::solve_columns_watched`].
    pub fn solve_columns(
        &mut self,
        columns: usize,
        (b, ldb): (&[u8], usize),
        (x, ldx): (&mut [u8], usize),
        watch: Watching<'_>,
    ) -> Result<Vec<Outcome>> {
        let (rows, cols) = self.shape;
        if self.damped {
            return Err(Error::Unsupported {
                operation: "solve of several columns".into(),
                message: "a damped system takes one right-hand side at a time".into(),
            });
        }
        let wrong = |what: &str, n: usize, ld: usize| Error::Argument {
            what: what.into(),
            message: format!("expected {columns} columns of {n} numbers, {ld} apart"),
        };
        with_each!(&mut self.prepared, s => {
            let b = ArrayView2::from_shape((rows, columns).strides((1, ldb)), numbers("b", b)?);
            let b = b.ok().filter(|_| ldb >= rows).ok_or_else(|| wrong("b", rows, ldb))?;
            let x = ArrayViewMut2::from_shape((cols, columns).strides((1, ldx)), numbers_mut("x", x)?);
            let x = x.ok().filter(|_| ldx >= cols).ok_or_else(|| wrong("x", cols, ldx))?;
            s.solve_columns_watched(b, x, watch)
        })
    }

    /// Gives the matrix new values on the same pattern, in the order of those given first.
    ///
    /// # Errors
    /// As [`Prepared::update_values`]; [`Error::Unsupported`] for a damped system.
    pub fn update_values(&mut self, values: &[u8]) -> Result<()> {
        if self.damped {
            return Err(Error::Unsupported {
                operation: "new values of a damped system".into(),
                message: "prepare a system with the new matrix".into(),
            });
        }
        with_each!(&mut self.prepared, s => s.update_values(numbers("values", values)?).map_err(of_values))
    }

    /// `y ← A x`.
    ///
    /// # Errors
    /// As [`Prepared::product`].
    pub fn product(&mut self, x: &[u8], y: &mut [u8]) -> Result<()> {
        with_each!(&mut self.prepared, s => s.product(numbers("x", x)?, numbers_mut("y", y)?))
    }
    /// `z ← M r`.
    ///
    /// # Errors
    /// As [`Prepared::precondition`].
    pub fn precondition(&mut self, r: &[u8], z: &mut [u8]) -> Result<()> {
        with_each!(&mut self.prepared, s => s.precondition(numbers("r", r)?, numbers_mut("z", z)?))
    }

    /// Changes the stopping criteria of later solves.
    pub fn set_stop(&mut self, stop: Stop) {
        with_each!(&mut self.prepared, s => s.set_stop(stop));
    }
    /// The stopping criteria of settings, in the number type of this.
    pub fn stop_of(&self, settings: &Settings) -> Stop {
        with_number!(self.kind(), T => settings.stop::<T>())
    }
    /// The number type.
    pub fn kind(&self) -> NumberType {
        self.prepared.kind()
    }
    /// Rows and columns of what was given.
    pub fn shape(&self) -> (usize, usize) {
        self.shape
    }
    /// The device that it is on.
    pub fn device(&self) -> &Device {
        with_each!(&self.prepared, s => s.device())
    }
    /// The names of the method, the preconditioner, the format and the order in use, each with why.
    pub fn chosen(&self) -> [(String, String); 4] {
        with_each!(&self.prepared, s => {
            [s.method(), s.preconditioner(), s.format(), s.order()]
                .map(|chosen| (chosen.name.clone(), chosen.why.clone()))
        })
    }
    /// What was chosen, in words, as outcomes report it.
    pub fn choices(&self) -> Vec<String> {
        with_each!(&self.prepared, s => s.choices().to_vec())
    }
    /// The time of the set-up, by part.
    pub fn setup(&self) -> Vec<(&'static str, Duration)> {
        with_each!(&self.prepared, s => s.setup_parts().to_vec())
    }
}

fn prepared<T: Scalar>(
    dev: &Device,
    operator: Operator,
    settings: &Settings,
    m: Option<Precondition<'_>>,
    observing: Option<Observing>,
    watch: Option<SetupWatch<'_>>,
) -> Result<Prepared<T>> {
    let system = match operator {
        Operator::Matrix(a) => LinearSystem::new(typed::<T>("matrix", a)?),
        Operator::Functions(a) => LinearSystem::from_operator(a.typed::<T>()),
    };
    let mut options = Options::default();
    options.restart = settings.restart;
    options.side = settings.side();
    let mut system = system
        .method(&settings.method)
        .format(&settings.format)
        .reorder(&settings.order)
        .scale(&settings.scale)
        .refine(settings.refine)
        .strict(settings.strict)
        .quick(true)
        .options(options)
        .stop(settings.stop::<T>())
        .on(dev);
    system = match m {
        None => system.preconditioner(&settings.preconditioner),
        Some(Precondition::Operator(Operator::Matrix(m))) => {
            system.preconditioner(Pair::new(dev, &typed::<T>("preconditioner", m)?, "csr")?)
        }
        Some(Precondition::Operator(Operator::Functions(m))) => {
            if m.kind != T::KIND {
                return Err(another("preconditioner", T::KIND, m.kind));
            }
            system.preconditioner(m.typed::<T>())
        }
        Some(Precondition::Placed(m)) => system.preconditioner(m.operator::<T>()?),
    };
    if let Some(observing) = observing {
        system = system.observe(observing.typed());
    }
    match watch {
        Some(watch) => system.prepare_watched(watch),
        None => system.prepare(),
    }
}

/// An error of an entry, without the name of a function that the caller did not call.
fn of_values(error: Error) -> Error {
    match error {
        Error::Entry { operation, row, column, message } if operation.starts_with("Csr::") => {
            Error::Entry { operation: "new values of a matrix".into(), row, column, message }
        }
        error => error,
    }
}

fn typed<T: Scalar>(what: &str, a: Matrix) -> Result<std::sync::Arc<lacuna_formats::Csr<T>>> {
    let kind = a.kind();
    a.0.take::<T>().ok_or_else(|| another(what, T::KIND, kind))
}

fn another(what: &str, expected: NumberType, got: NumberType) -> Error {
    let message = format!("expected one of type {}, got {}", expected.name(), got.name());
    Error::Argument { what: what.into(), message }
}

fn solve<T: Scalar>(
    system: &mut Prepared<T>,
    ((rows, cols), damped, product): ((usize, usize), bool, Option<&Function>),
    (b, x): (&[u8], &mut [u8]),
    watch: Watching<'_>,
) -> Result<Outcome> {
    let b = numbers::<T>("b", b)?;
    let x = numbers_mut::<T>("x", x)?;
    let mut padded = Vec::new();
    let b = if damped {
        Error::check_length("solve", "b", rows, b.len())?;
        padded.extend_from_slice(b);
        padded.resize(rows + cols, T::zero());
        &padded
    } else {
        b
    };
    let mut outcome = system.solve_watched(b, &mut *x, watch)?.clone();
    if let Some(product) = product.filter(|_| !outcome.normal_residual.is_nan()) {
        let mut residual = vec![T::zero(); b.len()];
        product(bytes_of(x), bytes_of_mut(&mut residual))
            .map_err(|source| Error::Function { message: source.to_string(), source: Some(source) })?;
        residual.iter_mut().zip(b).for_each(|(r, b)| *r = *b - *r);
        let size = vector_norm(b);
        outcome.misfit = if size == 0.0 { 0.0 } else { vector_norm(&residual) / size };
    }
    Ok(outcome)
}
