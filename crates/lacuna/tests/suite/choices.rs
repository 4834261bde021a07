//! What is chosen for a matrix, and what happens if the choice does not suit its values.
use super::own_device;
use lacuna::Options;
use lacuna::prelude::*;
use lacuna::solvers::auto::{
    Asked, Candidate, Facts, When, method_conditions, plan, preconditioner_conditions,
};

fn generated(name: &str) -> Csr<f64> {
    Spec::parse(name).unwrap().build().unwrap()
}

/// Matrices as blocks on a diagonal.
fn beside(a: &Csr<f64>, b: &Csr<f64>) -> Csr<f64> {
    let n = a.rows() + b.rows();
    let mut both = Triplets::new(n, n);
    a.entries().for_each(|(i, j, v)| both.push(i, j, v));
    b.entries().for_each(|(i, j, v)| both.push(a.rows() + i, a.rows() + j, v));
    both.to_csr().unwrap()
}

fn solved(a: &Csr<f64>, method: &str) -> Outcome {
    let b = Array1::from_elem(a.rows(), 1.0);
    LinearSystem::new(a.clone()).method(method).prepare().unwrap().solve(&b).unwrap().1
}

fn chosen(outcome: &Outcome, what: &str) -> String {
    outcome.choices.iter().find(|choice| choice.starts_with(what)).cloned().unwrap_or_default()
}

#[test]
fn a_negative_definite_matrix_is_treated_as_its_negative() {
    for spec in ["gen:poisson2d:300x120", "gen:poisson-p1:256"] {
        let a = generated(spec);
        let [plus, minus] = [1.0, -1.0].map(|by| solved(&a.scaled(by).unwrap(), "auto"));
        assert!(plus.converged() && minus.converged(), "{plus:?} {minus:?}");
        assert_eq!(chosen(&plus, "preconditioner"), chosen(&minus, "preconditioner"));
        assert_eq!(plus.iterations, minus.iterations);
        let multilevel = ["preconditioner multigrid", "preconditioner amg"];
        assert!(multilevel.iter().any(|name| chosen(&plus, "preconditioner").starts_with(name)), "{plus:?}");
    }
}

#[test]
fn rows_that_stand_alone_do_not_hide_what_the_others_are() {
    let a = generated("gen:poisson-p1:256");
    let alone = solved(&beside(&Csr::identity(1).unwrap(), &a), "auto");
    assert!(chosen(&alone, "preconditioner").starts_with("preconditioner amg"), "{alone:?}");
}

#[test]
fn a_preconditioner_chosen_by_itself_that_refuses_is_replaced() {
    // The last diagonal entry has no finite reciprocal, which amg needs.
    let tiny = Csr::new(1, 1, vec![0, 1], vec![0], vec![1e-310]).unwrap();
    let outcome = solved(&beside(&generated("gen:poisson-p1:256"), &tiny), "auto");
    let said = chosen(&outcome, "preconditioner");
    assert!(said.contains("amg is not available") && said.starts_with("preconditioner none"), "{said}");
}

#[test]
fn the_format_for_multigrid_falls_back_with_an_adjoint_too() {
    let a = generated("gen:convection:15x15");
    for method in ["bicg", "bicgstab"] {
        let refused = LinearSystem::new(a.clone()).method(method).preconditioner("multigrid").prepare();
        let message = refused.err().unwrap().to_string();
        assert!(message.starts_with("preconditioner `multigrid`"), "{message}");
    }
}

#[test]
fn craig_says_so_where_there_is_no_solution() {
    // Rows and columns sum to zero, so that b = 1 is orthogonal to the range.
    let values = vec![1.0, -1.0, -1.0, 2.0, -1.0, -1.0, 1.0];
    let a = Csr::new(3, 3, vec![0, 2, 5, 7], vec![0, 1, 0, 1, 2, 1, 2], values).unwrap();
    let outcome = solved(&a, "craig");
    assert!(!outcome.converged() && outcome.misfit > 0.5, "{outcome:?}");
    assert!(outcome.notes.iter().any(|note| note.contains("a system that has a solution")), "{outcome:?}");
    assert!(solved(&generated("gen:convection:15x15"), "craig").converged());
    let twice = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0; 4]).unwrap();
    let system = LinearSystem::new(twice).method("craig").prepare();
    let outcome = system.unwrap().solve(&[1.0, 2.0]).unwrap().1;
    assert!(outcome.notes.iter().any(|note| note.contains("a system that has a solution")), "{outcome:?}");
    assert!(!chosen(&outcome, "preconditioner").contains("column-scaling"), "{outcome:?}");
}

#[test]
fn rounded_values_are_those_of_the_system_solved() {
    let a = generated("gen:poisson2d:9x9");
    let thirds = a.with_values::<f64>(a.values().iter().map(|v| v / 3.0).collect()).unwrap();
    let stop = Stop::default().rtol(1e-12);
    let mut system = LinearSystem::new(thirds.clone()).format("packed-f32").stop(stop).prepare().unwrap();
    let b = Array1::from_elem(81, 1.0);
    let says_so = |system: &mut Prepared<f64>| {
        let outcome = system.solve(&b).unwrap().1;
        assert!(outcome.converged());
        outcome.notes.iter().any(|note| note.contains("rounds the matrix to f32"))
    };
    assert!(says_so(&mut system));
    system.update_values(a.values()).unwrap();
    assert!(!says_so(&mut system));
    system.update_values(thirds.values()).unwrap();
    assert!(says_so(&mut system));
}

#[test]
fn the_classical_variant_continues_where_exact_arithmetic_would_have_ended() {
    // Coefficients that jump by 10^8: the fused recurrence of `cg` gets nowhere.
    let n = 60;
    let c = |i: usize| if i.is_multiple_of(2) { 1.0 } else { 1e8 };
    let mut triplets = Triplets::new(n, n);
    for i in 0..n {
        triplets.push(i, i, c(i) + c(i + 1));
        if i > 0 {
            triplets.push(i, i - 1, -c(i));
            triplets.push(i - 1, i, -c(i));
        }
    }
    let outcome = solved(&triplets.to_csr().unwrap(), "cg");
    assert!(outcome.iterations < 1000, "{outcome:?}");
    assert!(outcome.converged() || outcome.reason == Reason::AccuracyAttained, "{outcome:?}");
}

#[test]
fn least_squares_in_another_order_are_measured_in_the_given_one() {
    // A path whose rows are shuffled, so that the order changes.
    let n = 60;
    let at = |k: usize| k * 37 % n;
    let mut triplets = Triplets::new(n, n);
    for k in 0..n {
        triplets.push(at(k), at(k), 2.0 + k as f64 / 10.0);
        if k > 0 {
            triplets.push(at(k), at(k - 1), -1.0);
        }
    }
    let a = triplets.to_csr().unwrap();
    let b = Array1::from_iter((0..n).map(|i| i as f64 - 20.0));
    for method in ["lsqr", "craig"] {
        let mut system = LinearSystem::new(a.clone()).method(method).reorder("rcm").prepare().unwrap();
        let outcome = system.solve(&b).unwrap().1;
        assert!(outcome.converged() && outcome.misfit < 1e-6, "{method}: {outcome:?}");
    }
}

#[test]
fn an_absolute_tolerance_of_least_squares_is_in_the_units_given() {
    let a = generated("gen:poisson1d:20").scaled(1e100).unwrap();
    let stop = Stop::default().rtol(1e-8).atol(1.0);
    let b = Array1::from_elem(20, 1.0);
    let outcome = LinearSystem::new(a).method("lsqr").stop(stop).prepare().unwrap().solve(&b).unwrap().1;
    assert!(outcome.converged() && outcome.true_residual < 1e-6, "{outcome:?}");
}

#[test]
fn idr_bears_numbers_whose_products_leave_the_range() {
    for by in [1e6, 1e-6] {
        let a = generated("gen:convection:12x12").map(|v| (v * by) as f32).unwrap();
        let b = Array1::from_elem(144, by as f32);
        let system = LinearSystem::new(a).method("idr").preconditioner("none");
        let outcome = system.prepare().unwrap().solve(&b).unwrap().1;
        assert!(outcome.converged() && outcome.notes.is_empty(), "{by}: {outcome:?}");
    }
}

#[test]
fn the_recurrence_of_gmres_with_a_left_preconditioner_is_in_units_of_the_residual() {
    let a = generated("gen:convection:12x12").scaled(1e6).unwrap();
    let b = Array1::from_elem(144, 1.0);
    let system = LinearSystem::new(a).method("gmres:side=left").preconditioner("jacobi");
    let outcome = system.prepare().unwrap().solve(&b).unwrap().1;
    assert!(outcome.converged() && outcome.residual > 1e-3 * outcome.true_residual, "{outcome:?}");
}

#[test]
fn what_a_failed_preparation_put_on_the_device_is_released() {
    let mut a = Triplets::new(40, 40);
    (1..40).for_each(|i| a.push(i, i, 1.0));
    (0..39).for_each(|i| a.push(i, i + 1, 0.5));
    let a: Csr<f64> = a.to_csr().unwrap();
    for refined in [false, true] {
        let dev = own_device();
        let before = dev.in_use();
        let system = LinearSystem::new(a.clone()).method("bicgstab").preconditioner("jacobi").refine(refined);
        assert!(system.on(&dev).prepare().is_err());
        assert_eq!(dev.in_use(), before);
    }
}

#[test]
fn a_small_limit_is_shared_too() {
    // Singular, with nothing in its structure to tell: everything is tried, and nothing helps.
    let n = 30;
    let row = |i: usize| (0..n).map(move |j| ((7 * i + 3 * j * j + i * j * j) % 11) as f64 - 5.0);
    let mut triplets = Triplets::new(n, n);
    for i in 0..n {
        row(i % (n - 1)).enumerate().for_each(|(j, v)| triplets.push(i, j, v));
    }
    let a = triplets.to_csr().unwrap();
    let b = Array1::from_iter((0..n).map(|i| (i as f64).sin()));
    let system = LinearSystem::new(a).stop(Stop::default().max_iters(1000));
    let outcome = system.prepare().unwrap().solve(&b).unwrap().1;
    let notes = outcome.notes.join("; ");
    for name in ["gmres ", "ilut:drop=0.001", "ilut:drop=0.00001", "no x solves"] {
        assert!(notes.contains(name), "{name}: {outcome:?}");
    }
    assert!(outcome.iterations <= 1000, "{outcome:?}");
}

#[test]
fn a_cycle_that_was_asked_for_is_that_of_every_gmres() {
    let a = generated("gen:convection:60x60:30");
    let b = Array1::from_elem(3600, 1.0);
    let solved = |method: &str| {
        let stop = Stop::default().rtol(0.0);
        let system = LinearSystem::new(a.clone()).method(method).preconditioner("jacobi");
        let system = system.restart(7).stop(stop);
        system.prepare().unwrap().solve(&b).unwrap().1.notes.join("; ")
    };
    let notes = solved("auto");
    assert!(notes.contains("restart 7 has no effect on") && notes.contains("gmres uses it"), "{notes}");
    assert!(notes.contains("gmres with direct") && !notes.contains("restart=50"), "{notes}");
    let notes = solved("bicgstab");
    assert!(notes.contains("restart 7 has no effect on bicgstab") && !notes.contains("gmres"), "{notes}");
    assert!(!solved("gmres").contains("restart 7"));
    // No method for square matrices follows a least-squares method.
    let mut tall = Triplets::new(3, 1);
    (0..3).for_each(|i| tall.push(i, 0, 1.0));
    let mut system = LinearSystem::new(tall.to_csr().unwrap()).restart(7).prepare().unwrap();
    let notes = system.solve(&Array1::from_elem(3, 1.0)).unwrap().1.notes.join("; ");
    assert!(notes.contains("restart 7 has no effect on lsmr") && !notes.contains("gmres"), "{notes}");
}

#[test]
fn what_a_setting_takes_away_from_another_is_noted() {
    let a = generated("gen:convection:12x12");
    let b = Array1::from_elem(144, 1.0);
    let notes = |system: LinearSystem<f64>| system.prepare().unwrap().solve(&b).unwrap().1.notes;
    let tune = || LinearSystem::new(a.clone()).method("tune");
    let said = notes(tune().preconditioner("ilu0")).join("; ");
    assert!(said.contains("tune recalls a method with its preconditioner"), "{said}");
    let said = notes(tune().refine(true)).join("; ");
    assert!(said.contains("refine recalls no method"), "{said}");
}

#[test]
fn the_set_up_of_another_method_is_no_transfer() {
    let a = generated("gen:convection:60x60:30");
    let system = LinearSystem::new(a).preconditioner("jacobi").stop(Stop::default().rtol(0.0));
    let mut outcome = system.prepare().unwrap().solve(&Array1::from_elem(3600, 1.0)).unwrap().1;
    outcome.history.clear();
    let continued = outcome.notes.iter().any(|note| note.contains("set up in"));
    assert!(continued && !outcome.setup.is_zero(), "{outcome:?}");
    assert!(outcome.setup + outcome.transfers <= outcome.time, "{outcome:?}");
    assert_eq!(outcome.iterating() + outcome.setup + outcome.transfers, outcome.time);
    assert!(solved(&generated("gen:poisson2d:9x9"), "cg").setup.is_zero());
}

/// What rounding leaves of a residual after refinement by complete factors is less if residuals are computed in twice the precision.
#[test]
fn complete_factors_meet_a_tolerance_at_the_edge_of_rounding() {
    let grid = generated("gen:poisson2d:20x20");
    let met = (0..8).filter(|seed| {
        let by = |i: usize| 10f64.powi((i * (2 * seed + 3) % 5) as i32);
        let values = grid.entries().map(|(i, j, v)| if i == j { v * (by(i) + 1e-6) } else { -by(i.min(j)) });
        let a = grid.with_values::<f64>(values.collect()).unwrap();
        let b = Array1::ones(a.rows());
        let solved = |rtol: f64| {
            let system = LinearSystem::new(a.clone()).method("direct").stop(Stop::default().rtol(rtol));
            system.prepare().unwrap().solve(&b).unwrap().1
        };
        let attained = solved(0.0);
        assert_eq!(attained.reason, Reason::AccuracyAttained, "{attained:?}");
        let goal = 0.8 * attained.true_residual;
        let outcome = solved(goal);
        assert_eq!(outcome.history.len() as u64, outcome.iterations + 1, "{outcome:?}");
        assert!(!outcome.converged() || outcome.true_residual <= 1.005 * goal, "{outcome:?}");
        outcome.converged() && outcome.notes.iter().any(|note| note.contains("in twice the precision"))
    });
    assert!(met.count() > 0);
}

/// The candidates for a matrix on the host, as the guide lists them.
fn listed(spec: &str) -> String {
    let mut facts = Facts::of(generated(spec).into(), true);
    let plan = plan(&mut facts, &Asked::nothing(&Options::default())).unwrap();
    let code = |candidate: &Candidate| match &candidate.preconditioner {
        Some(preconditioner) => format!("`{}` + `{}`", candidate.method.name, preconditioner.name),
        None => format!("`{}`", candidate.method.name),
    };
    let follows = |candidate: &&Candidate| matches!(candidate.when, When::Failed | When::Slow | When::Short);
    let others: Vec<_> = plan.others.iter().filter(follows).map(code).collect();
    format!("| `{spec}` | {} | {} |", code(&plan.first), others.join(", "))
}

#[test]
fn the_guide_says_what_auto_takes() {
    let rules = |conditions: Vec<(&str, String)>| -> Vec<String> {
        conditions.iter().map(|(name, when)| format!("| `{name}` | {when} |")).collect()
    };
    let examples = [
        "gen:poisson2d:100x100",
        "gen:poisson2d:300x300",
        "gen:poisson-p1:256",
        "gen:convection:40x40:10",
        "gen:power-law:5000",
    ];
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/which.md");
    let page = std::fs::read_to_string(page).unwrap();
    for rows in [
        rules(method_conditions()),
        rules(preconditioner_conditions()),
        examples.iter().map(|spec| listed(spec)).collect(),
    ] {
        let expected = rows.join("\n");
        assert!(page.contains(&expected), "docs/guide/which.md should say\n{expected}");
    }
}

/// Symmetric with a positive diagonal, and indefinite.
fn indefinite(n: usize) -> Csr<f64> {
    let mut all = Triplets::new(n, n);
    for i in 0..n {
        all.push(i, i, 1.0 + (i % 5) as f64 * 0.1);
        if i % 2 == 1 {
            [(i, i - 1), (i - 1, i)].into_iter().for_each(|(i, j)| all.push(i, j, 3.0));
        }
        if i >= 2 {
            [(i, i - 2), (i - 2, i)].into_iter().for_each(|(i, j)| all.push(i, j, 0.3));
        }
    }
    all.to_csr().unwrap()
}

#[test]
fn what_solved_a_system_is_where_the_next_solve_begins() {
    let a = indefinite(300);
    let b = Array1::from_shape_fn(300, |i| (i % 7) as f64 - 3.0);
    let mut system = LinearSystem::new(a.clone()).preconditioner("none").prepare().unwrap();
    assert_eq!(system.method().name, "cg");
    let first = system.solve(&b).unwrap().1;
    assert!(
        first.converged() && first.notes.iter().any(|note| note.contains(" continued from ")),
        "{first:?}"
    );
    assert!(chosen(&first, "method").starts_with("method cg"));
    let (by, before) = first.finished_by().unwrap();
    assert_eq!((before[0].to_string().as_str(), &by.method.name), ("cg", &system.method().name));
    let (method, preconditioner) = (system.method().name.clone(), system.preconditioner().name.clone());
    assert_ne!(method, "cg");
    let grown: Vec<f64> = a.values().iter().map(|v| 1.01 * v).collect();
    for step in 0..3 {
        let (_, next) = system.solve(&(2.0 * &b)).unwrap();
        assert!(next.converged() && next.setup.is_zero(), "{next:?}");
        assert!(next.ways.len() == 1 && next.ways[0].method.name == method, "{next:?}");
        assert!(!next.notes.iter().any(|note| note.contains(" continued from ")), "{next:?}");
        assert!(chosen(&next, "method").contains(&method), "{next:?}");
        assert_eq!(
            (&system.method().name, &system.preconditioner().name),
            (&method, &preconditioner),
            "{step}"
        );
        system.update_values(&grown).unwrap();
    }
}

#[test]
fn a_solve_on_the_device_has_the_limits_of_the_system() {
    let a = generated("gen:poisson2d:60x60");
    let graded = a.entries().map(|(i, j, v)| if i == j { v + (i % 3) as f64 * 0.01 } else { v }).collect();
    let a = a.with_values::<f64>(graded).unwrap();
    let b = Array1::from_elem(a.rows(), 1.0);
    let mut system = LinearSystem::new(a.clone()).prepare().unwrap();
    assert!(system.solve(&b).unwrap().1.converged());
    let device = system.device().clone();
    let (on_device, x) = (system.solver().b(), system.solver().x());
    device.upload(b.as_slice().unwrap(), on_device).unwrap();
    device.clear(x).unwrap();
    let outcome = system.solver().solve_on_device(None).unwrap();
    assert!(outcome.converged(), "{outcome:?}");
}

#[test]
fn a_solve_on_the_device_does_not_believe_a_norm_that_underflowed() {
    let a = generated("gen:poisson2d:20x20");
    for (of_a, of_b) in [(1e200, 1.0), (-1e200, 1.0), (1e-200, 1.0), (1.0, 1e-200), (1.0, 0.0)] {
        let scaled = a.map::<f64>(|v| v * of_a).unwrap();
        let mut system =
            LinearSystem::new(scaled.clone()).method("minres").preconditioner("none").prepare().unwrap();
        let device = system.device().clone();
        let b = vec![of_b; 400];
        let solved = system.solve_on_device(&mut |to, _| device.upload(&b, to), None);
        if of_b == 1e-200 {
            assert!(solved.unwrap_err().to_string().contains("underflow"));
            continue;
        }
        let (x, outcome) = solved.unwrap();
        assert!(outcome.converged(), "{of_a:e}: {outcome:?}");
        let mut found = vec![0.0; 400];
        device.download(x, &mut found).unwrap();
        let left = scaled.times(&found).unwrap();
        assert!(left.iter().all(|v| (v - of_b).abs() < 1e-7), "{of_a:e}");
    }
}

#[test]
fn scaling_rows_and_columns_alike_changes_no_choice() {
    let a = generated("gen:poisson2d:60x60");
    let by = |i: usize| 10f64.powi((i * 7 % 11) as i32 - 5);
    let scaled = a.entries().map(|(i, j, v)| v * (by(i) * by(j))).collect();
    let scaled = a.with_values::<f64>(scaled).unwrap();
    let b = Array1::from_shape_fn(a.rows(), by);
    let (_, outcome) = LinearSystem::new(scaled).prepare().unwrap().solve(&b).unwrap();
    assert!(chosen(&outcome, "preconditioner").starts_with("preconditioner jacobi"), "{outcome:?}");
    let (_, plain) = LinearSystem::new(a).prepare().unwrap().solve(&Array1::ones(3600)).unwrap();
    assert!(outcome.converged() && outcome.iterations < 3 * plain.iterations, "{outcome:?}");
    // Where an entry of the diagonal is small beside its couplings, jacobi is refused.
    let tiny = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1e-18, 1.0, 1.0, 1.0]).unwrap();
    assert!(chosen(&solved(&tiny, "gmres"), "preconditioner").contains("divide by almost zero"));
}

/// Where a successor is considered and not taken, the subspace of the iterations before is lost, which is said if it matters.
#[test]
fn a_method_that_begins_anew_says_so() {
    let a = generated("gen:poisson-p1:100");
    let solve =
        |system: LinearSystem<f64>| system.prepare().unwrap().solve(&Array1::ones(a.rows())).unwrap().1;
    let by_default = solve(LinearSystem::new(a.clone()).preconditioner("jacobi"));
    let named = solve(LinearSystem::new(a.clone()).method("cg").preconditioner("jacobi"));
    let said =
        |outcome: &Outcome| outcome.notes.iter().any(|note| note.contains("cg with jacobi began anew"));
    assert!(by_default.converged() && named.converged() && !said(&named), "{named:?}");
    assert!(said(&by_default) || 20 * by_default.iterations <= 21 * named.iterations, "{by_default:?}");
}
