//! The entries of a matrix in the order in which the work-items of a group read them: slices of one warp
//! each, lane by lane, so that loads are coalesced.
use crate::rows::{GRAIN, KernelMatrix, RowValues};
use crate::source::SEGMENT;
use lacuna_engine::{NumberType, Scalar, pages, with_each};
use lacuna_formats::parallel;

pub(crate) const NONE: u32 = u32::MAX;

/// Words for each matrix and work-group at the start of `windows`, as `WINDOW` of resident.cl reads them.
const WORDS: usize = 3;
/// Work-items of a warp.
const WARP: usize = 32;

/// How rows are divided among work-groups that keep vectors in registers.
pub struct Groups<'a> {
    /// The operand window of each work-group: first column and width.
    pub windows: &'a [(u32, u32)],
    /// Work-groups that share the rows of each segment.
    pub ways: usize,
    /// Segments of all work-groups.
    pub segments: usize,
    /// Work-items of a work-group.
    pub size: usize,
    /// For each work-group, the column that columns count from, and the column of a place without an entry,
    /// if such places hold -0.
    pub columns: &'a [(u32, Option<u32>)],
}

/// Repacked entries of all matrices of a program, one after the other.
pub struct Repacked {
    pub(crate) kind: NumberType,
    /// For each matrix and work-group, its window and the position of its list of slices; then the lists: the
    /// start of each slice, round by round for all warps, and the end of the last one. For streamed vectors,
    /// see `slices.rs`.
    pub windows: Vec<u32>,
    /// `columns[slice + 32 * e + lane]`, counted from a first column. A place without an entry has all bits
    /// set, or the value that its work-group uses for that.
    pub columns: Vec<u32>,
    /// The values of the same entries, numbers of the type one after the other.
    pub values: Vec<u64>,
}

/// Words that numbers of a type take.
pub(crate) fn words_of(kind: NumberType, numbers: usize) -> usize {
    (numbers * kind.size()).div_ceil(size_of::<u64>())
}

/// The rows of a work-group: the first one, their number, and the starts of its slices, counted from zero.
type Share = (usize, usize, Vec<usize>);

impl Repacked {
    /// No entries yet, of a number type.
    pub fn new(kind: NumberType) -> Self {
        Repacked { kind, windows: Vec::new(), columns: Vec::new(), values: Vec::new() }
    }

    /// Reserves the heads of all matrices and work-groups.
    pub fn windows(&mut self, matrices: usize, groups: usize) {
        self.windows.resize(WORDS * matrices * groups, 0);
    }

    /// Sets the windows of a matrix.
    pub fn windows_of(&mut self, m: usize, windows: &[(u32, u32)]) {
        let words = self.windows[WORDS * m * windows.len()..].chunks_mut(WORDS);
        words.zip(windows).for_each(|(words, (low, width))| words[..2].copy_from_slice(&[*low, *width]));
    }

    /// Adds the entries of a matrix of `n` rows, at most those that the groups divide among them. The lanes
    /// of a row lie side by side or, if it `folds`, one work-item takes them in turn. Entries and padding may
    /// take up to `padding` quarters of the entries. Returns the maximum places of a work-group; `None` if
    /// nothing was added.
    pub fn add(
        &mut self,
        m: usize,
        a: &KernelMatrix<'_>,
        n: usize,
        groups: &Groups<'_>,
        folds: bool,
        padding: usize,
    ) -> Option<usize> {
        let Groups { windows, ways, segments, size, columns: of_groups } = *groups;
        let count = windows.len();
        // Lanes of a row that lie side by side, and those taken in turn.
        let (lanes, turns) = if folds { (1, a.lanes()) } else { (a.lanes(), 1) };
        let (units, of_turn, of_slice) = (count / ways, size / lanes, WARP / lanes);
        let longest = match folds {
            true => parallel::collect(n, GRAIN, |row| a.folded(row) as u32),
            false => a.lengths(n),
        };
        let entries = parallel::sum(n, GRAIN, |row| longest[row] as usize) * lanes;
        let shares: Vec<Share> = parallel::map(0..count, |g| {
            let (unit, way) = (g / ways, g % ways);
            let first = segments * unit / units * SEGMENT + way;
            let end = (segments * (unit + 1) / units * SEGMENT).min(n);
            let rows = end.saturating_sub(first).div_ceil(ways);
            let slices = rows.div_ceil(of_turn).max(1) * size / WARP;
            let length = |slice: usize| {
                let own = (slice * of_slice).min(rows)..((slice + 1) * of_slice).min(rows);
                own.map(|i| longest[first + i * ways]).max().unwrap_or(0) * WARP as u32
            };
            (first, rows, ends_of((0..slices).map(length)))
        });
        let places = |slices: &[usize]| slices.last().copied().unwrap_or(0);
        let (start, all) = (self.columns.len(), shares.iter().map(|share| places(&share.2)).sum::<usize>());
        if all > padding * entries / 4 + 4 * size * count || start + all > NONE as usize {
            return None;
        }
        let most = shares.iter().map(|share| places(&share.2)).max().unwrap_or(0);
        self.grow(start + all);
        let mut at = start;
        for (g, (.., slices)) in shares.iter().enumerate() {
            self.windows[WORDS * (m * count + g) + 2] = self.windows.len() as u32;
            self.windows.extend(slices.iter().map(|slice| (at + slice) as u32));
            at += places(slices);
        }
        let lanes = Lanes { lanes, turns, ways };
        with_each!(a.values(), entries => self.fill(a, entries, start, &lanes, shares, of_groups));
        Some(most)
    }

    /// Fills the places of all work-groups from place `start` on.
    fn fill<T: Scalar>(
        &mut self,
        a: &KernelMatrix<'_>,
        entries: &RowValues<'_, T>,
        start: usize,
        &Lanes { lanes, turns, ways }: &Lanes,
        shares: Vec<Share>,
        of_groups: &[(u32, Option<u32>)],
    ) {
        let numbers: &mut [T] = bytemuck::cast_slice_mut(&mut self.values);
        let (mut columns, mut values) = (&mut self.columns[start..], &mut numbers[start..]);
        let mut tasks = Vec::with_capacity(shares.len());
        for ((first, rows, slices), of_group) in shares.into_iter().zip(of_groups) {
            let places = slices.last().copied().unwrap_or(0);
            let (own_columns, own_values);
            (own_columns, columns) = columns.split_at_mut(places);
            (own_values, values) = values.split_at_mut(places);
            tasks.push((first, rows, slices, *of_group, own_columns, own_values));
        }
        let of_slice = WARP / lanes;
        parallel::for_each(tasks, |(first, rows, slices, (low, hole), columns, values)| {
            columns.fill(hole.unwrap_or(NONE));
            if hole.is_some() {
                values.fill(-T::zero());
            }
            for i in 0..rows {
                for lane in 0..lanes * turns {
                    let at = i % of_slice * lanes + lane / turns + lane % turns * WARP;
                    let mut to = slices[i / of_slice] + at;
                    a.each(first + i * ways, lane, |column, source| {
                        columns[to] = column - low;
                        values[to] = entries.at(source);
                        to += turns * WARP;
                    });
                }
            }
        });
    }

    /// Grows the buffers to so many places; the caller sets the columns. Threads that write the new pages
    /// touch them first.
    fn grow(&mut self, places: usize) {
        fn to<N: Copy + bytemuck::Zeroable>(list: &mut Vec<N>, len: usize) {
            if list.is_empty()
                && let Ok(new) = pages::zeroed("laying out a matrix", len)
            {
                *list = new;
            }
            list.resize(len, N::zeroed());
        }
        to(&mut self.columns, places);
        to(&mut self.values, words_of(self.kind, places));
    }

    /// Makes every buffer non-empty.
    pub fn pad(&mut self) {
        self.windows.resize(self.windows.len().max(1), 0);
        self.columns.resize(self.columns.len().max(1), NONE);
        self.values.resize(self.values.len().max(words_of(self.kind, 1)), 0);
    }
}

/// How the lanes of a row are divided: those that lie side by side, those taken in turn, and the work-groups that share rows.
struct Lanes {
    lanes: usize,
    turns: usize,
    ways: usize,
}

/// Prefix sums of the lengths, with the total at the end.
pub(crate) fn ends_of(lengths: impl Iterator<Item = u32>) -> Vec<usize> {
    let ends = lengths.scan(0, |end, length| {
        *end += length as usize;
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::{Groups, KernelMatrix, Repacked, SEGMENT, WARP, WORDS};
    use lacuna_engine::{AnyFormat, NumberType, Scalar, row_sum};
    use lacuna_formats::convert;
    use lacuna_io::Spec;
    use std::sync::Arc;

    /// The rows of the product as the work-items of all groups compute them; a place without an entry adds -0
    /// times 1.
    fn found(a: &AnyFormat, x: &[f64], groups: usize, ways: usize, size: usize, folds: bool) -> Vec<f64> {
        let (n, rows) = (a.shape().0, KernelMatrix::of(a).unwrap());
        let (windows, columns) = (vec![(0, n as u32); groups], vec![(0, Some(n as u32)); groups]);
        let mut repacked = Repacked::new(NumberType::F64);
        repacked.windows(1, groups);
        repacked.windows_of(0, &windows);
        let segments = n.div_ceil(SEGMENT);
        let of = Groups { windows: &windows, ways, segments, size, columns: &columns };
        repacked.add(0, &rows, n, &of, folds, 40).unwrap();
        let values: &[f64] = bytemuck::cast_slice(&repacked.values);
        let x = |column: u32| x.get(column as usize).copied().unwrap_or(1.0);
        let (lanes, sums) = if folds { (1, rows.lanes()) } else { (rows.lanes(), 1) };
        let units = groups / ways;
        let mut y = vec![f64::NAN; n];
        for g in 0..groups {
            let [first, end] = [0, 1].map(|k| (segments * (g / ways + k) / units * SEGMENT).min(n));
            for (i, row) in (first + g % ways..end).step_by(ways).enumerate() {
                let slice = repacked.windows[WORDS * g + 2] as usize + i * lanes / WARP;
                let [from, to] = [slice, slice + 1].map(|at| repacked.windows[at] as usize);
                let lane = |j: usize| {
                    let places = (from + i * lanes % WARP + j / sums..to).skip(j % sums * WARP);
                    let term = |sum: f64, p: usize| values[p].mul_add(x(repacked.columns[p]), sum);
                    (1.0, places.step_by(sums * WARP).fold(0.0, term))
                };
                y[row] = row_sum(rows.lanes(), (0..rows.lanes()).map(lane));
            }
        }
        y
    }

    #[test]
    fn rows_are_found_side_by_side_and_in_turn() {
        for (spec, formats) in [
            ("gen:elasticity3d:7", &["csr", "sell", "bcsr3", "packed", "dia"][..]),
            ("gen:poisson3d:11x12x13:27", &["csr", "ell", "hyb", "stencil"]),
            ("gen:alike:harbor:60", &["csr", "sell", "packed"]),
        ] {
            let a = Arc::new(Spec::parse(spec).unwrap().build::<f64>().unwrap());
            let x: Vec<f64> = (0..a.rows()).map(|j| 1.0 / (j as f64 - 3.3)).collect();
            for format in formats {
                let a = convert(&a, format).unwrap();
                let want: Vec<u64> = (0..x.len()).map(|i| a.row(i, &x).to_bits()).collect();
                let ways = [(1, 1, 2048, false), (2, 1, 1024, true), (3, 1, 512, true), (4, 2, 256, false)];
                for (groups, ways, size, folds) in ways {
                    let got = found(&f64::each(a.clone()), &x, groups, ways, size, folds);
                    let got: Vec<u64> = got.into_iter().map(f64::to_bits).collect();
                    assert!(got == want, "{spec} in {format}, {groups} groups, folds: {folds}");
                }
            }
        }
    }
}
