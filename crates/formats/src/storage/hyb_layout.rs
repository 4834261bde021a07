//! Offsets of the parts of a matrix in slices and coordinates.
use crate::Csr;
use crate::storage::sell::SLICE;
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::{Scalar, is_long, piece_of};
use std::borrow::Cow;

/// Minimum number of rows (or all, if there are fewer) that must have an entry for another column of slices:
/// with fewer, a GPU is not busy.
const LEAST_ROWS: usize = 4096;
/// One in this many rows must have one.
const OF_ROWS: usize = 3;
/// Number of words before the first list.
const HEAD: usize = 3;

/// The offsets of a [`crate::Hyb`] in one array of words: the numbers of places in slices, of rows in pieces
/// and of pieces; then the lists, with the lengths given below.
#[derive(Clone, Debug, PartialEq)]
pub struct HybLayout<'a> {
    words: Cow<'a, [u32]>,
    /// The start of each list.
    starts: [usize; 6],
    /// Number of places in slices, in coordinates and in pieces.
    pub(crate) places: [usize; 3],
}

impl HybLayout<'static> {
    /// The layout for `width` entries of a row in slices. Offsets are invalid if there are more than
    /// `u32::MAX` places.
    pub(crate) fn new<T: Scalar>(a: &Csr<T>, width: usize) -> Self {
        let length = |row: usize| (a.row_ptr()[row + 1] - a.row_ptr()[row]) as usize;
        let (rows, mut columns) = (a.rows(), 0);
        let mut slice_ptr = vec![0];
        for first in (0..rows).step_by(SLICE) {
            let in_slice = (first..(first + SLICE).min(rows)).map(|row| length(row).min(width));
            columns += if width == 0 { 0 } else { in_slice.max().unwrap_or(0) };
            slice_ptr.push(columns as u32);
        }
        let ell = columns * SLICE;
        let (mut short, mut long) = (0, 0);
        let (mut segment_ptr, mut segment_long) = (vec![ell as u32], vec![0]);
        let (mut long_rows, mut long_lengths) = (Vec::new(), Vec::new());
        for first in (0..rows).step_by(SEGMENT) {
            for row in first..(first + SEGMENT).min(rows) {
                let rest = length(row).saturating_sub(width);
                if Self::is_short(rest) {
                    short += rest;
                } else {
                    long += rest;
                    long_rows.push(row as u32);
                    long_lengths.push(rest);
                }
            }
            segment_ptr.push((ell + short) as u32);
            segment_long.push(long_rows.len() as u32);
        }
        let (mut long_ptr, mut piece_ptr) = (vec![0], vec![(ell + short) as u32]);
        let mut before = ell + short;
        for rest in long_lengths {
            let piece = piece_of(rest);
            piece_ptr.extend((0..rest).step_by(piece).map(|at| (before + (at + piece).min(rest)) as u32));
            long_ptr.push(piece_ptr.len() as u32 - 1);
            before += rest;
        }
        let head: [u32; HEAD] = [ell as u32, long_rows.len() as u32, piece_ptr.len() as u32 - 1];
        let lists = [slice_ptr, segment_ptr, segment_long, long_rows, long_ptr, piece_ptr];
        let starts = starts(lists.each_ref().map(Vec::len));
        let words = head.into_iter().chain(lists.into_iter().flatten()).collect();
        HybLayout { words: Cow::Owned(words), starts, places: [ell, short, long] }
    }
}

/// The starts of lists of these lengths.
fn starts(lengths: [usize; 6]) -> [usize; 6] {
    let mut end = HEAD;
    lengths.map(|length| {
        end += length;
        end - length
    })
}

impl<'a> HybLayout<'a> {
    /// The layout of a matrix with `rows` rows from its words; `None` if they are invalid.
    pub fn read(words: &'a [u32], rows: usize) -> Option<Self> {
        let [ell, longs, pieces] = *words.first_chunk::<HEAD>()?;
        let (longs, segments) = (longs as usize, rows.div_ceil(SEGMENT));
        let lengths =
            [rows.div_ceil(SLICE) + 1, segments + 1, segments + 1, longs, longs + 1, pieces as usize + 1];
        let starts = starts(lengths);
        let behind = |list: usize| words.get(starts[list] + lengths[list] - 1).map(|at| *at as usize);
        let (ell, short, long) = (ell as usize, behind(1)?, behind(5)?);
        let places = [ell, short.checked_sub(ell)?, long.checked_sub(short)?];
        (words.len() == starts[5] + lengths[5]).then_some(HybLayout { words: words.into(), starts, places })
    }

    /// Whether a row with this many coordinates is not split into pieces.
    pub(crate) fn is_short(entries: usize) -> bool {
        !is_long(1, entries)
    }

    fn list(&self, of: usize) -> &[u32] {
        let end = self.starts.get(of + 1).copied().unwrap_or(self.words.len());
        &self.words[self.starts[of]..end]
    }

    /// All words.
    pub fn words(&self) -> &[u32] {
        &self.words
    }
    /// Number of places of all slices.
    pub fn in_slices(&self) -> usize {
        self.places[0]
    }
    /// The start of each slice of 32 rows, in columns of 32 places, and the end of the last.
    pub fn slice_ptr(&self) -> &[u32] {
        self.list(0)
    }
    /// The start of the coordinates of each segment of 256 rows, in places, and the end of the last.
    pub fn segment_ptr(&self) -> &[u32] {
        self.list(1)
    }
    /// The start of the rows of each segment in [`HybLayout::long_rows`], and the end of the last.
    pub fn segment_long(&self) -> &[u32] {
        self.list(2)
    }
    /// The rows whose coordinates are in pieces.
    pub fn long_rows(&self) -> &[u32] {
        self.list(3)
    }
    /// The start of the pieces of each such row, and the end of the last.
    pub fn long_ptr(&self) -> &[u32] {
        self.list(4)
    }
    /// The start of each piece, in places, and the end of the last.
    pub fn piece_ptr(&self) -> &[u32] {
        self.list(5)
    }
    /// Number of pieces.
    pub fn pieces(&self) -> usize {
        self.piece_ptr().len() - 1
    }
}

/// The number of entries of a row stored in slices: Bell and Garland's rule.
pub(crate) fn widest<T: Scalar>(a: &Csr<T>) -> usize {
    let rows = a.rows();
    let enough = rows.div_ceil(OF_ROWS).max(LEAST_ROWS.min(rows));
    // `enough` rows cannot all have more entries than this.
    let most = a.nnz() / enough.max(1);
    let mut with = vec![0usize; most + 1];
    a.row_ptr().windows(2).for_each(|ends| with[((ends[1] - ends[0]) as usize).min(most)] += 1);
    let mut longer = 0;
    (0..=most)
        .rev()
        .find(|&width| {
            longer += with[width];
            longer >= enough
        })
        .unwrap_or(0)
}
