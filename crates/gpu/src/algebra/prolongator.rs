//! The prolongator of a level, its adjoint, and the coarse unknowns that the coarse matrix does not determine.
use super::product::{MOST, Scanned, Sparse, scanned};
use super::session::{Arrays, LONGEST_ROW};
use super::{AlgebraDevice, Kernel, KernelArgument, TEAM, Threads, each, read, typed, words};
use lacuna_engine::{AggregateArrays, Array, FilteredArrays, NumberType, Result, SparseArrays};

pub(super) const COUNT: Kernel = typed("level_count");
pub(super) const MEMBERS: Kernel = typed("level_members");
pub(super) const NORMS: Kernel = typed("level_norms");
pub(super) const TENTATIVE: Kernel = typed("level_tentative");
pub(super) const COLUMNS: Kernel = typed("level_prolong_columns");
pub(super) const PROLONG: Kernel = typed("level_prolong");
pub(super) const SCATTER: Kernel = typed("level_scatter");
pub(super) const TURN: Kernel = typed("level_turn");
pub(super) const REGULAR: Kernel = typed("level_regular");

use KernelArgument::{Array as At, Word};

/// Where the entries of each of `count` labels begin, and how many there are of each.
fn counted<D: AlgebraDevice>(
    dev: &mut D,
    labels: &D::Array,
    n: usize,
    count: usize,
) -> Result<(Scanned<D::Array>, D::Array)> {
    let counts = dev.zeros(4 * count)?;
    dev.launch(COUNT, each(n), &[At(labels), At(&counts), Word(n as u32)])?;
    Ok((scanned(dev, &counts, count)?, counts))
}

/// See [`lacuna_engine::Algebra::prolongator`].
#[expect(clippy::too_many_arguments, reason = "those of the operation, with where it runs")]
pub(super) fn prolongator<D: AlgebraDevice>(
    dev: &mut D,
    arrays: &mut Arrays<D::Array>,
    kind: NumberType,
    a: &SparseArrays,
    matrix: &FilteredArrays,
    aggregates: &AggregateArrays,
    near_null: Option<Array>,
    omega: f64,
) -> Result<Option<(SparseArrays, Array)>> {
    let (n, count, number) = (a.shape.0, aggregates.count, kind.size());
    let of = arrays.sparse(a)?;
    let labels = arrays.get(aggregates.labels)?;
    let [lumped, by] = [arrays.get(matrix.lumped)?, arrays.get(matrix.by)?];
    let marks = matrix.marks.map_or(Ok(of.columns), |marks| arrays.get(marks))?;
    let near = near_null.map_or(Ok(by), |near| arrays.get(near))?;
    let [has_near, all] = [near_null.is_some(), matrix.marks.is_none()].map(|is| Word(is.into()));
    let (rows, columns) = (Word(n as u32), Word(count as u32));

    let (lists, left) = counted(dev, labels, n, count)?;
    if lists.most > u64::from(LONGEST_ROW) {
        return Ok(None);
    }
    let members = dev.room(4 * n)?;
    dev.launch(MEMBERS, each(n), &[At(labels), At(&lists.ends), At(&left), At(&members), rows])?;
    let (norms, inverses) = (dev.room(number * count)?, dev.room(8 * count)?);
    let of_lists = [At(&lists.ends), At(&members), At(near), At(&norms), At(&inverses), has_near, columns];
    dev.launch(NORMS, each(count), &of_lists)?;
    let t = dev.room(number * n)?;
    dev.launch(TENTATIVE, each(n), &[At(labels), At(near), At(&inverses), At(&t), has_near, rows])?;

    let (found, counts) = (dev.room(4 * a.entries)?, dev.room(4 * n)?);
    let taken = [At(of.row_ptr), At(of.columns), At(marks), At(labels), At(&found), At(&counts), all, rows];
    dev.launch(COLUMNS, each(n), &taken)?;
    let Scanned { ends, total, .. } = scanned(dev, &counts, n)?;
    if total > MOST {
        return Ok(None);
    }
    let entries = total as usize;
    let (p_columns, p_values) = (dev.room(4 * entries)?, dev.room(number * entries)?);
    let refused = dev.zeros(4)?;
    let taken = [At(of.row_ptr), At(of.columns), At(of.values), At(marks), At(lumped), At(by), At(labels)];
    let given = [At(&t), At(&found), At(&ends), At(&p_columns), At(&p_values), At(&refused)];
    dev.launch(PROLONG, each(n), &[&taken[..], &given[..], &words(omega)[..], &[all, rows]].concat())?;
    let mut is_refused = [0u32];
    read(dev, &refused, &mut is_refused)?;
    if is_refused != [0] {
        return Ok(None);
    }
    let p = Sparse { shape: (n, count), entries, row_ptr: ends, columns: p_columns, values: p_values };
    Ok(Some((arrays.add_sparse(p), arrays.add(norms))))
}

/// See [`lacuna_engine::Algebra::adjoint`].
pub(super) fn adjoint<D: AlgebraDevice>(
    dev: &mut D,
    arrays: &mut Arrays<D::Array>,
    kind: NumberType,
    a: &SparseArrays,
) -> Result<Option<SparseArrays>> {
    let of = arrays.sparse(a)?;
    let ((n, count), entries) = (a.shape, a.entries);
    let (found, left) = counted(dev, of.columns, entries, count)?;
    if found.most > u64::from(LONGEST_ROW) {
        return Ok(None);
    }
    let (rows, places) = (dev.room(4 * entries)?, dev.room(4 * entries)?);
    let scatter = [At(&found.ends), At(&left), At(&rows), At(&places), Word(n as u32)];
    dev.launch(SCATTER, each(n), &[&[At(of.row_ptr), At(of.columns)][..], &scatter[..]].concat())?;
    let (columns, values) = (dev.room(4 * entries)?, dev.room(kind.size() * entries)?);
    let turn = [At(&found.ends), At(&rows), At(&places), At(of.values), At(&columns), At(&values)];
    dev.launch(TURN, Threads::Teams(count, TEAM), &[&turn[..], &[Word(count as u32)]].concat())?;
    let turned = Sparse { shape: (count, n), entries, row_ptr: found.ends, columns, values };
    Ok(Some(arrays.add_sparse(turned)))
}

/// See [`lacuna_engine::Algebra::regular`].
pub(super) fn regular<D: AlgebraDevice>(
    dev: &mut D,
    arrays: &Arrays<D::Array>,
    coarse: &SparseArrays,
    r: &SparseArrays,
    diagonal: Array,
    epsilon: f64,
) -> Result<usize> {
    let (n, count) = (coarse.shape.0, dev.zeros(4)?);
    let [coarse, r] = [arrays.sparse(coarse)?, arrays.sparse(r)?];
    let taken = [coarse, r].map(|a| [At(a.row_ptr), At(a.columns), At(a.values)]).concat();
    let [low, high] = words(epsilon);
    let given = [At(arrays.get(diagonal)?), At(&count), low, high, Word(n as u32)];
    dev.launch(REGULAR, each(n), &[&taken[..], &given[..]].concat())?;
    let mut found = [0u32];
    read(dev, &count, &mut found)?;
    Ok(found[0] as usize)
}
