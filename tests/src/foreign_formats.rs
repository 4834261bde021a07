//! Formats of the caller's that say what is not so, or panic: safe code, so nothing worse than an error or a wrong
//! number may follow, and the backend works afterwards.
use crate::bits::{cells_of, download, same, upload};
use crate::hostile::fails;
use crate::numbers::{Rng, random_matrix};
use lacuna_engine::{
    Argument, Device, Error, Format, History, Matrix, Pass, Progress, Reason, Recorder, Result, Run, Scalar,
    Scope, Triangle, Vector,
};
use lacuna_formats::{Csr, Half, Triangular};
use lacuna_solvers::{Options, Solver, Stop, method};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a format says that is not so.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    /// More rows and columns once it was asked.
    Grows,
    /// No entries, or very many.
    Entries(usize),
    /// The name of another format, with arrays that are none of it.
    Name(&'static str),
    /// Columns that there are not.
    Columns,
    /// Arrays that get longer.
    Arrays,
}

/// A matrix that says it is in `csr`, and lies.
struct Liar<T: Scalar> {
    a: Csr<T>,
    far: Vec<u32>,
    twice: Vec<T>,
    lie: Lie,
    asked: AtomicUsize,
}

impl<T: Scalar> Liar<T> {
    fn new(a: &Csr<T>, lie: Lie) -> Arc<Self> {
        let twice = a.values().iter().chain(a.values()).copied().collect();
        let far = vec![u32::MAX / 2; a.nnz()];
        Arc::new(Liar { a: a.clone(), far, twice, lie, asked: AtomicUsize::new(0) })
    }
}

impl<T: Scalar> Format<T> for Liar<T> {
    fn shape(&self) -> (usize, usize) {
        let grown = self.lie == Lie::Grows && self.asked.fetch_add(1, Ordering::Relaxed) > 0;
        let (rows, cols) = self.a.shape();
        if grown { (rows << 20, cols << 20) } else { (rows, cols) }
    }
    fn nnz(&self) -> usize {
        if let Lie::Entries(entries) = self.lie { entries } else { self.a.nnz() }
    }
    fn kernel(&self) -> &'static str {
        if let Lie::Name(name) = self.lie { name } else { "csr" }
    }
    fn arguments(&self) -> Vec<Argument<'_, T>> {
        let more = self.lie == Lie::Arrays && self.asked.fetch_add(1, Ordering::Relaxed) > 2;
        let columns = if self.lie == Lie::Columns { &self.far[..] } else { self.a.col_idx() };
        let values = if more { &self.twice[..] } else { self.a.values() };
        vec![Argument::Indices(self.a.row_ptr()), Argument::Indices(columns), Argument::Values(values)]
    }
    fn row(&self, i: usize, x: &[T]) -> T {
        x[x.len() - 1] + self.a.row(i, x)
    }
}

fn every_lie() -> Vec<Lie> {
    let names = ["sell", "hyb", "bcsr", "packed", "triangular", "dense", "nothing"].map(Lie::Name);
    let entries = [0, 1 << 40, usize::MAX].map(Lie::Entries);
    [Lie::Grows, Lie::Columns, Lie::Arrays].into_iter().chain(names).chain(entries).collect()
}

/// Fails unless a product has the bits of its rows.
fn multiplies<T: Scalar>(dev: &Scope, a: &Csr<T>, m: Matrix<T>, [x, y]: [Vector<T>; 2]) {
    dev.spmv_dot(&m, x, y, Pass::nothing()).unwrap();
    let from = download(dev, x);
    same("a product", &download(dev, y), &(0..a.rows()).map(|i| a.row(i, &from)).collect::<Vec<_>>());
}

/// A format that lies is refused, or runs by its own rows, with the lengths that it had when it was stored.
pub fn lies<T: Scalar>(make: fn() -> Device) {
    let (rng, dev) = (&mut Rng::new(1), &make().scope());
    let a = random_matrix::<T>(rng, 3000, 3000, 5);
    let vectors = [rng.vector::<T>(3000), vec![T::zero(); 3000]].map(|v| upload(dev, &v));
    let [x, y] = vectors;
    let m = dev.matrix(Arc::new(a.clone())).unwrap();
    let c = cells_of(dev, &[T::zero()]);
    for lie in every_lie() {
        match dev.matrix(Liar::new(&a, lie) as Arc<dyn Format<T>>) {
            Ok(liar) => dev.spmv_dot(&liar, x, y, Pass::new("mine").dot(c[0], x, y)).unwrap(),
            Err(error) => {
                assert!(
                    matches!(error, Error::Unsupported { .. } | Error::Structure { .. }),
                    "{lie:?}: {error}"
                );
            }
        }
        multiplies(dev, &a, m, vectors);
    }
    let liar = Liar::new(&a, Lie::Columns);
    if let Ok(Some(product)) = dev.sparse_product::<T>(&[&*liar, &a]) {
        panic!("a product with a liar: {:?}", product.shape);
    }
}

/// New values of a matrix come from one of its type, whatever another says of itself.
pub fn new_values<T: Scalar>(make: fn() -> Device) {
    let (rng, dev) = (&mut Rng::new(2), &make().scope());
    let a = random_matrix::<T>(rng, 500, 500, 5);
    let larger = random_matrix::<T>(rng, 900, 900, 5);
    let vectors = [rng.vector::<T>(500), vec![T::zero(); 500]].map(|v| upload(dev, &v));
    let m = dev.matrix(Arc::new(a.clone())).unwrap();
    for lie in every_lie() {
        fails(dev.set_matrix(m, Liar::new(&a, lie) as Arc<dyn Format<T>>), &[]);
        multiplies(dev, &a, m, vectors);
        if let Ok(liar) = dev.matrix(Liar::new(&a, lie) as Arc<dyn Format<T>>) {
            for to in [&a, &larger] {
                fails(dev.set_matrix(liar, Arc::new(to.clone())), &["format"]);
            }
            dev.spmv_dot(&liar, vectors[0], vectors[1], Pass::nothing()).unwrap();
        }
    }
    multiplies(dev, &a, m, vectors);
}

/// A diagonal of twos whose row panics while it is told to.
struct Panics {
    n: usize,
    row: Arc<AtomicUsize>,
}

impl<T: Scalar> Format<T> for Panics {
    fn shape(&self) -> (usize, usize) {
        (self.n, self.n)
    }
    fn nnz(&self) -> usize {
        self.n
    }
    fn kernel(&self) -> &'static str {
        "panics"
    }
    fn arguments(&self) -> Vec<Argument<'_, T>> {
        Vec::new()
    }
    fn row(&self, i: usize, x: &[T]) -> T {
        assert!(i != self.row.load(Ordering::Relaxed), "this row panics");
        x[i] + x[i]
    }
}

/// Fails unless the code of a format panicked.
fn panicked<R>(result: Result<R>) {
    let error = fails(result, &["format", "this row panics"]);
    assert!(matches!(error, Error::Function { .. }), "{error}");
}

/// A row that panics, at the beginning or end of any thread's share, or all of them.
pub fn panics<T: Scalar>(make: fn() -> Device) {
    let (dev, n) = (&make().scope(), 20_000);
    let row = Arc::new(AtomicUsize::new(usize::MAX));
    let format: Arc<dyn Format<T>> = Arc::new(Panics { n, row: row.clone() });
    let Ok(a) = dev.matrix(format) else { return };
    let (x, y) = (upload(dev, &vec![T::one(); n]), upload(dev, &vec![T::zero(); n]));
    let c = cells_of(dev, &[T::zero()]);
    for at in [0, 7, n / 2 - 1, n / 2, n / 3, n - 1] {
        row.store(at, Ordering::Relaxed);
        panicked(dev.spmv_dot(&a, x, y, Pass::new("mine").dot(c[0], y, y)));
        row.store(usize::MAX, Ordering::Relaxed);
        dev.spmv_dot(&a, x, y, Pass::new("mine").dot(c[0], y, y)).unwrap();
        same("y", &download(dev, y), &vec![T::one() + T::one(); n]);
        same("the sum", &dev.read(&c).unwrap(), &[T::from_real(4.0 * n as f64)]);
    }
}

/// A row that panics in a section of a program, the other threads on their way: the run ends with the error, and the
/// next one as if nothing had been.
pub fn panics_in_solves<T: Scalar>(make: fn() -> Device) {
    let (dev, n) = (&make().scope(), 20_000);
    let row = Arc::new(AtomicUsize::new(usize::MAX));
    let format: Arc<dyn Format<T>> = Arc::new(Panics { n, row: row.clone() });
    let Ok(a) = dev.matrix(format) else { return };
    let method = method("richardson", &Options::default()).unwrap();
    let stop = Stop::default().max_iters(20);
    let mut solver = Solver::new(dev, &a, None, &*method, stop).unwrap();
    let b = Rng::new(3).vector::<T>(n);
    let mut expected = vec![T::zero(); n];
    solver.solve(&b, &mut expected).unwrap();
    for at in [0, n - 1] {
        row.store(at, Ordering::Relaxed);
        panicked(solver.solve(&b, &mut vec![T::zero(); n]));
        row.store(usize::MAX, Ordering::Relaxed);
        let mut x = vec![T::zero(); n];
        solver.solve(&b, &mut x).unwrap();
        same("x", &x, &expected);
    }
    // In the iteration, after some: the program would not end by itself.
    let (x, y, c) = (upload(dev, &b), upload(dev, &b), cells_of(dev, &[T::one()])[0]);
    let mut k = Recorder::new(dev, "endless");
    k.each(|k| {
        k.spmv_dot(&a, x, y, Pass::new("mine").dot(c, x, x));
        k.multi_axpy_dot(Pass::new("count").count(c));
    });
    let mut plan = k.finish().and_then(|program| dev.plan(program)).unwrap();
    let mut spoil = |_: Progress| {
        row.store(n / 2, Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    let run = Run { limit: u64::MAX - 1, history: &mut History::off(), watch: Some(&mut spoil) };
    panicked(plan.execute(run));
    row.store(usize::MAX, Ordering::Relaxed);
    let run = Run { limit: 3, history: &mut History::off(), watch: None };
    assert_eq!(plan.execute(run).unwrap().iterations, 3);
}

/// What a format does when it is asked for its triangle.
#[derive(Clone, Copy, Debug)]
enum Trick {
    /// It has none from the third time on.
    Vanishes,
    /// It panics from the third time on.
    Panics,
    /// Rows that there are not.
    Far,
    /// No pointers at all.
    Empty,
    /// More levels and places than rows.
    Long,
}

struct Trickster<T: Scalar> {
    of: Triangular<T>,
    twice: [Vec<u32>; 2],
    far: Vec<u32>,
    trick: Trick,
    asked: AtomicUsize,
}

impl<T: Scalar> Format<T> for Trickster<T> {
    fn shape(&self) -> (usize, usize) {
        self.of.shape()
    }
    fn nnz(&self) -> usize {
        self.of.nnz()
    }
    fn kernel(&self) -> &'static str {
        "triangular"
    }
    fn prepare(&self) -> Result<()> {
        self.of.prepare()
    }
    fn arguments(&self) -> Vec<Argument<'_, T>> {
        self.of.arguments()
    }
    fn row(&self, i: usize, x: &[T]) -> T {
        self.of.row(i, x)
    }
    fn triangle(&self) -> Option<Triangle<'_, T>> {
        let triangle = self.of.triangle()?;
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        match self.trick {
            Trick::Vanishes => (asked < 2).then_some(triangle),
            Trick::Panics if asked > 1 => panic!("no triangle"),
            Trick::Panics => Some(triangle),
            Trick::Far => Some(Triangle { columns: &self.far, ..triangle }),
            Trick::Empty => Some(Triangle { row_ptr: &[], columns: &[], values: &[], levels: &[] }),
            Trick::Long => Some(Triangle { row_ptr: &self.twice[0], levels: &self.twice[1], ..triangle }),
        }
    }
}

/// Triangles that lie or panic.
pub fn triangles<T: Scalar>(make: fn() -> Device) {
    let dev = &make().scope();
    let n = 600;
    let a = Csr::<T>::identity(n).unwrap();
    let of = || Triangular::part(&a, Half::Lower, None, None).unwrap();
    let good = dev.matrix(Arc::new(of()) as Arc<dyn Format<T>>).unwrap();
    let (b, x) = (upload(dev, &vec![T::one(); n]), upload(dev, &vec![T::zero(); n]));
    for trick in [Trick::Vanishes, Trick::Panics, Trick::Far, Trick::Empty, Trick::Long] {
        let triangle = of();
        triangle.prepare().unwrap();
        let t = triangle.triangle().unwrap();
        let more = |list: &[u32]| [list, list].concat();
        let twice = [more(t.row_ptr), more(t.levels)];
        let far = vec![u32::MAX - 1; t.columns.len()];
        let format = Trickster { of: of(), twice, far, trick, asked: AtomicUsize::new(0) };
        if let Ok(m) = dev.matrix(Arc::new(format) as Arc<dyn Format<T>>) {
            for _ in 0..4 {
                if let Err(error) = dev.tri_solve(m, b, x, Pass::nothing()) {
                    let known = matches!(error, Error::Function { .. } | Error::Unsupported { .. });
                    assert!(known, "{trick:?}: {error}");
                }
            }
        }
        dev.tri_solve(good, b, x, Pass::nothing()).unwrap();
        same("x", &download(dev, x), &vec![T::one(); n]);
    }
}

/// A panic of the caller's `watch` comes through once the run has ended; the backend works afterwards.
pub fn watch_panics<T: Scalar>(make: fn() -> Device) {
    let dev = &make().scope();
    let n = 3000;
    let (x, c) = (upload(dev, &vec![T::one(); n]), cells_of(dev, &[T::one()])[0]);
    let mut k = Recorder::new(dev, "endless");
    k.each(|k| k.multi_axpy_dot(Pass::new("round").dot(c, x, x).count(c)));
    let mut plan = k.finish().and_then(|program| dev.plan(program)).unwrap();
    for _ in 0..2 {
        let mut watch = |_: Progress| -> ControlFlow<()> { panic!("the caller's own") };
        let run = Run { limit: u64::MAX - 1, history: &mut History::off(), watch: Some(&mut watch) };
        let caught = catch_unwind(AssertUnwindSafe(|| plan.execute(run).map(drop)));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"the caller's own"));
        let run = Run { limit: 5, history: &mut History::off(), watch: None };
        let finish = plan.execute(run).unwrap();
        assert_eq!((finish.iterations, finish.reason), (5, Reason::Limit));
        same("the sum", &dev.read(&[c]).unwrap(), &[T::from_real(n as f64)]);
    }
}
