//! Converts entries in any order to compressed sparse rows, in parallel.
//!
//! Sorted entries are copied to their places. Others go through a stable counting sort in two steps: each
//! part is sorted into *buckets* of consecutive rows, small enough to fit in a core's cache, in which the
//! entries are then placed row by row. Only rows whose columns are still out of order are sorted.
use crate::Csr;
use crate::algebra::sort_order;
use crate::parallel;
use crate::storage::checks::{check_sizes, not_finite};
use lacuna_engine::pages::zeroed;
use lacuna_engine::{Error, Result, Scalar, compiled_here};
use std::borrow::Cow;

/// Row, column and value of one entry.
pub type Entry<T> = (u32, u32, T);

/// Entries of one task; owned memory is freed as soon as it has been read.
pub type Piece<'a, T> = Cow<'a, [Entry<T>]>;

/// Average number of entries of a bucket: 16 bytes each, half of a second-level cache.
const BUCKET: usize = 1 << 15;
/// Maximum number of buckets: as many streams as can be written at once without a TLB miss per entry.
const MAX_BUCKETS: usize = 1024;
/// Maximum number of entries of one task of the first step.
const PIECE: usize = 1 << 20;
/// Maximum length of rows sorted by insertion.
pub(super) const SHORT: usize = 24;

/// The matrix of the entries in all pieces; repeated ones are summed in input order.
///
/// # Errors
/// When an entry lies outside the matrix, a sum is not finite, or the rows, columns or entries are more than
/// 32-bit indices count.
pub fn assemble<T: Scalar>(
    operation: &str,
    rows: usize,
    cols: usize,
    pieces: Vec<Piece<'_, T>>,
) -> Result<Csr<T>> {
    compiled_here!(T, |operation: &str,
                       rows: usize,
                       cols: usize,
                       pieces: Vec<Piece<'_, T>>|
     -> Result<Csr<T>> {
        let mut pieces = pieces;
        pieces.retain(|piece| !piece.is_empty());
        let total = pieces.iter().map(|piece| piece.len()).sum();
        check_sizes(operation, rows, cols, total)?;
        if in_order(&pieces) {
            copied(operation, rows, cols, total, pieces)
        } else {
            sorted(operation, rows, cols, total, pieces)
        }
    })(operation, rows, cols, pieces)
}

/// Splits `entries` into pieces for [`assemble`].
pub fn pieces<T: Scalar>(entries: &[Entry<T>]) -> impl Iterator<Item = Piece<'_, T>> {
    entries.chunks(PIECE).map(Cow::Borrowed)
}

/// Whether all entries are in strictly increasing order of row and column.
fn in_order<T: Scalar>(pieces: &[Piece<'_, T>]) -> bool {
    let key = |e: &Entry<T>| (e.0, e.1);
    let borders = pieces.windows(2).all(|w| match (w[0].last(), w[1].first()) {
        (Some(a), Some(b)) => key(a) < key(b),
        _ => false,
    });
    let unordered = |k: usize| pieces[k].windows(2).any(|w| key(&w[0]) >= key(&w[1]));
    borders && parallel::find_first(pieces.len(), 1, unordered).is_none()
}

/// The matrix of sorted entries without repetition.
fn copied<T: Scalar>(
    operation: &str,
    rows: usize,
    cols: usize,
    total: usize,
    pieces: Vec<Piece<'_, T>>,
) -> Result<Csr<T>> {
    let mut row_ptr: Vec<u32> = zeroed(operation, rows + 1)?;
    let mut col_idx: Vec<u32> = zeroed(operation, total)?;
    let mut values: Vec<T> = zeroed(operation, total)?;
    {
        // A piece writes the starts of the rows after the last one of the previous piece, up to its own last
        // row.
        let (mut starts, mut columns, mut numbers) = (&mut row_ptr[..], &mut col_idx[..], &mut values[..]);
        let (mut next_row, mut offset) = (0, 0);
        let mut tasks = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let Some(&(last, column, _)) = piece.last() else { continue };
            if last as usize >= rows {
                return Err(outside(operation, rows, cols, (last, column)));
            }
            let length = piece.len();
            let (own_starts, rest) = starts.split_at_mut(last as usize + 1 - next_row);
            let (own_columns, rest_columns) = columns.split_at_mut(length);
            let (own_numbers, rest_numbers) = numbers.split_at_mut(length);
            tasks.push((piece, next_row, offset, own_starts, own_columns, own_numbers));
            (starts, columns, numbers) = (rest, rest_columns, rest_numbers);
            next_row = last as usize + 1;
            offset += length;
        }
        starts.fill(total as u32);
        let wrong = parallel::map(tasks, |(piece, first_row, offset, starts, columns, numbers)| {
            copy(&piece, cols, first_row, offset, starts, columns, numbers).map(|k| piece[k])
        });
        if let Some((i, j, v)) = wrong.into_iter().flatten().next() {
            return Err(match (j as usize) < cols {
                true => not_finite(operation, i as usize, j as usize, v),
                false => outside(operation, rows, cols, (i, j)),
            });
        }
    }
    Ok(Csr::assembled(rows, cols, row_ptr, col_idx, values))
}

/// Copies sorted entries to their places, the first one at `offset`, and records the start of each row from
/// `first_row` on. Returns the first entry that is not finite or not in one of `cols` columns, if there is one.
fn copy<T: Scalar>(
    piece: &[Entry<T>],
    cols: usize,
    first_row: usize,
    offset: usize,
    starts: &mut [u32],
    columns: &mut [u32],
    values: &mut [T],
) -> Option<usize> {
    let (mut filled, mut wrong) = (0, None);
    for (k, (&(i, j, v), (column, value))) in piece.iter().zip(columns.iter_mut().zip(values)).enumerate() {
        let end = (i as usize + 1).saturating_sub(first_row);
        while filled < end {
            starts[filled] = (offset + k) as u32;
            filled += 1;
        }
        if (!v.finite() || j as usize >= cols) && wrong.is_none() {
            wrong = Some(k);
        }
        (*column, *value) = (j, v);
    }
    wrong
}

/// A piece sorted into buckets, with the start of each bucket and the end of the last.
struct Bucketed<'a, T: Clone> {
    entries: Piece<'a, T>,
    starts: Vec<u32>,
}

/// The matrix of entries in any order.
fn sorted<T: Scalar>(
    operation: &str,
    rows: usize,
    cols: usize,
    total: usize,
    pieces: Vec<Piece<'_, T>>,
) -> Result<Csr<T>> {
    let wanted = (total / BUCKET).clamp(1, MAX_BUCKETS);
    let shift = rows.div_ceil(wanted).max(1).next_power_of_two().trailing_zeros();
    let buckets = (rows >> shift) + 1;
    let pieces = parallel::map(pieces, |piece| {
        bucketed(piece, [rows, cols], shift, buckets).map_err(|place| outside(operation, rows, cols, place))
    });
    let pieces = pieces.into_iter().collect::<Result<Vec<_>>>()?;
    let sizes: Vec<usize> =
        (0..buckets).map(|b| pieces.iter().map(|p| (p.starts[b + 1] - p.starts[b]) as usize).sum()).collect();

    let mut row_ptr: Vec<u32> = zeroed(operation, rows + 1)?;
    let mut col_idx: Vec<u32> = zeroed(operation, total)?;
    let mut values: Vec<T> = zeroed(operation, total)?;
    let (mut lengths, mut columns, mut numbers) = (&mut row_ptr[..rows], &mut col_idx[..], &mut values[..]);
    let mut tasks = Vec::with_capacity(buckets);
    for (b, &size) in sizes.iter().enumerate() {
        let (own_lengths, rest) = lengths.split_at_mut(lengths.len().min(1 << shift));
        let (own_columns, rest_columns) = columns.split_at_mut(size);
        let (own_numbers, rest_numbers) = numbers.split_at_mut(size);
        let first_row = b << shift;
        tasks
            .push((b, Target { first_row, lengths: own_lengths, columns: own_columns, values: own_numbers }));
        (lengths, columns, numbers) = (rest, rest_columns, rest_numbers);
    }
    let kept = parallel::map_with(tasks, Scratch::default, |scratch, (b, target)| {
        let segments = pieces.iter().map(|p| &p.entries[p.starts[b] as usize..p.starts[b + 1] as usize]);
        target.fill(operation, segments, scratch)
    });
    drop(pieces);
    let kept = kept.into_iter().collect::<Result<Vec<usize>>>()?;

    // Sums of repeated entries left gaps at the ends of their buckets.
    let (mut from, mut to) = (0, 0);
    for (&size, &kept) in sizes.iter().zip(&kept) {
        if from != to {
            col_idx.copy_within(from..from + kept, to);
            values.copy_within(from..from + kept, to);
        }
        from += size;
        to += kept;
    }
    col_idx.truncate(to);
    values.truncate(to);
    let mut start = 0;
    for p in &mut row_ptr {
        start += std::mem::replace(p, start);
    }
    Ok(Csr::assembled(rows, cols, row_ptr, col_idx, values))
}

/// The error for an entry outside the matrix.
pub(super) fn outside(operation: &str, rows: usize, cols: usize, (row, column): (u32, u32)) -> Error {
    let message = format!("lies outside the {rows}x{cols} matrix");
    Error::Entry { operation: operation.into(), row: row as usize, column: column as usize, message }
}

/// The entries by bucket `row >> shift`, in their original order within a bucket; or the place of the first one outside
/// the matrix.
fn bucketed<T: Scalar>(
    piece: Piece<'_, T>,
    [rows, cols]: [usize; 2],
    shift: u32,
    buckets: usize,
) -> std::result::Result<Bucketed<'_, T>, (u32, u32)> {
    let bucket = |e: &Entry<T>| (e.0 >> shift) as usize;
    let mut starts = vec![0u32; buckets + 1];
    let (mut ordered, mut before) = (true, 0);
    for e in piece.iter() {
        if e.0 as usize >= rows || e.1 as usize >= cols {
            return Err((e.0, e.1));
        }
        starts[bucket(e) + 1] += 1;
        ordered &= bucket(e) >= before;
        before = bucket(e);
    }
    for b in 0..buckets {
        starts[b + 1] += starts[b];
    }
    if ordered {
        return Ok(Bucketed { entries: piece, starts });
    }
    let mut next = starts.clone();
    let mut entries = vec![(0, 0, T::zero()); piece.len()];
    for e in piece.iter() {
        let at = &mut next[bucket(e)];
        entries[*at as usize] = *e;
        *at += 1;
    }
    Ok(Bucketed { entries: Cow::Owned(entries), starts })
}

/// The destination of the rows of one bucket.
struct Target<'a, T> {
    first_row: usize,
    lengths: &'a mut [u32],
    columns: &'a mut [u32],
    values: &'a mut [T],
}

impl<T: Scalar> Target<'_, T> {
    /// Places the entries, sums repeated ones, and returns how many remain at the front.
    fn fill<'e>(
        self,
        operation: &str,
        segments: impl Iterator<Item = &'e [Entry<T>]> + Clone,
        scratch: &mut Scratch<T>,
    ) -> Result<usize> {
        for e in segments.clone().flatten() {
            self.lengths[e.0 as usize - self.first_row] += 1;
        }
        let mut next: Vec<u32> = Vec::with_capacity(self.lengths.len());
        let mut start = 0;
        for &length in self.lengths.iter() {
            next.push(start);
            start += length;
        }
        for &(i, j, v) in segments.flatten() {
            let at = &mut next[i as usize - self.first_row];
            (self.columns[*at as usize], self.values[*at as usize]) = (j, v);
            *at += 1;
        }
        let (mut from, mut to) = (0, 0);
        for (i, length) in self.lengths.iter_mut().enumerate() {
            let end = from + *length as usize;
            let sorted = self.columns[from..end].windows(2).all(|w| w[0] < w[1]);
            if !sorted {
                let kept = sort_row(&mut self.columns[from..end], &mut self.values[from..end], scratch);
                *length = kept as u32;
            }
            let kept = *length as usize;
            if let Some(k) = self.values[from..from + kept].iter().position(|v| !v.finite()) {
                let (column, value) = (self.columns[from + k] as usize, self.values[from + k]);
                return Err(not_finite(operation, self.first_row + i, column, value));
            }
            if from != to {
                self.columns.copy_within(from..from + kept, to);
                self.values.copy_within(from..from + kept, to);
            }
            from = end;
            to += kept;
        }
        Ok(to)
    }
}

/// The order of a row's columns (see [`sort_order`]), and its values before they are sorted.
type Scratch<T> = (Vec<u64>, Vec<T>);

/// Sorts a row by column, sums repeated columns in their order, and returns how many remain.
fn sort_row<T: Scalar>(columns: &mut [u32], values: &mut [T], (order, unsorted): &mut Scratch<T>) -> usize {
    if columns.len() <= SHORT {
        for k in 1..columns.len() {
            let (column, value) = (columns[k], values[k]);
            let mut at = k;
            while at > 0 && columns[at - 1] > column {
                (columns[at], values[at]) = (columns[at - 1], values[at - 1]);
                at -= 1;
            }
            (columns[at], values[at]) = (column, value);
        }
    } else {
        sort_order(columns, order);
        unsorted.clear();
        unsorted.extend_from_slice(values);
        for (&place, (c, v)) in order.iter().zip(columns.iter_mut().zip(values.iter_mut())) {
            (*c, *v) = ((place >> 32) as u32, unsorted[place as u32 as usize]);
        }
    }
    let mut kept = 1;
    for k in 1..columns.len() {
        if columns[k] == columns[kept - 1] {
            let value = values[k];
            values[kept - 1] += value;
        } else {
            (columns[kept], values[kept]) = (columns[k], values[k]);
            kept += 1;
        }
    }
    kept
}
