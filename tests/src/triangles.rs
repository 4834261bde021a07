//! Triangular solves: the reference's bits for all kinds of levels, and errors.
use crate::bits::{Trace, download};
use crate::numbers::{Rng, generated, random_matrix};
use crate::on_both;
use lacuna_engine::{Device, Error, Format, History, Pass, Recorder, Run, Scalar};
use lacuna_formats::{Csr, Half, Triangular, Triplets};
use std::sync::Arc;

const HALVES: [Half; 2] = [Half::Lower, Half::Upper];

/// A half of a matrix, with a diagonal that keeps the solution within range.
fn half<T: Scalar>(a: &Csr<T>, half: Half, names: Option<&[u32]>) -> Triangular<T> {
    let row = |i: usize| a.row_entries(i).map(|(_, v)| v.modulus()).sum::<f64>();
    let turn = |i: usize| T::from_parts(1.0, if T::KIND.is_complex() { (i % 3) as f64 - 1.0 } else { 0.0 });
    let reciprocals: Vec<T> = (0..a.rows()).map(|i| turn(i) * T::from_real(0.5 / (1.0 + row(i)))).collect();
    Triangular::part(a, half, Some(&reciprocals), names).unwrap()
}

/// Solves, with a pass.
fn solve<T: Scalar>(make: fn() -> Device, context: &str, a: &Triangular<T>) {
    let n = a.shape().0;
    let numbers: Vec<T> = Rng::new(n as u64 + 1).spread(n, 10);
    on_both!(make, context, |dev| {
        let mut trace = Trace::new();
        let on = dev.matrix::<T>(Arc::new(a.clone())).unwrap();
        let [b, x, y] = [0; 3].map(|_| dev.vector::<T>(n).unwrap());
        let [dot] = [dev.run_of_cells::<T>(1).unwrap().at(0)];
        dev.upload(&numbers, b).unwrap();
        dev.upload(&vec![T::from_real(f64::NAN); n], x).unwrap();
        dev.tri_solve(on, b, x, Pass::nothing()).unwrap();
        trace.vector(dev, "x", x);
        dev.tri_solve(on, x, y, Pass::new("rides").set(x, x + y).dot(dot, b, y)).unwrap();
        trace.vector(dev, "y", y);
        trace.vector(dev, "x + y", x);
        trace.cells(dev, "dot", &[dot]);
        trace
    });
}

/// Halves of random matrices, including empty rows and rows of many entries, in natural order and renumbered.
pub fn shapes<T: Scalar>(make: fn() -> Device) {
    let mut rng = Rng::new(17);
    for (n, per_row) in [(0, 1), (1, 1), (2, 2), (255, 3), (257, 40), (600, 2), (1000, 0)] {
        let a = match n {
            0 => Triplets::new(0, 0).to_csr().unwrap(),
            _ => random_matrix::<T>(&mut rng, n, n, per_row),
        };
        // The step has no common divisor with any of the sizes, so it visits all places.
        let names: Vec<u32> = (0..n).map(|i| (i * 613 % n) as u32).collect();
        for side in HALVES {
            solve(make, &format!("{n} rows, {side:?}"), &half(&a, side, None));
            solve(make, &format!("{n} rows by other names, {side:?}"), &half(&a, side, Some(&names)));
        }
    }
}

/// As many levels as rows, and bands of them.
pub fn chains<T: Scalar>(make: fn() -> Device) {
    for name in ["gen:poisson1d:700", "gen:poisson2d:90x3"] {
        let a = generated::<T>(name);
        for side in HALVES {
            solve(make, &format!("{name} {side:?}"), &half(&a, side, None));
        }
    }
}

/// Levels wide enough to be divided, runs of narrow ones between them, and a single level.
pub fn wide_levels<T: Scalar>(make: fn() -> Device) {
    let mut triplets = Triplets::new(30_000, 30_000);
    for i in 0..30_000usize {
        triplets.push(i, i, T::one());
        // Three wide levels, the second and third with a chain at the end.
        let needs = if i % 10_000 > 9_950 { Some(i - 1) } else { i.checked_sub(10_000) };
        if let Some(j) = needs {
            triplets.push(i, j, T::from_real(0.5));
        }
    }
    let wide: Csr<T> = triplets.to_csr().unwrap();
    let matrices = [wide, generated("gen:poisson3d:30x30x30"), Csr::identity(20_000).unwrap()];
    for a in &matrices {
        for side in HALVES {
            let solved = half(a, side, None);
            solve(make, &format!("{} rows, {} levels, {side:?}", a.rows(), solved.depth()), &solved);
        }
    }
}

/// Independent blocks: as many rows as a warp has threads, and far more.
pub fn blocks<T: Scalar>(make: fn() -> Device) {
    for (count, grid) in [(40, "gen:poisson2d:8x4"), (3, "gen:poisson3d:13x11x9"), (500, "gen:poisson1d:33")]
    {
        let block = generated::<T>(grid);
        let rows = block.rows();
        let mut triplets = Triplets::new(count * rows, count * rows);
        for first in (0..count).map(|k| k * rows) {
            block.entries().for_each(|(i, j, v)| triplets.push(first + i, first + j, v));
        }
        let a = triplets.to_csr().unwrap();
        let turned: Vec<u32> = (0..a.rows() as u32).rev().collect();
        for side in HALVES {
            for names in [None, Some(&turned[..])] {
                let order = if names.is_some() { "turned" } else { "as it is" };
                solve(make, &format!("{count} x {grid}, {side:?}, {order}"), &half(&a, side, names));
            }
        }
    }
}

/// Among products and passes, repeatedly, under a condition, and with new values.
pub fn programs<T: Scalar>(make: fn() -> Device) {
    let a = generated::<T>("gen:poisson2d:33x31");
    let [lower, upper] = HALVES.map(|side| half(&a, side, None));
    let doubled = half(&a.scaled(T::from_real(2.0)).unwrap(), Half::Lower, None);
    let numbers: Vec<T> = Rng::new(3).vector(a.rows());
    on_both!(make, "a program", |dev| {
        let mut trace = Trace::new();
        let product = dev.matrix(Arc::new(a.clone())).unwrap();
        let l = dev.matrix::<T>(Arc::new(lower.clone())).unwrap();
        let u = dev.matrix::<T>(Arc::new(upper.clone())).unwrap();
        let [r, s, t, z] = [0; 4].map(|_| dev.vector::<T>(a.rows()).unwrap());
        let [rr, rz, most] = [0; 3].map(|_| dev.run_of_cells::<T>(1).unwrap().at(0));
        dev.upload(&numbers, r).unwrap();
        dev.write(most, T::from_real(-1.0)).unwrap();
        let mut k = Recorder::new(dev, "solves");
        k.each(|k| {
            k.tri_solve(l, r, t, Pass::nothing());
            k.tri_solve(u, t, z, Pass::new("along").dot(rz, r, z));
            k.spmv_dot(&product, z, s, Pass::new("step").set(r, r - 0.25 * s).dot(rr, r, r));
            k.when(rr.le(most), |k| k.tri_solve(l, z, r, Pass::nothing()));
            k.multi_axpy_dot(Pass::new("count").count(rr));
        });
        let program = k.finish().unwrap();
        let mut plan = dev.plan(program).unwrap();
        for values in [None, Some(&doubled)] {
            if let Some(values) = values {
                dev.set_matrix::<T>(l, Arc::new(values.clone())).unwrap();
                dev.write(most, T::from_real(1e30)).unwrap();
            }
            let mut history = History::default();
            let finish =
                dev.execute(&mut plan, Run { limit: 5, history: &mut history, watch: None }).unwrap();
            trace.finish("five times", &finish, &history);
            trace.cells(dev, "sums", &[rr, rz]);
            [r, s, t, z].into_iter().for_each(|v| trace.numbers("vector", &download(dev, v)));
        }
        trace
    });
}

/// Errors, by name: different lengths, a vector on both sides, narrow vectors, a matrix that is not stored
/// for solves.
pub fn refusals<T: Scalar>(make: fn() -> Device) {
    let dev = &make().scope();
    let a = generated::<T>("gen:poisson2d:5x4");
    let plain = dev.matrix(Arc::new(a.clone())).unwrap();
    let solved = dev.matrix::<T>(Arc::new(half(&a, Half::Lower, None))).unwrap();
    let [x, y] = [0; 2].map(|_| dev.vector::<T>(20).unwrap());
    let short = dev.vector::<T>(19).unwrap();
    for (b, x) in [(short, x), (x, short)] {
        match dev.tri_solve(solved, b, x, Pass::nothing()) {
            Err(Error::Length { expected: 20, got: 19, .. }) => {}
            other => panic!("expected a length error, got {other:?}"),
        }
    }
    let twice = dev.tri_solve(solved, x, x, Pass::nothing()).unwrap_err();
    assert!(matches!(twice, Error::Pass { .. }), "{twice}");
    let refused = dev.tri_solve(plain, x, y, Pass::nothing()).unwrap_err();
    assert!(matches!(&refused, Error::Unsupported { message, .. } if message.contains("`csr`")), "{refused}");
    if T::HAS_NARROW {
        let narrow = dev.narrow_basis::<T>(20, 1).unwrap().column(0);
        let refused = dev.tri_solve(solved, narrow, y, Pass::nothing()).unwrap_err();
        assert!(matches!(refused, Error::Pass { .. }), "{refused}");
    }
    let gone = dev.scope().matrix::<T>(Arc::new(half(&a, Half::Upper, None))).unwrap();
    let stale = dev.tri_solve(gone, x, y, Pass::nothing());
    assert!(matches!(stale, Err(Error::Stale { .. })), "{stale:?}");
    let rectangular = dev.matrix(Arc::new(random_matrix::<T>(&mut Rng::new(1), 20, 30, 3))).unwrap();
    let shape = dev.tri_solve(rectangular, x, y, Pass::nothing());
    assert!(matches!(shape, Err(Error::Shape { got: (20, 30), .. })), "{shape:?}");
    dev.tri_solve(solved, x, y, Pass::nothing()).unwrap();
}
