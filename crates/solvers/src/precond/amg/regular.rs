//! Coarse unknowns that the coarse matrix does not determine: it gets diagonal entries for them.
use super::rows::size;
use lacuna_engine::{Double, Result};
use lacuna_formats::{Csr, parallel};

/// Rounding errors of a diagonal entry of `R A P`, in units of the unit roundoff and of the moduli of its terms.
const ROUNDING: f64 = 64.0;

/// A coarse matrix, made of values of this precision, with a regular diagonal, and the number of unknowns that were not determined, besides those that nothing
/// depends on.
///
/// A part of the matrix without couplings to others, and singular by itself, may end as one node whose equations are
/// `0 = 0` but for rounding. Its unknowns get the size of the diagonal entries of the finer level, and no couplings: then
/// the smoother of the coarse level is defined, and corrects little, since consistent residuals vanish there. `dependent` unknowns,
/// which nothing depends on, get the largest diagonal entry of their node.
pub(super) fn regular<T: Double>(
    (coarse, epsilon): (Csr<T>, f64),
    r: &Csr<T>,
    diagonal: &[T],
    block: usize,
    dependent: &[usize],
) -> Result<(Csr<T>, usize)> {
    let scale = |i: usize| -> f64 {
        let term = |(k, v): (usize, T)| size(v) * size(v) * size(diagonal[k]);
        r.row_entries(i).map(term).sum()
    };
    let is_floating = |&i: &usize| {
        let node = i / block * block;
        let (columns, values) = coarse.row_slices(i);
        let ends = columns.first().zip(columns.last());
        let alone =
            ends.is_some_and(|(first, last)| *first as usize >= node && (*last as usize) < node + block);
        let own = || columns.binary_search(&(i as u32)).map_or(0.0, |k| size(values[k]));
        alone && own() <= ROUNDING * epsilon * scale(i) && !dependent.contains(&i)
    };
    let floating =
        parallel::map(coarse.row_shares(), |rows| rows.filter(is_floating).collect::<Vec<_>>()).concat();
    if floating.is_empty() && dependent.is_empty() {
        return Ok((coarse, 0));
    }
    let mut values = coarse.values().to_vec();
    let mut set = |i: usize, j: usize, to: f64| {
        if let Ok(k) = coarse.row_slices(i).0.binary_search(&(j as u32)) {
            values[coarse.row_ptr()[i] as usize + k] = T::from_real(to);
        }
    };
    for &i in &floating {
        let node = i / block * block;
        (node..node + block).for_each(|j| {
            set(i, j, 0.0);
            set(j, i, 0.0);
        });
        set(i, i, scale(i));
    }
    let diagonal = coarse.diagonal();
    for &i in dependent {
        let node = i / block * block;
        let largest = diagonal[node..node + block].iter().map(|d| size(*d)).fold(0.0, f64::max);
        set(i, i, if largest > 0.0 { largest } else { 1.0 });
    }
    Ok((coarse.with_values(values)?, floating.len()))
}
