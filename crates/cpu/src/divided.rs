//! The CPU as one of several devices that share a system: the calling thread runs operations on some segments of all rows.
//!
//! Vectors have their whole length, but the system backs only those pages with memory that are written: so matrices, kernels
//! and programs are those of the whole system.
use crate::plan::compile::Compiled;
use crate::plan::step::{Step, StepKind};
use crate::run::arena::{Arena, Thread};
use crate::run::execute::evaluate_rotating;
use crate::run::share::{self, Share};
use crate::spmv::{Stored, hyb};
use crate::{Cpu, Planned, find};
use lacuna_engine::cells::{Instr, Machine};
use lacuna_engine::division::{Subtree, tree_maxima, tree_sums};
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::{
    Divided, Error, HostStore, OpAt, PlanId, Program, Result, Scalar, State, Vector, catching, with_each,
};
use pulp::Arch;
use std::ops::Range;

/// What errors name.
const OPERATION: &str = "a part of an operation";

/// A step of a plan, and the one that computes the pieces of long rows before it.
fn step_at<'a, T: Scalar>(
    compiled: &'a Compiled,
    threads: &'a mut [Thread<T>],
    at: OpAt,
) -> Result<(&'a Step, Option<&'a Step>)> {
    let steps = match (at.step, threads.first_mut().and_then(|thread| thread.rolled.as_mut())) {
        (Some(step), Some(rolled)) => rolled.at(step),
        _ => compiled.sections.get(at.section as usize).map_or(&[][..], |steps| steps),
    };
    let is_own = |(_, step): &(usize, &Step)| !matches!(step.kind, StepKind::Pieces { .. });
    let found = match compiled.pieces {
        0 => steps.get(at.index).map(|step| (at.index, step)),
        _ => steps.iter().enumerate().filter(is_own).nth(at.index),
    };
    let (place, step) =
        found.ok_or_else(|| Error::Stale { operation: OPERATION.into(), what: "place in a program" })?;
    let before = place.checked_sub(1).map(|before| &steps[before]);
    Ok((step, before.filter(|step| matches!(step.kind, StepKind::Pieces { .. }))))
}

/// Evaluates instructions on the cells of a store, after the sums were stored in theirs.
fn evaluate<T: Scalar>(
    _: &[*mut T],
    (store, arch): (&mut HostStore, Arch),
    step: &Step,
    code: &[Instr],
    sums: &[u8],
    state: State<'_>,
) -> bool {
    let mut machine = Machine {
        cells: std::mem::take(store.all_cells_mut::<T>()),
        control: *state.control,
        history: std::mem::take(state.history),
    };
    let mut sums = sums.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>);
    if sums.len() > 0 {
        machine.cells[step.summed()].iter_mut().zip(&mut sums).for_each(|(cell, sum)| *cell = sum);
    }
    step.dots.iter().zip(sums).for_each(|(dot, sum)| machine.cells[dot.cell as usize] = sum);
    let continues =
        if step.rotates { evaluate_rotating(arch, &mut machine, code) } else { machine.run(code) };
    *store.all_cells_mut::<T>() = machine.cells;
    (*state.control, *state.history) = (machine.control, machine.history);
    continues
}

/// Runs a step on some segments of its rows.
///
/// # Safety
/// The vectors of the arena must be those of the program, live and used by nobody else.
unsafe fn part<T: Scalar>(
    compiled: &Compiled,
    arena: &mut Arena<T>,
    (arch, cells): (Arch, &[T]),
    at: OpAt,
    segments: Range<usize>,
) -> Result<()> {
    let mut terms = std::mem::take(&mut arena.threads[0].private.terms);
    let (vectors, sums, pieces) = (&arena.vectors, arena.sums.as_mut_ptr(), arena.pieces.as_mut_ptr());
    let (step, pieces_before) = step_at(compiled, &mut arena.threads, at)?;
    let end = step.n.div_ceil(SEGMENT);
    let segments = segments.start.min(end)..segments.end.min(end);
    terms.resize(compiled.terms, crate::pass::update::BoundTerm::NONE);
    share::bind(step, vectors, cells, &mut terms);
    let on = |step: &Step, segments: Range<usize>| {
        let share = Share { step, vectors, cells, terms: &terms, segments, sums, pieces };
        // SAFETY: as the caller promises.
        unsafe { share::run(arch, &share) };
    };
    let done = match &step.kind {
        StepKind::Host { f, x, cols, y } => {
            let [x, y] = [x, y].map(|v| vectors[*v as usize]);
            // SAFETY: two vectors of these lengths, as the caller promises.
            let (x, y) =
                unsafe { (std::slice::from_raw_parts(x, *cols), std::slice::from_raw_parts_mut(y, step.n)) };
            f.call(x, y)
        }
        StepKind::TriSolve { a, b, x } => {
            let vectors = [b, x].map(|v| vectors[*v as usize]);
            let rows = segments.start * SEGMENT..(segments.end * SEGMENT).min(step.n);
            let solve = || {
                if let Some(a) = a.get::<T>() {
                    // SAFETY: two vectors of the matrix's length, as the caller promises.
                    unsafe { a.rows(arch, vectors, rows) };
                }
                Ok(())
            };
            catching(solve)
        }
        StepKind::Spmv { a, .. } if a.get::<T>().is_some_and(Stored::is_foreign) => catching(|| {
            on(step, segments);
            Ok(())
        }),
        StepKind::Spmv { a, .. } => {
            if let (Some(before), Some(Stored::Hyb(a))) = (pieces_before, a.get::<T>()) {
                on(before, hyb::pieces_of(a, segments.clone()));
            }
            on(step, segments);
            Ok(())
        }
        _ => {
            on(step, segments);
            Ok(())
        }
    };
    arena.threads[0].private.terms = terms;
    done
}

impl Divided for Cpu {
    fn begin(&mut self, program: &Program, plan: PlanId) -> Result<()> {
        self.resolve(program, plan)
    }
    fn is_rolled(&self, plan: PlanId) -> bool {
        self.plans.get(plan.index, plan.serial).is_some_and(|prepared| prepared.compiled.rolled.is_some())
    }
    fn sum_count(&mut self, plan: PlanId, at: OpAt) -> Result<usize> {
        let Planned { compiled, arena, .. } = find(&mut self.plans, plan, OPERATION)?;
        with_each!(arena, arena => step_at(compiled, &mut arena.threads, at).map(|(step, _)| step.sums()))
    }
    fn maximum_count(&mut self, plan: PlanId, at: OpAt) -> Result<usize> {
        let Planned { compiled, arena, .. } = find(&mut self.plans, plan, OPERATION)?;
        with_each!(arena, arena => step_at(compiled, &mut arena.threads, at).map(|(step, _)| step.maxima()))
    }
    fn before(&mut self, plan: PlanId, at: OpAt, state: State<'_>) -> Result<bool> {
        let Planned { compiled, arena, .. } = find(&mut self.plans, plan, OPERATION)?;
        with_each!(arena, arena => {
            let (step, _) = step_at(compiled, &mut arena.threads, at)?;
            if step.before.is_empty() {
                return Ok(true);
            }
            Ok(evaluate(&arena.vectors, (&mut self.store, self.arch), step, &step.before, &[], state))
        })
    }
    fn part(&mut self, plan: PlanId, at: OpAt, segments: Range<usize>) -> Result<()> {
        let Planned { compiled, arena, epoch, .. } = find(&mut self.plans, plan, OPERATION)?;
        if *epoch != self.store.epoch() {
            return Err(Error::Stale { operation: OPERATION.into(), what: "plan" });
        }
        // SAFETY: all vectors were live when the pointers were resolved, nothing was freed since, and the store is borrowed.
        with_each!(arena, arena => unsafe {
            part(compiled, arena, (self.arch, self.store.all_cells()), at, segments)
        })
    }
    fn sums(&mut self, plan: PlanId, at: OpAt, trees: &[Subtree], to: &mut Vec<u8>) -> Result<()> {
        let Planned { compiled, arena, .. } = find(&mut self.plans, plan, OPERATION)?;
        with_each!(arena, arena => {
            let (step, _) = step_at(compiled, &mut arena.threads, at)?;
            let (count, sums) = (step.n.div_ceil(SEGMENT), step.sums());
            if count > 0 {
                let mut append = |sum| to.extend_from_slice(bytemuck::bytes_of(&sum));
                let all = arena.sums[..count * sums].chunks_exact(count).enumerate();
                for (sum, of_segments) in all {
                    let trees = trees.iter().copied();
                    match sum < sums - step.maxima() {
                        true => tree_sums(trees, of_segments).for_each(&mut append),
                        false => tree_maxima(trees, of_segments).for_each(&mut append),
                    }
                }
            }
            Ok(())
        })
    }
    fn after(&mut self, plan: PlanId, at: OpAt, sums: &[u8], state: State<'_>) -> Result<()> {
        let Planned { compiled, arena, .. } = find(&mut self.plans, plan, OPERATION)?;
        with_each!(arena, arena => {
            let (step, _) = step_at(compiled, &mut arena.threads, at)?;
            if !step.after.is_empty() || !sums.is_empty() {
                evaluate(&arena.vectors, (&mut self.store, self.arch), step, &step.after, sums, state);
            }
            Ok(())
        })
    }
    fn rows_of(&mut self, v: Vector, rows: &[Range<usize>], to: &mut Vec<u8>) -> Result<()> {
        self.store.rows_of(v, rows, to)
    }
    fn set_rows(&mut self, v: Vector, rows: &[Range<usize>], from: &[u8]) -> Result<()> {
        self.store.set_rows(v, rows, from)
    }
    fn clear_rows(&mut self, v: Vector, rows: Range<usize>) -> Result<()> {
        self.store.clear_rows(v, rows)
    }
}
