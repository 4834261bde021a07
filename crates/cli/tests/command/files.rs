//! Unusual files: pipes, standard streams, archives, odd bytes, and input too large to hold.
use crate::{Bench, Ran};
use std::io::Write;
use std::process::Stdio;

const A: &str =
    "%%MatrixMarket matrix coordinate real general\n3 3 7\n1 1 4\n2 2 3\n3 3 5\n1 2 1\n2 1 1\n2 3 1\n3 2 1\n";
const B: &str = "%%MatrixMarket matrix array real general\n3 1\n5\n5\n6\n";

impl Bench {
    /// Runs with the given bytes on standard input.
    fn fed(&self, args: &str, bytes: &[u8]) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        // The command may end before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(bytes);
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert!(!ran.err.contains("panicked"), "{args}: {}", ran.err);
        ran
    }
}

/// Whether a text has only characters that a terminal shows.
fn is_clean(text: &str) -> bool {
    lacuna::backend::text::printable(text) == text
}

/// A tar archive of these files.
fn tar(files: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (path, text) in files {
        let mut header = [0u8; 512];
        let mut field = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        field(0, path);
        field(100, "0000644\0");
        field(124, &format!("{:011o} ", text.len()));
        field(148, "        ");
        field(156, "0");
        field(257, "ustar\x0000");
        let sum: u32 = header.iter().map(|&b| u32::from(b)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes.extend(header);
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.extend([0; 1024]);
    bytes
}

#[test]
fn standard_input_is_a_file() {
    let bench = Bench::new();
    bench.file("a.mtx", A).file("b.mtx", B);
    let names = if cfg!(unix) { &["-", "/dev/stdin"][..] } else { &["-"] };
    for name in names {
        for args in ["solve", "info", "spmv --format csr --rounds 1"] {
            let ran = bench.fed(&format!("{args} {name}"), A.as_bytes());
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args} {name}");
        }
        for args in [format!("solve a.mtx --rhs {name}"), format!("solve a.mtx --rhs b.mtx --x0 {name}")] {
            assert_eq!(bench.fed(&args, B.as_bytes()).code, 0, "{args}");
        }
        let ran = bench.fed(&format!("compare {name} --types f64,f32 --methods cg --rounds 1"), A.as_bytes());
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.contains("f64") && ran.out.contains("f32"), "{}", ran.out);
        let ran = bench.fed(&format!("solve {name} --rhs {name}"), A.as_bytes());
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains("it can be read only once"), "{}", ran.err);
    }
    let ran = bench.fed("info -", A.replace("2 2 3", "2 2 x").as_bytes());
    assert_eq!((ran.code, ran.err.contains("standard input:4:5: the value")), (2, true), "{}", ran.err);
}

#[cfg(unix)]
#[test]
fn named_pipes_are_files() {
    let bench = Bench::new();
    bench.file("a.mtx", A).file("b.mtx", B);
    // A matrix longer than the buffer of a pipe and than the part read as a header; its writer starts the
    // next pipe only after this one has been read.
    let n = 200_000;
    let long: String = (1..=n).map(|i| format!("{i} {i} 2\n")).collect();
    let long = format!("%%MatrixMarket matrix coordinate real general\n{n} {n} {n}\n{long}");
    let b: String = format!("%%MatrixMarket matrix array real general\n{n} 1\n") + &"4\n".repeat(n);
    let pipe = |name: &str| {
        let made = std::process::Command::new("mkfifo").arg(bench.path(name)).status().unwrap();
        assert!(made.success());
    };
    ["p", "q", "r"].iter().for_each(|name| pipe(name));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for (name, text) in [("p", &long), ("q", &b), ("r", &b)] {
                std::fs::write(bench.path(name), text).unwrap();
            }
        });
        let (code, json) = bench.solve("p --rhs q --x0 r");
        assert_eq!((code, &json["n"]), (0, &n.into()), "{json}");
        writer.join().unwrap();
    });
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| std::fs::write(bench.path("p"), A).unwrap());
        assert!(bench.refused("solve p --rhs p").contains("it can be read only once"));
        writer.join().unwrap();
    });
}

#[test]
fn standard_output_is_a_file() {
    let bench = Bench::new();
    bench.file("a.mtx", A).file("b.mtx", B);
    let ran = bench.run("solve a.mtx --rhs b.mtx --output -");
    assert!(
        ran.code == 0 && ran.out.starts_with("%%MatrixMarket matrix array real general\n3 1\n"),
        "{}",
        ran.out
    );
    assert!(ran.err.contains("converged") && !ran.out.contains("converged"), "{}", ran.err);
    assert_eq!(bench.fed("solve a.mtx --rhs - --quiet --output -", ran.out.as_bytes()).err, "");
    for args in ["solve a.mtx --output - --json -", "compare a.mtx --json - --html -"] {
        assert!(bench.refused(args).contains("only one of them can go to standard output"), "{args}");
    }
    let few = "compare a.mtx --backends cpu --methods cg --rounds 1";
    let kept = bench.run(&format!("{few} --json -"));
    assert!(kept.code == 0 && kept.out.lines().all(|line| line.starts_with('{')), "{}", kept.out);
    let page = bench.fed(&format!("{few} --peers - --html -"), kept.out.as_bytes());
    assert!(page.code == 0 && page.out.starts_with("<!"), "{}{}", page.out, page.err);
    assert!(bench.run(&format!("{few} --html -")).out.starts_with("<!"));
    assert!(!bench.path("-").exists());
}

#[test]
fn an_archive_brings_its_right_hand_side() {
    let bench = Bench::new();
    let archive = tar(&[("n/n.mtx", A), ("n/n_b.mtx", B)]);
    std::fs::write(bench.path("n.tar"), &archive).unwrap();
    let ran = bench.run("solve n.tar --output x.mtx --json j");
    assert_eq!((ran.code, ran.err.as_str()), (0, "note: the right-hand side is n.tar:n/n_b.mtx\n"));
    let x = std::fs::read_to_string(bench.path("x.mtx")).unwrap();
    assert!(x.lines().skip(2).all(|line| (line.parse::<f64>().unwrap() - 1.0).abs() < 1e-6), "{x}");
    let json = std::fs::read_to_string(bench.path("j")).unwrap();
    assert!(json.contains("the right-hand side is n.tar:n/n_b.mtx"), "{json}");
    assert_eq!(bench.run("solve n.tar --rhs ones").err, "");
    assert_eq!(bench.run("solve n.tar --rhs n.tar --x0 n.tar").code, 0);
    assert!(bench.fed("solve -", &archive).err.contains("the right-hand side is standard input:n/n_b.mtx"));
    assert_eq!(bench.run("compare n.tar --types f64,f32 --methods cg --rounds 1").code, 0);
    // A file with several columns is not a right-hand side.
    let wide = "%%MatrixMarket matrix array real general\n3 2\n1\n1\n1\n1\n1\n1\n";
    std::fs::write(bench.path("w.tar"), tar(&[("n/n.mtx", A), ("n/n_b.mtx", wide)])).unwrap();
    assert!(bench.run("solve w.tar").err.contains("it is 3x2; b is ones"));
}

#[test]
fn nothing_strange_reaches_the_terminal() {
    let bench = Bench::new().with_spd();
    let strange = "\u{1B}[31m\u{9B}\u{202E}\u{200B}\u{7}x";
    bench.file("line.mtx", &A.replace("1 2 1", &format!("1 2 {strange}")));
    bench.file("b.mtx", &B.replace("6", strange)).file("kept.json", strange);
    let name = |args: &str| {
        let mut command = bench.command("");
        command.args(args.split(' ').map(|word| word.replace("NAME", &format!("{strange}.mtx"))));
        Ran::from(command.output().unwrap())
    };
    bench.file(&format!("{strange}.mtx"), A);
    for (args, code) in [
        ("info line.mtx", 2),
        ("solve a.mtx --rhs b.mtx", 2),
        ("compare a.mtx --peers kept.json", 2),
        ("info NAME", 0),
        ("info NAME --json -", 0),
        ("info NAME --plot p.svg", 0),
        ("info noNAME", 2),
        ("solve NAME", 0),
        ("solve a.mtx --rhs NAME", 2),
        ("solve a.mtx NAME", 2),
        ("solve a.mtx --method NAME", 2),
        ("solve a.mtx --output no/NAME", 2),
        ("solve gen:NAME", 2),
        ("spmv NAME --format csr --rounds 1 --json -", 0),
        ("compare NAME --backends cpu --methods cg --rounds 1 --json -", 0),
        ("generate gen:poisson1d:3 --output NAME", 0),
        ("NAME", 2),
    ] {
        let ran = name(args);
        assert_eq!(ran.code, code, "{args}: {}", ran.err);
        assert!(is_clean(&ran.out) && is_clean(&ran.err), "{args}: {:?}", ran.out + &ran.err);
    }
}

#[test]
fn numbers_that_the_type_does_not_hold_are_reported() {
    let bench = Bench::new();
    bench.matrix("a.mtx", 2, 2, &["1 1 1e-50", "2 2 1"]).matrix("i.mtx", 2, 2, &["1 1 1", "2 2 1"]);
    bench.file("b.mtx", "%%MatrixMarket matrix array real general\n2 1\n1e-50\n1\n");
    bench.file("n.mtx", "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 9007199254740993\n");
    let message = bench.run("solve a.mtx --type f32").err;
    assert!(
        message.contains("note: a.mtx:3:5: the value 1e-50 is too small for f32 and became 0"),
        "{message}"
    );
    let message = bench.run("solve i.mtx --rhs b.mtx --type f32").err;
    assert!(
        message.contains("note: b.mtx:3:1: the value 1e-50 is too small for f32 and became 0"),
        "{message}"
    );
    assert_eq!(bench.run("solve i.mtx --rhs b.mtx").err, "");
    assert!(bench.run("info n.mtx").err.contains("is not exact in f64 and became 9007199254740992"));
    let (_, json) = bench.solve("i.mtx --rhs b.mtx --type f32");
    assert!(json["notes"][0].as_str().is_some_and(|note| note.contains("too small for f32")), "{json}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_fit_is_refused_at_once() {
    let bench = Bench::new();
    let there = lacuna::backend::memory::available().unwrap();
    // A dense matrix of 64-bit numbers with 32-bit columns that needs twice the available memory.
    let n = ((2.0 * there as f64 / 12.0).sqrt() as u64).min(65_000);
    let mut specs = vec!["gen:random:4000000:1000".to_string(), "gen:poisson3d:600x1000x1000".into()];
    specs.push(format!("gen:dense:{n}"));
    for spec in specs.iter().filter(|_| there < 36 << 30) {
        for args in ["solve", "info"] {
            let begun = std::time::Instant::now();
            let ran = bench.run(&format!("{args} {spec}"));
            assert_eq!(ran.code, 3, "{args} {spec}: {}", ran.err);
            assert!(
                ran.err.contains("out of memory on the host") && ran.err.contains(" free"),
                "{}",
                ran.err
            );
            assert!(begun.elapsed().as_secs() < 5, "{spec}");
        }
    }
}

#[test]
fn a_dense_row_or_column_takes_no_more_than_csr() {
    let bench = Bench::new();
    let n = 300;
    let diagonal = |i: usize| format!("{i} {i} 9");
    let row = |r: usize| (1..=n).filter(move |&j| j != r).map(move |j| format!("{r} {j} -0.01"));
    let column = |c: usize| (1..=n).filter(move |&i| i != c).map(move |i| format!("{i} {c} -0.02"));
    let systems: [Vec<String>; 6] = [
        row(1).chain(column(1)).collect(),
        row(n).collect(),
        row(n / 2).chain((2..n / 2).map(|i| format!("{i} {} 1", i - 1))).collect(),
        column(1).collect(),
        row(n).chain(row(n - 1)).collect(),
        column(n).chain(row(7)).collect(),
    ];
    for (k, rest) in systems.iter().enumerate() {
        let entries: Vec<String> = (1..=n).map(diagonal).chain(rest.iter().cloned()).collect();
        bench.matrix("a.mtx", n, n, &entries.iter().map(String::as_str).collect::<Vec<_>>());
        let json = bench.run("info a.mtx --quiet --json -").out;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let bytes = |name: &str| {
            let formats = json["formats"].as_array().unwrap();
            formats.iter().find(|f| f["name"] == name).and_then(|f| f["bytes"].as_u64()).unwrap()
        };
        let chosen = json["format"]["name"].as_str().unwrap();
        assert!(bytes(chosen) <= bytes("csr"), "{k}: {chosen}");
    }
    for (rows, cols) in [(0, 0), (3, 3), (2, 5)] {
        bench.matrix("a.mtx", rows, cols, &[]);
        assert!(bench.run("info a.mtx").out.contains("  format      csr"), "{rows}x{cols}");
    }
}

#[test]
fn what_a_file_holds_and_is_not_used_is_told() {
    use lacuna::io::petsc::{encode_matrix, encode_vector};
    let bench = Bench::new();
    let a = lacuna::Csr::<f64>::identity(3).unwrap();
    let mut bytes = Vec::new();
    encode_matrix(&mut bytes, &a).unwrap();
    encode_vector(&mut bytes, &[1.0; 4]).unwrap();
    encode_matrix(&mut bytes, &a).unwrap();
    std::fs::write(bench.path("m.petsc"), &bytes).unwrap();
    let ran = bench.run("solve m.petsc --json j");
    assert_eq!(ran.code, 0, "{}", ran.err);
    for said in [
        "note: not used of m.petsc: object 3, a matrix of 3 x 3",
        "is not used as right-hand side, since it is 4x1 and the matrix has 3 rows; b is ones",
    ] {
        assert_eq!(ran.err.matches(said).count(), 1, "{}", ran.err);
        let json = std::fs::read_to_string(bench.path("j")).unwrap();
        assert!(json.contains(said.trim_start_matches("note: ")), "{json}");
    }
}
