//! A program with its matrices resolved and its work divided. Vectors are given by slot.
use crate::pass::fused::Fused;
use crate::plan::divide::{Lengths, Shares};
use crate::plan::rolled::Rolled;
use crate::plan::step::{Dot, Kind, Step, Term, Update};
use crate::spmv::Stored;
use crate::tri_solve::Solved;
use lacuna_engine::cells::Instr;
use lacuna_engine::lower::{self, Sweep};
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::{
    Cell, Format, HostStore, Matrix, Op, OpKind, Operand, Program, Result, Scalar, Section, Steps, Vector,
    not_triangular,
};

/// A prepared program.
pub(crate) struct Compiled<T: Scalar> {
    /// The rolled loop at the start of the iteration.
    pub(crate) rolled: Option<Rolled<T>>,
    /// By section: setup, restart, and the iteration after the rolled loop.
    pub(crate) sections: [Vec<Step<T>>; 3],
    /// Entries and elements touched by one run through each section.
    pub(crate) works: [usize; 3],
    /// The newest vector, matrix and cell that it uses. Memory is released newest first, so if these are
    /// live, all are.
    pub(crate) vector: Option<Vector<T>>,
    pub(crate) matrix: Option<Matrix<T>>,
    pub(crate) cell: Option<Cell<T>>,
    /// Divisions of rows among threads, one for each length.
    pub(crate) divisions: Vec<Shares>,
    /// Maximum number of update terms of a step.
    pub(crate) terms: usize,
    /// Maximum number of segment sums of a step.
    pub(crate) sums: usize,
    /// Maximum number of pieces of a matrix.
    pub(crate) pieces: usize,
    /// Segments of the longest step.
    pub(crate) segments: usize,
    /// Matrix entries and vector elements touched by the heaviest step, without columns of bases.
    pub(crate) work: usize,
    /// Number of threads it is compiled for.
    threads: usize,
}

impl<T: Scalar> Compiled<T> {
    pub(crate) fn new(program: &Program<T>, store: &HostStore, threads: usize) -> Result<Self> {
        let mut compiled = Compiled {
            rolled: None,
            sections: [Vec::new(), Vec::new(), Vec::new()],
            works: [0; 3],
            vector: None,
            matrix: None,
            cell: None,
            divisions: Vec::new(),
            terms: 0,
            sums: 0,
            pieces: 0,
            segments: 0,
            work: 0,
            threads,
        };
        let mut lengths = Lengths::default();
        for (i, section) in Section::RUNNING.into_iter().enumerate() {
            let mut ops = program.section_behind_steps(section);
            if section == Section::Each
                && let Some(steps) = program.steps()
                && !compiled.roll(steps, store, &mut lengths)?
            {
                ops = program.section(section);
            }
            let steps = compiled.steps(ops, store, &mut lengths)?;
            compiled.works[i] = work(&steps);
            compiled.sections[i] = steps;
        }
        compiled.divisions = lengths.divisions(threads);
        Ok(compiled)
    }

    /// Keeps the steps at the start of the iteration rolled. Returns whether that was possible.
    fn roll(&mut self, steps: &Steps<T>, store: &HostStore, lengths: &mut Lengths<T>) -> Result<bool> {
        let first = self.steps(steps.first(), store, lengths)?;
        let second = self.steps(steps.second(), store, lengths)?;
        let Some(mut rolled) = Rolled::new(steps.count(), [first, second]) else { return Ok(false) };
        steps.last().iter().for_each(|op| self.see(op));
        rolled.at(rolled.count - 1).iter().for_each(|step| self.make_room(step));
        self.rolled = Some(rolled);
        Ok(true)
    }

    fn steps(&mut self, ops: &[Op<T>], store: &HostStore, lengths: &mut Lengths<T>) -> Result<Vec<Step<T>>> {
        let mut steps = Vec::with_capacity(ops.len());
        for op in ops {
            self.see(op);
            let step = self.step(op, store, lengths)?;
            self.make_room(&step);
            steps.extend(self.pieces_before(&step));
            steps.push(step);
        }
        mark_meetings(&mut steps);
        Ok(steps)
    }

    /// Reserves space for the terms and sums of a step.
    fn make_room(&mut self, step: &Step<T>) {
        let segments = step.n.div_ceil(SEGMENT);
        self.segments = self.segments.max(segments);
        self.terms = self.terms.max(step.updates.iter().map(|update| update.terms.len()).sum());
        self.sums = self.sums.max(segments * step.sums());
    }

    /// Records the handles that an operation uses.
    fn see(&mut self, op: &Op<T>) {
        op.matrix().into_iter().for_each(|a| self.see_matrix(a));
        op.vectors().for_each(|v| self.see_vector(v));
        op.cells().for_each(|cell| self.see_cell(cell));
    }
    fn see_matrix(&mut self, a: Matrix<T>) {
        newest(&mut self.matrix, a, |a| a.slot);
    }
    fn see_vector(&mut self, v: Vector<T>) {
        newest(&mut self.vector, v, |v| v.slot);
    }
    fn see_cell(&mut self, cell: Cell<T>) {
        newest(&mut self.cell, cell, |cell| cell.index);
    }

    fn step(&mut self, op: &Op<T>, store: &HostStore, lengths: &mut Lengths<T>) -> Result<Step<T>> {
        let mut work = op.n() * op.sweep.vector_count();
        let kind = match &op.kind {
            OpKind::Sweep => Kind::Sweep,
            &OpKind::Spmv { a, x, y } => {
                let format = store.format(a, &op.sweep.name)?;
                work += a.nnz;
                Kind::Spmv { a: Stored::new(format), x: x.slot, y: y.slot, columns: 1 }
            }
            &OpKind::Spmm { a, x, y } => {
                let format = store.format(a, &op.sweep.name)?;
                let columns = x.columns as u32;
                work += (a.nnz + a.rows) * x.columns;
                let (a, x, y) = (Stored::new(format), x.first, y.first);
                match a.takes_columns(columns) {
                    true => Kind::Spmm { a, x, y, columns },
                    false => Kind::Spmv { a, x, y, columns },
                }
            }
            &(OpKind::BasisDot { v, w, h } | OpKind::BasisAxpy { v, w, h, .. }) => {
                work += op.n();
                let (first, columns, w, h) = (v.first, h.count, w.slot, h.first);
                match op.kind {
                    OpKind::BasisAxpy { add, .. } => Kind::BasisAxpy { first, columns, w, h, add },
                    _ => Kind::BasisDot { first, columns, w, h },
                }
            }
            &OpKind::TriSolve { a, b, x } => {
                let format = store.format(a, &op.sweep.name)?;
                work += a.nnz;
                let kernel = || not_triangular(&op.sweep.name, format.kernel());
                let a = Solved::new(format, self.threads)?.ok_or_else(kernel)?;
                Kind::TriSolve { a, b: b.slot, x: x.slot }
            }
            OpKind::Host { f, x, y } => {
                work += op.n();
                Kind::Host { f: f.clone(), x: x.slot, cols: x.len, y: y.slot }
            }
        };
        let shares = lengths.of(op.n(), &kind);
        self.work = self.work.max(work);
        let Sweep { before, updates, .. } = &op.sweep;
        let updates = updates.iter().map(|u| {
            let terms = u.terms.iter().map(|t| Term {
                coefficient: t.coefficient,
                factor: t.factor.map(|f| f.slot),
                vector: t.vector.slot,
            });
            Update { terms: terms.collect(), dst: u.dst.slot, rounds: u.dst.narrow }
        });
        let (dots, after) = distinct(&op.sweep);
        let (before, updates): (Box<[_]>, Box<[_]>) = (before.as_slice().into(), updates.collect());
        let rounds = op.kind.operands().any(|operand| match operand {
            Operand::Vector(v, access) => v.narrow && access.writes(),
            Operand::Basis(v, access) => v.narrow && access.writes(),
            Operand::Matrix(_) | Operand::Cells(..) => false,
        });
        let narrow = updates.iter().any(|update| update.rounds);
        let loops = matches!(kind, Kind::Sweep) && !T::KIND.is_complex() && !narrow;
        let fused = loops.then(|| Fused::find(&updates, &dots)).flatten();
        let rotates = |i: &Instr| matches!(i, Instr::Rotate { .. } | Instr::BackSubstitute { .. });
        let rotates = before.iter().chain(&*after).any(rotates);
        Ok(Step {
            kind,
            rounds,
            n: op.n(),
            before,
            updates,
            dots,
            fused,
            after,
            rotates,
            shares,
            meet: true,
            work,
        })
    }
}

/// Keeps the handle with the larger number.
fn newest<H>(newest: &mut Option<H>, other: H, number: impl Fn(&H) -> u32) {
    if newest.as_ref().is_none_or(|newest| number(newest) <= number(&other)) {
        *newest = Some(other);
    }
}

/// The distinct dot products of a sweep, grouped by common operand and those with a factor last, and the instructions
/// after them.
fn distinct<T: Scalar>(sweep: &Sweep<T>) -> (Box<[Dot]>, Box<[Instr]>) {
    let (dots, mut after) = sweep.distinct_dots();
    let by_slot = |dot: &lower::Dot<T>| {
        let factor = dot.factor.map(|f| f.slot);
        Dot { cell: dot.cell, a: dot.a.slot, b: dot.b.slot, factor }
    };
    let mut dots: Box<[Dot]> = dots.iter().map(by_slot).collect();
    dots.sort_by_key(|dot| dot.factor.is_some());
    let plain = dots.partition_point(|dot| dot.factor.is_none());
    if !T::KIND.is_complex() {
        gather(&mut dots[..plain]);
    }
    after.extend_from_slice(&sweep.after);
    (dots, after.into())
}

/// Orders dot products of real vectors, without factors, so that those with a common operand are adjacent and have it as their
/// `b`.
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
                let Dot { cell, a, b, factor } = dots[k];
                dots[k] = Dot { cell, a: if a == common { b } else { a }, b: common, factor };
                dots.swap(next, k);
                next += 1;
            }
        }
        start = next;
    }
}

impl<T: Scalar> Compiled<T> {
    /// The step that computes the pieces before a product with a matrix that has some.
    fn pieces_before(&mut self, step: &Step<T>) -> Option<Step<T>> {
        let Kind::Spmv { a: Stored::Hyb(a), x, columns, .. } = &step.kind else { return None };
        if a.partial_sums() == 0 {
            return None;
        }
        self.pieces = self.pieces.max(a.partial_sums() * *columns as usize);
        let guards = step.before.iter().filter(|instr| matches!(instr, Instr::OnlyIf { .. }));
        Some(Step {
            kind: Kind::Pieces { a: a.clone(), x: *x, columns: *columns },
            rounds: false,
            n: 0,
            before: guards.copied().collect(),
            updates: Box::new([]),
            dots: Box::new([]),
            fused: None,
            after: Box::new([]),
            rotates: false,
            shares: step.shares,
            meet: true,
            work: step.work,
        })
    }
}

/// Marks the steps that need a barrier. Steps that touch no vector need none. Neither do steps that compute
/// no sum, read no other rows, and whose results are next needed only in the same rows: then the next step
/// must be known, so neither this step nor the next may leave the section or be skipped.
fn mark_meetings<T: Scalar>(steps: &mut [Step<T>]) {
    for i in 0..steps.len() {
        let multiplies = |step: &Step<T>| {
            matches!(
                step.kind,
                Kind::Spmv { .. } | Kind::Spmm { .. } | Kind::TriSolve { .. } | Kind::Host { .. }
            )
        };
        let step = &steps[i];
        let idle = matches!(step.kind, Kind::Sweep) && step.n == 0;
        let decides = |code: &[Instr]| code.iter().any(Instr::is_control);
        let rowwise = !decides(&step.after)
            && steps.get(i + 1).is_some_and(|next| {
                !decides(&next.before)
                    && !multiplies(next)
                    && !matches!(next.kind, Kind::Pieces { .. })
                    && step.shares == next.shares
            });
        steps[i].meet = !idle && (step.sums() > 0 || !rowwise || multiplies(step));
    }
}

/// Entries and elements that the steps touch.
pub(crate) fn work<T: Scalar>(steps: &[Step<T>]) -> usize {
    steps.iter().map(Step::work).sum()
}

#[cfg(test)]
mod tests {
    use super::{Compiled, Dot, gather};
    use lacuna_engine::{HostStore, Recorder, Reference};

    #[test]
    fn a_projection_alone_is_work_for_all_threads() {
        let mut dev = Reference::new();
        let mut k = Recorder::<f64>::new(&mut dev, "projection");
        let n = crate::CpuOptions::PARALLEL_FROM;
        let (v, h) = (k.basis(n, 3), k.run_of_cells(2));
        k.basis_dot(v, v.column(2), h);
        let compiled = Compiled::new(&k.finish().unwrap(), &HostStore::new("none"), 2).unwrap();
        assert!(compiled.work >= n, "{}", compiled.work);
    }

    #[test]
    fn dots_with_a_common_operand_follow_each_other() {
        let pairs = [(1, 2), (3, 4), (5, 1), (4, 4), (6, 3), (1, 1)];
        let mut dots: Vec<_> =
            pairs.iter().zip(0..).map(|(&(a, b), cell)| Dot { cell, a, b, factor: None }).collect();
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
