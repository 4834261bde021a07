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
    assert_eq!(
        names,
        [
            "bcsr3",
            "coo",
            "csr",
            "dense",
            "dia",
            "dia-sym",
            "ell",
            "hyb",
            "packed",
            "packed-f32",
            "pkt",
            "sell",
            "stencil"
        ]
    );
    let refused: Vec<_> =
        json["refused"].as_array().unwrap().iter().map(|f| f["name"].as_str().unwrap()).collect();
    assert_eq!(refused, ["bcsr2", "bcsr4", "bcsr5", "bcsr6", "bcsr7", "bcsr8"], "a multiple of none");
    for format in json["formats"].as_array().unwrap() {
        let [seconds, rate, bytes] =
            ["seconds", "bytes_per_second", "bytes"].map(|f| format[f].as_f64().unwrap());
        assert!(seconds > 0.0 && (rate * seconds / bytes - 1.0).abs() < 1e-9, "{format}");
    }
    assert!(ran.out.contains("<- auto") && ran.out.contains("bcsr2         no: 27 rows"), "{}", ran.out);
    let svg = std::fs::read_to_string(bench.path("s.svg")).unwrap();
    assert!(svg.matches("<rect").count() == 14 && svg.contains("of the triad"), "{svg}");
}

#[test]
fn unknown_formats_are_named() {
    let bench = Bench::new();
    let refused = bench.refused("spmv gen:poisson1d:9 --format csr,dja");
    assert!(
        refused.contains(
            "expected `all`, `tune` or one of csr, stencil, dia, dia-sym, ell, sell, packed, packed-f32, pkt, hyb, coo, bcsr2, bcsr3, bcsr4, bcsr5, bcsr6, bcsr7, bcsr8, dense, got `dja`"
        ),
        "{refused}"
    );
    assert!(bench.refused("solve gen:poisson1d:9 --format dja").contains("dja"));
}

#[test]
fn every_format_solves_to_the_same_residual() {
    let bench = Bench::new();
    for format in
        ["csr", "dia", "dia-sym", "ell", "sell", "packed", "packed-f32", "pkt", "hyb", "coo", "bcsr3"]
    {
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
fn rounded_values_are_reported() {
    let bench = Bench::new();
    let choice = |format: &str| {
        let (code, json) = bench.solve(&format!("gen:elasticity3d:4 --format {format}"));
        assert_eq!(code, 0);
        json["choices"][2].as_str().unwrap().to_owned()
    };
    assert_eq!(
        choice("packed-f32"),
        "format packed-f32: asked for; the system solved has its values rounded to f32"
    );
    assert_eq!(choice("packed"), "format packed: asked for");
    let refused = bench.refused("solve gen:poisson1d:9 --format packed-f32 --type f32");
    assert!(refused.contains("values are f32 already"), "{refused}");
}

#[test]
fn info_says_why() {
    let ran = Bench::new().run("info gen:convection:100x100 --why");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("  format      dia: 40.2 bytes a row, 63.5 in csr\n"), "{}", ran.out);
    assert!(
        ran.out.contains("bcsr3") && ran.out.contains("no: no multiple of the block size"),
        "{}",
        ran.out
    );
}

#[test]
fn what_was_measured_is_remembered() {
    let bench = Bench::new();
    let (code, first) = bench.solve("gen:poisson2d:30x30 --format tune");
    assert_eq!(code, 0);
    let choice = |json: &Value| json["choices"][2].as_str().unwrap().to_owned();
    assert!(choice(&first).contains("us a product in") && choice(&first).ends_with("; measured"), "{first}");
    let (_, again) = bench.solve("gen:poisson2d:30x30 --format tune");
    assert_eq!(choice(&again), choice(&first) + " before");
    let (_, other) = bench.solve("gen:poisson2d:30x31 --format tune");
    assert!(choice(&other).ends_with("; measured"), "another structure: {other}");
    let ran = bench.run("info gen:poisson2d:30x30 --why");
    assert!(
        ran.out.contains(&format!("measured    before, on {}", crate::preferred()))
            && ran.out.contains(" of csr's time, measured"),
        "{}",
        ran.out
    );
    let ran = bench.run("spmv gen:poisson2d:30x30 --format tune --rounds 1");
    assert!(ran.out.contains("<- tune") && !ran.out.contains("no:"), "{}", ran.out);
}

#[test]
fn an_order_changes_nothing_but_the_way() {
    let bench = Bench::new();
    for order in ["none", "auto", "rcm", "length", "parts", "packets"] {
        let (code, json) =
            bench.solve(&format!("gen:power-law:900 --reorder {order} --output {order}.mtx --rtol 1e-12"));
        assert_eq!(code, 0, "{json}");
        let given = if order == "auto" { "none" } else { order };
        assert_eq!(json["order"].as_str(), Some(given));
        let read = |name: &str| {
            let text = std::fs::read_to_string(bench.path(name)).unwrap();
            text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<f64>>()
        };
        let (x, want) = (read(&format!("{order}.mtx")), read("none.mtx"));
        assert_eq!((x.len(), want.len()), (900, 900));
        let scale = want.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        assert!(x.iter().zip(&want).all(|(x, want)| (x - want).abs() <= 1e-9 * scale), "{order}");
    }
    let ran = bench.run("spmv gen:power-law:900 --reorder rcm --rounds 1 --format csr");
    assert!(ran.out.contains("  order       rcm: bandwidth "), "{}", ran.out);
    assert!(bench.refused("solve gen:poisson1d:9 --reorder rmc").contains("rmc"));
}

#[test]
fn variants_go_by_name() {
    let bench = Bench::new();
    let args = "--backends cpu --rounds 1 --methods spmv,cg --iterations 3 --json kept.jsonl --quiet";
    let ran = bench.run(&format!(
        "compare gen:elasticity3d:3 --formats csr,csr:lanes=1,csr:lanes=32,hyb:width=5 {args}"
    ));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let kept = std::fs::read_to_string(bench.path("kept.jsonl")).unwrap();
    let cases: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let bits = |format: &str| {
        let case = cases.iter().find(|c| c["format"] == format && c["method"] == "spmv").unwrap();
        case["measured"]["x_bits"].as_str().unwrap_or_else(|| panic!("{case}")).to_string()
    };
    // One lane adds from left to right, as slices do.
    assert_eq!(bits("csr:lanes=1"), bits("hyb:width=5"));
    assert_ne!(bits("csr:lanes=1"), bits("csr:lanes=32"));
    let ran = bench.run("spmv gen:poisson2d:9x9 --format csr:lanes=4,hyb:width=3 --rounds 1");
    assert!(ran.code == 0 && ran.out.contains("csr:lanes=4"), "{}{}", ran.out, ran.err);
    for (name, expected) in [
        ("csr:lanes=3", "a power of two up to 32"),
        ("dia:width=2", "hyb:width=K"),
        ("hyb:width=x", "got `hyb:width=x`"),
    ] {
        let message = bench.refused(&format!("spmv gen:poisson2d:9x9 --format {name}"));
        assert!(message.contains(expected), "{name}: {message}");
    }
}
