//! `P = (I − ω D_F⁻¹ A_F) T`: the tentative prolongator, smoothed by the filtered matrix.
use super::aggregates::{Aggregates, NONE};
use super::filtered::Filtered;
use lacuna_engine::{Double, Result};
use lacuna_formats::algebra::{build_rows, refill_rows_with};
use lacuna_formats::{Csr, parallel};

const OPERATION: &str = "prolongator";

/// The tentative prolongator for one near-null vector: the vector, normalised on each aggregate.
pub(super) struct Tentative<T> {
    /// The entry of each row, in the column of its aggregate.
    pub(super) values: Vec<T>,
    /// The near-null vector of the next level: the norms on the aggregates.
    pub(super) coarse: Vec<T>,
}

impl<T: Double> Tentative<T> {
    /// From a near-null vector, constant where there is none. An aggregate on which it vanishes gets a column of zeros.
    pub(super) fn new(all: &Aggregates, near_null: Option<&[T]>) -> Self {
        let of = |i: usize| near_null.map_or(T::one(), |b| b[i]);
        let mut squares = vec![0.0; all.count];
        for (i, &label) in all.of.iter().enumerate().filter(|(_, label)| **label != NONE) {
            let b = of(i);
            squares[label as usize] += b.re() * b.re() + b.im() * b.im();
        }
        let norms: Vec<f64> = squares.into_iter().map(f64::sqrt).collect();
        let entry = |i: usize| match all.of[i] {
            NONE => T::zero(),
            label => {
                let inverse = norms[label as usize].recip();
                of(i) * T::from_real(if inverse.is_finite() { inverse } else { 0.0 })
            }
        };
        let values = parallel::collect(all.of.len(), 1 << 14, entry);
        Tentative { values, coarse: norms.into_iter().map(T::from_real).collect() }
    }
}

/// The smoothed prolongator `(I − ω D_F⁻¹ A_F) T`; with the pattern of the former one, if there is one. Rows in no aggregate are empty.
pub(super) fn smoothed<T: Double>(
    former: Option<&Csr<T>>,
    matrix: &Filtered<'_, T>,
    all: &Aggregates,
    tentative: &Tentative<T>,
    omega: f64,
) -> Result<Csr<T>> {
    let (a, label) = (matrix.a, &all.of);
    let row = row(matrix, all, tentative, omega);
    if let Some(former) = former {
        return refill_rows_with(OPERATION, former, || (), |(), i, columns, values| row(i, columns, values));
    }
    build_rows(OPERATION, a.rows(), all.count, a.row_shares(), |run, out| {
        let (mut columns, mut values) = (Vec::<u32>::new(), Vec::<T>::new());
        out.reserve(4 * run.len());
        for i in run {
            columns.clear();
            let (neighbours, _) = a.row_slices(i);
            let strong = if label[i] == NONE { 0 } else { neighbours.len() };
            matrix.filter.for_each(i, strong, |k| {
                let to = label[neighbours[k] as usize];
                if to != NONE && !columns.contains(&to) {
                    columns.push(to);
                }
            });
            values.clear();
            values.resize(columns.len(), T::zero());
            row(i, &columns, &mut values);
            out.row(&columns, &values);
        }
    })
}

/// Writes the values of a row over zeros, by its columns.
fn row<T: Double>(
    matrix: &Filtered<'_, T>,
    all: &Aggregates,
    tentative: &Tentative<T>,
    omega: f64,
) -> impl Fn(usize, &[u32], &mut [T]) + Sync {
    let (label, t) = (&all.of, &tentative.values);
    let minus_omega = T::from_real(-omega);
    move |i, columns, values| {
        if columns.is_empty() {
            return;
        }
        let (neighbours, entries) = matrix.a.row_slices(i);
        let factor = minus_omega * T::one().quotient(matrix.by[i]);
        let own = T::one() + factor * matrix.lumped[i];
        matrix.filter.for_each(i, neighbours.len(), |k| {
            let j = neighbours[k] as usize;
            if let Some(at) = columns.iter().position(|column| *column == label[j]) {
                values[at] += if j == i { own * t[i] } else { factor * entries[k] * t[j] };
            }
        });
    }
}
