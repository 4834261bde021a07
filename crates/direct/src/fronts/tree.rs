//! The tree of fronts, and what each costs.
use crate::Number;
use crate::columns::Columns;
use crate::cost::Count;
use crate::failure::{failed, filled, guarded, refused};
use crate::hermitian::LARGE;
use faer::Side;
use faer::sparse::SymbolicSparseColMatRef;
use faer::sparse::linalg::SupernodalThreshold;
use faer::sparse::linalg::cholesky::{
    CholeskySymbolicParams, SymbolicCholeskyRaw, SymmetricOrdering, factorize_symbolic_cholesky,
};
use lacuna_engine::Result;
use lacuna_formats::interrupt;
use std::ops::Range;

/// Seconds for an operation, for an entry of a front or of what it passes on, for a front, and for an entry of the matrix.
const SECONDS: [f64; 4] = [2.1e-11, 2.5e-9, 1.05e-7, 1.05e-8];
const NONE: u32 = u32::MAX;

/// The fronts of a block in the order of elimination: children come before their parents.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// The first step of each front, and the end.
    first: Vec<u32>,
    /// The steps of the rows that each front passes on.
    ptr: Vec<usize>,
    rows: Vec<u32>,
    parent: Vec<u32>,
    /// The children of each front, in order.
    child_ptr: Vec<usize>,
    child_list: Vec<u32>,
    /// Predicted seconds of each front with all below it.
    pub(super) seconds: Vec<f64>,
    pub(crate) count: Count,
    /// The most entries that fronts pass on at a time, at most.
    pub(crate) passed_on: f64,
    pub(crate) total: f64,
}

impl Tree {
    /// The fronts of the diagonal block at `block`, whose rows and columns are in the order of elimination.
    pub(crate) fn of<W: Number>(a: &Columns<W>, block: Range<usize>) -> Result<Self> {
        let n = block.len();
        let entries = a.ptr[block.end] - a.ptr[block.start];
        let (ptr, rows) = upper(a, block)?;
        let symbolic = interrupt::aside(n >= LARGE, move || {
            guarded(|| {
                let pattern = SymbolicSparseColMatRef::new_checked(n, n, &ptr, None, &rows);
                let params = CholeskySymbolicParams {
                    supernodal_flop_ratio_threshold: SupernodalThreshold::FORCE_SUPERNODAL,
                    ..Default::default()
                };
                factorize_symbolic_cholesky(pattern, Side::Upper, SymmetricOrdering::Identity, params)
                    .map_err(refused(0.0))
            })
        })??;
        let SymbolicCholeskyRaw::Supernodal(found) = symbolic.raw() else {
            return Err(failed("a block without fronts"));
        };
        let count = found.n_supernodes();
        let mut tree = Tree {
            first: found.supernode_begin().to_vec(),
            ptr: vec![0],
            rows: Vec::new(),
            parent: vec![NONE; count],
            child_ptr: vec![0; count + 1],
            child_list: Vec::new(),
            seconds: vec![0.0; count],
            count: Count::default(),
            passed_on: 0.0,
            total: 0.0,
        };
        tree.first.push(n as u32);
        for k in 0..count {
            tree.rows.extend_from_slice(found.supernode(k).pattern());
            tree.ptr.push(tree.rows.len());
        }
        tree.join(entries + n)?;
        Ok(tree)
    }

    /// Finds parents and children, and counts.
    fn join(&mut self, entries: usize) -> Result<()> {
        let count = self.len();
        let n = self.first[count] as usize;
        let mut front_of = filled(0u32, n)?;
        for k in 0..count {
            front_of[self.own(k)].fill(k as u32);
        }
        let [operation, entry, front, of_matrix] = SECONDS;
        for k in 0..count {
            let (own, passed) = (self.own(k).len() as f64, self.passed(k).len() as f64);
            let all = own + passed;
            if let Some(&row) = self.passed(k).first() {
                let parent = front_of[row as usize];
                self.parent[k] = parent;
                self.child_ptr[parent as usize + 1] += 1;
            }
            let operations = 2.0 * own * (own * own / 3.0 + own * passed + passed * passed);
            self.count.operations += operations;
            self.count.entries += own * (own + 2.0 * passed);
            self.passed_on += passed * passed;
            self.seconds[k] += operation * operations + entry * (all * all + passed * passed) + front;
            // All children come before.
            match self.parent[k] {
                NONE => self.total += self.seconds[k],
                parent => self.seconds[parent as usize] += self.seconds[k],
            }
        }
        self.total += of_matrix * entries as f64;
        (0..count).for_each(|k| self.child_ptr[k + 1] += self.child_ptr[k]);
        let mut next = self.child_ptr.clone();
        self.child_list = filled(0, self.child_ptr[count])?;
        for k in 0..count {
            if self.parent[k] != NONE {
                let at = &mut next[self.parent[k] as usize];
                self.child_list[*at] = k as u32;
                *at += 1;
            }
        }
        Ok(())
    }

    /// How many fronts there are.
    pub(super) fn len(&self) -> usize {
        self.parent.len()
    }
    /// The steps that a front eliminates.
    pub(super) fn own(&self, k: usize) -> Range<usize> {
        self.first[k] as usize..self.first[k + 1] as usize
    }
    /// The steps of the rows that it passes on.
    pub(super) fn passed(&self, k: usize) -> &[u32] {
        &self.rows[self.ptr[k]..self.ptr[k + 1]]
    }
    pub(super) fn children(&self, k: usize) -> &[u32] {
        &self.child_list[self.child_ptr[k]..self.child_ptr[k + 1]]
    }
    /// The front that takes what a front passes on.
    pub(super) fn parent(&self, k: usize) -> Option<usize> {
        (self.parent[k] != NONE).then_some(self.parent[k] as usize)
    }
    /// A front and all below it, children before parents.
    pub(super) fn below(&self, k: usize) -> Vec<u32> {
        let (mut order, mut open) = (Vec::new(), vec![k as u32]);
        // Parents before their children, the last child first; and the other way round.
        while let Some(k) = open.pop() {
            order.push(k);
            open.extend_from_slice(self.children(k as usize));
        }
        order.reverse();
        order
    }
}

/// The columns of the pattern of `A + Aᵀ` of a block, down to the diagonal, which is full.
fn upper<W: Number>(a: &Columns<W>, block: Range<usize>) -> Result<(Vec<u32>, Vec<u32>)> {
    let n = block.len();
    let inside = |j: usize| {
        let rows = a.column(block.start + j).0.iter();
        rows.filter_map(|i| (*i as usize).checked_sub(block.start)).map(move |i| (i.min(j), i.max(j)))
    };
    // Sorted by rows first, then by columns.
    let (mut of_row, mut of_column) = (filled(0usize, n + 1)?, filled(0usize, n + 1)?);
    for (i, j) in (0..n).flat_map(inside) {
        of_row[i + 1] += 1;
        of_column[j + 1] += 1;
    }
    for counts in [&mut of_row, &mut of_column] {
        (0..n).for_each(|k| counts[k + 1] += counts[k]);
    }
    let mut by_row = filled((0u32, 0u32), of_row[n])?;
    for (i, j) in (0..n).flat_map(inside) {
        by_row[of_row[i]] = (i as u32, j as u32);
        of_row[i] += 1;
    }
    let mut sorted = filled(0u32, by_row.len())?;
    let mut next = of_column.clone();
    for (i, j) in by_row {
        sorted[next[j as usize]] = i;
        next[j as usize] += 1;
    }
    let (mut ptr, mut rows) = (Vec::with_capacity(n + 1), Vec::with_capacity(sorted.len() + n));
    ptr.push(0u32);
    for j in 0..n {
        let first = rows.len();
        for &i in &sorted[of_column[j]..of_column[j + 1]] {
            if rows.len() == first || rows[rows.len() - 1] != i {
                rows.push(i);
            }
        }
        if rows.len() == first || rows[rows.len() - 1] != j as u32 {
            rows.push(j as u32);
        }
        ptr.push(u32::try_from(rows.len()).map_err(failed)?);
    }
    Ok((ptr, rows))
}
