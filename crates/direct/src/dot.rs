//! Dot products within fronts and supernodes.
use crate::Number;

/// Partial sums, which can be computed side by side.
const SUMS: usize = 8;

/// `Σ aᵢ xᵢ`, of two slices of one length.
pub(crate) fn dot<W: Number>(a: &[W], x: &[W]) -> W {
    let (blocks, others) = (a.chunks_exact(SUMS), x.chunks_exact(SUMS));
    let rest = blocks.remainder().iter().zip(others.remainder());
    let rest = rest.fold(W::zero(), |sum, (a, x)| sum + *a * *x);
    let mut sums = [W::zero(); SUMS];
    for (a, x) in blocks.zip(others) {
        sums.iter_mut().zip(a.iter().zip(x)).for_each(|(sum, (a, x))| *sum += *a * *x);
    }
    sums.into_iter().fold(rest, |sum, part| sum + part)
}
