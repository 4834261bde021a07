//! The rows or the columns of a system: in another order than the caller's, and times other factors.
use super::Chosen;
use crate::named::unknown;
use lacuna_engine::{Error, Result, Scalar};
use lacuna_formats::factor::{SCALINGS, scaling};
use lacuna_formats::{Csr, Permutation};
use std::sync::Arc;

/// Rows or columns.
#[derive(Default)]
pub(super) struct Side {
    /// `None` for the caller's order.
    pub(super) permutation: Option<Permutation>,
    /// The exponent of the factor of each, a power of two, by its number in the caller's order; empty for factors of 1.
    pub(super) exponents: Vec<i32>,
}

impl Side {
    pub(super) fn permuted(permutation: Permutation) -> Self {
        Side { permutation: Some(permutation), exponents: Vec::new() }
    }

    pub(super) fn changes(&self) -> bool {
        self.permutation.is_some() || !self.exponents.is_empty()
    }

    /// The number in the caller's order.
    pub(super) fn old(&self, new: usize) -> usize {
        let order = self.permutation.as_ref().and_then(|permutation| permutation.order().get(new));
        order.map_or(new, |&old| old as usize)
    }

    pub(super) fn exponent(&self, old: usize) -> i32 {
        self.exponents.get(old).copied().unwrap_or(0)
    }

    /// Copies a vector in this order, times the factors to a power.
    pub(super) fn stage<T: Scalar>(
        &self,
        staged: &mut Vec<T>,
        what: &str,
        power: i32,
        (len, given): (usize, &dyn Fn(usize) -> T),
    ) -> Result<()> {
        staged.clear();
        if let Some(permutation) = &self.permutation {
            Error::check_length("solve", what, permutation.len(), len)?;
        }
        if self.exponents.is_empty() {
            staged.extend((0..len).map(|new| given(self.old(new))));
            return Ok(());
        }
        let at = |new| {
            let old = self.old(new);
            given(old).scale_by_power_of_two(power * self.exponent(old))
        };
        staged.extend((0..len).map(at));
        let lost = staged.iter().position(|v| !v.finite()).map(|new| self.old(new));
        match lost.filter(|&old| given(old).finite()) {
            None => Ok(()),
            Some(row) => Err(out_of_range(what, row, given(row))),
        }
    }

    /// Fails if an element of a vector in this order is finite, and not so times its factor.
    pub(super) fn check_range<T: Scalar>(&self, values: &[T], what: &str, power: i32) -> Result<()> {
        if self.exponents.is_empty() {
            return Ok(());
        }
        let scaled = |new: usize| values[new].scale_by_power_of_two(power * self.exponent(self.old(new)));
        match (0..values.len()).find(|&new| values[new].finite() && !scaled(new).finite()) {
            None => Ok(()),
            Some(new) => Err(out_of_range(what, self.old(new), values[new])),
        }
    }

    /// Hands the elements of a vector in this order on, times the factors to a power, with their numbers in the caller's order.
    pub(super) fn restore<T: Scalar>(&self, values: &[T], power: i32, mut set: impl FnMut(usize, T)) {
        let scaled = !self.exponents.is_empty();
        for (new, &value) in values.iter().enumerate() {
            let old = self.old(new);
            set(old, if scaled { value.scale_by_power_of_two(power * self.exponent(old)) } else { value });
        }
    }
}

fn out_of_range<T: Scalar>(what: &str, row: usize, value: T) -> Error {
    let message = format!("{value} times the factor of the scaling is out of range");
    Error::Element { operation: "solve".into(), what: what.into(), row, message }
}

/// How rows and columns were scaled.
pub(super) struct Scaled {
    pub(super) exponents: [Vec<i32>; 2],
    pub(super) chosen: Chosen,
}

/// Scales a matrix in the way with this name; `none` leaves it.
///
/// # Errors
/// [`Error::Argument`] for an unknown name, [`Error::Shape`] for a matrix that is not square.
pub(super) fn scaled<T: Scalar>(a: Arc<Csr<T>>, name: &str) -> Result<(Option<Scaled>, Arc<Csr<T>>)> {
    if name == "none" {
        return Ok((None, a));
    }
    let got @ (rows, cols) = (a.rows(), a.cols());
    if rows != cols {
        let expected =
            "a square matrix for scaled rows and columns: scaling would change a least-squares problem";
        return Err(Error::Shape { operation: "solve".into(), expected: expected.into(), got });
    }
    let Some([r, c]) = scaling(&a, name) else {
        let names = ["none"].into_iter().chain(SCALINGS.iter().map(|scaling| scaling.name));
        return Err(unknown("scale", names, name));
    };
    let times = |(i, j, v): (usize, usize, T)| v.scale_by_power_of_two(r[i] + c[j]);
    let values = a.entries().map(times).collect();
    let said = |exponents: &[i32]| match (exponents.iter().min(), exponents.iter().max()) {
        (Some(least), Some(most)) => format!("2^{least} to 2^{most}"),
        _ => "1".into(),
    };
    let chosen = Chosen::new(name, format!("rows times {}, columns times {}", said(&r), said(&c)));
    let a = Arc::new(a.with_values(values)?);
    Ok((Some(Scaled { exponents: [r, c], chosen }), a))
}
