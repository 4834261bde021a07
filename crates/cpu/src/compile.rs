//! A program with its matrices found and its work divided. Vectors go by their slots.
use crate::product::Stored;
use lacuna_core::cells::{Instr, Unary};
use lacuna_core::lower::{self, Coefficient, Sweep};
use lacuna_core::sum::SEGMENT;
use lacuna_core::{
    Basis, Cell, Cells, Format, HostStore, Matrix, Op, OpKind, Program, Result, Scalar, Section, Vector,
};
use lacuna_formats::Hyb;
use std::sync::Arc;

/// A term over vectors by slot.
#[derive(Clone, Copy)]
pub(crate) struct Term {
    pub(crate) coefficient: Coefficient,
    pub(crate) factor: Option<u32>,
    pub(crate) vector: u32,
}

/// An update over vectors by slot.
pub(crate) struct Update {
    pub(crate) dst: u32,
    pub(crate) terms: Box<[Term]>,
}

/// A dot product over vectors by slot.
#[derive(Clone, Copy)]
pub(crate) struct Dot {
    pub(crate) cell: u32,
    pub(crate) a: u32,
    pub(crate) b: u32,
}

/// What a step does before its sweep.
pub(crate) enum Kind<T: Scalar> {
    Sweep,
    /// One column after the other: column `j` of `x` is vector `x + j`, and so with `y`.
    Spmv {
        a: Stored<T>,
        x: u32,
        y: u32,
        columns: u32,
    },
    /// The same by a kernel for several columns.
    Spmm {
        a: Stored<T>,
        x: u32,
        y: u32,
        columns: u32,
    },
    /// The sums of the pieces of long rows, ahead of the product, for each of its columns.
    Pieces {
        a: Arc<Hyb<T>>,
        x: u32,
        columns: u32,
    },
    /// Column `j` is in slot `first + j`.
    BasisDot {
        first: u32,
        columns: u32,
        w: u32,
        h: u32,
    },
    BasisAxpy {
        first: u32,
        columns: u32,
        w: u32,
        h: u32,
        add: bool,
    },
}

/// An operation made ready.
pub(crate) struct Step<T: Scalar> {
    pub(crate) kind: Kind<T>,
    pub(crate) n: usize,
    pub(crate) before: Box<[Instr]>,
    pub(crate) updates: Box<[Update]>,
    pub(crate) dots: Box<[Dot]>,
    pub(crate) after: Box<[Instr]>,
    /// Which division of rows among threads applies.
    pub(crate) shares: usize,
    /// Whether all threads must be done before the next step begins.
    pub(crate) meet: bool,
    /// Entries of matrices and elements of vectors touched.
    pub(crate) work: usize,
}

impl<T: Scalar> Step<T> {
    /// Sums over all rows that the step leaves behind.
    pub(crate) fn sums(&self) -> usize {
        self.dots.len() + if let Kind::BasisDot { columns, .. } = self.kind { columns as usize } else { 0 }
    }
}

/// Segment borders of each thread's share, `threads + 1` of them.
pub(crate) type Shares = Box<[usize]>;

/// A program made ready.
pub(crate) struct Compiled<T: Scalar> {
    /// By section: setup, restart, each.
    pub(crate) sections: [Vec<Step<T>>; 3],
    /// The newest vector, matrix and cell that it names. Memory is released from the newest on, so that while these are
    /// live all are.
    pub(crate) vector: Option<Vector<T>>,
    pub(crate) matrix: Option<Matrix<T>>,
    pub(crate) cell: Option<Cell<T>>,
    /// Divisions of rows among threads, for each length there is.
    pub(crate) divisions: Vec<Shares>,
    /// Segment sums of the largest step.
    pub(crate) sums: usize,
    /// Pieces of the matrix that has the most.
    pub(crate) pieces: usize,
    /// Segments of the longest step.
    pub(crate) segments: usize,
    /// Entries of matrices and elements of vectors touched by the heaviest step, but for columns of bases.
    pub(crate) work: usize,
}

impl<T: Scalar> Compiled<T> {
    pub(crate) fn new(program: &Program<T>, store: &HostStore, threads: usize) -> Result<Self> {
        let mut compiled = Compiled {
            sections: [Vec::new(), Vec::new(), Vec::new()],
            vector: None,
            matrix: None,
            cell: None,
            divisions: Vec::new(),
            sums: 0,
            pieces: 0,
            segments: 0,
            work: 0,
        };
        let mut lengths: Vec<usize> = Vec::new();
        for (i, section) in [Section::Setup, Section::Restart, Section::Each].into_iter().enumerate() {
            let ops = program.section(section);
            let mut steps = Vec::with_capacity(ops.len());
            for op in ops {
                let shares = lengths.iter().position(|n| *n == op.n()).unwrap_or_else(|| {
                    lengths.push(op.n());
                    lengths.len() - 1
                });
                let step = compiled.step(op, store, shares)?;
                steps.extend(compiled.pieces_before(&step));
                steps.push(step);
            }
            mark_meetings(&mut steps);
            compiled.sections[i] = steps;
        }
        for (shares, n) in lengths.into_iter().enumerate() {
            let matrix = compiled.sections.iter().flatten().filter(|s| s.shares == shares).find_map(|s| {
                match &s.kind {
                    Kind::Spmv { a, .. } | Kind::Spmm { a, .. } => Some(a.clone()),
                    _ => None,
                }
            });
            compiled.divisions.push(divide(n, threads, matrix.as_ref()));
        }
        for step in compiled.sections.iter().flatten() {
            let segments = step.n.div_ceil(SEGMENT);
            compiled.segments = compiled.segments.max(segments);
            compiled.sums = compiled.sums.max(segments * step.sums());
        }
        Ok(compiled)
    }

    fn see_vector(&mut self, v: Vector<T>) {
        self.vector = self.vector.into_iter().chain([v]).max_by_key(|v| v.slot);
    }
    fn see_cell(&mut self, cell: Cell<T>) {
        self.cell = self.cell.into_iter().chain([cell]).max_by_key(|c| c.index);
    }
    fn see_columns(&mut self, v: Basis<T>, h: Cells<T>) {
        v.ends(h.count).for_each(|v| self.see_vector(v));
        h.ends().for_each(|cell| self.see_cell(cell));
    }

    fn step(&mut self, op: &Op<T>, store: &HostStore, shares: usize) -> Result<Step<T>> {
        let (mut work, mut columns) = (op.n() * op.sweep.vectors().len(), 0);
        let kind = match op.kind {
            OpKind::Sweep => Kind::Sweep,
            OpKind::Spmv { a, x, y } => {
                let format = store.format(a, &op.sweep.name)?;
                self.matrix = self.matrix.into_iter().chain([a]).max_by_key(|a| a.slot);
                [x, y].into_iter().for_each(|v| self.see_vector(v));
                work += a.nnz;
                Kind::Spmv { a: Stored::new(format), x: x.slot, y: y.slot, columns: 1 }
            }
            OpKind::Spmm { a, x, y } => {
                let format = store.format(a, &op.sweep.name)?;
                self.matrix = self.matrix.into_iter().chain([a]).max_by_key(|a| a.slot);
                let columns = x.columns as u32;
                [x, y].into_iter().flat_map(|v| v.ends(columns)).for_each(|v| self.see_vector(v));
                work += (a.nnz + a.rows) * x.columns;
                let (a, x, y) = (Stored::new(format), x.first, y.first);
                match a.takes_columns(columns) {
                    true => Kind::Spmm { a, x, y, columns },
                    false => Kind::Spmv { a, x, y, columns },
                }
            }
            OpKind::BasisDot { v, w, h } | OpKind::BasisAxpy { v, w, h, .. } => {
                self.see_columns(v, h);
                self.see_vector(w);
                columns = op.n() * h.count as usize;
                let (first, columns, w, h) = (v.first, h.count, w.slot, h.first);
                match op.kind {
                    OpKind::BasisAxpy { add, .. } => Kind::BasisAxpy { first, columns, w, h, add },
                    _ => Kind::BasisDot { first, columns, w, h },
                }
            }
        };
        self.work = self.work.max(work);
        let Sweep { before, updates, dots, after, cells, .. } = &op.sweep;
        op.sweep.mentions().for_each(|(v, _)| self.see_vector(v));
        cells.iter().for_each(|cell| self.see_cell(*cell));
        let updates = updates.iter().map(|u| {
            let terms = u.terms.iter().map(|t| Term {
                coefficient: t.coefficient,
                factor: t.factor.map(|f| f.slot),
                vector: t.vector.slot,
            });
            Update { terms: terms.collect(), dst: u.dst.slot }
        });
        let (dots, after) = distinct(dots, after);
        let (before, updates) = (before.as_slice().into(), updates.collect());
        Ok(Step { kind, n: op.n(), before, updates, dots, after, shares, meet: true, work: work + columns })
    }
}

/// The dot products that differ, those with an operand in common side by side; what is evaluated after them, from copies of their
/// cells for those that do not on.
fn distinct<T: Scalar>(dots: &[lower::Dot<T>], after: &[Instr]) -> (Box<[Dot]>, Box<[Instr]>) {
    let (mut distinct, mut copies) = (Vec::<Dot>::with_capacity(dots.len()), Vec::new());
    for dot in dots {
        let (cell, a, b) = (dot.cell, dot.a.slot, dot.b.slot);
        match distinct.iter().find(|d| (d.a, d.b) == (a, b)) {
            Some(same) => copies.push(Instr::Unary { op: Unary::Copy, dst: cell, a: same.cell }),
            None => distinct.push(Dot { cell, a, b }),
        }
    }
    if !T::KIND.is_complex() {
        gather(&mut distinct);
    }
    copies.extend_from_slice(after);
    (distinct.into(), copies.into())
}

/// Orders dot products of real vectors so that those with an operand in common follow each other, as their `b`.
fn gather(dots: &mut [Dot]) {
    let mut start = 0;
    while start < dots.len() {
        let has = |dot: &Dot, v: u32| dot.a == v || dot.b == v;
        let sharing = |v: u32| dots[start..].iter().filter(|dot| has(dot, v)).count();
        let Dot { a, b, .. } = dots[start];
        let common = if sharing(a) > sharing(b) { a } else { b };
        let mut next = start;
        for k in start..dots.len() {
            if has(&dots[k], common) {
                let Dot { cell, a, b } = dots[k];
                dots[k] = Dot { cell, a: if a == common { b } else { a }, b: common };
                dots.swap(next, k);
                next += 1;
            }
        }
        start = next;
    }
}

impl<T: Scalar> Compiled<T> {
    /// The step that a product with a matrix cut into pieces takes first.
    fn pieces_before(&mut self, step: &Step<T>) -> Option<Step<T>> {
        let Kind::Spmv { a: Stored::Hyb(a), x, columns, .. } = &step.kind else { return None };
        if a.partial_sums() == 0 {
            return None;
        }
        self.pieces = self.pieces.max(a.partial_sums() * *columns as usize);
        let guard = step.before.first().filter(|instr| matches!(instr, Instr::OnlyIf { .. }));
        Some(Step {
            kind: Kind::Pieces { a: a.clone(), x: *x, columns: *columns },
            n: 0,
            before: guard.copied().into_iter().collect(),
            updates: Box::new([]),
            dots: Box::new([]),
            after: Box::new([]),
            shares: step.shares,
            meet: true,
            work: step.work,
        })
    }
}

/// Steps that leave no sum, read no other rows, and whose results only their own rows need next, go on without
/// meeting.
fn mark_meetings<T: Scalar>(steps: &mut [Step<T>]) {
    for i in 0..steps.len().saturating_sub(1) {
        let (step, next) = (&steps[i], &steps[i + 1]);
        let multiplies = |step: &Step<T>| matches!(step.kind, Kind::Spmv { .. } | Kind::Spmm { .. });
        let rowwise =
            !multiplies(next) && !matches!(next.kind, Kind::Pieces { .. }) && step.shares == next.shares;
        steps[i].meet = step.sums() > 0 || !rowwise || multiplies(step);
    }
}

/// Segment borders that give each thread about the same entries of the matrix, or the same rows where there is none.
fn divide<T: Scalar>(n: usize, threads: usize, matrix: Option<&Stored<T>>) -> Shares {
    let segments = n.div_ceil(SEGMENT);
    // Each row also costs its share of the vectors: as much as a few entries.
    let before = |segment: usize| {
        let row = (segment * SEGMENT).min(n);
        matrix.map_or(0, |a| a.entries_before(row)) + 4 * row
    };
    let all = before(segments);
    let border = |t: usize| {
        let wanted = all / threads * t;
        let (mut low, mut high) = (0, segments);
        while low < high {
            let middle = (low + high) / 2;
            if before(middle) < wanted { low = middle + 1 } else { high = middle }
        }
        low
    };
    (0..=threads).map(|t| if t == threads { segments } else { border(t) }).collect()
}

#[cfg(test)]
mod tests {
    use super::{Dot, gather};

    #[test]
    fn dots_with_a_common_operand_follow_each_other() {
        let pairs = [(1, 2), (3, 4), (5, 1), (4, 4), (6, 3), (1, 1)];
        let mut dots: Vec<_> = pairs.iter().zip(0..).map(|(&(a, b), cell)| Dot { cell, a, b }).collect();
        gather(&mut dots);
        let groups: Vec<_> =
            dots.chunk_by(|one, next| one.b == next.b).map(|group| (group[0].b, group.len())).collect();
        assert_eq!(groups, [(1, 3), (4, 2), (3, 1)]);
        for dot in dots {
            let (a, b) = pairs[dot.cell as usize];
            assert!((dot.a, dot.b) == (a, b) || (dot.a, dot.b) == (b, a), "{a} {b}");
        }
    }
}
