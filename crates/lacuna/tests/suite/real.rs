//! Real matrices from the folder named by `LACUNA_MATRICES`, with every choice automatic: which are solved,
//! and that no outcome claims more than is true.
use lacuna::Complex64;
use lacuna::io::mm;
use lacuna::prelude::*;
use lacuna::solvers::residual_norm;
use std::path::{Path, PathBuf};

/// Matrices with more rows are left out: they take minutes in a test.
const MOST: usize = 30_000;

/// Matrices that may stay unsolved, since they are singular or have a condition number above 1e12. All others
/// must be solved.
const UNSOLVED: [&str; 11] = [
    "PGPgiantcompo",
    "cond-mat-2005",
    "cryg2500",
    "ct2010",
    "dwg961a",
    "fs_183_1",
    "laser",
    "lns_131",
    "rmat_11_lap",
    "west0156",
    "zenios",
];

fn matrices(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "mtx")).collect();
    paths.sort();
    paths
}

/// Solves the system and checks the residual of the vector returned; `None` if the matrix is not for this
/// test.
fn solved<T: Scalar>(path: &Path) -> Option<Outcome> {
    let a: Csr<T> = mm::read_matrix(path, &mm::ReadOptions::default()).unwrap();
    if a.rows() != a.cols() || a.rows() > MOST {
        return None;
    }
    let name = path.file_stem().unwrap().to_str().unwrap();
    let b = path.with_file_name(format!("{name}_b.mtx"));
    let b = if b.exists() { Array1::from(mm::read_vector::<T>(&b).unwrap()) } else { Array1::ones(a.rows()) };
    let stop = Stop::default().rtol(1e-8).max_iters((10 * a.rows() as u64).clamp(1000, 100_000));
    let mut system = LinearSystem::new(a.clone()).stop(stop).prepare().unwrap();
    let (x, outcome) = system.solve(b.view()).unwrap();
    let norm = b.iter().map(|b| b.modulus().powi(2)).sum::<f64>().sqrt();
    let residual = residual_norm(&a, b.as_slice().unwrap(), x.as_slice().unwrap()) / norm;
    assert!(!outcome.converged() || residual <= 1.01e-8, "{name}: {residual:e} {outcome:?}");
    assert!(residual <= 1.0 + 1e-12 && x.iter().all(|x| x.finite()), "{name}: {residual:e} {outcome:?}");
    Some(outcome)
}

#[test]
fn most_are_solved_and_the_rest_is_explained() {
    let Some(folder) = std::env::var_os("LACUNA_MATRICES") else {
        eprintln!("SKIPPED: real matrices, because LACUNA_MATRICES names no folder with them");
        return;
    };
    let mut missing = Vec::new();
    for path in matrices(Path::new(&folder)) {
        let name = path.file_stem().unwrap().to_str().unwrap().to_string();
        if name.ends_with("_b") {
            continue;
        }
        let complex =
            std::fs::read_to_string(&path).unwrap().lines().next().is_some_and(|l| l.contains("complex"));
        let outcome = if complex { solved::<Complex64>(&path) } else { solved::<f64>(&path) };
        let Some(outcome) = outcome else { continue };
        println!("{name}: {} after {} iterations, {:?}", outcome.reason, outcome.iterations, outcome.notes);
        if !outcome.converged() && !UNSOLVED.contains(&name.as_str()) {
            missing.push(format!("{name}: {outcome:?}"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
