//! Records operations of any number type: what a [`Recorder`](crate::Recorder) does below its types.
use crate::expr::cells::Instr;
use crate::expr::pass::Statement;
use crate::ir::lower::{self, lower};
use crate::ir::operation::{Op, OpKind};
use crate::ir::program::{Kept, Program};
use crate::{
    Access, Basis, Cell, Cells, Device, Error, Number, NumberType, Operand, Owned, Reason, Result, Section,
    Steps, Test, Vector,
};
use std::sync::Arc;

/// Initial capacity for the operations of a section or a step.
const OPS: usize = 8;
/// Fewer steps than this are not rolled.
const FEW: usize = 4;
/// Cells allocated at a time.
const CELLS: usize = 64;

/// A program in the making. The first error is kept.
pub(crate) struct Recording<'a> {
    device: &'a Device,
    pub(crate) program: Program,
    memory: Vec<Kept>,
    section: Section,
    constants: Vec<(Number, u32)>,
    /// Cells for intermediate values, and how many of them are in use.
    temporaries: Vec<u32>,
    taken: usize,
    /// Cells that are allocated and not handed out.
    spare: Option<Cells>,
    /// The tests of the conditions that operations are within, the outermost first.
    guards: Vec<Test>,
    error: Option<Error>,
}

impl<'a> Recording<'a> {
    pub(crate) fn new(device: &'a Device, name: &'static str, kind: NumberType) -> Self {
        Recording {
            device,
            program: Program::new(name, kind),
            memory: Vec::new(),
            section: Section::Setup,
            constants: Vec::new(),
            temporaries: Vec::new(),
            taken: 0,
            spare: None,
            guards: Vec::new(),
            error: None,
        }
    }

    pub(crate) fn finish(self) -> Result<Program> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.program.finish(self.memory)
    }

    pub(crate) fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
    pub(crate) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Keeps something alive as long as the program.
    pub(crate) fn keep_alive(&mut self, what: Kept) {
        if !self.memory.iter().any(|kept| std::ptr::addr_eq(Arc::as_ptr(kept), Arc::as_ptr(&what))) {
            self.memory.push(what);
        }
    }

    /// What was made on the device, kept as long as the program; `otherwise` after an error.
    fn keep<H>(&mut self, made: Result<Owned<H>>, otherwise: H) -> H {
        match made {
            Ok(owned) => {
                let (handle, lease) = owned.into_parts();
                self.memory.push(lease);
                handle
            }
            Err(error) => {
                self.fail(error);
                otherwise
            }
        }
    }

    pub(crate) fn vector(&mut self, n: usize) -> Vector {
        let kind = self.program.kind;
        let vector = self.device.vector_of(kind, n);
        self.keep(vector, Vector::dangling(kind, n))
    }
    pub(crate) fn basis(&mut self, n: usize, columns: usize, narrow: bool) -> Basis {
        let kind = self.program.kind;
        let basis = self.device.basis_of(kind, n, columns, narrow);
        self.keep(basis, Basis::of(kind, 0, 0, n, columns, narrow))
    }
    /// A run of zero cells. Small runs are parts of larger allocations, so that the cells of a program lie together.
    pub(crate) fn cells(&mut self, count: usize) -> Cells {
        let kind = self.program.kind;
        if self.spare.is_none_or(|spare| (spare.count as usize) < count) {
            let cells = self.device.cells_of(kind, count.max(CELLS));
            let most = u32::try_from(count).unwrap_or(u32::MAX);
            let cells = self.keep(cells, Cells::of(kind, 0, most, 0));
            self.spare = Some(cells);
        }
        let Some(spare) = self.spare else { return Cells::of(kind, 0, 0, 0) };
        self.spare = Some(spare.part(count, spare.count as usize - count));
        spare.take(count)
    }
    pub(crate) fn write(&mut self, cell: Cell, value: Number) {
        if self.error.is_none()
            && let Err(error) = self.device.write_number(cell, value)
        {
            self.fail(error);
        }
    }
    pub(crate) fn upload(&mut self, numbers: &[u8], to: Vector) {
        if self.error.is_none()
            && let Err(error) = self.device.upload_bytes(numbers, to)
        {
            self.fail(error);
        }
    }

    /// Makes another section current; returns the former one.
    pub(crate) fn enter(&mut self, section: Section) -> Section {
        std::mem::replace(&mut self.section, section)
    }
    pub(crate) fn push_guard(&mut self, test: Test) {
        self.guards.push(test);
    }
    pub(crate) fn pop_guard(&mut self) {
        self.guards.pop();
    }

    /// Whether steps recorded now could be rolled.
    pub(crate) fn may_roll(&self, count: usize) -> bool {
        let begins = self.section == Section::Each && !self.program.iterates() && self.guards.is_empty();
        begins && count >= FEW
    }
    /// The number of intermediate values in use, which each step of a rolled iteration begins with.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }
    /// Begins to record a step apart from the program.
    pub(crate) fn begin_step(&mut self, taken: usize) {
        self.taken = taken;
    }
    /// The operations of the step.
    pub(crate) fn end_step(&mut self) -> Vec<Op> {
        std::mem::replace(&mut self.program.each, Vec::with_capacity(OPS))
    }
    pub(crate) fn set_steps(&mut self, steps: Steps) {
        self.program.steps = Some(steps);
    }

    /// Records an operation and a pass on the rows that it computes.
    pub(crate) fn record(&mut self, kind: OpKind, name: &'static str, statements: &[Statement]) {
        if self.error.is_some() {
            return;
        }
        let number = self.program.kind;
        let mut sweep = match lower(name, number, statements, self) {
            Ok(sweep) => sweep,
            Err(error) => return self.fail(error),
        };
        let mut kind = kind;
        let mut bare = None;
        if matches!(kind, OpKind::Sweep)
            && sweep.is_scalar()
            && sweep.before.is_empty()
            && sweep.after.is_empty()
        {
            return; // an empty pass is not worth a kernel
        }
        if !matches!(kind, OpKind::Sweep) {
            // The operation is complete before the pass begins: what the pass decides or sets first must not
            // come before the operation.
            let sets = |i: &Instr| i.writes().is_some_and(|c| kind.reads_cell(c));
            if sweep.is_scalar() {
                let after = std::mem::replace(&mut sweep.after, std::mem::take(&mut sweep.before));
                sweep.after.extend(after);
            } else if !self.program.fusion || sweep.before.iter().any(|i| i.is_control() || sets(i)) {
                let first = std::mem::replace(&mut kind, OpKind::Sweep);
                bare = Some(Op { kind: first, sweep: lower::Sweep::nothing(name, number) });
            }
        }
        for test in self.guards.iter().rev() {
            let sweeps = bare.iter_mut().map(|op| &mut op.sweep).chain([&mut sweep]);
            sweeps.for_each(|sweep| {
                sweep.before.insert(0, lower::only_if(*test));
                sweep.cells.extend(test.cells());
            });
        }
        let fusion = self.program.fusion;
        let ops = match self.section {
            Section::Setup | Section::Stopped => &mut self.program.setup,
            Section::Restart => &mut self.program.restart,
            Section::Each => &mut self.program.each,
        };
        ops.extend(bare);
        Op { kind, sweep }.follow(ops, fusion);
    }
}

impl Op {
    /// Appends this operation, or fuses it into the last one.
    pub(crate) fn follow(self, ops: &mut Vec<Self>, fusion: bool) {
        match (ops.last_mut(), &self.kind) {
            (Some(last), OpKind::Sweep) if fusion && last.can_fuse(&self.sweep) => {
                last.sweep.fuse(self.sweep)
            }
            _ => ops.push(self),
        }
    }

    /// Whether a sweep may be fused into this operation.
    fn can_fuse(&self, next: &lower::Sweep) -> bool {
        let fits = next.is_scalar()
            || matches!(self.kind, OpKind::Sweep)
            || self.kind.carries() && next.n == self.n();
        let early = |i: &Instr| i.writes().is_some_and(|c| self.kind.reads_cell(c));
        fits && (next.is_scalar() || !next.before.iter().any(early))
            && !next.updates.iter().any(|u| self.spoils(u.dst).is_some())
            && self.sweep.fuses_with(next)
    }
}

impl OpKind {
    /// Whether the operation needs the value of a cell while it processes its rows.
    fn reads_cell(&self, cell: u32) -> bool {
        self.operands().any(|operand| matches!(operand, Operand::Cells(h, Access::Read) if h.has(cell)))
    }
}

impl lower::Cells for Recording<'_> {
    fn constant(&mut self, value: Number) -> u32 {
        // Compared by bits: 0 and −0 are different.
        if let Some((_, cell)) = self.constants.iter().find(|(known, _)| *known == value) {
            return *cell;
        }
        let cell = self.cells(1);
        if cell.count == 0 {
            return 0;
        }
        let cell = cell.at(0);
        self.write(cell, value);
        self.constants.push((value, cell.index));
        cell.index
    }
    fn temporary(&mut self) -> u32 {
        if self.taken == self.temporaries.len() {
            let cell = self.cells(1).first;
            self.temporaries.push(cell);
        }
        self.taken += 1;
        self.temporaries[self.taken - 1]
    }
    fn reason(&mut self, reason: Reason) -> u32 {
        let reasons = &mut self.program.reasons;
        let at = reasons.iter().position(|r| *r == reason).unwrap_or_else(|| {
            reasons.push(reason);
            reasons.len() - 1
        });
        at as u32
    }
}
