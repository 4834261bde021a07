//! Checks pairs that come from elsewhere as those of a search.
use crate::complete::{Method, Verdict};
use crate::lanczos::{End, lanczos};
use crate::lobpcg::lobpcg;
use crate::outcome::{Complete, Eigen};
use crate::problem::{Check, EigenProblem, Which};
use crate::search::{Found, Search, Watching};
use crate::solve::{Sum, Task};
use crate::trust;
use lacuna_engine::{Device, Error, LinOp, Result, Scalar};
use lacuna_formats::parallel;
use std::ops::ControlFlow;
use std::time::Instant;

impl<T: Scalar> EigenProblem<T> {
    /// Checks pairs that come from elsewhere, from the matrices and the pairs alone, as those of a search are: residuals, orthogonality,
    /// and whether an eigenvalue is missing among them, which [`Complete::Missing`] says and [`EigenOutcome`](crate::EigenOutcome) calls
    /// no success. Their number takes the place of [`EigenProblem::count`]; [`EigenProblem::which`] says what they claim to be. They are
    /// handed back in that order, with vectors of length 1.
    ///
    /// ```
    /// use lacuna_cpu::Cpu;
    /// use lacuna_eigen::{Complete, EigenProblem};
    /// use lacuna_engine::Device;
    /// use lacuna_io::Spec;
    /// use std::sync::Arc;
    ///
    /// let dev = Device::new(Cpu::new()?);
    /// let a = Arc::new(Spec::parse("gen:poisson2d:40x40")?.build::<f64>()?);
    /// let mut found = EigenProblem::new(Arc::clone(&a)).count(4).solve(&dev)?;
    /// // The third is left out.
    /// (found.values.remove(2), found.vectors.remove(2));
    /// let checked = EigenProblem::new(a).verify(found.values, found.vectors, &dev)?;
    /// assert_eq!(checked.outcome.complete, Complete::Missing(1));
    /// assert!(!checked.outcome.converged());
    /// # Ok::<(), lacuna_engine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Length`] if there are not as many vectors as values, or one has another length than the matrix; otherwise as
    /// [`EigenProblem::solve`].
    pub fn verify(mut self, values: Vec<f64>, vectors: Vec<Vec<T>>, dev: &Device) -> Result<Eigen<T>> {
        let operation = "eigenvalues to be checked";
        Error::check_length(operation, "the vectors", values.len(), vectors.len())?;
        self.count = values.len();
        self.checked()?;
        for x in &vectors {
            Error::check_length(operation, "a vector", self.a.rows(), x.len())?;
        }
        parallel::on(dev.workers(), || Task::new(self, dev)?.verify(values, vectors))
    }

    /// `xᴴ A x / xᴴ B x` of each vector: the value for which its residual is smallest.
    ///
    /// # Errors
    /// [`Error::Length`] if a vector has another length than the matrix.
    pub fn rayleigh_quotients(&self, vectors: &[Vec<T>]) -> Result<Vec<f64>> {
        let product = |x: &[T], y: &[T]| {
            let zero = <T::Wide as Scalar>::from_real(0.0);
            x.iter().zip(y).fold(zero, |sum, (x, y)| sum + x.wide().conj() * y.wide()).re()
        };
        let quotient = |x: &Vec<T>| {
            Error::check_length("Rayleigh quotients", "a vector", self.a.rows(), x.len())?;
            let image = self.mass.as_ref().map(|b| b.times(x)).transpose()?;
            Ok(product(x, &self.a.times(x)?) / product(x, image.as_deref().unwrap_or(x)))
        };
        vectors.iter().map(quotient).collect()
    }
}

impl<T: Scalar> Task<'_, T> {
    fn verify(mut self, values: Vec<f64>, vectors: Vec<Vec<T>>) -> Result<Eigen<T>> {
        self.choices = vec!["method none: pairs from elsewhere are checked".into()];
        let place = |value: &f64| match self.problem.which {
            Which::Smallest => *value,
            Which::Largest => -value,
            Which::Near(sigma) => (value - sigma).abs(),
        };
        let mut pairs: Vec<(f64, Vec<T>)> = values.into_iter().zip(vectors).collect();
        pairs.sort_by(|(v, _), (w, _)| place(v).total_cmp(&place(w)));
        let (values, mut vectors): (Vec<f64>, Vec<Vec<T>>) = pairs.into_iter().unzip();
        let (a, b) = (&self.problem.a, self.problem.mass.as_deref());
        trust::normalise(b, &mut vectors)?;
        let residuals = trust::quality(a, b, &values, &vectors)?.residuals;
        let good = values.iter().zip(&residuals).all(|(value, left)| *left <= self.goal.of(*value));
        let mut found = Found::given(values, vectors);
        let setting_up = Instant::now();
        let complete = match (good, self.problem.check, self.problem.which) {
            (false, ..) => Complete::Unchecked("not all pairs are those of the matrix".into()),
            (_, Check::Off, _) => Complete::Unchecked("not asked for".into()),
            (.., Which::Near(sigma)) => self.is_nearest(sigma, &found)?,
            _ => self.is_first(&mut found)?,
        };
        // What looked for others is no part of the pairs that were given.
        self.choices.truncate(1);
        self.finish(Sum { found, second_starts: 0, complete }, setting_up.elapsed())
    }

    /// Whether no others are as near to a number.
    fn is_nearest(&mut self, sigma: f64, found: &Found<T>) -> Result<Complete> {
        let (mut factors, sigma) = self.factors_near(sigma)?;
        let (complete, note) = self.counted_near(&mut factors, sigma, found)?;
        self.notes.extend(note);
        Ok(complete)
    }

    /// Whether no others are before the last at that end of the spectrum.
    fn is_first(&mut self, found: &mut Found<T>) -> Result<Complete> {
        let (a, b) = self.operators()?;
        let largest = self.problem.which == Which::Largest;
        let products = largest && b.is_none();
        let m = if products { None } else { self.preconditioner(*a)? };
        let (b, m) = (b.as_ref().map(|b| b as &dyn LinOp<T>), m.as_ref().map(|m| m as &dyn LinOp<T>));
        let by_products =
            |search: &Search<'_, T>, watch: Watching<'_>| lanczos(search, End::Largest, false, watch);
        let by_block = |search: &Search<'_, T>, watch: Watching<'_>| lobpcg(search, watch);
        let method: &Method<'_, T> = if products { &by_products } else { &by_block };
        let search = self.search(&a, b, m);
        let verdict = self
            .completeness(largest)
            .look(found, &search, method, &mut |_, _, _| ControlFlow::Continue(()))?;
        Ok(match verdict {
            Verdict::Is(complete) => complete,
            Verdict::Misses(missing, _) => Complete::Missing(missing),
        })
    }
}
