//! An iteration as data: operations in three sections, which a backend may run in any way.
use crate::expr::cells::Instr;
use crate::ir::control::COMMON_REASONS;
use crate::ir::operation::{Op, OpKind};
use crate::{Error, NumberType, Reason, Result, Section, Steps, next_serial};
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Something that is kept alive.
pub(crate) type Kept = Arc<dyn Send + Sync>;

/// A method as data. `setup` runs once, then `restart`, then `each` repeatedly until a test leaves it; then
/// `restart` again, until a test stops the program. Without a restart section, leaving the iteration stops
/// the program.
///
/// Only a [`Recorder`](crate::Recorder) makes one, and it checks what it made: a program that exists keeps the rules of
/// passes and operations.
#[derive(Clone)]
pub struct Program {
    pub(crate) name: &'static str,
    pub(crate) kind: NumberType,
    /// Runs once.
    pub(crate) setup: Vec<Op>,
    /// Runs at the start and whenever `each` was left.
    pub(crate) restart: Vec<Op>,
    /// Runs repeatedly: the part of the iteration after the steps.
    pub(crate) each: Vec<Op>,
    /// The rolled steps at the start of the iteration.
    pub(crate) steps: Option<Steps>,
    /// The whole iteration, unrolled on demand.
    unrolled: OnceLock<Vec<Op>>,
    /// Whether passes share sweeps.
    pub(crate) fusion: bool,
    /// The meaning of the reason indices of stop instructions.
    pub(crate) reasons: Vec<Reason>,
    /// What its handles refer to: lives as long as the program or its plan.
    _memory: Arc<Vec<Kept>>,
    /// Distinguishes it from every other program.
    pub(crate) serial: u32,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Program { name, setup, restart, each, steps, .. } = self;
        let mut program = f.debug_struct("Program");
        program.field("name", name).field("setup", setup).field("restart", restart);
        program.field("steps", steps).field("each", each).finish_non_exhaustive()
    }
}

impl Program {
    pub(crate) fn new(name: &'static str, kind: NumberType) -> Self {
        Program {
            name,
            kind,
            setup: Vec::new(),
            restart: Vec::new(),
            each: Vec::new(),
            steps: None,
            unrolled: OnceLock::new(),
            fusion: true,
            reasons: COMMON_REASONS.to_vec(),
            _memory: Arc::default(),
            serial: 0,
        }
    }
    /// The finished program, if it keeps the rules. `memory` is what its handles refer to.
    pub(crate) fn finish(self, memory: Vec<Kept>) -> Result<Self> {
        self.check()?;
        Ok(Program { _memory: Arc::new(memory), serial: next_serial(), ..self })
    }
    /// A program that runs one operation once: for backends whose primitives run like programs.
    ///
    /// # Errors
    /// As [`Op::check`].
    pub fn once(op: Op) -> Result<Self> {
        let program = Program::new("once", op.sweep.kind);
        Program { setup: vec![op], ..program }.finish(Vec::new())
    }
    /// The method's name.
    pub fn name(&self) -> &'static str {
        self.name
    }
    /// A number that no other program has.
    pub fn serial(&self) -> u32 {
        self.serial
    }
    /// Fails unless a plan was made for the program with this serial.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn check_plan(&self, serial: u32) -> Result<()> {
        let stale = || Error::Stale { operation: self.name.into(), what: "plan" };
        if self.serial == serial { Ok(()) } else { Err(stale()) }
    }
    /// The number type of its vectors and cells.
    pub fn kind(&self) -> NumberType {
        self.kind
    }
    /// The reason with the index of a stop instruction.
    pub fn reason(&self, index: u32) -> Reason {
        self.reasons.get(index as usize).copied().unwrap_or(Reason::Limit)
    }
    /// The operations of a section.
    pub fn section(&self, section: Section) -> &[Op] {
        match section {
            Section::Setup => &self.setup,
            Section::Restart => &self.restart,
            Section::Each => match &self.steps {
                Some(steps) => self.unrolled.get_or_init(|| self.unroll(steps)),
                None => &self.each,
            },
            Section::Stopped => &[],
        }
    }
    /// The steps at the start of the iteration, if it was recorded in steps.
    pub fn steps(&self) -> Option<&Steps> {
        self.steps.as_ref()
    }
    /// The operations of a section, without [`Program::steps`].
    pub fn section_behind_steps(&self, section: Section) -> &[Op] {
        if section == Section::Each { &self.each } else { self.section(section) }
    }
    fn unroll(&self, steps: &Steps) -> Vec<Op> {
        let mut ops = Vec::with_capacity(steps.count() * steps.first().len() + self.each.len());
        let all = (0..steps.count()).flat_map(|step| steps.at(step)).chain(self.each.iter().cloned());
        all.for_each(|op| op.follow(&mut ops, self.fusion));
        ops
    }
    /// A subset of the operations: if their vectors, matrices and cells are live, those of the whole program
    /// are.
    pub fn witnesses(&self) -> impl Iterator<Item = &Op> {
        let steps = self.steps.iter().flat_map(|steps| [steps.first(), steps.last()]).flatten();
        self.setup.iter().chain(&self.restart).chain(steps).chain(&self.each)
    }
    /// The operations of all sections.
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        Section::RUNNING.into_iter().flat_map(|section| self.section(section))
    }
    /// Whether every run of the restart section confirms a residual. A program that stops then goes there first; otherwise it stops
    /// where it is.
    pub fn confirms(&self) -> bool {
        let confirms = |i: &Instr| matches!(i, Instr::Confirm { .. });
        self.restart
            .iter()
            .any(|op| !op.is_conditional() && op.sweep.before.iter().chain(&op.sweep.after).any(confirms))
    }
    /// Whether there is an iteration.
    pub fn iterates(&self) -> bool {
        self.steps.is_some() || !self.each.is_empty()
    }
    /// Number of iterations that one run through `each` counts.
    pub fn counts(&self) -> usize {
        let counts = |ops: &[Op]| ops.iter().map(Op::counts).sum::<usize>();
        counts(&self.each) + self.steps.as_ref().map_or(0, |steps| steps.count() * counts(steps.first()))
    }
    /// The fewest bytes an iteration can move: see [`Program::bytes_of`].
    pub fn bytes_per_iteration(&self) -> usize {
        let counts = self.counts().max(1);
        self.bytes_of(counts as u64) as usize / counts
    }
    /// The fewest bytes that this many iterations can move (see [`Op::bytes`]), without operations that run
    /// only if a test holds. If `each` counts several iterations, its last run counts as far as it goes.
    pub fn bytes_of(&self, iterations: u64) -> u64 {
        let counts = self.counts().max(1) as u64;
        let bytes = Op::least_bytes;
        let each = self.section(Section::Each);
        let whole: u64 = each.iter().map(bytes).sum();
        let (mut left, mut part) = (iterations % counts, 0);
        for op in each {
            if left == 0 {
                break;
            }
            part += bytes(op);
            left = left.saturating_sub(op.counts() as u64);
        }
        iterations / counts * whole + part
    }
    /// The fewest bytes that a whole solve can move: setup, start, the given iterations and restarts, and the
    /// confirmation that ends it.
    pub fn bytes_of_solve(&self, iterations: u64, restarts: u64) -> u64 {
        let sum = |ops: &[Op]| ops.iter().map(Op::least_bytes).sum::<u64>();
        let confirmed = self.restart.iter().position(Op::confirms).map_or(0, |at| at + 1);
        let starts = (restarts + 1) * sum(&self.restart) + sum(&self.restart[..confirmed]);
        sum(&self.setup) + starts + self.bytes_of(iterations)
    }
    /// Operations of an iteration, which bounds its kernel launches.
    pub fn ops_per_iteration(&self) -> f64 {
        self.section(Section::Each).len() as f64 / self.counts().max(1) as f64
    }

    /// The program with each operation on several columns replaced by one per column if the backend has no kernel for
    /// several; unchanged if `together` holds for all such operations.
    pub fn column_by_column(&self, together: impl Fn(&OpKind) -> bool) -> Cow<'_, Self> {
        let stays = |op: &Op| !op.kind.takes_columns() || together(&op.kind);
        if self.witnesses().all(stays) {
            return Cow::Borrowed(self);
        }
        let apart = |ops: &[Op]| -> Vec<Op> {
            let columns = |op: &Op| if stays(op) { vec![op.clone()] } else { op.columns() };
            ops.iter().flat_map(columns).collect()
        };
        let [setup, restart, each] = Section::RUNNING.map(|section| apart(self.section(section)));
        let reasons = self.reasons.clone();
        let fusion = self.fusion;
        Cow::Owned(Program { setup, restart, each, reasons, fusion, ..Program::new(self.name, self.kind) })
    }
    /// Whether it calls functions of the host.
    pub fn calls_host(&self) -> bool {
        self.witnesses().any(|op| matches!(op.kind, OpKind::Host { .. }))
    }
    /// Whether it solves triangular systems.
    pub fn has_solves(&self) -> bool {
        self.witnesses().any(|op| matches!(op.kind, OpKind::TriSolve { .. }))
    }
    /// Whether some vectors are stored in the narrower type.
    pub fn has_narrow(&self) -> bool {
        self.witnesses().any(|op| op.vectors().any(|v| v.narrow))
    }
    /// Whether it has operations on several columns.
    pub fn has_columns(&self) -> bool {
        self.witnesses().any(|op| op.kind.takes_columns())
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.witnesses().try_for_each(Op::check)?;
        if self.iterates() && self.counts() == 0 {
            let message =
                "`each` counts no iteration and could run for ever; expected a pass with `count`".into();
            return Err(Error::Program { program: self.name.into(), message });
        }
        Ok(())
    }
}
