//! What goes wrong in the middle of a solve: cancelling, at any iteration.
use lacuna::backend::Reference;
use lacuna::prelude::*;
use lacuna::solvers::{METHODS, MethodInfo, residual_norm};
use std::ops::ControlFlow;

/// A Laplacian of a line without ends: singular, and `b` is not in its range.
fn inconsistent(n: usize) -> Csr<f64> {
    let mut entries = Triplets::new(n, n);
    for i in 0..n - 1 {
        for (i, j, v) in [(i, i, 1.0), (i + 1, i + 1, 1.0), (i, i + 1, -1.0), (i + 1, i, -1.0)] {
            entries.push(i, j, v);
        }
    }
    entries.to_csr().unwrap()
}

fn generated(name: &str) -> Csr<f64> {
    Spec::parse(name).unwrap().build().unwrap()
}

/// The reference tells after each iteration.
fn cancelled_at_each(info: &MethodInfo, name: &str, a: &Csr<f64>) {
    let n = a.rows();
    let b: Vec<f64> = (0..n).map(|i| 1.0 + (i % 5) as f64).collect();
    let guess: Vec<f64> = (0..n).map(|i| 0.01 * (i % 3) as f64).collect();
    let dev = Device::new(Reference::new());
    let system = LinearSystem::new(a.clone()).method(info.name).preconditioner("none");
    let mut system = system.on(dev).prepare().unwrap();
    let before = residual_norm(a, &b, &guess);
    for last in 1..40 {
        let (mut x, mut calls) = (guess.clone(), 0);
        let mut watch = |_: lacuna::Watch| {
            calls += 1;
            if calls == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let outcome = system.solve_watched(&b, &mut x, Some(&mut watch)).unwrap();
        let context = format!("{} on {name}, cancelled at {last}: {outcome:?}", info.name);
        assert!(x.iter().all(|x| x.is_finite()), "{context}");
        let after = residual_norm(a, &b, &x);
        assert!(after <= (1.0 + 1e-12) * before, "{before:e} became {after:e}: {context}");
        assert!(calls <= last, "called after it was cancelled: {context}");
        if calls < last || outcome.converged() {
            break; // ended by itself
        }
    }
}

#[test]
fn cancelling_at_any_iteration_leaves_no_worse_x() {
    let systems =
        [("a singular system", inconsistent(40)), ("convection", generated("gen:convection:9x8:200"))];
    for info in METHODS {
        for (name, a) in &systems {
            if name == &"a singular system" || !info.hermitian() {
                cancelled_at_each(info, name, a);
            }
        }
        cancelled_at_each(info, "poisson", &generated("gen:poisson2d:9x8"));
    }
}
