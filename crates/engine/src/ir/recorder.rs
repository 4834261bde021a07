//! Records a method as a program.
use crate::ir::operation::OpKind;
use crate::ir::program::Program;
use crate::ir::recording::Recording;
use crate::{
    Basis, Cell, Cells, Device, Error, HostFunction, LinOp, Matrix, NumberType, Pass, Result, Scalar,
    Section, Steps, Test, Untyped, Vector, with_number,
};
use bytemuck::TransparentWrapper;
use std::marker::PhantomData;
use std::sync::Arc;

/// Records operations into a [`Program`].
///
/// No method of a recorder fails: the first error is kept and returned by [`Recorder::finish`], so that the
/// source of a method is its algorithm. What it allocates lives as long as the program or its plan.
#[derive(TransparentWrapper)]
#[repr(transparent)]
#[transparent(Recording<'a>)]
pub struct Recorder<'a, T = Untyped> {
    recording: Recording<'a>,
    marker: PhantomData<fn() -> T>,
}

impl<'a, T: Scalar> Recorder<'a, T> {
    /// Starts a program of the given name.
    pub fn new(device: &'a Device, name: &'static str) -> Self {
        Recorder { recording: Recording::new(device, name, T::KIND), marker: PhantomData }
    }
    /// A vector with these values, which persist unless the program writes them.
    pub fn vector_of(&mut self, numbers: &[T]) -> Vector<T> {
        let vector = self.recording.vector(numbers.len());
        self.recording.upload(bytemuck::cast_slice(numbers), vector);
        vector.typed()
    }
}

impl<'a, T> Recorder<'a, T> {
    /// The number type of the program.
    pub fn kind(&self) -> NumberType {
        self.recording.program.kind
    }
    /// The same recorder with its number type as a value: for what is recorded alike in all number types, and compiled once.
    pub fn untyped(&mut self) -> &mut Recorder<'a> {
        Recorder::wrap_mut(&mut self.recording)
    }

    /// Does not fuse what follows: neither passes that could share a sweep, nor a product and its pass. For measuring the effect of
    /// fusion.
    pub fn without_fusion(&mut self) {
        self.recording.program.fusion = false;
    }

    /// The program, or the first error recorded.
    ///
    /// # Errors
    /// Of a pass, an operation or an allocation.
    pub fn finish(self) -> Result<Program> {
        self.recording.finish()
    }

    /// Keeps something alive as long as the program or its plan: what an operator's handles refer to.
    pub fn keep(&mut self, what: &Arc<impl Send + Sync + 'static>) {
        self.recording.keep_alive(what.clone());
    }

    /// Records an error; only the first one is kept.
    pub fn fail(&mut self, error: Error) {
        self.recording.fail(error);
    }

    /// A vector of `n` zeros.
    pub fn vector(&mut self, n: usize) -> Vector<T> {
        self.recording.vector(n).typed()
    }
    /// A vector with these real values, rounded to the number type: see [`Recorder::vector_of`].
    pub fn vector_of_reals(&mut self, reals: &[f64]) -> Vector<T> {
        let vector = self.recording.vector(reals.len());
        with_number!(self.kind(), T => {
            let numbers: Vec<T> = reals.iter().map(|v| T::from_real(*v)).collect();
            self.recording.upload(bytemuck::cast_slice(&numbers), vector);
        });
        vector.typed()
    }
    /// `N` vectors of `n` zeros.
    pub fn vectors<const N: usize>(&mut self, n: usize) -> [Vector<T>; N] {
        std::array::from_fn(|_| self.vector(n))
    }
    /// A vector of `n` elements stored in [`Scalar::Narrow`], with unspecified contents until it is written.
    pub fn narrow_vector(&mut self, n: usize) -> Vector<T> {
        self.narrow_basis(n, 1).column(0)
    }
    /// `columns` vectors of `n` elements stored in [`Scalar::Narrow`].
    pub fn narrow_basis(&mut self, n: usize, columns: usize) -> Basis<T> {
        self.recording.basis(n, columns, self.kind() != self.kind().narrow()).typed()
    }
    /// `N` cells.
    pub fn cells<const N: usize>(&mut self) -> [Cell<T>; N] {
        let run = self.run_of_cells(N);
        std::array::from_fn(|i| run.at(i))
    }
    /// A run of cells.
    pub fn run_of_cells(&mut self, count: usize) -> Cells<T> {
        self.recording.cells(count).typed()
    }
    /// `columns` vectors of `n` elements, stored consecutively, with unspecified contents until they are
    /// written.
    pub fn basis(&mut self, n: usize, columns: usize) -> Basis<T> {
        self.recording.basis(n, columns, false).typed()
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
    fn within(&mut self, section: Section, body: impl FnOnce(&mut Self)) {
        let outer = self.recording.enter(section);
        body(self);
        self.recording.enter(outer);
    }
    /// Records the operations of `body` as conditional: each is skipped unless the test, and those of the conditions
    /// around it, hold when it is reached.
    pub fn when(&mut self, test: Test<T>, body: impl FnOnce(&mut Self)) {
        self.recording.push_guard(test.untyped());
        body(self);
        self.recording.pop_guard();
    }
    /// Records the operations of `body` for the steps `0..count` of an iteration, in order. If the steps
    /// differ only in numbers that grow by a constant stride, such as columns of a basis and cells of a run,
    /// their operations are stored and prepared once. This is decided from steps 0, 1 and `count - 1`: `body`
    /// must not treat a step between them differently, which debug builds check, and it must record the same
    /// operations whenever it is called for the same step.
    pub fn steps(&mut self, count: usize, body: impl Fn(&mut Self, usize)) {
        match self.rolled(count, &body) {
            Some(steps) => self.recording.set_steps(steps),
            None => (0..count).for_each(|step| body(self, step)),
        }
    }
    fn rolled(&mut self, count: usize, body: &dyn Fn(&mut Self, usize)) -> Option<Steps> {
        if !self.recording.may_roll(count) {
            return None;
        }
        let taken = self.recording.taken();
        let mut record = |step| {
            self.recording.begin_step(taken);
            body(self, step);
            self.recording.end_step()
        };
        let steps = Steps::new(count, [0, 1, count - 1].map(&mut record))?;
        if cfg!(debug_assertions)
            && let Some(odd) = (2..count).find(|step| steps.at(*step) != record(*step))
        {
            let message = format!("step {odd} does not go on as steps 0, 1 and {} do", count - 1);
            let program = self.recording.program.name.into();
            self.fail(Error::Program { program, message });
        }
        (!self.recording.has_failed()).then_some(steps)
    }

    /// Runs a pass. It is fused into the sweep of the previous operation if the result is the same.
    pub fn multi_axpy_dot(&mut self, pass: Pass<T>) {
        self.record(OpKind::Sweep, &pass);
    }
    /// `y ← A x`, and the pass on the rows just computed.
    pub fn spmv_dot(&mut self, a: &dyn LinOp<T>, x: Vector<T>, y: Vector<T>, pass: Pass<T>) {
        let (rows, cols) = a.shape();
        for (what, expected, got) in [("x", cols, x.len), ("y", rows, y.len)] {
            let operation = format_args!("pass `{}`, product", pass.name);
            if let Err(error) = Error::check_fits(operation, (rows, cols), what, expected, got) {
                return self.fail(error);
            }
        }
        a.apply(self, x, y, pass);
    }
    /// [`Recorder::spmv_dot`] of a stored matrix, which [`LinOp`]s are built on.
    pub fn matrix_product(&mut self, a: Matrix<T>, x: Vector<T>, y: Vector<T>, pass: Pass<T>) {
        self.record(OpKind::Spmv { a: a.untyped(), x: x.untyped(), y: y.untyped() }, &pass);
    }
    /// `Y ← A X` for all columns of `x`: see [`LinOp::apply_columns`].
    pub fn spmm(&mut self, a: &dyn LinOp<T>, x: Basis<T>, y: Basis<T>) {
        let (rows, cols) = a.shape();
        for (what, expected, got) in [
            ("a column of X", cols, x.len),
            ("a column of Y", rows, y.len),
            ("the columns of Y", x.columns, y.columns),
        ] {
            if let Err(error) = Error::check_fits("spmm", (rows, cols), what, expected, got) {
                return self.fail(error);
            }
        }
        a.apply_columns(self, x, y);
    }
    /// [`Recorder::spmm`] of a stored matrix: the same bits as one product per column, with the matrix read
    /// once for several columns.
    pub fn matrix_columns(&mut self, a: Matrix<T>, x: Basis<T>, y: Basis<T>) {
        self.record(OpKind::Spmm { a: a.untyped(), x: x.untyped(), y: y.untyped() }, &Pass::new("spmm"));
    }
    /// `h ← Vᴴ w` over the first `h.count` columns.
    pub fn basis_dot(&mut self, v: Basis<T>, w: Vector<T>, h: Cells<T>) {
        self.record(
            OpKind::BasisDot { v: v.untyped(), w: w.untyped(), h: h.untyped() },
            &Pass::new("basis_dot"),
        );
    }
    /// `w ← w − V h` over the first `h.count` columns, and the pass on the rows just computed.
    pub fn basis_axpy(&mut self, v: Basis<T>, h: Cells<T>, w: Vector<T>, pass: Pass<T>) {
        self.record(OpKind::BasisAxpy { v: v.untyped(), h: h.untyped(), w: w.untyped(), add: false }, &pass);
    }
    /// `w ← w + V h` over the first `h.count` columns, and the pass on the rows just computed.
    pub fn basis_add(&mut self, v: Basis<T>, h: Cells<T>, w: Vector<T>, pass: Pass<T>) {
        self.record(OpKind::BasisAxpy { v: v.untyped(), h: h.untyped(), w: w.untyped(), add: true }, &pass);
    }
    /// `G ← Vᴴ W`, with cell `j · v.columns + i` for column `i` of `v` and column `j` of `w`: the same bits as one
    /// [`Recorder::basis_dot`] per column of `w`, in one sweep over memory.
    pub fn basis_gram(&mut self, v: Basis<T>, w: Basis<T>, g: Cells<T>) {
        let kind = OpKind::BasisGram { v: v.untyped(), w: w.untyped(), g: g.untyped() };
        self.record(kind, &Pass::new("basis_gram"));
    }
    /// `X ← V C`, with the coefficient of column `i` of `v` in column `j` of `x` in cell `j · v.columns + i`: the same bits as
    /// columns of zeros and one [`Recorder::basis_add`] to each, in one sweep over memory.
    pub fn basis_combine(&mut self, v: Basis<T>, c: Cells<T>, x: Basis<T>) {
        self.combine(v, c, x, false);
    }
    /// `X ← X + V C`: see [`Recorder::basis_combine`].
    pub fn basis_combine_add(&mut self, v: Basis<T>, c: Cells<T>, x: Basis<T>) {
        self.combine(v, c, x, true);
    }
    fn combine(&mut self, v: Basis<T>, c: Cells<T>, x: Basis<T>, add: bool) {
        let kind = OpKind::BasisCombine { v: v.untyped(), c: c.untyped(), x: x.untyped(), add };
        self.record(kind, &Pass::new("basis_combine"));
    }

    /// `x ← A⁻¹ b` with a triangular matrix stored for solves (see [`crate::Triangle`]), then the pass.
    pub fn tri_solve(&mut self, a: Matrix<T>, b: Vector<T>, x: Vector<T>, pass: Pass<T>) {
        self.record(
            OpKind::TriSolve { a: a.untyped(), b: b.untyped(), x: x.untyped() },
            &Pass::new("tri_solve"),
        );
        self.multi_axpy_dot(pass);
    }
    /// `y ← f(x)` by a function on the host, then the pass: see [`crate::HostOperator`].
    pub fn host_product(&mut self, f: &HostFunction, x: Vector<T>, y: Vector<T>, pass: Pass<T>) {
        self.record(
            OpKind::Host { f: f.clone(), x: x.untyped(), y: y.untyped() },
            &Pass::new("host function"),
        );
        self.multi_axpy_dot(pass);
    }

    fn record(&mut self, kind: OpKind, pass: &Pass<T>) {
        self.recording.record(kind, pass.name, &pass.statements);
        for pass in &pass.later {
            self.recording.record(OpKind::Sweep, pass.name, &pass.statements);
        }
    }
}

impl<'a> Recorder<'a> {
    /// The same recorder with its number type as a parameter. Using it as another number type than its own is an error of the
    /// backend.
    pub fn typed<T>(&mut self) -> &mut Recorder<'a, T> {
        Recorder::wrap_mut(&mut self.recording)
    }
}
