//! Explains from the numbers of a small system why it was not solved: its rank.
use crate::vector_norm;
use lacuna_engine::{Complex64, Scalar, compiled_here};
use lacuna_formats::Csr;
use lacuna_formats::factor::equilibrated;

/// The most unknowns of a matrix that is factorised as a dense one: a few milliseconds.
const SMALL: usize = 128;

/// What is said of a small square system of deficient rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deficient {
    /// The numerical rank.
    pub rank: usize,
    /// Whether `b` is in the range of `A`, to half the digits of the number type.
    pub consistent: bool,
}

/// The numerical rank of a square matrix of at most 128 rows whose rank is not full, and whether `A x = b` has a solution. `None` for a
/// larger matrix, and for one of full rank.
///
/// Rows and columns are scaled first, so that units do not matter; then Householder reflections with column pivoting (Businger
/// and Golub 1965, doi:10.1007/BF01436084) end where no column has more than `n ε` of the first one left.
pub fn deficiency<T: Scalar>(a: &Csr<T>, b: &[T]) -> Option<Deficient> {
    compiled_here!(T, |a: &Csr<T>, b: &[T]| -> Option<Deficient> {
        let n = a.rows();
        if n == 0 || n > SMALL || n != a.cols() || b.len() != n {
            return None;
        }
        let (mut columns, mut b) = equilibrated_columns(a, b);
        let mut first = None;
        for k in 0..n {
            let left = |column: &[Complex64]| vector_norm(&column[k..]);
            let at = (k..n).max_by(|&i, &j| left(&columns[i]).total_cmp(&left(&columns[j])))?;
            let size = left(&columns[at]);
            if size <= n as f64 * T::EPSILON * *first.get_or_insert(size) {
                let consistent = vector_norm(&b[k..]) <= T::EPSILON.sqrt() * vector_norm(&b);
                return Some(Deficient { rank: k, consistent });
            }
            columns.swap(k, at);
            let (done, rest) = columns.split_at_mut(k + 1);
            let v = &mut done[k][k..];
            let head = v[0].modulus();
            let phase = if head == 0.0 { Complex64::new(1.0, 0.0) } else { v[0] / head };
            v[0] += phase * size;
            let square = vector_norm(v).powi(2);
            for column in rest.iter_mut().chain([&mut b]) {
                let along = dot(v, &column[k..]) * (2.0 / square);
                column[k..].iter_mut().zip(&*v).for_each(|(c, v)| *c -= along * v);
            }
        }
        None
    })(a, b)
}

fn wide<T: Scalar>(v: T) -> Complex64 {
    Complex64::new(v.re(), v.im())
}

/// The columns of a matrix and a right-hand side, equilibrated.
fn equilibrated_columns<T: Scalar>(a: &Csr<T>, b: &[T]) -> (Vec<Vec<Complex64>>, Vec<Complex64>) {
    let (by_row, by_column) = equilibrated(a);
    let mut columns = vec![vec![Complex64::new(0.0, 0.0); a.rows()]; a.cols()];
    for (i, j, v) in a.entries() {
        columns[j][i] = wide(v).scale_by_power_of_two(by_row[i] + by_column[j]);
    }
    (columns, b.iter().zip(by_row).map(|(b, by)| wide(*b).scale_by_power_of_two(by)).collect())
}

fn dot(v: &[Complex64], w: &[Complex64]) -> Complex64 {
    v.iter().zip(w).map(|(v, w)| v.conj() * w).sum()
}

#[cfg(test)]
mod tests {
    use super::{Deficient, deficiency};
    use lacuna_engine::{Complex64, Scalar};
    use lacuna_formats::{Csr, Triplets};

    fn matrix<T: Scalar>(rows: &[&[T]]) -> Csr<T> {
        let mut triplets = Triplets::new(rows.len(), rows.len());
        for (i, row) in rows.iter().enumerate() {
            row.iter().enumerate().for_each(|(j, v)| triplets.push(i, j, *v));
        }
        triplets.to_csr().unwrap()
    }

    #[test]
    fn a_contradiction_is_told_from_a_free_unknown() {
        let a = matrix(&[&[1.0, 1.0, 0.3], &[2.0, 2.0, 0.6], &[0.1, 0.7, 1e-9]]);
        assert_eq!(deficiency(&a, &[1.0, 2.0, 5.0]), Some(Deficient { rank: 2, consistent: true }));
        assert_eq!(deficiency(&a, &[1.0, 2.1, 5.0]), Some(Deficient { rank: 2, consistent: false }));
        let unit = Complex64::new(0.0, 1.0);
        let a = matrix(&[&[unit, unit * unit], &[unit * unit, unit * unit * unit]]);
        let b = |second| [Complex64::new(1.0, 1.0), second];
        assert!(deficiency(&a, &b(unit * Complex64::new(1.0, 1.0))).is_some_and(|found| found.consistent));
        assert!(deficiency(&a, &b(unit)).is_some_and(|found| !found.consistent));
    }

    #[test]
    fn units_are_no_deficiency() {
        let a = matrix(&[&[1e200, 2e200], &[1e-100, 1e-100]]);
        assert_eq!(deficiency(&a, &[1.0, 1.0]), None);
        assert_eq!(deficiency(&matrix(&[&[1e-30f32, 1e20], &[1e-30, 2e20]]), &[1.0, 1.0]), None);
        assert_eq!(deficiency(&Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap(), &[]), None);
    }
}
