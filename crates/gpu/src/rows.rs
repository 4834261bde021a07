//! The rows of a matrix as generated kernels read them: lane by lane, entry by entry, for any format.
use crate::source::SEGMENT;
use lacuna_engine::{Argument, Format, Scalar, is_long};
use lacuna_formats::{DIA_ROWS, Grids, HybLayout, PACKET, SLICE, parallel, position};
use std::ops::Range;

const NONE: u32 = u32::MAX;
/// Minimum rows for each host thread.
pub(crate) const GRAIN: usize = 16 * SEGMENT;

/// Maximum entries of a run that kernels support.
const MOST_RUN: usize = 4;

/// A matrix in one of the formats that generated kernels support.
pub enum Rows<'a, T: Scalar> {
    /// Compressed rows: row offsets, columns, values, lanes of a row.
    Csr(&'a [u32], &'a [u32], &'a [T], usize),
    /// Diagonals: number of columns, table, values with padding.
    Dia(usize, &'a [i32], &'a [T]),
    /// Slices: slice offsets, the lane of each row, columns, values.
    Sell(&'a [u32], Vec<u32>, &'a [u32], &'a [T]),
    /// Blocks: rows of a block, offsets of block rows, block columns, blocks, lanes of a row.
    Bcsr(usize, &'a [u32], &'a [u32], &'a [T], usize),
    /// Slices and coordinates: the layout, rows of coordinates, columns, values.
    Hyb(HybLayout<'a>, &'a [u32], &'a [u32], &'a [T]),
    /// Coefficients on a grid: its size, the coefficients of a position, and the steps to each neighbour, in groups
    /// of four words; coefficients.
    Stencil(&'a [i32], &'a [T]),
    /// Linear interpolation between grids.
    Interpolation(Grids),
    /// Dense rows: number of columns, values row by row, lanes of a row.
    Dense(usize, &'a [T], usize),
    /// Compressed rows with packed columns: row offsets and first columns, distances from the first column,
    /// values, lanes of a row.
    Packed(&'a [u32], &'a [u16], Entries<'a, T>, usize),
    /// Packets: slice offsets, offsets of the far entries of each row, columns of both, values of both.
    Pkt(&'a [u32], &'a [u32], &'a [u16], &'a [u32], &'a [T]),
}

/// Stored values.
pub enum Entries<'a, T: Scalar> {
    /// In the type of the product.
    Full(&'a [T]),
    /// In the narrower type.
    Narrow(&'a [T::Narrow]),
}

/// The entries of a row.
fn entries_of(row_ptr: &[u32], row: usize) -> Range<usize> {
    row_ptr[row] as usize..row_ptr[row + 1] as usize
}

impl<'a, T: Scalar> Rows<'a, T> {
    /// The rows of a matrix; `None` if its format is not supported.
    pub fn of(a: &'a dyn Format<T>) -> Option<Rows<'a, T>> {
        use Argument::{Indices, Narrow, Offsets, Short, Size, Values};
        let lanes = a.lanes();
        Some(match (a.kernel(), &a.arguments()[..]) {
            ("csr", [Indices(row_ptr), Indices(columns), Values(values)]) => {
                Rows::Csr(row_ptr, columns, values, lanes)
            }
            ("dia", [Size(_), Size(cols), Offsets(table), Values(values)]) => {
                Rows::Dia(*cols as usize, table, values)
            }
            (
                "sell" | "ell",
                [Size(_), Indices(slice_ptr), Indices(row_of), Indices(columns), Values(values)],
            ) => {
                let mut lane_of = vec![0; row_of.len()];
                for (lane, row) in row_of.iter().enumerate().filter(|(_, row)| **row != NONE) {
                    lane_of[*row as usize] = lane as u32;
                }
                Rows::Sell(slice_ptr, lane_of, columns, values)
            }
            ("bcsr", [Size(block), Indices(row_ptr), Indices(columns), Values(values)]) => {
                Rows::Bcsr(*block as usize, row_ptr, columns, values, lanes)
            }
            ("hyb" | "coo", [Indices(words), Indices(row_of), Indices(columns), Values(values)]) => {
                Rows::Hyb(HybLayout::read(words, a.shape().0)?, row_of, columns, values)
            }
            ("dense", [Size(cols), Values(values)]) => Rows::Dense(*cols as usize, values, lanes),
            ("stencil", [Offsets(words), Values(coefficients)]) => Rows::Stencil(words, coefficients),
            ("interpolation", [Offsets(words)]) => Rows::Interpolation(Grids::read(words)?),
            ("packed", [Size(_), Indices(words), Short(distances), Values(values)]) => {
                Rows::Packed(words, distances, Entries::Full(values), lanes)
            }
            ("packed", [Size(_), Indices(words), Short(distances), Narrow(values)]) => {
                Rows::Packed(words, distances, Entries::Narrow(values), lanes)
            }
            ("pkt", [Size(_), Indices(words), Short(resident), Indices(streaming), Values(values)]) => {
                let (slice_ptr, far_ptr) = words.split_at_checked(a.shape().0.div_ceil(SLICE) + 1)?;
                Rows::Pkt(slice_ptr, far_ptr, resident, streaming, values)
            }
            _ => return None,
        })
    }

    /// Whether its values are stored in a narrower type than that of the product.
    pub fn is_narrow(&self) -> bool {
        T::HAS_NARROW && matches!(self, Rows::Packed(.., Entries::Narrow(_), _))
    }

    /// Lanes of a row.
    pub fn lanes(&self) -> usize {
        match self {
            Rows::Csr(.., lanes) | Rows::Bcsr(.., lanes) => *lanes,
            Rows::Packed(.., lanes) | Rows::Dense(.., lanes) => *lanes,
            Rows::Dia(..) | Rows::Sell(..) | Rows::Hyb(..) | Rows::Pkt(..) => 1,
            Rows::Stencil(..) | Rows::Interpolation(_) => 1,
        }
    }

    /// The long rows of compressed rows, which are summed in pieces, with their entries.
    pub fn long_rows(&self, rows: usize) -> Vec<(u32, Range<usize>)> {
        let Rows::Csr(row_ptr, .., lanes) = self else { return Vec::new() };
        let of_rows = |rows: Range<usize>| {
            let entries = rows.map(|row| (row as u32, entries_of(row_ptr, row)));
            entries.filter(|(_, entries)| is_long(*lanes, entries.len())).collect::<Vec<_>>()
        };
        parallel::map(parallel::ranges(rows, GRAIN), of_rows).concat()
    }

    /// Entries with consecutive columns that always occur together: a row of a block, or an equal part of it
    /// if it has more than four.
    pub fn run(&self) -> usize {
        match self {
            Rows::Bcsr(block, ..) => (1..=MOST_RUN).rev().find(|run| block.is_multiple_of(*run)).unwrap_or(1),
            _ => 1,
        }
    }

    /// The long rows, which are summed in pieces and added separately; only coordinates have them.
    pub fn pieces(&self) -> Option<&HybLayout<'a>> {
        match self {
            Rows::Hyb(layout, ..) if layout.pieces() > 0 => Some(layout),
            _ => None,
        }
    }

    /// The coordinates of a row of [`Rows::Hyb`] that belong to no piece.
    fn coordinates(layout: &HybLayout<'_>, row_of: &[u32], row: usize) -> Range<usize> {
        let (first, segment) = (layout.in_slices(), row / SEGMENT);
        let [from, to] = [segment, segment + 1].map(|s| layout.segment_ptr()[s] as usize - first);
        let rows = &row_of[from..to];
        let [begin, end] = [row, row + 1].map(|row| rows.partition_point(|&r| (r as usize) < row));
        first + from + begin..first + from + end
    }

    /// Columns and values of a lane's entries of a row, in order, without the coordinates that lie in pieces.
    pub fn each(&self, row: usize, lane: usize, mut take: impl FnMut(u32, T)) {
        match self {
            Rows::Csr(row_ptr, columns, values, lanes) => {
                let entries = entries_of(row_ptr, row).skip(lane).step_by(*lanes);
                entries.for_each(|at| take(columns[at], values[at]));
            }
            Rows::Dia(cols, table, values) => {
                let (offsets, starts) = table.split_at(table.len() / 2);
                let first = (row / DIA_ROWS * starts[offsets.len()] as usize + row % DIA_ROWS) as i64;
                for (offset, start) in offsets.iter().zip(starts) {
                    let column = row as i64 + i64::from(*offset);
                    if (0..*cols as i64).contains(&column) {
                        take(column as u32, values[(first + i64::from(*start)) as usize]);
                    }
                }
            }
            Rows::Sell(slice_ptr, lane_of, columns, values) => {
                let lane = lane_of.get(row).map_or(row, |lane| *lane as usize);
                let places = slice_ptr[lane / SLICE] as usize..slice_ptr[lane / SLICE + 1] as usize;
                places.map(|p| p * SLICE + lane % SLICE).for_each(|at| take(columns[at], values[at]));
            }
            Rows::Bcsr(block, row_ptr, columns, values, lanes) => {
                let (of, r) = (row / block, row % block);
                for k in entries_of(row_ptr, of).skip(lane).step_by(*lanes) {
                    for c in 0..*block {
                        take(columns[k] * *block as u32 + c as u32, values[(k * block + c) * block + r]);
                    }
                }
            }
            Rows::Hyb(layout, row_of, columns, values) => {
                let slice = &layout.slice_ptr()[row / SLICE..][..2];
                let in_slice = (slice[0] as usize..slice[1] as usize).map(|p| p * SLICE + row % SLICE);
                let places = in_slice.chain(Self::coordinates(layout, row_of, row));
                places.for_each(|at| take(columns[at], values[at]));
            }
            Rows::Dense(cols, values, lanes) => {
                (lane..*cols).step_by(*lanes).for_each(|j| take(j as u32, values[row * cols + j]));
            }
            Rows::Packed(words, distances, values, lanes) => {
                let first = words[words.len() / 2 + 1 + row];
                for at in entries_of(words, row).skip(lane).step_by(*lanes) {
                    let value = match values {
                        Entries::Full(values) => values[at],
                        Entries::Narrow(values) => T::from_parts(values[at].re(), values[at].im()),
                    };
                    take(first + u32::from(distances[at]), value);
                }
            }
            Rows::Pkt(slice_ptr, far_ptr, resident, streaming, values) => {
                let first = (row / PACKET * PACKET) as u32;
                let slice = &slice_ptr[row / SLICE..][..2];
                let places = (slice[0] as usize..slice[1] as usize).map(|p| p * SLICE + row % SLICE);
                places.for_each(|at| take(first + u32::from(resident[at]), values[at]));
                entries_of(far_ptr, row).for_each(|k| take(streaming[k], values[resident.len() + k]));
            }
            Rows::Stencil(words, coefficients) => {
                let size = &words[..3];
                let [nx, ny, nz] = [size[0], size[1], size[2]].map(|side| side as usize);
                let at = [row % nx, row / nx % ny, row / nx / ny];
                let of_position = words[4] as usize * position(at, [nx, ny, nz]);
                for (to, value) in words[8..].chunks(4).zip(&coefficients[of_position..]) {
                    let mut axes = at.iter().zip(size).zip(to);
                    if axes.all(|((at, side), step)| at.wrapping_add_signed(*step as isize) < *side as usize)
                    {
                        take(row.wrapping_add_signed(to[3] as isize) as u32, *value);
                    }
                }
            }
            Rows::Interpolation(grids) => {
                grids.each(row, |column, weight| take(column as u32, T::from_real(weight)));
            }
        }
    }

    /// Entries of the longest lane of a row, or an upper bound.
    pub fn longest(&self, row: usize) -> usize {
        match self {
            Rows::Csr(row_ptr, .., lanes) | Rows::Packed(row_ptr, .., lanes) => {
                entries_of(row_ptr, row).len().div_ceil(*lanes)
            }
            Rows::Dia(_, table, _) => table.len() / 2,
            Rows::Dense(cols, _, lanes) => cols.div_ceil(*lanes),
            Rows::Stencil(words, _) => words[3] as usize,
            Rows::Interpolation(grids) => grids.length(row),
            Rows::Sell(slice_ptr, lane_of, ..) => {
                let slice = lane_of.get(row).map_or(row, |lane| *lane as usize) / SLICE;
                (slice_ptr[slice + 1] - slice_ptr[slice]) as usize
            }
            Rows::Bcsr(block, row_ptr, .., lanes) => {
                entries_of(row_ptr, row / block).len().div_ceil(*lanes) * block
            }
            Rows::Pkt(slice_ptr, far_ptr, ..) => {
                let slice = &slice_ptr[row / SLICE..][..2];
                (slice[1] - slice[0]) as usize + entries_of(far_ptr, row).len()
            }
            Rows::Hyb(layout, row_of, ..) => {
                let slice = &layout.slice_ptr()[row / SLICE..][..2];
                (slice[1] - slice[0]) as usize + Self::coordinates(layout, row_of, row).len()
            }
        }
    }

    /// Places of a row whose lanes are taken in turn: entry `i` of lane `j` is at `i * lanes + j`.
    pub fn folded(&self, row: usize) -> usize {
        match self {
            Rows::Csr(row_ptr, ..) | Rows::Packed(row_ptr, ..) => entries_of(row_ptr, row).len(),
            Rows::Dense(cols, ..) => *cols,
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
