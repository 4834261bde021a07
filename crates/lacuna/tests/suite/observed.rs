//! What a caller sees of each iteration.
use super::own_device;
use lacuna::prelude::*;
use lacuna::solvers::residual_norm;
use lacuna::{Observer, Watch};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn matrix<T: Scalar>(text: &str) -> Csr<T> {
    Spec::parse(text).unwrap().build().unwrap()
}

type Seen<T> = Arc<Mutex<Vec<Vec<T>>>>;

/// An observer that keeps what it is shown, and ends the solve after so many.
fn keeping<T: Scalar>(most: usize) -> (Observer<T>, Seen<T>) {
    let seen = Seen::<T>::default();
    let kept = seen.clone();
    let observer = Observer::of_iterates(move |x: &[T]| {
        let mut kept = kept.lock().unwrap();
        kept.push(x.to_vec());
        if kept.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    (observer, seen)
}

#[test]
fn every_iterate_is_shown_once_and_the_last_is_the_solution() {
    let (a, b) = (matrix::<f64>("gen:poisson2d:30x30"), vec![1.0; 900]);
    for method in ["cg", "bicgstab", "cgs", "minres", "qmr", "tfqmr", "bicg", "cr"] {
        let solve = |observer: Option<Observer<f64>>| {
            let mut system = LinearSystem::new(a.clone()).method(method).preconditioner("none").strict(true);
            if let Some(observer) = observer {
                system = system.observe(observer);
            }
            system.on(own_device()).prepare().unwrap().solve(&b).unwrap()
        };
        let (observer, seen) = keeping(usize::MAX);
        let ((x, outcome), (plain, _)) = (solve(Some(observer)), solve(None));
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len() as u64, outcome.iterations, "{method}");
        assert!(seen.last().unwrap() == x.as_slice().unwrap(), "{method}");
        assert!(x == plain, "{method}: equal bits with and without");
        let residual = |x: &[f64]| residual_norm(&a, &b, x) / 30.0;
        let first = residual(&seen[0]);
        assert!(first > residual(x.as_slice().unwrap()), "{method}: {first:e}");
    }
}

#[test]
fn iterates_have_the_callers_scale() {
    let a = matrix::<f32>("gen:poisson2d:20x20").scaled(1e-25).unwrap();
    let b = vec![1e-20f32; 400];
    let (observer, seen) = keeping(usize::MAX);
    let system = LinearSystem::new(a).method("cg").preconditioner("none").strict(true).observe(observer);
    let (x, outcome) = system.prepare().unwrap().solve(&b).unwrap();
    outcome.ok().unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.last().unwrap() == x.as_slice().unwrap());
    let before = &seen[seen.len() - 2];
    let off = before.iter().zip(&x).map(|(p, q)| (p - q).abs() / q.abs()).fold(0.0, f32::max);
    assert!(off < 1e-2, "{off:e}: an iterate near the last is near it in size");
}

#[test]
fn gmres_shows_x_after_cycles_and_residuals_within() {
    let (a, b) = (matrix::<f64>("gen:poisson2d:30x30"), vec![1.0; 900]);
    let system =
        || LinearSystem::new(a.clone()).method("gmres:restart=10").preconditioner("none").strict(true);
    let (observer, seen) = keeping(usize::MAX);
    let (x, outcome) = system().observe(observer).prepare().unwrap().solve(&b).unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len() as u64, outcome.iterations.div_ceil(10));
    assert!(seen.last().unwrap() == x.as_slice().unwrap());

    let residuals = Arc::new(Mutex::new(Vec::new()));
    let kept = residuals.clone();
    let observer = Observer::of_residuals(move |residual| {
        kept.lock().unwrap().push(residual);
        ControlFlow::Continue(())
    });
    let (_, outcome) = system().observe(observer).prepare().unwrap().solve(&b).unwrap();
    let residuals = residuals.lock().unwrap();
    assert_eq!(residuals.len() as u64, outcome.iterations);
    let apart = residuals.iter().zip(&outcome.history[1..]).map(|(r, h)| (r / h - 1.0).abs());
    let apart = apart.fold(0.0, f64::max);
    assert!(apart < 1e-12, "the history has the same residuals: {apart:e}");
}

#[test]
fn breaking_ends_the_solve_at_once() {
    let (a, b) = (matrix::<f64>("gen:poisson2d:30x30"), vec![1.0; 900]);
    let (observer, seen) = keeping(40);
    let system = LinearSystem::new(a).method("cg").preconditioner("none").observe(observer);
    let mut system = system.prepare().unwrap();
    for solves in 1..3 {
        let (x, outcome) = system.solve(&b).unwrap();
        assert_eq!((outcome.reason, outcome.iterations), (Reason::Cancelled, 40));
        let mut seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 40, "solve {solves}");
        assert!(seen.last().unwrap() == x.as_slice().unwrap());
        seen.clear();
    }
}

#[test]
fn what_has_no_order_of_the_callers_is_refused() {
    let a = matrix::<f64>("gen:poisson2d:10x10");
    let system = |observer| LinearSystem::new(a.clone()).method("cg").observe(observer);
    let error = system(keeping::<f64>(1).0).reorder("rcm").prepare().err().unwrap();
    assert!(error.to_string().contains("another order or scale"), "{error}");
    let error = system(keeping::<f64>(1).0).refine(true).prepare().err().unwrap();
    assert!(error.to_string().contains("observer"), "{error}");
}

#[test]
fn a_long_cycle_is_cancelled_within_it() {
    // A cycle of 900 steps, of which the watch lets pass a few.
    let a = matrix::<f64>("gen:convection:200x200:100");
    let b = vec![1.0; a.rows()];
    let system = LinearSystem::new(a).method("gmres:restart=900").preconditioner("none").strict(true);
    let mut system = system.on(own_device()).prepare().unwrap();
    let (mut x, start, mut asked) = (vec![0.0; b.len()], Instant::now(), None);
    let mut watch = |_: Watch| {
        asked.get_or_insert(start.elapsed());
        ControlFlow::Break(())
    };
    let outcome = system.solve_watched(&b, &mut x, Some(&mut watch)).unwrap();
    assert_eq!(outcome.reason, Reason::Cancelled);
    assert!(outcome.iterations < 900, "{} iterations", outcome.iterations);
    let after = start.elapsed() - asked.unwrap();
    assert!(after < Duration::from_secs(2), "ended {after:?} after it was asked to");
}
