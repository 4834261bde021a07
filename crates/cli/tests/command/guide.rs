//! Runs every line of every shell block of the guide, in a folder with files of the names used there.
use crate::Bench;
use std::path::Path;
use std::process::Command;

/// Shortens commands of the guide: words in them, and their replacements.
const SHORTER: [(&str, &str); 5] = [
    ("gen:poisson3d:100x100x100", "gen:poisson3d:9x9x9"),
    ("--backends cuda,opencl,opencl:1,cpu", "gen:poisson2d:9x9 --backends cpu"),
    ("--peers target/peers/peers.jsonl", "gen:poisson2d:9x9 --peers peers.jsonl"),
    // A few rows are not divided.
    ("A.mtx --ranks", "gen:poisson2d:40x40 --ranks"),
    ("lacuna compare", "lacuna compare --rounds 1 --time-limit 1"),
];

/// The lines of the shell blocks of a page, without their comments. Those marked `bash` are of the bindings, whose own tests run them.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("\n```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let lines = blocks.flat_map(str::lines).map(|line| line.split(" # ").next().unwrap_or("").trim());
    lines.filter(|line| !line.is_empty()).map(String::from).collect()
}

fn with_files() -> Bench {
    let bench = Bench::new();
    let entries = ["1 1 4", "2 2 3", "3 3 5", "1 2 1", "2 1 1", "2 3 1", "3 2 1"];
    bench.matrix("A.mtx", 3, 3, &entries).matrix("B.mtx", 3, 3, &entries);
    bench.vector("b.mtx", &[5.0, 5.0, 6.0]);
    bench.columns("B.npy", 3, &[5.0, 5.0, 6.0, 1.0, 0.0, 2.0]);
    for (file, by) in [("K.mtx", 3), ("M.mtx", 1)] {
        let entries: Vec<String> = (1..=12).map(|i| format!("{i} {i} {}", by * i + 1)).collect();
        bench.matrix(file, 12, 12, &entries.iter().map(String::as_str).collect::<Vec<_>>());
    }
    bench.matrix("tall.mtx", 3, 2, &["1 1 1", "2 2 2", "3 1 1", "3 2 1"]);
    bench.matrix("wide.mtx", 2, 3, &["1 1 1", "2 2 2", "1 3 1"]);
    let problem = Path::new(env!("CARGO_MANIFEST_DIR")).join("../io/tests/files/problem.mat");
    std::fs::copy(problem, bench.path("Problem.mat")).unwrap();
    let peer = r#"{"kind":"peer","peer":"quick","method":"spmv","matrix":"gen:poisson2d:9x9","type":"f64","n":81,"fresh_us":1,"again_us":1}"#;
    bench.file("peers.jsonl", peer);
    let packed = "gzip -k A.mtx && mkdir bcsstk01 && cp A.mtx bcsstk01/bcsstk01.mtx && tar czf bcsstk01.tar.gz bcsstk01";
    let status = Command::new("sh").args(["-c", packed]).current_dir(bench.path("")).status();
    assert!(status.unwrap().success());
    bench
}

#[test]
fn its_commands_run() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let binary = Path::new(crate::BINARY).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let bench = with_files();
    let mut pages: Vec<_> = std::fs::read_dir(guide).unwrap().map(|page| page.unwrap().path()).collect();
    pages.sort();
    let mut ran = 0;
    for page in pages {
        for written in commands(&std::fs::read_to_string(&page).unwrap()) {
            assert!(written.contains("lacuna "), "{}: {written}", page.display());
            let shorter = |command: String, (from, to): (&str, &str)| command.replacen(from, to, 1);
            let command = SHORTER.into_iter().fold(written.clone(), shorter);
            let mut shell = Command::new("sh");
            shell.args(["-c", &command]).current_dir(bench.path("")).env("PATH", &path);
            shell.env("LACUNA_CACHE", bench.path("cache")).env_remove("LACUNA_COMMIT");
            let done = shell.output().unwrap();
            let errors = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{written}: {}, {errors}", done.status);
            ran += 1;
        }
    }
    assert!(ran >= 20, "{ran}");
}

/// The options named in the guide are accepted by the command.
#[test]
fn the_guide_names_what_there_is() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let (bench, mut tried) = (Bench::new(), 0);
    for page in ["coming-from.md", "converge.md"] {
        let text = std::fs::read_to_string(guide.join(page)).unwrap();
        for options in
            text.split('`').filter(|words| words.starts_with("--method") || words.starts_with("--precond"))
        {
            let ran = bench.run(&format!("solve gen:poisson2d:6x6 {options}"));
            assert!(ran.code < 2, "{page}, {options}: {}", ran.err);
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried}");
}
