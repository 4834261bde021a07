//! Wrong or unusual input, each with its message and exit code, or its outcome.
use crate::{Bench, built_in};

#[test]
fn a_truncated_file() {
    let bench = Bench::new();
    let text = "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 2.0\n2 2 2.0\n";
    bench.file("a.mtx", text);
    assert_eq!(bench.refused("solve a.mtx"), "a.mtx:4: the header promises 4 entries, the file ends after 2");
    for length in 0..text.len() {
        bench.file("a.mtx", &text[..length]);
        assert!(bench.refused("info a.mtx").starts_with("a.mtx:"), "{length}");
    }
}

#[test]
fn a_wrong_banner() {
    let bench = Bench::new();
    bench.file("a.mtx", "%%MatrixMarkt matrix coordinate real general\n1 1 1\n1 1 1\n");
    assert_eq!(
        bench.refused("solve a.mtx"),
        "a.mtx:1:1: a file should begin with `%%MatrixMarket`, got `%%MatrixMarkt`"
    );
}

#[test]
fn long_arguments_are_shortened() {
    let bench = Bench::new();
    let long = "x".repeat(50_000);
    for command in [
        format!("solve {long}"),
        format!("solve gen:{long}"),
        format!("solve gen:poisson1d:9 --rhs random:{long}"),
        format!("info gen:poisson1d:9 --json {long}/a.json"),
        format!("info gen:poisson1d:9 --plot {long}"),
        format!("convert gen:poisson1d:9 {long}.mat"),
        format!("spmv gen:poisson1d:9 --format {long}"),
    ] {
        let message = bench.refused(&command);
        assert!(message.len() < 1500 && message.contains('…'), "{message}");
    }
}

#[test]
fn an_index_out_of_range() {
    let bench = Bench::new();
    bench.matrix("a.mtx", 2, 2, &["1 1 1.0", "3 1 1.0"]);
    assert_eq!(bench.refused("solve a.mtx"), "a.mtx:4:1: row 3 is outside the matrix of 2 rows");
}

#[test]
fn entries_that_are_not_finite() {
    let bench = Bench::new();
    for value in ["NaN", "inf", "-inf"] {
        bench.matrix("a.mtx", 2, 2, &["1 1 1.0", &format!("2 2 {value}")]);
        assert_eq!(
            bench.refused("solve a.mtx"),
            format!("a.mtx:4:5: the value should be finite, got `{value}`")
        );
    }
    // Finite in f64, infinite in f32.
    bench.matrix("a.mtx", 1, 1, &["1 1 1e300"]);
    assert_eq!(bench.solve("a.mtx").0, 0);
    bench.refused("solve a.mtx --type f32");
}

#[test]
fn a_matrix_that_is_not_square() {
    let bench = Bench::new();
    bench.matrix("a.mtx", 2, 3, &["1 1 1.0", "2 2 1.0"]);
    let (code, json) = bench.solve("a.mtx --output x.mtx");
    assert_eq!((code, &json["outcome"], &json["method"]), (0, &"converged".into(), &"lsmr".into()));
    assert_eq!(json["n"], 3);
    let size = "a.mtx: 3 unknowns, 2 equations, 2 entries, f64\n";
    for command in ["solve", "advise"] {
        let ran = bench.run(&format!("{command} a.mtx"));
        assert!(ran.out.starts_with(size), "{}", ran.out);
    }
    let square = "solve: expected a square matrix for cg (lsmr takes any), got a 2x3 matrix";
    assert_eq!(bench.refused("solve a.mtx --method cg"), square);
    let ran = bench.run("info a.mtx --plot a.svg");
    assert!(ran.out.contains("the matrix is not square: least squares") && ran.code == 0);
}

#[test]
fn a_matrix_without_rows() {
    let bench = Bench::new();
    bench.matrix("a.mtx", 0, 0, &[]);
    let (code, json) = bench.solve("a.mtx --output x.mtx --plot a.svg");
    assert_eq!((code, &json["outcome"], &json["iterations"]), (0, &"converged".into(), &0.into()));
    assert_eq!(bench.run("info a.mtx --plot b.svg").code, 0);
}

#[test]
fn a_row_without_entries() {
    let bench = Bench::new();
    bench.matrix("a.mtx", 3, 3, &["1 1 1.0", "2 2 1.0"]);
    let (code, json) = bench.solve("a.mtx");
    assert_eq!(code, 1);
    assert_eq!(
        json["choices"][1],
        "preconditioner none: the matrix has a zero on its diagonal, the first in row 2 (counted from 0)"
    );
    assert!(json["outcome"] != "converged" && json["true_residual"].as_f64().unwrap() > 0.5, "{json}");
    // With a consistent right-hand side, the solution is found.
    bench.vector("b.mtx", &[2.0, 3.0, 0.0]);
    assert_eq!(bench.solve("a.mtx --rhs b.mtx").0, 0);
    // What cannot do without the row says that it is empty.
    for precond in ["jacobi", "ic0"] {
        let refused = bench.refused(&format!("solve a.mtx --precond {precond}"));
        assert!(refused.contains("row 2, column 2: the row has no nonzero entry"), "{refused}");
    }
    let told = bench.run("info a.mtx --why").out;
    assert!(!told.contains("dominant in every row") && !told.contains("a condition of"), "{told}");
}

#[test]
fn a_zero_diagonal_with_jacobi() {
    let bench = Bench::new();
    bench.matrix("a.mtx", 2, 2, &["1 2 1.0", "2 1 1.0"]);
    assert_eq!(
        bench.refused("solve a.mtx --precond jacobi"),
        "inverse of the diagonal: entry at row 0, column 0: the diagonal entry is missing; expected one with a \
         finite reciprocal; the order `matching` (`--reorder matching`, `LinearSystem::reorder`) moves rows for a \
         diagonal without zeros (rows and columns count from 0)"
    );
    assert_eq!(bench.solve("a.mtx").0, 0);
    assert_eq!(bench.solve("a.mtx --precond jacobi --reorder matching").0, 0);
}

#[test]
fn a_right_hand_side_of_the_wrong_length() {
    let bench = Bench::new().with_spd();
    bench.vector("b.mtx", &[1.0, 2.0]);
    bench.matrix("tall.mtx", 3, 2, &["1 1 1", "2 2 1"]).vector("three.mtx", &[1.0; 3]);
    for (args, expected) in [
        ("a.mtx --rhs b.mtx", "3 elements, as many as the matrix has rows, got 2"),
        ("a.mtx --x0 b.mtx", "3 elements, as many as the matrix has columns, got 2"),
        ("tall.mtx --x0 three.mtx", "2 elements, as many as the matrix has columns, got 3"),
        ("tall.mtx --rhs b.mtx", "3 elements, as many as the matrix has rows, got 2"),
    ] {
        let (_, option) = args.split_once(' ').unwrap();
        assert_eq!(bench.refused(&format!("solve {args}")), format!("{option}: expected {expected}"));
    }
}

#[test]
fn a_right_hand_side_of_another_shape() {
    let bench = Bench::new().with_spd();
    bench.matrix("sparse.mtx", 3, 2, &["1 1 1", "3 2 1"]).columns("short.npy", 2, &[1.0; 6]);
    bench.file("row.mtx", "%%MatrixMarket matrix array real general\n1 3\n1\n1\n1\n");
    for (file, expected) in [
        (
            "sparse.mtx",
            "one column of 3 elements, as many as the matrix has rows, got a sparse matrix of 3 rows and 2 columns; several \
             right-hand sides are given as a dense file",
        ),
        (
            "short.npy",
            "columns of 3 elements, as many as the matrix has rows, got an array of 2 rows and 3 columns",
        ),
        (
            "row.mtx",
            "columns of 3 elements, as many as the matrix has rows, got an array of 1 row and 3 columns; store it as a column",
        ),
    ] {
        let refused = bench.refused(&format!("solve a.mtx --rhs {file}"));
        assert_eq!(refused, format!("--rhs {file}: expected {expected}"));
    }
}

#[test]
fn a_name_that_is_nearly_right() {
    let bench = Bench::new();
    for (args, meant) in [
        ("solve gen:poisson1d:9 --method gmers", "gmres"),
        ("solve gen:poisson1d:9 --precond ilu1", "ilu0"),
        ("solve gen:poisson1d:9 --precond amg:coarset=3", "coarsest"),
        ("solve gen:poisson2:9", "poisson2d"),
        ("compare gen:poisson1d:9 --formats cdr", "csr"),
        ("solve gen:poisson1d:9 --backend cpuu", "cpu"),
    ] {
        let refused = bench.refused(args);
        assert!(refused.contains(&format!("did you mean `{meant}`?")), "{args}: {refused}");
    }
    assert!(!bench.refused("solve gen:poisson1d:9 --method conjugate").contains("did you mean"));
}

#[test]
fn a_right_hand_side_of_zeros() {
    let bench = Bench::new().with_spd();
    bench.vector("b.mtx", &[0.0; 3]);
    let (code, json) = bench.solve("a.mtx --rhs b.mtx --output x.mtx --plot a.svg");
    assert_eq!((code, &json["iterations"], &json["true_residual"]), (0, &0.into(), &0.0.into()));
    let text = std::fs::read_to_string(bench.path("x.mtx")).unwrap();
    assert!(text.lines().skip(2).all(|line| line.parse::<f64>().unwrap() == 0.0), "{text}");
}

#[test]
fn a_tolerance_of_zero() {
    let bench = Bench::new();
    bench.matrix("a.mtx", 2, 2, &["1 1 2.0", "2 2 2.0"]);
    let (code, json) = bench.solve("a.mtx --rtol 0");
    assert_eq!((code, &json["outcome"], &json["true_residual"]), (0, &"converged".into(), &0.0.into()));
    // If rounding leaves a residual, the solve has not converged, and the reason is the attainable accuracy.
    let (code, json) = bench.solve("gen:poisson2d:20x20 --rhs random:1 --rtol 0 --max-iters 200");
    assert_eq!(code, 1);
    assert!(json["outcome"] != "converged" && json["true_residual"].as_f64().unwrap() < 1e-12, "{json}");
}

#[test]
fn an_indefinite_matrix_under_cg() {
    let bench = Bench::new();
    bench.matrix("a.mtx", 3, 3, &["1 1 1", "2 2 -2", "3 3 3"]);
    let (code, json) = bench.solve("a.mtx --method cg");
    assert_eq!((code, &json["outcome"]), (1, &"indefinite_operator".into()));
    assert_eq!(json["reason"], "the operator is not positive definite: <p, A p> was not positive");
    assert!(json["notes"].to_string().contains("minres and gmres do not need a definite matrix"), "{json}");
    assert_eq!(
        json["choices"][1],
        "preconditioner none: the diagonal is not positive, and the method needs a positive one"
    );
    // Complex and symmetric: minres is not for it.
    let (_, json) = bench.solve("gen:helmholtz:60x60 --method cg");
    let notes = json["notes"].to_string();
    assert!(!notes.contains("minres") && notes.contains("is not Hermitian, which cg needs"), "{json}");
    assert_eq!(bench.solve("a.mtx").0, 0);
}

#[test]
fn a_tolerance_out_of_reach() {
    let (_, json) = Bench::new().solve("gen:convection:60x60 --precond jacobi --rtol 0");
    let notes = json["notes"].to_string();
    assert!(notes.contains("more of them are not expected to suffice") && !notes.contains("inf "), "{json}");
}

#[test]
fn files_that_are_not_there() {
    let bench = Bench::new().with_spd();
    for args in ["solve b.mtx", "info b.mtx", "solve a.mtx --rhs b.mtx", "solve a.mtx --x0 b.mtx"] {
        let message = bench.refused(args);
        assert!(message.starts_with("opening b.mtx: "), "{args}: {message}");
    }
    assert_eq!(bench.refused("solve a.mtx --output no/x.mtx"), "--output no/x.mtx: there is no folder no");
    assert_eq!(bench.refused("solve a.mtx --json ."), "--json .: expected the name of a file");
}

#[test]
#[cfg(unix)]
fn no_output_overwrites_an_input_or_another_output() {
    let bench = Bench::new().with_spd();
    bench.vector("b.mtx", &[5.0, 5.0, 6.0]);
    std::fs::hard_link(bench.path("a.mtx"), bench.path("link.mtx")).unwrap();
    let folder = bench.path("").file_name().unwrap().to_string_lossy().into_owned();
    let lost = |output: &str, input: &str| {
        format!("{output}: it is {input} too, which would be overwritten; expected another file")
    };
    let both = |first: &str, second: &str| format!("{first} and {second}: expected two different files");
    for (args, expected) in [
        ("solve a.mtx --output a.mtx".into(), lost("--output a.mtx", "the matrix")),
        ("solve a.mtx --json ./a.mtx".into(), lost("--json ./a.mtx", "the matrix")),
        ("solve link.mtx --json a.mtx".into(), lost("--json a.mtx", "the matrix")),
        ("solve a.mtx --rhs b.mtx --output b.mtx".into(), lost("--output b.mtx", "--rhs")),
        ("solve a.mtx --x0 b.mtx --output b.mtx".into(), lost("--output b.mtx", "--x0")),
        ("solve a.mtx --output x --json x".into(), both("--output x", "--json x")),
        (format!("solve a.mtx --json x.svg --plot ../{folder}/x.svg"), {
            both("--json x.svg", &format!("--plot ../{folder}/x.svg"))
        }),
        ("advise a.mtx --rhs b.mtx --json b.mtx".into(), lost("--json b.mtx", "--rhs")),
        ("info a.mtx --json a.mtx".into(), lost("--json a.mtx", "the matrix")),
        ("spmv a.mtx --json a.mtx".into(), lost("--json a.mtx", "the matrix")),
        ("convert a.mtx a.mtx".into(), lost("OUT a.mtx", "IN")),
        ("convert a.mtx x --rhs x".into(), both("OUT x", "--rhs x")),
        ("compare a.mtx --json a.mtx".into(), lost("--json a.mtx", "a matrix")),
        ("compare a.mtx --json x --html x".into(), both("--json x", "--html x")),
        ("compare a.mtx --peers b.mtx --html b.mtx".into(), lost("--html b.mtx", "--peers")),
    ] {
        let kept = ["a.mtx", "b.mtx"].map(|name| std::fs::read(bench.path(name)).unwrap());
        assert_eq!(bench.refused(&args), expected, "{args}");
        assert_eq!(["a.mtx", "b.mtx"].map(|name| std::fs::read(bench.path(name)).unwrap()), kept, "{args}");
        assert!(!bench.path("x").exists() && !bench.path("x.svg").exists(), "{args}");
    }
    // What is there already may be replaced, and a device is not a file.
    for args in ["solve a.mtx --output x --json y", "solve a.mtx --output /dev/null --json /dev/null"] {
        assert!((0..2).all(|_| bench.run(args).code == 0), "{args}");
    }
}

#[test]
fn options_that_make_no_sense() {
    let bench = Bench::new().with_spd();
    bench.file("c.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 2\n");
    assert_eq!(
        bench.refused("solve c.mtx --type f64"),
        "--type f64: the matrix is complex, expected --type c64 or c32"
    );
    assert_eq!(
        bench.refused("solve a.mtx --plot a.pdf"),
        "--plot a.pdf: expected a name that ends in .svg or .png"
    );
    if cfg!(not(feature = "png")) {
        assert_eq!(
            bench.refused("solve a.mtx --plot a.png"),
            "--plot a.png: this build writes no PNG; use a name that ends in .svg, or install the command with \
             `--features png`"
        );
    }
    assert_eq!(
        bench.refused("solve a.mtx --rhs random:x"),
        "--rhs random:x: the seed should be a whole number, got `x`"
    );
    assert_eq!(
        bench.refused("solve a.mtx --backend abacus"),
        format!("backend: `abacus` is unknown; this build has {}", built_in().join(", "))
    );
    for (args, expected) in [
        ("solve", "MATRIX"),
        ("solve a.mtx --method magic", "classical-bicgstab"),
        ("solve a.mtx --precond magic", "jacobi"),
        ("solve a.mtx --type f16", "c32"),
        ("solve a.mtx --rtol -1", "at least 0"),
        ("solve a.mtx --rtol NaN", "at least 0"),
        ("solve a.mtx --restart 0", "1..=1000"),
        ("solve a.mtx --restart 50 --method gmres:restart=20", "the method has restart=20 already"),
        ("compare a.mtx --restart 50 --methods cg,fgmres:restart=20", "the method has restart=20 already"),
        ("solve a.mtx --method gmres:restart=1001", "from 1 to 1000, got `1001`"),
        ("solve a.mtx --method pipelined-gmres:restart=99999999999", "from 1 to 1000"),
        ("solve a.mtx --threads 0", "1..=1024"),
        ("solve a.mtx --max-iters -5", "expected a whole number from 0"),
        ("solve a.mtx --threads -1", "-1 is not in 1..=1024"),
        ("solve a.mtx --restart -1", "-1 is not in 1..=1000"),
        ("solve a.mtx --repeat -1", "-1 is not in 1..=1000"),
        ("solve a.mtx --backend cpu --device -1", "`-1`"),
        ("advise a.mtx --seconds -1", "expected a number of seconds above 0"),
        ("advise a.mtx --max-iters -1", "expected a whole number from 0"),
        ("spmv a.mtx --rounds -1", "-1 is not in 1..=1000"),
        ("spmv a.mtx --vectors -1", "-1 is not in 1..=1000"),
        ("info a.mtx --threads -1", "-1 is not in 1..=1024"),
        ("compare a.mtx --iterations -1", "expected a whole number from 1 to 1000000"),
        ("compare a.mtx --time-limit -1", "at least 0"),
        ("magic", "magic"),
        ("solve gen:poison2d:3x3", "poisson2d"),
        ("solve gen:poisson2d:3", "gen:poisson2d:512x512"),
        ("generate gen:poisson1d:9", "--output"),
    ] {
        let message = bench.refused(args);
        assert!(message.contains(expected) && !message.contains("tip: to pass"), "{args}: {message}");
    }
}
