//! User-defined methods: functions of about 20 lines, outside the solver crate.
use lacuna::NumberType;
use lacuna::ndarray::arr2;
use lacuna::prelude::*;

fn steepest_descent<T: Scalar>(k: &mut Recorder<'_, T>, s: &System<'_, T>) {
    let (a, b, x) = (s.a, s.b, s.x);
    let [r, q] = k.vectors(s.n());
    let [rr, rq, alpha] = k.cells();

    let residual = Pass::new("residual").set(r, b - q).dot(rr, r, r);
    let along_r = Pass::new("along_r")
        .dot(rq, r, q)
        .stop_if(rq.not_positive(), Reason::IndefiniteOperator)
        .eval(alpha, rr / rq);
    let step = Pass::new("step").set(x, x + alpha * r).set(r, r - alpha * q).dot(rr, r, r);
    let step = s.count(step, rr);

    k.restart(|k| k.spmv_dot(a, x, q, s.confirm(residual, rr)));
    k.each(|k| {
        k.spmv_dot(a, r, q, along_r);
        k.multi_axpy_dot(step);
    });
}

/// Conjugate residuals (Stiefel 1955), for Hermitian systems: the norm of the residual never grows.
fn conjugate_residuals<T: Scalar>(k: &mut Recorder<'_, T>, s: &System<'_, T>) {
    let (a, b, x) = (s.a, s.b, s.x);
    let [r, v, p, q] = k.vectors(s.n());
    let [rr, rv, rv_old, qq, alpha, beta] = k.cells();

    let residual = Pass::new("residual").set(r, b - v).dot(rr, r, r);
    let start = Pass::new("start").set(p, r).set(q, v).dot(rv, r, v).dot(qq, q, q);
    let step = Pass::new("step")
        .eval(alpha, rv / qq)
        .eval(rv_old, rv)
        .set(x, x + alpha * p)
        .set(r, r - alpha * q)
        .dot(rr, r, r);
    let along_r = Pass::new("along_r").dot(rv, r, v).eval(beta, rv / rv_old);
    let turn = Pass::new("turn").set(p, r + beta * p).set(q, v + beta * q).dot(qq, q, q);
    let turn = s.count(turn, rr);

    k.restart(|k| {
        k.spmv_dot(a, x, v, s.confirm(residual, rr));
        k.spmv_dot(a, r, v, start);
    });
    k.each(|k| {
        k.multi_axpy_dot(step);
        k.spmv_dot(a, r, v, along_r);
        k.multi_axpy_dot(turn);
    });
}

/// `A` with a positive spectrum and, for complex types, Hermitian off-diagonal entries.
fn hermitian<T: Scalar>(n: usize) -> Csr<T> {
    let mut t = Triplets::new(n, n);
    for i in 0..n {
        t.push(i, i, T::from_real(3.0 + (i % 5) as f64));
        if i > 0 {
            let v = T::from_parts(-1.0, 0.5);
            t.push(i, i - 1, v);
            t.push(i - 1, i, v.conj());
        }
    }
    t.to_csr().unwrap()
}

fn converges<T: Scalar>(own: impl Method<T> + 'static) {
    let a = hermitian::<T>(500);
    let b = Array1::from_shape_fn(500, |i| T::from_parts((i % 7) as f64 - 3.0, 1.0));
    let rtol = if matches!(T::KIND, NumberType::F32 | NumberType::C32) { 1e-5 } else { 1e-10 };
    let mut system = LinearSystem::new(a.clone())
        .method(own)
        .stop(Stop::default().rtol(rtol).max_iters(500))
        .prepare()
        .unwrap();
    let (x, outcome) = system.solve(b.view()).unwrap();
    assert_eq!(outcome.reason, Reason::Converged, "{outcome:?}");
    assert_eq!(outcome.history.len() as u64, outcome.iterations + 1);
    let mut ax = vec![T::zero(); 500];
    a.product(x.as_slice().unwrap(), &mut ax).unwrap();
    let norm = |v: &mut dyn Iterator<Item = T>| v.map(|v| v.modulus().powi(2)).sum::<f64>().sqrt();
    let relative = norm(&mut ax.iter().zip(&b).map(|(ax, b)| *b - *ax)) / norm(&mut b.iter().copied());
    assert!(relative <= rtol + 20.0 * T::EPSILON, "{relative}");
}

macro_rules! in_every_type {
    ($($method:ident)*) => {$(
        mod $method {
            #[test]
            fn f32() {
                super::converges::<f32>(super::$method::<f32>);
            }
            #[test]
            fn f64() {
                super::converges::<f64>(super::$method::<f64>);
            }
            #[test]
            fn c32() {
                super::converges::<lacuna::Complex32>(super::$method::<lacuna::Complex32>);
            }
            #[test]
            fn c64() {
                super::converges::<lacuna::Complex64>(super::$method::<lacuna::Complex64>);
            }
        }
    )*};
}
in_every_type! { steepest_descent conjugate_residuals }

#[test]
fn conjugate_residuals_never_grow_and_need_as_few_iterations_as_cg() {
    let a = Spec::parse("gen:poisson2d:30x30").unwrap().build::<f64>().unwrap();
    let b = Array1::ones(a.rows());
    let with = |system: LinearSystem<f64>| {
        system.preconditioner("none").prepare().unwrap().solve(b.view()).unwrap().1
    };
    let own = with(LinearSystem::new(a.clone()).method(conjugate_residuals));
    let cg = with(LinearSystem::new(a).method("classical-cg"));
    assert!(own.converged() && cg.converged());
    assert!(own.iterations <= cg.iterations, "{} > {}", own.iterations, cg.iterations);
    assert!(own.history.windows(2).all(|w| w[1] <= w[0] * (1.0 + 1e-12)), "{:?}", own.history);
}

#[test]
fn an_indefinite_matrix_under_steepest_descent_is_reported() {
    let a = from_dense(arr2(&[[1.0, 0.0], [0.0, -2.0]]).view()).unwrap();
    let mut system = LinearSystem::new(a).method(steepest_descent).prepare().unwrap();
    let (_, outcome) = system.solve(Array1::ones(2).view()).unwrap();
    assert_eq!(outcome.reason, Reason::IndefiniteOperator);
}

#[test]
fn a_method_may_be_recorded_by_hand() {
    let a = hermitian::<f64>(50);
    let dev = default_device().unwrap();
    let op = dev.matrix(std::sync::Arc::new(a)).unwrap();
    let stop = Stop::default();
    let own = conjugate_residuals::<f64>;
    let mut solver = Solver::new(&dev, &op, None, &own, stop).unwrap();
    let mut x = vec![0.0; 50];
    assert!(solver.solve(&[1.0; 50], &mut x).unwrap().converged());
    assert_eq!(solver.program().counts(), 1);
}

/// What would be wrong without a word: a preconditioner that is not used, one that the method must not have, a residual that is not
/// confirmed.
#[test]
fn what_a_method_leaves_out_is_told() {
    let notes = |system: LinearSystem<f64>| {
        let outcome = system.prepare().unwrap().solve(&Array1::ones(500)).unwrap().1;
        outcome.notes.join("\n")
    };
    let a = || hermitian::<f64>(500);
    let said = notes(LinearSystem::new(a()).method(steepest_descent).preconditioner("ilu0"));
    assert!(said.contains("custom does not use its preconditioner: ilu0 was set up in vain"), "{said}");
    let said = notes(LinearSystem::new(a()).method("cg").preconditioner("sor"));
    assert!(said.contains("cg needs a Hermitian preconditioner, and sor is not known to be one"), "{said}");
    let said = notes(LinearSystem::new(a()).method("cg").preconditioner("ic0"));
    assert!(!said.contains("Hermitian preconditioner"), "{said}");
    fn unconfirmed(k: &mut Recorder<'_, f64>, s: &System<'_, f64>) {
        let [r] = k.vectors(s.n());
        let [rr] = k.cells();
        k.each(|k| {
            k.spmv_dot(s.a, s.x, r, Pass::nothing());
            k.multi_axpy_dot(
                Pass::new("step").set(r, s.b - r).set(s.x, s.x + 0.1 * r).dot(rr, r, r).count(rr),
            );
        });
    }
    let stop = Stop::default().max_iters(30);
    let said = notes(LinearSystem::new(a()).method(unconfirmed).stop(stop).preconditioner("none"));
    assert!(said.contains("custom confirms no residual"), "{said}");
}

/// A pass after a preconditioner may begin with formulas, whatever the preconditioner records.
#[test]
fn a_pass_behind_a_preconditioner_may_begin_with_formulas() {
    fn damped(k: &mut Recorder<'_, f64>, s: &System<'_, f64>) {
        let [r] = k.vectors(s.n());
        let z = s.preconditioned(k, r);
        let [rr, omega] = k.cells();
        let residual = || Pass::new("residual").set(r, s.b - r).dot(rr, r, r);
        k.restart(|k| k.spmv_dot(s.a, s.x, r, s.confirm(residual(), rr)));
        k.each(|k| {
            s.precondition(k, r, z, Pass::new("step").eval(omega, 0.5).set(s.x, s.x + omega * z));
            k.spmv_dot(s.a, s.x, r, s.count(residual(), rr));
        });
    }
    for preconditioner in ["jacobi", "neumann", "ilu0", "block-jacobi"] {
        let system = LinearSystem::new(hermitian::<f64>(500)).method(damped).preconditioner(preconditioner);
        let outcome = system.prepare().unwrap().solve(&Array1::ones(500)).unwrap().1;
        assert!(outcome.converged(), "{preconditioner}: {outcome:?}");
    }
}
