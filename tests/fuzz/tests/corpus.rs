//! Every target over its corpus and over changes of it, the same ones each time.
// Its tests run here: the library is compiled once.
#[allow(dead_code, unreachable_pub)]
#[path = "../src/exact.rs"]
mod exact;

use lacuna_fuzz::{Mutator, TARGETS, Target};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Changed inputs of each target. `LACUNA_FUZZ_RUNS` sets another number.
const RUNS: usize = 400;

fn corpus(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.display().to_string(), std::fs::read(&path).unwrap())
        })
        .collect();
    assert!(!files.is_empty(), "{}: no seeds", folder.display());
    files.sort();
    files
}

/// Runs an input; one that breaks a property is kept, with how to run it again.
fn run(target: &Target, name: &str, data: &[u8]) {
    let caught = catch_unwind(AssertUnwindSafe(|| (target.run)(data)));
    if let Err(panic) = caught {
        let kept = std::env::temp_dir().join(format!("lacuna-fuzz-{}", target.name));
        std::fs::write(&kept, data).unwrap();
        eprintln!("{} {name}: the input is in {}", target.name, kept.display());
        std::panic::resume_unwind(panic);
    }
}

fn changes(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let given = std::env::var("LACUNA_FUZZ_RUNS").ok().map(|runs| runs.parse().expect("a number of runs"));
    let files = corpus(target);
    for (file, data) in &files {
        run(target, file, data);
    }
    let seeds: Vec<_> = files.into_iter().map(|(_, data)| data).collect();
    for seed in 0..given.unwrap_or(RUNS) as u64 {
        let data = Mutator::new(seed).changed(&seeds);
        run(target, &format!("change {seed}"), &data);
    }
}

macro_rules! tests {
    ($($name:ident),*) => {$(
        #[test]
        fn $name() {
            changes(stringify!($name));
        }
    )*};
}
lacuna_fuzz::with_targets!(tests);

#[test]
fn every_target_has_a_binary() {
    let manifest = include_str!("../Cargo.toml");
    for target in TARGETS {
        assert!(manifest.contains(&format!("name = \"{}\"", target.name)), "{}", target.name);
    }
}

/// An input that broke a property: `LACUNA_FUZZ_INPUT=TARGET:FILE cargo test -p lacuna-fuzz --test corpus again`.
#[test]
fn again() {
    let Ok(input) = std::env::var("LACUNA_FUZZ_INPUT") else { return };
    let (name, file) = input.split_once(':').expect("TARGET:FILE");
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    run(target, file, &std::fs::read(file).unwrap());
}
