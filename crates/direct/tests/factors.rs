//! Solves with factors of every kind.
use lacuna_direct::{Analysis, Factors, Inertia, Kind, Limits, Number, Task};
use lacuna_engine::{Complex64, Error, Result, Scalar};
use lacuna_formats::{Csr, Triplets};
use proptest::prelude::*;

const NONE: Limits = Limits { bytes: f64::INFINITY, operations: f64::INFINITY };
const KINDS: [Kind; 3] = [Kind::Sparse, Kind::Fronts, Kind::Pivoted];

fn factored<W: Number>(a: &Csr<W>, kind: Option<Kind>) -> Result<Factors<W>> {
    let analysis = match kind {
        Some(kind) => Analysis::as_kind(a, kind)?,
        None => Analysis::of(a)?,
    };
    Factors::new(a, analysis, &NONE, &mut || Ok(()))
}

/// The largest entry of `b - A x`, or of `b - Aᴴ x`, over that of the terms of its row.
fn residual<W: Number>(a: &Csr<W>, task: Task, x: &[W], b: &[W]) -> f64 {
    let a = if task == Task::Plain { a.clone() } else { a.adjoint() };
    let row = |i: usize| {
        let terms = a.row_entries(i).map(|(j, v)| v * x[j]);
        let (sum, size) = terms.fold((b[i], b[i].modulus()), |(s, t), v| (s - v, t + v.modulus()));
        if sum == W::zero() { 0.0 } else { sum.modulus() / size }
    };
    (0..a.rows()).map(row).fold(0.0, f64::max)
}

fn right_hand_side<W: Number>(n: usize) -> Vec<W> {
    (0..n).map(|k| W::from_parts(1.0 + (k * 37 % 11) as f64, (k * 53 % 7) as f64 - 3.0)).collect()
}

fn check<W: Number>(a: &Csr<W>, kind: Option<Kind>) -> Result<Kind> {
    let factors = factored(a, kind)?;
    check_solves(a, &factors);
    Ok(factors.kind())
}

/// Fails unless both systems are solved, refined once.
fn check_solves<W: Number>(a: &Csr<W>, factors: &Factors<W>) {
    let b = right_hand_side::<W>(a.rows());
    for task in [Task::Plain, Task::Adjoint] {
        let mut x = b.clone();
        factors.solve(task, &mut x);
        let matrix = if task == Task::Plain { a.clone() } else { a.adjoint() };
        let mut correction: Vec<W> =
            (0..a.rows()).map(|i| matrix.row_entries(i).fold(b[i], |s, (j, v)| s - v * x[j])).collect();
        factors.solve(task, &mut correction);
        x.iter_mut().zip(&correction).for_each(|(x, c)| *x += *c);
        let left = residual(a, task, &x, &b);
        assert!(left < 1e-10, "{:?}, {task:?}: {left:e}", factors.kind());
    }
}

/// Partial pivoting, the last resort, leaves more where the matrix is singular to working precision; its solution is finite.
fn solved_or_refused<W: Number>(a: &Csr<W>, kind: Kind) -> bool {
    match factored(a, Some(kind)) {
        Ok(factors) if factors.kind() == Kind::Pivoted => {
            let mut x = right_hand_side::<W>(a.rows());
            factors.solve(Task::Plain, &mut x);
            x.iter().all(|v| v.finite())
        }
        Ok(_) => check(a, Some(kind)).is_ok(),
        Err(error) => matches!(error, Error::Unsupported { .. }),
    }
}

fn matrix<W: Number>(n: usize, entries: impl IntoIterator<Item = (usize, usize, W)>) -> Csr<W> {
    let mut triplets = Triplets::new(n, n);
    entries.into_iter().for_each(|(i, j, v)| triplets.push(i % n, j % n, v));
    triplets.to_csr().unwrap()
}

/// A matrix on a grid in two dimensions with unsymmetric values, and the given diagonal.
fn grid<W: Number>(side: usize, diagonal: impl Fn(usize) -> W) -> Csr<W> {
    let n = side * side;
    let mut triplets = Triplets::new(n, n);
    for k in 0..n {
        triplets.push(k, k, diagonal(k));
        let (x, y) = (k % side, k / side);
        let value =
            |s: usize| W::from_parts(-1.0 - ((k * 7 + s * 3) % 5) as f64 / 8.0, ((k + s) % 3) as f64 / 4.0);
        if x > 0 {
            triplets.push(k, k - 1, value(1));
        }
        if x + 1 < side {
            triplets.push(k, k + 1, value(2));
        }
        if y > 0 {
            triplets.push(k, k - side, value(3));
        }
        if y + 1 < side {
            triplets.push(k, k + side, value(4));
        }
    }
    triplets.to_csr().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn systems_with_any_pattern_are_solved_or_refused(
        n in 1usize..40,
        entries in prop::collection::vec((0usize..40, 0usize..40, -8i32..9, -3i32..4), 0..220),
        powers in prop::collection::vec(-30i32..30, 40),
    ) {
        let scaled = |i: usize, j: usize, v: f64| v * f64::powi(2.0, powers[i % n] + powers[(j % n + 5) % 40]);
        let real = matrix(n, entries.iter().map(|&(i, j, v, _)| (i, j, scaled(i, j, f64::from(v)))));
        let complex = matrix(n, entries.iter().map(|&(i, j, v, w)| (i, j, Complex64::new(f64::from(v), f64::from(w)))));
        for kind in KINDS {
            prop_assert!(solved_or_refused(&real, kind));
            prop_assert!(solved_or_refused(&complex, kind));
        }
    }

    #[test]
    fn matrices_with_a_dominant_diagonal_are_solved(
        n in 1usize..60,
        entries in prop::collection::vec((0usize..60, 0usize..60, -8i32..9), 0..300),
    ) {
        let mut a = matrix(n, entries.iter().map(|&(i, j, v)| (i, j, f64::from(v))));
        let mut largest = vec![1.0; n];
        a.entries().for_each(|(i, _, v)| largest[i] += v.abs());
        let diagonal = largest.iter().enumerate().map(|(i, v)| (i, i, 2.0 * v));
        a = matrix(n, a.entries().chain(diagonal).collect::<Vec<_>>());
        for kind in KINDS {
            prop_assert!(check(&a, Some(kind)).is_ok());
        }
    }
}

#[test]
fn each_kind_is_chosen_where_it_belongs() {
    let definite = grid(20, |_| 5.0f64);
    let symmetric = |a: &Csr<f64>, d: f64| {
        let n = a.rows();
        matrix(n, a.entries().flat_map(|(i, j, v)| [(i, j, v), (j, i, v)]).chain((0..n).map(|i| (i, i, d))))
    };
    assert_eq!(check(&symmetric(&definite, 10.0), None).unwrap(), Kind::Cholesky);
    // A positive diagonal, but not definite: found while factoring.
    assert_eq!(check(&symmetric(&definite, -9.9), None).unwrap(), Kind::Symmetric);
    // The negative of a definite one.
    assert_eq!(check(&symmetric(&definite, -30.0), None).unwrap(), Kind::Cholesky);
    let sign = |i: usize| if i.is_multiple_of(2) { 20.0 } else { -40.0 };
    let n = definite.rows();
    let mixed = symmetric(&definite, 0.0);
    let mixed = matrix(n, mixed.entries().chain((0..n).map(|i| (i, i, sign(i)))).collect::<Vec<_>>());
    assert_eq!(check(&mixed, None).unwrap(), Kind::Symmetric);
    assert_eq!(check(&grid(10, |_| 5.0f64), None).unwrap(), Kind::Sparse);
    assert_eq!(check(&grid(60, |_| 5.0f64), None).unwrap(), Kind::Fronts);
    assert_eq!(check(&grid(60, |_| Complex64::new(5.0, 1.0)), None).unwrap(), Kind::Fronts);
    assert_eq!(check(&matrix::<f64>(1, [(0, 0, 3.0)]), None).unwrap(), Kind::Cholesky);
    assert!(check(&matrix::<f64>(1, []), None).is_err());
    assert!(factored(&Csr::<f64>::identity(0).unwrap(), None).is_ok());
}

#[test]
fn a_hermitian_complex_matrix_is_factored_as_one() {
    let a = grid(20, |k| Complex64::new(if k % 3 == 0 { -5.0 } else { 5.0 }, 0.0));
    let n = a.rows();
    let hermitian = matrix(n, a.entries().flat_map(|(i, j, v)| [(i, j, v), (j, i, Scalar::conj(v))]));
    assert_eq!(check(&hermitian, None).unwrap(), Kind::Symmetric);
}

#[test]
fn the_inertia_is_that_of_the_eigenvalues() {
    // Eigenvalues of the second difference are 2 - 2 cos(π k / (n + 1)), all below 4.
    let n = 300;
    let shifted = |by: f64| {
        let entries = (0..n).flat_map(|i| [(i, i, 2.0 - by), (i, i + 1, -1.0), (i + 1, i, -1.0)]);
        matrix(n, entries.filter(|(i, j, _)| *i < n && *j < n).collect::<Vec<_>>())
    };
    for by in [0.0, 0.5, 1.99, 3.1, 5.0] {
        let negative = (1..=n)
            .filter(|k| 2.0 - 2.0 * (std::f64::consts::PI * *k as f64 / (n + 1) as f64).cos() < by)
            .count();
        let factors = factored(&shifted(by), None).unwrap();
        assert_eq!(factors.inertia(), Some(Inertia { positive: n - negative, negative, zero: 0 }), "{by}");
    }
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let a = grid(90, |k| if k % 11 == 0 { 1e-3 } else { 4.0 });
    let of = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let factors = factored(&a, Some(Kind::Fronts)).unwrap();
            assert_eq!(factors.kind(), Kind::Fronts);
            let mut x = right_hand_side::<f64>(a.rows());
            factors.solve(Task::Plain, &mut x);
            x.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
        })
    };
    let alone = of(1);
    for threads in [2, 3, 5, 8] {
        (0..3).for_each(|_| assert!(of(threads) == alone, "{threads} threads"));
    }
}

#[test]
fn costs_are_known_before() {
    let a = grid(80, |_| 5.0f64);
    let analysis = Analysis::of(&a).unwrap();
    let cost = analysis.cost();
    let factors = Factors::<f64>::new(&a, analysis, &NONE, &mut || Ok(())).unwrap();
    assert_eq!(factors.kind(), Kind::Fronts);
    let said = factors.report().into_iter().find(|(what, _)| *what == "size").unwrap().1;
    assert_eq!(said, format!("{:.1} MiB", cost.entries * 8.0 / f64::from(1 << 20)));
    for limits in [
        Limits { bytes: cost.bytes * 0.9, operations: f64::INFINITY },
        Limits { bytes: f64::INFINITY, operations: cost.operations * 0.9 },
    ] {
        let refused = Factors::<f64>::new(&a, Analysis::of(&a).unwrap(), &limits, &mut || Ok(()));
        assert!(
            matches!(refused.map(|_| ()), Err(Error::Unsupported { message, .. }) if message.contains("the limit is"))
        );
    }
}

#[test]
fn bodies_in_three_dimensions_are_dissected() {
    let side = 34;
    let next = |k: usize| [1, side, side * side].into_iter().filter(move |s| k / s % side + 1 < side);
    let n = side * side * side;
    let entries = (0..n).flat_map(|k| {
        let couplings = next(k).flat_map(move |s| [(k, k + s, -1.25), (k + s, k, -0.75)]);
        couplings.chain([(k, k, 6.0 + (k % 3) as f64)])
    });
    let a = matrix(n, entries.collect::<Vec<_>>());
    // In the order of minimum degree it is 2.7 times 10^10.
    let cost = Analysis::of(&a).unwrap().cost();
    assert!(cost.operations < 2e10, "{cost:?}");
    assert_eq!(check(&a, None).unwrap(), Kind::Fronts);
    // Who wants the factors within less than their order takes gets no answer, and within a tenth of their time no better order.
    assert!(Analysis::within(&a, 1e-3).unwrap().is_none());
    let usual = Analysis::within(&a, 0.05).unwrap().unwrap();
    assert!(usual.cost().operations > 2e10);
}

#[test]
fn rows_without_pivots_are_known_before() {
    // Constraints with fewer couplings than the rows that they couple, and with more.
    let n = 300;
    let saddle = |couplings: usize| {
        let chain = (0..n).flat_map(|i| [(i, i, 4.0), (i, (i + 1) % n, -1.0), ((i + 1) % n, i, -1.0)]);
        let constraints = (0..n / 10).flat_map(|k| {
            (0..couplings).flat_map(move |l| {
                let (i, v) = ((k * 10 + l) % n, 1.0 + (k % 3) as f64);
                [(n + k, i, v), (i, n + k, v)]
            })
        });
        matrix(n + n / 10, chain.chain(constraints).collect::<Vec<_>>())
    };
    assert!(matches!(check(&saddle(1), None).unwrap(), Kind::Sparse | Kind::Fronts));
    assert_eq!(check(&saddle(8), None).unwrap(), Kind::Symmetric);
    // A hub without a diagonal entry, and a matrix of zeros.
    let hub = (0..n).flat_map(|i| [(i, i, if i == 0 { 0.0 } else { 2.0 }), (0, i, 1.0), (i, 0, 1.0)]);
    check(&matrix(n, hub.filter(|(i, j, v)| (*i, *j) != (0, 0) || *v == 0.0).collect::<Vec<_>>()), None)
        .unwrap();
    assert!(factored(&matrix::<f64>(5, []), None).is_err());
}

#[test]
fn work_ends_when_nobody_wants_it() {
    let a = grid(80, |_| 5.0f64);
    let mut calls = 0;
    let stopped = Factors::<f64>::new(&a, Analysis::of(&a).unwrap(), &NONE, &mut || {
        calls += 1;
        if calls < 3 { Ok(()) } else { Err(Error::Cancelled { operation: "test".into() }) }
    });
    assert!(matches!(stopped.map(|_| ()), Err(Error::Cancelled { .. })));
}

#[test]
fn hostile_patterns_cost_little() {
    let n = 8000;
    let arrow = |last: bool| {
        let hub = if last { n - 1 } else { 0 };
        matrix(n, (0..n).flat_map(move |i| [(i, i, 4.0 + i as f64), (hub, i, 1.0), (i, hub, 0.5)]))
    };
    // Blocks that are cyclic, each coupled to those before it.
    let blocks = matrix(
        n,
        (0..n).flat_map(|i| {
            let (block, at) = (i / 16, i % 16);
            [(i, block * 16 + (at + 1) % 16, 3.0), (i, block * 16 + (at + 5) % 16, 1.0), (i, i / 2, 0.1)]
        }),
    );
    // A zero block of half the size beside the constraints.
    let saddle = matrix(
        n,
        (0..n / 2).flat_map(|i| {
            let dual = n / 2 + i;
            [
                (i, i, 2.0),
                (i, dual, 1.0),
                (dual, i, 1.0),
                (i, (i + 1) % (n / 2), -0.5),
                (dual, (i + 7) % (n / 2), 0.5),
                ((i + 7) % (n / 2), dual, 0.25),
            ]
        }),
    );
    // A supply node to which every node is coupled, of a chain.
    let supply = matrix(
        n,
        (0..n - 1)
            .flat_map(|i| [(i, i, 3.0), (i, (i + 1) % (n - 1), -1.0), (n - 1, i, -1e-3), (i, n - 1, -1.0)])
            .chain([(n - 1, n - 1, 1.0)]),
    );
    // Empty diagonal and reversed columns: one row and column to each block.
    let reversed = matrix(n, (0..n).flat_map(|i| [(i, n - 1 - i, 2.0), (i, (n - i).min(n - 1), 1.0)]));
    for (name, a) in [
        ("arrow, long row first", arrow(false)),
        ("arrow, long row last", arrow(true)),
        ("500 blocks", blocks),
        ("saddle point", saddle),
        ("supply node", supply),
        ("reversed", reversed),
    ] {
        let cost = Analysis::of(&a).unwrap().cost();
        assert!(cost.entries < 12.0 * a.nnz() as f64, "{name}: {cost:?}");
        let kind = check(&a, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_ne!(kind, Kind::Pivoted, "{name}");
    }
}

#[test]
fn a_diagonal_with_zeros_is_matched() {
    check(&grid(60, |k| if k % 2 == 0 { 0.0 } else { 4.0 }), None).unwrap();
}

#[test]
fn new_values_keep_the_order_or_find_another() {
    let a = grid(50, |_| 5.0f64);
    let mut factors = factored(&a, None).unwrap();
    let b = right_hand_side::<f64>(a.rows());
    for diagonal in [6.0, 0.0, -3.0, 5.0] {
        let values: Vec<f64> = a.entries().map(|(i, j, v)| if i == j { diagonal } else { v * 1.5 }).collect();
        let other = a.with_values(values).unwrap();
        factors.renew(&other, &NONE, &mut || Ok(())).unwrap();
        let mut x = b.clone();
        factors.solve(Task::Plain, &mut x);
        let left = residual(&other, Task::Plain, &x, &b);
        assert!(left < 1e-8, "{diagonal}: {left:e}");
    }
    let singular = a.with_values(vec![0.0; a.nnz()]).unwrap();
    assert!(factors.renew(&singular, &NONE, &mut || Ok(())).is_err());
}

#[test]
fn new_values_keep_the_pivots_or_find_others() {
    // By columns, in one block and in many.
    let one = grid(12, |k| if k % 5 == 0 { 0.02 } else { 4.0 });
    let n = 600;
    let ring = |i: usize| i / 6 * 6 + (i + 1) % 6;
    let many =
        matrix(n, (0..n).flat_map(|i| [(i, i, 1.0), (i, ring(i), 3.0), (i, i / 2, 0.25), (ring(i), i, 0.5)]));
    for a in [one, many] {
        let bits = |factors: &Factors<f64>| {
            let mut x = right_hand_side::<f64>(a.rows());
            factors.solve(Task::Plain, &mut x);
            x.into_iter().map(f64::to_bits).collect::<Vec<_>>()
        };
        let mut factors = factored(&a, None).unwrap();
        assert_eq!(factors.kind(), Kind::Sparse);
        let first = bits(&factors);
        // The same values have the same bits, and larger ones those of factors that are new.
        for by in [1.0, 1.75] {
            let other = a.with_values(a.values().iter().map(|v| v * by).collect()).unwrap();
            factors.renew(&other, &NONE, &mut || Ok(())).unwrap();
            assert!(bits(&factors) == bits(&factored(&other, None).unwrap()), "{by}");
            assert_eq!(bits(&factors) == first, by == 1.0);
        }
        // Pivots that were large are small.
        let small = a.entries().map(|(i, j, v)| if i == j { 1e-9 * v } else { v }).collect();
        let other = a.with_values(small).unwrap();
        factors.renew(&other, &NONE, &mut || Ok(())).unwrap();
        check_solves(&other, &factors);
        let mut calls = 0;
        let stopped = factors.renew(&a, &NONE, &mut || {
            calls += 1;
            Err(Error::Cancelled { operation: "test".into() })
        });
        assert!(matches!(stopped, Err(Error::Cancelled { .. })) && calls == 1);
    }
}

#[test]
fn scales_follow_new_values() {
    // Without weak diagonal entries, with them in small blocks, and in a large one that is matched by weights.
    let strong = grid(20, |_| 5.0f64);
    let small = matrix(2, [(0, 1, 1.0), (1, 0, -1.0), (1, 1, 1.0)]);
    let large = grid(60, |k| if k % 2 == 0 { 0.0 } else { 4.0 });
    for a in [strong, small, large] {
        let mut factors = factored(&a, None).unwrap();
        for exponents in [[0, 40], [-330, 0], [330, -330], [-330, 330], [0, 0]] {
            let by = |k: usize| 2f64.powi(exponents[k % 2]);
            for rows in [false, true] {
                let values = a.entries().map(|(i, j, v)| v * by(if rows { i } else { j })).collect();
                let other = a.with_values(values).unwrap();
                factors.renew(&other, &NONE, &mut || Ok(())).unwrap();
                check_solves(&other, &factors);
            }
        }
    }
    // One entry alone.
    let small = matrix(2, [(0, 1, 13.0), (1, 0, -13.0), (1, 1, 1.0)]);
    let mut factors = factored(&small, None).unwrap();
    let other = small.with_values(vec![13.0, -13.0, -6.4e33]).unwrap();
    factors.renew(&other, &NONE, &mut || Ok(())).unwrap();
    check_solves(&other, &factors);
}

#[test]
fn a_singular_matrix_is_an_error() {
    let twice = matrix(
        4,
        (0..4).flat_map(|j| {
            [(0, j, 1.0 + j as f64), (1, j, 1.0 + j as f64), (2, j, 1.0), (3, (j * j) % 4, 2.0)]
        }),
    );
    for kind in KINDS {
        assert!(
            matches!(factored(&twice, Some(kind)).map(|_| ()), Err(Error::Unsupported { .. })),
            "{kind:?}"
        );
    }
    let rectangular = Csr::<f64>::new(1, 2, vec![0, 1], vec![0], vec![1.0]).unwrap();
    assert!(matches!(Analysis::of(&rectangular).map(|_| ()), Err(Error::Shape { .. })));
}
