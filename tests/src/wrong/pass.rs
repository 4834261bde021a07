//! Operations with their passes, each part with the fault.
use super::Fault;
use lacuna_engine::cells::{Binary, Compare, Instr, Machine};
use lacuna_engine::lower::{Sweep, Update};
use lacuna_engine::reference::operation;
use lacuna_engine::{
    Basis, Cells, HostStore, Matrix, OpKind, Result, Scalar, State, Triangle, Vector, add_term, dot_product,
    largest, not_triangular,
};

/// A fault, and what it remembers.
pub(super) struct Faults {
    pub(super) fault: Option<Fault>,
    /// Dot products so far.
    dots: u64,
    /// The bytes of a host function's last argument.
    argument: Vec<u8>,
}

impl Faults {
    pub(super) fn new(fault: Option<Fault>) -> Self {
        Faults { fault, dots: 0, argument: Vec::new() }
    }

    pub(super) fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Runs an operation with its pass; `bare` is the pass without its parts.
    pub(super) fn operation<T: Scalar>(
        &mut self,
        store: &mut HostStore,
        machine: &mut Machine<T>,
        kind: &OpKind,
        pass: &Sweep,
        bare: &Sweep,
    ) -> Result<()> {
        let name = pass.name();
        if !self.instructions(machine, pass.before()) {
            return Ok(());
        }
        let early = self.has(Fault::InstructionsEarly);
        if early {
            self.instructions(machine, pass.after());
        }
        match kind {
            OpKind::Sweep => {}
            OpKind::Spmv { a, x, y } => self.product::<T>(store, *a, *x, *y, false, name)?,
            OpKind::Spmm { a, x, y } => (0..x.columns)
                .try_for_each(|j| self.product::<T>(store, *a, x.column(j), y.column(j), true, name))?,
            OpKind::BasisDot { v, w, h } => {
                for j in 0..h.count {
                    let dot = self.dot(store, v.column(j as usize), *w, None, false, name)?;
                    machine.cells[(h.first + j) as usize] = dot;
                }
            }
            OpKind::BasisGram { v, w, g } => {
                for j in 0..g.count as usize {
                    let [left, right] = [v.column(j % v.columns), w.column(j / v.columns)];
                    machine.cells[g.first as usize + j] = self.dot(store, left, right, None, false, name)?;
                }
            }
            OpKind::BasisAxpy { v, h, w, add } => {
                let sum = store.slice(*w, name)?.to_vec();
                self.combine(store, &machine.cells, (*v, *h, *add), (*w, sum), name)?;
            }
            OpKind::BasisCombine { v, c, x, add } => {
                for j in 0..x.columns {
                    let (h, w) = (c.part(j * v.columns, v.columns), x.column(j));
                    let sum = if *add { store.slice(w, name)?.to_vec() } else { vec![T::zero(); w.len] };
                    self.combine(store, &machine.cells, (*v, h, true), (w, sum), name)?;
                }
            }
            OpKind::TriSolve { a, b, x } if self.has(Fault::SolveBackwards) => {
                let format = store.format::<T>(*a, name)?.clone();
                let triangle = format.triangle().ok_or_else(|| not_triangular(name, format.kernel()))?;
                let solved = solved_backwards(&triangle, store.slice(*b, name)?);
                store.set(*x, &solved, name)?;
            }
            OpKind::Host { f, x, y } if self.has(Fault::StaleArgument) => {
                let argument = store.slice::<T>(*x, name)?;
                let before = std::mem::replace(&mut self.argument, bytemuck::cast_slice(argument).to_vec());
                let mut before: Vec<T> = bytemuck::pod_collect_to_vec(&before);
                before.resize(x.len, T::zero());
                let mut result = vec![T::zero(); y.len];
                f.call(&before, &mut result)?;
                store.set(*y, &result, name)?;
            }
            OpKind::TriSolve { .. } | OpKind::Host { .. } => {
                let Machine { control, history, .. } = machine;
                operation(store, kind, bare, State { control, history })?;
            }
        }
        pass.updates().iter().try_for_each(|update| self.update(store, &machine.cells, update, name))?;
        for dot in pass.dots() {
            let rides = *kind != OpKind::Sweep;
            let sum = match dot.largest && !self.has(Fault::MaximaSummed) {
                true => self.largest(store.slice::<T>(dot.a, name)?),
                false => self.dot(store, dot.a, dot.b, dot.factor, rides, name)?,
            };
            machine.cells[dot.cell as usize] = sum;
        }
        if !early {
            self.instructions(machine, pass.after());
        }
        Ok(())
    }

    /// `w ← sum ± V h`
    fn combine<T: Scalar>(
        &self,
        store: &mut HostStore,
        cells: &[T],
        (v, h, add): (Basis, Cells, bool),
        (w, mut sum): (Vector, Vec<T>),
        name: &str,
    ) -> Result<()> {
        let mut columns: Vec<u32> = (0..h.count).collect();
        if self.has(Fault::BasisBackwards) {
            columns.reverse();
        }
        for j in columns {
            let h: T = cells[(h.first + j) as usize];
            if h == T::zero() && !self.has(Fault::ZerosRead) {
                continue;
            }
            let h = if add { h } else { -h };
            let column = store.slice(v.column(j as usize), name)?;
            sum.iter_mut().zip(column).for_each(|(sum, v)| *sum = h.fma(*v, *sum));
        }
        store.set(w, &sum, name)
    }

    /// Runs instructions; whether the operation goes on.
    fn instructions<T: Scalar>(&self, machine: &mut Machine<T>, code: &[Instr]) -> bool {
        code.iter().all(|instr| self.instruction(machine, *instr))
    }

    fn instruction<T: Scalar>(&self, machine: &mut Machine<T>, mut instr: Instr) -> bool {
        if self.has(Fault::TestsIgnored) && matches!(instr, Instr::OnlyIf { .. }) {
            return true;
        }
        if self.has(Fault::NanPasses)
            && let Instr::Stop { test, a, b, .. } | Instr::Leave { test, a, b } = &mut instr
            && *test == Compare::LessEqual
            && [*a, *b].iter().any(|cell| machine.cells[*cell as usize].re().is_nan())
        {
            *test = Compare::Always;
        }
        let quotient = match instr {
            Instr::Binary { op: Binary::Div, a, b, .. } if self.has(Fault::ReciprocalTaken) => {
                Some(machine.cells[a as usize] * T::one().quotient(machine.cells[b as usize]))
            }
            _ => None,
        };
        let goes_on = machine.run(&[instr]);
        let Some(written) = instr.writes() else { return goes_on };
        let cell = &mut machine.cells[written as usize];
        if let Some(quotient) = quotient {
            *cell = quotient;
        }
        if self.has(Fault::CellsRounded) {
            *cell = cell.rounded();
        }
        goes_on
    }

    fn dot<T: Scalar>(
        &mut self,
        store: &HostStore,
        a: Vector,
        b: Vector,
        factor: Option<Vector>,
        rides: bool,
        name: &str,
    ) -> Result<T> {
        self.dots += 1;
        let (a, b) = (store.slice::<T>(a, name)?, store.slice::<T>(b, name)?);
        let b: Vec<T> = match factor {
            None => b.to_vec(),
            Some(f) => store.slice::<T>(f, name)?.iter().zip(b).map(|(f, b)| *f * *b).collect(),
        };
        let backwards = self.has(Fault::SumsBackwards)
            || (rides && self.has(Fault::RidingSumsBackwards))
            || (self.dots.is_multiple_of(2) && self.has(Fault::SumsAtRandom));
        if backwards {
            return Ok(a.iter().zip(&b).rev().fold(T::zero(), |sum, (a, b)| sum + a.dot_term(*b)));
        }
        Ok(dot_product(a, &b))
    }

    fn largest<T: Scalar>(&self, v: &[T]) -> T {
        match self.has(Fault::NanLeftOut) {
            true => largest(&v.iter().copied().filter(|v| !v.re().is_nan()).collect::<Vec<_>>()),
            false => largest(v),
        }
    }

    fn update<T: Scalar>(
        &self,
        store: &mut HostStore,
        cells: &[T],
        update: &Update,
        name: &str,
    ) -> Result<()> {
        let mut values = vec![T::zero(); update.dst.len];
        for (position, term) in update.terms.iter().enumerate() {
            let vector = store.slice::<T>(term.vector, name)?;
            let factor = term.factor.map(|f| store.slice::<T>(f, name)).transpose()?;
            for (i, value) in values.iter_mut().enumerate() {
                let factor = factor.map(|f| f[i]);
                *value = match position {
                    0 => add_term(None, term, vector[i], factor, cells),
                    _ if self.has(Fault::FmaSplit) => *value + add_term(None, term, vector[i], factor, cells),
                    _ => add_term(Some(*value), term, vector[i], factor, cells),
                };
            }
        }
        store.set(update.dst, &values, name)
    }

    fn product<T: Scalar>(
        &self,
        store: &mut HostStore,
        a: Matrix,
        x: Vector,
        y: Vector,
        several: bool,
        name: &str,
    ) -> Result<()> {
        let (a, x) = (store.format::<T>(a, name)?, store.slice::<T>(x, name)?);
        let only = |keep: &dyn Fn(usize) -> bool| -> Vec<T> {
            x.iter().enumerate().map(|(j, x)| if keep(j) { *x } else { T::zero() }).collect()
        };
        let reordered = self.has(Fault::RowsReordered) || (several && self.has(Fault::ColumnsReordered));
        let product: Vec<T> = if reordered {
            let [even, odd] = [0, 1].map(|parity| only(&|j| j % 2 == parity));
            (0..y.len).map(|i| a.row(i, &even) + a.row(i, &odd)).collect()
        } else if self.has(Fault::LaneLeftOut) {
            let lanes = a.lanes().max(2);
            let rest = only(&|j| j % lanes != lanes - 1);
            (0..y.len).map(|i| a.row(i, &rest)).collect()
        } else {
            (0..y.len).map(|i| a.row(i, x)).collect()
        };
        store.set(y, &product, name)
    }
}

fn solved_backwards<T: Scalar>(a: &Triangle<'_, T>, b: &[T]) -> Vec<T> {
    let mut x = vec![T::zero(); b.len()];
    for k in 0..a.row_ptr.len() - 1 {
        let own = a.row_ptr[k] as usize..a.row_ptr[k + 1] as usize - 1;
        let (row, reciprocal) = (a.columns[own.end] as usize, a.values[own.end]);
        let sum = own.rev().fold(b[row], |sum, e| (-a.values[e]).fma(x[a.columns[e] as usize], sum));
        x[row] = sum * reciprocal;
    }
    x
}
