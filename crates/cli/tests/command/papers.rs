//! Every command of the page on the five papers runs, and the papers show what they list. Commands of the page that
//! measure times run with `LACUNA_PAPERS=all` alone (`.ci/full`).
use crate::Bench;
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Mutex;

const PAGE: &str = include_str!("../../../../docs/theory/papers.md");

/// Whether everything is to run.
fn all() -> bool {
    std::env::var("LACUNA_PAPERS").is_ok_and(|papers| papers == "all")
}

/// The rows of the page: number, and the command if it has one.
fn rows() -> Vec<(&'static str, Option<&'static str>)> {
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
    let is_row = |cells: &Vec<&str>| {
        cells.len() == 4 && cells[0].len() > 1 && cells[0].ends_with(|c: char| c.is_ascii_digit())
    };
    let rows = PAGE.lines().filter(|line| line.starts_with("| ")).map(cells).filter(is_row);
    rows.map(|cells| (cells[0], cells[2].strip_prefix('`').and_then(|rest| rest.strip_suffix('`')))).collect()
}

#[test]
fn the_page_has_every_row() {
    let count = |letter: char| rows().iter().filter(|row| row.0.starts_with(letter)).count();
    assert_eq!(['J', 'W', 'C', 'R', 'B'].map(count), [26, 20, 30, 32, 34]);
    let without: Vec<_> = rows().into_iter().filter(|row| row.1.is_none()).map(|row| row.0).collect();
    assert!(without.len() < 50, "{without:?}");
}

#[test]
fn its_commands_run() {
    let bench = Bench::new();
    bench.columns("B.npy", 36, &[1.0; 72]);
    // Those of `papers` are run below.
    let commands: BTreeSet<_> = rows().into_iter().filter_map(|row| row.1).collect();
    let measures = |command: &str| {
        ["lacuna compare ", "lacuna spmv ", "lacuna advise "].iter().any(|start| command.starts_with(start))
    };
    let runs = |command: &&&str| !command.starts_with("lacuna papers ") && (all() || !measures(command));
    let short: Vec<_> = commands.iter().filter(runs).copied().collect();
    assert!(short.len() > 35, "{}", short.len());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for part in short.chunks(short.len().div_ceil(2)) {
            let (bench, failed) = (&bench, &failed);
            scope.spawn(move || {
                for command in part {
                    let args = command.strip_prefix("lacuna ").unwrap();
                    let ran = bench.run(args);
                    // A limit that is asked for is met.
                    let allowed = if command.contains("--max-iters") { 1 } else { 0 };
                    if !(0..=allowed).contains(&ran.code) {
                        failed
                            .lock()
                            .unwrap()
                            .push(format!("{command}: {}\n{}{}", ran.code, ran.out, ran.err));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Runs a paper in its small form; returns what it prints.
fn shown(name: &str) -> String {
    let bench = Bench::new();
    let ran = bench
        .run(&format!("papers {name} --small --rounds 1 --backends cpu --figures drawn --json kept.jsonl"));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{name}: {}", ran.out);
    assert!(!ran.out.contains("NaN") && !ran.out.contains("inf "), "{name}: {}", ran.out);
    assert!(ran.out.contains("Not shown. "), "{name}: {}", ran.out);
    let drawn = std::fs::read_dir(bench.path("drawn")).unwrap().count();
    assert!(drawn >= 1, "{name} has no figure");
    ran.out
}

/// The cells of the rows of a table that begin with some words.
fn cells(text: &str, title: &str, first: &str) -> Vec<Vec<String>> {
    let table = text.split(title).nth(1).unwrap_or_else(|| panic!("no {title} in {text}"));
    let table = table.split("\n\n").nth(1).unwrap_or_default();
    let rows = table.lines().filter(|line| line.starts_with(&format!("| {first}")));
    rows.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect()).collect()
}

#[test]
fn jost_converges_in_single_precision() {
    let text = shown("jost");
    for row in cells(&text, "Figures 1 and 2", "1") {
        for error in [3, 5, 7, 9].map(|k| row[k].parse::<f64>().unwrap()) {
            assert!(error < 1e-4, "{row:?}");
        }
    }
    // Jacobi's iteration does not converge on Wathen's matrix.
    let row = &cells(&text, "Table 1:", "wathen:10x10")[0];
    assert!(row[2].parse::<f64>().unwrap() < 1e-4 && row[3] == "-", "{row:?}");
}

#[test]
fn wang_gains_by_the_order() {
    let text = shown("wang");
    let of = |precond: &str| cells(&text, "Figure 3:", precond)[0][2].parse::<u32>().unwrap();
    assert!(of("block-ilu:size=32,order=8") < of("block-ilu:size=32,order=0"), "{text}");
    let row = &cells(&text, "Table 1:", "Sample 1")[0];
    assert!(row[9].parse::<f64>().unwrap() < 0.1, "{row:?}");
}

#[test]
fn buatois_rupp_and_bell_are_shown() {
    assert!(cells(&shown("buatois"), "Figure 9:", "cross-diffusion")[0].len() == 11);
    let text = shown("rupp");
    let row = &cells(&text, "Tables I and II", "cant")[0];
    assert!(row[3].parse::<f64>().unwrap() < 1e-6, "{row:?}");
    assert_eq!(cells(&shown("bell"), "Table 1:", "dia").len(), 1);
}

#[test]
fn a_paper_that_is_unknown_is_refused() {
    assert_eq!(
        Command::new(crate::BINARY).args(["papers", "nobody"]).output().unwrap().status.code(),
        Some(2)
    );
}
