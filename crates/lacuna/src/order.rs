//! Solves a system in another order of its rows, transparently to the caller.
use crate::Chosen;
use lacuna_engine::{Error, Result, Scalar};
use lacuna_formats::{Csr, Permutation, Profile, reorder};
use ndarray::{ArrayView1, ArrayViewMut1};
use std::sync::Arc;

/// The order in which a system is solved.
pub(crate) struct Order {
    /// `None` for the caller's order.
    permutation: Option<Permutation>,
    pub(crate) chosen: Chosen,
}

impl Order {
    /// The order with the given name, and the matrix in that order.
    ///
    /// # Errors
    /// As [`reorder`].
    pub(crate) fn new<T: Scalar>(a: Arc<Csr<T>>, name: &str) -> Result<(Self, Arc<Csr<T>>)> {
        let permutation = if name == "none" { None } else { reorder(&a, name)? };
        let Some(permutation) = permutation else {
            let why = if name == "none" { "the order given" } else { "another order would gain nothing" };
            return Ok((Order { permutation: None, chosen: Chosen::new("none", why) }, a));
        };
        let permuted = a.permuted(&permutation)?;
        let [before, after] = [&*a, &permuted].map(Profile::of);
        let why = format!(
            "bandwidth {} instead of {}, profile {} instead of {}",
            after.bandwidth, before.bandwidth, after.profile, before.profile
        );
        let name = if name == "auto" { "rcm" } else { name };
        Ok((Order { permutation: Some(permutation), chosen: Chosen::new(name, why) }, Arc::new(permuted)))
    }

    /// A matrix of the same pattern in this order.
    pub(crate) fn arranged<T: Scalar>(&self, a: &Arc<Csr<T>>) -> Result<Arc<Csr<T>>> {
        match &self.permutation {
            Some(permutation) => Ok(Arc::new(a.permuted(permutation)?)),
            None => Ok(a.clone()),
        }
    }

    /// Whether it differs from the caller's order.
    pub(crate) fn changes(&self) -> bool {
        self.permutation.is_some()
    }

    /// Copies the right-hand side and the starting guess in this order.
    pub(crate) fn stage<T: Scalar>(
        &self,
        staged: &mut [Vec<T>; 2],
        b: ArrayView1<'_, T>,
        x: ArrayView1<'_, T>,
    ) -> Result<()> {
        for (staged, (what, given)) in staged.iter_mut().zip([("b", b.view()), ("x0", x.view())]) {
            staged.clear();
            let Some(permutation) = &self.permutation else {
                staged.extend(given.iter());
                continue;
            };
            Error::check_length("solve", what, permutation.len(), given.len())?;
            staged.extend(permutation.order().iter().map(|&old| given[old as usize]));
        }
        Ok(())
    }

    /// Elements of a vector in the caller's order.
    pub(crate) fn given<T: Scalar>(&self, values: &[T]) -> Vec<T> {
        let mut given = values.to_vec();
        let order = self.permutation.iter().flat_map(|permutation| permutation.order());
        order.zip(values).for_each(|(&old, &value)| given[old as usize] = value);
        given
    }

    /// Copies a solution back to the caller's order.
    pub(crate) fn restore<T: Scalar>(&self, solution: &[T], mut x: ArrayViewMut1<'_, T>) {
        match &self.permutation {
            Some(permutation) => {
                permutation.order().iter().zip(solution).for_each(|(&old, &value)| x[old as usize] = value);
            }
            None => x.iter_mut().zip(solution).for_each(|(x, &value)| *x = value),
        }
    }

    /// Translates an error to the caller's rows.
    pub(crate) fn in_given_rows(&self, error: Error) -> Error {
        let Some(permutation) = &self.permutation else { return error };
        let given = |row: usize| permutation.order().get(row).map_or(row, |&old| old as usize);
        match error {
            Error::Element { operation, what, row, message } => {
                Error::Element { operation, what, row: given(row), message }
            }
            Error::Entry { operation, row, column, message } => {
                Error::Entry { operation, row: given(row), column: given(column), message }
            }
            other => other,
        }
    }
}
