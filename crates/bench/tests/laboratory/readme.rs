//! Runs every line of the shell blocks of README.md, in a folder with files of the names used there.
use crate::{Bench, solve};
use std::path::Path;
use std::process::Command;

/// Shortens commands: words in them, and their replacements.
const SHORTER: [(&str, &str); 1] =
    [("lacuna-bench run", "lacuna-bench run --small --rounds 1 --time-limit 3 --backends cpu")];

#[test]
fn its_commands_run() {
    let bench = Bench::new();
    for name in ["a.jsonl", "b.jsonl", "kept.jsonl", "peers.jsonl"] {
        bench.file(name, &solve("gen:poisson2d:9x9", ["cg", "none", "csr", "30 iterations"], 1.0));
    }
    let binary = Path::new(crate::BINARY).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let page = include_str!("../../README.md");
    let blocks = page.split("\n```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let mut ran = 0;
    for line in blocks.flat_map(str::lines).filter(|line| !line.is_empty()) {
        assert!(line.starts_with("lacuna-bench "), "{line}");
        let shorter = |command: String, (from, to): (&str, &str)| command.replacen(from, to, 1);
        let command = SHORTER.into_iter().fold(line.to_string(), shorter);
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(bench.path("")).env("PATH", &path);
        shell.env("LACUNA_CACHE", bench.path("cache")).env_remove("LACUNA_COMMIT");
        let done = shell.output().unwrap();
        // Exit code 1 means that something is slower than before.
        let slower = done.status.code() == Some(1) && line.contains("--against");
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() || slower, "{line}: {}, {errors}", done.status);
        ran += 1;
    }
    assert!(ran >= 4, "{ran}");
}
