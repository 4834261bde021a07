//! `lacuna solve` on valid input.
use crate::{Bench, Ran};

#[test]
fn the_quick_start_converges() {
    let ran = Bench::new().run("solve gen:poisson2d:64x64");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for expected in [
        "gen:poisson2d:64x64: 4096 unknowns, 20 224 entries, f64\n",
        "  method      cg: the matrix is symmetric with a positive diagonal\n",
        "  precond     multigrid: several levels need fewer iterations",
        "  after       cg: see the notes\n",
        "converged: the true residual meets the tolerance 1e-8 |b|\n",
        "  iterations  ",
        "  residual    ",
        "  time        read ",
        " GB/s (",
    ] {
        assert!(ran.out.contains(expected), "{expected:?} is not in\n{}", ran.out);
    }
}

#[test]
fn verbose_tells_what_was_set_up() {
    let bench = Bench::new();
    let brief = bench.run("solve gen:poisson2d:40x40 --precond amg");
    let full = bench.run("solve gen:poisson2d:40x40 --precond amg --verbose");
    let levels = |ran: &Ran| ran.out.matches("preconditioner amg: level ").count();
    assert_eq!((full.code, levels(&brief)), (0, 0));
    assert!(levels(&full) >= 2 && full.out.contains(" of entries, "), "{}", full.out);
    let ran = bench.run("solve gen:poisson2d:9x9 --verbose --quiet");
    assert!(ran.code == 2 && ran.err.contains("cannot be used with"), "{}", ran.err);
}

#[test]
fn repeated_solves_start_alike_and_report_one() {
    let bench = Bench::new();
    let once = bench.solve("gen:poisson2d:20x20");
    let thrice = bench.solve("gen:poisson2d:20x20 --repeat 3");
    assert_eq!((once.0, thrice.0), (0, 0));
    assert_eq!(once.1["history"], thrice.1["history"]);
    assert_eq!(bench.run("solve gen:poisson2d:20x20 --repeat 0").code, 2);
}

#[test]
fn factors_keep_the_matrix_in_csr_unless_asked_otherwise() {
    let bench = Bench::new();
    for (options, format) in [
        ("--method cg --precond ic0 --backend cpu", "csr"),
        ("--method cg --precond ic0 --backend cpu --format sell", "sell"),
        ("--method cg --precond jacobi --backend cpu", "stencil"),
    ] {
        let (code, json) = bench.solve(&format!("gen:poisson2d:20x20 {options}"));
        assert_eq!((code, json["format"].as_str()), (0, Some(format)), "{options}");
    }
}

#[test]
fn the_solution_is_written() {
    let bench = Bench::new().with_spd();
    bench.vector("b.mtx", &[5.0, 5.0, 6.0]);
    for (method, precond) in [("auto", "auto"), ("classical-cg", "none"), ("gmres", "jacobi")] {
        let args = format!("a.mtx --rhs b.mtx --method {method} --precond {precond} --output x.mtx");
        assert_eq!(bench.solve(&args).0, 0, "{method}");
        let text = std::fs::read_to_string(bench.path("x.mtx")).unwrap();
        let x: Vec<f64> = text.lines().skip(2).map(|line| line.parse().unwrap()).collect();
        assert_eq!(x.len(), 3, "{text}");
        assert!(x.iter().all(|v| (v - 1.0).abs() < 1e-7), "{text}");
    }
    // The written solution can be read back, and used as the starting guess.
    let (code, json) = bench.solve("a.mtx --rhs b.mtx --x0 x.mtx --rtol 1e-6");
    assert_eq!((code, json["iterations"].as_u64()), (0, Some(0)));
}

#[test]
fn every_type_and_method_solves() {
    let bench = Bench::new();
    for number in ["f64", "f32", "c64", "c32"] {
        for method in ["cg", "classical-cg", "bicgstab", "classical-bicgstab", "gmres"] {
            let (code, json) =
                bench.solve(&format!("gen:poisson2d:9x7 --type {number} --method {method} --rhs random:3"));
            assert_eq!(code, 0, "{number} {method}: {json}");
            assert_eq!((&json["type"], &json["method"]), (&number.into(), &method.into()));
        }
    }
}

#[test]
fn complex_input_makes_the_type_complex() {
    let bench = Bench::new().with_spd();
    bench.file("i.mtx", "%%MatrixMarket matrix array complex general\n3 1\n0 5\n0 5\n0 6\n");
    let (code, json) = bench.solve("a.mtx --rhs i.mtx --output x.mtx");
    assert_eq!((code, &json["type"]), (0, &"c64".into()));
    assert_eq!(bench.solve("gen:helmholtz:12x12").1["type"], "c64");
}

#[test]
fn an_exact_starting_guess_needs_no_iteration() {
    let bench = Bench::new().with_spd();
    bench.vector("b.mtx", &[5.0, 5.0, 6.0]).vector("x0.mtx", &[1.0, 1.0, 1.0]);
    let (code, json) = bench.solve("a.mtx --rhs b.mtx --x0 x0.mtx");
    assert_eq!(code, 0);
    assert_eq!((&json["iterations"], &json["true_residual"]), (&0.into(), &0.0.into()));
}

#[test]
fn the_maximum_norm_is_tested_where_it_is_asked_for_and_always_reported() {
    let bench = Bench::new();
    for backend in ["cpu", "cpu --ranks 2"] {
        for method in ["bicg", "bicgstab", "gmres", "auto", "cg --refine"] {
            let text = format!("gen:wathen:16x16 --backend {backend} --method {method} --rtol 1e-6");
            let (code, json) = bench.solve(&format!("{text} --norm max"));
            assert_eq!((code, &json["norm"]), (0, &"max".into()), "{text}: {json}");
            let [largest, absolute] =
                ["relative_max_residual", "max_residual"].map(|key| json[key].as_f64().unwrap());
            assert!(0.0 < largest && largest <= 1e-6 && absolute > 0.0, "{text}: {json}");
            let (code, two) = bench.solve(&text);
            assert_eq!((code, &two["norm"]), (0, &"2".into()));
            assert!(two["max_residual"].as_f64().unwrap() > 0.0, "{text}: {two}");
        }
    }
    let ran = bench.run("solve gen:wathen:8x8 --norm max --rtol 1e-6 --backend cpu");
    assert!(ran.out.contains("converged: max |b - A x| meets the tolerance 1e-6 max |b|"), "{}", ran.out);
    assert!(ran.out.contains("  largest     "), "{}", ran.out);
    bench.vector("two.mtx", &[1.0, 2.0]);
    let ran = bench.run("solve gen:random:30:4 --method lsmr --norm max");
    assert!(ran.code != 0 && ran.err.contains("2-norm"), "{}", ran.err);
    let ran = bench.run("compare gen:wathen:8x8 --methods bicg,gmres --norm max --rtol 1e-6 --backends cpu --rounds 1 --quiet --json -");
    let json: serde_json::Value =
        serde_json::from_str(ran.out.lines().last().unwrap_or_default()).unwrap_or_default();
    assert_eq!(ran.code, 0, "{} {json}", ran.err);
}

#[test]
fn random_right_hand_sides_and_thread_counts_reproduce() {
    let bench = Bench::new();
    let run = |args: &str| bench.solve(&format!("gen:poisson2d:120x120 {args}")).1["history"].clone();
    let first = run("--rhs random:7 --threads 1");
    assert_eq!(first, run("--rhs random:7 --threads 1"));
    assert_eq!(first, run("--rhs random:7 --threads 2"));
    assert_eq!(first, run("--rhs random:7 --threads 3"));
    assert_ne!(first, run("--rhs random:8 --threads 1"));
}

#[test]
fn convergence_is_plotted() {
    let bench = Bench::new();
    let ran = bench.run("solve gen:poisson2d:20x20 --quiet --plot a.svg");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    let svg = std::fs::read_to_string(bench.path("a.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("<polyline") && svg.contains(">iteration</text>"));
    // Nothing to plot, and a name that contains markup.
    bench.matrix("<&>.mtx", 0, 0, &[]);
    assert_eq!(bench.run("solve <&>.mtx --plot b.svg").code, 0);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bench = Bench::new();
    for args in [
        "solve gen:poisson2d:50x50 --json -",
        "solve gen:poisson2d:9x9",
        "info gen:poisson1d:9",
        "generate gen:poisson1d:99999 --output -",
        "generate --list",
    ] {
        let mut child = bench.command(args).spawn().unwrap();
        drop(child.stdout.take());
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 0, "{args}: {}", ran.err);
        assert!(!ran.err.contains("panicked") && !ran.err.contains("error"), "{args}: {}", ran.err);
    }
}

/// On a terminal, which `script` provides, it is said what is set up before that begins.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_shows_what_is_set_up() {
    let bench = Bench::new();
    let shown = |options: &str| {
        let line =
            format!("{} solve gen:poisson2d:9x9 --method gmres --precond ilut {options}", crate::BINARY);
        let mut command = std::process::Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).current_dir(bench.path("")).env("TERM", "xterm");
        let ran = Ran::from(command.stdin(std::process::Stdio::null()).output().ok()?);
        assert_eq!(ran.code, 0, "{}", ran.out);
        Some(ran.out)
    };
    let Some(out) = shown("") else {
        eprintln!("SKIPPED, no program `script`");
        return;
    };
    assert!(out.contains("gen:poisson2d:9x9: 81 unknowns, 369 entries; setting up gmres, ilut "), "{out}");
    for options in ["--quiet", "--json out.json"] {
        assert!(!shown(options).unwrap().contains("setting up"), "{options}");
    }
}

/// Threads that cannot be started are a device failure: no address space has room for such a stack.
#[test]
fn a_device_that_fails_has_its_own_exit_code() {
    let bench = Bench::new();
    let mut command = bench.command("solve gen:poisson1d:9 --threads 4");
    let ran = Ran::from(command.env("RUST_MIN_STACK", (1u64 << 60).to_string()).output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    assert!(ran.err.starts_with("error: cpu: starting threads: "), "{}", ran.err);
    assert_eq!(bench.solve("gen:poisson1d:9 --threads 3").0, 0);
}

/// Linux reports whether a process handles a signal, so the test knows when the solve has begun.
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_cancels_with_the_true_residual() {
    use std::process::Command;
    use std::time::{Duration, Instant};
    const SIGINT: u32 = 2;
    let bench = Bench::new();
    let args = "solve --json - gen:poisson2d:700x700 --backend cpu --method gmres --rtol 1e-14 --max-iters 1000000000";
    let child = bench.command(args).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let since = Instant::now();
    let handled = || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:"))?.trim().to_string();
        Some(u64::from_str_radix(&mask, 16).ok()? >> (SIGINT - 1) & 1 == 1)
    };
    while handled() != Some(true) {
        assert!(since.elapsed() < Duration::from_secs(60), "the solve does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(50));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 1, "{}", ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["outcome"], "cancelled");
    assert!(json["true_residual"].as_f64().is_some_and(|r| r > 0.0 && r <= 2.0), "{json}");
    assert!(ran.err.contains("not converged: cancelled by Ctrl-C"), "{}", ran.err);
}

#[test]
fn several_right_hand_sides_are_solved_at_once() {
    let bench = Bench::new().with_spd();
    bench.columns("B.npy", 3, &[5.0, 5.0, 6.0, 4.0, 1.0, 0.0]);
    let (code, report) = bench.solve("a.mtx --rhs B.npy --output X.npy --method cg --plot both.svg");
    let columns = report["columns"].as_array().unwrap();
    assert_eq!((code, columns.len(), &columns[1]["outcome"]), (0, 2, &"converged".into()), "{report}");
    let x = lacuna::io::read_columns::<f64>(bench.path("X.npy"), &Default::default()).unwrap();
    for (got, expected) in x.values.iter().zip([1.0, 1.0, 1.0, 1.0, 0.0, 0.0]) {
        assert!((got - expected).abs() < 1e-7, "{x:?}");
    }
    assert!(std::fs::read_to_string(bench.path("both.svg")).unwrap().contains("column 1"));
    let ran = bench.run("solve a.mtx --rhs B.npy --max-iters 0 --method cg");
    assert!(ran.code == 1 && ran.out.contains("2 of 2 right-hand sides do not meet"), "{}", ran.out);
    assert_eq!(bench.run("solve a.mtx --rhs B.npy --output X.mtx --quiet").code, 0);
    assert_eq!(bench.run("solve a.mtx --rhs X.mtx --output - --quiet").out.lines().count(), 2 + 6);
    assert!(bench.refused("solve a.mtx --rhs B.npy --output X.petsc").contains("one vector"));
    bench.columns("short.npy", 2, &[1.0; 4]);
    assert!(bench.refused("solve a.mtx --rhs short.npy").contains("expected columns of 3 elements"));
}

#[test]
fn vector_instructions_change_the_time_alone() {
    let bench = Bench::new();
    let args = "gen:convection:30x30 --method bicgstab --backend cpu";
    let [best, none] =
        ["", " --simd none"].map(|simd| bench.solve(&format!("{args}{simd}")).1["history"].clone());
    assert!(best.as_array().unwrap().len() > 5 && best == none, "{best} {none}");
    assert_eq!(
        bench.run("compare gen:poisson2d:9x9 --methods spmv --backends cpu --rounds 1 --simd none").code,
        0
    );
}
