//! Matrices and settings that `amg` and `multigrid` must bear or refuse.
use crate::generated;
use lacuna_engine::{Device, Error, Reference};
use lacuna_formats::{Csr, Triplets};
use lacuna_solvers::{
    Amg, AmgOptions, Multigrid, MultigridOptions, Options, Outcome, Placed, Preconditioner, Setup, Smoothing,
    Solver, Stop, method,
};
use std::sync::Arc;

/// Matrices as blocks on a diagonal.
fn beside(blocks: &[&Csr<f64>]) -> Csr<f64> {
    let n = blocks.iter().map(|block| block.rows()).sum();
    let (mut all, mut first) = (Triplets::new(n, n), 0);
    for block in blocks {
        block.entries().for_each(|(i, j, v)| all.push(first + i, first + j, v));
        first += block.rows();
    }
    all.to_csr().unwrap()
}

/// The Laplacian of a path with weighted edges, times an identity of `unknowns`.
fn path(weights: &[f64], unknowns: usize) -> Csr<f64> {
    let n = (weights.len() + 1) * unknowns;
    let mut all = Triplets::new(n, n);
    for (k, w) in weights.iter().enumerate() {
        for u in 0..unknowns {
            let [i, j] = [k, k + 1].map(|node| node * unknowns + u);
            for (i, j, v) in [(i, i, *w), (j, j, *w), (i, j, -w), (j, i, -w)] {
                all.push(i, j, v);
            }
        }
    }
    all.to_csr().unwrap()
}

/// Solves for `A` times alternating numbers, so that a singular system has a solution.
fn solve(a: &Csr<f64>, amg: AmgOptions) -> (Outcome, Vec<String>) {
    let dev = Device::new(Reference::new());
    let on = dev.matrix(Arc::new(a.clone())).unwrap();
    let m = Placed::new(&dev, Box::new(Amg::new(amg)), a, *on, Setup::new()).unwrap();
    let mut b = vec![0.0; a.rows()];
    a.product(&(0..a.rows()).map(|i| (i % 7) as f64 - 3.0).collect::<Vec<_>>(), &mut b).unwrap();
    let stop = Stop::default().rtol(1e-8).max_iters(200);
    let mut solver =
        Solver::new(&dev, &on, Some(&m), &*method("cg", &Options::default()).unwrap(), stop).unwrap();
    let outcome = solver.solve(&b, &mut vec![0.0; a.rows()]).unwrap().clone();
    (outcome, m.report().iter().map(|(what, value)| format!("{what} {value}")).collect())
}

#[test]
fn parts_that_are_singular_by_themselves_are_left_to_the_smoother() {
    let grid = generated("gen:poisson2d:40x40");
    let options = AmgOptions::default().coarsest(60);
    let usual = solve(&grid, options).0.iterations;
    for smoothing in [Smoothing::Spai0, Smoothing::Chebyshev] {
        for part in [path(&[1.0], 1), path(&[0.3, 0.7, 1.1, 0.2], 1)] {
            let (outcome, lines) = solve(&beside(&[&part, &grid, &part]), options.smoothing(smoothing));
            assert!(outcome.converged() && outcome.iterations <= usual + 2, "{outcome:?}");
            assert!(lines.iter().any(|line| line.contains("2 of parts that are singular")), "{lines:#?}");
        }
    }
    // Nodes of two unknowns.
    let nodes = options.block(2);
    let mut both = Triplets::new(2 * grid.rows(), 2 * grid.rows());
    for (i, j, v) in grid.entries() {
        (0..2).for_each(|u| both.push(2 * i + u, 2 * j + u, v));
    }
    let (outcome, lines) = solve(&beside(&[&both.to_csr().unwrap(), &path(&[0.3, 0.7], 2)]), nodes);
    assert!(outcome.converged() && outcome.iterations <= usual + 2, "{outcome:?}");
    assert!(lines.iter().any(|line| line.contains("2 of parts that are singular")), "{lines:#?}");
}

#[test]
fn an_empty_matrix_has_an_empty_hierarchy() {
    let empty = Csr::<f64>::identity(0).unwrap();
    let (outcome, lines) = solve(&empty, AmgOptions::default());
    assert!(outcome.converged(), "{outcome:?}");
    assert!(lines.iter().any(|line| line.contains("0: 0 rows")), "{lines:#?}");
}

#[test]
fn values_that_are_refused_leave_the_next_ones_their_levels() {
    let a = generated("gen:poisson2d:40x40");
    let with = |change: &dyn Fn(usize, usize, f64) -> f64| {
        a.with_values::<f64>(a.entries().map(|(i, j, v)| change(i, j, v)).collect()).unwrap()
    };
    let bad = with(&|i, j, v| if (i, j) == (77, 77) { 0.0 } else { v });
    let doubled = with(&|_, _, v| 2.0 * v);
    let coarsest = 60;
    let dev = Device::new(Reference::new());
    let on = dev.matrix(Arc::new(a.clone())).unwrap();
    let kinds: [Box<dyn Preconditioner<f64>>; 2] = [
        Box::new(Multigrid::new(MultigridOptions::default().coarsest(coarsest))),
        Box::new(Amg::new(AmgOptions::default().coarsest(coarsest))),
    ];
    for kind in kinds {
        let mut m = Placed::new(&dev, kind, &a, *on, Setup::new()).unwrap();
        let levels = |m: &Placed<f64>| m.report().iter().filter(|(what, _)| *what == "level").count();
        let before = levels(&m);
        assert!(before > 2 && m.update(&bad, Setup::new()).is_err());
        m.update(&doubled, Setup::new()).unwrap();
        assert_eq!(levels(&m), before);
    }
}

#[test]
fn values_may_become_symmetric() {
    let a = generated("gen:convection:24x24:20");
    let options = AmgOptions::default().coarsest(60).smoothing(Smoothing::Chebyshev);
    let dev = Device::new(Reference::new());
    let on = dev.matrix(Arc::new(a.clone())).unwrap();
    let mut m = Placed::new(&dev, Box::new(Amg::new(options)), &a, *on, Setup::new()).unwrap();
    let mean = |(i, j, v): (usize, usize, f64)| 0.5 * (v + a.get(j, i).unwrap());
    let symmetric = a.with_values(a.entries().map(mean).collect()).unwrap();
    m.update(&symmetric, Setup::new()).unwrap();
    m.update(&a, Setup::new()).unwrap();
}

#[test]
fn weights_too_large_for_single_precision_are_refused() {
    let a = beside(&[&generated("gen:poisson2d:40x40"), &path(&[1e-42, 1e-42], 1)]);
    let narrow = AmgOptions::default().narrow(true).coarsest(60);
    match Preconditioner::<f64>::set_up(&mut Amg::new(narrow), &a, &mut Setup::new()) {
        Err(Error::Unsupported { message, .. }) => {
            assert!(message.contains("level 0") && message.contains("too large for f32"), "{message}");
        }
        other => panic!("{:?}", other.err()),
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    let a = generated("gen:poisson2d:9x9");
    let usual = AmgOptions::default();
    for (options, part) in [
        (usual.coarsest(1_000_000), "coarsest: expected a whole number from 1 to 4096"),
        (usual.sweeps(0), "sweeps"),
        (usual.damping(f64::NAN), "damping"),
        (usual.theta(-0.1), "theta"),
        (usual.complexity(0.5), "complexity"),
        (usual.format("rows"), "format: expected one of csr"),
    ] {
        let refused = Preconditioner::<f64>::set_up(&mut Amg::new(options), &a, &mut Setup::new())
            .err()
            .unwrap()
            .to_string();
        assert!(refused.contains(part), "{refused}");
    }
    let options = MultigridOptions::default().sweeps(9);
    let refused = Preconditioner::<f64>::set_up(&mut Multigrid::new(options), &a, &mut Setup::new())
        .err()
        .unwrap()
        .to_string();
    assert!(refused.contains("sweeps: expected a whole number from 1 to 8, got 9"), "{refused}");
}

#[test]
fn a_name_says_whatever_differs_from_the_defaults() {
    let text = "amg:theta=0.1,aggregate=mis2,block=2,smoother=chebyshev,precision=single,sweeps=2,coarsest=60,\
                damping=1,complexity=2,format=csr";
    let named = lacuna_solvers::preconditioner::<f64>(text).unwrap().unwrap();
    assert_eq!(named.name(), text);
}
