//! Records a method as a program.
use crate::expr::cells::Instr;
use crate::ir::lower::{self, lower};
use crate::ir::operation::{Kind, Op};
use crate::ir::program::Program;
use crate::{
    Access, Basis, Cell, Cells, Error, HostFunction, LinOp, Matrix, Operand, Pass, Reason, Result, Scalar,
    Section, Steps, Test, Vector,
};

/// Initial capacity for the operations of a section or a step.
const OPS: usize = 8;

/// Fewer steps than this are not rolled.
const FEW: usize = 4;

/// What a recorder needs from a backend: memory. Every [`Backend`](crate::Backend) implements it.
pub trait Memory<T: Scalar> {
    /// A vector of `n` zeros.
    fn vector(&mut self, n: usize) -> Result<Vector<T>>;
    /// `columns` vectors of `n` elements, stored consecutively, with unspecified contents until they are
    /// written.
    fn basis(&mut self, n: usize, columns: usize) -> Result<Basis<T>>;
    /// The same in [`Scalar::Narrow`].
    fn narrow_basis(&mut self, n: usize, columns: usize) -> Result<Basis<T>>;
    /// A run of zero cells.
    fn cells(&mut self, count: usize) -> Result<Cells<T>>;
    /// Sets a cell.
    fn write(&mut self, cell: Cell<T>, value: T) -> Result<()>;
    /// Sets a vector.
    fn upload(&mut self, numbers: &[T], to: Vector<T>) -> Result<()>;
}

/// Records operations into a [`Program`].
///
/// No method of a recorder fails: the first error is kept and returned by [`Recorder::finish`], so that the
/// source of a method is its algorithm.
pub struct Recorder<'a, T: Scalar> {
    memory: &'a mut dyn Memory<T>,
    program: Program<T>,
    section: Section,
    constants: Vec<(T, u32)>,
    /// Cells for intermediate values, and how many of them are in use.
    temporaries: Vec<u32>,
    taken: usize,
    /// The tests of the conditions that operations are within, the outermost first.
    guards: Vec<Test<T>>,
    error: Option<Error>,
}

impl<'a, T: Scalar> Recorder<'a, T> {
    /// Starts a program of the given name.
    pub fn new(memory: &'a mut dyn Memory<T>, name: &'static str) -> Self {
        Recorder {
            memory,
            program: Program::new(name),
            section: Section::Setup,
            constants: Vec::new(),
            temporaries: Vec::new(),
            taken: 0,
            guards: Vec::new(),
            error: None,
        }
    }

    /// Does not fuse passes that could share a sweep: for measuring the effect of fusion.
    pub fn without_fusion(mut self) -> Self {
        self.program.fusion = false;
        self
    }

    /// The program, or the first error recorded.
    pub fn finish(self) -> Result<Program<T>> {
        match self.error {
            Some(error) => Err(error),
            None => self.program.check().map(|()| self.program),
        }
    }

    /// Records an error; only the first one is kept.
    pub fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    fn keep<R>(&mut self, result: Result<R>, otherwise: R) -> R {
        result.unwrap_or_else(|error| {
            self.fail(error);
            otherwise
        })
    }

    /// A vector of `n` zeros.
    pub fn vector(&mut self, n: usize) -> Vector<T> {
        let vector = self.memory.vector(n);
        self.keep(vector, Vector::dangling(n))
    }
    /// A vector with these values, which persist unless the program writes them.
    pub fn vector_of(&mut self, numbers: &[T]) -> Vector<T> {
        let vector = self.vector(numbers.len());
        let uploaded = if self.error.is_none() { self.memory.upload(numbers, vector) } else { Ok(()) };
        self.keep(uploaded, ());
        vector
    }
    /// `N` vectors of `n` zeros.
    pub fn vectors<const N: usize>(&mut self, n: usize) -> [Vector<T>; N] {
        std::array::from_fn(|_| self.vector(n))
    }
    /// A vector of `n` elements stored in [`Scalar::Narrow`], with unspecified contents until it is written.
    pub fn narrow_vector(&mut self, n: usize) -> Vector<T> {
        let basis = self.memory.narrow_basis(n, 1);
        self.keep(basis.map(|basis| basis.column(0)), Vector::dangling(n))
    }
    /// `columns` vectors of `n` elements stored in [`Scalar::Narrow`].
    pub fn narrow_basis(&mut self, n: usize, columns: usize) -> Basis<T> {
        let basis = self.memory.narrow_basis(n, columns);
        self.keep(basis, Basis::new(0, 0, n, columns, true))
    }
    /// `N` cells.
    pub fn cells<const N: usize>(&mut self) -> [Cell<T>; N] {
        let run = self.run_of_cells(N);
        std::array::from_fn(|i| run.at(i))
    }
    /// A run of cells.
    pub fn run_of_cells(&mut self, count: usize) -> Cells<T> {
        let cells = self.memory.cells(count);
        self.keep(cells, Cells::new(0, u32::try_from(count).unwrap_or(u32::MAX), 0))
    }
    /// `columns` vectors of `n` elements, stored consecutively, with unspecified contents until they are
    /// written.
    pub fn basis(&mut self, n: usize, columns: usize) -> Basis<T> {
        let basis = self.memory.basis(n, columns);
        self.keep(basis, Basis::new(0, 0, n, columns, false))
    }

    /// Records the operations of `body` as the restart section: it runs at the start and whenever the
    /// iteration was left.
    pub fn restart(&mut self, body: impl FnOnce(&mut Self)) {
        self.within(Section::Restart, body);
    }
    /// Records the operations of `body` as the iteration, which runs repeatedly.
    pub fn each(&mut self, body: impl FnOnce(&mut Self)) {
        self.within(Section::Each, body);
    }
    /// Records the operations of `body` as conditional: each is skipped unless the test, and those of the conditions
    /// around it, hold when it is reached.
    pub fn when(&mut self, test: Test<T>, body: impl FnOnce(&mut Self)) {
        self.guards.push(test);
        body(self);
        self.guards.pop();
    }
    /// Records the operations of `body` for the steps `0..count` of an iteration, in order. If the steps
    /// differ only in numbers that grow by a constant stride, such as columns of a basis and cells of a run,
    /// their operations are stored and prepared once. This is decided from steps 0, 1 and `count - 1`: `body`
    /// must not treat a step between them differently, which debug builds check, and it must record the same
    /// operations whenever it is called for the same step.
    pub fn steps(&mut self, count: usize, body: impl Fn(&mut Self, usize)) {
        match self.rolled(count, &body) {
            Some(steps) => self.program.steps = Some(steps),
            None => (0..count).for_each(|step| body(self, step)),
        }
    }
    fn rolled(&mut self, count: usize, body: &impl Fn(&mut Self, usize)) -> Option<Steps<T>> {
        let begins = self.section == Section::Each && !self.program.iterates() && self.guards.is_empty();
        if !begins || count < FEW {
            return None;
        }
        let taken = self.taken;
        let mut record = |step| {
            self.taken = taken;
            body(self, step);
            std::mem::replace(&mut self.program.each, Vec::with_capacity(OPS))
        };
        let steps = Steps::new(count, [0, 1, count - 1].map(&mut record))?;
        if cfg!(debug_assertions)
            && let Some(odd) = (2..count).find(|step| steps.at(*step) != record(*step))
        {
            let message = format!("step {odd} does not go on as steps 0, 1 and {} do", count - 1);
            self.fail(Error::Program { program: self.program.name.into(), message });
        }
        self.error.is_none().then_some(steps)
    }
    fn within(&mut self, section: Section, body: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.section, section);
        body(self);
        self.section = outer;
    }

    /// Runs a pass. It is fused into the sweep of the previous operation if the result is the same.
    pub fn multi_axpy_dot(&mut self, pass: Pass<T>) {
        self.record(Kind::Sweep, &pass);
    }
    /// `y ← A x`, and the pass on the rows just computed.
    pub fn spmv_dot(&mut self, a: &dyn LinOp<T>, x: Vector<T>, y: Vector<T>, pass: Pass<T>) {
        let (rows, cols) = a.shape();
        for (what, expected, got) in [("x", cols, x.len), ("y", rows, y.len)] {
            let operation = format_args!("product with pass `{}`", pass.name);
            if let Err(error) = Error::check_length(operation, what, expected, got) {
                return self.fail(error);
            }
        }
        a.apply(self, x, y, pass);
    }
    /// [`Recorder::spmv_dot`] of a stored matrix, which [`LinOp`]s are built on.
    pub fn matrix_product(&mut self, a: Matrix<T>, x: Vector<T>, y: Vector<T>, pass: Pass<T>) {
        self.record(Kind::Spmv { a, x, y }, &pass);
    }
    /// `Y ← A X` for all columns of `x`: see [`LinOp::apply_columns`].
    pub fn spmm(&mut self, a: &dyn LinOp<T>, x: Basis<T>, y: Basis<T>) {
        let (rows, cols) = a.shape();
        for (what, expected, got) in [
            ("a column of X", cols, x.len),
            ("a column of Y", rows, y.len),
            ("the columns of Y", x.columns, y.columns),
        ] {
            if let Err(error) = Error::check_length("spmm", what, expected, got) {
                return self.fail(error);
            }
        }
        a.apply_columns(self, x, y);
    }
    /// [`Recorder::spmm`] of a stored matrix: the same bits as one product per column, with the matrix read
    /// once for several columns.
    pub fn matrix_columns(&mut self, a: Matrix<T>, x: Basis<T>, y: Basis<T>) {
        self.record(Kind::Spmm { a, x, y }, &Pass::new("spmm"));
    }
    /// `h ← Vᴴ w` over the first `h.count` columns.
    pub fn basis_dot(&mut self, v: Basis<T>, w: Vector<T>, h: Cells<T>) {
        self.record(Kind::BasisDot { v, w, h }, &Pass::new("basis_dot"));
    }
    /// `w ← w − V h` over the first `h.count` columns, and the pass on the rows just computed.
    pub fn basis_axpy(&mut self, v: Basis<T>, h: Cells<T>, w: Vector<T>, pass: Pass<T>) {
        self.record(Kind::BasisAxpy { v, h, w, add: false }, &pass);
    }
    /// `w ← w + V h` over the first `h.count` columns, and the pass on the rows just computed.
    pub fn basis_add(&mut self, v: Basis<T>, h: Cells<T>, w: Vector<T>, pass: Pass<T>) {
        self.record(Kind::BasisAxpy { v, h, w, add: true }, &pass);
    }

    /// `x ← A⁻¹ b` with a triangular matrix stored for solves (see [`crate::Triangle`]), then the pass.
    pub fn tri_solve(&mut self, a: Matrix<T>, b: Vector<T>, x: Vector<T>, pass: Pass<T>) {
        self.record(Kind::TriSolve { a, b, x }, &Pass::new("tri_solve"));
        self.multi_axpy_dot(pass);
    }
    /// `y ← f(x)` by a function on the host, then the pass: see [`crate::HostOperator`].
    pub fn host_product(&mut self, f: &HostFunction<T>, x: Vector<T>, y: Vector<T>, pass: Pass<T>) {
        self.record(Kind::Host { f: f.clone(), x, y }, &Pass::new("host function"));
        self.multi_axpy_dot(pass);
    }

    fn record(&mut self, kind: Kind<T>, pass: &Pass<T>) {
        if self.error.is_some() {
            return;
        }
        let mut sweep = match lower(pass, self) {
            Ok(sweep) => sweep,
            Err(error) => return self.fail(error),
        };
        let mut kind = kind;
        let mut bare = None;
        if matches!(kind, Kind::Sweep)
            && sweep.is_scalar()
            && sweep.before.is_empty()
            && sweep.after.is_empty()
        {
            return; // an empty pass is not worth a kernel
        }
        if !matches!(kind, Kind::Sweep) {
            // The operation is complete before the pass begins: what the pass decides or sets first must not
            // come before the operation.
            let sets = |i: &Instr| i.writes().is_some_and(|c| kind.reads_cell(c));
            if sweep.is_scalar() {
                let after = std::mem::replace(&mut sweep.after, std::mem::take(&mut sweep.before));
                sweep.after.extend(after);
            } else if sweep.before.iter().any(|i| i.is_control() || sets(i)) {
                let first = std::mem::replace(&mut kind, Kind::Sweep);
                bare = Some(Op { kind: first, sweep: lower::Sweep::nothing(pass.name) });
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

impl<T: Scalar> Op<T> {
    /// Appends this operation, or fuses it into the last one.
    pub(crate) fn follow(self, ops: &mut Vec<Self>, fusion: bool) {
        match (ops.last_mut(), &self.kind) {
            (Some(last), Kind::Sweep) if fusion && last.can_fuse(&self.sweep) => last.sweep.fuse(self.sweep),
            _ => ops.push(self),
        }
    }

    /// Whether a sweep may be fused into this operation.
    fn can_fuse(&self, next: &lower::Sweep<T>) -> bool {
        let fits =
            next.is_scalar() || matches!(self.kind, Kind::Sweep) || self.kind.carries() && next.n == self.n();
        let early = |i: &Instr| i.writes().is_some_and(|c| self.kind.reads_cell(c));
        fits && (next.is_scalar() || !next.before.iter().any(early))
            && !next.updates.iter().any(|u| self.spoils(u.dst).is_some())
            && self.sweep.fuses_with(next)
    }
}

impl<T: Scalar> Kind<T> {
    /// Whether the operation needs the value of a cell while it processes its rows.
    fn reads_cell(&self, cell: u32) -> bool {
        self.operands().any(|operand| matches!(operand, Operand::Cells(h, Access::Read) if h.has(cell)))
    }
}

impl<T: Scalar> lower::Cells<T> for Recorder<'_, T> {
    fn constant(&mut self, value: T) -> u32 {
        // Compared by bits: 0 and −0 are different.
        let same = |known: &T| bytemuck::bytes_of(known) == bytemuck::bytes_of(&value);
        if let Some((_, cell)) = self.constants.iter().find(|(known, _)| same(known)) {
            return *cell;
        }
        let cell = self.run_of_cells(1).at(0);
        let written = self.memory.write(cell, value);
        self.keep(written, ());
        self.constants.push((value, cell.index));
        cell.index
    }
    fn temporary(&mut self) -> u32 {
        if self.taken == self.temporaries.len() {
            let cell = self.run_of_cells(1).first;
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
