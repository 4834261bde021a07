//! The arrays of a set-up on a device, and Lanczos' and Arnoldi's methods with them.
use super::super::OPERATION;
use super::super::radius::{Arnoldi, Lanczos, arnoldi_by, lanczos_by};
use crate::precond::There;
use lacuna_engine::{
    Algebra, Array, Complex64, Device, Error, FilteredArrays, LanczosArrays, Matrix, NumberType, Result,
    SparseArrays,
};

/// The arrays of a set-up on a device, freed when it is dropped.
pub(super) struct Held {
    there: There,
    kind: NumberType,
    arrays: Vec<Array>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let arrays = std::mem::take(&mut self.arrays);
        if !arrays.is_empty() {
            self.free(&arrays);
        }
    }
}

impl Held {
    pub(super) fn new(there: There, kind: NumberType) -> Self {
        Held { there, kind, arrays: Vec::new() }
    }
    /// The matrix of the set-up, where it is on the device.
    pub(super) fn matrix(&self) -> Option<Matrix> {
        self.there.matrix
    }
    pub(super) fn device(&self) -> &Device {
        &self.there.device
    }
    /// An operation of the device.
    pub(super) fn ask<R>(
        &self,
        work: impl FnOnce(&mut dyn Algebra) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        self.there.device.algebra(self.kind, work)
    }
    /// An operation that the device leaves to the host only where its memory is too small: [`Error::OutOfMemory`].
    fn number<R>(&self, work: impl FnOnce(&mut dyn Algebra) -> Result<R>) -> Result<R> {
        let full = || Error::OutOfMemory {
            operation: OPERATION.into(),
            device: "the device".into(),
            requested: 0,
            available: None,
        };
        self.ask(|algebra| work(algebra).map(Some))?.ok_or_else(full)
    }
    /// Frees these at the end, unless they are left to others.
    pub(super) fn keep(&mut self, arrays: &[Array]) {
        self.arrays.extend_from_slice(arrays);
    }
    /// Leaves arrays to others.
    pub(super) fn leave(&mut self, arrays: &[Array]) {
        self.arrays.retain(|array| !arrays.contains(array));
    }
    /// Frees some of the arrays.
    pub(super) fn free(&mut self, arrays: &[Array]) {
        self.leave(arrays);
        // What cannot be freed goes with the device.
        let _ = self.ask(|algebra| {
            algebra.free(arrays);
            Ok(Some(()))
        });
    }
}

/// Lanczos' method on a device.
struct LanczosThere<'h> {
    held: &'h mut Held,
    a: &'h SparseArrays,
    matrix: &'h FilteredArrays,
    on: LanczosArrays,
    /// `v* D v` for the first vector.
    first: f64,
}

impl Lanczos for LanczosThere<'_> {
    fn start(&mut self) -> Result<f64> {
        Ok(self.first)
    }
    fn energy(&mut self) -> Result<f64> {
        let LanczosThere { held, a, matrix, on, .. } = self;
        held.number(|algebra| algebra.lanczos_energy(a, matrix, on))
    }
    fn step(&mut self, factors: [f64; 3]) -> Result<f64> {
        let LanczosThere { held, a, matrix, on, .. } = self;
        held.number(|algebra| algebra.lanczos_step(a.shape.0, matrix, on, factors))
    }
}

/// Arnoldi's.
struct ArnoldiThere<'h> {
    held: &'h mut Held,
    a: &'h SparseArrays,
    matrix: &'h FilteredArrays,
    basis: Vec<Array>,
    w: Option<Array>,
}

impl ArnoldiThere<'_> {
    /// Another vector `w`; the one before is freed.
    fn set(&mut self, w: Array) {
        self.held.keep(&[w]);
        if let Some(before) = self.w.replace(w) {
            self.held.free(&[before]);
        }
    }
}

impl Arnoldi for ArnoldiThere<'_> {
    fn start(&mut self) -> Result<f64> {
        let n = self.a.shape.0;
        let (w, squares) = self.held.number(|algebra| algebra.arnoldi(n))?;
        self.set(w);
        Ok(squares)
    }
    fn keep(&mut self, by: f64) -> Result<()> {
        let (n, w) = (self.a.shape.0, self.w);
        let v = self.held.number(|algebra| w.map(|w| algebra.scaled(n, w, by)).transpose())?;
        self.held.keep(v.as_slice());
        self.basis.extend(v);
        Ok(())
    }
    fn apply(&mut self) -> Result<Complex64> {
        let (Some(&u), Some(&v)) = (self.basis.first(), self.basis.last()) else { return Ok(ZERO) };
        let (a, matrix) = (self.a, self.matrix);
        let (w, [re, im]) = self.held.number(|algebra| algebra.arnoldi_apply(a, matrix, v, u))?;
        self.set(w);
        Ok(Complex64::new(re, im))
    }
    fn project(&mut self, j: usize, c: Complex64) -> Result<Complex64> {
        let (n, Some(w)) = (self.a.shape.0, self.w) else { return Ok(ZERO) };
        let (v, u) = (self.basis[j], self.basis.get(j + 1).copied());
        let [re, im] = self.held.number(|algebra| algebra.arnoldi_project(n, w, [c.re, c.im], v, u))?;
        Ok(Complex64::new(re, im))
    }
}

/// What a method with nothing to go on from finds.
const ZERO: Complex64 = Complex64 { re: 0.0, im: 0.0 };

/// The spectral radius of a filtered matrix.
pub(super) fn radius(
    held: &mut Held,
    a: &SparseArrays,
    matrix: &FilteredArrays,
    steps: usize,
) -> Result<f64> {
    let n = a.shape.0;
    if let Some((on, first)) = held.number(|algebra| algebra.lanczos(n, matrix.by))? {
        let arrays = [&on.vectors[..], &[on.inverse]].concat();
        held.keep(&arrays);
        let rho = lanczos_by(&mut LanczosThere { held, a, matrix, on, first }, n, steps)?;
        held.free(&arrays);
        return Ok(rho);
    }
    let mut on = ArnoldiThere { held, a, matrix, basis: Vec::new(), w: None };
    let rho = arnoldi_by(&mut on, n, steps)?;
    let arrays: Vec<Array> = on.basis.into_iter().chain(on.w).collect();
    held.free(&arrays);
    Ok(rho)
}
