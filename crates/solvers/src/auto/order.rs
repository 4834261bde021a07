//! Solves a system in another order of its rows and columns, transparently to the caller.
use super::Chosen;
use lacuna_engine::{Error, Result, Scalar};
use lacuna_formats::{Csr, MATCHING, ORDERS, Permutation, Profile, Structure, heaviest_diagonal, reorder};
use std::borrow::Cow;
use std::sync::Arc;

/// Rows that are looked at to find whether entries have a mirror image.
const SAMPLED: usize = 4096;

/// The order in which a system is solved.
pub(super) struct Order {
    /// `None` for the caller's order. The rows are those of the right-hand side, the columns those of `x`.
    rows: Option<Permutation>,
    columns: Option<Permutation>,
    pub(super) chosen: Chosen,
}

impl Order {
    /// The order with the given name, and the matrix in that order.
    ///
    /// # Errors
    /// As [`reorder`].
    pub(super) fn new<T: Scalar>(a: Arc<Csr<T>>, name: &str) -> Result<(Self, Arc<Csr<T>>)> {
        if name == MATCHING.name {
            return Self::with_heavy_diagonal(a);
        }
        let names: Vec<_> = ["none", "auto", MATCHING.name]
            .into_iter()
            .chain(ORDERS.iter().map(|order| order.name))
            .collect();
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
    pub(super) fn against_zeros<T: Scalar>(
        a: &Arc<Csr<T>>,
        s: &Structure,
    ) -> Result<Option<(Self, Arc<Csr<T>>)>> {
        if s.zero_diagonal == 0 || s.rows != s.cols || s.pattern_symmetric || is_mirrored(a) {
            return Ok(None);
        }
        let (order, arranged) = Self::with_heavy_diagonal(a.clone())?;
        Ok(order.changes().then_some((order, arranged)))
    }

    /// A matrix of this order in the caller's.
    pub(super) fn given_matrix<T: Scalar>(&self, a: &Arc<Csr<T>>) -> Result<Arc<Csr<T>>> {
        if !self.changes() {
            return Ok(a.clone());
        }
        let back = |permutation: &Option<Permutation>| {
            permutation.as_ref().map(|permutation| Permutation::new(permutation.inverse())).transpose()
        };
        Ok(Arc::new(a.rearranged(back(&self.rows)?.as_ref(), back(&self.columns)?.as_ref())?))
    }

    /// The place in the caller's matrix of each entry of a matrix in this order.
    pub(super) fn given_places<T: Scalar>(&self, a: &Csr<T>) -> Vec<u32> {
        let new_row = self.rows.as_ref().map(Permutation::inverse);
        let old_column = |j: u32| self.columns.as_ref().map_or(j, |columns| columns.order()[j as usize]);
        let (mut from, mut row, mut given) = (vec![0; a.nnz()], Vec::new(), 0..);
        for i in 0..a.rows() {
            let new = new_row.as_ref().map_or(i, |new| new[i] as usize);
            let places = a.row_ptr()[new] as usize..;
            row.clear();
            row.extend(a.row_slices(new).0.iter().map(|&j| old_column(j)).zip(places));
            row.sort_unstable();
            row.iter().zip(&mut given).for_each(|(&(_, at), given)| from[at] = given);
        }
        from
    }

    /// Whether it differs from the caller's order.
    pub(super) fn changes(&self) -> bool {
        self.rows.is_some() || self.columns.is_some()
    }

    /// Copies the right-hand side and the starting guess, each a length and its elements, in this order.
    pub(super) fn stage<T: Scalar>(
        &self,
        staged: &mut [Vec<T>; 2],
        b: (usize, &dyn Fn(usize) -> T),
        x: (usize, &dyn Fn(usize) -> T),
    ) -> Result<()> {
        let [staged_b, staged_x] = staged;
        stage(&self.rows, staged_b, "b", b)?;
        stage(&self.columns, staged_x, "x0", x)
    }

    /// Elements of a right-hand side in the caller's order.
    pub(super) fn given_rhs<'v, T: Scalar>(&self, values: &'v [T]) -> Cow<'v, [T]> {
        let Some(rows) = &self.rows else { return values.into() };
        let mut given = values.to_vec();
        rows.order().iter().zip(values).for_each(|(&old, &value)| given[old as usize] = value);
        given.into()
    }

    /// Hands the elements of a solution on with their numbers in the caller's order.
    pub(super) fn restore<T: Scalar>(&self, solution: &[T], mut set: impl FnMut(usize, T)) {
        match &self.columns {
            Some(columns) => {
                columns.order().iter().zip(solution).for_each(|(&old, &value)| set(old as usize, value));
            }
            None => solution.iter().enumerate().for_each(|(i, &value)| set(i, value)),
        }
    }

    /// Translates an error to the caller's rows.
    pub(super) fn in_given_rows(&self, error: Error) -> Error {
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
    what: &str,
    (len, given): (usize, &dyn Fn(usize) -> T),
) -> Result<()> {
    staged.clear();
    let Some(permutation) = permutation else {
        staged.extend((0..len).map(given));
        return Ok(());
    };
    Error::check_length("solve", what, permutation.len(), len)?;
    staged.extend(permutation.order().iter().map(|&old| given(old as usize)));
    Ok(())
}
