//! Matrices of a few diagonals.
use super::noise::signed;
use lacuna_engine::{Result, Scalar};
use lacuna_formats::Csr;
use lacuna_formats::build::{from_rows, rectangular};

const SEED: u64 = 1;

/// Random values on the diagonals at the given offsets, and on the main one `dominance` times the sum of the moduli of the others
/// in its row; 1 where a row has no others. Not symmetric.
pub(super) fn banded<T: Scalar>(
    operation: &str,
    n: usize,
    offsets: &[i64],
    dominance: f64,
) -> Result<Csr<T>> {
    from_rows(operation, n, |i, row| {
        let mut weight = 0.0;
        for (k, &offset) in offsets.iter().enumerate() {
            let Some(j) = i.checked_add_signed(offset as isize).filter(|&j| j < n) else { continue };
            let value = signed(SEED, i as u64, k as u64);
            weight += value.abs();
            row.push((j as u32, T::from_real(value)));
        }
        let diagonal = if weight > 0.0 { dominance * weight } else { 1.0 };
        row.push((i as u32, T::from_real(diagonal)));
    })
}

/// One in each row, `stride` columns after that of the row before: a product reads every `stride`-th element of a vector.
pub(super) fn strided<T: Scalar>(operation: &str, n: usize, stride: usize) -> Result<Csr<T>> {
    rectangular(operation, [n, n * stride], &|i, row: &mut Vec<(u32, T)>| {
        row.push(((i * stride) as u32, T::one()));
    })
}
