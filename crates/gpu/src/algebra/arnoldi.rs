//! Arnoldi's method for the spectral radius of a level's matrix whose diagonal is not positive.
use super::lanczos::total;
use super::session::Arrays;
use super::{AlgebraDevice, GROUP, Kernel, KernelArgument, each, typed, words};
use lacuna_engine::{Array, FilteredArrays, NumberType, Result, SparseArrays};

pub(super) const HASHED: Kernel = typed("level_hashed");
pub(super) const APPLY: Kernel = typed("level_apply");
pub(super) const PROJECT: Kernel = typed("level_project");

use KernelArgument::{Array as At, Word};

/// See [`lacuna_engine::Algebra::arnoldi`].
pub(super) fn start<D: AlgebraDevice>(
    dev: &mut D,
    arrays: &mut Arrays<D::Array>,
    kind: NumberType,
    n: usize,
) -> Result<(Array, f64)> {
    let w = dev.room(kind.size() * n)?;
    let sums = dev.room(kind.size() * n.div_ceil(GROUP))?;
    dev.launch(HASHED, each(n), &[At(&w), At(&sums), Word(n as u32)])?;
    let [sum, _] = total(dev, kind, &sums, n)?;
    Ok((arrays.add(w), sum))
}

/// See [`lacuna_engine::Algebra::arnoldi_apply`].
pub(super) fn apply<D: AlgebraDevice>(
    dev: &mut D,
    arrays: &mut Arrays<D::Array>,
    kind: NumberType,
    (a, matrix): (&SparseArrays, &FilteredArrays),
    [v, u]: [Array; 2],
) -> Result<(Array, [f64; 2])> {
    let n = a.shape.0;
    let of = arrays.sparse(a)?;
    let marks = matrix.marks.map_or(Ok(of.columns), |marks| arrays.get(marks))?;
    let w = dev.room(kind.size() * n)?;
    let sums = dev.room(kind.size() * n.div_ceil(GROUP))?;
    let taken = [At(of.row_ptr), At(of.columns), At(of.values), At(marks), At(arrays.get(matrix.lumped)?)];
    let given = [At(arrays.get(matrix.by)?), At(arrays.get(v)?), At(arrays.get(u)?), At(&w), At(&sums)];
    let numbers = [Word(matrix.marks.is_none().into()), Word(n as u32)];
    dev.launch(APPLY, each(n), &[&taken[..], &given[..], &numbers[..]].concat())?;
    let sum = total(dev, kind, &sums, n)?;
    Ok((arrays.add(w), sum))
}

/// See [`lacuna_engine::Algebra::arnoldi_project`].
pub(super) fn project<D: AlgebraDevice>(
    dev: &mut D,
    arrays: &Arrays<D::Array>,
    kind: NumberType,
    n: usize,
    [w, v]: [Array; 2],
    c: [f64; 2],
    u: Option<Array>,
) -> Result<[f64; 2]> {
    let sums = dev.room(kind.size() * n.div_ceil(GROUP))?;
    let taken = [w, v, u.unwrap_or(w)].map(|array| arrays.get(array).map(At));
    let taken = taken.into_iter().collect::<Result<Vec<_>>>()?;
    let numbers = [Word(u.is_none().into()), Word(n as u32)];
    let c = c.map(words).concat();
    dev.launch(PROJECT, each(n), &[&taken[..], &[At(&sums)], &c[..], &numbers[..]].concat())?;
    total(dev, kind, &sums, n)
}
