//! What methods need to know of a spectrum, and vectors that look random and are the same everywhere.
use crate::System;
use lacuna_core::{Cell, Pass, Recorder, Scalar};

/// Steps of the power iteration that the largest eigenvalue is estimated by, and the margin that is added.
const STEPS: usize = 20;
const MARGIN: f64 = 1.1;

/// Numbers between −1 and 1 by a hash of the row and the number of the vector.
pub(super) fn hashed<T: Scalar>(n: usize, number: usize) -> Vec<T> {
    let element = |row: usize| {
        let mut h = (row as u64 ^ (number as u64) << 40).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        h ^= h >> 29;
        h = h.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        h ^= h >> 32;
        (h >> 40) as f64 / (1u64 << 23) as f64 - 1.0
    };
    (0..n).map(|row| T::from_real(element(row))).collect()
}

/// Records the estimate of the largest eigenvalue of `M A` in modulus, margin included.
pub(super) fn largest_eigenvalue<T: Scalar>(k: &mut Recorder<'_, T>, s: &System<'_, T>, high: Cell<T>) {
    let (start, [v, q]) = (k.vector_of(&hashed(s.n(), 0)), k.vectors(s.n()));
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
