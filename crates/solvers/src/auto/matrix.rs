//! The matrix of a system on the host.
use super::Facts;
use super::factor::{factor_of, lost, round};
use super::order::Order;
use crate::{Factor, norm_bound, residual_norm, vector_norm};
use lacuna_engine::{Error, Result, Scalar};
use lacuna_formats::{Csr, parallel};
use std::sync::Arc;

/// The least number of entries that a thread moves.
const GRAIN: usize = 1 << 14;

/// The matrix as it is solved: in the order of the device, times the factor.
///
/// It stays on the host for confirmations and for new values. The format `csr` on the host shares it, and if neither order nor
/// factor change it, so does the caller; otherwise the device has a second copy in its format.
pub(super) struct HostMatrix<T: Scalar> {
    pub(super) a: Arc<Csr<T>>,
    pub(super) order: Order,
    /// The ratio of `a` to the matrix given.
    pub(super) factor: Factor,
    /// What is said of entries that are lost by the factor.
    pub(super) lost: Option<String>,
    /// What is said of the matrix if its format rounds values.
    pub(super) rounding: Option<String>,
    /// `√(‖A‖₁ ‖A‖_∞)`, once known.
    norm: Option<f64>,
    /// The place in the matrix given of each entry of `a`, once known; empty if the order is the caller's.
    from: Vec<u32>,
}

impl<T: Scalar> HostMatrix<T> {
    /// The matrix of some facts, with its norm if that is known.
    pub(super) fn new(facts: &Facts<T>, order: Order, rounding: Option<String>, norm: Option<f64>) -> Self {
        HostMatrix {
            a: facts.matrix().clone(),
            order,
            factor: facts.factor(),
            lost: facts.lost().cloned(),
            rounding,
            norm: facts.mirrored_norm().or(norm),
            from: Vec::new(),
        }
    }

    /// Takes new values in the caller's order; the format may round them. On an error nothing changes.
    pub(super) fn set_values(
        &mut self,
        given: &[T],
        definite: bool,
        narrow: bool,
        rounds: bool,
    ) -> Result<()> {
        Error::check_length("new values of a matrix", "values", self.a.nnz(), given.len())?;
        if self.order.changes() && self.from.is_empty() {
            self.from = self.order.given_places(&self.a);
        }
        let mut values = match &*self.from {
            [] => given.to_vec(),
            from => parallel::collect(from.len(), GRAIN, |k| given[from[k] as usize]),
        };
        if crate::largest(&values).is_nan() {
            let checked = self.a.with_values(values).map(drop);
            return checked.map_err(|error| self.order.in_given_rows(error));
        }
        self.order.scale(&self.a, &mut values, [1, 1]);
        let rounding = rounds.then(|| round(&mut values)).flatten();
        let factor = factor_of(&self.a, &values, definite, narrow);
        let lost = lost::<T, T>(&values, factor.exponent);
        if !factor.is_one() {
            values.iter_mut().for_each(|v| *v = factor.of(*v));
        }
        // In place, where neither the device nor the caller shares it.
        let taken = match Arc::get_mut(&mut self.a) {
            Some(a) => a.set_values(&values),
            None => self.a.with_values(values).map(|a| self.a = Arc::new(a)),
        };
        taken.map_err(|error| self.order.in_given_rows(error))?;
        (self.factor, self.lost) = (factor, lost);
        (self.rounding, self.norm) = (rounding, None);
        Ok(())
    }

    /// `‖b − A x‖ / ‖b‖` without the factors of the rows, if they have any; for vectors near 1 in the order of the device.
    pub(super) fn unscaled_residual(&self, b: &[T], x: &[T]) -> Result<Option<f64>> {
        if !self.order.scales_rows() {
            return Ok(None);
        }
        let mut values = self.a.values().to_vec();
        self.order.scale(&self.a, &mut values, [-1, 0]);
        let (a, b) = (self.a.with_values(values)?, self.order.unscaled_rhs(b));
        let norm = vector_norm(&b);
        Ok(Some(if norm == 0.0 { 0.0 } else { residual_norm(&a, &b, x) / norm }))
    }

    /// The matrix in the caller's order, times the factor.
    pub(super) fn given(&self) -> Result<Arc<Csr<T>>> {
        self.order.given_matrix(&self.a)
    }

    /// An upper bound on the norm of `a`.
    pub(super) fn norm(&mut self) -> f64 {
        let a = &self.a;
        *self.norm.get_or_insert_with(|| norm_bound(a))
    }

    /// An upper bound on `‖A‖ ‖x‖`, in the caller's units.
    pub(super) fn norm_of_product(&mut self, x: &[T]) -> f64 {
        let norm = self.norm();
        let x = vector_norm(x);
        let of_x = if x == 0.0 { 0 } else { libm::log2(x).floor() as i32 };
        (norm * x.scale_by_power_of_two(-of_x)).scale_by_power_of_two(of_x - self.factor.exponent)
    }
}
