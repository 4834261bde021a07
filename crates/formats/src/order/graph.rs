//! The graph of a square matrix: couplings in either direction.
use crate::algebra::TransposePlan;
use crate::interrupt;
use crate::storage::pattern::PatternRef;
use lacuna_engine::Result;
use std::alloc::{Layout, handle_alloc_error};
use std::collections::VecDeque;

/// Neighbours of each row, without the row itself.
pub(crate) struct Graph {
    ptr: Vec<u32>,
    neighbours: Vec<u32>,
}

/// The graph of `A + Aᵀ` of a pattern of `n` rows, whose columns may be in any order, without what is no row, and the diagonal: where
/// the neighbours of each row begin, and these.
pub(crate) fn mirrored(n: usize, ptr: &[u32], columns: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let row = |i: usize| match ptr.get(i..i + 2) {
        Some(&[from, end]) => columns.get(from as usize..end as usize).unwrap_or(&[]),
        _ => &[],
    };
    let row = |i: usize| row(i).iter().copied().filter(move |&j| (j as usize) < n && j as usize != i);
    let mut start = vec![0u32; n + 1];
    (0..n).flat_map(row).for_each(|j| start[j as usize + 1] += 1);
    (0..n).for_each(|k| start[k + 1] += start[k]);
    let mut mirror = vec![0u32; start[n] as usize];
    let mut next = start.clone();
    for i in 0..n {
        for j in row(i) {
            mirror[next[j as usize] as usize] = i as u32;
            next[j as usize] += 1;
        }
    }
    let (mut starts, mut to) = (Vec::with_capacity(n + 1), Vec::with_capacity(2 * mirror.len()));
    starts.push(0);
    let mut met = vec![u32::MAX; n];
    for i in 0..n {
        let of_column = mirror[start[i] as usize..start[i + 1] as usize].iter().copied();
        for j in row(i).chain(of_column) {
            if std::mem::replace(&mut met[j as usize], i as u32) != i as u32 {
                to.push(j);
            }
        }
        starts.push(to.len() as u32);
    }
    (starts, to)
}

impl Graph {
    /// The graph of `A + Aᵀ`, without columns that are no rows.
    ///
    /// # Errors
    /// Those of [`interrupt::check`].
    pub(crate) fn of(a: PatternRef<'_>) -> Result<Self> {
        let turned =
            TransposePlan::of(a).unwrap_or_else(|_| handle_alloc_error(Layout::for_value(a.col_idx)));
        let n = a.rows;
        let (mut ptr, mut neighbours) = (Vec::with_capacity(n + 1), Vec::with_capacity(a.nnz()));
        ptr.push(0);
        interrupt::check()?;
        for i in 0..n {
            interrupt::check_at(i)?;
            let (mut own, mut other) = (a.row(i), turned.pattern_ref().row(i));
            while let Some(next) = own.first().into_iter().chain(other.first()).min().copied() {
                own = &own[usize::from(own.first() == Some(&next))..];
                other = &other[usize::from(other.first() == Some(&next))..];
                if next as usize != i && (next as usize) < n {
                    neighbours.push(next);
                }
            }
            ptr.push(neighbours.len() as u32);
        }
        Ok(Graph { ptr, neighbours })
    }

    pub(crate) fn len(&self) -> usize {
        self.ptr.len() - 1
    }
    pub(crate) fn of_row(&self, i: u32) -> &[u32] {
        &self.neighbours[self.ptr[i as usize] as usize..self.ptr[i as usize + 1] as usize]
    }
    pub(crate) fn degree(&self, i: u32) -> usize {
        self.of_row(i).len()
    }

    /// A pseudo-peripheral row of the component: starting from `start`, moves to the row of least degree
    /// among the farthest ones until the distance no longer grows (George and Liu 1979). Rows in `taken` are
    /// ignored; no search goes on after `rows` rows.
    ///
    /// # Errors
    /// Those of [`interrupt::check`].
    pub(crate) fn peripheral(
        &self,
        start: u32,
        taken: &[bool],
        search: &mut Search,
        rows: usize,
    ) -> Result<u32> {
        let (mut start, mut depth) = (start, 0);
        loop {
            let (farthest, levels) = search.farthest(self, start, taken, rows)?;
            if levels <= depth {
                return Ok(start);
            }
            (start, depth) = (farthest, levels);
        }
    }
}

/// Working memory of breadth-first searches.
pub(crate) struct Search {
    /// The last search that reached each row.
    reached: Vec<u32>,
    search: u32,
    queue: VecDeque<(u32, u32)>,
}

impl Search {
    pub(crate) fn new(n: usize) -> Self {
        Search { reached: vec![0; n], search: 0, queue: VecDeque::new() }
    }

    /// The row of least degree on the last level of a search from `start` that visits at most `rows` rows,
    /// and its level.
    fn farthest(&mut self, graph: &Graph, start: u32, taken: &[bool], rows: usize) -> Result<(u32, u32)> {
        self.search += 1;
        self.reached[start as usize] = self.search;
        self.queue.push_back((start, 0));
        let (mut best, mut last, mut seen) = (start, 0, 1);
        let mut steps = 0..;
        while let Some((row, level)) = self.queue.pop_front() {
            steps.next().map_or(Ok(()), interrupt::check_at)?;
            if level > last || graph.degree(row) < graph.degree(best) {
                (best, last) = (row, level);
            }
            for &next in graph.of_row(row) {
                let reached = &mut self.reached[next as usize];
                if *reached != self.search && !taken[next as usize] && seen < rows {
                    seen += 1;
                    *reached = self.search;
                    self.queue.push_back((next, level + 1));
                }
            }
        }
        Ok((best, last))
    }
}
