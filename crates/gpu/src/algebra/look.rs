//! A look at the rows of a level's matrix: its diagonal and smoother, how rows are coupled, what is strong.
use super::product::{MOST, scanned};
use super::session::{Arrays, OPERATION};
use super::{AlgebraDevice, GROUP, Kernel, KernelArgument, each, read, typed, words};
use lacuna_engine::{
    Array, FilteredArrays, Look, NumberType, Result, RowArrays, SparseArrays, StrongArrays, pages,
};

pub(super) const DIAGONAL: Kernel = typed("level_diagonal");
pub(super) const LOOK: Kernel = typed("level_look");
pub(super) const STRONG: Kernel = typed("level_strong");
pub(super) const GRAPH: Kernel = typed("level_graph");
pub(super) const LUMP: Kernel = typed("level_lump");
pub(super) const DIVISORS: Kernel = typed("level_divisors");
pub(super) const SCALED: Kernel = typed("level_scaled");

/// Words of what a group finds, `LOOK_WORDS` of the kernels.
const WORDS: usize = 8;

use KernelArgument::{Array as At, Word};

/// See [`lacuna_engine::Algebra::look`].
pub(super) fn look<D: AlgebraDevice>(
    dev: &mut D,
    arrays: &mut Arrays<D::Array>,
    kind: NumberType,
    a: &SparseArrays,
    hermitian: Option<bool>,
    at_least: f64,
) -> Result<Look> {
    let n = a.shape.0;
    let of = arrays.sparse(a)?;
    let rows = [At(of.row_ptr), At(of.columns), At(of.values)];
    let (diagonal, scale) = (dev.room(kind.size() * n)?, dev.room(8 * n)?);
    let found = [At(&diagonal), At(&scale), Word(n as u32)];
    dev.launch(DIAGONAL, each(n), &[&rows[..], &found[..]].concat())?;
    let (spai, strongest, in_sum) = (dev.room(kind.size() * n)?, dev.room(8 * n)?, dev.room(n)?);
    let groups = n.div_ceil(GROUP);
    let parts = dev.room(8 * WORDS * groups)?;
    let found = [At(&diagonal), At(&scale), At(&spai), At(&strongest), At(&in_sum), At(&parts)];
    let known = [Word(hermitian.is_some().into())];
    let all = [&rows[..], &found[..], &known[..], &words(at_least)[..], &[Word(n as u32)]].concat();
    dev.launch(LOOK, each(n), &all)?;
    let mut found = pages::zeroed::<u64>(OPERATION, WORDS * groups)?;
    read(dev, &parts, &mut found)?;
    let of = |w: usize| found.chunks(WORDS).map(move |part| part[w]);
    let reals = |w: usize| of(w).map(f64::from_bits);
    let sum = |w: usize| of(w).fold(0, u64::wrapping_add);
    let first = of(6).min().unwrap_or(u64::MAX);
    let [diagonal, scale, spai] = [diagonal, scale, spai].map(|array| arrays.add(array));
    let [strongest, strong_in_sum] = [strongest, in_sum].map(|array| arrays.add(array));
    Ok(Look {
        rows: RowArrays { diagonal, scale, spai, strongest, strong_in_sum },
        weakest: reals(0).fold(f64::INFINITY, f64::min),
        norm: reals(1).fold(0.0, f64::max),
        spai_norm: reals(2).fold(0.0, f64::max),
        hermitian: hermitian.unwrap_or(sum(5) == 0 && sum(3) == sum(4)),
        without_diagonal: (first != u64::MAX).then_some(first as usize),
        coupled: sum(7) as usize,
    })
}

/// See [`lacuna_engine::Algebra::strong`].
pub(super) fn strong<D: AlgebraDevice>(
    dev: &mut D,
    arrays: &mut Arrays<D::Array>,
    a: &SparseArrays,
    rows: &RowArrays,
    threshold: f64,
) -> Result<Option<StrongArrays>> {
    let n = a.shape.0;
    let of = arrays.sparse(a)?;
    let [scale, strongest] = [arrays.get(rows.scale)?, arrays.get(rows.strongest)?];
    let in_sum = arrays.get(rows.strong_in_sum)?;
    let (marks, counts) = (dev.room(a.entries)?, dev.room(4 * n)?);
    let [low, high] = words(threshold);
    let count = Word(n as u32);
    let taken = [At(of.row_ptr), At(of.columns), At(of.values), At(scale), At(strongest), At(in_sum)];
    dev.launch(STRONG, each(n), &[&taken[..], &[At(&marks), At(&counts), low, high, count]].concat())?;
    let found = scanned(dev, &counts, n)?;
    if found.total > MOST {
        return Ok(None);
    }
    let neighbours = dev.room(4 * found.total as usize)?;
    let taken = [At(of.row_ptr), At(of.columns), At(&marks), At(&found.ends), At(&neighbours), count];
    dev.launch(GRAPH, each(n), &taken)?;
    let graph = [found.ends, neighbours].map(|array| arrays.add(array));
    Ok(Some(StrongArrays { marks: Some(arrays.add(marks)), graph, edges: found.total as usize }))
}

/// See [`lacuna_engine::Algebra::filtered`].
pub(super) fn filtered<D: AlgebraDevice>(
    dev: &mut D,
    arrays: &mut Arrays<D::Array>,
    kind: NumberType,
    a: &SparseArrays,
    rows: &RowArrays,
    marks: Option<Array>,
    near_null: Option<Array>,
) -> Result<FilteredArrays> {
    let Some(strong) = marks else {
        return Ok(FilteredArrays { marks, lumped: rows.diagonal, by: rows.diagonal });
    };
    let n = a.shape.0;
    let of = arrays.sparse(a)?;
    let (diagonal, strong) = (arrays.get(rows.diagonal)?, arrays.get(strong)?);
    let near = arrays.get(near_null.unwrap_or(rows.diagonal))?;
    let (lumped, by) = (dev.room(kind.size() * n)?, dev.room(kind.size() * n)?);
    let taken = [At(of.row_ptr), At(of.columns), At(of.values), At(strong), At(diagonal), At(near)];
    let given = [At(&lumped), At(&by), Word(near_null.is_some().into()), Word(n as u32)];
    dev.launch(LUMP, each(n), &[&taken[..], &given[..]].concat())?;
    Ok(FilteredArrays { marks, lumped: arrays.add(lumped), by: arrays.add(by) })
}

/// See [`lacuna_engine::Algebra::smoothed`].
pub(super) fn smoothed<D: AlgebraDevice>(
    dev: &mut D,
    arrays: &mut Arrays<D::Array>,
    kind: NumberType,
    a: &SparseArrays,
    rows: &RowArrays,
) -> Result<FilteredArrays> {
    let n = a.shape.0;
    let by = dev.room(kind.size() * n)?;
    let taken = [At(arrays.get(rows.spai)?), At(arrays.get(rows.diagonal)?), At(&by), Word(n as u32)];
    dev.launch(DIVISORS, each(n), &taken)?;
    Ok(FilteredArrays { marks: None, lumped: rows.diagonal, by: arrays.add(by) })
}

/// See [`lacuna_engine::Algebra::scaled`].
pub(super) fn scaled<D: AlgebraDevice>(
    dev: &mut D,
    arrays: &mut Arrays<D::Array>,
    kind: NumberType,
    n: usize,
    from: Array,
    by: f64,
) -> Result<Array> {
    let to = dev.room(kind.size() * n)?;
    let [low, high] = words(by);
    dev.launch(SCALED, each(n), &[At(arrays.get(from)?), At(&to), low, high, Word(n as u32)])?;
    Ok(arrays.add(to))
}
