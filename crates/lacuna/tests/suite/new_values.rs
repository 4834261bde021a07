//! New values in every format, both fitting and not.
use super::own_device;
use lacuna::formats::{FORMATS, choose_lasting_format};
use lacuna::prelude::*;
use std::collections::BTreeSet;

/// A diagonally dominant matrix that suits the format.
fn suited(format: &str) -> Csr<f64> {
    let spec = match format {
        "stencil" | "csr" | "sell" | "ell" | "hyb" | "coo" => "gen:poisson2d:17x13",
        "dia-sym" => "gen:poisson-p1:12",
        "dense" => "gen:dense:40",
        "bcsr3" => "gen:elasticity3d:4",
        _ => "gen:convection:24x10:5",
    };
    let a = Spec::parse(spec).and_then(|spec| spec.build::<f64>()).unwrap();
    let rounded = a.values().iter().map(|v| f64::from(*v as f32)).collect();
    if format.starts_with("packed") { a.with_values(rounded).unwrap() } else { a }
}

/// Values on the pattern of `a` that are not symmetric, not the same at all points, and not short.
fn irregular(a: &Csr<f64>, step: usize) -> Vec<f64> {
    let changed = |(k, v): (usize, &f64)| v * (1.0 + 1e-3 / (1.0 + ((5 * k + step) % 11) as f64));
    a.values().iter().enumerate().map(changed).collect()
}

fn system(a: Csr<f64>, format: &str, refine: bool) -> LinearSystem<f64> {
    LinearSystem::new(a).method("bicgstab").preconditioner("jacobi").format(format).refine(refine)
}

#[test]
fn every_format_takes_new_values_and_gives_the_bits_of_a_system_made_anew() {
    let mut replaced = BTreeSet::new();
    for format in FORMATS.iter().map(|format| format.name) {
        let a = suited(format);
        let b: Vec<f64> = (0..a.rows()).map(|i| 1.0 + (i % 7) as f64).collect();
        let Ok(mut prepared) = system(a.clone(), format, false).prepare() else {
            assert!(format.starts_with("bcsr"), "{format}: {:?}", system(a, format, false).prepare().err());
            continue; // a size that does not divide the number of rows
        };
        for (step, values) in [a.values().to_vec(), irregular(&a, 1), a.values().to_vec(), irregular(&a, 2)]
            .into_iter()
            .enumerate()
        {
            prepared.update_values(&values).unwrap();
            let (x, outcome) = prepared.solve(&b).unwrap();
            assert!(outcome.converged(), "{format}, {step}: {outcome:?}");
            let now = prepared.format().clone();
            assert!(outcome.choices.contains(&now.sentence("format")), "{format}: {:?}", outcome.choices);
            if step == 0 {
                assert_eq!(now.name, format, "values that fit stay in their format");
            }
            if now.name != format {
                replaced.insert(format);
                assert!(now.why.ends_with(&format!("{format} cannot store the new values")));
            }
            let fresh = a.with_values(values).unwrap();
            let mut anew = system(fresh, &now.name, false).prepare().unwrap();
            let (y, of_new) = anew.solve(&b).unwrap();
            assert_eq!((x, outcome.history), (y, of_new.history), "{format}, {step}");
        }
    }
    let by_values: BTreeSet<_> =
        FORMATS.iter().filter(|f| f.by_values && !f.rounds).map(|f| f.name).collect();
    assert_eq!(replaced, by_values);
}

#[test]
fn a_format_chosen_automatically_is_left_once_and_memory_does_not_grow() {
    let a = suited("stencil");
    let b = Array1::ones(a.rows());
    let dev = own_device();
    let mut prepared = LinearSystem::new(a.clone()).method("cg").on(&dev).prepare().unwrap();
    assert_eq!(prepared.format().name, "stencil");
    prepared.update_values(&irregular(&a, 0)).unwrap();
    let (format, before) = (prepared.format().clone(), dev.in_use());
    let fresh = a.with_values(irregular(&a, 0)).unwrap();
    let formats = dev.formats(a.rows(), lacuna::Format::bytes(&a)).unwrap();
    assert_eq!(format.name, choose_lasting_format(&fresh, &Structure::of(&fresh), formats).0);
    for step in 1..10_000 {
        let values = if step % 2 == 0 { irregular(&a, step) } else { a.values().to_vec() };
        prepared.update_values(&values).unwrap();
    }
    assert_eq!((prepared.format(), dev.in_use()), (&format, before));
    let (x, outcome) = prepared.solve(&b).unwrap();
    assert!(outcome.converged());
    // Sums over a few entries per row are the same in all formats.
    let fresh = a.with_values(irregular(&a, 9999)).unwrap();
    let fresh = if 9999 % 2 == 0 { fresh } else { a };
    assert_eq!(x, LinearSystem::new(fresh).method("cg").prepare().unwrap().solve(&b).unwrap().0);
}

#[test]
fn a_matrix_that_ceases_to_be_hermitian_gets_its_adjoint() {
    let a = suited("dia-sym");
    let b = Array1::ones(a.rows());
    for format in ["csr", "dia-sym"] {
        let own =
            |a: Csr<f64>, format: &str| LinearSystem::new(a).method("qmr").format(format).with_adjoint();
        let dev = own_device();
        let mut prepared = own(a.clone(), format).on(&dev).prepare().unwrap();
        prepared.update_values(&irregular(&a, 3)).unwrap();
        let before = dev.in_use();
        for step in 3..6 {
            prepared.update_values(&irregular(&a, step)).unwrap();
        }
        assert_eq!(dev.in_use(), before);
        let (x, outcome) = prepared.solve(&b).unwrap();
        assert!(outcome.converged(), "{format}: {outcome:?}");
        let fresh = a.with_values(irregular(&a, 5)).unwrap();
        let mut anew = own(fresh, &prepared.format().name).prepare().unwrap();
        assert_eq!(x, anew.solve(&b).unwrap().0, "{format}");
    }
}

#[test]
fn refinement_takes_values_that_do_not_fit_its_formats() {
    let a = suited("stencil");
    let b = Array1::ones(a.rows());
    let mut prepared = system(a.clone(), "auto", true).prepare().unwrap();
    let stencils = |choices: &[String]| choices.iter().filter(|c| c.contains(" stencil: ")).count();
    assert_eq!(stencils(&prepared.solve(&b).unwrap().1.choices), 2, "the residuals' and the corrections'");
    for step in 0..3 {
        prepared.update_values(&irregular(&a, step)).unwrap();
        let (x, outcome) = prepared.solve(&b).unwrap();
        assert!(outcome.converged());
        assert_eq!(stencils(&outcome.choices), 0, "{:?}", outcome.choices);
        let fresh = a.with_values(irregular(&a, step)).unwrap();
        let mut anew = system(fresh, "auto", true).prepare().unwrap();
        assert_eq!(x, anew.solve(&b).unwrap().0, "{step}");
    }
}

#[test]
fn a_refused_preconditioner_leaves_the_new_place_in_order() {
    let a = suited("stencil");
    let b = Array1::ones(a.rows());
    let mut prepared = system(a.clone(), "stencil", false).prepare().unwrap();
    let mut bad = irregular(&a, 1);
    let at = (a.row_ptr()[7] as usize..).find(|&k| a.col_idx()[k] == 7).unwrap();
    bad[at] = 0.0;
    assert!(matches!(prepared.update_values(&bad), Err(Error::Entry { row: 7, column: 7, .. })));
    // The matrix is new and the preconditioner is not: nothing is solved with these.
    let refused = prepared.solve(&b).unwrap_err().to_string();
    assert!(refused.contains("row 7") && refused.contains("refused"), "{refused}");
    let (columns, mut solutions) = (Array2::ones((a.rows(), 2)), Array2::zeros((a.rows(), 2)));
    let refused = prepared.solve_columns(columns.view(), solutions.view_mut());
    assert!(matches!(refused, Err(Error::Structure { .. })), "{refused:?}");
    // Values that change nothing do not help either.
    assert!(matches!(prepared.update_values(&bad[1..]), Err(Error::Length { .. })));
    assert!(prepared.solve(&b).is_err());
    prepared.update_values(&irregular(&a, 2)).unwrap();
    let (x, outcome) = prepared.solve(&b).unwrap();
    assert!(outcome.converged());
    let format = prepared.format();
    assert_ne!(format.name, "stencil");
    assert!(outcome.choices.contains(&format.sentence("format")), "{:?}", outcome.choices);
    // Nor do they harm a system that is in order.
    assert!(matches!(prepared.update_values(&bad[1..]), Err(Error::Length { .. })));
    assert!(prepared.solve(&b).unwrap().1.converged());
    let mut anew =
        system(a.with_values(irregular(&a, 2)).unwrap(), &prepared.format().name, false).prepare().unwrap();
    assert_eq!(x, anew.solve(&b).unwrap().0);
}

#[test]
fn a_chosen_preconditioner_gives_way_to_values_it_does_not_take() {
    let a: Csr<f64> = Spec::parse("gen:poisson2d:300x120").unwrap().build().unwrap();
    let b = Array1::ones(a.rows());
    let symmetric = |step: usize| -> Vec<f64> {
        a.entries().map(|(i, j, v)| v * (1.0 + 1e-3 / (1.0 + ((i + j + step) % 11) as f64))).collect()
    };
    let dev = own_device();
    let mut prepared = LinearSystem::new(a.clone()).on(&dev).prepare().unwrap();
    assert_eq!(prepared.preconditioner().name, "multigrid");
    prepared.update_values(&a.values().iter().map(|v| 2.0 * v).collect::<Vec<_>>()).unwrap();
    assert_eq!(prepared.preconditioner().name, "multigrid");
    prepared.update_values(&symmetric(1)).unwrap();
    let before = dev.in_use();
    for step in 1..4 {
        prepared.update_values(&symmetric(step)).unwrap();
        let (_, outcome) = prepared.solve(&b).unwrap();
        assert!(outcome.converged(), "{outcome:?}");
        let why = "multigrid rejects the new values";
        assert!(outcome.choices.iter().any(|choice| choice.ends_with(why)), "{:?}", outcome.choices);
        assert!(!outcome.choices.iter().any(|choice| choice.starts_with("preconditioner multigrid")));
    }
    assert_eq!(dev.in_use(), before);
    // A preconditioner that was requested explicitly is not replaced.
    let mut prepared = LinearSystem::new(a.clone()).preconditioner("multigrid").prepare().unwrap();
    assert!(matches!(prepared.update_values(&symmetric(1)), Err(Error::Unsupported { .. })));
}

#[test]
fn a_preconditioner_that_fell_behind_is_set_up_anew() {
    // Entries that the threshold drops at first are large later.
    let a = Spec::parse("gen:convection:15x15:5").unwrap().build::<f64>().unwrap();
    let weights = |on: f64, off: f64| -> Vec<f64> {
        a.entries().map(|(i, j, v)| v * if i == j { on } else { off }).collect()
    };
    let b = vec![1.0; a.rows()];
    let prepared = |values: &[f64]| {
        let a = a.with_values(values.to_vec()).unwrap();
        LinearSystem::new(a).method("bicgstab").preconditioner("ilut").prepare().unwrap()
    };
    let mut system = prepared(&weights(1.0, 1e-9));
    assert_eq!(system.solve(&b).unwrap().1.iterations, 1);
    for values in [weights(1e-9, 1.0), weights(1.0, 1.0)] {
        system.update_values(&values).unwrap();
        let (x, outcome) = system.solve(&b).unwrap();
        assert!(outcome.converged(), "{outcome:?}");
        let (y, _) = prepared(&values).solve(&b).unwrap();
        let largest = y.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
        assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() < 1e-4 * largest));
    }
}

/// A method that took more iterations than another's set-up costs, and solved the system, is not interrupted for that again.
#[test]
fn what_solved_a_system_is_left_alone_in_the_next_step() {
    let a = Spec::parse("gen:poisson-p1:127").and_then(|spec| spec.build::<f64>()).unwrap();
    let b: Vec<f64> = (0..a.rows()).map(|i| 1.0 + (i * i % 7) as f64 / 100.0).collect();
    let mut system = LinearSystem::new(a.clone()).on(own_device()).prepare().unwrap();
    let (_, first) = system.solve(&b).unwrap();
    assert!(
        first.converged() && first.restarts > 0,
        "asked while it runs whether it should go on: {first:?}"
    );
    for step in 1..4 {
        let scale = |i: usize| 1.0 + ((i + step) % 7) as f64 / 100.0;
        let values: Vec<f64> = a.entries().map(|(i, j, v)| v * (scale(i) * scale(j))).collect();
        system.update_values(&values).unwrap();
        let (_, next) = system.solve(&b).unwrap();
        assert!(next.converged() && next.restarts == 0, "{step}: {next:?}");
        assert!(next.iterations <= first.iterations, "{step}: {next:?}");
    }
}
