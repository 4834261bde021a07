//! The method that was asked for and nothing else.
use super::own_device;
use lacuna::prelude::*;
use lacuna::solvers::residual_norm;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn matrix(text: &str) -> Csr<f64> {
    Spec::parse(text).unwrap().build().unwrap()
}

#[test]
fn what_falls_short_is_neither_continued_nor_explained() {
    // Singular, and without a solution for this b: much is said of it otherwise.
    let mut t = Triplets::new(50, 50);
    for i in 0..49 {
        [(i, i, 1.0), (i, i + 1, -1.0), (i + 1, i, -1.0), (i + 1, i + 1, 1.0)]
            .into_iter()
            .for_each(|(i, j, v)| t.push(i, j, v));
    }
    let (a, b, dev) = (t.to_csr().unwrap(), vec![1.0; 50], own_device());
    let solved = |strict: bool| {
        let system = LinearSystem::new(a.clone()).method("bicgstab").preconditioner("none").strict(strict);
        system.on(&dev).prepare().unwrap().solve(&b).unwrap().1
    };
    let (strict, usual) = (solved(true), solved(false));
    assert!(!strict.converged() && !usual.converged());
    assert!(!usual.notes.is_empty() && !usual.why.is_empty());
    assert_eq!((strict.notes.len(), &*strict.why, &*strict.advice), (0, "", ""));
    assert!(strict.restarts <= usual.restarts);
}

#[test]
fn a_limit_is_the_callers_and_no_product_follows_it() {
    let a = Arc::new(matrix("gen:poisson2d:30x30"));
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, of) = (count.clone(), a.clone());
    let product = HostOperator::new(900, move |x: &[f64], y: &mut [f64]| {
        counted.fetch_add(1, Ordering::Relaxed);
        of.product(x, y)
    });
    let stop = Stop::default().max_iters(5);
    let system = LinearSystem::from_operator(product).method("cg").strict(true).stop(stop);
    let (_, outcome) = system.prepare().unwrap().solve(&[1.0; 900]).unwrap();
    assert_eq!((outcome.reason, outcome.iterations), (Reason::Limit, 5));
    // One for each iteration, one to confirm; none for the guess, which is 0.
    assert_eq!(count.load(Ordering::Relaxed), 6);
}

#[test]
fn converged_holds_in_twice_the_precision() {
    // Rows that differ by 12 orders of magnitude: the recurrence is far from the residual.
    let mut t = Triplets::new(200, 200);
    for i in 0..200 {
        t.push(i, i, 10f64.powi((i % 13) as i32 - 6));
        if i > 0 {
            t.push(i, i - 1, 1e-3 * 10f64.powi((i % 13) as i32 - 6));
        }
    }
    let (a, b) = (t.to_csr().unwrap(), vec![1.0; 200]);
    for (method, rtol) in [("gmres", 1e-10), ("bicgstab", 1e-13), ("idr", 1e-13), ("cgs", 1e-15)] {
        let stop = Stop::default().rtol(rtol).max_iters(2000);
        let system =
            LinearSystem::new(a.clone()).method(method).preconditioner("none").strict(true).stop(stop);
        let (x, outcome) = system.prepare().unwrap().solve(&b).unwrap();
        let found = residual_norm(&a, &b, x.as_slice().unwrap()) / 200f64.sqrt();
        assert!(!outcome.converged() || found <= 1.01 * rtol, "{method}: {found:e}");
    }
}

#[test]
fn refinement_and_several_columns_are_strict_too() {
    let a = matrix("gen:convection:20x20:10");
    let b = Array2::from_shape_fn((400, 3), |(i, j)| 1.0 + ((i + j) % 5) as f64);
    let stop = Stop::default().max_iters(3);
    for refine in [false, true] {
        let system = LinearSystem::new(a.clone()).method("gmres").preconditioner("none").strict(true);
        let mut system = system.refine(refine).stop(stop).prepare().unwrap();
        let mut x = Array2::zeros((400, 3));
        for outcome in system.solve_columns(b.view(), x.view_mut()).unwrap() {
            assert!(!outcome.converged() && outcome.why.is_empty() && outcome.iterations <= 3, "{outcome:?}");
        }
    }
}
