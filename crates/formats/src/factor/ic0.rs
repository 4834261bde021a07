//! Incomplete Cholesky factorisation without fill.
use super::pivots::{Incomplete, Pivots, Stopped, go_on, least, with_shifts};
use crate::Csr;
use crate::algebra::fill_rows;
use lacuna_engine::{Complex64, Double, Result, compiled_here};
use std::borrow::Cow;

/// `L Lᴴ ≈ A` on the pattern of the lower triangle of a Hermitian `A`, including the diagonal. The entries
/// above the diagonal are not read. Row by row, entries by increasing column.
///
/// # Errors
/// [`Error::Shape`](lacuna_engine::Error::Shape) unless square; [`Error::Entry`](lacuna_engine::Error::Entry)
/// with the row whose pivot is not positive, if shifts are not allowed or do not help.
///
/// Reference: Meijerink and van der Vorst 1977, doi:10.1090/S0025-5718-1977-0438681-4; shifts by Manteuffel
/// 1980, doi:10.1090/S0025-5718-1980-0559197-0.
pub fn ic0<T: Double>(a: &Csr<T>, pivots: Pivots) -> Result<Incomplete<T>> {
    compiled_here!(T: Double [f64, Complex64], |a: &Csr<T>, pivots: Pivots| -> Result<Incomplete<T>> {
        let length = |i: usize| a.row_slices(i).0.partition_point(|&j| j as usize <= i);
        let lower = fill_rows("ic0", a.rows(), a.cols(), length, |i, columns, values| {
            let (own_columns, own_values) = a.row_slices(i);
            columns.copy_from_slice(&own_columns[..columns.len()]);
            values.copy_from_slice(&own_values[..values.len()]);
        })?;
        with_shifts("ic0", Cow::Owned(lower), pivots, factor)
    })(a, pivots)
}

/// The entries of a row are looked for in a row this many times as long.
const SEARCH: usize = 32;

fn factor<T: Double>(a: &Csr<T>, values: &mut [T]) -> Result<(), Stopped> {
    let (row_ptr, columns) = (a.row_ptr(), a.col_idx());
    let mut reciprocal = vec![T::zero(); a.rows()];
    // The current row as far as it is factored, by column; zero elsewhere.
    let mut row = vec![T::zero(); a.rows()];
    for i in 0..a.rows() {
        go_on(i)?;
        // The diagonal is the last entry of its row, and is stored.
        let (start, end) = (row_ptr[i] as usize, row_ptr[i + 1] as usize - 1);
        let mut largest = values[end].re().abs();
        let mut pivot = values[end];
        for k in start..end {
            largest = largest.max(values[k].re().abs()).max(values[k].im().abs());
            let j = columns[k] as usize;
            let mut sum = values[k];
            if k > start {
                let other = row_ptr[j] as usize..row_ptr[j + 1] as usize - 1;
                if other.len() > SEARCH * (k - start) {
                    for at in start..k {
                        if let Ok(found) = columns[other.clone()].binary_search(&columns[at]) {
                            sum -= values[at] * values[other.start + found].conj();
                        }
                    }
                } else {
                    for (&c, &v) in columns[other.clone()].iter().zip(&values[other]) {
                        sum -= row[c as usize] * v.conj();
                    }
                }
            }
            let l = sum * reciprocal[j];
            (values[k], row[j]) = (l, l);
            pivot -= l * l.conj();
        }
        columns[start..end].iter().for_each(|&j| row[j as usize] = T::zero());
        let root = pivot.re().sqrt();
        let positive = pivot.re() > least::<T>(largest) && pivot.im() == 0.0;
        if !(positive && root.is_finite() && root.recip().is_finite()) {
            return Err(Stopped { row: i, message: format!("the pivot is {pivot:e}, not positive") });
        }
        values[end] = T::from_real(root);
        reciprocal[i] = T::from_real(root.recip());
    }
    Ok(())
}
