//! The output of `--json`.
use crate::Bench;
use serde_json::Value;

#[test]
fn the_outcome_has_every_field() {
    let bench = Bench::new();
    let (code, json) = bench.solve("gen:poisson2d:16x12 --precond none --backend cpu");
    assert_eq!(code, 0);
    let fields: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = "outcome reason why try iterations residual true_residual backward_error misfit norm max_residual \
        relative_max_residual notes history \
        history_stride time backend \
        device method precond before format order type n nnz choices version";
    assert_eq!(fields, expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!(json["outcome"], "converged");
    assert_eq!(json["reason"], "converged: the true residual meets the tolerance");
    assert_eq!(
        (&json["backend"], &json["format"], &json["type"]),
        (&"cpu".into(), &"stencil".into(), &"f64".into())
    );
    assert_eq!((&json["method"], &json["precond"]), (&"cg".into(), &"none".into()));
    assert_eq!((&json["n"], &json["nnz"]), (&192.into(), &904.into()));
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    let iterations = json["iterations"].as_u64().unwrap() as usize;
    let history: Vec<f64> = json["history"].as_array().unwrap().iter().map(|r| r.as_f64().unwrap()).collect();
    assert_eq!((history.len(), json["history_stride"].as_u64()), (iterations + 1, Some(1)));
    assert_eq!(history[0], 1.0);
    assert!(json["residual"].as_f64().unwrap() <= 1e-8 && json["true_residual"].as_f64().unwrap() <= 1e-8);
    for part in ["read", "open", "setup", "transfers", "iterations", "solve"] {
        assert!(json["time"][part].as_f64().unwrap() > 0.0);
    }
    let parts = json["time"]["setup_parts"].as_object().unwrap();
    assert_eq!(parts.keys().collect::<Vec<_>>(), ["analysis", "matrix", "preconditioner", "program"]);
    let sum: f64 = parts.values().map(|part| part.as_f64().unwrap()).sum();
    assert!(sum > 0.0 && sum <= json["time"]["setup"].as_f64().unwrap());
    let choices: Vec<_> = json["choices"].as_array().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
    assert_eq!(choices[0], "method cg: the matrix is symmetric with a positive diagonal");
    assert_eq!(choices.len(), 3);
}

#[test]
fn json_goes_to_a_file_and_the_summary_to_standard_output() {
    let bench = Bench::new();
    let ran = bench.run("solve gen:poisson1d:50 --json out.json");
    assert!(ran.out.contains("50 unknowns") && ran.err.is_empty());
    let text = std::fs::read_to_string(bench.path("out.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["n"], 50);
    // On standard output, the JSON stands alone.
    let ran = bench.run("solve gen:poisson1d:50 --json -");
    assert!(serde_json::from_str::<Value>(&ran.out).is_ok() && ran.err.contains("50 unknowns"));
}

#[test]
fn what_is_not_converged_says_why() {
    let bench = Bench::new();
    let (code, json) = bench.solve("gen:poisson2d:30x30 --method cg --max-iters 3");
    assert_eq!((code, &json["outcome"], &json["iterations"]), (1, &"limit".into(), &3.into()));
    let (code, json) = bench.solve("gen:poisson2d:30x30 --method cg --max-iters 0");
    assert_eq!((code, &json["outcome"], &json["true_residual"]), (1, &"limit".into(), &1.0.into()));
    // The residual has not fallen yet.
    let (_, json) = bench.solve("gen:poisson-p1:60 --method cg --precond jacobi --max-iters 5");
    assert!(json["why"].to_string().contains("did not fall below |b|"), "{json}");
    let (_, json) = bench.solve("gen:convection:20x20:30 --method cr --max-iters 50");
    assert!(json["why"].to_string().contains("not Hermitian, which cr needs"), "{json}");
}

/// `S L S` with the Laplacian `L` of a grid: singular, and nothing of the structure shows it. No `x` solves the system.
#[test]
fn what_may_be_singular_is_told_to_try_least_squares() {
    let bench = Bench::new();
    let (m, scale) = (20, |i: usize| 1.0 + (i % 7) as f64);
    let pairs = (0..m * m).flat_map(|i| {
        let right = ((i + 1) % m > 0).then_some((i, i + 1));
        right.into_iter().chain((i + m < m * m).then_some((i, i + m)))
    });
    let (mut entries, mut degree) = (Vec::new(), vec![0.0; m * m]);
    for (i, j) in pairs {
        for (i, j) in [(i, j), (j, i)] {
            degree[i] += 1.0;
            entries.push(format!("{} {} {}", i + 1, j + 1, -scale(i) * scale(j)));
        }
    }
    let diagonal = degree.iter().enumerate();
    entries.extend(diagonal.map(|(i, d)| format!("{0} {0} {1}", i + 1, d * scale(i).powi(2))));
    bench.matrix("a.mtx", m * m, m * m, &entries.iter().map(String::as_str).collect::<Vec<_>>());
    let first =
        format!("%%MatrixMarket matrix array real general\n{0} 1\n1\n{1}", m * m, "0\n".repeat(m * m - 1));
    bench.file("b.mtx", &first);
    let (code, json) = bench.solve("a.mtx --rhs b.mtx --method minres");
    assert_eq!(code, 1);
    assert!(json["why"].to_string().contains("A may be singular"), "{}", json["why"]);
    assert!(json["try"].to_string().contains("lsmr"), "{}", json["try"]);
    // What was tried already is not advised, and x that grew until rounding stopped it is not called accurate.
    let (code, json) = bench.solve("a.mtx --rhs b.mtx");
    assert_eq!(code, 1);
    let before = json["before"].as_array().unwrap();
    let ways = before.iter().chain([&json]).flat_map(|way| [&way["method"], &way["precond"]]);
    for name in ways.map(|name| name.as_str().unwrap().split(':').next().unwrap()) {
        assert!(!json["try"].to_string().contains(&format!("`{name}`")), "{name}: {}", json["try"]);
    }
    assert!(
        !json["notes"].to_string().contains("as accurate as this number type allows"),
        "{}",
        json["notes"]
    );
}

/// A Laplacian that is shifted until it is indefinite, which nothing of its entries shows: `cg` gives way.
#[test]
fn what_finished_is_named_and_so_is_what_came_before() {
    let bench = Bench::new();
    let diagonal = (1..=100).map(|i| format!("{i} {i} 1.9"));
    let beside = (1..100).flat_map(|i| [format!("{i} {} -1", i + 1), format!("{} {i} -1", i + 1)]);
    let entries: Vec<String> = diagonal.chain(beside).collect();
    bench.matrix("a.mtx", 100, 100, &entries.iter().map(String::as_str).collect::<Vec<_>>());
    let ran = bench.run("solve a.mtx --precond none --json out.json --plot history.svg");
    assert_eq!(ran.code, 0, "{}", ran.out);
    let text = std::fs::read_to_string(bench.path("out.json")).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let (method, before) = (json["method"].as_str().unwrap(), json["before"].as_array().unwrap());
    assert_ne!(method, "cg");
    assert_eq!((&before[0]["method"], &before[0]["precond"]), (&"cg".into(), &"none".into()));
    assert!(json["notes"].to_string().contains("cg: "), "{}", json["notes"]);
    assert!(ran.out.contains(&format!("  method      {method}: ")), "{}", ran.out);
    assert!(ran.out.contains("  after       cg"), "{}", ran.out);
    let plot = std::fs::read_to_string(bench.path("history.svg")).unwrap();
    assert!(plot.contains(&format!("a.mtx, {method}")) && plot.contains("after cg"), "{plot}");
    // Of several right-hand sides each says what finished it.
    bench.columns("b.npy", 100, &[[1.0; 100], [2.0; 100]].concat());
    let (code, json) = bench.solve("a.mtx --precond none --rhs b.npy");
    assert_eq!((code, &json["method"], &json["columns"][0]["method"]), (0, &method.into(), &method.into()));
    assert_eq!(json["columns"][0]["before"][0]["method"], "cg");
    assert_eq!(json["columns"][1]["before"], Value::Array(Vec::new()));
}

#[test]
fn a_scaling_that_takes_the_symmetry_is_named() {
    let bench = Bench::new();
    let scale = |i: usize| 4f64.powi((i % 5) as i32);
    let entries: Vec<String> = (0..60)
        .flat_map(|i: usize| (i.saturating_sub(1)..(i + 2).min(60)).map(move |j| (i, j)))
        .map(|(i, j)| {
            let v = if i == j { 2.0 } else { -1.0 };
            format!("{} {} {}", i + 1, j + 1, v * scale(i) * scale(j))
        })
        .collect();
    bench.matrix("a.mtx", 60, 60, &entries.iter().map(String::as_str).collect::<Vec<_>>());
    let (code, json) = bench.solve("a.mtx --method cg --scale rows --max-iters 100");
    assert_eq!(code, 1);
    assert!(json["why"].to_string().contains("scaling `rows` made the matrix unsymmetric"), "{json}");
    assert!(json["try"].to_string().contains("--scale symmetric"), "{json}");
    assert_eq!(bench.solve("a.mtx --method cg --scale symmetric --max-iters 100").0, 0);
}

#[test]
fn facts_about_a_matrix() {
    let bench = Bench::new().with_spd();
    let ran = bench.run("info a.mtx --quiet --json -");
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&json["rows"], &json["nnz"], &json["symmetric"]), (&3.into(), &7.into(), &true.into()));
    assert_eq!((&json["method"]["name"], &json["precond"]["name"]), (&"richardson".into(), &"direct".into()));
    assert_eq!(json["order"]["name"], "none");
    assert_eq!((&json["row"]["min"], &json["row"]["max"]), (&2.into(), &3.into()));
}
