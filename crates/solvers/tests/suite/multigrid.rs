//! Multigrid on grids: iteration counts that do not grow, the choice of axes, new values, refusals.
use crate::generated;
use lacuna_engine::{Complex64, Device, Error, Matrix, Owned, Reference, Scalar};
use lacuna_formats::{Csr, Triplets};
use lacuna_solvers::{
    Multigrid, MultigridOptions, Options, Outcome, Placed, Preconditioner, Setup, Smoothing, Solver, Stop,
    method,
};
use std::sync::Arc;

/// Second differences with a coefficient for each axis.
fn differences<T: Scalar>([nx, ny, nz]: [usize; 3], by: [f64; 3]) -> Csr<T> {
    let mut triplets = Triplets::new(nx * ny * nz, nx * ny * nz);
    for i in 0..nx * ny * nz {
        triplets.push(i, i, T::from_real(2.0 * by.iter().sum::<f64>()));
        let point = [i % nx, i / nx % ny, i / nx / ny];
        for (axis, (points, stride)) in [(nx, 1), (ny, nx), (nz, nx * ny)].into_iter().enumerate() {
            if point[axis] > 0 {
                triplets.push(i, i - stride, T::from_real(-by[axis]));
            }
            if point[axis] + 1 < points {
                triplets.push(i, i + stride, T::from_real(-by[axis]));
            }
        }
    }
    triplets.to_csr().unwrap()
}

fn placed<T: Scalar>(dev: &Device, a: &Csr<T>, options: MultigridOptions) -> (Owned<Matrix<T>>, Placed<T>) {
    let on = dev.matrix(Arc::new(a.clone())).unwrap();
    let m = Placed::new(dev, Box::new(Multigrid::new(options)), a, *on, Setup::new()).unwrap();
    (on, m)
}

/// Solves by CG for the vector of ones to 1e-8.
fn solve_on<T: Scalar>(dev: &Device, n: usize, on: &Owned<Matrix<T>>, m: &Placed<T>) -> (Outcome, Vec<T>) {
    let stop = Stop::default().rtol(1e-8).max_iters(200);
    let method = method("cg", &Options::default()).unwrap();
    let mut solver = Solver::new(dev, on, Some(m), &*method, stop).unwrap();
    let mut x = vec![T::zero(); n];
    let outcome = solver.solve(&vec![T::one(); n], &mut x).unwrap().clone();
    (outcome, x)
}

fn solve<T: Scalar>(a: &Csr<T>, options: MultigridOptions) -> (Outcome, Vec<T>) {
    let dev = Device::new(Reference::new());
    let (on, m) = placed(&dev, a, options);
    solve_on(&dev, a.rows(), &on, &m)
}

fn options() -> MultigridOptions {
    MultigridOptions::default().coarsest(100)
}

#[test]
fn iterations_do_not_grow() {
    let cases = [
        ("7 points", generated("gen:poisson3d:20x20x20"), [9, 12]),
        ("7 points, larger", generated("gen:poisson3d:44x44x44"), [9, 12]),
        ("27 points", generated("gen:poisson3d:25x24x23:27"), [8, 10]),
        ("5 points", generated("gen:poisson2d:128x100"), [9, 12]),
        ("5 points, larger", generated("gen:poisson2d:255x256"), [9, 12]),
        ("9 points", generated("gen:poisson2d:100x100:9"), [9, 12]),
        ("3 points", generated("gen:poisson1d:2000"), [9, 12]),
        ("weak along z", differences([24; 3], [1.0, 1.0, 0.01]), [9, 11]),
        ("strong along z", differences([24; 3], [1.0, 1.0, 100.0]), [9, 11]),
        ("between", differences([24; 3], [1.0, 0.3, 3.0]), [10, 14]),
        ("a thin plate", differences([80, 80, 3], [1.0; 3]), [10, 14]),
    ];
    let mut wrong = Vec::new();
    for (name, a, most) in &cases {
        for (options, most) in [options(), options().smoothing(Smoothing::Spai0)].into_iter().zip(most) {
            let (outcome, _) = solve::<f64>(a, options);
            if !outcome.converged() || outcome.iterations > *most {
                wrong.push(format!(
                    "{name} {:?}: {} {:?}",
                    options.smoothing, outcome.iterations, outcome.reason
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn complex_stencils_that_are_hermitian() {
    // Phases along x make it complex: similar to the Laplacian by a diagonal unitary matrix.
    let (a, turn) =
        (differences::<Complex64>([31, 30, 1], [1.0, 1.0, 0.0]), Complex64::from_polar(1.0, 0.05));
    let turned = a.entries().map(|(i, j, v)| match j as i64 - i as i64 {
        1 => v * turn,
        -1 => v * turn.conj(),
        _ => v,
    });
    let a = a.with_values(turned.collect()).unwrap();
    let (outcome, _) = solve(&a, options());
    assert!(outcome.converged() && outcome.iterations <= 12, "{} {:?}", outcome.iterations, outcome.reason);
}

#[test]
fn new_values_give_what_a_fresh_set_up_gives() {
    let dev = Device::new(Reference::new());
    let a = differences::<f64>([20, 18, 9], [1.0, 1.0, 0.4]);
    let (on, mut m) = placed(&dev, &a, options());
    for by in [[3.0, 3.0, 1.2], [1.0, 0.9, 0.4]] {
        let other = differences::<f64>([20, 18, 9], by);
        dev.set_matrix(*on, Arc::new(other.clone())).unwrap();
        m.update(&other, Setup::new()).unwrap();
        assert_eq!(solve_on(&dev, a.rows(), &on, &m).1, solve(&other, options()).1, "{by:?}");
    }
    // The axes stay as chosen: convergence is slower if other axes become the stronger ones, but the result
    // is right.
    let other = differences::<f64>([20, 18, 9], [0.3, 0.3, 1.0]);
    dev.set_matrix(*on, Arc::new(other.clone())).unwrap();
    m.update(&other, Setup::new()).unwrap();
    assert!(solve_on(&dev, a.rows(), &on, &m).0.converged());
}

#[test]
fn refusals_say_what_is_expected() {
    let refused = |a: &Csr<f64>| match Multigrid::default().set_up(a, &mut Setup::new()) {
        Err(Error::Unsupported { message, .. }) => message,
        other => panic!("{:?}", other.err()),
    };
    assert!(refused(&generated("gen:poisson-p1:31")).contains("`amg` any matrix"));
    let convection = generated::<f64>("gen:poisson2d:20x20");
    let values = convection.entries().map(|(i, j, v)| if j == i + 1 { 0.5 * v } else { v }).collect();
    assert!(refused(&convection.with_values(values).unwrap()).contains("Hermitian"));
    let negative = generated::<f64>("gen:poisson2d:40x40").scaled(-1.0).unwrap();
    assert!(refused(&negative).contains("positive diagonal"));
    let far = generated::<f64>("gen:poisson1d:2000");
    let mut triplets = far.to_triplets();
    (0..1998).for_each(|i| {
        triplets.push(i, i + 2, -0.1);
        triplets.push(i + 2, i, -0.1);
    });
    let message = refused(&triplets.to_csr().unwrap());
    assert!(message.contains("a neighbour is [-2, 0, 0] steps away"), "{message}");
}
