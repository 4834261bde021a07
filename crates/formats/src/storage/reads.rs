//! What a product of some rows reads: elements of x, and places of the matrix.
use crate::{
    Bcsr, Csr, Dense, Dia, Hyb, Interpolation, PACKET, Packed, Pkt, SLICE, Sell, Stencil, Triangular,
};
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::{Format, Scalar};
use std::any::Any;
use std::ops::Range;

/// Calls `each` with runs of columns that together contain every one that a product reads for some rows, those of padding too;
/// a run may come more than once. The rows **must** be whole segments, except at the end. Returns whether the format is one of
/// this crate: of another one nothing is known.
pub fn columns_read<T: Scalar>(
    a: &dyn Format<T>,
    rows: Range<usize>,
    mut each: impl FnMut(Range<usize>),
) -> bool {
    let mut one = |column: u32| each(column as usize..column as usize + 1);
    let slices = |ptr: &[u32]| {
        let [first, end] = [rows.start / SLICE, rows.end.div_ceil(SLICE)].map(|slice| ptr[slice] as usize);
        first * SLICE..end * SLICE
    };
    let any = a as &dyn Any;
    if let Some(a) = any.downcast_ref::<Csr<T>>() {
        let [first, end] = [rows.start, rows.end].map(|row| a.row_ptr()[row] as usize);
        a.col_idx()[first..end].iter().for_each(|column| one(*column));
    } else if let Some(a) = any.downcast_ref::<Dia<T>>() {
        a.offsets().iter().for_each(|&offset| each(shifted(&rows, offset, a.shape().1)));
    } else if let Some(a) = any.downcast_ref::<Stencil<T>>() {
        a.neighbours().iter().for_each(|&[.., offset]| each(shifted(&rows, offset, a.shape().1)));
    } else if let Some(a) = any.downcast_ref::<Sell<T>>() {
        a.col_idx()[slices(a.slice_ptr())].iter().for_each(|column| one(*column));
    } else if let Some(a) = any.downcast_ref::<Hyb<T>>() {
        let layout = a.layout();
        a.col_idx()[slices(layout.slice_ptr())].iter().for_each(|column| one(*column));
        let segments = rows.start / SEGMENT..rows.end.div_ceil(SEGMENT);
        let ends = |list: &[u32]| list[segments.start] as usize..list[segments.end] as usize;
        a.col_idx()[ends(layout.segment_ptr())].iter().for_each(|column| one(*column));
        let long = ends(layout.segment_long());
        let [first, end] = [long.start, long.end].map(|row| layout.long_ptr()[row] as usize);
        let [first, end] = [first, end].map(|piece| layout.piece_ptr()[piece] as usize);
        a.col_idx()[first..end].iter().for_each(|column| one(*column));
    } else if let Some(a) = any.downcast_ref::<Bcsr<T>>() {
        let b = a.block();
        let [first, end] = [rows.start / b, rows.end.div_ceil(b)].map(|row| a.row_ptr()[row] as usize);
        let columns = a.col_idx()[first..end].iter().map(|column| *column as usize * b);
        columns.for_each(|column| each(column..(column + b).min(a.shape().1)));
    } else if let Some(a) = any.downcast_ref::<Packed<T>>() {
        for row in rows {
            let places = a.row_ptr()[row] as usize..a.row_ptr()[row + 1] as usize;
            a.distances()[places].iter().for_each(|d| one(a.first_columns()[row] + u32::from(*d)));
        }
    } else if let Some(a) = any.downcast_ref::<Pkt<T>>() {
        for slice in rows.start / SLICE..rows.end.div_ceil(SLICE) {
            let first = (slice * SLICE / PACKET * PACKET) as u32;
            let places = a.slice_ptr()[slice] as usize * SLICE..a.slice_ptr()[slice + 1] as usize * SLICE;
            a.near()[places].iter().for_each(|near| one(first + u32::from(*near)));
        }
        let [first, end] = [rows.start, rows.end].map(|row| a.far_ptr()[row] as usize);
        a.far()[first..end].iter().for_each(|column| one(*column));
    } else if let Some(a) = any.downcast_ref::<Interpolation<T>>() {
        rows.for_each(|row| a.grids().each(row, |column, _| each(column..column + 1)));
    } else if let Some(a) = any.downcast_ref::<Dense<T>>() {
        each(0..a.shape().1);
    } else {
        return false;
    }
    true
}

/// Maximum rows of a block for which a solve is divided.
const LARGEST_BLOCK: usize = 1 << 16;
/// The same, as a fraction of all rows.
const LARGEST_SHARE: usize = 4;

/// Calls `each` with the elements of b that a solve for some rows reads: those of the independent blocks that have these rows.
/// Returns whether there are such blocks: `false` for a triangle whose rows all depend on each other, and for a format of
/// another crate.
pub fn solved_from<T: Scalar>(
    a: &dyn Format<T>,
    rows: Range<usize>,
    mut each: impl FnMut(Range<usize>),
) -> bool {
    let Some(a) = (a as &dyn Any).downcast_ref::<Triangular<T>>() else { return false };
    let largest = a.blocks().windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
    if largest > LARGEST_BLOCK.min(a.shape().0 / LARGEST_SHARE) {
        return false;
    }
    for position in a.blocks_of(rows).into_iter().flatten() {
        each(a.row_at(position)..a.row_at(position) + 1);
    }
    true
}

/// The places stored before a row, about those that products of the rows before it read; `None` for a format of another crate.
pub fn places_before<T: Scalar>(a: &dyn Format<T>, row: usize) -> Option<usize> {
    let in_slices = |ptr: &[u32]| ptr[row.div_ceil(SLICE)] as usize * SLICE;
    let any = a as &dyn Any;
    Some(if let Some(a) = any.downcast_ref::<Csr<T>>() {
        a.row_ptr()[row] as usize
    } else if let Some(a) = any.downcast_ref::<Dia<T>>() {
        a.offsets().len() * row
    } else if let Some(a) = any.downcast_ref::<Stencil<T>>() {
        a.neighbours().len() * row
    } else if let Some(a) = any.downcast_ref::<Sell<T>>() {
        in_slices(a.slice_ptr())
    } else if let Some(a) = any.downcast_ref::<Hyb<T>>() {
        let layout = a.layout();
        let coordinates = layout.segment_ptr()[row.div_ceil(SEGMENT)] as usize - layout.in_slices();
        in_slices(layout.slice_ptr()) + coordinates
    } else if let Some(a) = any.downcast_ref::<Bcsr<T>>() {
        let b = a.block();
        a.row_ptr()[row.div_ceil(b)] as usize * b * b
    } else if let Some(a) = any.downcast_ref::<Packed<T>>() {
        a.row_ptr()[row] as usize
    } else if let Some(a) = any.downcast_ref::<Pkt<T>>() {
        in_slices(a.slice_ptr()) + a.far_ptr()[row] as usize
    } else if let Some(a) = any.downcast_ref::<Dense<T>>() {
        a.shape().1 * row
    } else if let Some(a) = any.downcast_ref::<Interpolation<T>>() {
        a.nnz() / a.shape().0.max(1) * row
    } else {
        return None;
    })
}

/// The columns `offset` from some rows, as far as there are such.
fn shifted(rows: &Range<usize>, offset: i32, cols: usize) -> Range<usize> {
    let at = |row: usize| (row as i64 + i64::from(offset)).clamp(0, cols as i64) as usize;
    at(rows.start)..at(rows.end)
}
