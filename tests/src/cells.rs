//! Cell instructions: arithmetic, tests, and the small dense problem of GMRES.
use crate::bits::{Trace, cells_of};
use crate::numbers::Rng;
use crate::on_both;
use lacuna_engine::{
    Cell, Cells, Device, Formula, Hessenberg, History, Pass, Reason, Recorder, Run, Scalar, Scope, Test,
};

/// Every operation on every pair of the numbers.
fn table<T: Scalar>(dev: &Scope, numbers: &[T]) -> Trace<T> {
    let mut trace = Trace::new();
    let c = cells_of(dev, numbers);
    let out = cells_of(dev, &[T::zero(); 9]);
    for (i, &a) in c.iter().enumerate() {
        for (j, &b) in c.iter().enumerate() {
            let pass = Pass::new("table")
                .eval(out[0], a + b)
                .eval(out[1], a - b)
                .eval(out[2], a * b)
                .eval(out[3], a / b)
                .eval(out[4], a.max(b))
                .eval(out[5], -a)
                .eval(out[6], a.conj())
                .eval(out[7], a.sqrt())
                .eval(out[8], a);
            dev.multi_axpy_dot(pass).unwrap();
            let (x, y) = (numbers[i], numbers[j]);
            trace.cells(dev, format!("+ − × ÷ max −a conj sqrt copy of ({x:e}, {y:e})"), &out);
        }
    }
    trace
}

/// Every operation on random numbers of ordinary and extreme magnitude, each rounded as [`Scalar`] specifies.
pub fn arithmetic<T: Scalar>(make: fn() -> Device) {
    let mut rng = Rng::new(11);
    let edge = (T::MAX.log2() / 2.0) as i32;
    let mut numbers = rng.vector::<T>(8);
    numbers.extend(rng.spread::<T>(10, edge));
    numbers.extend([T::from_parts(1.0, 0.0), T::from_parts(0.0, -1.0), T::from_parts(-3.0, 4.0)]);
    on_both!(make, "arithmetic", |dev| { table(dev, &numbers) });
    on_both!(make, "sums of runs of cells", |dev| {
        let [a, b] = [0, 1].map(|_| dev.run_of_cells::<T>(numbers.len()).unwrap());
        for (i, &number) in numbers.iter().enumerate() {
            dev.write(a.at(i), number).unwrap();
            dev.write(b.at(numbers.len() - 1 - i), number).unwrap();
        }
        dev.multi_axpy_dot(Pass::new("sums").add_cells(a, b)).unwrap();
        let mut trace = Trace::new();
        trace.cells(dev, "a + b", &(0..numbers.len()).map(|i| a.at(i)).collect::<Vec<_>>());
        assert!(dev.multi_axpy_dot(Pass::new("unequal").add_cells(a, b.take(1))).is_err());
        trace
    });
}

/// Every operation on zeros of both signs, infinities, NaN, the largest and the smallest numbers.
pub fn special_values<T: Scalar>(make: fn() -> Device) {
    let parts = [0.0, -0.0, 1.0, -2.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, T::MAX, -T::TINY];
    let mut numbers: Vec<T> = parts.into_iter().map(|re| T::from_parts(re, 0.0)).collect();
    if T::KIND.is_complex() {
        let pairs = [(0.0, 1.0), (-4.0, -0.0), (T::MAX, T::MAX), (T::TINY, -T::TINY), (1.0, f64::NAN)];
        numbers.extend(pairs.map(|(re, im)| T::from_parts(re, im)));
    }
    on_both!(make, "special values", |dev| { table(dev, &numbers) });
}

/// Every test on numbers around its boundary, in a program that stops when it holds.
pub fn tests<T: Scalar>(make: fn() -> Device) {
    let numbers = [-1.0, -0.0, 0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(T::from_real);
    type Asked<T> = (&'static str, fn(Cell<T>, Cell<T>) -> Test<T>, fn(f64, f64) -> bool);
    let asked: [Asked<T>; 5] = [
        ("a <= b", |a, b| a.le(b), |a, b| a <= b),
        ("a > b", |a, b| a.gt(b), |a, b| a > b),
        ("not a > 0", |a, _| a.not_positive(), |a, _| a <= 0.0 || a.is_nan()),
        ("not finite", |a, _| a.not_finite(), |a, _| !a.is_finite()),
        ("zero", |a, _| a.is_zero(), |a, _| a == 0.0),
    ];
    on_both!(make, "tests", |dev| {
        let mut trace = Trace::<T>::new();
        let c = cells_of(dev, &numbers);
        for (name, ask, expected) in asked {
            for (i, j) in (0..7).flat_map(|i| (0..7).map(move |j| (i, j))) {
                let mut k = Recorder::new(dev, "test");
                k.multi_axpy_dot(Pass::new("ask").stop_if(ask(c[i], c[j]), Reason::Custom("it holds")));
                let mut plan = k.finish().and_then(|program| dev.plan(program)).unwrap();
                let run = Run { limit: 1, history: &mut History::off(), watch: None };
                let holds = dev.execute(&mut plan, run).unwrap().reason == Reason::Custom("it holds");
                let (a, b) = (numbers[i].re(), numbers[j].re());
                assert_eq!(holds, expected(a, b), "{name} with a = {a}, b = {b}");
                trace.fact(format!("{name} with {a}, {b}"), holds);
            }
        }
        trace
    });
}

/// The cells of a least-squares problem with `m` columns.
///
/// # Panics
/// If there is no memory for them.
pub fn hessenberg<T: Scalar>(dev: &Scope, m: usize) -> Hessenberg<T> {
    let run = |count| dev.run_of_cells(count).unwrap();
    let (h, rotations, g, y, used) = (run(m * (m + 1)), run(2 * m), run(m + 1), run(m), run(1).at(0));
    Hessenberg { m, h, rotations, g, y, used }
}

/// Rotates `used` columns of a random problem and solves for `y`. Returns the original columns, `β`, `y`, and
/// the squared residual after each column.
pub fn least_squares<T: Scalar>(
    dev: &Scope,
    seed: u64,
    m: usize,
    used: usize,
    trace: &mut Trace<T>,
) -> (Vec<Vec<T>>, T, Vec<T>, Vec<T>) {
    let at = hessenberg::<T>(dev, m);
    let mut rng = Rng::new(seed);
    let beta: T = T::from_real(2.0 + rng.real());
    let rr = cells_of(dev, &vec![T::zero(); used.max(1)]);
    let mut columns = Vec::new();
    dev.write(at.g.at(0), beta).unwrap();
    for j in 0..used {
        let mut column: Vec<T> = rng.vector(j + 2);
        // An Arnoldi relation has a real, nonnegative subdiagonal; its last entry may vanish.
        column[j + 1] = if j + 1 == m { T::zero() } else { T::from_real(rng.real().abs()) };
        for (i, value) in column.iter().enumerate() {
            dev.write(at.h.at(j * (m + 1) + i), *value).unwrap();
        }
        dev.multi_axpy_dot(Pass::new("rotate").rotate(at, j, rr[j])).unwrap();
        columns.push(column);
    }
    dev.multi_axpy_dot(Pass::new("solve").back_substitute(at)).unwrap();
    let cells = |run: Cells<T>| (0..run.count as usize).map(|i| run.at(i)).collect::<Vec<_>>();
    for (name, run) in [("h", at.h), ("rotations", at.rotations), ("g", at.g), ("y", at.y)] {
        trace.cells(dev, format!("{used} of {m} columns: {name}"), &cells(run));
    }
    trace.cells(dev, format!("{used} of {m} columns: rr"), &rr);
    trace.cells(dev, format!("{used} of {m} columns: used"), &[at.used]);
    let y = dev.read(&cells(at.y)).unwrap();
    let rr = dev.read(&rr).unwrap();
    (columns, beta, y, rr)
}

/// `rotate` and `back_substitute` on random problems, complete and ended early; a zero column; `β = 0`.
pub fn rotations<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "rotations", |dev| {
        let mut trace = Trace::<T>::new();
        for (m, used) in [(1, 1), (1, 0), (2, 1), (5, 5), (5, 2), (30, 30), (30, 17)] {
            least_squares(dev, m as u64, m, used, &mut trace);
        }
        let at = hessenberg::<T>(dev, 3);
        let rr = cells_of(dev, &[T::one()]);
        let pass =
            Pass::new("zeros").rotate(at, 0, rr[0]).back_substitute(at).eval(at.g.at(1), Formula::from(2.0));
        dev.multi_axpy_dot(pass).unwrap();
        trace.cells(dev, "zero column: rr", &rr);
        trace.cells(dev, "zero column: y", &[at.y.at(0), at.y.at(1), at.g.at(1), at.used]);
        trace
    });
}
