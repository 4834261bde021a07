//! Solves a system with rows and columns in another order and times other factors, transparently to the caller.
use super::Chosen;
use super::sides::{Scaled, Side};
use crate::named::unknown;
use lacuna_engine::{Error, Result, Scalar};
use lacuna_formats::{
    Csr, MATCHING, ORDERS, Permutation, Profile, Structure, heaviest_diagonal, interrupt, reorder,
};
use std::borrow::Cow;
use std::sync::Arc;

/// Rows that are looked at to find whether entries have a mirror image.
const SAMPLED: usize = 4096;

/// The order in which a system is solved, and the factors of its rows and columns.
pub(super) struct Order {
    /// The rows are those of the right-hand side, the columns those of `x`.
    rows: Side,
    columns: Side,
    pub(super) chosen: Chosen,
    /// How it is scaled, if it is.
    pub(super) scaling: Option<Chosen>,
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
            return Err(unknown("reorder", names.into_iter(), name));
        }
        let permutation = if name == "none" { None } else { reorder(&a, name)? };
        let Some(permutation) = permutation else {
            let why = if name == "none" { "the order given" } else { "another order would gain nothing" };
            return Ok((Self::given(why), a));
        };
        interrupt::check()?;
        let permuted = a.permuted(&permutation)?;
        interrupt::check()?;
        let [before, after] = [&*a, &permuted].map(Profile::of);
        let why = format!(
            "bandwidth {} instead of {}, profile {} instead of {}",
            after.bandwidth, before.bandwidth, after.profile, before.profile
        );
        let name = if name == "auto" { "rcm" } else { name };
        let chosen = Chosen::new(name, why);
        let [rows, columns] = [permutation.clone(), permutation].map(Side::permuted);
        Ok((Order { rows, columns, chosen, scaling: None }, Arc::new(permuted)))
    }

    fn given(why: &str) -> Self {
        let [rows, columns] = [Side::default(), Side::default()];
        Order { rows, columns, chosen: Chosen::new("none", why), scaling: None }
    }

    /// The same order of a matrix that was scaled before.
    pub(super) fn of_scaled(mut self, scaled: Option<Scaled>) -> Self {
        if let Some(Scaled { exponents: [rows, columns], chosen }) = scaled {
            (self.rows.exponents, self.columns.exponents) = (rows, columns);
            self.scaling = Some(chosen);
        }
        self
    }

    /// The same order with the scales of another.
    pub(super) fn with_scales_of(self, other: Order) -> Self {
        let rows = Side { exponents: other.rows.exponents, ..self.rows };
        let columns = Side { exponents: other.columns.exponents, ..self.columns };
        Order { rows, columns, scaling: other.scaling, ..self }
    }

    /// Rows in an order with large entries on the diagonal, if there is one without zeros.
    fn with_heavy_diagonal<T: Scalar>(a: Arc<Csr<T>>) -> Result<(Self, Arc<Csr<T>>)> {
        let Some(rows) = heaviest_diagonal(&a) else {
            return Ok((Self::given("no order of the rows has a diagonal without zeros"), a));
        };
        let moved = rows.order().iter().enumerate().filter(|(new, old)| *new != **old as usize).count();
        let arranged = a.rearranged(Some(&rows), None)?;
        let why = format!("{moved} rows moved, for large entries on the diagonal");
        let (rows, columns) = (Side::permuted(rows), Side::default());
        let order = Order { rows, columns, chosen: Chosen::new(MATCHING.name, why), scaling: None };
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
        Ok(order.moves().then_some((order, arranged)))
    }

    /// A matrix of this order in the caller's, without its scales.
    pub(super) fn given_matrix<T: Scalar>(&self, a: &Arc<Csr<T>>) -> Result<Arc<Csr<T>>> {
        let mut a = a.clone();
        if self.scaling.is_some() {
            let mut values = a.values().to_vec();
            self.scale(&a, &mut values, [-1, -1]);
            a = Arc::new(a.with_values(values)?);
        }
        if self.moves() {
            let [rows, columns] = [&self.rows, &self.columns].map(|side| &side.permutation);
            let back = |permutation: &Option<Permutation>| {
                permutation.as_ref().map(|permutation| Permutation::new(permutation.inverse())).transpose()
            };
            a = Arc::new(a.rearranged(back(rows)?.as_ref(), back(columns)?.as_ref())?);
        }
        Ok(a)
    }

    /// Multiplies values of a matrix in this order by the factors of rows and columns to these powers.
    pub(super) fn scale<T: Scalar>(&self, a: &Csr<T>, values: &mut [T], [of_rows, of_columns]: [i32; 2]) {
        if self.scaling.is_none() {
            return;
        }
        let exponents = |side: &Side, count: usize, power: i32| -> Vec<i32> {
            (0..count).map(|new| power * side.exponent(side.old(new))).collect()
        };
        let rows = exponents(&self.rows, a.rows(), of_rows);
        let columns = exponents(&self.columns, a.cols(), of_columns);
        for (i, by_row) in rows.into_iter().enumerate() {
            for k in a.row_ptr()[i] as usize..a.row_ptr()[i + 1] as usize {
                let by_column = columns[a.col_idx()[k] as usize];
                values[k] = values[k].scale_by_power_of_two(by_row + by_column);
            }
        }
    }

    /// A right-hand side in this order without the factors of the rows.
    pub(super) fn unscaled_rhs<T: Scalar>(&self, b: &[T]) -> Vec<T> {
        let exponent = |new| -self.rows.exponent(self.rows.old(new));
        b.iter().enumerate().map(|(new, v)| v.scale_by_power_of_two(exponent(new))).collect()
    }

    /// The place in the caller's matrix of each entry of a matrix in this order; empty if that is the caller's.
    pub(super) fn given_places<T: Scalar>(&self, a: &Csr<T>) -> Vec<u32> {
        if !self.moves() {
            return Vec::new();
        }
        let new_row = self.rows.permutation.as_ref().map(Permutation::inverse);
        let (mut from, mut row, mut given) = (vec![0; a.nnz()], Vec::new(), 0..);
        for i in 0..a.rows() {
            let new = new_row.as_ref().map_or(i, |new| new[i] as usize);
            let places = a.row_ptr()[new] as usize..;
            row.clear();
            row.extend(a.row_slices(new).0.iter().map(|&j| self.columns.old(j as usize)).zip(places));
            row.sort_unstable();
            row.iter().zip(&mut given).for_each(|(&(_, at), given)| from[at] = given);
        }
        from
    }

    /// Whether rows or columns have other places than the caller's.
    pub(super) fn moves(&self) -> bool {
        self.rows.permutation.is_some() || self.columns.permutation.is_some()
    }

    /// Whether rows have factors.
    pub(super) fn scales_rows(&self) -> bool {
        self.rows.exponents.iter().any(|&exponent| exponent != 0)
    }

    /// Whether vectors differ from the caller's.
    pub(super) fn changes(&self) -> bool {
        self.rows.changes() || self.columns.changes()
    }

    /// Copies the right-hand side and the starting guess, each a length and its elements, in this order.
    pub(super) fn stage<T: Scalar>(
        &self,
        staged: &mut [Vec<T>; 2],
        b: (usize, &dyn Fn(usize) -> T),
        x: (usize, &dyn Fn(usize) -> T),
    ) -> Result<()> {
        let [staged_b, staged_x] = staged;
        self.rows.stage(staged_b, "b", 1, b)?;
        self.columns.stage(staged_x, "x0", -1, x)
    }

    /// Elements of a right-hand side in the caller's order.
    pub(super) fn given_rhs<'v, T: Scalar>(&self, values: &'v [T]) -> Cow<'v, [T]> {
        if !self.rows.changes() {
            return values.into();
        }
        let mut given = values.to_vec();
        self.rows.restore(values, -1, |old, value| given[old] = value);
        given.into()
    }

    /// Hands the elements of a solution on with their numbers in the caller's order; none if one would leave the range of numbers.
    pub(super) fn restore<T: Scalar>(&self, solution: &[T], set: impl FnMut(usize, T)) -> Result<()> {
        self.columns.check_range(solution, "x", 1)?;
        self.columns.restore(solution, 1, set);
        Ok(())
    }

    /// Translates an error to the caller's rows.
    pub(super) fn in_given_rows(&self, error: Error) -> Error {
        match error {
            Error::Element { operation, what, row, message } => {
                let row = if what == "b" { self.rows.old(row) } else { self.columns.old(row) };
                Error::Element { operation, what, row, message }
            }
            Error::Entry { operation, row, column, message } => {
                Error::Entry { operation, row: self.rows.old(row), column: self.columns.old(column), message }
            }
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
