//! Least squares: matrices of any shape, with the reference's bits.
use crate::bits::Trace;
use crate::numbers::{Rng, random_matrix};
use crate::on_both;
use crate::solves::{paired, placed, tolerance};
use lacuna_engine::{Device, LinOp, Scalar};
use lacuna_solvers::{METHODS, Options, PRECONDITIONERS, Solver, Stop, method};
use std::sync::Arc;

/// Tall, wide and square, with an empty row and a full one; with the columns scaled and without.
pub fn shapes<T: Scalar>(make: fn() -> Device) {
    let preconds = PRECONDITIONERS.iter().filter(|p| ["none", "column-scaling"].contains(&p.name));
    for (info, precond) in METHODS.iter().filter(|info| info.least_squares()).flat_map(|info| {
        preconds.clone().filter(|precond| info.accepts(precond)).map(move |p| (info, p.name))
    }) {
        for (rows, cols) in [(700, 90), (90, 700), (257, 257), (3, 1), (1, 3)] {
            on_both!(make, format!("{} {precond}, {rows} x {cols}", info.name), |dev| {
                let rng = &mut Rng::new(8);
                let (a, b) = (random_matrix::<T>(rng, rows, cols, 7), rng.vector::<T>(rows));
                let operator = Device::matrix(dev, Arc::new(a.clone())).unwrap();
                let pair = paired(dev, operator.clone(), &a, true);
                let stop = Stop::default().rtol(tolerance::<T>()).max_iters(60);
                let method = method(info.name, &Options::default()).unwrap();
                let m = placed(dev, precond, &a, *operator);
                let m = m.as_ref().map(|m| m as &dyn LinOp<T>);
                let mut solver = Solver::new(dev, &pair, m, &*method, stop).unwrap();
                let mut trace = Trace::new();
                let mut x = vec![T::zero(); cols];
                for what in ["from 0", "from there"] {
                    trace.outcome(what, solver.solve(&b, &mut x).unwrap());
                    trace.numbers(what, &x);
                }
                trace
            });
        }
    }
}
