//! `lacuna info`, `generate`, `devices` and help.
use crate::{Bench, built_in};

#[test]
fn info_describes() {
    let bench = Bench::new();
    let ran = bench.run("info gen:poisson2d:30x20 --plot spy.svg");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for expected in [
        "gen:poisson2d:30x20: 600 x 600, 2900 entries, f64, ",
        "  symmetry    symmetric\n",
        "  rows        3 to 5 entries, 4.83 on average, standard deviation 0.39, 0 empty; 10 % of the lengths follow no pattern\n",
        "  diagonal    no zeros, all positive, dominant in every row\n",
        "  bandwidth   30 below, 30 above the diagonal; 5 diagonals in use\n",
        "  method      richardson: complete factors nearly solve the system",
        "  precond     direct: complete factors are expected in ",
    ] {
        assert!(ran.out.contains(expected), "{expected:?} is not in\n{}", ran.out);
    }
    let svg = std::fs::read_to_string(bench.path("spy.svg")).unwrap();
    assert!(svg.contains("<path") && svg.contains("600 × 600, 2900 entries"));
}

#[test]
fn info_tells_of_scales_ranks_and_the_spectrum() {
    let bench = Bench::new();
    bench.matrix("zero.mtx", 1, 1, &["1 1 0"]).matrix("one.mtx", 1, 1, &["1 1 2"]);
    bench.matrix("neumann.mtx", 3, 3, &["1 1 1", "1 2 -1", "2 1 -1", "2 2 2", "2 3 -1", "3 2 -1", "3 3 1"]);
    bench.matrix("saddle.mtx", 2, 2, &["1 1 1", "1 2 3", "2 1 3", "2 2 -2"]);
    bench.matrix("rank.mtx", 3, 4, &["1 1 1e-3", "2 1 2", "3 2 1e5", "3 4 0"]);
    for (matrix, expected) in [
        ("zero.mtx", "all are 0, so that A looks singular\n"),
        ("neumann.mtx", "none negative, but the smallest is 0 within rounding, so that A looks singular\n"),
        ("saddle.mtx", "; 1 of 2 negative, so that A is indefinite\n"),
        (
            "one.mtx",
            "1.0e0 to 1.0e0; none negative; a condition of at least 1.0e0; cg may need 10 iterations to 1e-8, or more if it is larger\n",
        ),
        ("one.mtx", "one.mtx: 1 x 1, 1 entry, f64"),
        (
            "rank.mtx",
            "  values      1.0e-3 to 1.0e5; the largest of a row 1.0e-3 to 1.0e5, of a column 2.0e0 to 1.0e5; 2 columns without a nonzero entry\n",
        ),
        (
            "rank.mtx",
            "  rank        2 of 3 by the positions of the entries: rows or columns depend on others, whatever the values\n",
        ),
        ("gen:poisson1d:7", "  rank        7 of 7 by the positions of the entries\n"),
    ] {
        let ran = bench.run(&format!("info {matrix} --why --json found.json"));
        assert!(
            ran.code == 0 && ran.out.contains(expected),
            "{expected:?} is not in\n{}{}",
            ran.out,
            ran.err
        );
    }
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(bench.path("found.json")).unwrap()).unwrap();
    assert_eq!(json["scaling"]["entries"], serde_json::json!([1.0, 2.0]));
    assert_eq!(json["scaling"]["structural_rank"], 7);
    let bytes = |name: &str| {
        let formats = json["formats"].as_array().unwrap();
        formats.iter().find(|format| format["name"] == name).unwrap()["bytes"].clone()
    };
    assert!(bytes("bcsr5").is_null() && bytes("csr").as_u64().is_some(), "{json}");
}

#[test]
fn the_names_of_formats_are_a_column() {
    let bench = Bench::new();
    let ran = bench.run("info gen:poisson1d:7 --why");
    let ends = ran.out.lines().filter_map(|line| line.find(" bytes a row;")).collect::<Vec<_>>();
    assert!(ends.len() > 9 && ends.iter().all(|end| *end == ends[0]), "{}", ran.out);
    assert!(!ran.out.contains(" 0.0 bytes a row; no"), "{}", ran.out);
    let ran = bench.run("spmv gen:poisson1d:7 --rounds 1");
    let times = ran.out.lines().filter_map(|line| line.find(" %   ")).collect::<Vec<_>>();
    assert!(times.len() > 9 && times.iter().all(|end| *end == times[0]), "{}", ran.out);
}

#[test]
fn a_complex_symmetric_matrix_is_not_hermitian() {
    let bench = Bench::new();
    let head = "%%MatrixMarket matrix coordinate complex symmetric\n";
    bench.file("c.mtx", &format!("{head}2 2 3\n1 1 4 1\n2 1 1 0\n2 2 5 0\n"));
    let ran = bench.run("info c.mtx");
    assert!(ran.out.contains("  symmetry    symmetric, not Hermitian\n"), "{}", ran.out);
    let json: serde_json::Value =
        serde_json::from_str(&bench.run("solve c.mtx --precond none --quiet --json -").out).unwrap();
    assert_eq!(
        json["choices"][0],
        "method bicgstab: the matrix is not Hermitian, and its diagonal dominates"
    );
}

#[test]
fn info_names_what_solve_chooses() {
    let bench = Bench::new().with_spd();
    // A cyclic shift, whose rows must move for a diagonal without zeros.
    bench.matrix("cycle.mtx", 4, 4, &["1 2 3", "2 3 4", "3 4 5", "4 1 6", "1 3 1"]);
    bench.matrix("singular.mtx", 2, 2, &["1 1 1", "2 1 1"]).matrix("wide.mtx", 2, 3, &["1 1 1", "2 2 2"]);
    let systems =
        ["cycle.mtx", "singular.mtx", "wide.mtx", "a.mtx", "gen:convection:9x8", "gen:poisson2d:40x40"];
    for matrix in systems {
        let ran = bench.run(&format!("info {matrix} --quiet --json -"));
        let info: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let (_, solve) = bench.solve(matrix);
        for choice in ["method", "precond", "format", "order"] {
            assert_eq!(info[choice]["name"], solve[choice], "{matrix}: {choice}");
        }
    }
    let ran = bench.run("info cycle.mtx --why");
    let matching = ["  precond     direct: ", "  order       matching: bandwidth 1 "];
    assert!(matching.iter().all(|line| ran.out.contains(line)), "{}", ran.out);
    let ran = bench.run("info singular.mtx --why");
    assert!(
        ran.out.contains("  order       matching: no order of the rows has a diagonal without zeros\n"),
        "{}",
        ran.out
    );
}

#[test]
fn info_says_why_a_matrix_is_singular_and_that_rounding_took_its_symmetry() {
    let bench = Bench::new();
    bench.matrix("empty.mtx", 3, 3, &["1 1 2", "1 2 1", "2 2 3"]);
    bench.matrix("constants.mtx", 3, 3, &["1 1 1", "1 2 -1", "2 1 -1", "2 2 2", "2 3 -1", "3 2 -1", "3 3 1"]);
    bench.matrix("rounded.mtx", 2, 2, &["1 1 4", "1 2 0.1", "2 1 0.10000000000000002", "2 2 5"]);
    bench.matrix("other.mtx", 2, 2, &["1 1 4", "1 2 0.1", "2 1 0.2", "2 2 5"]);
    let info = |matrix: &str| {
        let json = bench.run(&format!("info {matrix} --quiet --json -")).out;
        (bench.run(&format!("info {matrix}")).out, serde_json::from_str::<serde_json::Value>(&json).unwrap())
    };
    let (text, json) = info("empty.mtx");
    let said =
        "A is singular: row 2 (counted from 0) has no nonzero entry, and b must be 0 there; leave that row";
    assert!(text.contains(&format!("  singular    {said}")), "{text}");
    assert!(json["singular"][0].as_str().unwrap().starts_with(said), "{json}");
    let (text, _) = info("constants.mtx");
    assert!(
        text.contains("  singular    A is singular: its rows and columns sum to 0, so that a constant"),
        "{text}"
    );
    let (text, json) = info("rounded.mtx");
    assert!(text.contains("; lost by rounding alone: entries differ by 1"), "{text}");
    assert!(json["symmetric_but_for"].as_f64().unwrap() < 1e-15, "{json}");
    let (text, json) = info("other.mtx");
    assert!(!text.contains("rounding") && !text.contains("singular"), "{text}");
    assert!(json["symmetric_but_for"].is_null() && json["singular"].as_array().unwrap().is_empty(), "{json}");
}

#[test]
fn reports_are_not_compressed() {
    let bench = Bench::new();
    for (command, end) in [
        ("solve gen:poisson1d:9 --json x.json.gz", "gz"),
        ("info gen:poisson1d:9 --json x.json.XZ", "xz"),
        ("spmv gen:poisson1d:9 --json x.json.bz2", "bz2"),
        ("advise gen:poisson1d:9 --json x.json.gz", "gz"),
        ("compare gen:poisson1d:9 --json x.json.gz", "gz"),
        ("compare gen:poisson1d:9 --html x.html.gz", "gz"),
    ] {
        let (_, option) = command.split_once(" --").unwrap();
        assert_eq!(
            bench.refused(command),
            format!("--{option}: text is written plain, expected a name that does not end in .{end}")
        );
        assert!(!bench.path(option.split_once(' ').unwrap().1).exists());
    }
    assert_eq!(bench.run("solve gen:poisson1d:9 --output x.mtx.gz --json x.json").code, 0);
}

#[test]
fn archives_are_not_written() {
    let bench = Bench::new();
    let refused = "a tar archive is read but not written; expected ";
    for name in ["x.tar.gz", "x.tgz", "x.tar"] {
        for command in [
            format!("generate gen:poisson1d:9 --output {name}"),
            format!("convert gen:poisson1d:9 {name}"),
            format!("solve gen:poisson1d:9 --output {name}"),
        ] {
            let message = bench.refused(&command);
            assert!(message.starts_with(&format!("writing {name}: {refused}")), "{message}");
            assert!(message.contains(".petsc") && message.contains(".mtx"), "{message}");
        }
        assert!(!bench.path(name).exists());
    }
}

#[test]
fn generated_files_are_read_again() {
    let bench = Bench::new();
    for name in ["a.mtx", "a.mtx.gz"] {
        let ran = bench.run(&format!("generate gen:convection:9x8 --output {name}"));
        assert_eq!(ran.out, format!("{name}: 72 x 72, 326 entries, f64\n"), "{}", ran.err);
        let (code, json) = bench.solve(name);
        assert_eq!((code, &json["nnz"]), (0, &326.into()));
    }
    assert!(std::fs::read(bench.path("a.mtx.gz")).unwrap().starts_with(&[0x1f, 0x8b]));
    for (option, entries) in [("", "5 5 9"), (" --general", "5 5 13")] {
        let ran = bench.run(&format!("generate gen:poisson1d:5{option} --output -"));
        assert!(ran.out.lines().any(|line| line == entries), "{option}: {}", ran.out);
    }
    let ran = bench.run("generate gen:helmholtz:5x5 --output -");
    assert!(ran.out.starts_with("%%MatrixMarket matrix coordinate complex "), "{}", ran.out);
    assert!(bench.refused("generate gen:helmholtz:5x5 --type f64 --output -").contains("complex"));
}

#[test]
fn generated_files_for_other_programs() {
    let bench = Bench::new();
    for (name, start) in [("a.npz", &b"PK"[..]), ("a.petsc", b"\0\x12\x7B\x50")] {
        let ran = bench.run(&format!("generate gen:poisson1d:3 --output {name}"));
        assert_eq!(ran.out, format!("{name}: 3 x 3, 7 entries, f64\n"), "{}", ran.err);
        assert!(std::fs::read(bench.path(name)).unwrap().starts_with(start));
        assert_eq!(bench.solve(name).0, 0);
    }
    assert!(bench.refused("generate gen:poisson1d:3 --output a.npy").contains("expected .npz"));
}

#[test]
fn every_form_is_converted() {
    let bench = Bench::new();
    assert_eq!(bench.run("generate gen:helmholtz:5x5 --type c32 --output a.npz").code, 0);
    for (from, to, kind) in
        [("a.npz", "b.petsc", "c32"), ("b.petsc", "c.mtx.gz", "c64"), ("c.mtx.gz", "d.npz", "c64")]
    {
        let ran = bench.run(&format!("convert {from} {to}"));
        assert_eq!(ran.out, format!("{to}: 25 x 25, 105 entries, {kind}\n"), "{}", ran.err);
    }
    let text = |name: &str| bench.run(&format!("convert {name} - --type c32 --general")).out;
    assert!(text("a.npz").starts_with("%%MatrixMarket matrix coordinate complex general"));
    assert_eq!(text("a.npz"), text("d.npz"));
    assert!(bench.refused("convert a.npz e.mtx --type f64").contains("the matrix is complex"));
    assert!(bench.refused("convert a.npz e.mtx --rhs b.mtx").contains("has no right-hand side"));
    assert!(bench.refused("convert a.npz e.mat").contains("is read but not written"));
    assert!(!bench.path("e.mtx").exists() && !bench.path("e.mat").exists());

    bench.file("b.mtx", "%%MatrixMarket matrix array real general\n3 1\n1\n0\n2.5\n");
    for (from, to) in [("b.mtx", "b.npy"), ("b.npy", "v.petsc"), ("v.petsc", "w.mtx")] {
        let ran = bench.run(&format!("convert {from} {to}"));
        assert_eq!(ran.out, format!("{to}: 3 x 1, 3 entries, f64\n"), "{}", ran.err);
    }
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap();
    assert_eq!(read("w.mtx"), read("b.mtx"));
    for rhs in ["b.npy", "v.petsc"] {
        let ran = bench.run(&format!("solve gen:poisson1d:3 --rhs {rhs} --output x.npy"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(std::fs::read(bench.path("x.npy")).unwrap().starts_with(b"\x93NUMPY"));
    }
    // A vector stored after the matrix is its right-hand side.
    assert_eq!(bench.run("generate gen:poisson1d:3 --output a.petsc").code, 0);
    let both = [std::fs::read(bench.path("a.petsc")).unwrap(), std::fs::read(bench.path("v.petsc")).unwrap()];
    std::fs::write(bench.path("both.petsc"), both.concat()).unwrap();
    let ran = bench.run("convert both.petsc a.mtx --rhs c.mtx");
    assert_eq!(ran.out, "a.mtx: 3 x 3, 7 entries, f64\nc.mtx: 3 x 1, 3 entries, f64\n", "{}", ran.err);
    assert_eq!(read("c.mtx"), read("b.mtx"));
    assert!(bench.run("solve both.petsc").err.contains("the right-hand side is both.petsc"));
}

#[test]
fn a_name_that_cannot_be_written_is_refused_first() {
    let bench = Bench::new();
    bench.vector("b.mtx", &[1.0, 2.0, 3.0]);
    for end in ["bz2", "xz", "XZ"] {
        let expected = format!("a .{} is read but not written; expected .np", end.to_lowercase());
        for command in [
            "generate gen:poisson1d:3 --output",
            "convert gen:poisson1d:3",
            "convert b.mtx",
            "convert gen:poisson1d:3 c.mtx --rhs",
            // Far too long a solve to end before the refusal.
            "solve gen:poisson2d:3000x3000 --rtol 1e-15 --output",
        ] {
            let refused = bench.refused(&format!("{command} x.mtx.{end}"));
            assert!(refused.contains(&expected), "{command}: {refused}");
            assert!(!bench.path(&format!("x.mtx.{end}")).exists() && !bench.path("c.mtx").exists());
        }
    }
    let refused = bench.refused("solve gen:poisson2d:3000x3000 --rtol 1e-15 --output x.npz");
    assert!(refused.contains("an .npz holds a sparse matrix"), "{refused}");
}

#[test]
fn generators_are_listed() {
    let ran = Bench::new().run("generate --list");
    assert_eq!(ran.code, 0);
    for generator in lacuna::Spec::list() {
        assert!(ran.out.contains(generator.example), "{}", generator.name);
    }
}

#[test]
fn devices_are_listed() {
    let ran = Bench::new().run("devices --no-measure --threads 1");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let headings: Vec<_> = ran.out.lines().filter(|line| !line.starts_with(' ')).collect();
    let default = |name: &str| if crate::preferred() == name { " (default)" } else { "" };
    let expected: Vec<_> = built_in().iter().map(|name| format!("{name}{}", default(name))).collect();
    assert_eq!(headings, expected, "{}", ran.out);
    assert!(ran.out.contains("1 thread\n"), "{}", ran.out);
}

#[test]
fn devices_as_json() {
    let bench = Bench::new();
    let ran = bench.run("devices --threads 1 --no-measure --json -");
    assert!(ran.code == 0 && ran.err.contains("1 thread\n"), "{}", ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let backends = json["backends"].as_array().unwrap();
    let names: Vec<_> = backends.iter().map(|backend| backend["backend"].as_str().unwrap()).collect();
    assert_eq!(names, built_in());
    let cpu = &backends[names.iter().position(|name| *name == "cpu").unwrap()]["devices"][0];
    assert_eq!(
        (&cpu["index"], &cpu["units"], &cpu["triad"]),
        (&0.into(), &1.into(), &serde_json::Value::Null)
    );
    let ran = bench.run("devices --quiet --json found.json");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    let json = std::fs::read_to_string(bench.path("found.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["backends"].to_string().contains("\"triad_type\":\"f64\""), "{json}");
    assert!(bench.refused("devices --json no/x").contains("there is no folder no"));
}

#[test]
fn a_backend_without_a_device_is_not_the_default() {
    let bench = Bench::new();
    let mut command = bench.command("solve gen:poisson1d:9 --quiet --json -");
    command.env("OCL_ICD_VENDORS", "/nowhere").env("CUDA_VISIBLE_DEVICES", "");
    let printed = command.output().unwrap();
    assert_eq!(printed.status.code(), Some(0));
    let printed: serde_json::Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(printed["backend"], "cpu", "{printed}");
}

#[test]
fn an_unknown_name_lists_every_name_accepted_there() {
    let bench = Bench::new();
    let methods = ["auto", "tune", "cg", "jacobi", "gauss-seidel", "sor"];
    for (option, names) in
        [("--method", &methods[..]), ("--precond", &["auto", "none", "jacobi", "ilu0"][..])]
    {
        let message = bench.refused(&format!("solve gen:poisson1d:9 {option} magic"));
        for name in names {
            assert!(message.contains(&format!(" {name}, ")), "{option} {name}: {message}");
        }
        assert!(message.contains("got `magic`"), "{message}");
    }
    let message = bench.refused("compare gen:poisson1d:9 --precond magic");
    assert!(message.contains("expected one of none, jacobi, "), "every solve has the same: {message}");
}

#[test]
fn the_cpu_is_one_device() {
    let bench = Bench::new();
    assert_eq!(bench.run("solve gen:poisson1d:9 --backend cpu --device 0").code, 0);
    // A part of its name, as `devices` lists it.
    let (_, json) = bench.solve("gen:poisson1d:9 --backend cpu");
    let part = json["device"].as_str().unwrap().split(' ').next().unwrap().to_lowercase();
    assert_eq!(bench.run(&format!("solve gen:poisson1d:9 --backend cpu --device {part}")).code, 0, "{part}");
    let compare = format!("compare gen:poisson1d:9 --methods spmv --rounds 1 --backends cpu:{part}");
    assert_eq!(bench.run(&compare).code, 0, "{part}");
    assert!(bench.refused("solve gen:poisson1d:9 --backend cpu --device 1").contains("one device, 0: "));
    let printed = bench.refused("solve gen:poisson1d:9 --backend cpu --device gpu");
    assert!(printed.contains("device") && printed.contains("`gpu`"), "{printed}");
}

#[test]
fn help_teaches() {
    let bench = Bench::new();
    let ran = bench.run("--help");
    assert!(ran.code == 0 && ran.out.contains("lacuna solve gen:poisson2d:512x512"));
    let ran = bench.run("solve --help");
    for expected in [
        "classical-bicgstab",
        "jacobi",
        "gen:spe10-like:SEED[:NXxNYxNZ]",
        "3 device failure or out of memory",
    ] {
        assert!(ran.out.contains(expected), "{expected}");
    }
    for (command, expected) in [("solve", true), ("spmv", false)] {
        let ran = bench.run(&format!("{command} --help"));
        assert!(ran.out.contains("  rcm "), "{command}");
        assert_eq!(ran.out.contains("  matching "), expected, "{command}");
    }
    assert_eq!(bench.run("--version").out, format!("lacuna {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_lengths_of_rows_and_the_reordered_matrix_are_drawn() {
    let bench = Bench::new();
    let args = "info gen:random:300:5:1 --reorder rcm --plot spy.svg --histogram rows.svg --json -";
    let ran = bench.run(&format!("{args} --quiet"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let facts: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(facts["row"]["lengths"].as_array().unwrap().last().unwrap(), &serde_json::json!([5, 5, 300]));
    assert_eq!(facts["reordered"], "rcm");
    for (file, words) in [("spy.svg", "gen:random:300:5:1, rcm"), ("rows.svg", "300 rows by their number")] {
        assert!(std::fs::read_to_string(bench.path(file)).unwrap().contains(words), "{file}");
    }
    assert!(bench.refused("info gen:poisson1d:9 --histogram rows.pdf").contains("--histogram rows.pdf"));
}
