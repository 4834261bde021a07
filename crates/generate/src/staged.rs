//! The entries of a matrix in the order in which a group's work-items take them: side by side, so that a warp reads whole
//! lines.
use crate::rows::Rows;
use crate::source::SEGMENT;
use lacuna_core::Scalar;

const NONE: u32 = u32::MAX;
/// Work-items of a warp.
const WARP: usize = 32;
/// Words of the head of a matrix in slices.
const SLICES_WORDS: usize = 4;

/// Of all matrices of a program, one after the other.
pub struct Staged<T> {
    /// For each matrix and group: the first column multiplied, how many from there on, where the entries lie, and how
    /// many of them a work-item takes at the most for one row. In slices, for each matrix: where its slices, columns and
    /// values begin; then the slices, each as the runs of entries before it.
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
        let longest: Vec<usize> = (0..n).map(|row| a.longest(row)).collect();
        let most = padding * longest.iter().sum::<usize>() * lanes / 4 + 4 * size * groups;
        for (g, low) in lows.iter().enumerate() {
            let (unit, way) = (g / ways, g % ways);
            let first = segments * unit / units * SEGMENT;
            let end = (segments * (unit + 1) / units * SEGMENT).min(n);
            let rows = (end - first + ways - 1 - way) / ways;
            let row_of = |i: usize| first + i * ways + way;
            let entries = (0..rows).map(|i| longest[row_of(i)]).max().unwrap_or(0);
            let at = self.columns.len();
            let total = rows.div_ceil(per_step) * entries * size;
            if at - start + total > most || at + total > NONE as usize {
                self.columns.truncate(start);
                self.values.truncate(start);
                self.windows.truncate(from);
                return false;
            }
            self.columns.resize(at + total, NONE);
            self.values.resize(at + total, T::zero());
            for i in 0..rows {
                let (step, place) = (i / per_step, i % per_step * lanes);
                for lane in 0..lanes {
                    let mut to = at + step * entries * size + place + lane;
                    a.each(row_of(i), lane, |column, value| {
                        self.columns[to] = column - low;
                        self.values[to] = value;
                        to += size;
                    });
                }
            }
            self.windows[from + 4 * g + 2] = at as u32;
            self.windows[from + 4 * g + 3] = entries as u32;
        }
        true
    }

    /// Adds the head of a matrix of which nothing is laid out in slices.
    pub fn no_slices(&mut self) {
        self.windows.extend([0; SLICES_WORDS]);
    }

    /// Adds a matrix of `n` rows in slices of 32 lanes, whole rows of them, where that takes no more than `padding`
    /// quarters of its entries; false where nothing was added. The heads of all matrices come before.
    pub fn slices(&mut self, m: usize, a: &Rows<'_, T>, n: usize, padding: usize) -> bool {
        let (lanes, run) = (a.lanes(), a.run());
        let rows = WARP / lanes;
        let runs = |row: usize| a.longest(row) / run;
        let ends = (0..n).step_by(rows).scan(0, |end, first| {
            *end += (first..(first + rows).min(n)).map(runs).max().unwrap_or(0);
            Some(*end)
        });
        let ptr: Vec<usize> = std::iter::once(0).chain(ends).collect();
        let places = ptr.last().map_or(0, |end| end * WARP);
        let entries = (0..n).map(runs).sum::<usize>() * lanes;
        let (columns, values) = (self.columns.len(), self.values.len());
        if places > padding * entries / 4 + WARP * WARP || values + places * run > NONE as usize {
            return false;
        }
        let head = [self.windows.len(), columns, values].map(|at| at as u32);
        self.windows[m * SLICES_WORDS..][..3].copy_from_slice(&head);
        self.windows.extend(ptr.iter().map(|at| *at as u32));
        self.columns.resize(columns + places, NONE);
        self.values.resize(values + places * run, T::zero());
        for row in 0..n {
            for lane in 0..lanes {
                let (mut place, mut c) = (ptr[row / rows], 0);
                let at = row % rows * lanes + lane;
                a.each(row, lane, |column, value| {
                    if c == 0 {
                        self.columns[columns + place * WARP + at] = column;
                    }
                    self.values[values + (place * run + c) * WARP + at] = value;
                    c += 1;
                    (place, c) = if c == run { (place + 1, 0) } else { (place, c) };
                });
            }
        }
        true
    }

    /// Makes sure that there is something of everything.
    pub fn pad(&mut self) {
        self.windows.resize(self.windows.len().max(4), 0);
        self.columns.resize(self.columns.len().max(1), NONE);
        self.values.resize(self.values.len().max(1), T::zero());
    }
}
