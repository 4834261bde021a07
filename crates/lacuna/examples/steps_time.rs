//! A hundred time steps, each with another right-hand side and new values on the same pattern, by the automatic choice and by
//! fixed ones, on the CPU: `cargo run --release -p lacuna-sparse --example steps_time [MATRIX...]`.
//!
//! The values of a step scale row and column `i` by `1 + (i + step) mod 7 / 100`. The first solve, with the set-up, is not counted:
//! it stands apart. Times are the least of three rounds, in which the choices take turns.
use lacuna::prelude::*;
use std::time::Instant;

const ROUNDS: usize = 3;
const STEPS: usize = 100;
/// A choice that takes this many times as long as the best so far is given up.
const HOPELESS: f64 = 4.0;

/// Seconds of the first solve and of all steps after it; `None` if a solve does not converge, or if it takes longer than a limit.
fn stepped(a: &Csr<f64>, method: &str, preconditioner: &str, limit: f64) -> Option<[f64; 2]> {
    let scale = |i: usize, step: usize| 1.0 + ((i + step) % 7) as f64 / 100.0;
    let values =
        |step| -> Vec<f64> { a.entries().map(|(i, j, v)| v * (scale(i, step) * scale(j, step))).collect() };
    let b = |step| -> Vec<f64> { (0..a.rows()).map(|i| scale(i * i, step)).collect() };
    let mut x = vec![0.0; a.rows()];
    let start = Instant::now();
    let system = LinearSystem::new(a.clone()).method(method).preconditioner(preconditioner);
    let mut system = system.prepare().ok()?;
    let mut solve = |system: &mut Prepared<f64>, step| {
        system.solve_into(&b(step), &mut x).is_ok_and(|outcome| outcome.converged())
    };
    if !solve(&mut system, 0) {
        return None;
    }
    let (first, mut steps) = (start.elapsed().as_secs_f64(), 0.0);
    for step in 1..=STEPS {
        let values = values(step);
        let start = Instant::now();
        if system.update_values(&values).is_err() || !solve(&mut system, step) {
            return None;
        }
        steps += start.elapsed().as_secs_f64();
        if steps > limit {
            return None;
        }
    }
    Some([first, steps])
}

fn main() -> Result<()> {
    let mut matrices: Vec<String> = std::env::args().skip(1).collect();
    if matrices.is_empty() {
        matrices = ["gen:poisson-p1:127", "gen:convection:150x150:40"].map(String::from).to_vec();
    }
    println!(
        "{:<28}{:<12}{:<14}{:>12}{:>16}{:>8}",
        "matrix", "method", "preconditioner", "first", "a step", "ratio"
    );
    for matrix in matrices {
        let a = lacuna::io::open::<f64>(&matrix, &Default::default())?;
        let symmetric = Structure::of(&a).hermitian;
        let method = if symmetric { "cg" } else { "bicgstab" };
        let incomplete = if symmetric { "ic0" } else { "ilu0" };
        let mut choices = vec![("auto", "auto"), ("direct", "auto")];
        choices.extend(["none", "jacobi", incomplete, "fsai", "amg"].map(|name| (method, name)));
        let mut times = vec![None::<[f64; 2]>; choices.len()];
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            for ((method, preconditioner), least) in choices.iter().zip(&mut times) {
                let limit = HOPELESS * best;
                if let Some(took) = stepped(&a, method, preconditioner, limit) {
                    let before = least.unwrap_or([f64::INFINITY; 2]);
                    *least = Some([before[0].min(took[0]), before[1].min(took[1])]);
                    best = best.min(took[1]);
                }
            }
        }
        for ((method, preconditioner), took) in choices.iter().zip(times) {
            print!("{matrix:<28}{method:<12}{preconditioner:<14}");
            match took {
                Some([first, steps]) => println!(
                    "{:>9.2} ms{:>13.3} ms{:>8.2}",
                    1e3 * first,
                    1e3 * steps / STEPS as f64,
                    steps / best
                ),
                None => println!("{:>12}", "not converged, or given up"),
            }
        }
    }
    Ok(())
}
