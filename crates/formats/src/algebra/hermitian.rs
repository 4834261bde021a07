//! Matrices that are not Hermitian: the entry that says so, and whether rounding explains it.
use crate::Csr;
use lacuna_engine::{Error, Result, Scalar};

/// Fails at the first entry, in row order, of a square matrix that is not the conjugate of its mirror entry. Reads the matrix once.
///
/// # Errors
/// [`Error::Entry`], which names the entry; [`Error::Shape`] for a matrix that is not square.
pub fn check_hermitian<T: Scalar>(operation: &str, a: &Csr<T>) -> Result<()> {
    if a.rows() != a.cols() {
        let expected = "a square matrix".into();
        return Err(Error::Shape { operation: operation.into(), expected, got: (a.rows(), a.cols()) });
    }
    let Some((row, column)) = first_without_image(a) else { return Ok(()) };
    let text = |at: Option<T>| at.map_or("not stored".into(), |v| format!("{v}"));
    let (own, image) = (text(a.get(row, column)), text(a.get(column, row)));
    let message = format!("it is {own}, its mirror entry is {image}; expected a Hermitian matrix");
    Err(Error::Entry { operation: operation.into(), row, column, message })
}

/// Units of rounding by which an entry may differ from its mirror image if that is said to be rounding.
const UNITS: f64 = 8.0;

/// By how much entries differ from their mirror images at most, relative to themselves, in a matrix that is not Hermitian by
/// rounding alone, as `S A S` computed from a Hermitian `A`. `None` for any other matrix, Hermitian ones included.
pub fn lost_symmetry<T: Scalar>(a: &Csr<T>) -> Option<f64> {
    let difference = |i: usize, j: usize, v: T| {
        let off = (v - a.get(j, i)?.conj()).modulus();
        (off <= UNITS * T::EPSILON * v.modulus()).then(|| if off == 0.0 { 0.0 } else { off / v.modulus() })
    };
    if a.rows() != a.cols() {
        return None;
    }
    let most = a.entries().try_fold(0.0, |most, (i, j, v)| Some(f64::max(most, difference(i, j, v)?)));
    most.filter(|most| *most > 0.0)
}

/// Visits the entries above the diagonal by rows, which visits those below by columns. Each row keeps a
/// pointer to its next entry.
fn first_without_image<T: Scalar>(a: &Csr<T>) -> Option<(usize, usize)> {
    let (row_ptr, columns, values) = (a.row_ptr(), a.col_idx(), a.values());
    let mut next: Vec<u32> = row_ptr[..a.rows()].to_vec();
    for i in 0..a.rows() {
        // An entry left below the diagonal of this row has no mirror entry: all rows above have been visited.
        let below = next[i] as usize;
        let end = row_ptr[i + 1] as usize;
        if below < end && (columns[below] as usize) < i {
            return Some((i, columns[below] as usize));
        }
        for k in below..end {
            let j = columns[k] as usize;
            if j == i {
                if values[k] != values[k].conj() {
                    return Some((i, i));
                }
                continue;
            }
            let image = next[j] as usize;
            let there = image < row_ptr[j + 1] as usize && columns[image] as usize == i;
            if !there || values[image] != values[k].conj() {
                return Some((i, j));
            }
            next[j] += 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::check_hermitian;
    use crate::{Csr, Triplets};
    use lacuna_engine::{Complex64, Error, Scalar};

    fn place<T: Scalar>(entries: &[(usize, usize, T)]) -> Option<(usize, usize)> {
        let mut triplets = Triplets::new(4, 4);
        entries.iter().for_each(|&(i, j, v)| triplets.push(i, j, v));
        let a: Csr<T> = triplets.to_csr().unwrap();
        match check_hermitian("test", &a) {
            Ok(()) => None,
            Err(Error::Entry { row, column, .. }) => Some((row, column)),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn the_first_entry_without_its_image_is_named() {
        assert_eq!(place(&[(0, 0, 1.0), (0, 2, 3.0), (2, 0, 3.0), (3, 1, 2.0), (1, 3, 2.0)]), None);
        assert_eq!(place(&[(0, 0, 1.0), (0, 2, 3.0), (2, 0, 3.5)]), Some((0, 2)));
        assert_eq!(place(&[(0, 2, 3.0)]), Some((0, 2)));
        assert_eq!(place(&[(2, 1, 3.0)]), Some((2, 1)));
        assert_eq!(place(&[(1, 2, 4.0), (2, 0, 1.0), (2, 1, 4.0)]), Some((1, 2)));
        let c = Complex64::new;
        assert_eq!(place(&[(0, 1, c(1.0, 2.0)), (1, 0, c(1.0, -2.0)), (2, 2, c(1.0, 0.0))]), None);
        assert_eq!(place(&[(0, 1, c(1.0, 2.0)), (1, 0, c(1.0, 2.0))]), Some((0, 1)));
        assert_eq!(place(&[(0, 0, c(1.0, 0.0)), (3, 3, c(1.0, 1.0))]), Some((3, 3)));
    }
}
