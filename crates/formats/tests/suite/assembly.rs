//! Assembly by elements, by coefficients and by rows: the bits of triplets, with any number of threads, also
//! when repeated.
use lacuna_engine::{Error, Scalar};
use lacuna_formats::{Assembly, AssemblyPlan, Csr, Elements, FIXED, Triplets};
use proptest::prelude::*;

/// Numbers whose sums depend on their order.
fn number(k: usize) -> f64 {
    ((k * 7919 + 13) % 1009) as f64 / 1009.0 - 0.4
}

/// The two triangles of each square of a grid of `n x n` points.
fn triangles(n: usize) -> Vec<u32> {
    let corner = |i: usize, j: usize| (i * n + j) as u32;
    let square = |k: usize| {
        let (i, j) = (k / (n - 1), k % (n - 1));
        let [a, b, c, d] = [corner(i, j), corner(i, j + 1), corner(i + 1, j), corner(i + 1, j + 1)];
        [a, b, d, a, d, c]
    };
    (0..(n - 1) * (n - 1)).flat_map(square).collect()
}

fn fill<T: Scalar>(element: usize, matrix: &mut [T]) {
    let value = |k: usize| T::from_parts(number(31 * element + k), number(17 * element + 3 * k));
    matrix.iter_mut().enumerate().for_each(|(k, m)| *m = value(k));
}

/// Pushed element by element, row by row.
fn pushed<T: Scalar>(n: usize, per_element: usize, nodes: &[u32], matrices: &[T]) -> Csr<T> {
    let mut t = Triplets::new(n, n);
    for (of, matrix) in nodes.chunks(per_element).zip(matrices.chunks(per_element * per_element)) {
        for (k, &value) in matrix.iter().enumerate() {
            let (i, j) = (of[k / per_element], of[k % per_element]);
            if i != FIXED && j != FIXED {
                t.push(i as usize, j as usize, value);
            }
        }
    }
    t.to_csr().unwrap()
}

fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

fn elements_agree<T: Scalar>(n: usize, per_element: usize, nodes: &[u32]) {
    let elements = Elements::new(n, per_element, nodes).unwrap();
    let matrices = elements.matrices(fill::<T>);
    let want = pushed(n, per_element, nodes, &matrices);
    for threads in [1, 2, 7] {
        let (once, planned, again) = on_threads(threads, || {
            assert!(elements.matrices(fill::<T>) == matrices);
            let plan = elements.plan().unwrap();
            let mut values = vec![T::zero(); plan.nnz()];
            plan.sum(&matrices, &mut values).unwrap();
            (elements.assemble(&matrices).unwrap(), plan.matrix(&matrices).unwrap(), values)
        });
        assert!(once == want && planned == want, "{threads} threads");
        assert!(again == want.values(), "{threads} threads");
    }
}

#[test]
fn elements_have_the_bits_of_triplets_on_any_number_of_threads() {
    let nodes = triangles(73); // more rows than one task handles
    elements_agree::<f64>(73 * 73, 3, &nodes);
    elements_agree::<lacuna_engine::Complex32>(73 * 73, 3, &nodes);
    // Some unknowns fixed; one shared by all elements, so that its row is long.
    let mut joined = triangles(40);
    joined.iter_mut().filter(|node| **node % 7 == 0).for_each(|node| *node = FIXED);
    joined.iter_mut().step_by(3).for_each(|node| *node = 5);
    elements_agree::<f64>(1600, 3, &joined);
}

proptest! {
    #[test]
    fn any_elements_agree(n in 1..9usize, per_element in 1..5usize, chosen in proptest::collection::vec(0..12u32, 0..40)) {
        let mut nodes: Vec<u32> = chosen.iter().map(|&c| if (c as usize) < n { c } else { FIXED }).collect();
        nodes.truncate(nodes.len() / per_element * per_element);
        elements_agree::<f64>(n, per_element, &nodes);
    }

    #[test]
    fn any_plan_agrees(places in proptest::collection::vec((0..6u32, 0..5u32), 0..60)) {
        let values: Vec<f64> = (0..places.len()).map(number).collect();
        let mut t = Triplets::new(6, 5);
        t.extend(places.iter().zip(&values).map(|(&(i, j), &v)| (i as usize, j as usize, v)));
        let plan = AssemblyPlan::new(6, 5, &places).unwrap();
        prop_assert_eq!(plan.matrix(&values).unwrap(), t.to_csr().unwrap());
    }

    /// With some unknowns fixed, the solution of the rest satisfies the remaining equations: `A x − b` is the
    /// same row by row.
    #[test]
    fn fixing_unknowns_keeps_the_equations(
        places in proptest::collection::vec((0..6usize, 0..6usize), 0..40),
        fixed in proptest::collection::btree_set(0..6usize, 0..6),
        square: bool,
    ) {
        let mut all = if square { Assembly::square(6) } else { Assembly::least_squares(6) };
        // Small integers, so that sums are exact in any order.
        let whole = |k: usize| (k % 7) as f64 - 3.0;
        places.iter().enumerate().for_each(|(k, &(i, j))| all.add(i, j, whole(3 * k)));
        (0..all.equations()).for_each(|i| all.add_b(i, whole(i)));
        let whole_system = all.clone().assemble().unwrap();
        fixed.iter().for_each(|&j| all.fix(j, whole(5 * j + 1)));
        let rest = all.assemble().unwrap();
        let x: Vec<f64> = (0..rest.free().len()).map(|k| whole(2 * k + 1)).collect();
        let full = rest.full(&x).unwrap();
        prop_assert_eq!(&rest.reduced(&full).unwrap(), &x);
        let residual = |system: &lacuna_formats::Assembled<f64>, x: &[f64]| {
            let mut ax = vec![0.0; system.b().len()];
            system.matrix().product(x, &mut ax).unwrap();
            ax.iter().zip(system.b()).map(|(ax, b)| ax - b).collect::<Vec<_>>()
        };
        let of_all = residual(&whole_system, &full);
        let stays = |i: &usize| !(square && fixed.contains(i));
        let expected: Vec<f64> = (0..of_all.len()).filter(stays).map(|i| of_all[i]).collect();
        prop_assert_eq!(residual(&rest, &x), expected);
    }
}

#[test]
fn new_values_take_no_sorting_and_have_the_bits_of_a_new_assembly() {
    let fill = |a: &mut Assembly<f64>, step: usize| {
        for k in 0..300 {
            a.add(k * 7 % 50, k * 11 % 50, number(k + step));
        }
        (0..50).for_each(|i| a.add_b(i, number(i + 3 * step)));
    };
    let mut a = Assembly::square(50);
    a.fix(3, 2.0);
    fill(&mut a, 0);
    let mut system = a.assemble().unwrap();
    for step in 1..5 {
        a.begin();
        a.fix(3, step as f64); // the value may change, the set may not
        fill(&mut a, step);
        system.update(&a).unwrap();
        let mut anew = Assembly::square(50);
        anew.fix(3, step as f64);
        fill(&mut anew, step);
        let anew = anew.assemble().unwrap();
        assert_eq!((system.matrix(), system.b()), (anew.matrix(), anew.b()));
    }
    // Any other change of the sequence, or of the set of fixed unknowns, gives a different system.
    let before = (system.matrix().clone(), system.b().to_vec());
    let refused = |a: &Assembly<f64>, system: &mut lacuna_formats::Assembled<f64>| {
        assert!(matches!(system.update(a), Err(Error::Structure { .. })));
    };
    a.begin();
    fill(&mut a, 9);
    a.add(0, 0, 1.0);
    refused(&a, &mut system);
    a.begin();
    (0..10).for_each(|k| a.add(k, k, 1.0));
    refused(&a, &mut system);
    a.begin();
    fill(&mut a, 9);
    let mut again = a.assemble().unwrap();
    refused(&a, &mut system);
    a.fix(4, 0.0);
    refused(&a, &mut again);
    a.free(4);
    assert_eq!(a.assemble().unwrap().matrix().rows(), 49);
    a.begin();
    fill(&mut a, 0);
    a.add_b(1, f64::NAN);
    let mut last = a.assemble();
    assert!(matches!(last, Err(Error::Element { row: 1, .. })), "{last:?}");
    assert_eq!((system.matrix().clone(), system.b().to_vec()), before);
    a.begin();
    fill(&mut a, 0);
    last = a.assemble();
    assert!(last.is_ok());
}

#[test]
fn parts_of_threads_are_joined_in_the_order_given() {
    let rows = |a: &mut Assembly<f64>, from: usize, to: usize| {
        for k in from..to {
            a.row([(k % 20, number(k)), ((3 * k + 1) % 20, number(k + 1))], number(2 * k));
        }
    };
    let couplings = |a: &mut Assembly<f64>, from: usize, to: usize| {
        for k in from..to {
            a.couple(k % 20, (7 * k + 3) % 20, number(k));
            a.add_b(k % 20, number(k));
        }
    };
    let mut whole = [Assembly::least_squares(20), Assembly::square(20)];
    rows(&mut whole[0], 0, 90);
    couplings(&mut whole[1], 0, 90);
    let mut joined = [Assembly::least_squares(20), Assembly::square(20)];
    for k in 0..9 {
        let mut parts = [joined[0].part(), joined[1].part()];
        rows(&mut parts[0], 10 * k, 10 * k + 10);
        couplings(&mut parts[1], 10 * k, 10 * k + 10);
        joined.iter_mut().zip(&parts).for_each(|(joined, part)| joined.append(part).unwrap());
    }
    for (mut whole, mut joined) in whole.into_iter().zip(joined) {
        assert_eq!(whole.equations(), joined.equations());
        let (whole, joined) = (whole.assemble().unwrap(), joined.assemble().unwrap());
        assert_eq!((whole.matrix(), whole.b()), (joined.matrix(), joined.b()));
    }
    // Rows appended to parts of a square system.
    let mut whole = Assembly::square(20);
    rows(&mut whole, 0, 20);
    let mut joined = Assembly::square(20);
    for k in 0..2 {
        let mut part = joined.part();
        rows(&mut part, 10 * k, 10 * k + 10);
        joined.append(&part).unwrap();
    }
    let (whole, joined) = (whole.assemble().unwrap(), joined.assemble().unwrap());
    assert_eq!((whole.matrix(), whole.b()), (joined.matrix(), joined.b()));
}

#[test]
fn what_is_out_of_range_is_named() {
    let text = |error: Option<Error>| error.map(|e| e.to_string()).unwrap_or_default();
    assert_eq!(
        text(Elements::new(4, 3, vec![0, 1, 2, 1, 2, 4]).err()),
        "Elements::new: element 1 has unknown 4, of 4"
    );
    assert!(text(Elements::new(4, 3, vec![0, 1]).err()).contains("expected a multiple of 3 above 0, got 2"));
    assert!(matches!(Elements::new(4, 0, vec![]), Err(Error::Argument { .. })));
    let elements = Elements::new(2, 2, vec![0, 1]).unwrap();
    assert!(matches!(elements.assemble(&[1.0; 3]), Err(Error::Length { .. })));
    assert!(matches!(elements.plan().unwrap().matrix(&[1.0; 5]), Err(Error::Length { .. })));
    assert!(matches!(
        elements.assemble(&[1.0, 1.0, f64::NAN, 1.0]),
        Err(Error::Entry { row: 1, column: 0, .. })
    ));
    let not_finite = elements.plan().unwrap().matrix(&[1.0, f64::INFINITY, 1.0, 1.0]);
    assert!(matches!(not_finite, Err(Error::Entry { row: 0, column: 1, .. })));
    assert_eq!(elements.assemble_vector(&[1.5, 2.0]).unwrap(), [1.5, 2.0]);
    assert!(elements.of(1).is_empty());
    assert!(matches!(
        AssemblyPlan::new(2, 2, &[(0, 0), (1, 2)]),
        Err(Error::Entry { row: 1, column: 2, .. })
    ));
    for (i, j) in [(2, 0), (0, 2), (usize::MAX, 0)] {
        let mut a = Assembly::square(2);
        a.add(i, j, 1.0);
        assert!(matches!(a.assemble(), Err(Error::Entry { row, column, .. }) if (row, column) == (i, j)));
    }
    let mut a = Assembly::square(2);
    a.fix(2, 1.0);
    assert!(matches!(a.assemble(), Err(Error::Entry { row: 0, column: 2, .. })));
    let mut a = Assembly::<f64>::square(2);
    assert!(matches!(a.append(&Assembly::square(3)), Err(Error::Shape { .. })));
    assert!(matches!(a.append(&Assembly::least_squares(2)), Err(Error::Shape { .. })));
    // Empty systems.
    assert_eq!(Assembly::<f64>::square(0).assemble().unwrap().matrix().rows(), 0);
    let nothing = Assembly::<f64>::least_squares(3).assemble().unwrap();
    assert_eq!((nothing.matrix().rows(), nothing.matrix().cols()), (0, 3));
}

#[test]
fn other_equations_are_another_system() {
    let mut fit = Assembly::least_squares(1);
    let points = |fit: &mut Assembly<f64>| (0..3).for_each(|i| fit.add(i, 0, 1.0 + i as f64));
    points(&mut fit);
    fit.add_b(2, 6.0);
    let mut system = fit.assemble().unwrap();
    for last in [1, 3, 4_000_000_000] {
        fit.begin();
        points(&mut fit);
        fit.add_b(last, 6.0);
        let updated = system.update(&fit);
        if last < 3 {
            updated.unwrap();
            assert_eq!(system.b(), [0.0, 6.0, 0.0]);
        } else {
            let said = updated.unwrap_err().to_string();
            assert!(said.contains("3 before; assemble anew"), "{said}");
        }
    }
    assert_eq!(system.b(), [0.0, 6.0, 0.0]);
}

#[test]
fn a_failed_update_leaves_the_fixed_unknowns() {
    let mut chain = Assembly::square(3);
    chain.fix(0, 1.0);
    (0..2).for_each(|i| chain.couple(i, i + 1, 1.0));
    let mut system = chain.assemble().unwrap();
    chain.begin();
    chain.fix(0, 2.0);
    (0..2).for_each(|i| chain.couple(i, i + 1, f64::MAX));
    assert!(matches!(system.update(&chain), Err(Error::Element { .. } | Error::Entry { .. })));
    assert_eq!(system.full(&[0.0; 2]).unwrap(), [1.0, 0.0, 0.0]);
    assert_eq!(system.b(), [1.0, 0.0]);
}

#[test]
fn a_fixed_unknown_is_a_number() {
    let mut alone = Assembly::square(2);
    alone.add(1, 1, 1.0);
    alone.fix(0, f64::NAN);
    let said = alone.assemble().unwrap_err().to_string();
    assert_eq!(said, "Assembly::assemble: the fixed unknowns, row 0: NaN is not finite");
}
