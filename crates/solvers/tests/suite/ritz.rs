//! Ritz values against known eigenvalues.
use lacuna_engine::{Device, Reference};
use lacuna_formats::{Csr, Triplets};
use lacuna_io::Spec;
use lacuna_solvers::{RitzValues, balanced};
use std::f64::consts::PI;
use std::sync::Arc;

fn values(a: Csr<f64>, steps: usize) -> RitzValues {
    let dev = Device::new(Reference::new());
    let a = dev.matrix(Arc::new(a)).unwrap();
    RitzValues::of(&dev, &a, steps).unwrap()
}

#[test]
fn extreme_values_approach_the_eigenvalues() {
    let a = Spec::parse("gen:poisson1d:60").unwrap().build::<f64>().unwrap();
    let found = values(a, 60);
    let eigenvalue = |k: f64| 2.0 - 2.0 * (PI * k / 61.0).cos();
    let [low, high] = found.extremes().unwrap();
    assert!((low / eigenvalue(1.0) - 1.0).abs() < 1e-6, "{low}");
    assert!((high / eigenvalue(60.0) - 1.0).abs() < 1e-9, "{high}");
    assert_eq!(found.below(0.0), 0);
    let condition = eigenvalue(60.0) / eigenvalue(1.0);
    assert!((found.condition().unwrap() / condition - 1.0).abs() < 1e-5);
    assert_eq!(found.cg_iterations(1e-8), Some((0.5 * condition.sqrt() * 2e8f64.ln()).ceil() as u64));
    // Fewer steps see less of the spectrum.
    let fewer = values(Spec::parse("gen:poisson1d:60").unwrap().build().unwrap(), 8);
    assert!(fewer.condition().unwrap() < condition);
}

#[test]
fn few_eigenvalues_end_the_steps_and_negative_ones_are_counted() {
    let mut triplets = Triplets::new(30, 30);
    (0..30).for_each(|i| triplets.push(i, i, [-2.0, 1.0, 3.0][i % 3]));
    let a = triplets.to_csr().unwrap();
    let found = values(a.clone(), 20);
    assert_eq!((found.steps(), found.below(0.0), found.condition()), (3, 1, None));
    let [low, high] = found.extremes().unwrap();
    assert!((low + 2.0).abs() < 1e-9 && (high - 3.0).abs() < 1e-9, "{low} {high}");
    let scaled = values(balanced(&a).unwrap(), 20);
    assert_eq!((scaled.steps(), scaled.below(0.0)), (2, 1));
    // What would overflow is left as it is.
    for tiny in [0.0, 1e-320] {
        let mut triplets = Triplets::new(2, 2);
        [(0, 0, tiny), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 1.0)]
            .into_iter()
            .for_each(|(i, j, v)| triplets.push(i, j, v));
        let a: Csr<f64> = triplets.to_csr().unwrap();
        assert_eq!(balanced(&a).unwrap(), a, "{tiny}");
    }
    let none = values(Csr::new(0, 0, vec![0], vec![], vec![]).unwrap(), 5);
    assert_eq!((none.steps(), none.extremes()), (0, None));
}
