//! Storage formats: `lacuna spmv`, `info --why`, `solve --format`.
use crate::Bench;
use serde_json::Value;

#[test]
fn products_are_timed_in_every_format_that_takes_the_matrix() {
    let bench = Bench::new();
    let ran = bench.run("spmv gen:poisson3d:3x3x3 --rounds 1 --threads 1 --json s.json --plot s.svg");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let json: Value = serde_json::from_slice(&std::fs::read(bench.path("s.json")).unwrap()).unwrap();
    let mut names: Vec<_> =
        json["formats"].as_array().unwrap().iter().map(|f| f["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["bcsr3", "coo", "csr", "dia", "ell", "hyb", "sell"]);
    let refused: Vec<_> =
        json["refused"].as_array().unwrap().iter().map(|f| f["name"].as_str().unwrap()).collect();
    assert_eq!(refused, ["bcsr2", "bcsr4"], "a multiple of neither");
    for format in json["formats"].as_array().unwrap() {
        let [seconds, rate, bytes] =
            ["seconds", "bytes_per_second", "bytes"].map(|f| format[f].as_f64().unwrap());
        assert!(seconds > 0.0 && (rate * seconds / bytes - 1.0).abs() < 1e-9, "{format}");
    }
    assert!(
        ran.out.contains("<- auto") && ran.out.contains("bcsr2       no: Bcsr::from_csr: 27 rows"),
        "{}",
        ran.out
    );
    let svg = std::fs::read_to_string(bench.path("s.svg")).unwrap();
    assert!(svg.matches("<rect").count() == 6 && svg.contains("of the triad"), "{svg}");
}

#[test]
fn unknown_formats_are_named() {
    let bench = Bench::new();
    let refused = bench.refused("spmv gen:poisson1d:9 --format csr,dja");
    assert!(
        refused.contains(
            "expected `all` or one of csr, dia, ell, sell, hyb, coo, bcsr2, bcsr3, bcsr4, got `dja`"
        ),
        "{refused}"
    );
    assert!(bench.refused("solve gen:poisson1d:9 --format dja").contains("dja"));
}

#[test]
fn every_format_solves_to_the_same_residual() {
    let bench = Bench::new();
    for format in ["csr", "dia", "ell", "sell", "hyb", "coo", "bcsr3"] {
        let (code, json) = bench.solve(&format!("gen:elasticity3d:4 --format {format}"));
        assert_eq!((code, json["format"].as_str()), (0, Some(format)));
        assert!(json["true_residual"].as_f64().unwrap() <= 1e-8, "{format}");
    }
}

#[test]
fn a_format_that_does_not_suit_is_bad_input() {
    let refused = Bench::new().refused("solve gen:power-law:50000 --format dia");
    assert!(
        refused.contains("diagonals are in use, which would take") && refused.contains("keep csr"),
        "{refused}"
    );
}

#[test]
fn info_says_why() {
    let ran = Bench::new().run("info gen:poisson2d:100x100 --why");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("  format      dia: 40.2 bytes a row, 63.5 in csr\n"), "{}", ran.out);
    assert!(
        ran.out.contains("bcsr3") && ran.out.contains("no: no multiple of the block size"),
        "{}",
        ran.out
    );
}
