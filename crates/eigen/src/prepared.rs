//! Problems that are solved again and again while their values change.
use crate::outcome::Eigen;
use crate::problem::{EigenProblem, EigenProgress};
use lacuna_engine::{Device, Error, Result, Scalar};
use lacuna_formats::Csr;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A problem whose matrix changes little from one solve to the next, as in a loop to self-consistency or along a path of parameters:
/// each search begins with the vectors of the one before.
///
/// ```
/// use lacuna_cpu::Cpu;
/// use lacuna_eigen::EigenProblem;
/// use lacuna_engine::Device;
/// use lacuna_io::Spec;
///
/// let dev = Device::new(Cpu::new()?);
/// let a = Spec::parse("gen:poisson3d:12x12x12")?.build::<f64>()?;
/// let mut problem = EigenProblem::new(a.clone()).count(4).method("lobpcg").prepare(&dev);
/// let first = problem.solve()?;
/// problem.update(a.scaled(1.01)?)?;
/// let second = problem.solve()?;
/// assert!(second.outcome.converged() && second.outcome.iterations < first.outcome.iterations);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[must_use = "a problem does nothing until it is solved"]
pub struct PreparedEigen<T: Scalar> {
    problem: EigenProblem<T>,
    dev: Device,
}

impl<T: Scalar> EigenProblem<T> {
    /// The problem on a device, to be solved several times.
    pub fn prepare(self, dev: &Device) -> PreparedEigen<T> {
        PreparedEigen { problem: self, dev: dev.clone() }
    }
}

impl<T: Scalar> PreparedEigen<T> {
    /// Solves the problem, from the vectors of the last solve if there was one.
    ///
    /// # Errors
    /// As [`EigenProblem::solve`].
    pub fn solve(&mut self) -> Result<Eigen<T>> {
        self.solve_watched(&mut |_| ControlFlow::Continue(()))
    }

    /// [`PreparedEigen::solve`] with a function as [`EigenProblem::solve_watched`] takes it.
    ///
    /// # Errors
    /// As there.
    pub fn solve_watched(
        &mut self,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<Eigen<T>> {
        let found = self.problem.clone().solve_watched(&self.dev, watch)?;
        if !found.vectors.is_empty() {
            self.problem.start.clone_from(&found.vectors);
        }
        Ok(found)
    }

    /// Puts another matrix of the same size in the place of `A`.
    ///
    /// # Errors
    /// [`Error::Length`] for another number of rows.
    pub fn update(&mut self, a: impl Into<Arc<Csr<T>>>) -> Result<()> {
        let a = a.into();
        Error::check_length(
            "new values of an eigenvalue problem",
            "the rows",
            self.problem.a.rows(),
            a.rows(),
        )?;
        self.problem.a = a;
        Ok(())
    }

    /// Puts another mass matrix in the place of `B`.
    ///
    /// # Errors
    /// As [`PreparedEigen::update`].
    pub fn update_mass(&mut self, b: impl Into<Arc<Csr<T>>>) -> Result<()> {
        let b = b.into();
        let operation = "new values of an eigenvalue problem";
        Error::check_length(operation, "the rows of the mass matrix", self.problem.a.rows(), b.rows())?;
        self.problem.mass = Some(b);
        Ok(())
    }
}
