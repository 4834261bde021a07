//! Real matrices, from the folder that `LACUNA_MATRICES` names: Jacobi-CG in f64 on symmetric positive
//! definite ones, GMRES with incomplete factorisations on general ones.
use lacuna_cpu::Cpu;
use lacuna_engine::{Device, Reason};
use lacuna_formats::{Csr, Triplets};
use lacuna_solvers::{Jacobi, Options, Outcome, Placed, Setup, Solver, Stop, method, preconditioner};
use lacuna_tests::{available, loudly};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Symmetric positive definite with a condition estimate below 1e10.
const POSITIVE_DEFINITE: [&str; 25] = [
    "bcsstk01",
    "bcsstk02",
    "lund_a",
    "bcsstk05",
    "nos1",
    "pyamg_airfoil",
    "mhdb416",
    "494_bus",
    "pyamg_bar",
    "msc00726",
    "nos7",
    "gr_30_30",
    "nos3",
    "bcsstk09",
    "1138_bus",
    "vem1",
    "Trefethen_2000",
    "bcsstk15",
    "bcsstk16",
    "wathenSmall",
    "bcsstm25",
    "bodyy5",
    "wathen100",
    // Positive definite according to their collection, without an estimate.
    "Trefethen_20000",
    "G2_circuit",
];
/// Not positive definite, with a nonzero diagonal: the reason must say so.
const INDEFINITE: [&str; 3] = ["sherman1", "spe10_layer50_dirichlet", "Si2"];

fn folder() -> Option<PathBuf> {
    match std::env::var_os("LACUNA_MATRICES") {
        Some(folder) => Some(folder.into()),
        None => {
            loudly("SKIPPED: real matrices, because LACUNA_MATRICES names no folder with them");
            None
        }
    }
}

/// Reads a coordinate file in the simplest way, independent of the library's reader.
fn read(path: &Path) -> Csr<f64> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let symmetric = text.lines().next().is_some_and(|banner| banner.contains("symmetric"));
    let mut lines = text.lines().filter(|line| !line.starts_with('%') && !line.trim().is_empty());
    let numbers = |line: &str| line.split_whitespace().map(|w| w.parse::<f64>().unwrap()).collect::<Vec<_>>();
    let size = numbers(lines.next().unwrap());
    let mut entries = Triplets::new(size[0] as usize, size[1] as usize);
    for line in lines {
        let entry = numbers(line);
        let (i, j) = (entry[0] as usize - 1, entry[1] as usize - 1);
        entries.push(i, j, entry[2]);
        if symmetric && i != j {
            entries.push(j, i, entry[2]);
        }
    }
    entries.to_csr().unwrap()
}

/// The right-hand side of the solution 1, 2, … 7, 1, 2, …
fn right_hand_side(a: &Csr<f64>) -> Vec<f64> {
    let x: Vec<f64> = (0..a.cols()).map(|i| (i % 7 + 1) as f64).collect();
    let mut b = vec![0.0; a.rows()];
    a.product(&x, &mut b).unwrap();
    b
}

/// `‖b − A x‖ / ‖b‖`, computed here.
fn true_residual(a: &Csr<f64>, b: &[f64], x: &[f64]) -> f64 {
    let (mut rr, mut bb) = (0.0, 0.0);
    for (i, b) in b.iter().enumerate() {
        let ax: f64 = a.row_entries(i).map(|(j, v)| v * x[j]).sum();
        rr += (b - ax) * (b - ax);
        bb += b * b;
    }
    (rr / bb).sqrt()
}

fn solve(a: &Csr<f64>, name: &str, stop: Stop) -> (Outcome, Vec<f64>) {
    let dev = Device::new(Cpu::new().unwrap());
    let operator = dev.matrix(Arc::new(a.clone())).unwrap();
    let diagonal = Placed::new(&dev, Box::new(Jacobi), a, *operator, Setup::new()).unwrap();
    let method = method(name, &Options::default()).unwrap();
    let mut solver = Solver::new(&dev, &operator, Some(&diagonal), &*method, stop).unwrap();
    let mut x = vec![0.0; a.rows()];
    let outcome = solver.solve(&right_hand_side(a), &mut x).unwrap().clone();
    (outcome, x)
}

#[test]
fn jacobi_cg_solves_positive_definite_systems() {
    let Some(folder) = folder() else { return };
    if !available("cpu", Cpu::new().err()) {
        return;
    }
    let mut wrong = Vec::new();
    for name in POSITIVE_DEFINITE {
        let a = read(&folder.join(format!("{name}.mtx")));
        let b = right_hand_side(&a);
        for method in ["cg", "classical-cg"] {
            // In exact arithmetic n iterations are enough; rounding delays ill-conditioned systems by a multiple.
            let max_iters = 40 * a.rows() as u64 + 1000;
            let (outcome, x) = solve(&a, method, Stop::default().rtol(1e-6).max_iters(max_iters));
            let checked = true_residual(&a, &b, &x);
            let sum: f64 = x.iter().sum();
            println!(
                "{name:18} {method:12} n {:6} iterations {:6} {:9} residual {:.2e} true {:.2e} checked {checked:.2e} \
                 sum of x {sum:.6e}",
                a.rows(),
                outcome.iterations,
                outcome.reason.name(),
                outcome.residual,
                outcome.true_residual
            );
            // Valid reasons for not converging: the limit above, or a true residual that stopped falling.
            // Claiming that a positive definite operator is indefinite, or a breakdown, is not valid.
            let met = outcome.reason == Reason::Converged && checked <= 1e-6 * (1.0 + 1e-3);
            let honest = matches!(outcome.reason, Reason::Limit | Reason::Stagnated) && checked > 1e-6;
            let reported = (outcome.true_residual - checked).abs() <= 1e-3 * checked;
            if !(met || honest) || !reported {
                wrong.push(
                    format!("{name} by {method}: {outcome:?}, checked {checked:e}").replace("history", "\n"),
                );
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{}",
        wrong.iter().map(|w| w.chars().take(300).collect::<String>()).collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn cg_tells_that_a_matrix_is_not_positive_definite() {
    let Some(folder) = folder() else { return };
    for name in INDEFINITE {
        let a = read(&folder.join(format!("{name}.mtx")));
        for method in ["cg", "classical-cg"] {
            let (outcome, _) = solve(&a, method, Stop::default().rtol(1e-6).max_iters(20_000));
            let reported =
                matches!(outcome.reason, Reason::IndefiniteOperator | Reason::IndefinitePreconditioner);
            assert!(reported, "{name} by {method}: {:?}", outcome.reason);
        }
    }
}

/// Square, not symmetric, with a condition estimate below 1e12 or none.
const GENERAL: [&str; 39] = [
    "pores_1",
    "west0067",
    "rajat11",
    "fs_183_6",
    "impcol_e",
    "pyamg_recirc_flow",
    "e05r0500",
    "utm300",
    "steam2",
    "orsirr_2",
    "cdde1",
    "pyamg_local_disc_galerkin_diffusion",
    "jpwh_991",
    "olm1000",
    "cage8",
    "orsirr_1",
    "sherman4",
    "gre_1107",
    "rajat19",
    "cavity05",
    "epb0",
    "tols2000",
    "dw2048",
    "cavity10",
    "wang2",
    "pde2961",
    "ani4",
    "raefsky1",
    "raefsky2",
    "sherman5",
    "faer_YAO",
    "add32",
    "utm5940",
    "ex40",
    "dw8192",
    "cage10",
    "trilinos_nsjac",
    "memplus",
    "hypre_tucker21935",
];

/// Number of general systems that a preconditioner solves to 1e-8 under GMRES(50), with a right-hand side of
/// ones.
fn solved_by(folder: &Path, precond: &str) -> usize {
    let mut solved = 0;
    for name in GENERAL {
        let a = read(&folder.join(format!("{name}.mtx")));
        let b = vec![1.0; a.rows()];
        let dev = Device::new(Cpu::new().unwrap());
        let operator = dev.matrix(Arc::new(a.clone())).unwrap();
        let began = std::time::Instant::now();
        let kind = preconditioner(precond).unwrap().unwrap();
        let line = match Placed::new(&dev, kind, &a, *operator, Setup::new()) {
            Err(error) => format!("{error}"),
            Ok(m) => {
                let set_up = began.elapsed();
                let method = method("gmres", &Options::default().restart(50)).unwrap();
                let stop = Stop::default().rtol(1e-8).max_iters(1000);
                let mut solver = Solver::new(&dev, &operator, Some(&m), &*method, stop).unwrap();
                let mut x = vec![0.0; a.rows()];
                let outcome = solver.solve(&b, &mut x).unwrap();
                let checked = true_residual(&a, &b, &x);
                assert_eq!(outcome.converged(), checked <= 1.01e-8, "{name}: {outcome:?} {checked:e}");
                solved += usize::from(outcome.converged());
                let (reason, iterations) = (outcome.reason.name(), outcome.iterations);
                let reported = m.report().iter().map(|(_, v)| v.as_str()).collect::<Vec<_>>().join("; ");
                format!(
                    "{reason} {iterations} {checked:.1e}, set-up {set_up:.1?}, solve {:.1?}; {reported}",
                    outcome.time
                )
            }
        };
        println!("{name:20} {precond}: {line}");
    }
    solved
}

#[test]
fn pivoting_solves_general_systems() {
    let Some(folder) = folder() else { return };
    if !available("cpu", Cpu::new().err()) {
        return;
    }
    let solved = ["jacobi", "ilu0", "ilut", "ilut:drop=1e-5,fill=30"].map(|p| solved_by(&folder, p));
    println!("solved of {}: {solved:?}", GENERAL.len());
    assert!(solved[2] >= 35 && solved[3] >= 37, "{solved:?}");
}
