//! The entries of a matrix in the order in which a group's work-items take them: side by side, so that a warp reads whole
//! lines.
use crate::rows::Rows;
use crate::source::SEGMENT;
use lacuna_core::{Scalar, pages};
use rayon::prelude::*;

pub(crate) const NONE: u32 = u32::MAX;

/// Of all matrices of a program, one after the other.
pub struct Staged<T> {
    /// For each matrix and group: the first column multiplied, how many from there on, where the entries lie, and how
    /// many of them a work-item takes at the most for one row. In slices, see `slices.rs`.
    pub windows: Vec<u32>,
    /// `columns[at + (step * entries + e) * size + item]`, counted from the first column; no entry where it is all ones.
    pub columns: Vec<u32>,
    /// The values of the same entries.
    pub values: Vec<T>,
}

impl<T> Default for Staged<T> {
    fn default() -> Self {
        Staged { windows: Vec::new(), columns: Vec::new(), values: Vec::new() }
    }
}

impl<T: Scalar> Staged<T> {
    /// Adds the windows of a matrix alone.
    pub fn windows_of(&mut self, windows: &[(u32, u32)]) {
        self.windows.extend(windows.iter().flat_map(|(low, width)| [*low, *width, 0, 0]));
    }

    /// Adds a matrix of `n` rows for groups of `size` work-items, `ways` of which share the rows of each segment, with up
    /// to `padding` quarters of its entries; false where nothing was added.
    #[expect(clippy::too_many_arguments, reason = "each is a number of its own")]
    pub fn add(
        &mut self,
        a: &Rows<'_, T>,
        n: usize,
        windows: &[(u32, u32)],
        lows: &[u32],
        ways: usize,
        size: usize,
        padding: usize,
    ) -> bool {
        let (groups, lanes) = (windows.len(), a.lanes());
        let segments = n.div_ceil(SEGMENT);
        let start = self.columns.len();
        let from = self.windows.len();
        self.windows_of(windows);
        let (per_step, units) = (size / lanes, groups / ways);
        let longest = a.lengths(n);
        let most =
            padding * longest.iter().map(|l| *l as usize).sum::<usize>() * lanes / 4 + 4 * size * groups;
        // What a group takes: its first row, how many, and the entries of the longest.
        let shares: Vec<(usize, usize, usize)> = (0..groups)
            .map(|g| {
                let (unit, way) = (g / ways, g % ways);
                let first = segments * unit / units * SEGMENT;
                let end = (segments * (unit + 1) / units * SEGMENT).min(n);
                let rows = (end - first + ways - 1 - way) / ways;
                let entries = (0..rows).map(|i| longest[first + i * ways + way]).max().unwrap_or(0);
                (first + way, rows, entries as usize)
            })
            .collect();
        let total = |(_, rows, entries): (usize, usize, usize)| rows.div_ceil(per_step) * entries * size;
        let all: usize = shares.iter().copied().map(total).sum();
        if all > most || start + all > NONE as usize {
            self.windows.truncate(from);
            return false;
        }
        self.grow(start + all, start + all);
        let (mut columns, mut values) = (&mut self.columns[start..], &mut self.values[start..]);
        let (mut at, mut tasks) = (start, Vec::with_capacity(groups));
        for (g, share) in shares.into_iter().enumerate() {
            self.windows[from + 4 * g + 2] = at as u32;
            self.windows[from + 4 * g + 3] = share.2 as u32;
            let (own_columns, own_values);
            (own_columns, columns) = columns.split_at_mut(total(share));
            (own_values, values) = values.split_at_mut(total(share));
            at += own_columns.len();
            tasks.push((share, lows[g], own_columns, own_values));
        }
        tasks.into_par_iter().for_each(|((first, rows, entries), low, columns, values)| {
            columns.fill(NONE);
            for i in 0..rows {
                let (step, place) = (i / per_step, i % per_step * lanes);
                for lane in 0..lanes {
                    let mut to = step * entries * size + place + lane;
                    a.each(first + i * ways, lane, |column, value| {
                        columns[to] = column - low;
                        values[to] = value;
                        to += size;
                    });
                }
            }
        });
        true
    }

    /// Makes room for so many columns, still to be set, and values. Pages of what is new come when they are written, by all
    /// threads.
    pub(crate) fn grow(&mut self, columns: usize, values: usize) {
        fn to<N: Copy + bytemuck::Zeroable>(list: &mut Vec<N>, len: usize) {
            if list.is_empty()
                && let Ok(new) = pages::zeroed("laying out a matrix", len)
            {
                *list = new;
            }
            list.resize(len, N::zeroed());
        }
        to(&mut self.columns, columns);
        to(&mut self.values, values);
    }

    /// Makes sure that there is something of everything.
    pub fn pad(&mut self) {
        self.windows.resize(self.windows.len().max(4), 0);
        self.columns.resize(self.columns.len().max(1), NONE);
        self.values.resize(self.values.len().max(1), T::zero());
    }
}
