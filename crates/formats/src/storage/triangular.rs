//! Triangular matrices stored for solves.
use crate::order::blocks::independent_blocks;
use crate::{Csr, interrupt};
use lacuna_engine::{Argument, Error, Format, Result, Scalar, Triangle, compiled_here, pages};
use std::alloc::{Layout, handle_alloc_error};
use std::ops::Range;
use std::sync::OnceLock;

const OPERATION: &str = "Triangular";

/// The part of a matrix to solve with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The diagonal and the entries left of it, solved from the first row on.
    Lower,
    /// The diagonal and the entries right of it, solved from the last row on.
    Upper,
}

/// A triangular matrix stored for solves: its rows in the order of sequential solves, and on demand by level.
/// The level of a row follows the highest level of the rows it depends on, so that the rows of a level may be
/// solved concurrently; the order of each row's sum is fixed, so that any schedule gives the same bits (see
/// [`Triangle`]).
///
/// Storage is 12 bytes per entry in `f64`, including the diagonal, and 12 per row; again 12 bytes per entry
/// if it is read by level. Its product is that of the triangular matrix, although the diagonal is stored as
/// reciprocals.
///
/// Reference: Saad 2003, Iterative Methods for Sparse Linear Systems, section 11.6.3,
/// doi:10.1137/1.9780898718003.
#[derive(Clone, Debug)]
pub struct Triangular<T> {
    rows: TriangularRows<T>,
    /// The position of each row in solve order.
    positions: Vec<u32>,
    /// The level at each position.
    level: Vec<u32>,
    /// The first place of each level, and the end of the last.
    levels: Vec<u32>,
    /// The borders of independent blocks of positions.
    blocks: Vec<usize>,
    /// The borders of groups of positions, and then the level at each; empty without groups.
    groups: Vec<u32>,
    is_by_level: bool,
    /// The rows by level, unless they are already.
    by_level: OnceLock<TriangularRows<T>>,
}

/// Rows one after another, the reciprocal of the diagonal last in each.
#[derive(Clone, Debug, Default)]
struct TriangularRows<T> {
    row_ptr: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<T>,
}

impl<T: Scalar> Triangular<T> {
    /// A part of a square matrix; the rest is ignored. `reciprocals` are those of the diagonal, if it is not
    /// the matrix's own. With `names`, row and column `i` of the matrix are element `names[i]` of the
    /// vectors, each used once.
    ///
    /// # Errors
    /// [`Error::Shape`] unless square; [`Error::Length`] for wrong lengths; [`Error::Entry`] if the matrix's
    /// own diagonal has no finite reciprocal, or a given one is not finite; [`Error::Structure`] for names
    /// that are not a permutation; [`Error::OutOfMemory`].
    pub fn part(a: &Csr<T>, side: Half, reciprocals: Option<&[T]>, names: Option<&[u32]>) -> Result<Self> {
        compiled_here!(T, |a: &Csr<T>,
                           side: Half,
                           reciprocals: Option<&[T]>,
                           names: Option<&[u32]>|
         -> Result<Triangular<T>> {
            let n = a.rows();
            if n != a.cols() {
                let (expected, got) = ("a square matrix".into(), (n, a.cols()));
                return Err(Error::Shape { operation: OPERATION.into(), expected, got });
            }
            if let Some(given) = reciprocals {
                Error::check_length(OPERATION, "the reciprocals", n, given.len())?;
            }
            if let Some(names) = names {
                Error::check_length(OPERATION, "the names", n, names.len())?;
                crate::Permutation::new(names.to_vec())?;
            }
            let name = |i: usize| names.map_or(i as u32, |names| names[i]);
            // The row at a position, and the position of a row.
            let turn = |k: usize| if side == Half::Lower { k } else { n - 1 - k };
            let own = |i: usize| own_entries(a, side, i);
            let nnz = n + (0..n).map(|i| own(i).len()).sum::<usize>();
            crate::storage::checks::check_sizes(OPERATION, n, n, nnz)?;
            let mut rows = TriangularRows::zeroed(n, nnz)?;
            let (mut positions, mut level) = (vec![0u32; n], vec![0u32; n]);
            let mut sizes: Vec<u32> = Vec::new();
            let mut at = 0;
            for k in 0..n {
                interrupt::check_at(k)?;
                let i = turn(k);
                let own = own(i);
                let needs = &a.col_idx()[own.clone()];
                let mut highest = 0;
                for (&j, &v) in needs.iter().zip(&a.values()[own.clone()]) {
                    highest = highest.max(level[turn(j as usize)] + 1);
                    (rows.columns[at], rows.values[at]) = (name(j as usize), v);
                    at += 1;
                }
                let reciprocal = match reciprocals {
                    Some(given) => given[i],
                    None => T::one().quotient(diagonal(a, side, i, own)),
                };
                if !reciprocal.finite() || reciprocal == T::zero() {
                    let row = name(i) as usize;
                    let message = format!("the reciprocal of the diagonal entry is {reciprocal:e}");
                    return Err(Error::Entry { operation: OPERATION.into(), row, column: row, message });
                }
                (rows.columns[at], rows.values[at]) = (name(i), reciprocal);
                at += 1;
                rows.row_ptr[k + 1] = at as u32;
                (positions[name(i) as usize], level[k]) = (k as u32, highest);
                if highest as usize == sizes.len() {
                    sizes.push(0);
                }
                sizes[highest as usize] += 1;
            }
            let mut levels = Vec::with_capacity(sizes.len() + 1);
            levels.push(0);
            levels.extend(sizes.iter().scan(0, |end, size| {
                *end += size;
                Some(*end)
            }));
            // Columns increase: the earliest row that one needs is that of its first column, or its last.
            let earliest = |k: usize| {
                let needs = &a.col_idx()[own(turn(k))];
                let farthest = if side == Half::Lower { needs.first() } else { needs.last() };
                farthest.map_or(k, |&j| turn(j as usize))
            };
            let blocks = independent_blocks(n, earliest);
            let mut groups = grouped(&blocks, levels.len() - 1);
            if !groups.is_empty() {
                groups.extend(&level);
            }
            let (is_by_level, by_level) = (level.is_sorted(), OnceLock::new());
            Ok(Triangular { rows, positions, level, levels, blocks, groups, is_by_level, by_level })
        })(a, side, reciprocals, names)
    }

    /// The rows in the order of sequential solves: that of the triangle for a lower one, its reverse for an
    /// upper one. Solves in this order access vectors in memory order if there are no names. The levels are
    /// those of [`Format::triangle`]; they are not ranges of this order.
    pub fn in_order(&self) -> Triangle<'_, T> {
        self.rows.triangle(&self.levels)
    }

    /// Number of levels; 0 without rows.
    pub fn depth(&self) -> usize {
        self.levels.len() - 1
    }

    /// The borders, from 0 to the number of rows in solve order, of as many blocks as possible whose rows
    /// depend on rows of the same block only.
    pub fn blocks(&self) -> &[usize] {
        &self.blocks
    }

    /// The number of groups of small independent blocks, each of which a warp solves by itself; 0 if
    /// blocks are large, or there are few.
    /// With groups, [`Format::arguments`] has the rows in solve order, and then the borders of the groups and the level of each row.
    pub fn groups(&self) -> usize {
        self.groups.len().saturating_sub(self.level.len() + 1)
    }

    /// The positions, in ranges, of the blocks that have some of these rows: a solve at these positions alone gives those rows.
    pub fn blocks_of(&self, rows: Range<usize>) -> Vec<Range<usize>> {
        let mut has = vec![false; self.blocks.len().saturating_sub(1)];
        let mut last = 0..0;
        for position in self.positions[rows].iter().map(|position| *position as usize) {
            if !last.contains(&position) {
                let block = self.blocks.partition_point(|first| *first <= position) - 1;
                last = self.blocks[block]..self.blocks[block + 1];
                has[block] = true;
            }
        }
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (block, _) in has.into_iter().enumerate().filter(|(_, has)| *has) {
            let own = self.blocks[block]..self.blocks[block + 1];
            match ranges.last_mut() {
                Some(range) if range.end == own.start => range.end = own.end,
                _ => ranges.push(own),
            }
        }
        ranges
    }

    /// The row at a position of [`Triangular::in_order`].
    pub fn row_at(&self, position: usize) -> usize {
        self.rows.columns[self.rows.row_ptr[position + 1] as usize - 1] as usize
    }

    /// Whether the rows in solve order are also ordered by level.
    pub fn is_by_level(&self) -> bool {
        self.is_by_level
    }

    /// The rows by level. Aborts if memory is exhausted, as any `Vec` does; [`Format::prepare`] fails instead.
    fn by_level(&self) -> Triangle<'_, T> {
        if self.is_by_level {
            return self.in_order();
        }
        let exhausted = |_| handle_alloc_error(Layout::for_value(&*self.rows.values));
        self.by_level.get_or_init(|| self.sorted().unwrap_or_else(exhausted)).triangle(&self.levels)
    }

    fn sorted(&self) -> Result<TriangularRows<T>> {
        compiled_here!(T, |of: &Triangular<T>| -> Result<TriangularRows<T>> {
            let (n, rows) = (of.level.len(), &of.rows);
            let (mut next, mut order) = (of.levels.clone(), vec![0u32; n]);
            for (position, &level) in of.level.iter().enumerate() {
                let place = &mut next[level as usize];
                order[*place as usize] = position as u32;
                *place += 1;
            }
            let mut sorted = TriangularRows::zeroed(n, rows.columns.len())?;
            let mut at = 0;
            for (place, &position) in order.iter().enumerate() {
                let own = rows.of(position as usize);
                let end = at + own.len();
                sorted.columns[at..end].copy_from_slice(&rows.columns[own.clone()]);
                sorted.values[at..end].copy_from_slice(&rows.values[own]);
                sorted.row_ptr[place + 1] = end as u32;
                at = end;
            }
            Ok(sorted)
        })(self)
    }
}

impl<T: Scalar> TriangularRows<T> {
    fn zeroed(n: usize, nnz: usize) -> Result<Self> {
        let row_ptr = pages::zeroed(OPERATION, n + 1)?;
        Ok(TriangularRows {
            row_ptr,
            columns: pages::zeroed(OPERATION, nnz)?,
            values: pages::zeroed(OPERATION, nnz)?,
        })
    }

    fn of(&self, row: usize) -> Range<usize> {
        self.row_ptr[row] as usize..self.row_ptr[row + 1] as usize
    }

    fn triangle<'a>(&'a self, levels: &'a [u32]) -> Triangle<'a, T> {
        let TriangularRows { row_ptr, columns, values } = self;
        Triangle { row_ptr, columns, values, levels }
    }

    fn arguments(&self) -> [Argument<'_, T>; 3] {
        [Argument::Indices(&self.row_ptr), Argument::Indices(&self.columns), Argument::Values(&self.values)]
    }
}

/// Rows of a group of small blocks: the threads of a warp.
const GROUP: usize = 32;
/// Rows of the largest block that is a group of its own.
const LARGEST: usize = 64;
/// The most rows in groups: of more, each level keeps a device busy, which reads it in order.
const MOST: usize = 1 << 19;

/// The borders of groups of independent blocks, if these are small and rows wait for others.
fn grouped(blocks: &[usize], depth: usize) -> Vec<u32> {
    let mut groups = vec![0];
    for block in blocks.windows(2) {
        let first = groups[groups.len() - 1] as usize;
        if block[1] - block[0] > LARGEST || block[1] > MOST || depth < 2 {
            return Vec::new();
        }
        if block[1] - first > GROUP && block[0] > first {
            groups.push(block[0] as u32);
        }
    }
    groups.push(blocks[blocks.len() - 1] as u32);
    if groups.len() > 2 { groups } else { Vec::new() }
}

/// The entries of row `i` on one side of the diagonal: columns increase, so that they are a contiguous range.
fn own_entries<T: Scalar>(a: &Csr<T>, side: Half, i: usize) -> Range<usize> {
    let columns = a.row_slices(i).0;
    let first = a.row_ptr()[i] as usize;
    match side {
        Half::Lower => first..first + columns.partition_point(|&j| (j as usize) < i),
        Half::Upper => first + columns.partition_point(|&j| j as usize <= i)..first + columns.len(),
    }
}

/// The diagonal entry of row `i`, next to the entries on one side of it; zero if it is not stored.
fn diagonal<T: Scalar>(a: &Csr<T>, side: Half, i: usize, own: Range<usize>) -> T {
    let at = if side == Half::Lower { Some(own.end) } else { own.start.checked_sub(1) };
    let inside = |&k: &usize| a.row_ptr()[i] as usize <= k && k < a.row_ptr()[i + 1] as usize;
    let here = at.filter(inside).filter(|&k| a.col_idx()[k] as usize == i);
    here.map_or(T::zero(), |k| a.values()[k])
}

impl<T: Scalar> Format<T> for Triangular<T> {
    fn shape(&self) -> (usize, usize) {
        (self.positions.len(), self.positions.len())
    }
    fn nnz(&self) -> usize {
        self.rows.values.len()
    }
    fn kernel(&self) -> &'static str {
        "triangular"
    }
    fn prepare(&self) -> Result<()> {
        if self.groups.is_empty() && !self.is_by_level && self.by_level.get().is_none() {
            // If another thread was faster, the two are equal.
            let _ = self.by_level.set(self.sorted()?);
        }
        Ok(())
    }
    fn arguments(&self) -> Vec<Argument<'_, T>> {
        if !self.groups.is_empty() {
            return self.stored();
        }
        let Triangle { row_ptr, columns, values, levels } = self.by_level();
        vec![
            Argument::Indices(row_ptr),
            Argument::Indices(columns),
            Argument::Values(values),
            Argument::Indices(levels),
        ]
    }
    fn stored(&self) -> Vec<Argument<'_, T>> {
        let order = if self.groups.is_empty() { &self.levels } else { &self.groups };
        self.rows.arguments().into_iter().chain([Argument::Indices(order)]).collect()
    }
    fn row(&self, i: usize, x: &[T]) -> T {
        let own = self.rows.of(self.positions[i] as usize);
        let own = own.start..own.end - 1;
        let diagonal = x[i].quotient(self.rows.values[own.end]);
        let entries = self.rows.columns[own.clone()].iter().zip(&self.rows.values[own]);
        entries.fold(diagonal, |sum, (&j, &v)| v.fma(x[j as usize], sum))
    }
    fn triangle(&self) -> Option<Triangle<'_, T>> {
        Some(self.by_level())
    }
}

#[cfg(test)]
mod tests {
    use super::{Half, Triangular};
    use crate::{Csr, Triplets};
    use lacuna_engine::{Error, Format};

    fn matrix(n: usize, entries: &[(usize, usize, f64)]) -> Csr<f64> {
        let mut triplets = Triplets::new(n, n);
        entries.iter().for_each(|&(i, j, v)| triplets.push(i, j, v));
        triplets.to_csr().unwrap()
    }

    /// Rows 1 and 2 depend on row 0, row 3 on rows 1 and 2; row 4 is independent.
    fn diamond() -> Csr<f64> {
        let entries = [(1, 0, 2.0), (2, 0, -1.0), (3, 1, 4.0), (3, 2, 8.0), (0, 3, 9.0), (2, 4, 7.0)];
        let diagonal = (0..5).map(|i| (i, i, f64::powi(2.0, i as i32)));
        matrix(5, &entries.into_iter().chain(diagonal).collect::<Vec<_>>())
    }

    #[test]
    fn levels_are_as_few_as_can_be_and_solves_invert_products() {
        let a = diamond();
        for (side, levels) in [(Half::Lower, vec![0, 2, 4, 5]), (Half::Upper, vec![0, 3, 5])] {
            let t = Triangular::part(&a, side, None, None).unwrap();
            let triangle = t.triangle().unwrap();
            assert_eq!(triangle.levels, levels, "{side:?}");
            let x = [3.0, -1.0, 0.5, 2.0, 1.0];
            let b: Vec<f64> = (0..5).map(|i| t.row(i, &x)).collect();
            let mut solved = [f64::NAN; 5];
            triangle.solve(&b, &mut solved);
            assert_eq!(solved, x, "{side:?}");
        }
    }

    #[test]
    fn both_orders_solve_with_the_same_bits() {
        let steps = (0..34).filter(|i| i % 7 < 6).map(|i| (i, i + 1)).chain((0..28).map(|i| (i, i + 7)));
        let coupled = steps.flat_map(|(i, j)| [(i, j, -1.0), (j, i, -1.0)]);
        let grid = matrix(35, &coupled.chain((0..35).map(|i| (i, i, 4.0))).collect::<Vec<_>>());
        let b: Vec<f64> = (0..35).map(|i| f64::from(i).sin()).collect();
        for (a, ordered) in [(&grid, false), (&Csr::identity(35).unwrap(), true)] {
            for side in [Half::Lower, Half::Upper] {
                let t = Triangular::part(a, side, None, None).unwrap();
                assert_eq!(t.is_by_level(), ordered);
                let (mut x, mut y) = ([f64::NAN; 35], [f64::NAN; 35]);
                t.in_order().solve(&b, &mut x);
                t.triangle().unwrap().solve(&b, &mut y);
                assert_eq!(x, y, "{side:?}");
                let by_level = t.triangle().unwrap();
                assert_eq!(by_level.levels.last(), Some(&35));
                assert_eq!(t.bytes(), t.arguments().iter().map(|a| a.bytes()).sum::<usize>());
            }
        }
    }

    /// Each group by itself, in any order of groups, gives the solution of all rows.
    #[test]
    fn groups_are_solved_by_themselves() {
        // Chains of 3 to 40 rows.
        let ends = (0..90).scan(0, |at, i| {
            *at += 3 + i * 7 % 38;
            Some(*at)
        });
        let starts: Vec<usize> = std::iter::once(0).chain(ends).collect();
        let n = starts[starts.len() - 1];
        let chained = (1..n).filter(|i| starts.binary_search(i).is_err());
        let chained = chained.flat_map(|i| [(i, i - 1, 0.5), (i - 1, i, 0.25)]);
        let a = matrix(n, &chained.chain((0..n).map(|i| (i, i, 2.0))).collect::<Vec<_>>());
        let b: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
        for side in [Half::Lower, Half::Upper] {
            let t = Triangular::part(&a, side, None, None).unwrap();
            let groups = t.groups();
            assert!(groups > n / 40 && groups < 90, "{groups}");
            let (borders, level) = t.groups.split_at(groups + 1);
            let (mut x, mut y) = (vec![f64::NAN; n], vec![f64::NAN; n]);
            t.triangle().unwrap().solve(&b, &mut x);
            for group in (0..groups).rev() {
                let own = || borders[group] as usize..borders[group + 1] as usize;
                for now in 0..t.depth() as u32 {
                    for place in own().filter(|place| level[*place] == now) {
                        let (row, value) = t.in_order().place(place, &b, &y);
                        y[row] = value;
                    }
                }
            }
            assert_eq!(x, y, "{side:?}");
        }
        let line = (1..4000).map(|i| (i, i - 1, 1.0)).chain((0..4000).map(|i| (i, i, 1.0)));
        let line = matrix(4000, &line.collect::<Vec<_>>());
        assert_eq!(Triangular::part(&line, Half::Lower, None, None).unwrap().groups(), 0);
    }

    #[test]
    fn blocks_depend_on_their_own_rows() {
        let a = matrix(6, &[(1, 0, 1.0), (3, 2, 1.0), (5, 3, 1.0), (2, 3, 1.0), (0, 0, 1.0)]);
        let blocks = |side| Triangular::part(&a, side, Some(&[1.0; 6]), None).unwrap().blocks().to_vec();
        assert_eq!(blocks(Half::Lower), [0, 2, 6]);
        assert_eq!(blocks(Half::Upper), [0, 1, 2, 4, 5, 6]);
    }

    #[test]
    fn blocks_give_the_rows_that_they_have() {
        let a = matrix(6, &[(1, 0, 1.0), (3, 2, 1.0), (5, 3, 1.0), (2, 3, 1.0), (0, 0, 1.0)]);
        let names = [3u32, 0, 4, 1, 2, 5];
        for side in [Half::Lower, Half::Upper] {
            let t = Triangular::part(&a, side, Some(&[0.5; 6]), Some(&names)).unwrap();
            let (b, mut all) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [0.0; 6]);
            t.in_order().solve(&b, &mut all);
            for rows in [0..6, 0..1, 1..3, 4..6, 5..6] {
                let (mut some, mut known) = ([f64::NAN; 6], [f64::NAN; 6]);
                let positions = || t.blocks_of(rows.clone()).into_iter().flatten();
                positions().for_each(|k| known[t.row_at(k)] = b[t.row_at(k)]);
                for k in positions() {
                    let (row, value) = t.in_order().place(k, &known, &some);
                    some[row] = value;
                }
                assert_eq!(some[rows.clone()], all[rows]);
            }
        }
    }

    #[test]
    fn names_are_where_rows_are_in_the_vectors() {
        let (a, names) = (diamond(), [3u32, 0, 4, 1, 2]);
        let plain = Triangular::part(&a, Half::Lower, Some(&[1.0; 5]), None).unwrap();
        let named = Triangular::part(&a, Half::Lower, Some(&[1.0; 5]), Some(&names)).unwrap();
        let b = [1.0, 2.0, 3.0, 4.0, 5.0];
        let mut turned = [0.0; 5];
        (0..5).for_each(|i| turned[names[i] as usize] = b[i]);
        let (mut x, mut y) = ([0.0; 5], [0.0; 5]);
        plain.triangle().unwrap().solve(&b, &mut x);
        named.triangle().unwrap().solve(&turned, &mut y);
        (0..5).for_each(|i| assert_eq!(x[i], y[names[i] as usize], "{i}"));
        assert_eq!(x, [1.0, 0.0, 4.0, -28.0, 5.0]);
    }

    #[test]
    fn what_cannot_be_solved_with_is_refused() {
        let a = matrix(3, &[(0, 0, 1.0), (1, 0, 1.0), (2, 2, 1.0)]);
        let refused = Triangular::part(&a, Half::Lower, None, Some(&[2, 1, 0]));
        assert!(matches!(refused, Err(Error::Entry { row: 1, column: 1, .. })), "{refused:?}");
        let refused = Triangular::part(&a, Half::Lower, Some(&[1.0; 3]), Some(&[0, 0, 1]));
        assert!(matches!(refused, Err(Error::Structure { .. })), "{refused:?}");
        assert!(Triangular::part(&a, Half::Lower, Some(&[1.0; 2]), None).is_err());
        let none = Triangular::part(&matrix(0, &[]), Half::Upper, None, None).unwrap();
        assert_eq!((none.depth(), none.shape()), (0, (0, 0)));
    }
}
