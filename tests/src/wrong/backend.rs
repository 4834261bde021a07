//! The serial reference with a fault.
use super::Fault;
use super::algebra::{distant_rows, sparse_product};
use super::pass::Faults;
use lacuna_engine::lower::Sweep;
use lacuna_engine::reference::around;
use lacuna_engine::{
    AnyFormat, Backend, Basis, Cell, Cells, Control, Cost, DeviceInfo, Each, Finish, FormatRefs, Graph,
    HostStore, Matrix, Number, NumberType, Op, OpKind, PlanId, Products, Program, Reason, Resource, Result,
    Run, Scalar, Section, State, Vector, next_section, step_by_step, with_number,
};

/// Rows of every format are computed alike.
const EVERY: [Cost; 11] = {
    let mut all = [Cost::of_bytes("csr", 1.0); 11];
    let others = ["packed", "pkt", "dense", "stencil", "dia", "sell", "ell", "bcsr", "hyb", "coo"];
    let mut at = 0;
    while at < others.len() {
        all[at + 1] = Cost::of_bytes(others[at], 1.0);
        at += 1;
    }
    all
};

/// The serial reference with a fault.
pub struct Wrong {
    store: HostStore,
    faults: Faults,
}

impl Wrong {
    /// A backend with this fault, or with none.
    pub fn new(fault: Option<Fault>) -> Self {
        Wrong { store: HostStore::new("wrong"), faults: Faults::new(fault) }
    }

    fn has(&self, fault: Fault) -> bool {
        self.faults.has(fault)
    }

    /// The result, or this in place of an error that is swallowed.
    fn or_silent<R>(&self, result: Result<R>, instead: R) -> Result<R> {
        if self.has(Fault::Silent) { result.or(Ok(instead)) } else { result }
    }

    fn alone(&mut self, kind: OpKind, pass: &Sweep, state: State<'_>) -> Result<()> {
        // Without its parts, which the operation runs itself.
        let bare = pass.bare();
        let Wrong { store, faults } = self;
        let done = with_number!(pass.kind(), T => {
            around::<T>(store, &bare, state, |store, machine| faults.operation(store, machine, &kind, pass, &bare))
        });
        self.or_silent(done, ())
    }

    /// Runs every operation of a section, also after one that ends it.
    fn without_halts(&mut self, program: &Program, run: Run<'_>) -> Result<Finish> {
        let Run { limit, history, .. } = run;
        history.reset(limit);
        let (mut control, mut section) = (Control::new(limit, program.confirms()), Section::Setup);
        while control.section != Section::Stopped {
            control.enter(section);
            for op in program.section(section) {
                self.step(op, State { control: &mut control, history })?;
            }
            section = next_section(program, section, &control);
        }
        Ok(Finish::of(program, &control))
    }
}

impl Backend for Wrong {
    fn info(&self) -> DeviceInfo {
        let name = format!("{:?}", self.faults.fault);
        DeviceInfo::new("wrong", name, 1)
    }
    fn formats(&self, _rows: usize, _bytes: usize) -> &'static [Cost] {
        &EVERY
    }

    fn vectors(&mut self, kind: NumberType, n: usize, columns: usize, narrow: bool) -> Result<Basis> {
        let narrow = narrow && !self.has(Fault::NarrowKept);
        match self.store.vectors(kind, n, columns, narrow) {
            Err(_) if self.has(Fault::Shrunk) => self.store.vectors(kind, 0, columns.min(1), narrow),
            made => made,
        }
    }
    fn cells(&mut self, kind: NumberType, count: usize) -> Result<Cells> {
        self.store.cells(kind, count)
    }
    fn matrix(&mut self, a: AnyFormat) -> Result<Matrix> {
        self.store.matrix(a)
    }
    fn set_matrix(&mut self, a: Matrix, to: AnyFormat) -> Result<()> {
        if self.has(Fault::OldValues) {
            return Ok(());
        }
        self.store.set_matrix(a, to)
    }
    fn free(&mut self, what: Resource) {
        self.store.free(what);
    }
    fn upload(&mut self, from: &[u8], to: Vector) -> Result<()> {
        let done = self.store.upload(from, to);
        self.or_silent(done, ())
    }
    fn clear(&mut self, v: Vector) -> Result<()> {
        let done = self.store.clear(v);
        self.or_silent(done, ())
    }
    fn download(&mut self, from: Vector, to: &mut [u8]) -> Result<()> {
        let done = self.store.download(from, to);
        self.or_silent(done, ())
    }
    fn write(&mut self, cell: Cell, value: Number) -> Result<()> {
        let done = self.store.write(cell, value);
        self.or_silent(done, ())
    }
    fn read(&mut self, cells: &[Cell], to: &mut [u8]) -> Result<()> {
        let done = self.store.read(cells, to);
        self.or_silent(done, ())
    }

    lacuna_engine::primitives_by!(alone);
    fn step(&mut self, op: &Op, state: State<'_>) -> Result<()> {
        self.alone(op.kind.clone(), &op.sweep, state)
    }
    fn plan(&mut self, program: &Program) -> Result<PlanId> {
        let checked = self.store.check(program);
        self.or_silent(checked, ())?;
        Ok(PlanId { index: 0, serial: program.serial() })
    }
    fn execute(&mut self, program: &Program, plan: PlanId, run: Run<'_>) -> Result<Finish> {
        let checked = program.check_plan(plan.serial).and_then(|()| self.store.check(program));
        self.or_silent(checked, ())?;
        let mut finish = match self.has(Fault::HaltIgnored) {
            true => self.without_halts(program, run)?,
            false => step_by_step(self, program, run)?,
        };
        if self.has(Fault::AlwaysLimit) {
            finish.reason = Reason::Limit;
        }
        if self.has(Fault::AlwaysConverged) {
            finish.reason = Reason::Converged;
        }
        finish.iterations += u64::from(self.has(Fault::IterationsOff));
        Ok(finish)
    }

    fn sparse_product(&mut self, factors: &[Each<FormatRefs<'_>>]) -> Result<Option<Each<Products>>> {
        let Some(last) = factors.last() else { return sparse_product::<f64>(&[]).map(|_| None) };
        let made = with_number!(last.kind(), T => {
            let factors: Vec<_> = factors.iter().filter_map(|a| a.get::<T>().copied()).collect();
            sparse_product::<T>(&factors).map(|made| made.map(|mut made| {
                if let Some(last) = made.values.last_mut().filter(|_| self.has(Fault::LastBit)) {
                    *last *= T::from_real(1.0 + <T as Scalar>::EPSILON);
                }
                T::each::<Products>(made)
            }))
        });
        self.or_silent(made, None)
    }
    fn distance_two_set(&mut self, graph: Graph<'_>, priorities: &[u64]) -> Result<Option<Vec<u32>>> {
        let made = distant_rows(graph, priorities).map(|mut set| {
            if self.has(Fault::SetTooSmall) {
                set.pop();
            }
            Some(set)
        });
        self.or_silent(made, None)
    }
}
