//! What bindings for other languages use: numbers for reasons and errors, preconditioners by themselves, systems by type at run time.
use super::own_device;
use lacuna::dynamic::{
    self, Functions, Indices, Matrix, Operator, Precondition, Settings, bytes_of, bytes_of_mut,
};
use lacuna::prelude::*;
use lacuna::{ErrorKind, NumberType, Preconditioned};
use std::sync::Arc;

fn matrix<T: Scalar>(text: &str) -> Csr<T> {
    Spec::parse(text).unwrap().build().unwrap()
}

#[test]
fn numbers_of_reasons_and_errors_are_stable() {
    let reasons = [
        (Reason::Converged, 0),
        (Reason::Limit, 1),
        (Reason::Stagnated, 2),
        (Reason::AccuracyAttained, 3),
        (Reason::Diverged, -1),
        (Reason::IndefiniteOperator, -2),
        (Reason::IndefinitePreconditioner, -3),
        (Reason::OutOfRange, -4),
        (Reason::Breakdown("rho"), -5),
        (Reason::NotFinite("x"), -6),
        (Reason::Cancelled, -7),
        (Reason::Custom("mine"), -8),
    ];
    assert!(reasons.iter().all(|(reason, code)| reason.code() == *code));
    let kinds = [
        (ErrorKind::Argument, 1),
        (ErrorKind::Matrix, 2),
        (ErrorKind::Unsupported, 3),
        (ErrorKind::Memory, 4),
        (ErrorKind::Device, 5),
        (ErrorKind::Function, 6),
        (ErrorKind::Busy, 7),
        (ErrorKind::File, 9),
        (ErrorKind::Cancelled, 10),
        (ErrorKind::NotConverged, 11),
    ];
    assert!(kinds.iter().all(|(kind, code)| kind.code() == *code));
    let error =
        LinearSystem::new(matrix::<f64>("gen:poisson2d:3x3")).method("abacus").prepare().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Argument);
}

#[test]
fn a_prepared_preconditioner_and_product_are_those_of_the_matrix_given() {
    // Scaled by a power of two within, reordered, and negative definite: none of it is seen from outside.
    let dev = own_device();
    for (factor, order, preconditioner) in
        [(1.0, "none", "ilu0"), (1e200, "none", "direct"), (-1e-200, "rcm", "direct"), (1.0, "rcm", "direct")]
    {
        let a = matrix::<f64>("gen:poisson2d:15x15").scaled(factor).unwrap();
        let x: Vec<f64> = (0..225).map(|i| 1.0 + (i % 9) as f64).collect();
        let mut expected = vec![0.0; 225];
        a.product(&x, &mut expected).unwrap();
        let system = LinearSystem::new(a).method("cg").preconditioner(preconditioner).reorder(order);
        let mut system = system.on(&dev).prepare().unwrap();
        let near = |found: &[f64], expected: &[f64]| {
            found.iter().zip(expected).all(|(f, e)| (f - e).abs() <= 1e-10 * e.abs().max(factor.abs() * 1e-3))
        };
        let (mut y, mut z) = (vec![0.0; 225], vec![0.0; 225]);
        for _ in 0..2 {
            system.product(&x, &mut y).unwrap();
            assert!(near(&y, &expected), "{factor:e} {order}");
        }
        if preconditioner == "direct" {
            system.precondition(&expected, &mut z).unwrap();
            let off = z.iter().zip(&x).map(|(z, x)| (z - x).abs()).fold(0.0, f64::max);
            assert!(off < 1e-10, "{factor:e} {order}: complete factors solve, {off:e}");
        }
        assert!(system.product(&x[1..], &mut y).is_err() && system.precondition(&x, &mut z[1..]).is_err());
    }
    let mut plain = LinearSystem::new(matrix::<f64>("gen:poisson2d:3x3")).method("cg").preconditioner("none");
    plain = plain.on(&dev);
    let mut z = [0.0; 9];
    plain.prepare().unwrap().precondition(&[2.0; 9], &mut z).unwrap();
    assert_eq!(z, [2.0; 9]);
}

#[test]
fn a_set_up_is_watched_and_cancelled() {
    let a = matrix::<f64>("gen:poisson2d:60x60");
    for preconditioner in ["amg", "direct", "ilut", "spai"] {
        let system =
            || LinearSystem::new(a.clone()).method("gmres").preconditioner(preconditioner).on(own_device());
        let mut calls = 0;
        let mut count = |_: lacuna::solvers::SetupProgress| {
            calls += 1;
            std::ops::ControlFlow::Continue(())
        };
        system().prepare_watched(&mut count).unwrap();
        assert!(calls > 0, "{preconditioner}");
        let mut cancel = |_: lacuna::solvers::SetupProgress| std::ops::ControlFlow::Break(());
        let error = system().prepare_watched(&mut cancel).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{preconditioner}: {error}");
    }
}

#[test]
fn new_values_reach_a_preconditioner_wherever_it_is_used() {
    let (dev, a) = (own_device(), Arc::new(matrix::<f64>("gen:poisson2d:12x12")));
    let mut m = Preconditioned::new(&dev, a.clone(), "jacobi").unwrap();
    let system = LinearSystem::new(a.clone()).method("cg").preconditioner(m.operator()).on(&dev);
    let mut system = system.prepare().unwrap();
    let before = system.solve(&[1.0; 144]).unwrap().1;
    before.ok().unwrap();
    let mut z = [0.0; 144];
    m.apply(&[1.0; 144], &mut z).unwrap();
    assert_eq!(z, [0.25; 144]);
    m.apply_adjoint(&[1.0; 144], &mut z).unwrap();
    assert_eq!(z, [0.25; 144]);
    // A diagonal that grows along the grid makes Jacobi a worse preconditioner of the matrix before.
    let uneven = |(k, v): (usize, &f64)| if *v > 0.0 { v * (1.0 + k as f64) } else { *v };
    m.update_values(&a.values().iter().enumerate().map(uneven).collect::<Vec<_>>()).unwrap();
    m.apply(&[1.0; 144], &mut z).unwrap();
    assert!(z[0] == 0.25 && z[143] < 0.01);
    let after = system.solve(&[1.0; 144]).unwrap().1;
    assert!(after.iterations > before.iterations, "{} {}", after.iterations, before.iterations);
    for none in ["none", "auto", "jacoby"] {
        assert!(Preconditioned::new(&dev, a.clone(), none).is_err(), "{none}");
    }
    let value = Preconditioned::new(&dev, a.clone(), lacuna::solvers::Jacobi).unwrap();
    assert_eq!(value.name(), "jacobi");
    drop(value);
    assert!(m.update_values(&[1.0]).is_err() && m.apply(&[1.0; 3], &mut z).is_err());
    drop((m, system));
    assert_eq!((dev.in_use().matrices, dev.in_use().plans), (0, 0));
}

#[test]
fn arrays_of_other_languages_are_checked_before_they_are_followed() {
    let csr = |shape, row_ptr: &[i64], col_idx: &[i32], base| {
        let values = vec![1.0f64; col_idx.len()];
        let (row_ptr, col_idx) = (Indices::I64(row_ptr), Indices::I32(col_idx));
        Matrix::csr(NumberType::F64, shape, row_ptr, col_idx, bytes_of(&values), base)
    };
    let message = |made: Result<Matrix>| made.err().unwrap().to_string();
    assert_eq!(csr((2, 3), &[1, 3, 4], &[3, 1, 2], 1).unwrap().arrays().1, [0, 2, 1], "sorted, from 1");
    let twice = csr((2, 3), &[0, 3, 4], &[2, 2, 0, 1], 0).unwrap();
    assert_eq!(
        (twice.nnz(), bytes_of(&[1.0f64, 2.0, 1.0])),
        (3, twice.arrays().2),
        "repeated ones are summed"
    );
    assert!(message(csr((2, 3), &[0, 3], &[0, 1, 2], 0)).contains("expected 2 + 1 numbers, got 2"));
    assert!(message(csr((2, 3), &[0, 9, 3], &[0, 1, 2], 0)).contains("row_ptr[1]: expected 0 to 3, got 9"));
    assert!(message(csr((2, 3), &[0, 2, 1], &[0, 1, 2], 0)).contains("to end at 3"));
    assert!(message(csr((3, 3), &[0, 2, 1, 3], &[0, 1, 2], 0)).contains("row 1 ends before it begins"));
    assert!(message(csr((1, 3), &[0, 3], &[0, -1, 2], 0)).contains("col_idx[1]: expected 0 to 2, got -1"));
    assert!(message(csr((1, 3), &[1, 4], &[0, 1, 2], 1)).contains("col_idx[0]: expected 1 to 3, got 0"));
    assert!(message(csr((1, 3), &[i64::MIN, i64::MAX], &[0, 1, 2], 1)).contains("row_ptr[0]"));
    let short = Matrix::coo(NumberType::F32, (1, 1), Indices::I32(&[0]), Indices::I32(&[0]), &[0; 3], 0);
    assert_eq!(short.err().unwrap().kind(), ErrorKind::Argument);
    let coo = Matrix::coo(
        NumberType::F64,
        (2, 2),
        Indices::I32(&[2, 1]),
        Indices::I32(&[1, 1]),
        bytes_of(&[5.0, 6.0]),
        1,
    );
    assert_eq!(coo.unwrap().arrays().0, [0, 1, 2]);
}

#[test]
fn one_system_for_four_number_types() {
    fn solved<T: Scalar>() {
        let a = Arc::new(matrix::<T>("gen:convection:12x12:5"));
        let wrapped = {
            let bytes = bytes_of(a.values());
            let [row_ptr, col_idx] =
                [a.row_ptr(), a.col_idx()].map(|list| list.iter().map(|i| *i as i32).collect::<Vec<_>>());
            Matrix::csr(T::KIND, (144, 144), Indices::I32(&row_ptr), Indices::I32(&col_idx), bytes, 0)
                .unwrap()
        };
        assert_eq!(wrapped.get::<T>().unwrap(), &a);
        let (of, turned) = (a.clone(), a.adjoint());
        let functions = Functions {
            kind: T::KIND,
            shape: (144, 144),
            product: Arc::new(move |x, y| Ok(of.product(bytemuck(x), bytemuck_mut(y))?)),
            adjoint: Some(Arc::new(move |x, y| Ok(turned.product(bytemuck(x), bytemuck_mut(y))?))),
        };
        let dev = dynamic::open("cpu:threads=2", None).unwrap();
        assert_eq!(dev.info().units, 2);
        let m = dynamic::Preconditioner::new(&dev, &wrapped, "jacobi", None).unwrap();
        let b = vec![T::one(); 144];
        let mut last = None;
        for (operator, m) in [
            (Operator::Matrix(wrapped.clone()), None),
            (Operator::Matrix(wrapped.clone()), Some(Precondition::Placed(&m))),
            (Operator::Functions(functions.clone()), None),
            (Operator::Functions(functions.clone()), Some(Precondition::Placed(&m))),
        ] {
            let settings = Settings::parse("method=bicgstab;preconditioner=none").unwrap();
            let mut system = dynamic::System::new(&dev, operator, &settings, m, None, None).unwrap();
            let mut x = vec![T::zero(); 144];
            let outcome = system.solve(bytes_of(&b), bytes_of_mut(&mut x), None).unwrap();
            outcome.ok().unwrap();
            let last = last.get_or_insert_with(|| x.clone());
            let off =
                x.iter().zip(&*last).map(|(x, y)| (*x - *y).modulus() / y.modulus()).fold(0.0, f64::max);
            assert!(off < 3e-3, "{off:e}");
            assert!(system.solve(&bytes_of(&b)[1..], bytes_of_mut(&mut x), None).is_err());
        }
    }
    fn bytemuck<T: Scalar>(x: &[u8]) -> &[T] {
        ::bytemuck::cast_slice(x)
    }
    fn bytemuck_mut<T: Scalar>(x: &mut [u8]) -> &mut [T] {
        ::bytemuck::cast_slice_mut(x)
    }
    solved::<f32>();
    solved::<f64>();
    solved::<Complex32>();
    solved::<Complex64>();
}

#[test]
fn damping_and_a_shift_are_those_of_the_matrix_with_them() {
    let mut t = Triplets::new(30, 12);
    (0..30).for_each(|i| (0..3).for_each(|k| t.push(i, (i + 5 * k) % 12, 1.0 + ((i * k) % 7) as f64)));
    let a = t.to_csr().unwrap();
    let (row_ptr, col_idx): (Vec<i32>, Vec<i32>) =
        (a.row_ptr().iter().map(|i| *i as i32).collect(), a.col_idx().iter().map(|i| *i as i32).collect());
    let given = |shape, a: &Csr<f64>| {
        Matrix::csr(
            NumberType::F64,
            shape,
            Indices::I32(&row_ptr),
            Indices::I32(&col_idx),
            bytes_of(a.values()),
            0,
        )
    };
    let dev = own_device();
    let settings = Settings::parse("method=lsqr;preconditioner=none;damp=0.5;rtol=1e-12").unwrap();
    let operator = Operator::Matrix(given((30, 12), &a).unwrap());
    let mut system = dynamic::System::new(&dev, operator, &settings, None, None, None).unwrap();
    let b: Vec<f64> = (0..30).map(|i| (i % 4) as f64).collect();
    let mut x = vec![0.0; 12];
    let outcome = system.solve(bytes_of(&b), bytes_of_mut(&mut x), None).unwrap();
    outcome.ok().unwrap();
    // Aᴴ (b − A x) = δ² x
    let (mut ax, mut normal) = (vec![0.0; 30], vec![0.0; 12]);
    a.product(&x, &mut ax).unwrap();
    let r: Vec<f64> = b.iter().zip(&ax).map(|(b, ax)| b - ax).collect();
    a.adjoint().product(&r, &mut normal).unwrap();
    let off = normal.iter().zip(&x).map(|(n, x)| (n - 0.25 * x).abs()).fold(0.0, f64::max);
    assert!(off < 1e-9, "{off:e}");
    let size = a.values().iter().map(|v| v * v).sum::<f64>() + 12.0 * 0.25;
    assert!(outcome.norm_a > 0.0 && outcome.norm_a <= 2.0 * size.sqrt(), "{}", outcome.norm_a);
    assert!(outcome.cond_a >= 1.0 && outcome.normal_residual < 1e-9);
    assert!(system.update_values(bytes_of(a.values())).is_err());

    let dense = [2.0, 1.0, 1.0, 3.0];
    let a = Matrix::dense(NumberType::F64, (2, 2), bytes_of(&dense)).unwrap();
    let settings = Settings::parse("method=minres;preconditioner=none;shift=1;rtol=1e-12").unwrap();
    let mut system = dynamic::System::new(&dev, Operator::Matrix(a), &settings, None, None, None).unwrap();
    let mut x = [0.0f64; 2];
    system.solve(bytes_of(&[1.0, 0.0]), bytes_of_mut(&mut x), None).unwrap().ok().unwrap();
    assert!((x[0] - 2.0).abs() < 1e-9 && (x[1] + 1.0).abs() < 1e-9, "{x:?}");
}

#[test]
fn a_function_that_one_solve_calls_may_solve_too() {
    let a = Arc::new(matrix::<f64>("gen:poisson2d:10x10"));
    let (row_ptr, col_idx): (Vec<i32>, Vec<i32>) =
        (a.row_ptr().iter().map(|i| *i as i32).collect(), a.col_idx().iter().map(|i| *i as i32).collect());
    let wrapped = Matrix::csr(
        NumberType::F64,
        (100, 100),
        Indices::I32(&row_ptr),
        Indices::I32(&col_idx),
        bytes_of(a.values()),
        0,
    );
    let operator = Operator::Matrix(wrapped.unwrap());
    let settings = Settings::parse("method=cg;preconditioner=none").unwrap();
    let open = || dynamic::open("cpu", None).unwrap();
    let inner = dynamic::System::new(&open(), operator.clone(), &settings, None, None, None).unwrap();
    let inner = std::sync::Mutex::new(inner);
    let m = Functions {
        kind: NumberType::F64,
        shape: (100, 100),
        product: Arc::new(move |x, y| {
            y.fill(0);
            inner.lock().unwrap().solve(x, y, None)?.ok()?;
            Ok(())
        }),
        adjoint: None,
    };
    let settings = Settings::parse("method=gmres").unwrap();
    let m = Some(Precondition::Operator(Operator::Functions(m)));
    let mut outer = dynamic::System::new(&open(), operator, &settings, m, None, None).unwrap();
    let mut x = vec![0.0; 100];
    let outcome = outer.solve(bytes_of(&vec![1.0; 100]), bytes_of_mut(&mut x), None).unwrap();
    assert!(outcome.converged() && outcome.iterations <= 2, "{outcome:?}");
}
