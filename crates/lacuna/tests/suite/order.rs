//! Systems solved in another row order, in a measured format, with the adjoint available.
use super::own_device;
use lacuna::formats::{Permutation, Profile, reverse_cuthill_mckee};
use lacuna::ndarray::{Array2, ArrayView1, s};
use lacuna::prelude::*;
use lacuna::{Adjoint, tune_format};
use std::sync::Arc;

/// A grid with its rows in irregular order.
fn scattered() -> Csr<f64> {
    let a: Csr<f64> = Spec::parse("gen:convection:30x20").unwrap().build().unwrap();
    let mut order: Vec<u32> = (0..600).collect();
    order.sort_by_key(|&i| (i * 7919) % 601);
    a.permuted(&Permutation::new(order).unwrap()).unwrap()
}

#[test]
fn solutions_are_in_the_order_given() {
    let a = scattered();
    let b: Array1<f64> = (0..600).map(|i| (i % 17) as f64 - 8.0).collect();
    let solve = |order: &str| {
        let stop = Stop::default().rtol(1e-12);
        let system = LinearSystem::new(a.clone()).preconditioner("jacobi").reorder(order).stop(stop);
        let mut system = system.prepare().unwrap();
        let (x, outcome) = system.solve(b.view()).unwrap();
        assert!(outcome.converged());
        // Strided views, starting from the solution: no iterations are needed.
        let (mut wide, mut twice) = (Array2::zeros((600, 2)), Array2::zeros((600, 3)));
        twice.column_mut(1).assign(&b);
        wide.column_mut(0).assign(&x);
        let again = system.solve_into(twice.slice(s![.., 1]), wide.column_mut(0)).unwrap();
        assert_eq!((again.converged(), again.iterations), (true, 0));
        assert_eq!(wide.column(0), x);
        (x, outcome.choices, system.order().clone())
    };
    let (want, choices, order) = solve("none");
    assert_eq!((choices.len(), order.name.as_str()), (3, "none"));
    for name in ["rcm", "length", "parts"] {
        let (x, choices, order) = solve(name);
        assert_eq!(order.name, name);
        assert_eq!(choices[3], order.sentence("order"));
        let scale = want.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        assert!((&x - &want).iter().all(|d| d.abs() <= 1e-9 * scale), "{name}");
    }
    let better = a.permuted(&reverse_cuthill_mckee(&a)).unwrap();
    let [before, after] = [&a, &better].map(Profile::of);
    assert!(4 * after.profile < before.profile);
    let (_, _, order) = solve("rcm");
    let why = format!("bandwidth {} instead of {}", after.bandwidth, before.bandwidth);
    assert!(order.why.starts_with(&why), "{}", order.why);
}

#[test]
fn errors_name_rows_as_they_were_given() {
    let mut system = LinearSystem::new(scattered()).reorder("rcm").prepare().unwrap();
    let mut b = Array1::ones(600);
    b[123] = f64::NAN;
    let error = system.solve(b.view()).unwrap_err();
    assert!(matches!(error, Error::Element { row: 123, .. }), "{error}");
    let error = system.solve(Array1::ones(599).view()).unwrap_err();
    assert!(matches!(error, Error::Length { .. }), "{error}");
    let mut t = scattered().to_triplets();
    t.push(77, 77, -scattered().get(77, 77).unwrap());
    let system = LinearSystem::new(t.to_csr().unwrap()).reorder("rcm").preconditioner("jacobi");
    let error = system.prepare().err().unwrap();
    assert!(matches!(error, Error::Entry { row: 77, column: 77, .. }), "{error}");
    let error = LinearSystem::new(scattered()).reorder("rmc").prepare().err().unwrap();
    assert!(error.to_string().contains("got `rmc`"), "{error}");
}

/// A grid with its rows in irregular order and its columns as they were.
fn shuffled() -> Csr<f64> {
    let a: Csr<f64> = Spec::parse("gen:convection:30x20").unwrap().build().unwrap();
    let mut order: Vec<u32> = (0..600).collect();
    order.sort_by_key(|&i| (i * 7919) % 601);
    a.rearranged(Some(&Permutation::new(order).unwrap()), None).unwrap()
}

#[test]
fn rows_are_matched_with_columns_where_the_diagonal_has_zeros() {
    let a = shuffled();
    let wanted: Array1<f64> = (0..600).map(|i| (i % 17) as f64 - 8.0).collect();
    let mut b = Array1::zeros(600);
    a.product(wanted.as_slice().unwrap(), b.as_slice_mut().unwrap()).unwrap();
    let stop = Stop::default().rtol(1e-12);
    // Complete factors, which would come first, have an order of their own.
    let system = LinearSystem::new(a.clone()).stop(stop);
    let mut system = system.preconditioner("jacobi").prepare().unwrap();
    assert_eq!(system.order().name, "matching");
    let close = |x: ArrayView1<'_, f64>, scale: f64| (&x * scale - &wanted).iter().all(|d| d.abs() <= 1e-8);
    let (x, outcome) = system.solve(b.view()).unwrap();
    assert!(outcome.converged() && close(x.view(), 1.0), "{outcome:?}");
    assert!(outcome.choices.contains(&system.order().sentence("order")));
    let again = system.solve_into(b.view(), &mut x.clone()).unwrap();
    assert_eq!((again.converged(), again.iterations), (true, 0));
    let both = Array2::from_shape_fn((600, 2), |(i, j)| b[i] * (j + 1) as f64);
    let mut columns = Array2::zeros((600, 2));
    let outcomes = system.solve_columns(both.view(), columns.view_mut()).unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.converged()) && close(columns.column(1), 0.5));
    let doubled: Vec<f64> = a.values().iter().map(|v| 2.0 * v).collect();
    system.update_values(&doubled).unwrap();
    let (x, outcome) = system.solve(b.view()).unwrap();
    assert!(outcome.converged() && close(x.view(), 2.0), "{outcome:?}");
    b[123] = f64::NAN;
    let error = system.solve(b.view()).unwrap_err();
    assert!(matches!(error, Error::Element { row: 123, .. }), "{error}");
    let error = system.solve_into(Array1::ones(600).view(), &mut b).unwrap_err();
    assert!(matches!(error, Error::Element { row: 123, .. }), "{error}");

    let named = LinearSystem::new(a.clone()).method("gmres").prepare().unwrap();
    assert_eq!(named.order().name, "none", "a named method takes the matrix as it is");
    let asked = LinearSystem::new(a).method("gmres").reorder("matching").prepare().unwrap();
    assert_eq!(asked.order().name, "matching");
}

#[test]
fn rows_stay_where_entries_mirror_each_other_or_no_order_helps() {
    let order = |entries: &[(usize, usize, f64)]| {
        let mut t = Triplets::new(3, 3);
        entries.iter().for_each(|&(i, j, v)| t.push(i, j, v));
        let system = LinearSystem::new(t.to_csr().unwrap()).preconditioner("none");
        system.prepare().unwrap().order().name.clone()
    };
    let saddle = [(0, 0, 4.0), (0, 2, 1.0), (1, 1, 3.0), (1, 2, 2.0), (2, 0, 5.0), (2, 1, -1.0)];
    assert_eq!(order(&saddle), "none");
    assert_eq!(order(&[(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)]), "matching");
    assert_eq!(order(&[(0, 1, 1.0), (1, 1, 1.0), (2, 0, 1.0)]), "none");
}

#[test]
fn tuning_leaves_nothing_on_the_device() {
    let a = Arc::new(scattered());
    let dev = own_device();
    let before = dev.in_use();
    let tuned = tune_format(&dev, &a, &Structure::of(&*a)).unwrap();
    assert_eq!(dev.in_use(), before);
    assert!(tuned.times.iter().any(|(name, _)| *name == "csr"));
    assert!(tuned.times.is_sorted_by(|a, b| a.1 <= b.1));
    assert!(tuned.why().contains(&format!("us a product in {}", tuned.name())), "{}", tuned.why());
}

#[test]
fn methods_that_need_the_adjoint_say_so_without_it() {
    fn turned<T: Scalar>(k: &mut Recorder<'_, T>, s: &System<'_, T>) {
        let [y] = k.vectors(s.n());
        let [yy] = k.cells();
        let (a, ah) = (s.a, Adjoint(s.a));
        let residual = s.confirm(Pass::new("residual").set(y, s.b - y).dot(yy, y, y), yy);
        k.restart(|k| k.spmv_dot(a, s.x, y, residual));
        k.each(|k| k.spmv_dot(&ah, s.b, y, s.count(Pass::new("turned").dot(yy, y, y), yy)));
    }
    let error = LinearSystem::new(scattered()).method(turned).prepare().err().unwrap();
    assert!(error.to_string().contains("does not know its transpose"), "{error}");
    LinearSystem::new(scattered()).method(turned).with_adjoint().prepare().unwrap();
}

/// Numbers over `2·decades` powers of ten, in no order.
fn units(n: usize, decades: i32) -> Vec<f64> {
    (0..n).map(|i| 10f64.powi((i * 7919 % 601) as i32 % (2 * decades + 1) - decades) * 1.7).collect()
}

#[test]
fn scaled_systems_have_the_solution_in_the_units_given() {
    let plain = scattered();
    let (left, right) = (units(600, 8), units(600, 5));
    let exact: Vec<f64> = (0..600).map(|i| (i % 17) as f64 - 8.0).collect();
    let uneven = |left: &[f64], right: &[f64]| {
        let values = plain.entries().map(|(i, j, v)| left[i] * v * right[j]).collect();
        plain.with_values(values).unwrap()
    };
    let ones = vec![1.0; 600];
    for (a, units, names) in [
        (uneven(&left, &ones), &ones, &["rows", "both"][..]),
        (uneven(&ones, &right), &right, &["columns", "both"]),
        (uneven(&right, &right), &right, &["symmetric", "both"]),
    ] {
        let expected: Vec<f64> = exact.iter().zip(units).map(|(x, unit)| x / unit).collect();
        let b = &a * &expected;
        for name in names {
            for order in ["none", "rcm"] {
                let stop = Stop::default().rtol(1e-12);
                let system =
                    LinearSystem::new(a.clone()).method("bicgstab").preconditioner("none").stop(stop);
                let mut system = system.scale(name).reorder(order).prepare().unwrap();
                let (x, outcome) = system.solve(&b).unwrap();
                assert!(outcome.converged(), "{name} {order}: {outcome:?}");
                assert!(outcome.choices.iter().any(|line| line.starts_with(&format!("scaling {name}: "))));
                let off = x.iter().zip(&expected).zip(units).map(|((x, e), unit)| (x - e).abs() * unit);
                let off = off.fold(0.0, f64::max);
                // Two-sided scales are not unique, and those found make the system a little harder.
                assert!(off < 1e-4, "{name} {order}: {off:e}");
                // The residual that the notes name is that of the matrix given.
                let residual = lacuna::solvers::residual_norm(&a, &b, x.as_slice().unwrap())
                    / lacuna::solvers::vector_norm(&b);
                let noted =
                    outcome.notes.iter().any(|n| n.contains(&format!("|b - A x| = {residual:.2e} |b|")));
                assert_eq!(noted, *name != "columns", "{name} {order}: {:?}, {residual:e}", outcome.notes);
                // New values keep the factors; from the solution no iterations are needed.
                system.update_values(&a.values().iter().map(|v| 2.0 * v).collect::<Vec<_>>()).unwrap();
                let (half, outcome) = system.solve(&b).unwrap();
                assert!(outcome.converged(), "{name} {order}: {outcome:?}");
                let off = half.iter().zip(&x).zip(units).map(|((h, x), unit)| (2.0 * h - x).abs() * unit);
                assert!(off.fold(0.0, f64::max) < 1e-4, "{name} {order}");
                let mut again = half;
                assert_eq!(system.solve_into(&b, &mut again).unwrap().iterations, 0, "{name} {order}");
            }
        }
    }
}

#[test]
fn a_scaling_that_cannot_be_is_an_error() {
    let a = scattered();
    let error =
        |a: &Csr<f64>, name: &str| LinearSystem::new(a.clone()).scale(name).prepare().map(drop).unwrap_err();
    let said = error(&a, "row").to_string();
    assert!(said.contains("expected one of none, rows, columns, both, symmetric, got `row`"), "{said}");
    let wide = Csr::new(1, 2, vec![0, 2], vec![0, 1], vec![1.0, 2.0]).unwrap();
    assert!(matches!(error(&wide, "rows"), Error::Shape { .. }));
    // An element that its factor takes out of range is named.
    let tiny = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, 1e-300]).unwrap();
    let mut system = LinearSystem::new(tiny).scale("rows").prepare().unwrap();
    let error = system.solve(&[1.0, 1e300]).unwrap_err();
    assert!(matches!(error, Error::Element { row: 1, .. }), "{error}");
    // So is one of the solution, and nothing is handed back.
    let tiny = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, 1e-300]).unwrap();
    let mut system = LinearSystem::new(tiny).scale("columns").prepare().unwrap();
    let mut x = [0.5; 2];
    let error = system.solve_into(&[1.0, 1e10], &mut x).unwrap_err();
    assert!(matches!(&error, Error::Element { row: 1, what, .. } if what == "x"), "{error}");
    assert_eq!(x, [0.5; 2]);
}

#[test]
fn symmetry_that_rounding_took_is_seen() {
    let plain = Spec::parse("gen:poisson2d:20x20").unwrap().build::<f64>().unwrap().scaled(0.3).unwrap();
    let s = units(400, 1);
    let values = plain.entries().map(|(i, j, v)| s[i] * v * s[j]).collect();
    let a = plain.with_values(values).unwrap();
    let notes = |a: &Csr<f64>| {
        let mut system = LinearSystem::new(a.clone()).preconditioner("jacobi").prepare().unwrap();
        system.solve(&vec![1.0; 400]).unwrap().1.notes.join("\n")
    };
    assert!(notes(&a).contains("not symmetric by rounding alone"), "{}", notes(&a));
    let part = a.hermitian_part().unwrap();
    assert!(Structure::of(&part).symmetric && !notes(&part).contains("by rounding"));
    assert!(!notes(&plain.map(|v| v * 3.0).unwrap()).contains("by rounding"));
    // One entry that differs by more is no rounding.
    let mut other = a.values().to_vec();
    other[1] *= 1.0 + 1e-12;
    assert!(!notes(&a.with_values(other).unwrap()).contains("by rounding"));
}
