//! Incomplete LU factorisation without fill.
use super::pivots::{Incomplete, Pivots, Stopped, go_on, least, with_shifts};
use crate::order::blocks::independent_blocks;
use crate::{Csr, parallel};
use lacuna_engine::{Complex64, Double, Result, compiled_here};
use std::borrow::Cow;
use std::ops::Range;

/// `L U ≈ A` on the pattern of `A`, including the diagonal: `L` left of the diagonal, without its unit
/// diagonal, `U` from the diagonal on. Row by row, entries by increasing column (Saad's IKJ).
///
/// # Errors
/// [`Error::Shape`](lacuna_engine::Error::Shape) unless square; [`Error::Entry`](lacuna_engine::Error::Entry)
/// with the row whose pivot is nearly zero, if shifts are not allowed or do not help.
///
/// Reference: Saad 2003, Iterative Methods for Sparse Linear Systems, Algorithm 10.4,
/// doi:10.1137/1.9780898718003.
pub fn ilu0<T: Double>(a: &Csr<T>, pivots: Pivots) -> Result<Incomplete<T>> {
    compiled_here!(T: Double [f64, Complex64], |a: &Csr<T>, pivots: Pivots| -> Result<Incomplete<T>> {
        with_shifts("ilu0", Cow::Borrowed(a), pivots, factor)
    })(a, pivots)
}

const NOWHERE: u32 = u32::MAX;
/// The entries of a row are looked for in a row this many times as long.
const SEARCH: usize = 32;

/// Factors the values on the pattern of a matrix with a fully stored diagonal, independent blocks of rows on
/// several threads.
pub(super) fn factor<T: Double>(a: &Csr<T>, values: &mut [T]) -> Result<(), Stopped> {
    let first_need = |i: usize| a.row_slices(i).0.first().map_or(i, |&j| (j as usize).min(i));
    let blocks = independent_blocks(a.rows(), first_need);
    // The last border of a block before the end of each share.
    let cut = |share: Range<usize>| blocks[blocks.partition_point(|&border| border <= share.end) - 1];
    let (mut tasks, mut rest, mut start) = (Vec::new(), values, 0);
    for end in a.row_shares().into_iter().map(cut) {
        let entries = (a.row_ptr()[end] - a.row_ptr()[start]) as usize;
        let (own, after) = rest.split_at_mut(entries);
        tasks.push((start..end, own));
        (rest, start) = (after, end);
    }
    let places = || vec![NOWHERE; a.cols()];
    parallel::map_with(tasks, places, |place, (rows, own)| factor_rows(a, place, rows, own))
        .into_iter()
        .collect()
}

/// Factors the values of some rows, which need no others. `place` has an element for each column, all
/// [`NOWHERE`]; it keeps the position of each column in the current row.
fn factor_rows<T: Double>(
    a: &Csr<T>,
    place: &mut [u32],
    rows: Range<usize>,
    values: &mut [T],
) -> Result<(), Stopped> {
    let Range { start: first_row, .. } = rows;
    let first = a.row_ptr()[first_row] as usize;
    let columns = &a.col_idx()[first..first + values.len()];
    let entries = |i: usize| a.row_ptr()[i] as usize - first..a.row_ptr()[i + 1] as usize - first;
    let mut diagonal = vec![0u32; rows.len()];
    let mut reciprocal = vec![T::zero(); rows.len()];
    for i in rows {
        go_on(i)?;
        let row = entries(i);
        let mut largest = 0.0f64;
        for k in row.clone() {
            place[columns[k] as usize] = k as u32;
            largest = largest.max(values[k].re().abs()).max(values[k].im().abs());
        }
        let mut k = row.start;
        while (columns[k] as usize) < i {
            let j = columns[k] as usize;
            let l = values[k] * reciprocal[j - first_row];
            values[k] = l;
            let (above, left) = (diagonal[j - first_row] as usize + 1..entries(j).end, k + 1..row.end);
            if above.len() > SEARCH * left.len() {
                for at in left {
                    if let Ok(found) = columns[above.clone()].binary_search(&columns[at]) {
                        values[at] -= l * values[above.start + found];
                    }
                }
            } else {
                for from in above {
                    let at = place[columns[from] as usize];
                    if at != NOWHERE {
                        values[at as usize] -= l * values[from];
                    }
                }
            }
            k += 1;
        }
        row.for_each(|k| place[columns[k] as usize] = NOWHERE);
        diagonal[i - first_row] = k as u32;
        reciprocal[i - first_row] = T::one().quotient(values[k]);
        if !(values[k].modulus() > least::<T>(largest) && reciprocal[i - first_row].finite()) {
            let message = format!("the pivot is {:e}, almost zero for its row", values[k]);
            return Err(Stopped { row: i, message });
        }
    }
    Ok(())
}
