//! Incomplete LU factorisation with a drop tolerance, partial pivoting and a limit on the fill.
use super::column_order::{column_order, diagonal_order};
use super::elimination::Elimination;
use super::equilibrate::equilibrated;
use super::ilu0;
use super::pivots::Stopped;
use crate::Csr;
use crate::algebra::build_rows;
use crate::parallel::Check;
use lacuna_engine::{Error, Result, Scalar, compiled_here};

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
pub fn ilut<T: Scalar>(a: &Csr<T>, options: &IlutOptions, check: Check<'_>) -> Result<Ilut<T>> {
    compiled_here!(T, |a: &Csr<T>, options: &IlutOptions, check: Check<'_>| -> Result<Ilut<T>> {
        let mut check = check;
        let n = a.rows();
        if n != a.cols() {
            let (expected, got) = ("a square matrix".into(), (n, a.cols()));
            return Err(Error::Shape { operation: OPERATION.into(), expected, got });
        }
        let (row_exponents, column_exponents) = equilibrated(a);
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
        Ok(Ilut {
            lower: lower.transposed(n, |row| place[row as usize])?,
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
fn diagonal_leads<T: Scalar>(by_columns: &Csr<T>, fraction: f64) -> bool {
    (0..by_columns.rows()).all(|j| {
        let (rows, values) = by_columns.row_slices(j);
        let largest = values.iter().map(|v| v.modulus()).fold(0.0, f64::max);
        let own = rows.binary_search(&(j as u32)).map_or(0.0, |k| values[k].modulus());
        own > 0.0 && own >= fraction * largest
    })
}

impl<T: Scalar> Ilut<T> {
    /// Factors new values with the same steps: the entries kept, the pivots and the scaling stay the same.
    ///
    /// # Errors
    /// [`Error::Length`] for a matrix of a different size; [`Error::Entry`] with the row whose pivot is
    /// nearly zero for these values, which require a new factorisation.
    pub fn refactored(&self, a: &Csr<T>) -> Result<Ilut<T>> {
        compiled_here!(T, |old: &Ilut<T>, a: &Csr<T>| -> Result<Ilut<T>> {
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

#[cfg(test)]
mod tests {
    use super::{Ilut, IlutOptions, ilut};
    use crate::{Csr, Spec, Triplets};
    use lacuna_engine::Scalar;

    /// The largest entry of `2^r A 2^c − Pᵀ L U Qᵀ`, by modulus. The entries of `2^r A 2^c` are of size 1.
    fn error(a: &Csr<f64>, f: &Ilut<f64>) -> f64 {
        let n = a.rows();
        let mut most = 0.0f64;
        for p in 0..n {
            let mut row = vec![0.0; n];
            let of_row = f.lower.row_entries(p).chain([(p, 1.0)]);
            of_row.for_each(|(k, l)| f.upper.row_entries(k).for_each(|(q, u)| row[q] += l * u));
            for (q, product) in row.into_iter().enumerate() {
                let (i, j) = (f.rows[p] as usize, f.columns[q] as usize);
                let by = f.row_exponents[i] + f.column_exponents[j];
                let entry = a.get(i, j).unwrap_or(0.0).scale_by_power_of_two(by);
                most = most.max((entry - product).abs());
            }
        }
        most
    }

    fn is_permutation(order: &[u32]) -> bool {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        sorted.iter().enumerate().all(|(i, &row)| i as u32 == row)
    }

    #[test]
    fn nothing_dropped_is_an_exact_factorisation() {
        let exact = IlutOptions { drop: 0.0, fill: 1e9, ..IlutOptions::default() };
        for name in ["gen:convection:9x8:100", "gen:random:80:5:3"] {
            for ordered in [true, false] {
                let a = Spec::parse(name).unwrap().build::<f64>().unwrap();
                let f = ilut(&a, &IlutOptions { ordered, ..exact }, None).unwrap();
                assert!(is_permutation(&f.rows) && is_permutation(&f.columns));
                assert!(error(&a, &f) < 1e-12, "{name}: {}", error(&a, &f));
            }
        }
    }

    #[test]
    fn zeros_on_the_diagonal_are_no_hindrance_and_missing_pivots_are_told() {
        let mut triplets = Triplets::new(4, 4);
        for (i, j, v) in [(0, 1, 2.0), (1, 0, 1e-9), (2, 3, -3.0), (3, 2, 1e12), (3, 3, 1.0)] {
            triplets.push(i, j, v);
        }
        let a: Csr<f64> = triplets.to_csr().unwrap();
        let f = ilut(&a, &IlutOptions { drop: 0.0, ..IlutOptions::default() }, None).unwrap();
        assert!(f.replaced.is_empty() && error(&a, &f) < 1e-12, "{f:?}");
        let singular: Csr<f64> = {
            let mut triplets = Triplets::new(3, 3);
            [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().for_each(|(i, j)| triplets.push(i, j, 1.0));
            triplets.to_csr().unwrap()
        };
        let f = ilut(&singular, &IlutOptions::default(), None).unwrap();
        assert!(is_permutation(&f.rows));
        assert_eq!(f.replaced.len(), 2, "{f:?}");
    }

    #[test]
    fn other_values_are_factored_by_the_same_steps() {
        let exact = IlutOptions { drop: 0.0, fill: 1e9, ..IlutOptions::default() };
        let a = Spec::parse("gen:convection:9x8:100").unwrap().build::<f64>().unwrap();
        let grown = a.entries().map(|(i, j, v)| v * (1.0 + 0.01 * ((i + 2 * j) % 5) as f64)).collect();
        let other = a.with_values(grown).unwrap();
        let f = ilut(&a, &exact, None).unwrap().refactored(&other).unwrap();
        assert!(error(&other, &f) < 1e-12, "{}", error(&other, &f));
        let zeros = a.with_values(vec![0.0; a.nnz()]).unwrap();
        assert!(matches!(f.refactored(&zeros), Err(lacuna_engine::Error::Entry { .. })));
    }

    #[test]
    fn the_fill_is_limited() {
        let a = Spec::parse("gen:poisson2d:40x40").unwrap().build::<f64>().unwrap();
        for fill in [1.0, 2.0, 4.0] {
            let f = ilut(&a, &IlutOptions { drop: 0.0, fill, ..IlutOptions::default() }, None).unwrap();
            let entries = f.lower.nnz() + f.upper.nnz();
            assert!(entries as f64 <= fill * a.nnz() as f64, "{fill}: {entries}");
            assert!(entries as f64 > 0.8 * fill.min(3.0) * a.nnz() as f64, "{fill}: {entries}");
        }
    }
}
