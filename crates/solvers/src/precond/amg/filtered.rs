//! The filtered matrix `A_F`: weak entries are added to the diagonal, such that it does to a near-null vector what `A` does.
use super::rows::{RowCouplings, size};
use super::strength::Filter;
use lacuna_engine::Double;
use lacuna_formats::{Csr, parallel};
use std::borrow::Cow;

/// Part of a diagonal entry below which what is left of it after lumping is not divided by.
const LEAST: f64 = 0.25;

/// `A_F` over `A`, with what its rows are divided by.
pub(super) struct Filtered<'a, T: Double> {
    pub(super) a: &'a Csr<T>,
    pub(super) filter: &'a Filter,
    /// The diagonal of `A_F`.
    pub(super) lumped: Cow<'a, [T]>,
    /// `D_F`: the diagonal of `A_F`, that of `A` where the weak entries leave less than a part [`LEAST`] of it.
    pub(super) by: Cow<'a, [T]>,
    pub(super) hermitian: bool,
}

impl<'a, T: Double> Filtered<'a, T> {
    /// With a near-null vector, constant where there is none.
    pub(super) fn new(
        a: &'a Csr<T>,
        rows: &'a RowCouplings<T>,
        filter: &'a Filter,
        near_null: Option<&[T]>,
    ) -> Self {
        let (hermitian, diagonal) = (rows.hermitian, &rows.diagonal[..]);
        if matches!(filter, Filter::All) {
            return Filtered { a, filter, lumped: diagonal.into(), by: diagonal.into(), hermitian };
        }
        let lumped = |i: usize| {
            let weak = a.row_entries(i).enumerate().filter(|(k, _)| !filter.is_strong(i, *k));
            let of = |j: usize| near_null.map_or(T::one(), |b| b[j].quotient(b[i]));
            let lumped = weak.fold(diagonal[i], |sum, (_, (j, v))| sum + of(j) * v);
            if lumped.finite() { lumped } else { diagonal[i] }
        };
        let lumped = parallel::collect(diagonal.len(), 1 << 9, lumped);
        let little = |i: usize| size(lumped[i]) < LEAST * size(diagonal[i]);
        let by = |i: usize| if little(i) { diagonal[i] } else { lumped[i] };
        let by = parallel::collect(diagonal.len(), 1 << 14, by);
        Filtered { a, filter, lumped: lumped.into(), by: by.into(), hermitian }
    }

    /// `(A_F v)_i`
    #[inline(always)]
    pub(super) fn row(&self, i: usize, v: &[T]) -> T {
        let (columns, values) = self.a.row_slices(i);
        if let Filter::All = self.filter {
            return columns.iter().zip(values).fold(T::zero(), |sum, (&j, &a)| sum + a * v[j as usize]);
        }
        let mut sum = T::zero();
        self.filter.for_each(i, columns.len(), |k| {
            let j = columns[k] as usize;
            sum += if j == i { self.lumped[i] } else { values[k] } * v[j];
        });
        sum
    }
}
