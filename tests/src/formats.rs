//! Products in every storage format that a backend has kernels for have the bits of its rows.
use crate::bits::{Trace, cells_of, upload};
use crate::numbers::{Rng, generated, random_matrix};
use crate::on_both;
use lacuna_engine::{Adjoint, Cost, Device, Error, Format, Pass, Scalar};
use lacuna_formats::{Csr, FORMATS, Interpolation, POSITIONS, Pair, Stencil, Triplets, convert};
use lacuna_solvers::{Options, Solver, Stop, method};
use std::sync::Arc;

/// The matrix in every format that can store it and that the backend supports.
///
/// # Panics
/// If the backend does not refuse, as unsupported, a format that it does not list.
pub(crate) fn every<T: Scalar>(make: fn() -> Device, a: &Csr<T>) -> Vec<(&'static str, Arc<dyn Format<T>>)> {
    let a = Arc::new(a.clone());
    let dev = make();
    let listed = dev.formats(a.rows(), Format::bytes(&*a)).unwrap();
    let mut kept = Vec::new();
    for format in FORMATS {
        let Ok(made) = convert(&a, format.name) else { continue };
        if Cost::find(listed, format.name, format.kernel).is_some() {
            kept.push((format.name, made));
        } else if let Err(error) = dev.matrix(made) {
            assert!(matches!(error, Error::Unsupported { .. }), "{}: {error}", format.name);
        }
    }
    assert!(kept.iter().any(|(name, _)| *name == "csr"), "every backend has csr");
    kept
}

/// `y ← A x` in every format, with and without a pass on the rows.
fn product<T: Scalar>(make: fn() -> Device, name: &str, a: &Csr<T>, x: &[T]) {
    for (format, a) in every(make, a) {
        product_of(make, format!("{name} in {format}"), &a, x);
    }
}

/// The same for a matrix as it is stored.
fn product_of<T: Scalar>(make: fn() -> Device, name: String, a: &Arc<dyn Format<T>>, x: &[T]) {
    on_both!(make, name, |dev| {
        let mut trace = Trace::new();
        let (rows, _) = a.shape();
        let (x, y) = (upload(dev, x), upload(dev, &vec![T::from_real(f64::NAN); rows]));
        let b = upload(dev, &Rng::new(7).vector::<T>(rows));
        let c = cells_of(dev, &[T::zero(), T::zero()]);
        let a = dev.matrix(a.clone()).unwrap();
        dev.spmv_dot(&a, x, y, Pass::nothing()).unwrap();
        trace.vector(dev, "y", y);
        dev.spmv_dot(&a, x, y, Pass::new("residual").set(y, b - y).dot(c[0], y, y).dot(c[1], b, y)).unwrap();
        trace.vector(dev, "b - A x", y);
        trace.cells(dev, "its sums", &c);
        trace
    });
}

/// Matrices that follow from grids, which no conversion makes: coefficients by position, interpolation and its
/// transpose.
pub(crate) fn on_grids<T: Scalar>() -> Vec<(String, Arc<dyn Format<T>>)> {
    let mut rng = Rng::new(12);
    let mut all: Vec<(String, Arc<dyn Format<T>>)> = Vec::new();
    for (size, only) in [
        ([70, 1, 1], [true, false, false]),
        ([1, 40, 30], [false, true, true]),
        ([5, 130, 1], [true, true, false]),
        ([131, 3, 4], [true; 3]),
        ([16, 17, 2], [true; 3]),
        ([12, 7, 9], [true, false, true]),
        ([50, 21, 20], [true, true, false]),
    ] {
        let steps = (0..27).map(|k| [k % 3, k / 3 % 3, k / 9].map(|step| step - 1));
        let steps: Vec<[i32; 3]> =
            steps.filter(|steps| (0..3).all(|axis| only[axis] || steps[axis] == 0)).collect();
        let coefficients: Vec<Vec<T>> = (0..POSITIONS).map(|_| rng.vector(steps.len())).collect();
        let stencil = Stencil::by_position(size, &steps, &coefficients).unwrap();
        all.push((format!("{} neighbours by position on {size:?}", steps.len()), Arc::new(stencil)));
        let coarsened = [0, 1, 2].map(|axis| only[axis] && size[axis] > 1);
        let up = Interpolation::prolongation(size, coarsened).unwrap();
        let down = Interpolation::restriction(size, coarsened).unwrap();
        all.push((format!("to {size:?} along {coarsened:?}"), Arc::new(up)));
        all.push((format!("from {size:?} along {coarsened:?}"), Arc::new(down)));
    }
    all
}

/// Coefficients by position, and transfers between grids.
pub fn grids<T: Scalar>(make: fn() -> Device) {
    for (name, a) in on_grids::<T>() {
        let x = Rng::new(13).spread::<T>(a.shape().1, 10);
        product_of(make, name, &a, &x);
    }
}

/// Random structures: empty rows, a full row, a single column or row, sizes around the boundaries of segments
/// and slices.
pub fn shapes<T: Scalar>(make: fn() -> Device) {
    let shapes = [
        (1, 1, 1),
        (1, 64, 30),
        (64, 1, 1),
        (35, 70, 2),
        (700, 1050, 12),
        (31, 33, 5),
        (32, 32, 9),
        (255, 257, 3),
        (256, 256, 12),
        (257, 250, 40),
        (600, 90, 2),
        (1024, 1026, 20),
        (1500, 1500, 1),
    ];
    for (rows, cols, per_row) in shapes {
        let mut rng = Rng::new((rows + per_row) as u64);
        let a = random_matrix(&mut rng, rows, cols, per_row);
        product(make, &format!("{rows}x{cols}"), &a, &rng.spread::<T>(cols, 10));
    }
    for (rows, cols) in [(0, 0), (0, 5), (5, 0), (600, 600)] {
        let a = Triplets::<T>::new(rows, cols).to_csr().unwrap();
        product(make, &format!("{rows}x{cols}, empty"), &a, &Rng::new(1).vector::<T>(cols));
    }
}

/// Structures that formats are made for: grids, blocks, bands, rows of very different lengths.
pub fn structures<T: Scalar>(make: fn() -> Device) {
    let mut names = vec![
        "gen:poisson1d:1000",
        "gen:poisson2d:37x29",
        "gen:poisson2d:31x30:9",
        "gen:poisson3d:9x8x11:27",
        "gen:elasticity3d:4",
        "gen:convection:30x29:10",
        "gen:power-law:700",
    ];
    if T::KIND.is_complex() {
        names.push("gen:helmholtz:20x21");
    }
    let rng = &mut Rng::new(3);
    for name in names {
        let a = generated::<T>(name);
        product(make, name, &a, &rng.spread::<T>(a.cols(), 10));
    }
    // Rows cut into pieces, with lengths just over the limit and far over it.
    let mut t = Triplets::<T>::new(900, 900);
    (0..900).for_each(|i| t.push(i, i, T::one()));
    for (row, entries) in [(2, 64), (5, 65), (300, 900), (301, 512), (899, 513)] {
        let values = rng.vector::<T>(entries);
        values.into_iter().enumerate().filter(|(j, _)| *j != row).for_each(|(j, v)| t.push(row, j, v));
    }
    product(make, "long rows of a square matrix", &t.to_csr().unwrap(), &rng.spread::<T>(900, 10));
}

/// Stencils with long reach, one-sided, along a single axis, on grids with short and long lines.
pub fn stencils<T: Scalar>(make: fn() -> Device) {
    let star: &[[i32; 3]] = &[[0, 0, 0], [-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]];
    let wide: &[[i32; 3]] =
        &[[0, 0, 0], [-3, 0, 0], [-1, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0], [1, -2, 0], [0, 0, -2]];
    let up: &[[i32; 3]] = &[[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1]];
    let mut rng = Rng::new(9);
    for (size, steps) in [
        ([600, 1, 1], &wide[..5]),
        ([5, 130, 1], &star[..5]),
        ([64, 9, 1], &star[..5]),
        ([300, 7, 1], &wide[..7]),
        ([7, 6, 16], wide),
        ([131, 3, 4], star),
        ([20, 21, 5], up),
        ([1, 40, 30], &star[3..]),
    ] {
        let coefficients = rng.vector::<T>(steps.len());
        let n = size.iter().product::<i32>();
        let mut t = Triplets::<T>::new(n as usize, n as usize);
        for i in 0..n {
            let at = [i % size[0], i / size[0] % size[1], i / size[0] / size[1]];
            for (step, &c) in steps.iter().zip(&coefficients) {
                let to: [i32; 3] = std::array::from_fn(|axis| at[axis] + step[axis]);
                if to.iter().zip(size).all(|(to, side)| (0..side).contains(to)) {
                    t.push(i as usize, ((to[2] * size[1] + to[1]) * size[0] + to[0]) as usize, c);
                }
            }
        }
        let a = t.to_csr().unwrap();
        let name = format!("{} neighbours on {size:?}", steps.len());
        assert!(convert(&Arc::new(a.clone()), "stencil").is_ok(), "{name}");
        product(make, &name, &a, &rng.spread::<T>(n as usize, 10));
    }
}

/// Row lengths around the limits of pieces: none, short, just over a piece, a full piece, a full last piece
/// of many.
pub fn long_rows<T: Scalar>(make: fn() -> Device) {
    let lengths = |full: usize| {
        let mut lengths = vec![0, 64, 65, 512, 513, 1024, 1025, full];
        lengths.extend((0..290).map(|i| i % 7));
        lengths.extend([70; 300]);
        lengths.push(full / 2);
        lengths
    };
    for cols in [3000, 70_001] {
        let lengths = lengths(cols);
        let mut t = Triplets::<T>::new(lengths.len(), cols);
        let mut rng = Rng::new(cols as u64);
        for (i, length) in lengths.into_iter().enumerate() {
            let values = rng.vector::<T>(length);
            values.into_iter().enumerate().for_each(|(k, v)| t.push(i, (k * (cols / length) + i) % cols, v));
        }
        let a = t.to_csr().unwrap();
        product(make, &format!("long rows of {cols}"), &a, &rng.vector::<T>(cols));
    }
}

/// A few rows with many entries next to an empty one and short ones, and a square matrix of full rows.
pub fn few_heavy_rows<T: Scalar>(make: fn() -> Device) {
    for (cols, lengths) in [(40_000, vec![9000, 0, 40_000, 3, 2000, 2048, 2049]), (300, vec![300; 300])] {
        let mut t = Triplets::<T>::new(lengths.len(), cols);
        let mut rng = Rng::new(cols as u64 + 1);
        for (i, length) in lengths.into_iter().enumerate() {
            let values = rng.vector::<T>(length);
            values.into_iter().enumerate().for_each(|(k, v)| t.push(i, (k + i) % cols, v));
        }
        let a = t.to_csr().unwrap();
        product(make, &format!("few heavy rows of {cols}"), &a, &rng.vector::<T>(cols));
    }
}

/// A product large enough for every thread and work-group, with rows divided unevenly.
pub fn large<T: Scalar>(make: fn() -> Device) {
    for name in ["gen:poisson2d:170x171", "gen:elasticity3d:10", "gen:power-law:20000"] {
        let a = generated::<T>(name);
        product(make, name, &a, &Rng::new(4).vector::<T>(a.cols()));
    }
}

/// An infinite or undefined number in `x` reaches the same rows in every format, whether padded or not.
pub fn not_finite<T: Scalar>(make: fn() -> Device) {
    let a = generated::<T>("gen:poisson2d:20x20");
    let mut x = Rng::new(5).vector::<T>(a.cols());
    x[17] = T::from_real(f64::INFINITY);
    x[300] = T::from_real(f64::NAN);
    product(make, "not finite", &a, &x);
}

/// `Aᴴ x` in every format has the bits of the conjugate transpose in that format.
pub fn adjoints<T: Scalar>(make: fn() -> Device) {
    let mut rng = Rng::new(8);
    for a in [random_matrix::<T>(&mut rng, 300, 470, 5), generated("gen:elasticity3d:3")] {
        let x = rng.vector::<T>(a.rows());
        let a = Arc::new(a);
        let hermitian = a.adjoint() == *a;
        for (format, _) in every(make, &a) {
            let Ok(turned) = convert(&Arc::new(a.adjoint()), format) else { continue };
            on_both!(make, format!("adjoint of {} rows in {format}", a.rows()), |dev| {
                let mut trace = Trace::new();
                let pair = Pair::new(dev, &a, format).unwrap();
                assert_eq!(*pair.a == *pair.adjoint, hermitian);
                let (v, y) = (upload(dev, &x), upload(dev, &vec![T::zero(); a.cols()]));
                dev.spmv_dot(&Adjoint(&pair), v, y, Pass::nothing()).unwrap();
                trace.vector(dev, "y", y);
                let mut got = vec![T::zero(); a.cols()];
                dev.download(y, &mut got).unwrap();
                let want: Vec<T> = (0..a.cols()).map(|i| turned.row(i, &x)).collect();
                assert_eq!(bytemuck::cast_slice::<T, u8>(&got), bytemuck::cast_slice::<T, u8>(&want));
                trace
            });
        }
    }
}

/// A whole solve in every format.
pub fn solves<T: Scalar>(make: fn() -> Device) {
    for (name, method_name) in
        [("gen:poisson2d:40x30", "cg"), ("gen:elasticity3d:5", "bicgstab"), ("gen:power-law:9000", "gmres")]
    {
        let a = generated::<T>(name);
        let b = Rng::new(6).vector::<T>(a.rows());
        for (format, stored) in every(make, &a) {
            on_both!(make, format!("{method_name} of {name} in {format}"), |dev| {
                let mut trace = Trace::new();
                let stop = Stop::default().rtol(0.0).max_iters(12);
                let operator = dev.matrix(stored.clone()).unwrap();
                let method = method(method_name, &Options::default()).unwrap();
                let mut solver = Solver::new(dev, &operator, None, &*method, stop).unwrap();
                let mut x = vec![T::zero(); b.len()];
                let outcome = solver.solve(&b, &mut x).unwrap().clone();
                assert_eq!(outcome.iterations, 12, "{}", outcome.reason);
                let x = upload(dev, &x);
                trace.vector(dev, "x", x);
                trace
            });
        }
    }
}
