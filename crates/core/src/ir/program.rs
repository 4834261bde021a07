//! An iteration as data: operations in three sections, which a backend may run in any way.
use crate::expr::cells::Instr;
use crate::ir::control::COMMON_REASONS;
use crate::ir::lower::Sweep;
use crate::ir::operands::{Access, Operand};
use crate::{Basis, Cells, Error, HostFunction, Matrix, Reason, Result, Scalar, Section, Steps, Vector};
use std::borrow::Cow;
use std::sync::OnceLock;

/// The operation before the sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind<T> {
    /// Nothing: `multi_axpy_dot`.
    Sweep,
    /// `y ← A x`, with the sweep applied to the rows just computed: `spmv_dot`.
    Spmv {
        /// The matrix.
        a: Matrix<T>,
        /// As long as the matrix has columns; the sweep must not write it.
        x: Vector<T>,
        /// As long as the matrix has rows.
        y: Vector<T>,
    },
    /// `Y ← A X`, bitwise equal to one [`Kind::Spmv`] per column, with the matrix read once for several
    /// columns. It has no sweep of its own.
    Spmm {
        /// The matrix.
        a: Matrix<T>,
        /// Columns as long as the matrix has columns.
        x: Basis<T>,
        /// The same number of columns, as long as the matrix has rows; none is a column of `x`.
        y: Basis<T>,
    },
    /// `h ← Vᴴ w` over the first `h.count` columns, all in one sweep over memory. It has no sweep of its own.
    BasisDot {
        /// The columns.
        v: Basis<T>,
        /// The vector.
        w: Vector<T>,
        /// One cell for each column used.
        h: Cells<T>,
    },
    /// `w ← w ∓ V h` over the first `h.count` columns in order, by `fma(∓h[j], v[j], w)`; a column whose
    /// coefficient is 0 is not read. The sweep is applied to the rows just computed.
    BasisAxpy {
        /// The columns.
        v: Basis<T>,
        /// One cell for each column used.
        h: Cells<T>,
        /// The vector.
        w: Vector<T>,
        /// Add instead of subtract.
        add: bool,
    },
    /// `x ← A⁻¹ b` with a triangular matrix, see [`Triangle`](crate::Triangle). It has no sweep of its own.
    TriSolve {
        /// The matrix, in a format that has a [`Format::triangle`](crate::Format::triangle).
        a: Matrix<T>,
        /// The right-hand side.
        b: Vector<T>,
        /// The solution; a different vector.
        x: Vector<T>,
    },
    /// `y ← f(x)` by a function on the host. It has no sweep of its own.
    Host {
        /// The function.
        f: HostFunction<T>,
        /// Its argument.
        x: Vector<T>,
        /// Its result; a different vector.
        y: Vector<T>,
    },
}

/// One operation of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op<T> {
    /// The operation itself.
    pub kind: Kind<T>,
    /// The pass fused with it.
    pub sweep: Sweep<T>,
}

impl<T: Scalar> Op<T> {
    /// Number of elements it processes.
    pub fn n(&self) -> usize {
        match self.kind {
            Kind::Sweep => self.sweep.n,
            Kind::Spmv { a, .. } | Kind::Spmm { a, .. } => a.rows,
            Kind::BasisDot { w, .. } | Kind::BasisAxpy { w, .. } => w.len,
            Kind::TriSolve { x, .. } => x.len,
            Kind::Host { y, .. } => y.len,
        }
    }

    /// Whether the operation runs only if a test holds.
    pub fn is_conditional(&self) -> bool {
        self.sweep.before.iter().any(|i| matches!(i, Instr::OnlyIf { .. }))
    }

    /// Number of iterations that the operation counts.
    pub fn counts(&self) -> usize {
        let code = self.sweep.before.iter().chain(&self.sweep.after);
        code.filter(|i| matches!(i, Instr::Count { .. })).count()
    }

    /// A product of several columns as one product per column; the last one has the sweep.
    fn columns(&self) -> Vec<Op<T>> {
        let Kind::Spmm { a, x, y } = self.kind else { return vec![self.clone()] };
        let before = self.sweep.before.iter().filter(|i| matches!(i, Instr::OnlyIf { .. })).copied();
        let bare = Sweep { before: before.collect(), name: self.sweep.name.clone(), ..Sweep::nothing("") };
        let mut ops: Vec<_> = (0..x.columns)
            .map(|j| Op {
                kind: Kind::Spmv { a, x: x.column(j), y: y.column(j) },
                sweep: if j + 1 == x.columns { self.sweep.clone() } else { bare.clone() },
            })
            .collect();
        if ops.is_empty() {
            ops.push(Op { kind: Kind::Sweep, sweep: self.sweep.clone() });
        }
        ops
    }

    /// The fewest bytes of an operation that may be skipped.
    fn least_bytes(&self) -> u64 {
        if self.is_conditional() { 0 } else { self.bytes() as u64 }
    }

    /// Whether a true residual is confirmed at the end of the operation.
    fn confirms(&self) -> bool {
        self.sweep.after.iter().any(|i| matches!(i, Instr::Confirm { .. }))
    }

    /// The fewest bytes the operation can move: each array it needs read once, each array it changes written
    /// once. A basis counts with all its columns in use.
    pub fn bytes(&self) -> usize {
        let times = |access: Access| access.reads() as usize + access.writes() as usize;
        let (mut bytes, mut at_hand) = (0, None);
        for operand in self.kind.operands() {
            bytes += match operand {
                Operand::Matrix(a) => a.bytes,
                Operand::Vector(v, access) => {
                    at_hand = if access == Access::Gather { Some(v) } else { at_hand };
                    times(access) * v.bytes()
                }
                Operand::Basis(v, access) => times(access) * v.bytes(),
                Operand::Cells(..) => 0,
            };
        }
        let fresh = self.kind.result();
        let moved = |(v, read, write): (Vector<T>, bool, bool)| {
            let read = read && Some(v) != fresh && Some(v) != at_hand;
            let write = write && Some(v) != fresh;
            (read as usize + write as usize) * v.bytes()
        };
        bytes + self.sweep.vectors().into_iter().map(moved).sum::<usize>()
    }

    fn check(&self) -> Result<()> {
        let name = &self.sweep.name;
        let fail = |message: &str| Err(Error::Pass { pass: name.to_string(), message: message.into() });
        if self.sweep.n != self.n() && !self.sweep.is_scalar() {
            Error::check_length(format_args!("pass `{name}`"), "its vectors", self.n(), self.sweep.n)?;
        }
        match &self.kind {
            Kind::Sweep => {}
            Kind::Spmv { a, x, y } => {
                let operation = format_args!("spmv_dot with pass `{name}`");
                Error::check_length(operation, "x", a.cols, x.len)?;
                Error::check_length(operation, "y", a.rows, y.len)?;
                if x == y {
                    return fail("y ← A x with y the same vector as x");
                }
            }
            Kind::Spmm { a, x, y } => {
                Error::check_length("spmm", "a column of X", a.cols, x.len)?;
                Error::check_length("spmm", "a column of Y", a.rows, y.len)?;
                Error::check_length("spmm", "the columns of Y", x.columns, y.columns)?;
                if x.overlaps(*y) {
                    return fail("Y ← A X with a column of Y that is one of X");
                }
            }
            Kind::BasisDot { v, w, h } => {
                Error::check_length("basis_dot", "w", v.len, w.len)?;
                if h.count as usize > v.columns {
                    return fail("basis_dot over more columns than the basis has");
                }
            }
            Kind::BasisAxpy { v, h, w, .. } => {
                Error::check_length("basis_axpy", "w", v.len, w.len)?;
                if h.count as usize > v.columns {
                    return fail("basis_axpy over more columns than the basis has");
                }
                if v.has(*w, h.count) {
                    return fail("basis_axpy changes a column that it uses");
                }
            }
            Kind::TriSolve { a, b, x } => crate::ir::triangle::check_solve(name, *a, *b, *x)?,
            Kind::Host { x, y, .. } => {
                if x == y {
                    return fail("y ← f(x) with y the same vector as x");
                }
                if x.narrow || y.narrow {
                    return fail("a host function on a vector that is stored narrow");
                }
            }
        }
        if !self.kind.carries() && !self.sweep.is_scalar() {
            return fail("it rides on an operation that takes no pass");
        }
        match self.sweep.updates.iter().find_map(|u| self.spoils(u.dst)) {
            Some(message) => fail(message),
            None => Ok(()),
        }
    }

    /// The reason why a pass fused with the operation must not write a vector.
    pub(crate) fn spoils(&self, dst: Vector<T>) -> Option<&'static str> {
        self.kind.operands().find_map(|operand| match operand {
            Operand::Vector(x, Access::Gather) if x == dst => {
                Some("it writes the operand of the product it rides on, which other rows still need")
            }
            Operand::Basis(v, access) if access.reads() && v.has(dst, v.columns as u32) => {
                Some("it writes a column of the basis it rides on")
            }
            _ => None,
        })
    }
}

/// A method as data. `setup` runs once, then `restart`, then `each` repeatedly until a test leaves it; then
/// `restart` again, until a test stops the program. Without a restart section, leaving the iteration stops
/// the program.
#[derive(Clone, Debug)]
pub struct Program<T> {
    /// The method's name.
    pub name: &'static str,
    /// Runs once.
    pub setup: Vec<Op<T>>,
    /// Runs at the start and whenever `each` was left.
    pub restart: Vec<Op<T>>,
    /// Runs repeatedly: the part of the iteration after the steps.
    pub(crate) each: Vec<Op<T>>,
    /// The rolled steps at the start of the iteration.
    pub(crate) steps: Option<Steps<T>>,
    /// The whole iteration, unrolled on demand.
    unrolled: OnceLock<Vec<Op<T>>>,
    /// Whether passes share sweeps.
    pub(crate) fusion: bool,
    /// The meaning of the reason indices of stop instructions.
    pub reasons: Vec<Reason>,
}

impl<T: Scalar> Program<T> {
    /// An empty program.
    pub fn new(name: &'static str) -> Self {
        Program {
            name,
            setup: Vec::new(),
            restart: Vec::new(),
            each: Vec::new(),
            steps: None,
            unrolled: OnceLock::new(),
            fusion: true,
            reasons: COMMON_REASONS.to_vec(),
        }
    }
    /// The operations of a section.
    pub fn section(&self, section: Section) -> &[Op<T>] {
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
    pub fn steps(&self) -> Option<&Steps<T>> {
        self.steps.as_ref()
    }
    /// The operations of a section, without [`Program::steps`].
    pub fn section_behind_steps(&self, section: Section) -> &[Op<T>] {
        if section == Section::Each { &self.each } else { self.section(section) }
    }
    fn unroll(&self, steps: &Steps<T>) -> Vec<Op<T>> {
        let mut ops = Vec::with_capacity(steps.count() * steps.first().len() + self.each.len());
        let all = (0..steps.count()).flat_map(|step| steps.at(step)).chain(self.each.iter().cloned());
        all.for_each(|op| op.follow(&mut ops, self.fusion));
        ops
    }
    /// A subset of the operations: if their vectors, matrices and cells are live, those of the whole program
    /// are.
    pub(crate) fn witnesses(&self) -> impl Iterator<Item = &Op<T>> {
        let steps = self.steps.iter().flat_map(|steps| [steps.first(), steps.last()]).flatten();
        self.setup.iter().chain(&self.restart).chain(steps).chain(&self.each)
    }
    /// The operations of all sections.
    pub fn ops(&self) -> impl Iterator<Item = &Op<T>> {
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
        let counts = |ops: &[Op<T>]| ops.iter().map(Op::counts).sum::<usize>();
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
        let sum = |ops: &[Op<T>]| ops.iter().map(Op::least_bytes).sum::<u64>();
        let confirmed = self.restart.iter().position(Op::confirms).map_or(0, |at| at + 1);
        let starts = (restarts + 1) * sum(&self.restart) + sum(&self.restart[..confirmed]);
        sum(&self.setup) + starts + self.bytes_of(iterations)
    }
    /// Operations of an iteration, which bounds its kernel launches.
    pub fn ops_per_iteration(&self) -> f64 {
        self.section(Section::Each).len() as f64 / self.counts().max(1) as f64
    }

    /// The program with each product of several columns replaced by one product per column if the backend has
    /// no kernel for several; unchanged if `together` holds for the matrices of all such products.
    pub fn column_by_column(&self, together: impl Fn(Matrix<T>) -> bool) -> Cow<'_, Self> {
        let stays = |op: &Op<T>| !matches!(op.kind, Kind::Spmm { a, .. } if !together(a));
        if self.witnesses().all(stays) {
            return Cow::Borrowed(self);
        }
        let apart = |ops: &[Op<T>]| -> Vec<Op<T>> {
            let columns = |op: &Op<T>| if stays(op) { vec![op.clone()] } else { op.columns() };
            ops.iter().flat_map(columns).collect()
        };
        let [setup, restart, each] = Section::RUNNING.map(|section| apart(self.section(section)));
        let reasons = self.reasons.clone();
        Cow::Owned(Program { setup, restart, each, reasons, fusion: self.fusion, ..Program::new(self.name) })
    }
    /// Whether it calls functions of the host.
    pub fn calls_host(&self) -> bool {
        self.witnesses().any(|op| matches!(op.kind, Kind::Host { .. }))
    }
    /// Whether it solves triangular systems.
    pub fn has_solves(&self) -> bool {
        self.witnesses().any(|op| matches!(op.kind, Kind::TriSolve { .. }))
    }
    /// Whether some vectors are stored in the narrower type.
    pub fn has_narrow(&self) -> bool {
        self.witnesses().any(|op| op.vectors().any(|v| v.narrow))
    }
    /// Whether it has products of several columns.
    pub fn has_columns(&self) -> bool {
        self.witnesses().any(|op| matches!(op.kind, Kind::Spmm { .. }))
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
