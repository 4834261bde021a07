//! What preconditioners reject, report and guarantee: places in errors, equal bits on any number of threads,
//! complex matrices.
use crate::generated;
use lacuna_engine::{Complex64, Device, Error, Pass, Reason, Reference, Scalar};
use lacuna_formats::{Csr, Triplets};
use lacuna_solvers::{
    Options, Outcome, PRECONDITIONERS, Placed, Preconditioner, Setup, Solver, Stop, method, preconditioner,
};
use std::sync::Arc;

fn named<T: Scalar>(name: &str) -> Box<dyn Preconditioner<T>> {
    preconditioner(name).unwrap().unwrap()
}

/// Solves for the vector of ones to 1e-8 on the serial reference. Also returns the report of the
/// preconditioner.
fn solve<T: Scalar>(a: &Csr<T>, precond: &str, by: &str) -> (Outcome, Vec<T>, Vec<String>) {
    solve_for(a, &vec![T::one(); a.rows()], precond, by)
}

fn solve_for<T: Scalar>(a: &Csr<T>, b: &[T], precond: &str, by: &str) -> (Outcome, Vec<T>, Vec<String>) {
    let dev = Device::new(Reference::new());
    let on = dev.matrix(Arc::new(a.clone())).unwrap();
    let placed = Placed::new(&dev, named(precond), a, *on, Setup::new()).unwrap();
    let stop = Stop::default().rtol(1e-8).max_iters(500);
    let method = method(by, &Options::default()).unwrap();
    let mut solver = Solver::new(&dev, &on, Some(&placed), &*method, stop).unwrap();
    let mut x = vec![T::zero(); a.rows()];
    let outcome = solver.solve(b, &mut x).unwrap().clone();
    let lines = placed.report().iter().map(|(what, value)| format!("{what} {value}")).collect();
    (outcome, x, lines)
}

fn matrix<T: Scalar>(n: usize, entries: &[(usize, usize, T)]) -> Csr<T> {
    let mut triplets = Triplets::new(n, n);
    entries.iter().for_each(|&(i, j, v)| triplets.push(i, j, v));
    triplets.to_csr().unwrap()
}

/// Row and column of the error.
fn refused<T: Scalar>(precond: &str, a: &Csr<T>) -> (usize, usize) {
    match named::<T>(precond).set_up(a, &mut Setup::new()).err() {
        Some(Error::Entry { row, column, .. }) => (row, column),
        other => panic!("{precond}: {other:?}"),
    }
}

/// The matrix with the value of one entry changed.
fn with_entry(a: &Csr<f64>, at: (usize, usize), value: f64) -> Csr<f64> {
    let changed = a.entries().map(|(i, j, v)| if (i, j) == at { value } else { v }).collect();
    a.with_values(changed).unwrap()
}

#[test]
fn what_a_preconditioner_cannot_take_is_refused_with_its_place() {
    let a = generated::<f64>("gen:poisson2d:20x20");
    for hermitian in ["chebyshev", "fsai", "ic0"] {
        assert_eq!(refused(hermitian, &with_entry(&a, (31, 30), -0.5)), (30, 31), "{hermitian}");
    }
    assert_eq!(refused("chebyshev", &with_entry(&a, (77, 77), -4.0)), (77, 77));
    assert_eq!(refused("chebyshev", &with_entry(&a, (77, 77), 0.0)), (77, 77));
    // The local system of row 80 has rows 60, 79 and 80.
    assert_eq!(refused("fsai", &with_entry(&a, (80, 80), 0.1)), (80, 80));
    assert_eq!(refused("ssor", &with_entry(&a, (77, 77), 0.0)), (77, 77));
    // The pivot of row 81 depends on its left neighbours; with colours, on all its neighbours.
    let low = with_entry(&a, (81, 81), 0.3);
    for refuses in ["ic0:pivots=refuse", "ic0:pivots=refuse,solve=colours"] {
        assert_eq!(refused(refuses, &low), (81, 81), "{refuses}");
    }
    let nothing = with_entry(&a, (0, 0), 0.0);
    for refuses in ["ilu0:pivots=refuse", "ilu0:pivots=refuse,solve=colours", "block-ilu:pivots=refuse"] {
        assert_eq!(refused(refuses, &nothing), (0, 0), "{refuses}");
        let message =
            named::<f64>(refuses).set_up(&nothing, &mut Setup::new()).err().map(|error| error.to_string());
        let name = refuses.split(':').next().unwrap();
        assert!(message.is_some_and(|message| message.starts_with(&format!("{name}: "))), "{refuses}");
    }
    let blocks = matrix(
        6,
        &[
            (0, 0, 1.0),
            (1, 1, 1.0),
            (2, 2, 1.0),
            (2, 3, 2.0),
            (3, 2, 2.0),
            (3, 3, 4.0),
            (4, 4, 1.0),
            (5, 5, 1.0),
        ],
    );
    assert_eq!(refused("block-jacobi:size=2", &blocks), (2, 2));
}

#[test]
fn bits_do_not_depend_on_threads() {
    for (matrix, precond, by) in [
        ("gen:poisson2d:150x150", "chebyshev", "cg"),
        ("gen:poisson2d:150x150", "fsai:power=2", "cg"),
        ("gen:poisson2d:150x150", "fsai:steps=3", "cg"),
        ("gen:convection:150x150:100", "block-jacobi:size=12", "bicgstab"),
        ("gen:poisson2d:150x150", "ic0:solve=colours", "cg"),
        ("gen:convection:150x150:100", "ilut", "bicgstab"),
        ("gen:convection:150x150:100", "block-ilu:order=1", "bicgstab"),
    ] {
        let results = [1, 2, 5].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let (outcome, x, _) = pool.install(|| solve(&generated::<f64>(matrix), precond, by));
            (outcome.history, x)
        });
        assert!(results.windows(2).all(|w| w[0] == w[1]), "{precond}");
    }
}

/// `U A Uᴴ` with a diagonal unitary `U`, and `U` applied to ones: as hard as `A` with ones.
fn turned(a: &Csr<f64>) -> (Csr<Complex64>, Vec<Complex64>) {
    // Powers of i, so that nothing is rounded.
    let phase = |i: usize| [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)][7 * i % 4];
    let phase = |i: usize| Complex64::new(phase(i).0, phase(i).1);
    let entries: Vec<_> = a.entries().map(|(i, j, v)| (i, j, phase(i) * v * phase(j).conj())).collect();
    (matrix(a.rows(), &entries), (0..a.rows()).map(phase).collect())
}

#[test]
fn complex_hermitian_matrices_take_as_many_iterations_as_real_ones() {
    let a = generated::<f64>("gen:poisson2d:40x40");
    let (complex, b) = turned(&a);
    assert!(complex.values().iter().any(|v| v.im != 0.0));
    for precond in [
        "chebyshev",
        "fsai",
        "fsai:power=2",
        "fsai:steps=2",
        "block-jacobi:size=4",
        "ssor:omega=1.3",
        "ic0",
        "ic0:sweeps=2",
        "ilu0",
        "ilut",
        "block-ilu:order=1",
    ] {
        let real = solve(&a, precond, "cg").0;
        let turned = solve_for(&complex, &b, precond, "cg").0;
        assert!(real.converged() && turned.converged());
        let difference = real.iterations.abs_diff(turned.iterations);
        assert!(difference <= 1, "{precond}: {} {}", real.iterations, turned.iterations);
    }
}

#[test]
fn natural_blocks_are_found_and_told() {
    let a = generated::<f64>("gen:elasticity3d:16");
    let (blocks, _, lines) = solve(&a, "block-jacobi", "cg");
    assert!(lines.iter().any(|line| line.contains("of 3 consecutive rows, inverted, as bcsr3")), "{lines:?}");
    let jacobi = solve(&a, "jacobi", "cg").0;
    assert!(
        blocks.converged() && blocks.iterations <= jacobi.iterations,
        "{} {}",
        blocks.iterations,
        jacobi.iterations
    );
    // A right-hand side without the symmetries of the square, which the blocks do not share.
    let a = generated::<f64>("gen:poisson2d:40x40");
    let b: Vec<f64> = (0..a.rows()).map(|i| ((i * 7919) % 101) as f64).collect();
    let (connected, _, lines) = solve_for(&a, &b, "block-jacobi:size=32", "cg");
    assert!(lines.iter().any(|line| line.contains("of 32 connected rows")), "{lines:?}");
    let plain = solve_for(&a, &b, "jacobi", "cg").0;
    assert!(
        connected.iterations * 10 < plain.iterations * 8,
        "{} {}",
        connected.iterations,
        plain.iterations
    );
}

#[test]
fn shifts_are_told() {
    let a = generated::<f64>("gen:poisson2d:20x20");
    for (precond, by, at) in
        [("ic0", "gmres", (80, 80)), ("ilu0", "gmres", (0, 0)), ("block-ilu", "gmres", (0, 0))]
    {
        let (outcome, _, lines) = solve(&with_entry(&a, at, 0.0), precond, by);
        assert!(
            lines.iter().any(|line| line.contains("of the diagonal: a pivot was almost zero")),
            "{lines:?}"
        );
        assert!(outcome.converged(), "{precond}: {outcome:?}");
    }
}

#[test]
fn pivoting_takes_what_has_no_diagonal() {
    // A cyclic matrix with shifted rows: every diagonal entry is 0, and rows differ by a few powers of ten.
    let n = 300;
    let entries: Vec<_> = (0..n)
        .flat_map(|i| {
            let by = 10f64.powi((i % 7) as i32 - 3);
            [(i, (i + 1) % n, 4.0 * by), (i, (i + 2) % n, -by), (i, (i + 7) % n, -by)]
        })
        .collect();
    let a = matrix(n, &entries);
    let (outcome, _, lines) = solve(&a, "ilut", "gmres");
    assert!(outcome.converged() && outcome.iterations < 20, "{outcome:?} {lines:?}");
}

#[test]
fn new_values_of_ilut_keep_its_steps() {
    let a = generated::<f64>("gen:convection:30x30:200");
    let mut kind = named::<f64>("ilut");
    let _ = kind.set_up(&a, &mut Setup::new()).unwrap();
    let grown = a.entries().map(|(i, j, v)| v * (1.0 + 0.05 * ((3 * i + j) % 7) as f64)).collect();
    let other = a.with_values::<f64>(grown).unwrap();
    let dev = Device::new(Reference::new());
    let on = dev.matrix(Arc::new(a.clone())).unwrap();
    let mut placed = Placed::new(&dev, kind, &a, *on, Setup::new()).unwrap();
    dev.set_matrix(*on, Arc::new(other.clone())).unwrap();
    placed.update(&other, Setup::new()).unwrap();
    let stop = Stop::default().rtol(1e-8).max_iters(500);
    let method = method("gmres", &Options::default()).unwrap();
    let mut solver = Solver::new(&dev, &on, Some(&placed), &*method, stop).unwrap();
    let kept = solver.solve(&vec![1.0; a.rows()], &mut vec![0.0; a.rows()]).unwrap().clone();
    let fresh = solve(&other, "ilut", "gmres").0;
    assert!(
        kept.converged() && kept.iterations <= fresh.iterations + 5,
        "{} {}",
        kept.iterations,
        fresh.iterations
    );
}

#[test]
fn a_pattern_that_grows_follows_the_strong_couplings() {
    // Couplings along one axis are 1000 times those along the other, so entries along it gain more.
    let a = generated::<f64>("gen:poisson2d:40x40");
    let strong = |(i, j, v): (usize, usize, f64)| match i.abs_diff(j) {
        0 => 2.0 + 2e-3,
        1 => -1.0,
        _ => v * 1e-3,
    };
    let a = a.with_values::<f64>(a.entries().map(strong).collect()).unwrap();
    let b: Vec<f64> = (0..a.rows()).map(|i| ((i * 7919) % 101) as f64).collect();
    let entries = |lines: &[String]| -> f64 {
        let line = lines.iter().find_map(|line| line.strip_prefix("entries of a row "));
        line.and_then(|line| line.parse().ok()).unwrap()
    };
    let (power, _, lines) = solve_for(&a, &b, "fsai:power=3", "cg");
    let of_power = entries(&lines);
    let (grown, _, lines) = solve_for(&a, &b, "fsai:steps=6,add=1", "cg");
    assert!(entries(&lines) < 0.7 * of_power, "{} {of_power}", entries(&lines));
    assert!(
        grown.converged() && grown.iterations < power.iterations,
        "{} {}",
        grown.iterations,
        power.iterations
    );
    // New values keep the pattern.
    let mut kind = named::<f64>("fsai:steps=6,add=1");
    let bytes = kind.set_up(&a, &mut Setup::new()).unwrap().bytes();
    let other = a.with_values::<f64>(generated::<f64>("gen:poisson2d:40x40").values().to_vec()).unwrap();
    assert_eq!(kind.set_up(&other, &mut Setup::new().for_new_values()).unwrap().bytes(), bytes);
}

#[test]
fn every_preconditioner_takes_a_polynomial() {
    let a = generated::<f64>("gen:poisson2d:40x40");
    for precond in ["jacobi", "ssor", "block-ilu:size=16", "amg:coarsest=100"] {
        let joint = if precond.contains(':') { ',' } else { ':' };
        let plain = solve(&a, precond, "cg").0;
        let (with, _, lines) = solve(&a, &format!("{precond}{joint}polynomial=1"), "cg");
        assert!(lines.iter().any(|line| line == "polynomial of order 1"), "{lines:?}");
        assert!(
            with.converged() && with.iterations * 10 < plain.iterations * 9,
            "{precond}: {}",
            with.iterations
        );
        let none = solve(&a, &format!("{precond}{joint}polynomial=0"), "cg").0;
        assert_eq!(none.history, plain.history, "{precond}");
    }
    let short = solve(&a, "block-ilu:order=2", "cg").0;
    assert_eq!(short.history, solve(&a, "block-ilu:polynomial=2", "cg").0.history);
    // Damped, and of blocks of consecutive rows, which leave more out: other iterates, the same solution.
    for other in ["block-ilu:order=2,omega=0.8", "block-ilu:order=2,blocks=consecutive"] {
        let outcome = solve(&a, other, "cg").0;
        assert!(outcome.converged() && outcome.history != short.history, "{other}");
        assert_eq!(
            preconditioner::<f64>(other).unwrap().unwrap().name().split_once(':').unwrap().0,
            "block-ilu"
        );
    }
    assert!(
        preconditioner::<f64>("block-ilu:omega=2").is_err()
            && preconditioner::<f64>("jacobi:omega=1").is_err()
    );
    assert!(preconditioner::<f64>("none:polynomial=1").is_err());
}

/// One step solves a well-conditioned system, however rows and columns are scaled; new values too.
fn directly<T: Scalar>(of: &str, factorisation: &str) {
    let a = generated::<T>(of);
    let (outcome, _, lines) = solve(&a, "direct", "richardson");
    assert!(outcome.converged() && outcome.iterations <= 2, "{of}: {outcome:?}");
    assert!(lines.contains(&format!("factorisation {factorisation}")), "{of}: {lines:?}");
    let by = |i: usize, j: usize| (i % 60) as i32 - (j % 50) as i32;
    let scaled = a.entries().map(|(i, j, v)| v.scale_by_power_of_two(by(i, j))).collect();
    let scaled = a.with_values(scaled).unwrap();
    let b: Vec<T> = (0..a.rows()).map(|i| T::one().scale_by_power_of_two((i % 60) as i32)).collect();
    let (outcome, _, lines) = solve_for(&scaled, &b, "direct", "richardson");
    assert!(outcome.converged() && outcome.iterations <= 2, "{of}, scaled: {outcome:?} {lines:?}");
    let mut kind = named::<T>("direct");
    let dev = Device::new(Reference::new());
    let on = dev.matrix(Arc::new(scaled.clone())).unwrap();
    let _ = kind.set_up(&a, &mut Setup::new()).unwrap();
    let mut placed = Placed::new(&dev, kind, &a, *on, Setup::new()).unwrap();
    placed.update(&scaled, Setup::new()).unwrap();
    let richardson = method("richardson", &Options::default()).unwrap();
    let stop = Stop::default().rtol(1e-8).max_iters(3);
    let mut solver = Solver::new(&dev, &on, Some(&placed), &*richardson, stop).unwrap();
    let outcome = solver.solve(&b, &mut vec![T::zero(); a.rows()]).unwrap();
    assert!(outcome.converged(), "{of}, new values: {outcome:?}");
}

#[test]
fn complete_factors_solve_in_a_step() {
    directly::<f64>("gen:poisson2d:40x30", "Cholesky");
    directly::<f64>("gen:convection:30x30", "LU by columns");
    directly::<Complex64>("gen:helmholtz:25x25", "LU by columns");
    // Indefinite, with an empty diagonal.
    let a = matrix(4, &[(0, 1, 1.0), (1, 0, 1.0), (1, 2, 2.0), (2, 1, 2.0), (2, 3, -1.0), (3, 2, -1.0)]);
    let (outcome, x, _) = solve_for(&a, &[1.0, 2.0, 3.0, 4.0], "direct", "richardson");
    assert!(outcome.converged(), "{outcome:?}");
    assert_eq!(x, [10.0, 1.0, -4.0, -1.0]);
}

#[test]
fn complete_factors_are_refused_before_they_are_made() {
    let refused = |precond: &str, a: &Csr<f64>| match named::<f64>(precond).set_up(a, &mut Setup::new()) {
        Err(Error::Unsupported { message, .. }) => message,
        other => panic!("{precond}: {:?}", other.map(drop)),
    };
    let a = generated::<f64>("gen:poisson3d:12x12x12");
    assert!(refused("direct:memory=0.0001", &a).contains("the limit is memory=0.0001"));
    assert!(refused("direct:work=0.001", &a).contains("the limit is work=0.001"));
    let empty = matrix(3, &[(0, 0, 1.0), (1, 0, 1.0), (2, 2, 1.0)]);
    assert!(refused("direct", &empty).contains("structural rank is 2 of 3"));
    let singular = matrix(2, &[(0, 0, 1.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 4.0)]);
    assert!(refused("direct", &singular).contains("singular to working precision"));
}

#[test]
fn a_sparse_inverse_is_exact_where_the_inverse_is_sparse() {
    // Blocks of two unknowns.
    let c = Complex64::new;
    let a = matrix(
        4,
        &[
            (0, 0, c(2.0, 1.0)),
            (0, 1, c(0.0, -1.0)),
            (1, 0, c(1.0, 0.0)),
            (1, 1, c(3.0, 0.0)),
            (2, 2, c(0.1, 0.0)),
            (2, 3, c(0.0, 4.0)),
            (3, 2, c(5.0, 0.0)),
            (3, 3, c(1.0, 0.0)),
        ],
    );
    let (outcome, x, _) = solve(&a, "spai", "bicgstab");
    assert!(outcome.converged() && outcome.iterations <= 1, "{outcome:?}");
    let mut product = vec![c(0.0, 0.0); 4];
    a.entries().for_each(|(i, j, v)| product[i] += v * x[j]);
    assert!(product.iter().all(|v| (v - 1.0).norm() < 1e-7), "{product:?}");
}

#[test]
fn a_sparse_inverse_betters_the_diagonal_and_bears_long_rows() {
    let iterations = |name: &str, precond: &str| {
        let (outcome, _, lines) = solve(&generated::<f64>(name), precond, "bicgstab");
        assert!(outcome.converged(), "{name} {precond}: {outcome:?} {lines:?}");
        outcome.iterations
    };
    for name in ["gen:convection:40x40", "gen:power-law:3000"] {
        let [diagonal, inverse] = ["jacobi", "spai"].map(|precond| iterations(name, precond));
        assert!(inverse < diagonal, "{name}: {inverse} instead of {diagonal}");
    }
    // An arrow: the first row and column are full.
    let n = 3000;
    let arrow =
        (1..n).flat_map(|i| [(0, i, -1.0), (i, 0, -1.0), (i, i, 4.0)]).chain([(0, 0, 4.0 * n as f64)]);
    let (outcome, _, _) = solve(&matrix(n, &arrow.collect::<Vec<_>>()), "spai", "bicgstab");
    assert!(outcome.converged(), "{outcome:?}");
    let zero_row = matrix(3, &[(0, 0, 1.0), (2, 2, 1.0), (1, 1, 0.0)]);
    assert_eq!(refused("spai", &zero_row), (1, 1));
}

#[test]
fn every_preconditioner_may_stand_on_either_side() {
    let a = generated::<f64>("gen:poisson2d:20x20");
    for info in PRECONDITIONERS.iter().filter(|info| !["none", "column-scaling"].contains(&info.name)) {
        for side in ["left", "right"] {
            let (outcome, ..) = solve(&a, info.name, &format!("gmres:side={side}"));
            assert!(outcome.converged(), "{} {side}: {outcome:?}", info.name);
        }
    }
}

/// Clusters of unknowns that are all but equal: `D⁻¹ A` has eigenvalues up to their number.
fn clusters(count: usize, size: usize) -> Csr<f64> {
    let mut all = Triplets::new(count * size, count * size);
    for (i, j) in (0..count * size).flat_map(|i| (0..size).map(move |j| (i, i / size * size + j))) {
        all.push(i, j, if i == j { 1.1 + (i % 7) as f64 * 0.01 } else { 1.0 });
    }
    all.to_csr().unwrap()
}

#[test]
fn neumann_is_definite_where_eigenvalues_are_large() {
    let a = clusters(60, 5);
    let (outcome, _, lines) = solve(&a, "neumann", "cg");
    assert!(outcome.converged(), "{outcome:?}");
    assert!(lines.iter().any(|line| line.starts_with("damping 0.3")), "{lines:?}");
    let (outcome, ..) = solve(&a, "neumann:omega=0.9", "cg");
    assert_eq!(outcome.reason, Reason::IndefinitePreconditioner);
    let (.., lines) = solve(&generated::<f64>("gen:poisson2d:9x9"), "neumann", "cg");
    assert!(lines.contains(&"damping 0.9000".into()), "{lines:?}");
}

/// The identity with row and column `at` full: the last, the first, or one between.
fn arrow(n: usize, at: usize) -> Csr<f64> {
    let others = || (0..n).filter(move |&i| i != at);
    let mut entries: Vec<_> = others().flat_map(|i| [(i, i, 2.0), (i, at, -0.5), (at, i, -0.5)]).collect();
    entries.push((at, at, n as f64));
    matrix(n, &entries)
}

/// The work of a set-up does not grow with the square of the longest row.
#[test]
fn a_full_row_is_affordable() {
    let n = 20_000;
    for at in [0, n / 2, n - 1] {
        let a = arrow(n, at);
        for (kind, by) in [
            ("fsai", "cg"),
            ("fsai:power=2", "cg"),
            ("fsai:steps=3", "cg"),
            ("spai", "gmres"),
            ("ic0", "cg"),
            ("ilu0", "cg"),
            ("ssor", "cg"),
            ("block-jacobi", "cg"),
            ("ilut", "gmres"),
        ] {
            let (outcome, ..) = solve(&a, kind, by);
            assert!(outcome.converged(), "{kind}, {at}: {outcome:?}");
        }
    }
    let (.., lines) = solve(&arrow(600, 599), "fsai:entries=8", "cg");
    assert!(lines.contains(&"entries of a row 1.0".into()), "{lines:?}");
}

/// A full row, a full column and both cost LU factors little.
#[cfg(feature = "direct")]
#[test]
fn full_rows_and_columns_cost_complete_factors_little() {
    let n = 4000;
    let chain = |full: &dyn Fn(usize) -> Option<(usize, usize)>| {
        let below = (1..n).map(|i| (i, i - 1, -1.0));
        let more = (0..n).filter_map(|i| full(i).map(|(i, j)| (i, j, 1.0 / n as f64)));
        let mut all = Triplets::new(n, n);
        (0..n).map(|i| (i, i, 2.5)).chain(below).chain(more).for_each(|(i, j, v)| all.push(i, j, v));
        all.to_csr().unwrap()
    };
    let (column, row): (Csr<f64>, Csr<f64>) = (chain(&|i| Some((i, n / 2))), chain(&|i| Some((n / 2, i))));
    let mut both = Triplets::new(n, n);
    column.entries().for_each(|(i, j, v)| both.push(i, j, v));
    row.entries().filter(|(i, j, _)| i != j).for_each(|(i, j, v)| both.push(i, j, v));
    for a in [&column, &row, &both.to_csr().unwrap()] {
        let (outcome, _, lines) = solve(a, "direct:memory=0.002", "richardson");
        assert!(outcome.converged() && outcome.iterations <= 2, "{lines:?} {outcome:?}");
        let dev = Device::new(Reference::new());
        let on = dev.matrix(Arc::new(a.clone())).unwrap();
        let adjoint = dev.matrix(Arc::new(a.adjoint())).unwrap();
        let m = Placed::new(&dev, named("direct"), a, *on, Setup::new()).unwrap();
        let pair = lacuna_engine::WithAdjoint(&on, &adjoint);
        let by = method("bicg", &Options::default()).unwrap();
        let mut solver = Solver::new(&dev, &pair, Some(&m), &*by, Stop::default()).unwrap();
        assert!(solver.solve(&vec![1.0; n], &mut vec![0.0; n]).unwrap().converged());
    }
}

/// Matrices are large enough to be read once for all columns, and others are not.
#[test]
fn several_columns_have_the_bits_of_one_each() {
    let a = generated::<f64>("gen:poisson3d:22x22x22:27");
    let n = a.rows();
    let dev = Device::new(Reference::new());
    let on = dev.matrix(Arc::new(a.clone())).unwrap();
    for name in [
        "amg",
        "amg:smoother=chebyshev,sweeps=2",
        "amg:precision=single",
        "multigrid",
        "jacobi",
        "fsai",
        "spai",
    ] {
        let m = Placed::new(&dev, preconditioner(name).unwrap().unwrap(), &a, *on, Setup::new()).unwrap();
        // More columns than before need more room; fewer take a part of it.
        for columns in [2, 3, 1, 2] {
            let [x, y, apart] = [0; 3].map(|_| dev.basis::<f64>(n, columns).unwrap());
            for j in 0..columns {
                let numbers: Vec<f64> = (0..n).map(|i| ((i * (5 + j)) % 13) as f64 - 6.0).collect();
                dev.upload(&numbers, x.column(j)).unwrap();
                dev.spmv_dot(&m, x.column(j), apart.column(j), Pass::nothing()).unwrap();
            }
            dev.spmm(&m, *x, *y).unwrap();
            for j in 0..columns {
                let [one, other] = [&y, &apart].map(|of| {
                    let mut numbers = vec![0.0; n];
                    dev.download(of.column(j), &mut numbers).unwrap();
                    numbers
                });
                assert!(one == other && one.iter().all(|v| v.is_finite()), "{name}: column {j} of {columns}");
            }
        }
    }
}
