//! An estimate of the largest eigenvalue, and pseudo-random vectors that are the same on every device.
use crate::System;
use crate::random::hashed;
use lacuna_engine::{Cell, Pass, Recorder, Vector};

/// Steps of the power iteration that estimates the largest eigenvalue, and the margin that is added.
const STEPS: usize = 20;
const MARGIN: f64 = 1.1;

/// A vector of hashed numbers.
pub(super) fn hashed_vector(k: &mut Recorder<'_>, n: usize, number: usize) -> Vector {
    k.vector_of_reals(&(0..n).map(|row| hashed(row, number)).collect::<Vec<_>>())
}

/// Records the estimate of the largest eigenvalue of `M A` by modulus, including the margin.
pub(super) fn largest_eigenvalue(k: &mut Recorder<'_>, s: &System<'_>, high: Cell) {
    let (start, [v, q]) = (hashed_vector(k, s.n(), 0), k.vectors(s.n()));
    let z = s.preconditioned(k, q);
    let [norm, size] = k.cells();
    k.multi_axpy_dot(Pass::new("start").set(v, start).dot(size, v, v).eval(norm, size.sqrt()));
    for _ in 0..STEPS {
        k.multi_axpy_dot(Pass::new("normalize").set(v, v / norm));
        k.spmv_dot(s.a, v, q, Pass::nothing());
        let norm = Pass::new("norm").set(v, z).dot(size, v, v).eval(norm, size.sqrt());
        s.precondition(k, q, z, norm);
    }
    k.multi_axpy_dot(Pass::new("margin").eval(high, MARGIN * norm));
}
