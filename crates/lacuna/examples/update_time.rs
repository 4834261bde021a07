//! What new values on the same pattern cost beside a set-up, and the iterations after the last, on the CPU:
//! `cargo run --release -p lacuna-sparse --example update_time [MATRIX [PRECONDITIONER...]]`.
//!
//! The new values scale row and column `i` by `1 + i mod 7 / 100`. Times are the least of five.
use lacuna::prelude::*;
use std::time::Instant;

const RUNS: usize = 5;

/// `A` with new values.
fn changed(a: &Csr<f64>, turn: usize) -> Result<Vec<f64>> {
    let scale = |i: usize| 1.0 + ((i + turn) % 7) as f64 / 100.0;
    Ok(a.entries().map(|(i, j, v)| v * (scale(i) * scale(j))).collect())
}

fn least(times: impl IntoIterator<Item = f64>) -> f64 {
    times.into_iter().fold(f64::INFINITY, f64::min)
}

fn main() -> Result<()> {
    let mut given = std::env::args().skip(1);
    let matrix = given.next().unwrap_or_else(|| "gen:poisson-p1:511".into());
    let mut names: Vec<String> = given.collect();
    if names.is_empty() {
        names = ["amg", "ic0", "fsai", "block-jacobi"].map(String::from).to_vec();
    }
    let a = lacuna::io::open::<f64>(&matrix, &Default::default())?;
    println!("{matrix}: {} rows, {} entries", a.rows(), a.nnz());
    println!("{:<24}{:>10}{:>12}{:>12}{:>8}", "preconditioner", "set-up", "first new", "new values", "ratio");
    for name in names {
        let prepare = || LinearSystem::new(a.clone()).method("cg").preconditioner(&name).prepare();
        let (mut setups, mut firsts, mut others, mut iterations) = (vec![], vec![], vec![], 0);
        for _ in 0..RUNS {
            let start = Instant::now();
            let mut system = prepare()?;
            setups.push(start.elapsed().as_secs_f64());
            for turn in 0..3 {
                let values = changed(&a, turn)?;
                let start = Instant::now();
                system.update_values(&values)?;
                let took = start.elapsed().as_secs_f64();
                if turn == 0 { &mut firsts } else { &mut others }.push(took);
            }
            iterations = system.solve(&Array1::ones(a.rows()))?.1.iterations;
        }
        let [setup, first, other] = [setups, firsts, others].map(least);
        println!(
            "{name:<24}{:>7.1} ms{:>9.1} ms{:>9.1} ms{:>8.2}  {iterations} iterations",
            1e3 * setup,
            1e3 * first,
            1e3 * other,
            other / setup
        );
    }
    Ok(())
}
