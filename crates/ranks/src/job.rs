//! A program cut at its exchanges: what has to be sent for each operation.
use crate::halo::Halo;
use crate::lengths::{Division, Lengths};
use lacuna_engine::{
    AnyFormat, Divided, Matrix, NumberType, Op, OpAt, OpKind, PlanId, Program, Result, Section, Vector,
};
use std::collections::HashMap;
use std::sync::Arc;

/// What the ranks do before and while they run an operation.
pub(crate) enum Exchange {
    /// Nothing: its rows need their own elements alone.
    Nothing,
    /// They exchange the halos of some vectors for a product with one matrix.
    Halo(Vec<Vector>, Arc<Halo>),
    /// They gather vectors of one length.
    Gather(Vec<Vector>, Arc<Division>),
    /// They exchange halos, and gather the results, of which all need all.
    Spread { from: Vec<Vector>, halo: Arc<Halo>, to: Vec<Vector> },
    /// They gather the first vector; rank 0 calls a function of the host, and hands on the second.
    Host(Vector, Arc<Division>, Vector),
}

/// An operation of a program.
pub(crate) struct Task {
    pub(crate) at: OpAt,
    pub(crate) kind: NumberType,
    pub(crate) division: Arc<Division>,
    /// Whether every rank computes all rows, whatever the division says.
    pub(crate) all_rows: bool,
    pub(crate) exchange: Exchange,
    /// Number of sums over all rows.
    pub(crate) sums: usize,
    /// How many of them, the last ones, are maxima.
    pub(crate) maxima: usize,
}

/// A matrix on the device.
pub(crate) struct Placed {
    pub(crate) format: AnyFormat,
    /// For products and for solves.
    pub(crate) halos: [Option<Known>; 2],
}

/// The halo of a matrix, if it is known what the format reads, for one division of rows and columns.
pub(crate) struct Known {
    halo: Option<Arc<Halo>>,
    of: [Arc<Division>; 2],
}

impl Placed {
    pub(crate) fn new(format: AnyFormat) -> Self {
        Placed { format, halos: [None, None] }
    }
    pub(crate) fn halo(&mut self, rows: &Arc<Division>, cols: &Arc<Division>) -> Option<Arc<Halo>> {
        self.known(0, [rows, cols], |format| Halo::new(format, &rows.cuts, &cols.cuts))
    }
    fn halo_of_solves(&mut self, rows: &Arc<Division>) -> Option<Arc<Halo>> {
        self.known(1, [rows, rows], |format| Halo::of_solves(format, &rows.cuts))
    }
    fn known(
        &mut self,
        which: usize,
        of: [&Arc<Division>; 2],
        find: impl FnOnce(&AnyFormat) -> Option<Halo>,
    ) -> Option<Arc<Halo>> {
        let Placed { format, halos } = self;
        let is_of = |known: &Known| (0..2).all(|k| Arc::ptr_eq(&known.of[k], of[k]));
        if !halos[which].as_ref().is_some_and(is_of) {
            halos[which] = Some(Known { halo: find(format).map(Arc::new), of: of.map(Arc::clone) });
        }
        halos[which].as_ref().and_then(|known| known.halo.clone())
    }
}

/// A program, planned on every rank.
pub(crate) struct Job {
    /// The serial of the program.
    pub(crate) program: u32,
    pub(crate) plan: PlanId,
    /// The rolled steps at the start of the iteration.
    pub(crate) steps: Vec<Vec<Task>>,
    /// Setup, restart, and the iteration behind the steps.
    pub(crate) sections: [Vec<Task>; 3],
}

impl Job {
    /// A number that tells jobs apart, equal for equal programs in all processes.
    pub(crate) fn word(&self) -> u64 {
        let tasks = self.steps.iter().chain(&self.sections).flatten();
        tasks.fold(1, |sum: u64, task| {
            let exchange = match task.exchange {
                Exchange::Nothing => 0,
                Exchange::Halo(..) => 1,
                Exchange::Gather(..) => 2,
                Exchange::Spread { .. } => 3,
                Exchange::Host(..) => 4,
            };
            let own = task.division.cuts.n() * 64 + task.sums * 8 + exchange;
            sum.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ own as u64
        })
    }
}

/// What a job is made from.
pub(crate) struct Maker<'a> {
    pub(crate) part: &'a mut dyn Divided,
    pub(crate) lengths: &'a mut Lengths,
    pub(crate) matrices: &'a mut HashMap<u32, Placed>,
}

impl Maker<'_> {
    /// # Errors
    /// As [`Divided::sum_count`].
    pub(crate) fn job(&mut self, program: &Program, plan: PlanId) -> Result<Job> {
        let mut job =
            Job { program: program.serial(), plan, steps: Vec::new(), sections: Default::default() };
        let rolled = program.steps().filter(|_| self.part.is_rolled(plan));
        if let Some(steps) = rolled {
            for step in 0..steps.count() {
                let at = |index| OpAt { section: Section::Each, step: Some(step as u32), index };
                job.steps.push(self.tasks(&steps.at(step), plan, at)?);
            }
        }
        for (tasks, section) in job.sections.iter_mut().zip(Section::RUNNING) {
            let ops = match rolled {
                Some(_) => program.section_behind_steps(section),
                None => program.section(section),
            };
            *tasks = self.tasks(ops, plan, |index| OpAt { section, step: None, index })?;
        }
        Ok(job)
    }

    fn tasks(&mut self, ops: &[Op], plan: PlanId, at: impl Fn(usize) -> OpAt) -> Result<Vec<Task>> {
        ops.iter().enumerate().map(|(index, op)| self.task(op, plan, at(index))).collect()
    }

    fn task(&mut self, op: &Op, plan: PlanId, at: OpAt) -> Result<Task> {
        let division = self.lengths.division(op.n());
        let (sums, maxima) = (self.part.sum_count(plan, at)?, self.part.maximum_count(plan, at)?);
        let mut all_rows = false;
        let exchange = match &op.kind {
            OpKind::Sweep
            | OpKind::BasisDot { .. }
            | OpKind::BasisAxpy { .. }
            | OpKind::BasisGram { .. }
            | OpKind::BasisCombine { .. } => Exchange::Nothing,
            &OpKind::Spmv { a, x, y } => self.product(a, vec![x], vec![y], op.sweep.is_scalar()),
            &OpKind::Spmm { a, x, y } => {
                let columns = |v: lacuna_engine::Basis| (0..v.columns).map(|j| v.column(j)).collect();
                self.product(a, columns(x), columns(y), op.sweep.is_scalar())
            }
            &OpKind::TriSolve { a, b, .. } => {
                let of = self.lengths.division(b.len);
                let halo = self.matrices.get_mut(&a.serial).and_then(|placed| placed.halo_of_solves(&of));
                match halo {
                    _ if of.whole => Exchange::Nothing,
                    Some(halo) => Exchange::Halo(vec![b], halo),
                    None => {
                        all_rows = true;
                        Exchange::Gather(vec![b], of)
                    }
                }
            }
            &OpKind::Host { x, y, .. } => {
                all_rows = true;
                Exchange::Host(x, self.lengths.division(x.len), y)
            }
        };
        Ok(Task { at, kind: op.sweep.kind(), division, all_rows, exchange, sums, maxima })
    }

    /// What a product exchanges; `alone` if no updates and dot products ride on it.
    fn product(&mut self, a: Matrix, from: Vec<Vector>, to: Vec<Vector>, alone: bool) -> Exchange {
        let [rows, cols] = [a.rows, a.cols].map(|n| self.lengths.division(n));
        if cols.whole {
            return Exchange::Nothing;
        }
        let halo = self.matrices.get_mut(&a.serial).and_then(|placed| placed.halo(&rows, &cols));
        match (halo, rows.whole) {
            (Some(halo), true) if alone => Exchange::Spread { from, halo, to },
            (Some(halo), false) => Exchange::Halo(from, halo),
            _ => Exchange::Gather(from, cols),
        }
    }
}
