//! `lacuna eigen` and `lacuna svd`.
use crate::Bench;
use serde_json::Value;

/// The report of a command that succeeds.
fn report(bench: &Bench, command: &str) -> Value {
    let ran = bench.run(&format!("{command} --quiet --json -"));
    assert_eq!(ran.code, 0, "{command}: {}", ran.err);
    serde_json::from_str(&ran.out).unwrap()
}

fn near(value: &Value, expected: f64) -> bool {
    (value.as_f64().unwrap() - expected).abs() < 1e-9 * expected.abs().max(1.0)
}

#[test]
fn eigenvalues_of_a_grid_are_those_known() {
    let bench = Bench::new();
    let least = |i: f64| 2.0 - 2.0 * (std::f64::consts::PI * i / 31.0).cos();
    let found = report(&bench, "eigen gen:poisson2d:30x30 -k 3 --plot values.svg --vectors X.mtx");
    let expected = [2.0 * least(1.0), least(1.0) + least(2.0), least(1.0) + least(2.0)];
    for (value, expected) in found["values"].as_array().unwrap().iter().zip(expected) {
        assert!(near(value, expected), "{value} {expected}");
    }
    assert_eq!(found["complete"], "complete: counted by the inertia of a shifted matrix");
    assert_eq!(found["which"], "smallest");
    assert!(bench.path("values.svg").exists() && bench.path("X.mtx").exists());
    // The vectors of the file are those of the smallest, and of no others.
    let checked = report(&bench, "eigen gen:poisson2d:30x30 --verify X.mtx");
    assert!(near(&checked["values"][2], expected[2]) && checked["products"] == 0);
    assert_eq!(checked["choices"].as_array().unwrap().len(), 1, "{checked}");
    let others = bench.run("eigen gen:poisson2d:30x30 --verify X.mtx --which largest");
    assert!(others.code == 1 && others.out.contains("897 missing"), "{} {}", others.out, others.err);
    // The same by the method for any matrix, and by its name for that end.
    let other = report(&bench, "eigen gen:poisson2d:30x30 -k 1 --which leftmost --method krylov-schur");
    assert!(near(&other["values"][0][0], expected[0]) && near(&other["values"][0][1], 0.0));
}

#[test]
fn eigenvalues_of_a_matrix_that_is_not_hermitian() {
    let bench = Bench::new();
    // A rotation with a stretch: 1 + 2i, 1 - 2i, and 5.
    bench.matrix("turn.mtx", 3, 3, &["1 1 1", "1 2 -2", "2 1 2", "2 2 1", "3 3 5"]);
    let found = report(&bench, "eigen turn.mtx --plot plane.svg");
    let values = found["values"].as_array().unwrap();
    assert!(near(&values[0][0], 5.0) && near(&values[1][0], 1.0) && near(&values[2][0], 1.0));
    assert_eq!(found["choices"][0], "which: the matrix is not Hermitian");
    let found = report(&bench, "eigen turn.mtx -k 1 --which near:1+1.5i");
    assert!(near(&found["values"][0][0], 1.0) && near(&found["values"][0][1], 2.0));
    let svg = std::fs::read_to_string(bench.path("plane.svg")).unwrap();
    assert!(svg.contains("imaginary part"));
    for (refused, why) in [
        ("eigen turn.mtx --which smallest", "smallest is for Hermitian matrices: modulus, leftmost"),
        ("eigen turn.mtx --method lobpcg", "expected a Hermitian matrix"),
        ("eigen turn.mtx --mass turn.mtx --which modulus", "is not for a mass matrix"),
        ("eigen turn.mtx --method krylov-schur --mass turn.mtx", "--mass: krylov-schur has none"),
        ("eigen turn.mtx --precond amg", "--precond: krylov-schur has none"),
        ("eigen turn.mtx --complete counted", "--complete: krylov-schur has none"),
        ("eigen turn.mtx --which middle", "expected smallest, largest, modulus"),
    ] {
        let ran = bench.run(refused);
        assert!(ran.code != 0 && ran.err.contains(why), "{refused}: {}", ran.err);
    }
}

#[test]
fn singular_values_of_a_tall_matrix() {
    let bench = Bench::new();
    bench.matrix("tall.mtx", 3, 2, &["1 1 3", "2 2 4"]);
    let found = report(&bench, "svd tall.mtx --left U.mtx --right V.mtx");
    let values = found["values"].as_array().unwrap();
    assert!(values.len() == 2 && near(&values[0], 4.0) && near(&values[1], 3.0));
    assert!(bench.path("U.mtx").exists() && bench.path("V.mtx").exists());
}
