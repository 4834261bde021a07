//! Random sequences of safe calls: handles that are stale, foreign or made up, owners dropped in any order and on any
//! thread, plans and programs of other devices, backends that change places, formats that lie and code that panics. Errors
//! and numbers may come of them; a panic that is not the caller's own is a fault, and so is whatever AddressSanitizer finds.
use lacuna_cpu::{Cpu, CpuOptions};
use lacuna_engine::{
    Argument, Backend, Basis, Cell, Cells, Complex32, Control, Device, Error, Expr, Format, Formula,
    Hessenberg, History, HostOperator, Matrix, NumberType, Owned, Pass, Plan, PlanId, Program, Progress,
    Reason, Recorder, Resource, Result, Run, Scalar, Section, State, Triangle, Vector, WeakDevice,
};
use lacuna_formats::{Csr, Half, Triangular, Triplets, convert};
use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};

/// Lengths of vectors around what is summed at a time.
const LENGTHS: [usize; 6] = [0, 1, 9, 256, 700, 2049];
const FORMATS: [&str; 10] = ["csr", "packed", "pkt", "dia", "sell", "ell", "hyb", "coo", "bcsr2", "dense"];
/// Sides of matrices: some fit the vectors.
const SIDES: [usize; 4] = [1, 9, 256, 700];
/// What the caller's own panics say.
const OWN: &str = "the caller's own";

/// Decisions out of bytes; zeros follow the last one.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }
    fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }
    fn pick<V: Copy>(&mut self, of: &[V]) -> V {
        of[self.below(of.len())]
    }
    /// A number of the kind that overflows.
    fn odd(&mut self) -> usize {
        self.pick(&[0, 1, 2, 5, 700, u32::MAX as usize, 1 << 33, usize::MAX])
    }
}

/// A format whose every answer is another decision.
struct Odd<T: Scalar> {
    a: Csr<T>,
    of: Triangular<T>,
    answers: Vec<u8>,
    asked: std::sync::atomic::AtomicUsize,
    /// Called when this is dropped.
    device: WeakDevice,
}

impl<T: Scalar> Drop for Odd<T> {
    fn drop(&mut self) {
        self.device.upgrade().map(|dev| dev.vector::<T>(9));
    }
}

impl<T: Scalar> Odd<T> {
    /// Whether this answer is not the true one.
    fn lies(&self) -> bool {
        let at = self.asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.answers.get(at % self.answers.len().max(1)).is_some_and(|answer| answer & 7 == 7)
    }
}

impl<T: Scalar> Format<T> for Odd<T> {
    fn shape(&self) -> (usize, usize) {
        let (rows, cols) = self.a.shape();
        if self.lies() { (rows + 3, cols << 12) } else { (rows, cols) }
    }
    fn nnz(&self) -> usize {
        if self.lies() { usize::MAX } else { self.a.nnz() }
    }
    fn kernel(&self) -> &'static str {
        if self.lies() { "hyb" } else { "csr" }
    }
    fn lanes(&self) -> usize {
        if self.lies() { 0 } else { 1 }
    }
    fn partial_sums(&self) -> usize {
        if self.lies() { 1 << 40 } else { 0 }
    }
    fn arguments(&self) -> Vec<Argument<'_, T>> {
        if self.lies() { vec![Argument::Size(7)] } else { self.a.arguments() }
    }
    fn row(&self, i: usize, x: &[T]) -> T {
        assert!(i % 256 != 7 || !self.lies(), "{OWN}");
        x[x.len() - 1] + self.a.row(i, x)
    }
    fn triangle(&self) -> Option<Triangle<'_, T>> {
        assert!(!self.lies(), "{OWN}");
        let triangle = self.of.triangle()?;
        Some(if self.lies() {
            Triangle { levels: &[0, 9], columns: &[1 << 30], ..triangle }
        } else {
            triangle
        })
    }
}

/// What owns something on a device.
type Owner = Box<dyn Any + Send>;

/// What was made of one number type, on either device.
struct Things<T: Scalar> {
    vectors: Vec<Vector<T>>,
    bases: Vec<Basis<T>>,
    cells: Vec<Cells<T>>,
    matrices: Vec<Matrix<T>>,
    /// Owners of matrices, which are operators.
    operators: Vec<Owned<Matrix<T>>>,
    owners: Vec<Owner>,
    programs: Vec<Program>,
    plans: Vec<Plan>,
}

impl<T: Scalar> Things<T> {
    fn new() -> Self {
        Things {
            vectors: vec![Vector::new(0, 0, 9, false)],
            bases: vec![Basis::new(0, 0, 9, 2, false)],
            cells: vec![Cells::new(0, 2, 0)],
            matrices: vec![Matrix::new(0, 0, 9, 9, 9, 100)],
            operators: Vec::new(),
            owners: Vec::new(),
            programs: Vec::new(),
            plans: Vec::new(),
        }
    }
    /// Drops an owner, a program or a plan.
    fn drop_one(&mut self, data: &mut Bytes<'_>) {
        let at = usize::from(data.byte());
        match data.below(8) {
            0 if !self.programs.is_empty() => drop(self.programs.swap_remove(at % self.programs.len())),
            1 if !self.plans.is_empty() => drop(self.plans.swap_remove(at % self.plans.len())),
            2 if !self.operators.is_empty() => drop(self.operators.swap_remove(at % self.operators.len())),
            3 if !self.owners.is_empty() => {
                let owner = self.owners.swap_remove(at % self.owners.len());
                std::thread::spawn(|| drop(owner)).join().expect("a thread that drops");
            }
            _ if !self.owners.is_empty() => drop(self.owners.swap_remove(at % self.owners.len())),
            _ => {}
        }
    }
}

fn cpu(data: &mut Bytes<'_>) -> Cpu {
    let threads = Some(data.below(3) + 1);
    Cpu::with(CpuOptions::default().threads(threads).parallel_from(0).gather(true))
        .expect("a CPU with a few threads")
}

/// Makes the calls that the bytes say.
pub fn calls(data: &[u8]) {
    let data = &mut Bytes(data);
    let mut devices = [(); 2].map(|()| Device::new(cpu(data)));
    let (mut reals, mut complex) = (Things::<f64>::new(), Things::<Complex32>::new());
    // Whether a backend may have what belongs to the other device.
    let mut mixed = false;
    while !data.0.is_empty() {
        let at = data.below(2);
        match data.below(16) {
            0 | 1 => reals.drop_one(data),
            2 => complex.drop_one(data),
            3 => match data.below(16) {
                0 => devices[at] = Device::new(cpu(data)),
                1 => {
                    mixed = true;
                    let new = cpu(data);
                    devices[at].with(|old: &mut Cpu| *old = new).expect("a CPU");
                }
                2 => {
                    mixed = true;
                    let [a, b] = &devices;
                    let swap = |a: &mut Cpu| b.with(|b: &mut Cpu| std::mem::swap(a, b));
                    a.with(swap).and_then(|swapped| swapped).expect("two CPUs");
                }
                _ => {}
            },
            4 => own(&devices[at], data, &mut reals),
            n if n % 3 == 0 => call(&devices[at], data, &mut complex),
            _ => call(&devices[at], data, &mut reals),
        }
        // What the calls left must still work.
        if data.below(8) == 0 {
            works(&devices[at]);
        }
    }
    devices.iter().for_each(works);
    drop((reals, complex));
    for dev in devices.iter().filter(|_| !mixed) {
        assert_eq!(dev.in_use(), Device::new(cpu(data)).in_use(), "all owners were dropped");
    }
}

/// Fails unless a device computes a product and a sum.
pub(crate) fn works(dev: &Device) {
    let (dev, n) = (&dev.scope(), 700);
    let a = dev.matrix(Arc::new(Csr::<f64>::identity(n).unwrap())).unwrap();
    let [x, y] = dev.vectors::<f64, 2>(n).unwrap();
    let [c] = dev.cells().unwrap();
    dev.upload(&vec![2.0; n], x).unwrap();
    dev.spmv_dot(&a, x, y, Pass::new("works").set(y, y + x).dot(c, y, y)).unwrap();
    assert_eq!(dev.read(&[c]).unwrap(), [16.0 * n as f64]);
}

/// One call; its error is as good as its success.
fn call<T: Scalar>(dev: &Device, data: &mut Bytes<'_>, on: &mut Things<T>) {
    let n = data.pick(&LENGTHS);
    let (x, y) = (data.pick(&on.vectors), data.pick(&on.vectors));
    let (basis, other, run) = (data.pick(&on.bases), data.pick(&on.bases), data.pick(&on.cells));
    let a = data.pick(&on.matrices);
    match data.below(20) {
        0 => {
            if let Ok(vector) = dev.vector(n) {
                on.vectors.push(*vector);
                on.owners.push(Box::new(vector));
            }
        }
        1 => {
            let columns = data.below(5);
            let made = if data.below(3) == 0 { dev.narrow_basis(n, columns) } else { dev.basis(n, columns) };
            if let Ok(basis) = made {
                on.bases.push(*basis);
                on.vectors.extend((0..columns).map(|j| basis.column(j)));
                on.owners.push(Box::new((basis.clone(), basis.into_parts().1)));
            }
        }
        2 => {
            let scope = dev.scope();
            on.cells.extend(scope.run_of_cells(data.below(9)));
            on.vectors.extend(scope.vector(n));
            on.owners.push(Box::new(scope));
        }
        3 | 4 => {
            if let Ok(a) = matrix(dev, data).and_then(|a| dev.matrix(a)) {
                on.matrices.push(*a);
                on.operators.push(a);
            }
        }
        5 => drop(matrix(dev, data).and_then(|to| dev.set_matrix(a, to))),
        6 => made_up(data, on),
        7 => drop(dev.multi_axpy_dot(pass(data, on))),
        8 => drop(dev.spmv_dot(&a, x, y, pass(data, on))),
        9 => drop(dev.spmm(&a, basis, other)),
        10 => drop(dev.tri_solve(a, x, y, pass(data, on))),
        11 => drop(dev.basis_dot(basis, x, run)),
        12 => drop(dev.basis_axpy(basis, run, x, pass(data, on))),
        13 => drop(dev.upload(&vec![T::one(); n], x)),
        14 => drop(dev.download(x, &mut vec![T::one(); n])),
        15 => drop(dev.clear(x)),
        16 => {
            let cells: Vec<_> = (0..data.below(4)).map(|_| cell(data, on)).collect();
            let _ = dev.read(&cells);
            let _ = dev.write(cell(data, on), T::one());
        }
        17 => {
            let made = program(dev, data, on);
            on.programs.extend(made);
        }
        18 if !on.programs.is_empty() => {
            let program = on.programs[data.below(on.programs.len())].clone();
            on.plans.extend(dev.plan(program));
        }
        _ if !on.plans.is_empty() => {
            let plan = data.below(on.plans.len());
            execute(dev, data, &mut on.plans[plan], x);
        }
        _ => {}
    }
}

/// A call of the backend's own, which knows nothing of owners.
fn own<T: Scalar>(dev: &Device, data: &mut Bytes<'_>, on: &mut Things<T>) {
    let (x, basis, a) = (data.pick(&on.vectors), data.pick(&on.bases), data.pick(&on.matrices));
    let (run, one) = (data.pick(&on.cells), cell(data, on).untyped());
    let program = (!on.programs.is_empty()).then(|| on.programs[data.below(on.programs.len())].clone());
    let id = match on.plans.len() {
        0 => PlanId { index: data.odd() as u32, serial: data.odd() as u32 },
        plans => on.plans[data.below(plans)].id(),
    };
    let done = dev.with(|cpu: &mut Cpu| match (data.below(8), program) {
        (0, _) => cpu.free(Resource::Vectors(basis.untyped())),
        (1, _) => cpu.free(Resource::Cells(run.untyped())),
        (2, _) => cpu.free(Resource::Matrix(a.untyped())),
        (3, _) => cpu.free(Resource::Plan(id)),
        (4, _) => {
            let mut bytes = vec![0; data.odd() % 9000];
            let from = data.below(9).min(bytes.len());
            let _ = cpu.upload(&bytes[from..], x.untyped());
            let _ = cpu.download(x.untyped(), &mut bytes[from..]);
            let _ = cpu.read(&[one, one], &mut bytes[from..]);
        }
        (5, Some(program)) => {
            let (mut control, mut history) = (Control::new(3, false), History::off());
            for op in program.section(Section::Setup).iter().take(data.below(3)) {
                let _ = cpu.step(op, State { control: &mut control, history: &mut history });
            }
        }
        (_, Some(program)) => {
            let run = Run { limit: 3, history: &mut History::default(), watch: None };
            let _ = cpu.execute(&program, id, run);
        }
        _ => {}
    });
    done.expect("a CPU that nobody uses");
}

fn execute<T: Scalar>(dev: &Device, data: &mut Bytes<'_>, plan: &mut Plan, v: Vector<T>) {
    let (limit, panics) = (data.below(6) as u64, data.below(4) == 0);
    let mut watch = |_: Progress| {
        busy(dev.clear(v));
        if panics { panic!("{OWN}") } else { ControlFlow::Continue(()) }
    };
    let run = Run { limit, history: &mut History::default(), watch: Some(&mut watch) };
    let caught = catch_unwind(AssertUnwindSafe(|| drop(dev.execute(plan, run))));
    if let Err(panic) = caught {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        if text.as_deref() != Some(OWN) {
            resume_unwind(panic);
        }
    }
}

/// Fails unless a call was refused because the device is in use.
fn busy(result: Result<()>) {
    assert!(matches!(result, Err(Error::Busy { .. })), "expected a device in use, got {result:?}");
}

/// A matrix, triangular or not, in some format, or one that lies.
fn matrix<T: Scalar>(dev: &Device, data: &mut Bytes<'_>) -> Result<Arc<dyn Format<T>>> {
    let (rows, cols) = (data.pick(&SIDES), data.pick(&SIDES));
    let (rows, cols) = if data.below(4) == 0 { (rows, cols) } else { (rows, rows) };
    let mut entries = Triplets::new(rows, cols);
    for i in 0..rows {
        entries.push(i, i % cols, T::from_real(2.0));
        entries.push(i, (i * 7 + 3) % cols, T::from_real(-1.0));
    }
    let a = entries.to_csr()?;
    match data.below(4) {
        0 if rows == cols => {
            let of = Triangular::part(&a, Half::Lower, None, None)?;
            let answers = (0..16).map(|_| data.byte()).collect();
            of.prepare()?;
            Ok(Arc::new(Odd { a, of, answers, asked: Default::default(), device: dev.downgrade() }))
        }
        1 if rows == cols => Ok(Arc::new(Triangular::part(&a, Half::Upper, None, None)?)),
        _ => convert(&Arc::new(a), data.pick(&FORMATS)),
    }
}

/// A handle with a field of its own.
fn made_up<T: Scalar>(data: &mut Bytes<'_>, on: &mut Things<T>) {
    let odd = data.odd();
    let near = |number: u32| number.wrapping_add(odd as u32);
    let (v, b, c, a) =
        (data.pick(&on.vectors), data.pick(&on.bases), data.pick(&on.cells), data.pick(&on.matrices));
    let kind = data.pick(&[NumberType::F32, NumberType::F64, NumberType::C32, NumberType::C64]);
    match data.below(17) {
        0 => on.vectors.push(Vector { slot: near(v.slot), ..v }),
        1 => on.vectors.push(Vector { serial: near(v.serial), ..v }),
        2 => on.vectors.push(Vector { len: odd, ..v }),
        3 => on.vectors.push(Vector { narrow: !v.narrow, ..v }),
        4 => on.bases.push(Basis { first: near(b.first), ..b }),
        5 => on.bases.push(Basis { columns: odd.min(1 << 33), ..b }),
        6 => on.bases.push(Basis { len: odd, ..b }),
        7 => {
            on.bases.push(Basis { first: v.slot, serial: v.serial, len: v.len, columns: data.below(4), ..b })
        }
        8 => on.cells.push(Cells { first: near(c.first), ..c }),
        9 => on.cells.push(Cells { count: odd as u32, ..c }),
        10 => on.matrices.push(Matrix { rows: odd, ..a }),
        11 => on.matrices.push(Matrix { cols: odd, nnz: odd, ..a }),
        12 => on.matrices.push(Matrix { slot: near(a.slot), ..a }),
        13 => on.vectors.push(Vector { kind, ..v }),
        14 => on.bases.push(Basis { kind, ..b }),
        15 => on.cells.push(Cells { kind, ..c }),
        _ => on.matrices.push(Matrix { kind, ..a }),
    }
}

fn cell<T: Scalar>(data: &mut Bytes<'_>, on: &Things<T>) -> Cell<T> {
    let run = data.pick(&on.cells);
    Cell {
        kind: run.kind,
        ..Cell::new(run.first.wrapping_add(data.below(run.count.min(9) as usize) as u32), run.serial)
    }
}

fn formula<T: Scalar>(data: &mut Bytes<'_>, on: &Things<T>) -> Formula<T> {
    let (a, b) = (cell(data, on), cell(data, on));
    match data.below(4) {
        0 => Formula::from(f64::from(data.byte())),
        1 => a * b,
        2 => (a + 3.0) / b,
        _ => a.into(),
    }
}

fn pass<T: Scalar>(data: &mut Bytes<'_>, on: &Things<T>) -> Pass<T> {
    let mut pass = Pass::new("called");
    for _ in 0..data.below(3) {
        let term = formula(data, on) * Expr::from(data.pick(&on.vectors));
        pass = pass.set(data.pick(&on.vectors), term + Expr::from(data.pick(&on.vectors)));
    }
    for _ in 0..data.below(3) {
        pass = pass.dot(cell(data, on), data.pick(&on.vectors), data.pick(&on.vectors));
    }
    let (a, b) = (data.pick(&on.cells), data.pick(&on.cells));
    match data.below(12) {
        0 => pass.add_cells(a, b),
        1 => pass.stop_if(cell(data, on).gt(cell(data, on)), Reason::Diverged),
        n @ 2..=3 => {
            let m = data.odd().min(1 << 40);
            let at = Hessenberg { m, h: a, rotations: b, g: a, y: b, used: cell(data, on) };
            if n == 2 { pass.rotate(at, data.odd() % 9, cell(data, on)) } else { pass.back_substitute(at) }
        }
        4..=6 => pass.eval(cell(data, on), formula(data, on)),
        _ => pass,
    }
}

fn ops<T: Scalar>(k: &mut Recorder<'_, T>, dev: &Device, data: &mut Bytes<'_>, on: &mut Things<T>) {
    for _ in 0..data.below(4) {
        let (x, y) = (data.pick(&on.vectors), data.pick(&on.vectors));
        let (basis, run, a) = (data.pick(&on.bases), data.pick(&on.cells), data.pick(&on.matrices));
        match data.below(11) {
            0 => k.matrix_product(a, x, y, pass(data, on)),
            1 => k.matrix_columns(a, basis, data.pick(&on.bases)),
            2 => k.basis_dot(basis, x, run),
            3 => k.basis_add(basis, run, x, pass(data, on)),
            kind @ (9 | 10) => {
                let other = data.pick(&on.bases);
                let pairs = run.take((basis.columns * other.columns).min(run.count as usize));
                if kind == 9 {
                    k.basis_gram(basis, other, pairs)
                } else {
                    k.basis_combine(basis, pairs, other)
                }
            }
            4 => k.tri_solve(a, x, y, pass(data, on)),
            5 => {
                let panics = data.below(3) == 0;
                // It drops an owner while the device calls it, or when it is dropped itself.
                let owner = Mutex::new(on.owners.pop());
                let (dev, drops) = (dev.downgrade(), data.below(2) == 0);
                let copy = HostOperator::rectangular(y.len, x.len, move |x: &[T], y: &mut [T]| {
                    if let Some(dev) = dev.upgrade()
                        && drops
                    {
                        drop(owner.lock().unwrap().take());
                        let _ = dev.vector::<T>(9);
                    }
                    assert!(!panics, "{OWN}");
                    y.iter_mut().zip(x).for_each(|(y, x)| *y = *x);
                });
                k.spmv_dot(&copy, x, y, pass(data, on));
            }
            6 if !on.operators.is_empty() => {
                let a = &on.operators[data.below(on.operators.len())];
                k.spmv_dot(a, x, y, pass(data, on));
            }
            _ => k.multi_axpy_dot(pass(data, on)),
        }
    }
}

fn program<T: Scalar>(dev: &Device, data: &mut Bytes<'_>, on: &mut Things<T>) -> Result<Program> {
    let count = cell(data, on);
    let mut k = Recorder::new(dev, "called");
    if data.below(2) == 0 {
        // What is freed with the program.
        on.vectors.push(k.vector(data.pick(&LENGTHS)));
        on.cells.push(k.run_of_cells(data.below(80)));
    }
    ops(&mut k, dev, data, on);
    if data.below(3) == 0 {
        k.restart(|k| ops(k, dev, data, on));
    }
    if data.below(3) > 0 {
        k.each(|k| {
            if data.below(3) == 0 {
                // Steps whose vectors and cells move by any stride, one that wraps around included.
                let (v, c) = (data.pick(&on.vectors), cell(data, on));
                let (stride, steps) =
                    (data.pick(&[1, 0, 1 << 16, 1 << 30, u32::MAX]), data.pick(&[4, 5, 9, 65]));
                k.steps(steps, |k, j| {
                    let by = stride.wrapping_mul(j as u32);
                    let v = Vector { slot: v.slot.wrapping_add(by), ..v };
                    let c = Cell { index: c.index.wrapping_add(by), ..c };
                    k.multi_axpy_dot(Pass::new("step").dot(c, v, v));
                });
            }
            ops(k, dev, data, on);
            k.multi_axpy_dot(Pass::new("count").count(count));
        });
    }
    k.finish()
}
