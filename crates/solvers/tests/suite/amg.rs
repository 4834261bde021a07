//! Algebraic multigrid: iteration counts that must not grow, equal bits on any number of threads, new values,
//! and reports.
use crate::generated;
use lacuna_engine::{Complex64, Device, Error, LinOp, Reference, Scalar};
use lacuna_formats::Csr;
use lacuna_solvers::{
    Aggregation, Amg, AmgOptions, Options, Outcome, Placed, Preconditioner, Setup, Smoothing, Solver, Stop,
    method,
};
use std::sync::Arc;

/// Solves for the vector of ones to 1e-8 on the serial reference. Also returns the report of the
/// preconditioner.
fn solve<T: Scalar>(a: &Csr<T>, amg: Amg, by: &str) -> (Outcome, Vec<T>, Vec<String>) {
    let dev = Device::new(Reference::new());
    let on = dev.matrix(Arc::new(a.clone())).unwrap();
    let placed = Placed::new(&dev, Box::new(amg), a, *on, Setup::new()).unwrap();
    let (outcome, x) = solve_on(&dev, a, &on, &placed, by);
    let lines = placed.report().iter().map(|(what, value)| format!("{what} {value}")).collect();
    (outcome, x, lines)
}

fn solve_on<T: Scalar>(
    dev: &Device,
    a: &Csr<T>,
    on: &dyn LinOp<T>,
    m: &Placed<T>,
    by: &str,
) -> (Outcome, Vec<T>) {
    let stop = Stop::default().rtol(1e-8).max_iters(500);
    let method = method(by, &Options::default()).unwrap();
    let mut solver = Solver::new(dev, on, Some(m), &*method, stop).unwrap();
    let mut x = vec![T::zero(); a.rows()];
    let outcome = solver.solve(&vec![T::one(); a.rows()], &mut x).unwrap().clone();
    (outcome, x)
}

fn options() -> AmgOptions {
    AmgOptions::default().coarsest(60)
}

/// `A` with its couplings along the slowest axis multiplied by `factor`.
fn anisotropic(side: usize, factor: f64) -> Csr<f64> {
    let a = generated::<f64>(&format!("gen:poisson3d:{side}x{side}x{side}"));
    let mut triplets = lacuna_formats::Triplets::new(a.rows(), a.cols());
    for (i, j, v) in a.entries() {
        let far = i.abs_diff(j) == side * side;
        triplets.push(
            i,
            j,
            if i == j {
                4.0 + 2.0 * factor
            } else if far {
                factor * v
            } else {
                v
            },
        );
    }
    triplets.to_csr().unwrap()
}

#[test]
fn iterations_stay_few() {
    let plain = options();
    let chebyshev = plain.smoothing(Smoothing::Chebyshev);
    let mis2 = plain.aggregation(Aggregation::Mis2);
    let two = plain.sweeps(2);
    let poisson = generated::<f64>("gen:poisson3d:24x24x24");
    let cases = [
        ("poisson3d", &poisson, plain, "cg", 14),
        ("poisson3d", &poisson, chebyshev, "cg", 12),
        ("poisson3d", &poisson, mis2, "cg", 15),
        ("poisson2d", &generated("gen:poisson2d:100x100"), mis2, "cg", 22),
        ("poisson3d", &poisson, two, "cg", 12),
        ("27 points", &generated("gen:poisson3d:20x20x20:27"), plain, "cg", 15),
        ("weak along z", &anisotropic(24, 0.01), plain, "cg", 15),
        ("strong along z", &anisotropic(24, 100.0), plain, "cg", 16),
        ("poisson2d", &generated("gen:poisson2d:100x100"), plain, "cg", 15),
        ("convection", &generated("gen:convection:24x24x24:1000"), plain, "bicgstab", 27),
    ];
    let mut wrong = Vec::new();
    for (name, a, options, by, most) in cases {
        let (outcome, _, lines) = solve(a, Amg::new(options), by);
        if !outcome.converged() || outcome.iterations > most {
            wrong.push(format!("{name} {options:?}: {:?} {} {lines:#?}", outcome.reason, outcome.iterations));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn bits_do_not_depend_on_threads() {
    for name in ["gen:poisson3d:24x24x24", "gen:convection:24x24x24:100"] {
        let by = if name.contains("convection") { "bicgstab" } else { "cg" };
        let results = [1, 2, 5].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let (outcome, x, _) = pool.install(|| solve(&generated::<f64>(name), Amg::new(options()), by));
            (outcome.history, x)
        });
        assert!(results.windows(2).all(|w| w[0] == w[1]), "{name}");
    }
}

#[test]
fn new_values_give_what_a_fresh_set_up_gives() {
    // Greedy aggregates depend on which of equal couplings is the strongest, which on a coarse level is a matter of rounding.
    let deep = options().aggregation(Aggregation::Mis2);
    let cases = [options().coarsest(1000), deep];
    let smoothings = [Smoothing::Spai0, Smoothing::Chebyshev];
    for (case, smoothing) in cases.into_iter().flat_map(|case| smoothings.map(|s| (case, s))) {
        let amg = || Amg::new(case.smoothing(smoothing));
        let a = generated::<f64>("gen:poisson3d:16x16x16");
        let dev = Device::new(Reference::new());
        let on = dev.matrix(Arc::new(a.clone())).unwrap();
        let mut placed = Placed::new(&dev, Box::new(amg()), &a, *on, Setup::new()).unwrap();
        for step in 1..4 {
            // The change is too small to alter which couplings are strong.
            let by = f64::from(1 << step);
            let grown = |(i, j, v): (usize, usize, f64)| if i == j { by * v * (1.0 + 1e-4) } else { by * v };
            let other = a.with_values::<f64>(a.entries().map(grown).collect()).unwrap();
            dev.set_matrix(*on, Arc::new(other.clone())).unwrap();
            placed.update(&other, Setup::new()).unwrap();
            let (got, x) = solve_on(&dev, &other, &on, &placed, "cg");
            let (want, y, _) = solve(&other, amg(), "cg");
            assert_eq!((got.iterations, got.history), (want.iterations, want.history), "step {step}");
            assert_eq!(x, y, "step {step}");
        }
    }
}

#[test]
fn a_scaled_matrix_takes_its_near_null_vector() {
    let a = generated::<f64>("gen:poisson2d:60x60");
    let scale: Vec<f64> = (0..a.rows()).map(|i| 1.0 + 30.0 * ((i * 7919) % 101) as f64 / 101.0).collect();
    let scaled: Vec<f64> = a.entries().map(|(i, j, v)| v * scale[i] * scale[j]).collect();
    let scaled = a.with_values::<f64>(scaled).unwrap();
    let vector: Vec<f64> = scale.iter().map(|s| 1.0 / s).collect();
    let chebyshev = || Amg::new(options().smoothing(Smoothing::Chebyshev));
    let with = solve(&scaled, chebyshev().near_null(&vector), "cg").0;
    let without = solve(&scaled, chebyshev(), "cg").0;
    assert!(with.converged() && with.iterations <= 20, "{}", with.iterations);
    assert!(without.iterations > 2 * with.iterations, "{} {}", without.iterations, with.iterations);
    let short = Amg::new(options()).near_null(&[1.0]).set_up(&scaled, &mut Setup::new()).err();
    assert!(matches!(short, Some(Error::Length { .. })), "{short:?}");
}

#[test]
fn complex_hermitian_matrices_too() {
    let a = generated::<Complex64>("gen:poisson2d:60x60");
    let phase = |i: usize| Complex64::from_polar(1.0, (i % 13) as f64);
    let turned = a.entries().map(|(i, j, v)| phase(i) * v * phase(j).conj()).collect::<Vec<_>>();
    // Products of phases are rounded, so the lower triangle is copied from the upper.
    let mut values = turned.clone();
    let places: Vec<(usize, usize)> = a.entries().map(|(i, j, _)| (i, j)).collect();
    for (k, &(i, j)) in places.iter().enumerate() {
        let image = places.binary_search(&(j, i)).unwrap();
        values[k] = if i > j {
            turned[image].conj()
        } else if i == j {
            a.values()[k]
        } else {
            turned[k]
        };
    }
    let a = a.with_values::<Complex64>(values).unwrap();
    let vector: Vec<Complex64> = (0..a.rows()).map(phase).collect();
    for smoothing in [Smoothing::Spai0, Smoothing::Chebyshev] {
        let amg = Amg::new(options().smoothing(smoothing)).near_null(&vector);
        let (outcome, _, lines) = solve(&a, amg, "cg");
        assert!(outcome.converged() && outcome.iterations <= 22, "{} {lines:#?}", outcome.iterations);
    }
}

#[test]
fn what_cannot_be_coarsened_is_told_and_smoothed() {
    let has =
        |lines: &[String], part: &str| assert!(lines.iter().any(|line| line.contains(part)), "{lines:#?}");
    let n = 2000;
    let mut diagonal = lacuna_formats::Triplets::new(n, n);
    (0..n).for_each(|i| diagonal.push(i, i, 1.0 + i as f64));
    let (outcome, _, lines) = solve(&diagonal.to_csr().unwrap(), Amg::new(options()), "cg");
    assert!(outcome.converged() && outcome.iterations <= 2);
    has(&lines, "level 0 has no strong couplings");
    has(&lines, "too many for an inverse");
    let a = generated::<f64>("gen:poisson3d:16x16x16");
    let lean = options().complexity(1.1);
    let (outcome, _, lines) = solve(&a, Amg::new(lean), "cg");
    assert!(outcome.converged());
    has(&lines, "more than 1.1: not made");
    let (_, _, lines) = solve(&a, Amg::new(options()), "cg");
    has(&lines, "level 0: 4096 rows, 27136 entries, 6.6 a row");
    has(&lines, "complexity 1.");
    has(&lines, "dense inverse");
}

#[test]
fn a_singular_coarsest_matrix_has_a_pseudo_inverse() {
    // A Neumann problem: the diagonal balances the off-diagonal row sums.
    let a = generated::<f64>("gen:poisson2d:40x40");
    let sums: Vec<f64> =
        (0..a.rows()).map(|i| a.row_entries(i).filter(|e| e.0 != i).map(|e| e.1).sum()).collect();
    let neumann = a.entries().map(|(i, j, v)| if i == j { -sums[i] } else { v }).collect::<Vec<f64>>();
    let a = a.with_values::<f64>(neumann).unwrap();
    let dev = Device::new(Reference::new());
    let on = dev.matrix(Arc::new(a.clone())).unwrap();
    let m = Placed::new(&dev, Box::new(Amg::new(options())), &a, *on, Setup::new()).unwrap();
    assert!(m.report().iter().any(|line| line.1.contains("null space of dimension 1")), "{:?}", m.report());
    let stop = Stop::default().rtol(1e-8).max_iters(100);
    let mut solver =
        Solver::new(&dev, &on, Some(&m), &*method("cg", &Options::default()).unwrap(), stop).unwrap();
    let b: Vec<f64> = (0..a.rows()).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let outcome = solver.solve(&b, &mut vec![0.0; a.rows()]).unwrap();
    assert!(outcome.converged() && outcome.iterations < 30, "{outcome:?}");
}

#[test]
fn a_zero_on_the_diagonal_is_refused_with_its_row() {
    let a = generated::<f64>("gen:poisson2d:40x40");
    let holed = a.entries().map(|(i, j, v)| if i == 77 && j == 77 { 0.0 } else { v }).collect::<Vec<f64>>();
    let refused = Amg::default().set_up(&a.with_values::<f64>(holed).unwrap(), &mut Setup::new()).err();
    assert!(matches!(refused, Some(Error::Entry { row: 77, column: 77, .. })), "{refused:?}");
}

/// The nodes of `gen:elasticity3d:M`.
fn nodes(m: usize) -> Vec<[f64; 3]> {
    let side = m + 1;
    let node = |k: usize| [k % side, k / side % side, k / side / side + 1].map(|c| c as f64 / m as f64);
    (0..m * side * side).map(node).collect()
}

#[test]
fn elasticity_wants_its_blocks_and_gains_by_rigid_body_modes() {
    let a = generated::<f64>("gen:elasticity3d:12");
    let by = |amg: Amg| {
        let (outcome, _, lines) = solve(&a, amg, "cg");
        assert!(outcome.converged(), "{:?} {lines:#?}", outcome.reason);
        outcome.iterations
    };
    let one_by_one = by(Amg::new(options().block(1)));
    let translations = by(Amg::new(options()));
    let rigid = by(Amg::new(options()).rigid_body_modes(&nodes(12)));
    let chebyshev = options().smoothing(Smoothing::Chebyshev);
    let smoothed = by(Amg::new(chebyshev).rigid_body_modes(&nodes(12)));
    let all = [one_by_one, translations, rigid, smoothed];
    println!("iterations row by row, with translations, with rotations, with Chebyshev: {all:?}");
    assert!(2 * translations < one_by_one && rigid < translations && smoothed < rigid, "{all:?}");
    assert!(translations <= 44 && rigid <= 33 && smoothed <= 24, "{all:?}");
}

#[test]
fn new_values_of_a_system_with_blocks_too() {
    let a = generated::<f64>("gen:elasticity3d:8");
    // Equal couplings stay equal, so that a fresh set-up makes the same aggregates.
    let rows = a.with_values::<f64>(a.values().iter().map(|v| 4.0 * v).collect()).unwrap();
    let points = nodes(8);
    let amg = || Amg::new(options()).rigid_body_modes(&points);
    let dev = Device::new(Reference::new());
    let on = dev.matrix(Arc::new(rows.clone())).unwrap();
    let mut used = Placed::new(&dev, Box::new(amg()), &a, *on, Setup::new()).unwrap();
    used.update(&rows, Setup::new()).unwrap();
    let (got, x) = solve_on(&dev, &rows, &on, &used, "cg");
    let fresh = Placed::new(&dev, Box::new(amg()), &rows, *on, Setup::new()).unwrap();
    let (want, y) = solve_on(&dev, &rows, &on, &fresh, "cg");
    assert_eq!((got.iterations, got.history), (want.iterations, want.history));
    assert!(x == y, "other bits than a fresh set-up");
    let stiffer = |(i, j, v): (usize, usize, f64)| if i == j { 1.5 * v } else { v };
    let other = a.with_values::<f64>(a.entries().map(stiffer).collect()).unwrap();
    dev.set_matrix(*on, Arc::new(other.clone())).unwrap();
    used.update(&other, Setup::new()).unwrap();
    let (again, _) = solve_on(&dev, &other, &on, &used, "cg");
    assert!(again.converged() && again.iterations < want.iterations, "{again:?}");
}

#[test]
fn spaces_that_do_not_fit_are_refused() {
    let a = generated::<f64>("gen:poisson2d:25x25");
    let refused = |amg: Amg| -> Error {
        let mut amg = amg;
        Preconditioner::<f64>::set_up(&mut amg, &a, &mut Setup::new()).err().expect("a refusal")
    };
    let none: [Vec<f64>; 0] = [];
    assert!(matches!(refused(Amg::default().near_null_space(5, &none)), Error::Argument { .. }));
    assert!(matches!(refused(Amg::default().rigid_body_modes(&nodes(3))), Error::Length { .. }));
    let block = AmgOptions::default().block(7);
    assert!(matches!(refused(Amg::new(block)), Error::Argument { .. }));
}

/// The consistent mass matrix of `m × m` elements of eight nodes, each with a density of its own (Wathen 1987,
/// doi:10.1093/imanum/7.4.449): positive definite, with couplings of both signs.
fn wathen(m: usize) -> Csr<f64> {
    let one =
        [[6.0, -6.0, 2.0, -8.0], [-6.0, 32.0, -6.0, 20.0], [2.0, -6.0, 6.0, -6.0], [-8.0, 20.0, -6.0, 32.0]];
    let two =
        [[3.0, -8.0, 2.0, -6.0], [-8.0, 16.0, -8.0, 20.0], [2.0, -8.0, 3.0, -8.0], [-6.0, 20.0, -8.0, 16.0]];
    let element = |p: usize, q: usize| match (p / 4, q / 4) {
        (0, 1) => two[p][q % 4],
        (1, 0) => two[q][p % 4],
        _ => one[p % 4][q % 4],
    };
    let n = 3 * m * m + 4 * m + 1;
    let mut all = lacuna_formats::Triplets::new(n, n);
    for (i, j) in (1..=m).flat_map(|j| (1..=m).map(move |i| (i, j))) {
        let (top, middle, bottom) =
            (3 * j * m + 2 * i + 2 * j, (3 * j - 1) * m + 2 * j + i - 2, 3 * (j - 1) * m + 2 * i + 2 * j - 4);
        let nodes = [top, top - 1, top - 2, middle, bottom, bottom + 1, bottom + 2, middle + 1];
        let density = 1.0 + 99.0 * ((i * 7 + j * 13) % 17) as f64 / 17.0;
        for (p, q) in (0..8).flat_map(|p| (0..8).map(move |q| (p, q))) {
            all.push(nodes[p], nodes[q], density * element(p, q) / 45.0);
        }
    }
    all.to_csr().unwrap()
}

/// The smoother converges for every positive definite matrix, so that the cycle is definite and converges by itself.
#[test]
fn the_cycle_is_definite_where_the_matrix_is() {
    let a = wathen(15);
    for (by, most) in [("cg", 40), ("richardson", 300)] {
        let (outcome, ..) = solve(&a, Amg::new(options()), by);
        assert!(outcome.converged() && outcome.iterations <= most, "{by}: {outcome:?}");
    }
}
