//! The entries of a matrix in the order in which a group's work-items take them: side by side, so that a warp reads whole
//! lines.
use crate::source::SEGMENT;
use lacuna_core::{Argument, Format, Scalar};

const NONE: u32 = u32::MAX;

/// Of all matrices of a program, one after the other.
pub struct Staged<T> {
    /// For each matrix and group: the first column multiplied, how many from there on, where the entries lie, and how
    /// many of them a work-item takes at the most for one row.
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

    /// Adds a matrix in compressed rows for groups of `size` work-items, `ways` of which share the rows of each segment,
    /// with up to `padding` quarters of its entries; false where nothing was added.
    #[expect(clippy::too_many_arguments, reason = "each is a number of its own")]
    pub fn add(
        &mut self,
        a: &dyn Format<T>,
        windows: &[(u32, u32)],
        lows: &[u32],
        ways: usize,
        size: usize,
        lanes: usize,
        padding: usize,
    ) -> bool {
        let arguments = a.arguments();
        let [Argument::Indices(row_ptr), Argument::Indices(columns), Argument::Values(values)] =
            arguments[..]
        else {
            return false;
        };
        let (n, groups) = (a.shape().0, windows.len());
        let segments = n.div_ceil(SEGMENT);
        let start = self.columns.len();
        let from = self.windows.len();
        self.windows_of(windows);
        let per_step = size / lanes;
        let units = groups / ways;
        for (g, low) in lows.iter().enumerate() {
            let (unit, way) = (g / ways, g % ways);
            let first = segments * unit / units * SEGMENT;
            let end = (segments * (unit + 1) / units * SEGMENT).min(n);
            let rows = (end - first + ways - 1 - way) / ways;
            let row_of = |i: usize| first + i * ways + way;
            let length = |row: usize| (row_ptr[row + 1] - row_ptr[row]) as usize;
            let entries = (0..rows).map(|i| length(row_of(i)).div_ceil(lanes)).max().unwrap_or(0);
            let at = self.columns.len();
            let total = rows.div_ceil(per_step) * entries * size;
            if at - start + total > padding * columns.len() / 4 + 4 * size * groups
                || at + total > NONE as usize
            {
                self.columns.truncate(start);
                self.values.truncate(start);
                self.windows.truncate(from);
                return false;
            }
            self.columns.resize(at + total, NONE);
            self.values.resize(at + total, T::zero());
            for i in 0..rows {
                let (row, step, place) = (row_of(i), i / per_step, i % per_step * lanes);
                for k in 0..length(row) {
                    let to = at + (step * entries + k / lanes) * size + place + k % lanes;
                    let entry = row_ptr[row] as usize + k;
                    self.columns[to] = columns[entry] - low;
                    self.values[to] = values[entry];
                }
            }
            self.windows[from + 4 * g + 2] = at as u32;
            self.windows[from + 4 * g + 3] = entries as u32;
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
