//! The rows of a matrix as generated kernels read them: lane by lane, entry by entry, for any format.
use crate::source::SEGMENT;
use lacuna_engine::{AnyFormat, Argument, Each, Error, Family, Format, Result, Scalar, is_long, with_each};
use lacuna_formats::{DIA_ROWS, Grids, HybLayout, PACKET, SLICE, is_own_type, parallel, position};
use std::marker::PhantomData;
use std::ops::Range;

const NONE: u32 = u32::MAX;
/// Minimum rows for each host thread.
pub(crate) const GRAIN: usize = 16 * SEGMENT;

/// Maximum entries of a run that kernels support.
const MOST_RUN: usize = 4;

/// A matrix in one of the formats that generated kernels support.
pub struct KernelMatrix<'a> {
    pattern: Pattern<'a>,
    lanes: usize,
    values: Each<StoredValues<'a>>,
}

/// Where the entries of each row are.
enum Pattern<'a> {
    /// Compressed rows: row offsets, columns.
    Csr(&'a [u32], &'a [u32]),
    /// Diagonals: number of columns, table; values have padding.
    Dia(usize, &'a [i32]),
    /// Slices: slice offsets, the lane of each row, columns.
    Sell(&'a [u32], Vec<u32>, &'a [u32]),
    /// Blocks: rows of a block, offsets of block rows, block columns.
    Bcsr(usize, &'a [u32], &'a [u32]),
    /// Slices and coordinates: the layout, rows of coordinates, columns.
    Hyb(HybLayout<'a>, &'a [u32], &'a [u32]),
    /// Coefficients on a grid: its size, the coefficients of a position, and the steps to each neighbour, in groups
    /// of four words.
    Stencil(&'a [i32]),
    /// Linear interpolation between grids.
    Interpolation(Grids),
    /// Dense rows: number of columns; values row by row.
    Dense(usize),
    /// Compressed rows with packed columns: row offsets and first columns, distances from the first column.
    Packed(&'a [u32], &'a [u16]),
    /// Packets: slice offsets, offsets of the far entries of each row, columns of both.
    Pkt(&'a [u32], &'a [u32], &'a [u16], &'a [u32]),
}

/// Stored values.
pub enum RowValues<'a, T: Scalar> {
    /// In the type of the product.
    Full(&'a [T]),
    /// In the narrower type.
    Narrow(&'a [T::Narrow]),
}

/// The [`Family`] of [`RowValues`].
pub struct StoredValues<'a>(PhantomData<&'a ()>);

impl<'a> Family for StoredValues<'a> {
    type Of<T: Scalar> = RowValues<'a, T>;
}

/// Where the value of an entry comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// From this place among the stored values.
    Stored(usize),
    /// It is this number.
    Given(f64),
}

impl<T: Scalar> RowValues<'_, T> {
    /// The value from a source.
    #[inline(always)]
    pub fn at(&self, source: Source) -> T {
        match (source, self) {
            (Source::Stored(at), RowValues::Full(values)) => values[at],
            (Source::Stored(at), RowValues::Narrow(values)) => T::widened(values[at]),
            (Source::Given(value), _) => T::from_real(value),
        }
    }
}

/// Fails unless a matrix is of a type whose arrays kernels may read unchecked: one of this library's, which are
/// checked when they are made and never change. Any other may say that it is in a format and not be.
///
/// # Errors
/// [`Error::Unsupported`].
pub fn check_type(a: &AnyFormat) -> Result<()> {
    if with_each!(a, a => is_own_type(&**a)) {
        return Ok(());
    }
    Err(Error::Unsupported {
        operation: format!("a matrix in a format of your own, `{}`", a.kernel()),
        message: "a GPU takes the formats of this library alone, whose arrays it reads unchecked; use CSR"
            .into(),
    })
}

/// The entries of a row.
fn entries_of(row_ptr: &[u32], row: usize) -> Range<usize> {
    row_ptr[row] as usize..row_ptr[row + 1] as usize
}

impl<'a> KernelMatrix<'a> {
    /// The rows of a matrix; `None` if its format is not supported.
    pub fn of(a: &'a AnyFormat) -> Option<Self> {
        with_each!(a, a => KernelMatrix::of_typed(&**a))
    }
    fn of_typed<T: Scalar>(a: &'a dyn Format<T>) -> Option<Self> {
        use Argument::{Indices, Narrow, Offsets, Short, Size, Values};
        let mut arguments = a.arguments();
        let values = match arguments.last() {
            Some(Values(values)) => RowValues::Full(values),
            Some(Narrow(values)) => RowValues::Narrow(values),
            _ => RowValues::Full(&[]),
        };
        arguments.retain(|argument| !matches!(argument, Values(_) | Narrow(_)));
        let pattern = match (a.kernel(), &arguments[..]) {
            ("csr", [Indices(row_ptr), Indices(columns)]) => Pattern::Csr(row_ptr, columns),
            ("dia", [Size(_), Size(cols), Offsets(table)]) => Pattern::Dia(*cols as usize, table),
            ("sell" | "ell", [Size(_), Indices(slice_ptr), Indices(row_of), Indices(columns)]) => {
                let mut lane_of = vec![0; row_of.len()];
                for (lane, row) in row_of.iter().enumerate().filter(|(_, row)| **row != NONE) {
                    lane_of[*row as usize] = lane as u32;
                }
                Pattern::Sell(slice_ptr, lane_of, columns)
            }
            ("bcsr", [Size(block), Indices(row_ptr), Indices(columns)]) => {
                Pattern::Bcsr(*block as usize, row_ptr, columns)
            }
            ("hyb" | "coo", [Indices(words), Indices(row_of), Indices(columns)]) => {
                Pattern::Hyb(HybLayout::read(words, a.shape().0)?, row_of, columns)
            }
            ("dense", [Size(cols)]) => Pattern::Dense(*cols as usize),
            ("stencil", [Offsets(words)]) => Pattern::Stencil(words),
            ("interpolation", [Offsets(words)]) => Pattern::Interpolation(Grids::read(words)?),
            ("packed", [Size(_), Indices(words), Short(distances)]) => Pattern::Packed(words, distances),
            ("pkt", [Size(_), Indices(words), Short(resident), Indices(streaming)]) => {
                let (slice_ptr, far_ptr) = words.split_at_checked(a.shape().0.div_ceil(SLICE) + 1)?;
                Pattern::Pkt(slice_ptr, far_ptr, resident, streaming)
            }
            _ => return None,
        };
        let lanes = match pattern {
            Pattern::Csr(..) | Pattern::Bcsr(..) | Pattern::Packed(..) | Pattern::Dense(_) => a.lanes(),
            _ => 1,
        };
        Some(KernelMatrix { pattern, lanes, values: T::each(values) })
    }

    /// The stored values.
    pub fn values(&self) -> &Each<StoredValues<'a>> {
        &self.values
    }
    /// Whether its values are stored in a narrower type than that of the product.
    pub fn is_narrow(&self) -> bool {
        let kind = self.values.kind();
        kind != kind.narrow() && with_each!(&self.values, values => matches!(values, RowValues::Narrow(_)))
    }
    /// Rows and columns of a block, 1 for compressed rows; `None` for other formats.
    pub(crate) fn block(&self) -> Option<usize> {
        match &self.pattern {
            Pattern::Csr(..) => Some(1),
            Pattern::Bcsr(block, ..) => Some(*block),
            _ => None,
        }
    }
    /// Whether its columns and values are on a device alone: see [`lacuna_formats::RemoteCsr`].
    pub fn is_remote(&self) -> bool {
        match &self.pattern {
            Pattern::Csr(row_ptr, columns) => {
                columns.len() < row_ptr.last().map_or(0, |entries| *entries as usize)
            }
            _ => false,
        }
    }
    /// Lanes of a row.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// The long rows of compressed rows, which are summed in pieces, with their entries.
    pub fn long_rows(&self, rows: usize) -> Vec<(u32, Range<usize>)> {
        let (Pattern::Csr(row_ptr, _), lanes) = (&self.pattern, self.lanes) else { return Vec::new() };
        let of_rows = |rows: Range<usize>| {
            let entries = rows.map(|row| (row as u32, entries_of(row_ptr, row)));
            entries.filter(|(_, entries)| is_long(lanes, entries.len())).collect::<Vec<_>>()
        };
        parallel::map(parallel::ranges(rows, GRAIN), of_rows).concat()
    }

    /// Entries with consecutive columns that always occur together: a row of a block, or an equal part of it
    /// if it has more than four.
    pub fn run(&self) -> usize {
        match &self.pattern {
            Pattern::Bcsr(block, ..) => {
                (1..=MOST_RUN).rev().find(|run| block.is_multiple_of(*run)).unwrap_or(1)
            }
            _ => 1,
        }
    }

    /// The long rows, which are summed in pieces and added separately; only coordinates have them.
    pub fn pieces(&self) -> Option<&HybLayout<'a>> {
        match &self.pattern {
            Pattern::Hyb(layout, ..) if layout.pieces() > 0 => Some(layout),
            _ => None,
        }
    }

    /// The coordinates of a row of a [`Pattern::Hyb`] that belong to no piece.
    fn coordinates(layout: &HybLayout<'_>, row_of: &[u32], row: usize) -> Range<usize> {
        let (first, segment) = (layout.in_slices(), row / SEGMENT);
        let [from, to] = [segment, segment + 1].map(|s| layout.segment_ptr()[s] as usize - first);
        let rows = &row_of[from..to];
        let [begin, end] = [row, row + 1].map(|row| rows.partition_point(|&r| (r as usize) < row));
        first + from + begin..first + from + end
    }

    /// Columns and sources of the values of a lane's entries of a row, in order, without the coordinates that lie in pieces.
    pub fn each(&self, row: usize, lane: usize, mut take: impl FnMut(u32, Source)) {
        let lanes = self.lanes;
        let mut stored = |column: u32, at: usize| take(column, Source::Stored(at));
        match &self.pattern {
            Pattern::Csr(row_ptr, columns) => {
                let entries = entries_of(row_ptr, row).skip(lane).step_by(lanes);
                entries.for_each(|at| stored(columns[at], at));
            }
            Pattern::Dia(cols, table) => {
                let (offsets, starts) = table.split_at(table.len() / 2);
                let first = (row / DIA_ROWS * starts[offsets.len()] as usize + row % DIA_ROWS) as i64;
                for (offset, start) in offsets.iter().zip(starts) {
                    let column = row as i64 + i64::from(*offset);
                    if (0..*cols as i64).contains(&column) {
                        stored(column as u32, (first + i64::from(*start)) as usize);
                    }
                }
            }
            Pattern::Sell(slice_ptr, lane_of, columns) => {
                let lane = lane_of.get(row).map_or(row, |lane| *lane as usize);
                let places = slice_ptr[lane / SLICE] as usize..slice_ptr[lane / SLICE + 1] as usize;
                places.map(|p| p * SLICE + lane % SLICE).for_each(|at| stored(columns[at], at));
            }
            Pattern::Bcsr(block, row_ptr, columns) => {
                let (of, r) = (row / block, row % block);
                for k in entries_of(row_ptr, of).skip(lane).step_by(lanes) {
                    for c in 0..*block {
                        stored(columns[k] * *block as u32 + c as u32, (k * block + c) * block + r);
                    }
                }
            }
            Pattern::Hyb(layout, row_of, columns) => {
                let slice = &layout.slice_ptr()[row / SLICE..][..2];
                let in_slice = (slice[0] as usize..slice[1] as usize).map(|p| p * SLICE + row % SLICE);
                let places = in_slice.chain(Self::coordinates(layout, row_of, row));
                places.for_each(|at| stored(columns[at], at));
            }
            Pattern::Dense(cols) => {
                (lane..*cols).step_by(lanes).for_each(|j| stored(j as u32, row * cols + j));
            }
            Pattern::Packed(words, distances) => {
                let first = words[words.len() / 2 + 1 + row];
                let entries = entries_of(words, row).skip(lane).step_by(lanes);
                entries.for_each(|at| stored(first + u32::from(distances[at]), at));
            }
            Pattern::Pkt(slice_ptr, far_ptr, resident, streaming) => {
                let first = (row / PACKET * PACKET) as u32;
                let slice = &slice_ptr[row / SLICE..][..2];
                let places = (slice[0] as usize..slice[1] as usize).map(|p| p * SLICE + row % SLICE);
                places.for_each(|at| stored(first + u32::from(resident[at]), at));
                entries_of(far_ptr, row).for_each(|k| stored(streaming[k], resident.len() + k));
            }
            Pattern::Stencil(words) => {
                let size = &words[..3];
                let [nx, ny, nz] = [size[0], size[1], size[2]].map(|side| side as usize);
                let at = [row % nx, row / nx % ny, row / nx / ny];
                let of_position = words[4] as usize * position(at, [nx, ny, nz]);
                for (to, value) in words[8..].chunks(4).zip(of_position..) {
                    let mut axes = at.iter().zip(size).zip(to);
                    if axes.all(|((at, side), step)| at.wrapping_add_signed(*step as isize) < *side as usize)
                    {
                        stored(row.wrapping_add_signed(to[3] as isize) as u32, value);
                    }
                }
            }
            Pattern::Interpolation(grids) => {
                grids.each(row, |column, weight| take(column as u32, Source::Given(weight)));
            }
        }
    }

    /// Entries of the longest lane of a row, or an upper bound.
    pub fn longest(&self, row: usize) -> usize {
        let lanes = self.lanes;
        match &self.pattern {
            Pattern::Csr(row_ptr, _) | Pattern::Packed(row_ptr, _) => {
                entries_of(row_ptr, row).len().div_ceil(lanes)
            }
            Pattern::Dia(_, table) => table.len() / 2,
            Pattern::Dense(cols) => cols.div_ceil(lanes),
            Pattern::Stencil(words) => words[3] as usize,
            Pattern::Interpolation(grids) => grids.length(row),
            Pattern::Sell(slice_ptr, lane_of, ..) => {
                let slice = lane_of.get(row).map_or(row, |lane| *lane as usize) / SLICE;
                (slice_ptr[slice + 1] - slice_ptr[slice]) as usize
            }
            Pattern::Bcsr(block, row_ptr, _) => {
                entries_of(row_ptr, row / block).len().div_ceil(lanes) * block
            }
            Pattern::Pkt(slice_ptr, far_ptr, ..) => {
                let slice = &slice_ptr[row / SLICE..][..2];
                (slice[1] - slice[0]) as usize + entries_of(far_ptr, row).len()
            }
            Pattern::Hyb(layout, row_of, ..) => {
                let slice = &layout.slice_ptr()[row / SLICE..][..2];
                (slice[1] - slice[0]) as usize + Self::coordinates(layout, row_of, row).len()
            }
        }
    }

    /// Places of a row whose lanes are taken in turn: entry `i` of lane `j` is at `i * lanes + j`.
    pub fn folded(&self, row: usize) -> usize {
        match &self.pattern {
            Pattern::Csr(row_ptr, _) | Pattern::Packed(row_ptr, _) => entries_of(row_ptr, row).len(),
            Pattern::Dense(cols) => *cols,
            _ => self.longest(row) * self.lanes(),
        }
    }

    /// [`Rows::longest`] of each of the first `rows` rows.
    pub fn lengths(&self, rows: usize) -> Vec<u32> {
        parallel::collect(rows, GRAIN, |row| self.longest(row) as u32)
    }

    /// For each segment of the first `rows` rows, the first column of its entries and one past the last.
    pub fn spans(&self, rows: usize) -> Vec<(u32, u32)> {
        let span = |first: usize| {
            let (mut low, mut end) = (NONE, 0);
            for row in first..(first + SEGMENT).min(rows) {
                for lane in 0..self.lanes() {
                    self.each(row, lane, |column, _| (low, end) = (low.min(column), end.max(column + 1)));
                }
            }
            (low.min(end), end)
        };
        parallel::collect(rows.div_ceil(SEGMENT), GRAIN / SEGMENT, |segment| span(segment * SEGMENT))
    }
}
