//! Incomplete LU factorisation with a drop tolerance, partial pivoting and a limit on the fill.
use super::column_order::{column_order, diagonal_order};
use super::elimination::Elimination;
use super::equilibrate::equilibrated;
use super::ilu0;
use super::pivots::Stopped;
use crate::algebra::build_rows;
use crate::parallel::Check;
use crate::{Csr, interrupt};
use lacuna_engine::{Complex64, Double, Error, Result, compiled_here};

pub(super) const OPERATION: &str = "ilut";

/// Columns between two checks whether to go on.
const CHECKED: usize = 512;

/// Options of a factorisation.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct IlutOptions {
    /// Entries of `U` smaller than this times the largest entry of their column of the matrix are dropped,
    /// and entries of `L` smaller than this.
    pub drop: f64,
    /// The factors have at most this many times the entries of the matrix.
    pub fill: f64,
    /// The diagonal is the pivot if it is at least this fraction of the largest candidate; 0 disables
    /// pivoting.
    pub threshold: f64,
    /// Whether columns are ordered, by [`diagonal_order`] if each diagonal entry would be the pivot of its own
    /// column, otherwise by [`column_order`]; if not, they keep their own order.
    pub ordered: bool,
}

lacuna_engine::setters!(IlutOptions { drop: f64, fill: f64, threshold: f64, ordered: bool });

impl Default for IlutOptions {
    fn default() -> Self {
        IlutOptions { drop: 1e-3, fill: 10.0, threshold: 0.1, ordered: true }
    }
}

/// `2^r A 2^c ≈ Pᵀ L U Qᵀ`: each step eliminates a row and a column.
#[derive(Clone, Debug)]
pub struct Ilut<T> {
    /// `L` left of the diagonal, without its unit diagonal, in elimination order.
    pub lower: Csr<T>,
    /// `U` from the diagonal on, in elimination order.
    pub upper: Csr<T>,
    /// The row of the matrix that each step eliminates.
    pub rows: Vec<u32>,
    /// The column of the matrix that each step eliminates.
    pub columns: Vec<u32>,
    /// Exponents of the row scaling, powers of two.
    pub row_exponents: Vec<i32>,
    /// Exponents of the column scaling, powers of two.
    pub column_exponents: Vec<i32>,
    /// Columns of the matrix that had no pivot, so that one was substituted.
    pub replaced: Vec<u32>,
}

/// Column by column; the row with the largest entry is eliminated next unless the diagonal is large enough;
/// ties go to the smaller row.
///
/// # Errors
/// [`Error::Shape`] unless square; [`Error::OutOfMemory`], and [`Error::Structure`] for too many entries for
/// 32-bit indices; those of the check, which is called every few hundred columns.
///
/// Reference: Saad 1994, doi:10.1002/nla.1680010405; Li and Shao 2011, doi:10.1145/1916461.1916467.
pub fn ilut<T: Double>(a: &Csr<T>, options: &IlutOptions, check: Check<'_>) -> Result<Ilut<T>> {
    compiled_here!(T: Double [f64, Complex64], |a: &Csr<T>, options: &IlutOptions, check: Check<'_>| -> Result<Ilut<T>> {
        let mut check = check;
        let n = a.rows();
        if n != a.cols() {
            let (expected, got) = ("a square matrix".into(), (n, a.cols()));
            return Err(Error::Shape { operation: OPERATION.into(), expected, got });
        }
        interrupt::check()?;
        let (row_exponents, column_exponents) = equilibrated(a);
        interrupt::check()?;
        let scaled =
            |(i, j, v): (usize, usize, T)| v.scale_by_power_of_two(row_exponents[i] + column_exponents[j]);
        let by_columns = a.with_values(a.entries().map(scaled).collect::<Vec<T>>())?.transpose();
        let columns: Vec<u32> = match options.ordered {
            true if diagonal_leads(&by_columns, options.threshold) => diagonal_order(a)?.order().to_vec(),
            true => column_order(a)?.order().to_vec(),
            false => (0..n as u32).collect(),
        };
        let mut work = Elimination::new(n);
        let (mut given, mut kept) = (0usize, 0usize);
        for (step, &column) in columns.iter().enumerate() {
            if let Some(check) = check.as_mut().filter(|_| step.is_multiple_of(CHECKED)) {
                check()?;
            }
            let (rows, values) = by_columns.row_slices(column as usize);
            let largest = values.iter().map(|v| v.modulus()).fold(0.0, f64::max);
            work.load(rows, values);
            work.eliminate(options.drop * largest);
            given += rows.len();
            // What the previous columns left of their share.
            let room = ((options.fill * given as f64) as usize).saturating_sub(kept);
            work.finish(step, column, options, largest, room.max(1))?;
            kept = work.entries();
        }
        let Elimination { lower, upper, rows, place, replaced, .. } = work;
        let lower = lower.transposed(n, |row| place[row as usize])?;
        interrupt::check()?;
        Ok(Ilut {
            lower,
            upper: upper.transposed(n, |step| step)?,
            rows,
            columns,
            row_exponents,
            column_exponents,
            replaced,
        })
    })(a, options, check)
}

/// Whether the diagonal entry of each column is at least a fraction of the largest entry, and not zero.
fn diagonal_leads<T: Double>(by_columns: &Csr<T>, fraction: f64) -> bool {
    (0..by_columns.rows()).all(|j| {
        let (rows, values) = by_columns.row_slices(j);
        let largest = values.iter().map(|v| v.modulus()).fold(0.0, f64::max);
        let own = rows.binary_search(&(j as u32)).map_or(0.0, |k| values[k].modulus());
        own > 0.0 && own >= fraction * largest
    })
}

impl<T: Double> Ilut<T> {
    /// Factors new values with the same steps: the entries kept, the pivots and the scaling stay the same.
    ///
    /// # Errors
    /// [`Error::Length`] for a matrix of a different size; [`Error::Entry`] with the row whose pivot is
    /// nearly zero for these values, which require a new factorisation.
    pub fn refactored(&self, a: &Csr<T>) -> Result<Ilut<T>> {
        compiled_here!(T: Double [f64, Complex64], |old: &Ilut<T>, a: &Csr<T>| -> Result<Ilut<T>> {
            let n = old.rows.len();
            Error::check_length(OPERATION, "the rows", n, a.rows())?;
            Error::check_length(OPERATION, "the columns", n, a.cols())?;
            let mut step_of = vec![0u32; n];
            old.columns.iter().enumerate().for_each(|(step, &column)| step_of[column as usize] = step as u32);
            // Both factors in one, with the values of the matrix where it has entries.
            let both = build_rows(OPERATION, n, n, a.row_shares(), |run, out| {
                let (mut columns, mut values) = (Vec::new(), Vec::new());
                for p in run {
                    columns.clear();
                    columns.extend_from_slice(old.lower.row_slices(p).0);
                    columns.extend_from_slice(old.upper.row_slices(p).0);
                    values.clear();
                    values.resize(columns.len(), T::zero());
                    let row = old.rows[p] as usize;
                    for (j, v) in a.row_entries(row) {
                        if let Ok(at) = columns.binary_search(&step_of[j]) {
                            let exponent = old.row_exponents[row] + old.column_exponents[j];
                            values[at] = v.scale_by_power_of_two(exponent);
                        }
                    }
                    out.row(&columns, &values);
                }
            })?;
            let mut values = both.values().to_vec();
            if let Err(Stopped { row, message }) = ilu0::factor(&both, &mut values) {
                interrupt::check()?;
                let (row, column) = (old.rows[row] as usize, old.columns[row] as usize);
                let message = format!("{message} with these values; prepare the system anew");
                return Err(Error::Entry { operation: OPERATION.into(), row, column, message });
            }
            let (mut lower, mut upper) = (Vec::new(), Vec::new());
            for p in 0..n {
                let start = both.row_ptr()[p] as usize;
                let middle = start + old.lower.row_slices(p).0.len();
                lower.extend_from_slice(&values[start..middle]);
                upper.extend_from_slice(&values[middle..both.row_ptr()[p + 1] as usize]);
            }
            let (lower, upper) = (old.lower.with_values(lower)?, old.upper.with_values(upper)?);
            Ok(Ilut { lower, upper, replaced: Vec::new(), ..old.clone() })
        })(self, a)
    }
}
