//! What is checked of a result, from `A`, `B`, values and vectors alone.
use crate::gram;
use crate::small::{dot, length};
use lacuna_engine::{Result, Scalar};
use lacuna_formats::{Csr, parallel};
use lacuna_solvers::residual_norm;
use std::any::Any;
use std::borrow::Cow;

/// Elements that a task normalises or sums.
const GRAIN: usize = 4096;

/// How good pairs are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quality {
    /// `‖A x − λ B x‖ / ‖x‖_B` of each pair.
    pub(crate) residuals: Vec<f64>,
    /// `max |Xᴴ B X − I|`, with the columns scaled to length 1.
    pub(crate) orthogonality: f64,
}

/// Residuals in twice the working precision but for the rounding of `λ B x`, and orthogonality.
///
/// # Errors
/// [`lacuna_engine::Error::Length`] if lengths do not match.
pub(crate) fn quality<T: Scalar>(
    a: &Csr<T>,
    b: Option<&Csr<T>>,
    values: &[f64],
    vectors: &[Vec<T>],
) -> Result<Quality> {
    let (a, b) = (a.wide()?, b.map(Csr::wide).transpose()?);
    let vectors = widened(vectors);
    let images = vectors.iter().map(|x| match &b {
        Some(b) => Ok(Cow::Owned(b.times(x)?)),
        None => Ok(Cow::Borrowed(&**x)),
    });
    let images = images.collect::<Result<Vec<Cow<'_, [T::Wide]>>>>()?;
    let pairs = vectors.iter().zip(&images);
    let lengths: Vec<f64> = parallel::map(pairs, |(x, bx)| dot(x, bx).re().sqrt());
    let residuals = vectors.iter().zip(&images).zip(values).zip(&lengths);
    let residuals = residuals.map(|(((x, bx), value), length)| {
        let by = <T::Wide as Scalar>::from_real(*value);
        let right: Vec<T::Wide> = parallel::collect(bx.len(), GRAIN, |i| by * bx[i]);
        residual_norm(&a, &right, x) / length
    });
    let residuals = residuals.collect();
    let orthogonality = orthogonality::<T::Wide>(&vectors, &images, &lengths);
    Ok(Quality { residuals, orthogonality })
}

/// The largest modulus of an entry of `Xᴴ Y − I`, each column divided by its length.
fn orthogonality<W: Scalar>(x: &[Cow<'_, [W]>], y: &[Cow<'_, [W]>], lengths: &[f64]) -> f64 {
    let [x, y] = [x, y].map(|side| side.iter().map(|x| &**x).collect::<Vec<_>>());
    let products = gram::upper(&x, &y);
    let pairs = (0..x.len()).flat_map(|j| (0..=j).map(move |i| (i, j)));
    let off = pairs.map(|(i, j)| {
        let scale = <W::Wide as Scalar>::from_real(1.0 / (lengths[i] * lengths[j]));
        let expected = <W::Wide as Scalar>::from_real(if i == j { 1.0 } else { 0.0 });
        length(&[products[gram::place(i, j)] * scale - expected])
    });
    off.fold(0.0, f64::max)
}

/// How far each value may be from an eigenvalue, given the norms of residuals, and what rounding may do to a value. Where
/// `complete`, there are no other eigenvalues before the last value.
///
/// Reference: Parlett 1998, The Symmetric Eigenvalue Problem, theorems 4.5.1 and 11.7.1, doi:10.1137/1.9781611971163.
pub(crate) fn bounds(values: &[f64], residuals: &[f64], complete: bool, rounding: f64) -> Vec<f64> {
    let last = values.len().saturating_sub(1);
    let others = |i: usize| {
        let apart = |j: usize| (values[i] - values[j]).abs() - residuals[j];
        (0..values.len()).filter(move |j| *j != i).map(apart).fold(f64::INFINITY, f64::min)
    };
    let bound = |(i, left): (usize, &f64)| match others(i) {
        gap if complete && i < last && gap > *left => left * left / gap + rounding,
        _ => left + rounding,
    };
    residuals.iter().enumerate().map(bound).collect()
}

/// `‖A v − σ u‖` of each triplet, and `max |Vᴴ V − I|`.
///
/// # Errors
/// As [`quality`].
pub(crate) fn residual_and_angles<T: Scalar>(
    a: &Csr<T>,
    values: &[f64],
    u: &[Vec<T>],
    v: &[Vec<T>],
) -> Result<Quality> {
    let a = a.wide()?;
    let v = widened(v);
    let residuals = values.iter().zip(u).zip(&v).map(|((value, u), v)| {
        let by = <T::Wide as Scalar>::from_real(*value);
        let right: Vec<T::Wide> = parallel::collect(u.len(), GRAIN, |i| by * u[i].wide());
        residual_norm(&a, &right, v)
    });
    let residuals = residuals.collect();
    let orthogonality = orthogonality::<T::Wide>(&v, &v, &vec![1.0; v.len()]);
    Ok(Quality { residuals, orthogonality })
}

/// Vectors in double precision: themselves, or copies.
fn widened<T: Scalar>(vectors: &[Vec<T>]) -> Vec<Cow<'_, [T::Wide]>> {
    parallel::map(vectors, |v: &Vec<T>| match (v as &dyn Any).downcast_ref::<Vec<T::Wide>>() {
        Some(same) => Cow::Borrowed(&**same),
        None => v.iter().map(|v| v.wide()).collect(),
    })
}

/// Scales each vector so that `‖x‖_B = 1` and its largest element, the first among equals, is real and positive.
///
/// # Errors
/// As [`quality`].
pub(crate) fn normalise<T: Scalar>(b: Option<&Csr<T>>, vectors: &mut [Vec<T>]) -> Result<()> {
    let square = |v: T| v.re() * v.re() + v.im() * v.im();
    let larger = |most: T, v: T| if square(v) > square(most) { v } else { most };
    for x in vectors {
        let image = b.map(|b| b.times(x)).transpose()?;
        let of_rows = |(x, bx): (&[T], &[T])| {
            let whole: f64 = x.iter().zip(bx).map(|(x, bx)| (x.conj() * *bx).re()).sum();
            (whole, x.iter().copied().fold(T::zero(), larger))
        };
        let parts = x.chunks(GRAIN).zip(image.as_deref().unwrap_or(x).chunks(GRAIN));
        let parts = parallel::map(parts, of_rows);
        let whole: f64 = parts.iter().map(|(whole, _)| whole).sum();
        let largest = parts.iter().fold(T::zero(), |most, (_, v)| larger(most, *v));
        let size = square(largest).sqrt();
        if whole > 0.0 && size > 0.0 {
            let by = 1.0 / (size * whole.sqrt());
            let phase = T::from_parts(largest.re() * by, -largest.im() * by);
            parallel::map(x.chunks_mut(GRAIN), |part| part.iter_mut().for_each(|v| *v *= phase));
        }
    }
    Ok(())
}
