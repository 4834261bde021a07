//! A program with its matrices resolved and its work divided. Vectors are given by slot.
use crate::pass::fused::Fused;
use crate::plan::divide::{Lengths, Shares};
use crate::plan::rolled::Rolled;
use crate::plan::step::{Dot, Step, StepKind, Term, Update};
use crate::spmv::{AnyStored, Stored};
use crate::tri_solve::{AnySolved, Solved};
use lacuna_engine::cells::Instr;
use lacuna_engine::lower::{self, Sweep};
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::{
    HostStore, Matrix, Op, OpKind, Operand, Program, Result, Scalar, Section, Steps, not_triangular,
    with_each, with_number,
};

/// A prepared program.
pub(crate) struct Compiled {
    /// The rolled loop at the start of the iteration.
    pub(crate) rolled: Option<Rolled>,
    /// By section: setup, restart, and the iteration after the rolled loop.
    pub(crate) sections: [Vec<Step>; 3],
    /// Entries and elements touched by one run through each section.
    pub(crate) works: [usize; 3],
    /// Divisions of rows among threads, one for each length.
    pub(crate) divisions: Vec<Shares>,
    /// Maximum number of update terms of a step.
    pub(crate) terms: usize,
    /// Maximum number of segment sums of a step.
    pub(crate) sums: usize,
    /// Maximum number of pieces of a matrix.
    pub(crate) pieces: usize,
    /// Matrix entries and vector elements touched by the heaviest step, without columns of bases.
    pub(crate) work: usize,
    /// Whether a step calls a function of the caller's.
    pub(crate) calls_host: bool,
    /// Number of threads it is compiled for.
    threads: usize,
}

impl Compiled {
    pub(crate) fn new(program: &Program, store: &HostStore, threads: usize) -> Result<Self> {
        let mut compiled = Compiled {
            rolled: None,
            sections: [Vec::new(), Vec::new(), Vec::new()],
            works: [0; 3],
            divisions: Vec::new(),
            terms: 0,
            sums: 0,
            pieces: 0,
            work: 0,
            calls_host: false,
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
    fn roll(&mut self, steps: &Steps, store: &HostStore, lengths: &mut Lengths) -> Result<bool> {
        let first = self.steps(steps.first(), store, lengths)?;
        let second = self.steps(steps.second(), store, lengths)?;
        let Some(mut rolled) = Rolled::new(steps.count(), [first, second]) else { return Ok(false) };
        rolled.at(rolled.count - 1).iter().for_each(|step| self.make_room(step));
        self.rolled = Some(rolled);
        Ok(true)
    }

    fn steps(&mut self, ops: &[Op], store: &HostStore, lengths: &mut Lengths) -> Result<Vec<Step>> {
        let mut steps = Vec::with_capacity(ops.len());
        for op in ops {
            let step = self.step(op, store, lengths)?;
            self.make_room(&step);
            steps.extend(self.pieces_before(&step));
            steps.push(step);
        }
        mark_meetings(&mut steps);
        Ok(steps)
    }

    /// Reserves space for the terms and sums of a step.
    fn make_room(&mut self, step: &Step) {
        self.terms = self.terms.max(step.updates.iter().map(|update| update.terms.len()).sum());
        self.sums = self.sums.max(step.n.div_ceil(SEGMENT) * step.sums());
    }

    fn step(&mut self, op: &Op, store: &HostStore, lengths: &mut Lengths) -> Result<Step> {
        let mut work = op.n() * op.sweep.vector_count();
        let kind = match &op.kind {
            OpKind::Sweep => StepKind::Sweep,
            &OpKind::Spmv { a, x, y } => {
                work += a.nnz;
                StepKind::Spmv { a: stored(store, a, op.sweep.name())?, x: x.slot, y: y.slot, columns: 1 }
            }
            &OpKind::Spmm { a, x, y } => {
                let columns = x.columns as u32;
                work += (a.nnz + a.rows) * x.columns;
                let (a, x, y) = (stored(store, a, op.sweep.name())?, x.first, y.first);
                match with_each!(&a, a => a.takes_columns(columns)) {
                    true => StepKind::Spmm { a, x, y, columns },
                    false => StepKind::Spmv { a, x, y, columns },
                }
            }
            &(OpKind::BasisDot { v, w, h } | OpKind::BasisAxpy { v, w, h, .. }) => {
                work += op.n();
                let (first, columns, w, h) = (v.first, h.count, w.slot, h.first);
                match op.kind {
                    OpKind::BasisAxpy { add, .. } => StepKind::BasisAxpy { first, columns, w, h, add },
                    _ => StepKind::BasisDot { first, columns, w, h },
                }
            }
            &OpKind::BasisGram { v, w, g } => {
                work += op.n() * g.count as usize;
                let (first, rows, columns) = (v.first, v.columns as u32, w.columns as u32);
                StepKind::BasisGram { first, rows, w: w.first, columns, g: g.first }
            }
            &OpKind::BasisCombine { v, c, x, add } => {
                work += op.n() * c.count as usize;
                let (first, rows, columns) = (v.first, v.columns as u32, x.columns as u32);
                StepKind::BasisCombine { first, rows, x: x.first, columns, c: c.first, add }
            }
            &OpKind::TriSolve { a, b, x } => {
                work += a.nnz;
                let a = solved(store, a, self.threads, op.sweep.name())?;
                StepKind::TriSolve { a, b: b.slot, x: x.slot }
            }
            OpKind::Host { f, x, y } => {
                self.calls_host = true;
                work += op.n();
                StepKind::Host { f: f.clone(), x: x.slot, cols: x.len, y: y.slot }
            }
        };
        let shares = lengths.of(op.n(), &kind);
        self.work = self.work.max(work);
        let (before, updates) = (op.sweep.before(), op.sweep.updates());
        let updates = updates.iter().map(|u| {
            let terms = u.terms.iter().map(|t| Term {
                coefficient: t.coefficient,
                factor: t.factor.map(|f| f.slot),
                vector: t.vector.slot,
            });
            Update { terms: terms.collect(), dst: u.dst.slot, rounds: u.dst.narrow }
        });
        let (dots, after) = distinct(&op.sweep);
        let (before, updates): (Box<[_]>, Box<[_]>) = (before.into(), updates.collect());
        let rounds = op.kind.operands().any(|operand| match operand {
            Operand::Vector(v, access) => v.narrow && access.writes(),
            Operand::Basis(v, access) => v.narrow && access.writes(),
            Operand::Matrix(_) | Operand::Cells(..) => false,
        });
        let narrow = updates.iter().any(|update| update.rounds);
        let loops = matches!(kind, StepKind::Sweep) && !op.sweep.kind().is_complex() && !narrow;
        // Maxima, which are last, follow the loop.
        let sums = dots.partition_point(|dot| !dot.largest);
        let fused = loops.then(|| Fused::find(&updates, &dots[..sums])).flatten();
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

/// The matrix of a handle, in the form that the kernels take.
fn stored(store: &HostStore, a: Matrix, operation: &str) -> Result<AnyStored> {
    with_number!(a.kind, T => Ok(T::each(Stored::new(store.format::<T>(a, operation)?, a))))
}

/// The same for triangular solves on a number of threads.
fn solved(store: &HostStore, a: Matrix, threads: usize, operation: &str) -> Result<AnySolved> {
    with_number!(a.kind, T => {
        let format = store.format::<T>(a, operation)?;
        let none = || not_triangular(operation, format.kernel());
        Ok(T::each(Solved::new(format, a, threads)?.ok_or_else(none)?))
    })
}

/// The distinct dot products of a sweep, grouped by common operand, those with a factor behind these and maxima last, and the
/// instructions after them.
fn distinct(sweep: &Sweep) -> (Box<[Dot]>, Box<[Instr]>) {
    let (dots, mut after) = sweep.distinct_dots();
    let by_slot = |dot: &lower::Dot| {
        let factor = dot.factor.map(|f| f.slot);
        Dot { cell: dot.cell, a: dot.a.slot, b: dot.b.slot, factor, largest: dot.largest }
    };
    let mut dots: Box<[Dot]> = dots.iter().map(by_slot).collect();
    dots.sort_by_key(|dot| (dot.largest, dot.factor.is_some()));
    let plain = dots.partition_point(|dot| dot.factor.is_none() && !dot.largest);
    if !sweep.kind().is_complex() {
        gather(&mut dots[..plain]);
    }
    after.extend_from_slice(sweep.after());
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
                let Dot { a, b, .. } = dots[k];
                dots[k] = Dot { a: if a == common { b } else { a }, b: common, ..dots[k] };
                dots.swap(next, k);
                next += 1;
            }
        }
        start = next;
    }
}

impl Compiled {
    /// The step that computes the pieces before a product with a matrix that has some.
    fn pieces_before(&mut self, step: &Step) -> Option<Step> {
        let StepKind::Spmv { a, x, columns, .. } = &step.kind else { return None };
        let sums = with_each!(a, a => a.partial_sums());
        if sums == 0 {
            return None;
        }
        self.pieces = self.pieces.max(sums * *columns as usize);
        let guards = step.before.iter().filter(|instr| matches!(instr, Instr::OnlyIf { .. }));
        Some(Step {
            kind: StepKind::Pieces { a: a.clone(), x: *x, columns: *columns },
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
fn mark_meetings(steps: &mut [Step]) {
    for i in 0..steps.len() {
        let multiplies = |step: &Step| {
            matches!(
                step.kind,
                StepKind::Spmv { .. }
                    | StepKind::Spmm { .. }
                    | StepKind::TriSolve { .. }
                    | StepKind::Host { .. }
            )
        };
        let step = &steps[i];
        let idle = matches!(step.kind, StepKind::Sweep) && step.n == 0;
        let decides = |code: &[Instr]| code.iter().any(Instr::is_control);
        let rowwise = !decides(&step.after)
            && steps.get(i + 1).is_some_and(|next| {
                !decides(&next.before)
                    && !multiplies(next)
                    && !matches!(next.kind, StepKind::Pieces { .. })
                    && step.shares == next.shares
            });
        steps[i].meet = !idle && (step.sums() > 0 || !rowwise || multiplies(step));
    }
}

/// Entries and elements that the steps touch.
pub(crate) fn work(steps: &[Step]) -> usize {
    steps.iter().map(Step::work).sum()
}

#[cfg(test)]
mod tests {
    use super::{Compiled, Dot, gather};
    use lacuna_engine::{Device, HostStore, Recorder, Reference};

    #[test]
    fn a_projection_alone_is_work_for_all_threads() {
        let dev = Device::new(Reference::new()).scope();
        let mut k = Recorder::<f64>::new(&dev, "projection");
        let n = crate::CpuOptions::PARALLEL_FROM;
        let (v, h) = (k.basis(n, 3), k.run_of_cells(2));
        k.basis_dot(v, v.column(2), h);
        let compiled = Compiled::new(&k.finish().unwrap(), &HostStore::new("none"), 2).unwrap();
        assert!(compiled.work >= n, "{}", compiled.work);
    }

    #[test]
    fn dots_with_a_common_operand_follow_each_other() {
        let pairs = [(1, 2), (3, 4), (5, 1), (4, 4), (6, 3), (1, 1)];
        let mut dots: Vec<_> = pairs
            .iter()
            .zip(0..)
            .map(|(&(a, b), cell)| Dot { cell, a, b, factor: None, largest: false })
            .collect();
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
