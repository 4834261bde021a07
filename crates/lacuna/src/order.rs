//! Solves a system in another order of its rows and columns, transparently to the caller.
use crate::Chosen;
use lacuna_engine::{Error, Result, Scalar};
use lacuna_formats::{Csr, MATCHING, ORDERS, Permutation, Profile, Structure, heaviest_diagonal, reorder};
use ndarray::{ArrayView1, ArrayViewMut1};
use std::borrow::Cow;
use std::sync::Arc;

/// Rows that are looked at to find whether entries have a mirror image.
const SAMPLED: usize = 4096;

/// The order in which a system is solved.
pub(crate) struct Order {
    /// `None` for the caller's order. The rows are those of the right-hand side, the columns those of `x`.
    rows: Option<Permutation>,
    columns: Option<Permutation>,
    pub(crate) chosen: Chosen,
}

impl Order {
    /// The order with the given name, and the matrix in that order.
    ///
    /// # Errors
    /// As [`reorder`].
    pub(crate) fn new<T: Scalar>(a: Arc<Csr<T>>, name: &str) -> Result<(Self, Arc<Csr<T>>)> {
        if name == MATCHING.name {
            return Self::with_heavy_diagonal(a);
        }
        let names: Vec<_> =
            ["none", "auto", MATCHING.name].into_iter().chain(ORDERS.map(|order| order.name)).collect();
        if !names.contains(&name) {
            let message = format!("expected one of {}, got `{name}`", names.join(", "));
            return Err(Error::Argument { what: "reorder".into(), message });
        }
        let permutation = if name == "none" { None } else { reorder(&a, name)? };
        let Some(permutation) = permutation else {
            let why = if name == "none" { "the order given" } else { "another order would gain nothing" };
            return Ok((Self::given(why), a));
        };
        let permuted = a.permuted(&permutation)?;
        let [before, after] = [&*a, &permuted].map(Profile::of);
        let why = format!(
            "bandwidth {} instead of {}, profile {} instead of {}",
            after.bandwidth, before.bandwidth, after.profile, before.profile
        );
        let name = if name == "auto" { "rcm" } else { name };
        let chosen = Chosen::new(name, why);
        let order = Order { rows: Some(permutation.clone()), columns: Some(permutation), chosen };
        Ok((order, Arc::new(permuted)))
    }

    fn given(why: &str) -> Self {
        Order { rows: None, columns: None, chosen: Chosen::new("none", why) }
    }

    /// Rows in an order with large entries on the diagonal, if there is one without zeros.
    fn with_heavy_diagonal<T: Scalar>(a: Arc<Csr<T>>) -> Result<(Self, Arc<Csr<T>>)> {
        let Some(rows) = heaviest_diagonal(&a) else {
            return Ok((Self::given("no order of the rows has a diagonal without zeros"), a));
        };
        let moved = rows.order().iter().enumerate().filter(|(new, old)| *new != **old as usize).count();
        let arranged = a.rearranged(Some(&rows), None)?;
        let why = format!("{moved} rows moved, for large entries on the diagonal");
        let order = Order { rows: Some(rows), columns: None, chosen: Chosen::new(MATCHING.name, why) };
        Ok((order, Arc::new(arranged)))
    }

    /// Rows moved because the matrix has zeros on its diagonal, unless most of its entries have a mirror image,
    /// which that would take away from factorisations. `None` if they stay.
    pub(crate) fn against_zeros<T: Scalar>(
        a: &Arc<Csr<T>>,
        s: &Structure,
    ) -> Result<Option<(Self, Arc<Csr<T>>)>> {
        if s.zero_diagonal == 0 || s.rows != s.cols || s.pattern_symmetric || is_mirrored(a) {
            return Ok(None);
        }
        let (order, arranged) = Self::with_heavy_diagonal(a.clone())?;
        Ok(order.changes().then_some((order, arranged)))
    }

    /// A matrix of the same pattern in this order.
    pub(crate) fn arranged<T: Scalar>(&self, a: &Arc<Csr<T>>) -> Result<Arc<Csr<T>>> {
        match self.changes() {
            true => Ok(Arc::new(a.rearranged(self.rows.as_ref(), self.columns.as_ref())?)),
            false => Ok(a.clone()),
        }
    }

    /// Whether it differs from the caller's order.
    pub(crate) fn changes(&self) -> bool {
        self.rows.is_some() || self.columns.is_some()
    }

    /// Copies the right-hand side and the starting guess in this order.
    pub(crate) fn stage<T: Scalar>(
        &self,
        staged: &mut [Vec<T>; 2],
        b: ArrayView1<'_, T>,
        x: ArrayView1<'_, T>,
    ) -> Result<()> {
        let [staged_b, staged_x] = staged;
        stage(&self.rows, staged_b, ("b", b))?;
        stage(&self.columns, staged_x, ("x0", x))
    }

    /// Elements of a right-hand side in the caller's order.
    pub(crate) fn given_rhs<'v, T: Scalar>(&self, values: &'v [T]) -> Cow<'v, [T]> {
        given(&self.rows, values)
    }

    /// Elements of a solution in the caller's order.
    pub(crate) fn given_solution<'v, T: Scalar>(&self, values: &'v [T]) -> Cow<'v, [T]> {
        given(&self.columns, values)
    }

    /// Copies a solution back to the caller's order.
    pub(crate) fn restore<T: Scalar>(&self, solution: &[T], mut x: ArrayViewMut1<'_, T>) {
        match &self.columns {
            Some(columns) => {
                columns.order().iter().zip(solution).for_each(|(&old, &value)| x[old as usize] = value);
            }
            None => x.iter_mut().zip(solution).for_each(|(x, &value)| *x = value),
        }
    }

    /// Translates an error to the caller's rows.
    pub(crate) fn in_given_rows(&self, error: Error) -> Error {
        let old = |permutation: &Option<Permutation>, new: usize| {
            let order = permutation.as_ref().and_then(|permutation| permutation.order().get(new));
            order.map_or(new, |&old| old as usize)
        };
        match error {
            Error::Element { operation, what, row, message } => {
                let row = if what == "b" { old(&self.rows, row) } else { old(&self.columns, row) };
                Error::Element { operation, what, row, message }
            }
            Error::Entry { operation, row, column, message } => Error::Entry {
                operation,
                row: old(&self.rows, row),
                column: old(&self.columns, column),
                message,
            },
            other => other,
        }
    }
}

/// Whether most entries beside the diagonal have a mirror image, judged by some rows.
fn is_mirrored<T: Scalar>(a: &Csr<T>) -> bool {
    let rows = (0..a.rows()).step_by(a.rows().div_ceil(SAMPLED).max(1));
    let beside = rows.flat_map(|i| a.row_entries(i).map(move |(j, _)| (i, j))).filter(|(i, j)| i != j);
    let (mut all, mut mirrored) = (0, 0);
    for (i, j) in beside {
        all += 1;
        mirrored += a.get(j, i).is_some() as usize;
    }
    2 * mirrored >= all
}

/// Copies a vector in the order of a permutation.
fn stage<T: Scalar>(
    permutation: &Option<Permutation>,
    staged: &mut Vec<T>,
    (what, given): (&str, ArrayView1<'_, T>),
) -> Result<()> {
    staged.clear();
    let Some(permutation) = permutation else {
        staged.extend(given.iter());
        return Ok(());
    };
    Error::check_length("solve", what, permutation.len(), given.len())?;
    staged.extend(permutation.order().iter().map(|&old| given[old as usize]));
    Ok(())
}

/// Elements in the order before a permutation.
fn given<'v, T: Scalar>(permutation: &Option<Permutation>, values: &'v [T]) -> Cow<'v, [T]> {
    let Some(permutation) = permutation else { return values.into() };
    let mut given = values.to_vec();
    permutation.order().iter().zip(values).for_each(|(&old, &value)| given[old as usize] = value);
    given.into()
}
