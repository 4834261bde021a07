//! The time of one solve with nothing known before, by the automatic choice and by fixed ones, on the CPU: a line of JSON for each
//! matrix, with the seconds of each choice from a matrix in memory to a solution whose true residual is 1e-8, the least of several
//! rounds in which the choices take turns; and what was chosen, with the seconds of the parts of its set-up.
//!
//! `cargo run --release -p lacuna-sparse --example first_time -- [--auto] MATRIX...` with `--auto` for that choice alone. The
//! right-hand side of `A.mtx` is `A_b.mtx` beside it, else ones.
use lacuna::prelude::*;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 5;
/// Seconds of a matrix after which there is no other round.
const LONG: f64 = 1.5;
/// A choice that takes this many times as long as the best so far is given up.
const HOPELESS: f64 = 4.0;
const SOLVED: f64 = 1.01e-8;

struct Solved {
    seconds: f64,
    set_up: f64,
    told: String,
}

/// One solve, if it converges.
fn solved(a: &Arc<Csr<f64>>, b: &[f64], method: &str, preconditioner: &str) -> Option<Solved> {
    let mut x = vec![0.0; a.cols()];
    let start = Instant::now();
    let system = LinearSystem::new(a.clone()).method(method).preconditioner(preconditioner);
    let mut system = system.prepare().ok()?;
    let set_up = start.elapsed().as_secs_f64();
    let outcome = system.solve_into(b, &mut x).ok()?.clone();
    let seconds = start.elapsed().as_secs_f64();
    let told =
        outcome.choices.iter().take(2).map(|line| line.split(':').next().unwrap_or(line)).collect::<Vec<_>>();
    let parts =
        system.setup_parts().iter().map(|(part, took)| format!("{part} {:.3}", 1e3 * took.as_secs_f64()));
    let told = format!(
        "{}; {} iterations; {}",
        told.join(", "),
        outcome.iterations,
        parts.collect::<Vec<_>>().join(", ")
    );
    (outcome.true_residual <= SOLVED).then_some(Solved { seconds, set_up, told })
}

fn main() -> Result<()> {
    let mut matrices: Vec<String> = std::env::args().skip(1).collect();
    let automatic = matrices.first().is_some_and(|word| word == "--auto");
    if automatic {
        matrices.remove(0);
    }
    for matrix in matrices {
        let a = Arc::new(lacuna::io::open::<f64>(&matrix, &Default::default())?);
        let side = matrix.replace(".mtx", "_b.mtx");
        let b = match side != matrix && Path::new(&side).exists() {
            true => lacuna::io::read_vector(&side, &Default::default())?,
            false => vec![1.0; a.rows()],
        };
        let s = Structure::of(&a);
        let mut choices = vec![("auto", "auto")];
        if !automatic {
            choices.push(("direct", "auto"));
            let general = [
                ("bicgstab", "jacobi"),
                ("bicgstab", "ilu0"),
                ("idr", "jacobi"),
                ("idr", "none"),
                ("idr", "ilu0"),
            ];
            let hermitian =
                [("cg", "jacobi"), ("cg", "ic0"), ("cg", "ssor"), ("cg", "amg"), ("minres", "none")];
            choices.extend(general.into_iter().filter(|_| !s.hermitian));
            choices.extend(hermitian.into_iter().filter(|_| s.hermitian));
        }
        let mut least: Vec<Option<Solved>> = choices.iter().map(|_| None).collect();
        let (mut best, begun) = (f64::INFINITY, Instant::now());
        for round in 0..ROUNDS {
            for ((method, preconditioner), least) in choices.iter().zip(&mut least) {
                let hopeless = least.as_ref().is_none_or(|l: &Solved| l.seconds > HOPELESS * best);
                if round > 0 && hopeless && *method != "auto" {
                    continue;
                }
                if let Some(took) = solved(&a, &b, method, preconditioner) {
                    best = best.min(took.seconds);
                    if least.as_ref().is_none_or(|least| took.seconds < least.seconds) {
                        *least = Some(took);
                    }
                }
            }
            if begun.elapsed().as_secs_f64() > LONG {
                break;
            }
        }
        let name = matrix.rsplit('/').next().unwrap_or(&matrix).trim_end_matches(".mtx");
        let times = choices.iter().zip(&least).filter_map(|((method, preconditioner), least)| {
            least.as_ref().map(|l| format!("\"{method}+{preconditioner}\":{:.3e}", l.seconds))
        });
        let of_auto = least.first().and_then(Option::as_ref);
        println!(
            "{{\"name\":\"{name}\",\"n\":{},\"nnz\":{},\"times\":{{{}}},\"set_up\":{:.3e},\"told\":{:?}}}",
            a.rows(),
            a.nnz(),
            times.collect::<Vec<_>>().join(","),
            of_auto.map_or(f64::NAN, |l| l.set_up),
            of_auto.map_or("", |l| &l.told)
        );
    }
    Ok(())
}
