//! A matrix laid out in slices, for kernels whose vectors stay in memory: 32 lanes side by side, so that a warp reads whole
//! lines.
//!
//! For each matrix `windows` has a head of [`HEAD`] words: where its slices, its columns and its values begin, the rows of
//! its lanes where they are in another order, and the rows too long for a lane. Slices are the runs of entries before each.
//! The long rows of each group come one after the other, behind two words of each group: where they begin, and how many warps
//! take nothing else.
use crate::rows::Rows;
use crate::source::SEGMENT;
use crate::staged::{NONE, Staged};
use lacuna_core::Scalar;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::ops::Range;

/// Work-items of a warp.
const WARP: usize = 32;
/// Words of the head of a matrix, as in far.cl.
const HEAD: usize = 5;
/// Entries of a lane beyond which a row is taken by a whole warp, in its order.
const WIDE: u32 = 96;
/// What a warp needs for an entry of such a row, and for a batch of entries of a slice, in clock cycles.
const WIDE_ENTRY: usize = 12;
const BATCH: usize = 1500;
/// Entries of a batch.
const DEPTH: usize = 8;
/// Slices that a thread of the host fills, at least.
const GRAIN: usize = 64;

/// How a matrix lies in slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slices {
    /// Entries with consecutive columns that come together.
    pub run: usize,
    /// Whether rows are in another order: within a group by their length.
    pub sorted: bool,
    /// Whether there are rows too long for a lane, which are in no slice.
    pub wide: bool,
    /// Whether long rows are in pieces, which are in no slice either.
    pub pieces: bool,
    /// Numbers of local memory that the product takes for these.
    pub numbers: usize,
}

/// Which rows each slice has, and how long it is.
struct Order {
    /// Whole rows of a slice.
    rows: usize,
    /// The row of each place for one; empty where they are in order.
    row_of: Vec<u32>,
    /// The runs of entries before each slice, and in all.
    ptr: Vec<usize>,
}

impl Order {
    /// Rows as they come.
    fn plain(runs: &[u32], rows: usize) -> Order {
        let longest = |slice: &[u32]| slice.iter().copied().max().unwrap_or(0);
        Order { rows, row_of: Vec::new(), ptr: ends(runs.chunks(rows).map(longest)) }
    }

    /// Rows of each group by their length, those with more runs than `most` in no place.
    fn sorted(runs: &[u32], rows: usize, groups: &[Range<usize>], most: u32) -> Order {
        let mut row_of: Vec<u32> = (0..runs.len().next_multiple_of(rows) as u32).collect();
        let (mut left, mut tasks) = (&mut row_of[..runs.len()], Vec::with_capacity(groups.len()));
        for group in groups {
            let own;
            (own, left) = left.split_at_mut(group.len());
            tasks.push(own);
        }
        let length = |row: &u32| Some(runs[*row as usize]).filter(|runs| *runs <= most).unwrap_or(0);
        tasks.into_par_iter().for_each(|own| {
            own.sort_by_key(|row| Reverse(length(row)));
            let wide = |row: &&mut u32| runs[**row as usize] > most;
            own.iter_mut().filter(wide).for_each(|row| *row = NONE);
        });
        row_of[runs.len()..].fill(NONE);
        let longest = |slice: &[u32]| {
            let rows = slice.iter().filter(|row| **row != NONE);
            rows.map(|row| runs[*row as usize]).max().unwrap_or(0)
        };
        let ptr = ends(row_of.chunks(rows).map(longest));
        Order { rows, row_of, ptr }
    }

    fn places(&self) -> usize {
        self.ptr.last().map_or(0, |end| end * WARP)
    }

    /// Fills the places of all slices.
    fn fill<T: Scalar>(&self, a: &Rows<'_, T>, n: usize, mut columns: &mut [u32], mut values: &mut [T]) {
        let (lanes, run) = (a.lanes(), a.run());
        let mut tasks = Vec::with_capacity(self.ptr.len());
        for ends in self.ptr.windows(2) {
            let places = (ends[1] - ends[0]) * WARP;
            let (own_columns, own_values);
            (own_columns, columns) = columns.split_at_mut(places);
            (own_values, values) = values.split_at_mut(places * run);
            tasks.push((own_columns, own_values));
        }
        tasks.into_par_iter().enumerate().with_min_len(GRAIN).for_each(|(s, (columns, values))| {
            for at in 0..WARP {
                let place = s * self.rows + at / lanes;
                let row = self.row_of.get(place).map_or(place, |row| *row as usize);
                if row >= n {
                    continue;
                }
                let mut k = 0;
                a.each(row, at % lanes, |column, value| {
                    if k % run == 0 {
                        columns[k / run * WARP + at] = column;
                    }
                    values[k * WARP + at] = value;
                    k += 1;
                });
            }
        });
    }
}

/// What lies before each of so many, and in all.
fn ends(lengths: impl Iterator<Item = u32>) -> Vec<usize> {
    let ends = lengths.scan(0, |end, length| {
        *end += length as usize;
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

impl<T: Scalar> Staged<T> {
    /// Makes room for the heads of so many matrices.
    pub fn heads(&mut self, matrices: usize) {
        self.windows.resize(matrices * HEAD, 0);
    }

    /// Adds a matrix of `n` rows in slices of 32 lanes, whole rows of them, where that takes no more than `padding` quarters
    /// of its entries, the former with rows as they come, else the latter; nothing where it was not added. `groups` are the segments of each group, and `warps` its
    /// warps. The heads of all matrices come before.
    pub fn slices(
        &mut self,
        m: usize,
        a: &Rows<'_, T>,
        n: usize,
        groups: &[Range<usize>],
        warps: usize,
        padding: [usize; 2],
    ) -> Option<Slices> {
        let (lanes, run) = (a.lanes(), a.run());
        let mut runs = a.lengths(n);
        runs.iter_mut().for_each(|length| *length /= run as u32);
        let in_slices = |longest: u32, padding: usize| {
            let short = runs.par_iter().filter(|runs| **runs <= longest);
            padding * short.map(|runs| *runs as usize).sum::<usize>() * lanes / 4 + WARP * WARP
        };
        let mut order = Order::plain(&runs, WARP / lanes);
        let mut wide = vec![Vec::new(); groups.len()];
        if order.places() > in_slices(NONE, padding[0]) {
            let rows_of: Vec<Range<usize>> =
                groups.iter().map(|g| g.start * SEGMENT..(g.end * SEGMENT).min(n)).collect();
            let most = if matches!(a, Rows::Csr(..)) { WIDE } else { NONE };
            order = Order::sorted(&runs, WARP / lanes, &rows_of, most);
            if order.places() > in_slices(most, padding[1]) {
                return None;
            }
            for (own, rows) in wide.iter_mut().zip(rows_of) {
                own.extend(rows.filter(|row| runs[*row] > most).map(|row| row as u32));
                own.sort_by_key(|row| Reverse(runs[*row as usize]));
            }
        }
        let (columns, values, places) = (self.columns.len(), self.values.len(), order.places());
        if values + places * run > NONE as usize {
            return None;
        }
        self.columns.resize(columns + places, NONE);
        self.values.resize(values + places * run, T::zero());
        order.fill(a, n, &mut self.columns[columns..], &mut self.values[values..]);
        let ptr = self.windows.len();
        self.windows.extend(order.ptr.iter().map(|at| *at as u32));
        let row_of = self.windows.len();
        self.windows.extend(&order.row_of);
        let list = self.windows.len();
        let (mut before, mut most_apart) = (0, 0);
        for (own, group) in wide.iter().zip(groups) {
            let cost = own.iter().map(|row| runs[*row as usize] as usize).sum::<usize>() * WIDE_ENTRY;
            let slices = &order.ptr[group.start * SEGMENT / order.rows..];
            let slices = &slices[..(group.len() * SEGMENT / order.rows + 1).min(slices.len())];
            let batches: usize = slices.windows(2).map(|ends| (ends[1] - ends[0]).div_ceil(DEPTH)).sum();
            let all = cost + batches * BATCH;
            let apart = if own.is_empty() { 0 } else { (warps * cost).div_ceil(all).min(warps / 2) };
            most_apart = most_apart.max(apart);
            self.windows.extend([before, apart as u32]);
            before += own.len() as u32;
        }
        self.windows.extend([before, 0]);
        self.windows.extend(wide.iter().flatten());
        let head = [ptr, columns, values, row_of, list].map(|at| at as u32);
        self.windows[m * HEAD..][..HEAD].copy_from_slice(&head);
        let pieces = a.pieces().map_or(0, |layout| {
            let first = |segment: usize| layout.long_ptr()[layout.segment_long()[segment] as usize] as usize;
            groups.iter().map(|g| first(g.end) - first(g.start)).max().unwrap_or(0)
        });
        let wide = wide.iter().any(|own| !own.is_empty());
        let numbers = if wide { 2 * WARP * DEPTH * most_apart } else { pieces };
        Some(Slices { run, sorted: !order.row_of.is_empty(), wide, pieces: pieces > 0, numbers })
    }
}
