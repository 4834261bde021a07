//! Incomplete LU factorisation without fill.
use super::pivots::{Incomplete, Pivots, Stopped, least, with_shifts};
use crate::Csr;
use lacuna_engine::{Result, Scalar, compiled_here};

/// `L U ≈ A` on the pattern of `A`, including the diagonal: `L` left of the diagonal, without its unit
/// diagonal, `U` from the diagonal on. Row by row, entries by increasing column (Saad's IKJ).
///
/// # Errors
/// [`Error::Shape`](lacuna_engine::Error::Shape) unless square; [`Error::Entry`](lacuna_engine::Error::Entry)
/// with the row whose pivot is nearly zero, if shifts are not allowed or do not help.
///
/// Reference: Saad 2003, Iterative Methods for Sparse Linear Systems, Algorithm 10.4,
/// doi:10.1137/1.9780898718003.
pub fn ilu0<T: Scalar>(a: &Csr<T>, pivots: Pivots) -> Result<Incomplete<T>> {
    compiled_here!(T, |a: &Csr<T>, pivots: Pivots| -> Result<Incomplete<T>> {
        with_shifts("ilu0", a, pivots, factor)
    })(a, pivots)
}

/// Factors the values on the pattern of a matrix with a fully stored diagonal.
pub(super) fn factor<T: Scalar>(a: &Csr<T>, values: &mut [T]) -> Result<(), Stopped> {
    const NOWHERE: u32 = u32::MAX;
    let (row_ptr, columns) = (a.row_ptr(), a.col_idx());
    // The position of each column in the current row.
    let mut place = vec![NOWHERE; a.rows()];
    let mut diagonal = vec![0u32; a.rows()];
    let mut reciprocal = vec![T::zero(); a.rows()];
    for i in 0..a.rows() {
        let row = row_ptr[i] as usize..row_ptr[i + 1] as usize;
        let mut largest = 0.0f64;
        for k in row.clone() {
            place[columns[k] as usize] = k as u32;
            largest = largest.max(values[k].re().abs()).max(values[k].im().abs());
        }
        let mut k = row.start;
        while (columns[k] as usize) < i {
            let j = columns[k] as usize;
            let l = values[k] * reciprocal[j];
            values[k] = l;
            for above in diagonal[j] as usize + 1..row_ptr[j + 1] as usize {
                let at = place[columns[above] as usize];
                if at != NOWHERE {
                    values[at as usize] -= l * values[above];
                }
            }
            k += 1;
        }
        row.for_each(|k| place[columns[k] as usize] = NOWHERE);
        diagonal[i] = k as u32;
        reciprocal[i] = T::one().quotient(values[k]);
        if !(values[k].modulus() > least::<T>(largest) && reciprocal[i].finite()) {
            let message = format!("the pivot is {:e}, almost zero for its row", values[k]);
            return Err(Stopped { row: i, message });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::ilu0;
    use crate::factor::Pivots;
    use crate::{Csr, Spec, Triplets};
    use lacuna_engine::Error;

    /// `(L U)_ij`
    fn product(f: &Csr<f64>, i: usize, j: usize) -> f64 {
        let l = |k: usize| if k == i { 1.0 } else { f.get(i, k).unwrap_or(0.0) };
        (0..=i.min(j)).map(|k| l(k) * f.get(k, j).unwrap_or(0.0)).sum()
    }

    #[test]
    fn the_product_is_the_matrix_on_its_pattern() {
        for name in ["gen:convection:9x8:30", "gen:poisson2d:9x8"] {
            let a = Spec::parse(name).unwrap().build::<f64>().unwrap();
            let f = ilu0(&a, Pivots::Refuse).unwrap();
            assert_eq!((f.shift, f.factor.nnz()), (0.0, a.nnz()));
            for (i, j, v) in a.entries() {
                let got = product(&f.factor, i, j);
                assert!((got - v).abs() <= 1e-12 * a.get(i, i).unwrap(), "{name} {i} {j}: {got} {v}");
            }
        }
    }

    #[test]
    fn a_pivot_of_nothing_is_named_or_shifted() {
        let mut triplets = Triplets::new(3, 3);
        for (i, j, v) in [(0, 0, 2.0), (0, 1, 2.0), (1, 0, 3.0), (1, 1, 3.0), (2, 2, 5.0), (2, 1, 1.0)] {
            triplets.push(i, j, v);
        }
        let a: Csr<f64> = triplets.to_csr().unwrap();
        let refused = ilu0(&a, Pivots::Refuse).unwrap_err();
        assert!(matches!(refused, Error::Entry { row: 1, column: 1, .. }), "{refused}");
        assert_eq!(ilu0(&a, Pivots::Shift).unwrap().shift, 1e-3);
        // A diagonal entry that is not stored counts as 0 and is shifted by the largest entry of its row.
        let mut triplets = Triplets::new(2, 2);
        [(0, 1, 4.0), (1, 0, 4.0)].into_iter().for_each(|(i, j, v)| triplets.push(i, j, v));
        let f = ilu0(&triplets.to_csr().unwrap(), Pivots::Shift).unwrap();
        assert_eq!(f.factor.get(0, 0), Some(4e-3));
    }
}
