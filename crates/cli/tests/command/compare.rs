//! `lacuna compare`: the results it keeps, and the page it writes.
use crate::{Bench, Ran, built_in};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

fn kept(bench: &Bench, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(bench.path(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn cases(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter(|line| line["kind"] == "case").collect()
}

#[test]
fn every_combination_is_a_line() {
    let bench = Bench::new();
    let args = "compare gen:poisson-p1:9 gen:convection:8x7 --backends cpu --formats auto,csr --methods cg,gmres-once,spmv \
        --types f64,f32 --rounds 2 --iterations 12 --threads 1 --json kept.jsonl";
    let ran = bench.run(args);
    // Once for both types.
    let said = "note: gen:convection:8x7: cg needs a Hermitian matrix, which this one is not; bicgstab, idr and gmres take it\n";
    assert_eq!((ran.code, ran.err.as_str()), (0, said));
    assert!(
        ran.out.contains("gen:poisson-p1:9: 81 unknowns, ") && ran.out.contains("<- fastest"),
        "{}",
        ran.out
    );
    let lines = kept(&bench, "kept.jsonl");
    for line in &lines {
        for field in ["date", "machine", "version", "compiler", "command"] {
            assert!(line[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {line}");
        }
    }
    assert_eq!((&lines[0]["kind"], &lines[0]["backend"]), (&"device".into(), &"cpu".into()));
    assert!(lines[0]["copy"].as_f64().unwrap() > 0.0);
    let cases = cases(&lines);
    // Two matrices, two types, three methods, two formats.
    assert_eq!(cases.len(), 2 * 2 * 3 * 2);
    for case in cases {
        let m = &case["measured"];
        assert!(m["again"]["median"].as_f64().unwrap() > 0.0 && m["again"]["rounds"] == 2, "{case}");
        assert!(m["reproducible"] == true && m["bytes"].as_u64().unwrap() > 0, "{case}");
        if case["method"] == "spmv" {
            assert!((&m["iterations"], &case["stop"]) == (&1.into(), &"products".into()), "{case}");
        } else {
            assert_eq!((&m["iterations"], &m["outcome"]), (&12.into(), &"limit".into()), "{case}");
            assert_eq!(m["history"].as_array().unwrap().len(), 13);
            assert!(m["fresh"]["median"].as_f64() > m["setup"]["median"].as_f64(), "{case}");
        }
    }
}

#[test]
fn what_is_missing_says_why() {
    let bench = Bench::new();
    bench.matrix("hole.mtx", 2, 2, &["1 1 1", "1 2 2", "2 1 2"]);
    let ran = bench.run("compare hole.mtx --precond jacobi --methods gmres,spmv --rounds 1 --json kept.jsonl --html page.html");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines = kept(&bench, "kept.jsonl");
    let why = |what: &str| {
        let line =
            lines.iter().find(|l| l["method"] == what || l["backend"] == what && l["kind"] == "device");
        line.unwrap()["why"].as_str().unwrap_or_default().to_string()
    };
    assert!(why("gmres").contains("the diagonal entry is missing"), "{}", why("gmres"));
    assert_eq!((why("spmv"), why("cpu")), (String::new(), String::new()));
    // A machine with CUDA must have a line for it, too.
    assert!(lines.iter().any(|l| l["backend"] == "cuda"));
    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    assert!(page.contains("the diagonal entry is missing"));
    if !why("cuda").is_empty() {
        assert!(ran.out.contains("cuda      not here: ") && page.contains("not here: "), "{}", ran.out);
    }
}

#[test]
fn where_no_backend_is_there_each_says_why() {
    let bench = Bench::new();
    let ran = bench.run("compare gen:poisson1d:9 --backends cuda:no-such --quiet");
    // A device that is missing, or a backend that this build does not have.
    let code = if built_in().contains(&"cuda") { 3 } else { 2 };
    assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{}", ran.err);
    let (_, reasons) = ran.err.split_once("no backend is available: ").expect(&ran.err);
    assert!(reasons.contains("cuda"), "{}", ran.err);
}

#[test]
fn a_tolerance_ends_solves() {
    let bench = Bench::new();
    let ran = bench.run("compare gen:poisson-p1:9 --backends cpu --methods cg --rtol 1e-6 --rounds 1 --quiet --json kept.jsonl");
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    let lines = kept(&bench, "kept.jsonl");
    let m = &cases(&lines)[0]["measured"];
    assert_eq!(m["outcome"], "converged");
    assert!(m["true_residual"].as_f64().unwrap() <= 1e-6 && m["iterations"].as_u64().unwrap() < 81);
}

#[test]
fn methods_nobody_asked_for_are_not_tried_where_they_do_not_fit() {
    let bench = Bench::new();
    bench.run("compare gen:convection:8x7 --backends cpu --rounds 1 --json kept.jsonl");
    let lines = kept(&bench, "kept.jsonl");
    let of = |method: &str| cases(&lines).into_iter().find(|c| c["method"] == method).unwrap().clone();
    assert!(of("cg")["why"].as_str().unwrap().contains("it is not Hermitian"));
    assert!(of("bicgstab")["measured"].is_object());
}

#[test]
fn least_squares_methods_run_on_matrices_that_are_not_square() {
    let bench = Bench::new();
    bench.matrix("wide.mtx", 2, 3, &["1 1 1", "2 2 2", "1 3 1"]);
    bench.matrix("tall.mtx", 3, 2, &["1 1 1", "2 2 2", "3 1 1", "3 2 1"]);
    let args = "--backends cpu --rounds 1 --rtol 1e-8 --json";
    let ran = bench.run(&format!("compare wide.mtx --methods craig,lsmr,cg {args} wide.jsonl"));
    assert!(ran.out.contains("wide.mtx: 3 unknowns"), "{}", ran.out);
    let lines = kept(&bench, "wide.jsonl");
    for case in cases(&lines) {
        if case["method"] == "cg" {
            assert!(case["why"].as_str().unwrap().contains("expected a square matrix for cg"), "{case}");
            continue;
        }
        assert_eq!((&case["measured"]["outcome"], &case["n"]), (&"converged".into(), &3.into()), "{case}");
        assert_eq!(case["stop"], "to |A^H (b - A x)| <= 1e-8 |A^H b|", "{case}");
    }
    bench.run(&format!("compare tall.mtx {args} tall.jsonl"));
    let lines = kept(&bench, "tall.jsonl");
    let methods: Vec<_> = cases(&lines).iter().map(|case| case["method"].clone()).collect();
    assert_eq!(methods, ["cgls", "lsqr", "lsmr"]);
    assert!(cases(&lines).iter().all(|case| case["measured"]["outcome"] == "converged"), "{lines:?}");
}

#[test]
fn what_is_not_solved_is_marked() {
    let bench = Bench::new();
    let args = "compare gen:poisson2d:40x40 --backends cpu --rounds 1 --rtol 1e-8";
    let ran = bench.run(&format!("{args} --methods cg,gmres --max-iters 200 --restart 2 --html page.html"));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    let line = |name: &str| ran.out.lines().find(|line| line.starts_with(&format!("  {name} "))).unwrap();
    assert!(line("gmres").ends_with("  NOT SOLVED: limit") && !line("cg").contains("NOT"), "{}", ran.out);
    let below = "1 solve did not meet the tolerance, or ended early: the time of such a row is not that of a solution";
    assert!(ran.out.ends_with(&format!("\n  {below}\n")), "{}", ran.out);
    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    assert!(page.contains("<small class=\"differ\">not solved: limit</small>"), "{page}");
    assert!(page.contains(&format!("<p class=\"differ\">{below}.</p>")), "{page}");
    assert!(page.contains("<td class=\"text\">not solved</td>"), "{page}");
    // Nothing was solved.
    let ran = bench.run(&format!("{args} --methods gmres --max-iters 4"));
    assert!(ran.code == 1 && !ran.out.contains("<- fastest"), "{}", ran.out);
    // A number of iterations is no tolerance.
    let ran =
        bench.run("compare gen:poisson2d:40x40 --backends cpu --rounds 1 --methods gmres --iterations 4");
    assert!(ran.code == 0 && !ran.out.contains("NOT SOLVED"), "{}", ran.out);
}

#[test]
fn where_nothing_is_measured_the_exit_code_says_so() {
    let bench = Bench::new();
    bench.matrix("wide.mtx", 2, 3, &["1 1 1", "2 2 2"]);
    let ran = bench.run("compare wide.mtx --backends cpu --methods cg --rounds 1 --json kept.jsonl");
    assert_eq!(ran.code, 2, "{}", ran.out);
    assert!(
        ran.err.starts_with("error: nothing could be measured: solve: expected a square matrix"),
        "{}",
        ran.err
    );
    assert!(ran.out.contains("no: solve: expected a square matrix for cg"), "{}", ran.out);
    assert_eq!(cases(&kept(&bench, "kept.jsonl")).len(), 1);
    // One that can be measured is enough.
    assert_eq!(bench.run("compare wide.mtx --backends cpu --methods cg,lsqr --rounds 1").code, 0);
    for backend in lacuna::backends().into_iter().filter(|backend| !backend.built_in) {
        let name = backend.name;
        let codes =
            [format!("solve wide.mtx --backend {name}"), format!("compare wide.mtx --backends {name}")]
                .map(|args| bench.run(&args).code);
        assert_eq!(codes, [2, 2], "{name}");
    }
}

#[test]
fn the_heading_names_every_way_to_end() {
    let bench = Bench::new();
    let ran =
        bench.run("compare gen:poisson1d:9 --backends cpu --methods spmv,gmres --rounds 1 --iterations 3");
    assert!(ran.out.contains("9 unknowns, 25 entries, f64; products; 3 iterations\n"), "{}", ran.out);
}

#[test]
fn nonsense_is_refused_before_anything_is_measured() {
    let bench = Bench::new();
    for (args, expected) in [
        ("--backends abacus", "`abacus` is unknown"),
        ("--methods magic", "got `magic`"),
        ("--formats round", "got `round`"),
        ("--json no/such/folder", "there is no folder no/such"),
        ("--peers nothing.jsonl", "nothing.jsonl"),
        ("gen:helmholtz:5x5 --types f64", "complex"),
    ] {
        let message = bench.refused(&format!("compare gen:poisson1d:9 --rounds 1 {args}"));
        assert!(message.contains(expected), "{args}: {message}");
    }
    bench.file("peers.jsonl", "{\"kind\":\"case\"}\n");
    let message = bench.refused("compare gen:poisson1d:9 --peers peers.jsonl");
    assert!(message.contains("peers.jsonl, line 1: expected a saved result"), "{message}");
}

#[test]
fn a_matrix_that_cannot_be_read_leaves_what_came_before() {
    let bench = Bench::new();
    bench.matrix("bad.mtx", 2, 2, &["1 1 1", "3 3 1"]);
    let args = "compare gen:poisson1d:9 bad.mtx --backends cpu --rounds 1 --json kept.jsonl --html page.html";
    let ran = bench.run(args);
    assert!(ran.code == 2 && ran.err.contains("bad.mtx"), "{}", ran.err);
    assert!(cases(&kept(&bench, "kept.jsonl")).iter().any(|c| c["measured"].is_object()));
    assert!(std::fs::read_to_string(bench.path("page.html")).unwrap().contains("poisson1d:9"));
}

#[test]
fn time_that_is_up_keeps_what_there_is() {
    let bench = Bench::new();
    let ran = bench.run(
        "compare gen:poisson-p1:9 gen:poisson-p1:200 --backends cpu --rounds 1000 --time-limit 1 --json kept.jsonl --html page.html",
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("the time is up"), "{}", ran.err);
    let lines = kept(&bench, "kept.jsonl");
    assert!(cases(&lines).iter().any(|c| c["measured"].is_object()));
    assert!(bench.path("page.html").exists());
}

#[test]
fn every_listed_method_meets_every_preconditioner() {
    let bench = Bench::new();
    let args = "compare gen:poisson2d:12x12 --backends cpu --rounds 1 --rtol 1e-6 --formats csr --rhs random:1 --json kept.jsonl \
        --methods cg,jacobi,gauss-seidel,sor,direct,spmv --precond none,ilut:fill=2,drop=1e-3,jacobi --plot all.svg";
    let ran = bench.run(args);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    assert!(ran.out.contains("; b is random:1\n") && ran.out.contains(" last   residual "), "{}", ran.out);
    let lines = kept(&bench, "kept.jsonl");
    let ways: Vec<_> = cases(&lines).iter().map(|c| format!("{} {}", c["method"], c["precond"])).collect();
    let ways: Vec<_> = ways.iter().map(|way| way.replace('"', "")).collect();
    let own = ["jacobi none", "gauss-seidel none", "sor none", "direct none", "spmv none"];
    assert_eq!(ways, [&["cg none", "cg ilut:fill=2,drop=1e-3", "cg jacobi"][..], &own].concat());
    for case in cases(&lines).into_iter().filter(|case| case["method"] != "spmv") {
        let m = &case["measured"];
        assert_eq!((&m["outcome"], &case["given"]), (&"converged".into(), &"b is random:1".into()), "{case}");
        let (last, error) = (m["residual"].as_f64().unwrap(), m["largest_error"].as_f64().unwrap());
        assert!(last <= 1e-6 && error > 0.0 && error < 1e-4, "{case}");
    }
    let drawn = std::fs::read_to_string(bench.path("all.svg")).unwrap();
    assert!(drawn.matches("<polyline").count() >= 6 && drawn.contains("gauss-seidel"), "{drawn}");
}

#[test]
fn a_guess_begins_every_solve_and_a_wrong_one_is_refused() {
    let bench = Bench::new().with_spd();
    bench.vector("b.mtx", &[5.0, 5.0, 6.0]).vector("x.mtx", &[1.0, 1.0, 1.0]).vector("short.mtx", &[1.0]);
    let args = "compare a.mtx --backends cpu --rounds 1 --methods cg --rtol 1e-8 --rhs b.mtx";
    bench.run(&format!("{args} --x0 x.mtx --json kept.jsonl"));
    let lines = kept(&bench, "kept.jsonl");
    let case = cases(&lines)[0];
    assert_eq!(
        (&case["measured"]["iterations"], &case["given"]),
        (&0.into(), &"b is b.mtx, the guess is x.mtx".into())
    );
    assert!(bench.refused(&format!("{args} --quiet --x0 short.mtx")).contains("expected 3 elements"));
    assert!(bench.refused("compare a.mtx --rhs random:x").contains("the seed should be"));
    assert!(bench.refused("compare a.mtx --precond auto").contains("by name"));
    assert!(bench.refused("compare a.mtx --precond none,magic").contains("magic"));
}

#[test]
fn what_fusion_gains_is_measured() {
    let bench = Bench::new();
    let args = "compare gen:poisson2d:30x30 --backends cpu --rounds 1 --methods cg,gmres,spmv --formats csr --unfused";
    let ran = bench.run(&format!("{args} --json kept.jsonl --quiet"));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let lines = kept(&bench, "kept.jsonl");
    let of =
        |method: &str| cases(&lines).into_iter().find(|c| c["method"] == method).unwrap()["measured"].clone();
    assert_eq!(cases(&lines).len(), 5);
    for method in ["cg", "gmres"] {
        let (fused, apart) = (of(method), of(&format!("{method}, unfused")));
        // More is read, the same is computed.
        assert!(apart["bytes"].as_u64() > fused["bytes"].as_u64(), "{method}");
        assert_eq!((&apart["x_bits"], &apart["history_bits"]), (&fused["x_bits"], &fused["history_bits"]));
    }
}

#[test]
fn what_cannot_suit_is_said_first() {
    let bench = Bench::new();
    let said = "cg needs a Hermitian matrix, which this one is not";
    let ran = bench.run("solve gen:convection:9x9 --method cg --max-iters 3");
    assert!(ran.err.contains(said), "{}", ran.err);
    let ran = bench.run("compare gen:convection:9x9 --methods cg --iterations 2 --rounds 1 --backends cpu");
    assert!(ran.err.contains(said), "{}", ran.err);
    let ran = bench.run("solve gen:poisson2d:9x9 --method cg");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

/// Waits for the first result line, then presses Ctrl-C.
#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_there_is() {
    let bench = Bench::new();
    let args = "compare gen:poisson-p1:9 gen:poisson-p1:60 gen:poisson-p1:61 gen:poisson-p1:62 --backends cpu --rounds 100 \
        --json kept.jsonl --html page.html";
    let child = bench.command(args).spawn().unwrap();
    let since = Instant::now();
    let text = || std::fs::read_to_string(bench.path("kept.jsonl")).unwrap_or_default();
    while !text().contains("\"kind\":\"case\"") {
        assert!(since.elapsed() < Duration::from_secs(120), "nothing is kept");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{}", ran.err);
    assert!(ran.err.contains("the results so far are kept"), "{}", ran.err);
    let lines = kept(&bench, "kept.jsonl");
    let measured = cases(&lines).into_iter().filter(|c| c["measured"].is_object()).count();
    assert!(measured >= 3, "{measured} cases");
    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    assert!(page.contains("poisson-p1:9") && page.ends_with("</html>\n"));
}
