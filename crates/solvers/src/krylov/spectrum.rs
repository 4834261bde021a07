//! An estimate of the largest eigenvalue, and pseudo-random vectors that are the same on every device.
use crate::System;
use crate::random::hashed;
use lacuna_engine::{Cell, Pass, Recorder, Scalar, Vector};

/// Steps of the power iteration that estimates the largest eigenvalue, and the margin that is added.
const STEPS: usize = 20;
const MARGIN: f64 = 1.1;

/// A vector of hashed numbers.
pub(super) fn hashed_vector<T: Scalar>(k: &mut Recorder<'_, T>, n: usize, number: usize) -> Vector<T> {
    k.vector_of(&(0..n).map(|row| T::from_real(hashed(row, number))).collect::<Vec<_>>())
}

/// Records the estimate of the largest eigenvalue of `M A` by modulus, including the margin.
pub(super) fn largest_eigenvalue<T: Scalar>(k: &mut Recorder<'_, T>, s: &System<'_, T>, high: Cell<T>) {
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
