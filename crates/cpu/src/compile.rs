//! A program with its vectors numbered, its matrices found and its work divided.
use crate::product::Stored;
use lacuna_core::cells::{Instr, Unary};
use lacuna_core::lower::{self, Coefficient, Sweep};
use lacuna_core::sum::SEGMENT;
use lacuna_core::{Cell, Format, HostStore, Matrix, Op, OpKind, Program, Result, Scalar, Section, Vector};
use lacuna_formats::Hyb;
use std::sync::Arc;

/// A term over numbered vectors.
#[derive(Clone, Copy)]
pub(crate) struct Term {
    pub(crate) coefficient: Coefficient,
    pub(crate) factor: Option<u32>,
    pub(crate) vector: u32,
}

/// An update over numbered vectors.
pub(crate) struct Update {
    pub(crate) dst: u32,
    pub(crate) terms: Box<[Term]>,
}

/// A dot product over numbered vectors.
#[derive(Clone, Copy)]
pub(crate) struct Dot {
    pub(crate) cell: u32,
    pub(crate) a: u32,
    pub(crate) b: u32,
}

/// What a step does before its sweep, over numbered vectors.
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
    /// Column `j` is vector `first + j`.
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
    /// The vectors by number.
    pub(crate) vectors: Vec<Vector<T>>,
    /// The matrices, to tell stale handles.
    pub(crate) matrices: Vec<Matrix<T>>,
    /// The cells, likewise.
    pub(crate) cells: Vec<Cell<T>>,
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
            vectors: Vec::new(),
            matrices: Vec::new(),
            cells: program.ops().flat_map(|op| &op.sweep.cells).copied().collect(),
            divisions: Vec::new(),
            sums: 0,
            pieces: 0,
            segments: 0,
            work: 0,
        };
        compiled.cells.sort_unstable_by_key(|c| (c.index, c.serial));
        compiled.cells.dedup();
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

    fn number(&mut self, v: Vector<T>) -> u32 {
        let at = self.vectors.iter().position(|w| *w == v).unwrap_or_else(|| {
            self.vectors.push(v);
            self.vectors.len() - 1
        });
        at as u32
    }

    /// Numbers `columns` vectors in a row; the number of the first.
    fn number_columns(&mut self, v: lacuna_core::Basis<T>, columns: u32) -> u32 {
        let first = self.vectors.len() as u32;
        self.vectors.extend((0..columns).map(|j| v.column(j as usize)));
        first
    }

    /// The dot products that differ, and copies of their cells for those that do not.
    fn distinct(&mut self, dots: &[lower::Dot<T>]) -> (Box<[Dot]>, Vec<Instr>) {
        let (mut distinct, mut copies) = (Vec::<Dot>::new(), Vec::new());
        for dot in dots {
            let (cell, a, b) = (dot.cell, self.number(dot.a), self.number(dot.b));
            match distinct.iter().find(|d| (d.a, d.b) == (a, b)) {
                Some(same) => copies.push(Instr::Unary { op: Unary::Copy, dst: cell, a: same.cell }),
                None => distinct.push(Dot { cell, a, b }),
            }
        }
        (distinct.into(), copies)
    }

    fn step(&mut self, op: &Op<T>, store: &HostStore, shares: usize) -> Result<Step<T>> {
        let (mut work, mut columns) = (op.n() * op.sweep.vectors().len(), 0);
        let kind = match op.kind {
            OpKind::Sweep => Kind::Sweep,
            OpKind::Spmv { a, x, y } => {
                let format = store.format(a, &op.sweep.name)?;
                self.matrices.push(a);
                let stored = Stored::new(format);
                work += a.nnz;
                Kind::Spmv { a: stored, x: self.number(x), y: self.number(y), columns: 1 }
            }
            OpKind::Spmm { a, x, y } => {
                let format = store.format(a, &op.sweep.name)?;
                self.matrices.push(a);
                let count = x.columns as u32;
                work += (a.nnz + a.rows) * x.columns;
                let (a, columns) = (Stored::new(format), count);
                let (x, y) = (self.number_columns(x, count), self.number_columns(y, count));
                match a.takes_columns(columns) {
                    true => Kind::Spmm { a, x, y, columns },
                    false => Kind::Spmv { a, x, y, columns },
                }
            }
            OpKind::BasisDot { v, w, h } => {
                let first = self.number_columns(v, h.count);
                columns = op.n() * h.count as usize;
                Kind::BasisDot { first, columns: h.count, w: self.number(w), h: h.first }
            }
            OpKind::BasisAxpy { v, h, w, add } => {
                let first = self.number_columns(v, h.count);
                columns = op.n() * h.count as usize;
                Kind::BasisAxpy { first, columns: h.count, w: self.number(w), h: h.first, add }
            }
        };
        let Sweep { before, updates, dots, after, .. } = &op.sweep;
        self.work = self.work.max(work);
        let updates = updates.iter().map(|u| {
            let terms = u.terms.iter().map(|t| Term {
                coefficient: t.coefficient,
                factor: t.factor.map(|f| self.number(f)),
                vector: self.number(t.vector),
            });
            Update { terms: terms.collect(), dst: self.number(u.dst) }
        });
        let updates: Box<[Update]> = updates.collect();
        let (dots, mut copies) = self.distinct(dots);
        copies.extend_from_slice(after);
        let (before, after) = (before.clone().into(), copies.into());
        Ok(Step { kind, n: op.n(), before, updates, dots, after, shares, meet: true, work: work + columns })
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
