//! Memory of a device that is freed together.
use crate::{Basis, Cell, Cells, Device, Format, Lease, Matrix, Owned, Result, Scalar, Vector};
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

/// A device, and handles made on it that are freed together when this is dropped: for code that calls the fused primitives
/// one by one, with plain handles in its formulas.
///
/// ```
/// use lacuna_engine::{Device, Pass, Reference};
///
/// let scope = Device::new(Reference::new()).scope();
/// let [x, y] = scope.vectors(3)?;
/// let [xy] = scope.cells()?;
/// scope.upload(&[1.0, 2.0, 3.0], x)?;
/// scope.multi_axpy_dot(Pass::new("double").set(y, x + x).dot(xy, x, y))?;
/// assert_eq!(scope.read(&[xy])?, [28.0]);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
pub struct Scope {
    device: Device,
    memory: Mutex<Vec<Arc<Lease>>>,
}

impl Deref for Scope {
    type Target = Device;
    fn deref(&self) -> &Device {
        &self.device
    }
}

impl Device {
    /// Memory that is freed together.
    pub fn scope(&self) -> Scope {
        Scope { device: self.clone(), memory: Mutex::default() }
    }
}

impl Scope {
    fn keep<H>(&self, owned: Owned<H>) -> H {
        let (handle, lease) = owned.into_parts();
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).push(lease);
        handle
    }
    /// A vector of `n` zeros.
    ///
    /// # Errors
    /// As [`Device::vector`].
    pub fn vector<T: Scalar>(&self, n: usize) -> Result<Vector<T>> {
        self.device.vector(n).map(|v| self.keep(v))
    }
    /// `N` vectors of `n` zeros.
    ///
    /// # Errors
    /// As [`Device::vector`].
    pub fn vectors<T: Scalar, const N: usize>(&self, n: usize) -> Result<[Vector<T>; N]> {
        let mut made = Vec::with_capacity(N);
        for _ in 0..N {
            made.push(self.vector(n)?);
        }
        Ok(std::array::from_fn(|i| made[i]))
    }
    /// `columns` vectors of `n` elements each, with unspecified contents until they are written.
    ///
    /// # Errors
    /// As [`Device::vector`].
    pub fn basis<T: Scalar>(&self, n: usize, columns: usize) -> Result<Basis<T>> {
        self.device.basis(n, columns).map(|v| self.keep(v))
    }
    /// The same in [`Scalar::Narrow`].
    ///
    /// # Errors
    /// As [`Device::vector`].
    pub fn narrow_basis<T: Scalar>(&self, n: usize, columns: usize) -> Result<Basis<T>> {
        self.device.narrow_basis(n, columns).map(|v| self.keep(v))
    }
    /// `N` zero cells.
    ///
    /// # Errors
    /// As [`Device::cells`].
    pub fn cells<T: Scalar, const N: usize>(&self) -> Result<[Cell<T>; N]> {
        let run = self.run_of_cells(N)?;
        Ok(std::array::from_fn(|i| run.at(i)))
    }
    /// A run of zero cells.
    ///
    /// # Errors
    /// As [`Device::cells`].
    pub fn run_of_cells<T: Scalar>(&self, count: usize) -> Result<Cells<T>> {
        self.device.cells(count).map(|c| self.keep(c))
    }
    /// A matrix.
    ///
    /// # Errors
    /// As [`Device::matrix`].
    pub fn matrix<T: Scalar>(&self, a: Arc<dyn Format<T>>) -> Result<Matrix<T>> {
        self.device.matrix(a).map(|a| self.keep(a))
    }
}
