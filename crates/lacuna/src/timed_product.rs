//! Timing of products.
use lacuna_engine::{
    Device, Format, History, Matrix, Owned, Pass, Plan, Recorder, Result, Run, Scalar, Vector,
};
use std::sync::Arc;
use std::time::Instant;

/// The least number of products in a run.
const LEAST: u64 = 3;

/// `y ← A x` with `x` of ones, for one or several vectors, ready to be timed. A run has enough products to
/// take the given time.
pub struct TimedProduct<T: Scalar> {
    plan: Plan,
    _matrix: Owned<Matrix<T>>,
    y: Vector<T>,
    iterations: u64,
}

impl<T: Scalar> TimedProduct<T> {
    /// Puts the matrix on the device and determines how many products last `seconds`.
    ///
    /// # Errors
    /// [`lacuna_engine::Error::Unsupported`] if the device has no kernel for the format, device failures.
    pub fn new(dev: &Device, stored: Arc<dyn Format<T>>, seconds: f64) -> Result<Self> {
        Self::of(dev, dev.matrix(stored)?, 1, seconds)
    }

    /// The same for a matrix already on the device, with `vectors` vectors, at least one.
    ///
    /// # Errors
    /// Device failures.
    pub fn of(dev: &Device, matrix: Owned<Matrix<T>>, vectors: usize, seconds: f64) -> Result<Self> {
        let a = *matrix;
        let mut k = Recorder::new(dev, "spmv");
        let (x, y, [count]) = (k.basis(a.cols, vectors.max(1)), k.basis(a.rows, vectors.max(1)), k.cells());
        let pass = Pass::new("count").count(count);
        k.each(|k| match vectors {
            0 | 1 => k.spmv_dot(&a, x.column(0), y.column(0), pass),
            _ => {
                k.spmm(&a, x, y);
                k.multi_axpy_dot(pass);
            }
        });
        let program = k.finish()?;
        for j in 0..x.columns {
            dev.upload(&vec![T::one(); a.cols], x.column(j))?;
        }
        let mut product =
            TimedProduct { plan: dev.plan(program)?, _matrix: matrix, y: y.column(0), iterations: LEAST };
        product.time()?;
        let once = product.time()?;
        product.iterations = (seconds / once).ceil().clamp(LEAST as f64, 1e6) as u64;
        Ok(product)
    }

    /// The minimum number of bytes that one product moves: the matrix and the vectors, once each.
    pub fn bytes(&self) -> u64 {
        self.plan.program().bytes_of(1)
    }

    /// The first vector of the result.
    ///
    /// # Errors
    /// Device failures.
    pub fn product(&self) -> Result<Vec<T>> {
        let mut values = vec![T::zero(); self.y.len];
        self.plan.device().download(self.y, &mut values)?;
        Ok(values)
    }

    /// Seconds per product, for all its vectors, averaged over a run.
    ///
    /// # Errors
    /// Device failures.
    pub fn time(&mut self) -> Result<f64> {
        let start = Instant::now();
        let run = Run { limit: self.iterations, history: &mut History::off(), watch: None };
        self.plan.execute(run)?;
        Ok(start.elapsed().as_secs_f64() / self.iterations as f64)
    }
}
