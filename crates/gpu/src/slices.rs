//! A matrix repacked in slices, for kernels that stream vectors: 32 lanes side by side, so that a warp's
//! loads are coalesced.
//!
//! For each matrix, `windows` holds a head of [`HEAD`] words: the starts of its slices, its columns and its
//! values; the rows of its lanes if they are reordered; its long rows; and, if rows are reordered, the first
//! slice of each warp of each work-group and the end of the last one. A slice is given by the number of runs
//! of entries before it.
//! Long rows are stored as: their number; the first one of each work-group; their rows; the first piece of
//! each; the starts of pieces; the ends of pieces.
use crate::repacked::{NONE, ends_of};
use crate::rows::{KernelMatrix, RowValues, Source};
use crate::source::SEGMENT;
use lacuna_engine::{NumberType, Scalar, pages, piece_of, with_each};
use lacuna_formats::parallel;
use std::cmp::Reverse;
use std::ops::Range;

/// Work-items of a warp.
const WARP: usize = 32;
/// Average entries per row up to which a lane takes two rows at a time.
const FEW: usize = 4;
/// Words of the head of a matrix, as in streaming.cl.
const HEAD: usize = 6;
/// Marks a row that is in no slice, in place of its number of runs.
const LONG: u32 = u32::MAX;
/// Entries in a batch, for one row a lane.
const DEPTH: usize = 8;
/// Minimum slices for each host thread.
const GRAIN: usize = 64;

/// The part of a matrix that is summed in pieces, by all warps of a work-group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// Nothing.
    Nothing,
    /// Coordinates of rows with too many of them.
    Coordinates,
    /// Long rows.
    Rows,
}

/// How a matrix is stored in slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slices {
    /// Entries with consecutive columns that occur together.
    pub run: usize,
    /// Whether a slice has twice as many rows, two for each lane.
    pub twice: bool,
    /// Whether values are in the narrower type, as in the matrix.
    pub narrow: bool,
    /// Whether rows are reordered: by length, within each work-group.
    pub sorted: bool,
    /// The part that is in no slice.
    pub apart: Apart,
    /// Local memory that the product needs for that part, in numbers.
    pub numbers: usize,
}

/// The rows of each slice, and its length.
pub(crate) struct Order {
    /// Rows of a slice, and its width in places: one for each lane, or two if lanes have two rows.
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// The row of each place; empty if rows are in order.
    row_of: Vec<u32>,
    /// Runs of entries before each slice, and in total.
    ptr: Vec<usize>,
}

impl Order {
    /// The cheapest order within the limits of padding; `None` if there is none.
    fn of(
        a: &KernelMatrix<'_>,
        n: usize,
        groups: &[Range<usize>],
        long: &Long,
        padding: [usize; 2],
    ) -> Option<Order> {
        let (lanes, run) = (a.lanes(), a.run());
        let mut runs = parallel::collect(n, GRAIN * WARP, |row| (a.longest(row) / run) as u32);
        long.rows.iter().for_each(|(row, _)| runs[*row as usize] = LONG);
        let of_row = |row: usize| if runs[row] == LONG { 0 } else { runs[row] as usize };
        let entries = parallel::sum(n, GRAIN * WARP, of_row);
        let fits =
            |order: &Order, padding: usize| order.places() <= padding * entries * lanes / 4 + WARP * WARP;
        let shape = [WARP / lanes, WARP];
        let plain = |shape: [usize; 2]| {
            let order = long.rows.is_empty().then(|| Order::plain(&runs, shape));
            order.filter(|order| fits(order, padding[0]))
        };
        let sorted = || {
            let order = Order::sorted(&runs, shape, groups);
            Some(order).filter(|order| fits(order, padding[1]))
        };
        // Two rows a lane pay if all rows are short.
        let few = lanes * run == 1 && entries <= FEW * n;
        let whole = groups.iter().all(|g| g.is_empty() || g.start.is_multiple_of(2 * WARP));
        let paired = (few && whole).then(|| plain([2 * WARP; 2])).flatten();
        paired.or_else(|| plain(shape)).or_else(sorted)
    }

    /// Rows in their own order.
    fn plain(runs: &[u32], [rows, width]: [usize; 2]) -> Order {
        let longest = |s: usize| {
            let slice = &runs[s * rows..runs.len().min((s + 1) * rows)];
            slice.iter().copied().max().unwrap_or(0)
        };
        let lengths = parallel::collect(runs.len().div_ceil(rows), GRAIN, longest);
        Order { rows, width, row_of: Vec::new(), ptr: ends_of(lengths.into_iter()) }
    }

    /// The rows of each work-group sorted by length; long rows have no place.
    fn sorted(runs: &[u32], [rows, width]: [usize; 2], groups: &[Range<usize>]) -> Order {
        let mut row_of = vec![NONE; runs.len().next_multiple_of(rows)];
        let (mut left, mut tasks) = (&mut row_of[..runs.len()], Vec::with_capacity(groups.len()));
        for group in groups {
            let own;
            (own, left) = left.split_at_mut(group.len());
            tasks.push((group.start, own));
        }
        let length = |row: &u32| Some(runs[*row as usize]).filter(|runs| *runs != LONG).unwrap_or(0);
        parallel::for_each(tasks, |(first, own)| {
            own.iter_mut().enumerate().for_each(|(k, row)| *row = (first + k) as u32);
            own.sort_by_key(|row| Reverse(length(row)));
            let long = |row: &&mut u32| runs[**row as usize] == LONG;
            own.iter_mut().filter(long).for_each(|row| *row = NONE);
        });
        let longest = |s: usize| {
            let rows = row_of[s * rows..][..rows].iter().filter(|row| **row != NONE);
            rows.map(|row| runs[*row as usize]).max().unwrap_or(0)
        };
        let lengths = parallel::collect(row_of.len() / rows, GRAIN, longest);
        Order { rows, width, row_of, ptr: ends_of(lengths.into_iter()) }
    }

    pub(crate) fn slices(&self) -> usize {
        self.ptr.len() - 1
    }

    fn places(&self) -> usize {
        self.ptr.last().map_or(0, |end| end * self.width)
    }

    /// Fills the places of all slices with columns and with values as `stored` makes them of their sources.
    fn fill<V: Send>(
        &self,
        a: &KernelMatrix<'_>,
        n: usize,
        mut columns: &mut [u32],
        mut values: &mut [V],
        stored: impl Fn(Source) -> V + Sync,
    ) {
        let (lanes, run, width) = (a.lanes(), a.run(), self.width);
        let mut tasks = Vec::with_capacity(self.ptr.len());
        for ends in self.ptr.windows(2) {
            let places = (ends[1] - ends[0]) * width;
            let (own_columns, own_values);
            (own_columns, columns) = columns.split_at_mut(places);
            (own_values, values) = values.split_at_mut(places * run);
            tasks.push((own_columns, own_values));
        }
        parallel::for_each(tasks.chunks_mut(GRAIN).enumerate(), |(part, slices)| {
            for (s, (columns, values)) in (part * GRAIN..).zip(slices) {
                columns.fill(NONE);
                for at in 0..width {
                    let place = s * self.rows + at / lanes;
                    let row = self.row_of.get(place).map_or(place, |row| *row as usize);
                    if row >= n {
                        continue;
                    }
                    let mut k = 0;
                    a.each(row, at % lanes, |column, source| {
                        if k % run == 0 {
                            columns[k / run * width + at] = column;
                        }
                        values[k * width + at] = stored(source);
                        k += 1;
                    });
                }
            }
        });
    }
}

/// The rows that are summed in pieces.
struct Long {
    /// Row and entries.
    rows: Vec<(u32, Range<usize>)>,
    /// The first long row of each work-group, and their number.
    firsts: Vec<usize>,
    /// The entries of each piece.
    pieces: Vec<Range<usize>>,
    /// The first piece of each row, and their number.
    ptr: Vec<usize>,
}

impl Long {
    fn of(a: &KernelMatrix<'_>, n: usize, groups: &[Range<usize>]) -> Long {
        let rows = a.long_rows(n);
        let before = |first: usize| rows.partition_point(|(row, _)| (*row as usize) < first);
        let firsts = groups.iter().map(|g| before(g.start)).chain([rows.len()]).collect();
        let pieces = rows.iter().flat_map(|(_, entries)| pieces_of(entries)).collect();
        let ptr = ends_of(rows.iter().map(|(_, entries)| pieces_of(entries).count() as u32));
        Long { rows, firsts, pieces, ptr }
    }

    /// Maximum pieces of a work-group.
    fn most(&self) -> usize {
        let of_group = |of: &[usize]| self.ptr[of[1]] - self.ptr[of[0]];
        self.firsts.windows(2).map(of_group).max().unwrap_or(0)
    }

    /// The words that kernels read: number of rows, the first of each work-group, the rows, their first
    /// pieces, the starts and the ends of pieces.
    fn words(&self) -> impl Iterator<Item = u32> {
        let words = [self.rows.len()].into_iter().chain(self.firsts.iter().copied());
        let words =
            words.chain(self.rows.iter().map(|(row, _)| *row as usize)).chain(self.ptr.iter().copied());
        let words = words.chain(self.pieces.iter().map(|p| p.start)).chain(self.pieces.iter().map(|p| p.end));
        words.map(|word| word as u32)
    }
}

/// A matrix whose places are known and not filled yet.
pub(crate) struct Task<'a> {
    /// Its number in the program.
    pub(crate) m: usize,
    pub(crate) rows: KernelMatrix<'a>,
    pub(crate) n: usize,
    pub(crate) order: Order,
    /// Where its slices and, if they are reordered, its rows begin in the windows.
    pub(crate) slices_at: usize,
    pub(crate) rows_at: Option<usize>,
    /// Places of its columns, and numbers of the full type that its values take.
    pub(crate) columns: usize,
    pub(crate) values: usize,
}

/// The matrices of a program on their way into slices: first where everything goes, then one allocation and the
/// entries.
pub struct Slicer<'a> {
    pub(crate) kind: NumberType,
    pub(crate) windows: Vec<u32>,
    pub(crate) tasks: Vec<Task<'a>>,
    /// Places of all columns and values so far.
    pub(crate) columns: usize,
    pub(crate) values: usize,
}

impl<'a> Slicer<'a> {
    /// For so many matrices of a number type.
    pub fn new(kind: NumberType, matrices: usize) -> Self {
        let windows = vec![0; (matrices * HEAD).max(1)];
        Slicer { kind, windows, tasks: Vec::new(), columns: 0, values: 0 }
    }

    /// Adds a matrix of `n` rows in slices of 32 lanes, each of whole rows, if places take at most `padding`
    /// quarters of the entries: the first limit applies to rows in their own order, the second to sorted
    /// rows. `None` if it was not added. `groups` are the rows of each work-group, in whole slices (whole
    /// segments for coordinates); `warps` is the number of warps of a work-group.
    pub fn add(
        &mut self,
        m: usize,
        a: KernelMatrix<'a>,
        n: usize,
        groups: &[Range<usize>],
        warps: usize,
        padding: [usize; 2],
    ) -> Option<Slices> {
        if !fit([n.next_multiple_of(2 * WARP)]) {
            return None;
        }
        let run = a.run();
        let long = Long::of(&a, n, groups);
        let order = Order::of(&a, n, groups, &long, padding)?;
        let (columns, narrow) = (order.places(), a.is_narrow());
        let values = (columns * run * self.kind.element(narrow)).div_ceil(self.kind.size());
        if !fit([self.columns + columns, self.values + values]) {
            return None;
        }
        let ptr = self.windows.len();
        self.windows.extend(order.ptr.iter().map(|at| *at as u32));
        let row_of = self.windows.len();
        self.windows.extend(&order.row_of);
        let list = self.windows.len();
        self.windows.extend(long.words());
        let shares = self.windows.len();
        if !order.row_of.is_empty() {
            for group in groups {
                let [first, end] = [group.start, group.end].map(|row| row.div_ceil(order.rows));
                self.windows.extend(shared_out(&order.ptr, first..end, warps));
            }
        }
        if !fit([self.windows.len()]) {
            self.windows.truncate(ptr);
            return None;
        }
        let head = [ptr, self.columns, self.values, row_of, list, shares].map(|at| at as u32);
        self.windows[m * HEAD..][..HEAD].copy_from_slice(&head);
        let (apart, most) = match a.pieces() {
            Some(layout) => {
                let first = |row: usize| {
                    layout.long_ptr()[layout.segment_long()[row.div_ceil(SEGMENT)] as usize] as usize
                };
                (Apart::Coordinates, groups.iter().map(|g| first(g.end) - first(g.start)).max().unwrap_or(0))
            }
            None => (Apart::Rows, long.most()),
        };
        let apart = if most > 0 { apart } else { Apart::Nothing };
        let (twice, sorted) = (order.width == 2 * WARP, !order.row_of.is_empty());
        (self.columns, self.values) = (self.columns + columns, self.values + values);
        let rows_at = sorted.then_some(row_of);
        self.tasks.push(Task { m, rows: a, n, order, slices_at: ptr, rows_at, columns, values });
        Some(Slices { run, twice, narrow, sorted, apart, numbers: most })
    }
}

impl Task<'_> {
    /// Its columns and values, numbers of `size` bytes, as the host fills them; `None` without the memory for them, or where
    /// the entries are on a device alone.
    pub(crate) fn filled(&self, size: usize) -> Option<(Vec<u32>, Vec<u64>)> {
        if self.rows.is_remote() {
            return None;
        }
        let operation = "laying out matrices";
        let mut columns = pages::zeroed(operation, self.columns.max(1)).ok()?;
        let mut values = pages::zeroed::<u64>(operation, (self.values.max(1) * size).div_ceil(8)).ok()?;
        let bytes = &mut bytemuck::cast_slice_mut(&mut values)[..self.values * size];
        with_each!(self.rows.values(), entries => self.fill(entries, &mut columns, bytes));
        Some((columns, values))
    }

    fn fill<T: Scalar>(&self, entries: &RowValues<'_, T>, columns: &mut [u32], values: &mut [u8]) {
        let Task { rows, n, order, .. } = self;
        if rows.is_narrow() {
            order.fill(rows, *n, columns, bytemuck::cast_slice_mut(values), |from| {
                entries.at(from).narrowed()
            });
        } else {
            order.fill(rows, *n, columns, bytemuck::cast_slice_mut(values), |from| entries.at(from));
        }
    }
}

/// Whether 32-bit words count places.
fn fit<const N: usize>(places: [usize; N]) -> bool {
    places.into_iter().all(|places| places <= NONE as usize)
}

/// Divides consecutive slices among warps, with about equal numbers of batches: the first slice of each warp,
/// and the end.
fn shared_out(ptr: &[usize], slices: Range<usize>, warps: usize) -> Vec<u32> {
    let cost = |s: usize| (ptr[s + 1] - ptr[s]).div_ceil(DEPTH).max(1);
    let all: usize = slices.clone().map(cost).sum();
    let (mut firsts, mut before) = (vec![slices.start as u32], 0);
    for s in slices.clone() {
        // The warp whose share contains the middle of this slice.
        let share = (2 * before + cost(s)) * warps / (2 * all);
        firsts.resize(firsts.len().max(share + 1), s as u32);
        before += cost(s);
    }
    firsts.resize(warps + 1, slices.end as u32);
    firsts
}

/// The pieces of a long row's entries.
fn pieces_of(entries: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
    let (piece, end) = (piece_of(entries.len()), entries.end);
    entries.clone().step_by(piece).map(move |first| first..end.min(first + piece))
}
