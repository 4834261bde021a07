//! Matrices without a grid: power-law rows, random columns, dense in sparse form. All strictly diagonally dominant.
use super::noise::{below, signed, unit};
use super::rows::from_rows;
use crate::Csr;
use lacuna_core::{Result, Scalar};

/// The seed of the matrices that take none.
const SEED: u64 = 1;
/// Scatters the popular columns; prime, so that it is a permutation unless it divides the number of columns.
const SCATTER: u64 = 2_654_435_761;

/// A directed network as of web pages: the number of links of a row falls off with the power 1.6 (3.3 entries a row
/// with the diagonal), half of them to rows near by, half to popular columns. Not symmetric.
pub(super) fn power_law<T: Scalar>(operation: &str, n: usize) -> Result<Csr<T>> {
    from_rows(operation, n, |i, row| {
        let id = i as u64;
        // A number of links ≥ k has the probability k^−1.6: u^(−5/8) by square roots, the same everywhere.
        let root = (1.0 - unit(SEED, id, 0)).sqrt();
        let links = (1.0 / (root * root.sqrt().sqrt())) as usize;
        let mut weight = 0.0;
        for k in 0..links.min(n - 1) as u64 {
            let j = if k % 2 == 0 {
                let reach = 64.min(n);
                (i + n - reach / 2 + below(reach, SEED, id, 3 * k + 1)) % n
            } else {
                let u = unit(SEED, id, 3 * k + 1);
                let popular = ((u * u * u * n as f64) as u64).min(n as u64 - 1);
                (popular as u128 * SCATTER as u128 % n as u128) as usize
            };
            if j != i {
                let size = 0.1 + 0.9 * unit(SEED, id, 3 * k + 2);
                weight += size;
                row.push((j as u32, T::from_real(-size)));
            }
        }
        row.push((i as u32, T::from_real(1.0 + weight)));
    })
}

/// `per_row` entries in every row, the diagonal among them, one in each of `per_row` equal runs of columns.
pub(super) fn random<T: Scalar>(operation: &str, n: usize, per_row: usize, seed: u64) -> Result<Csr<T>> {
    let first = |k: usize| (k as u128 * n as u128 / per_row as u128) as usize;
    from_rows(operation, n, |i, row| {
        let mut weight = 0.0;
        let mut own = 0;
        for k in 0..per_row {
            let run = first(k)..first(k + 1);
            if run.contains(&i) {
                own = k;
                row.push((i as u32, T::zero()));
            } else {
                let j = run.start + below(run.len(), seed, i as u64, 2 * k as u64);
                let value = signed(seed, i as u64, 2 * k as u64 + 1);
                weight += value.abs();
                row.push((j as u32, T::from_real(value)));
            }
        }
        row[own].1 = T::from_real(1.0 + weight);
    })
}

/// Every entry stored: random symmetric values below 1 and the number of rows on the diagonal.
pub(super) fn dense<T: Scalar>(operation: &str, n: usize) -> Result<Csr<T>> {
    from_rows(operation, n, |i, row| {
        row.extend((0..n).map(|j| {
            let value = if i == j { n as f64 } else { signed(SEED, i.min(j) as u64, i.max(j) as u64) };
            (j as u32, T::from_real(value))
        }));
    })
}
