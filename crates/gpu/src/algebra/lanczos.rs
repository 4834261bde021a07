//! Lanczos' method for the spectral radius of a level's matrix.
use super::session::{Arrays, OPERATION};
use super::{AlgebraDevice, GROUP, Kernel, KernelArgument, each, read, typed, words};
use lacuna_engine::sum::pair_sum;
use lacuna_engine::{
    Array, FilteredArrays, LanczosArrays, NumberType, Result, Scalar, SparseArrays, pages, with_number,
};

pub(super) const START: Kernel = typed("level_start");
pub(super) const ENERGY: Kernel = typed("level_energy");
pub(super) const STEP: Kernel = typed("level_step");

use KernelArgument::{Array as At, Word};

/// The sum of the segments' sums, its real and imaginary part.
pub(super) fn total<D: AlgebraDevice>(
    dev: &mut D,
    kind: NumberType,
    sums: &D::Array,
    n: usize,
) -> Result<[f64; 2]> {
    with_number!(kind, T => {
        let mut each = pages::zeroed::<T>(OPERATION, n.div_ceil(GROUP))?;
        read(dev, sums, &mut each)?;
        let sum = pair_sum(&each);
        Ok([sum.re(), sum.im()])
    })
}

/// See [`lacuna_engine::Algebra::lanczos`].
pub(super) fn start<D: AlgebraDevice>(
    dev: &mut D,
    arrays: &mut Arrays<D::Array>,
    kind: NumberType,
    n: usize,
    by: Array,
) -> Result<Option<(LanczosArrays, f64)>> {
    let bytes = kind.size() * n;
    let [v, inverse, product] = [dev.room(bytes)?, dev.room(bytes)?, dev.room(bytes)?];
    let (before, refused) = (dev.zeros(bytes)?, dev.zeros(4)?);
    let sums = dev.room(kind.size() * n.div_ceil(GROUP))?;
    let all = [At(arrays.get(by)?), At(&v), At(&inverse), At(&sums), At(&refused), Word(n as u32)];
    dev.launch(START, each(n), &all)?;
    let mut is_refused = [0u32];
    read(dev, &refused, &mut is_refused)?;
    if is_refused != [0] {
        return Ok(None);
    }
    let [sum, _] = total(dev, kind, &sums, n)?;
    let vectors = [v, before, product].map(|array| arrays.add(array));
    Ok(Some((LanczosArrays { vectors, inverse: arrays.add(inverse) }, sum)))
}

/// See [`lacuna_engine::Algebra::lanczos_energy`].
pub(super) fn energy<D: AlgebraDevice>(
    dev: &mut D,
    arrays: &mut Arrays<D::Array>,
    kind: NumberType,
    a: &SparseArrays,
    matrix: &FilteredArrays,
    on: &LanczosArrays,
) -> Result<f64> {
    let n = a.shape.0;
    let of = arrays.sparse(a)?;
    let marks = matrix.marks.map_or(Ok(of.columns), |marks| arrays.get(marks))?;
    let [v, _, product] = on.vectors;
    let sums = dev.room(kind.size() * n.div_ceil(GROUP))?;
    let taken = [At(of.row_ptr), At(of.columns), At(of.values), At(marks), At(arrays.get(matrix.lumped)?)];
    let given = [At(arrays.get(v)?), At(arrays.get(product)?), At(&sums)];
    let numbers = [Word(matrix.marks.is_none().into()), Word(n as u32)];
    dev.launch(ENERGY, each(n), &[&taken[..], &given[..], &numbers[..]].concat())?;
    total(dev, kind, &sums, n).map(|[sum, _]| sum)
}

/// See [`lacuna_engine::Algebra::lanczos_step`].
pub(super) fn step<D: AlgebraDevice>(
    dev: &mut D,
    arrays: &mut Arrays<D::Array>,
    kind: NumberType,
    n: usize,
    matrix: &FilteredArrays,
    on: &mut LanczosArrays,
    factors: [f64; 3],
) -> Result<f64> {
    let [v, w, product] = on.vectors;
    let sums = dev.room(kind.size() * n.div_ceil(GROUP))?;
    let taken = [At(arrays.get(product)?), At(arrays.get(on.inverse)?), At(arrays.get(v)?)];
    let given = [At(arrays.get(w)?), At(arrays.get(matrix.by)?), At(&sums)];
    let factors = factors.map(words).concat();
    dev.launch(STEP, each(n), &[&taken[..], &given[..], &factors[..], &[Word(n as u32)]].concat())?;
    on.vectors.swap(0, 1);
    total(dev, kind, &sums, n).map(|[sum, _]| sum)
}
