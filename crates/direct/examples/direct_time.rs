//! Times complete factorisations of matrices in files, a line of JSON each: what was predicted, and seconds of the order, the factors
//! and a solve, and of factors of new values in the same order, each the least of several runs; and the bits of the solution, as one number.
//!
//! `cargo run --release -p lacuna-direct --example direct_time -- [KIND] A.mtx ...` with a kind `cholesky`, `symmetric`, `sparse`,
//! `pivoted`; without one, that which is chosen. `RAYON_NUM_THREADS` sets the threads.
use lacuna_direct::{Analysis, Factors, Kind, Limits, Task};
use lacuna_engine::Result;
use lacuna_formats::Csr;
use std::time::Instant;

/// Runs, and seconds after which there is no other.
const RUNS: usize = 5;
const LONG: f64 = 2.0;
const LIMITS: Limits = Limits { bytes: 16e9, operations: 4e11 };

struct Times {
    kind: Kind,
    order: f64,
    factors: f64,
    solve: f64,
    again: f64,
    predicted: f64,
    entries: f64,
    operations: f64,
    residual: f64,
    bits: u64,
    report: String,
}

fn run(a: &Csr<f64>, kind: Option<Kind>) -> Result<Times> {
    let start = Instant::now();
    let analysis = match kind {
        Some(kind) => Analysis::as_kind(a, kind)?,
        None => Analysis::of(a)?,
    };
    let order = start.elapsed().as_secs_f64();
    let cost = analysis.cost();
    let start = Instant::now();
    let mut made = Factors::<f64>::new(a, analysis, &LIMITS, &mut || Ok(()))?;
    let factors = start.elapsed().as_secs_f64();
    let mut x = vec![1.0; a.rows()];
    let start = Instant::now();
    made.solve(Task::Plain, &mut x);
    let solve = start.elapsed().as_secs_f64();
    let bits =
        x.iter().fold(0, |sum: u64, v| sum.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ v.to_bits());
    let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let mut residual = f64::INFINITY;
    // Refined as the methods around it do; that is not timed.
    for _ in 0..4 {
        let mut ax = vec![0.0; a.rows()];
        a.product(&x, &mut ax)?;
        let mut r: Vec<f64> = ax.iter().map(|v| 1.0 - v).collect();
        let left = norm(&r) / (a.rows() as f64).sqrt();
        if left.is_nan() || left >= residual {
            break;
        }
        residual = left;
        if residual <= 1e-8 {
            break;
        }
        made.solve(Task::Plain, &mut r);
        x.iter_mut().zip(&r).for_each(|(x, r)| *x += r);
    }
    let start = Instant::now();
    made.renew(a, &LIMITS, &mut || Ok(()))?;
    let again = start.elapsed().as_secs_f64();
    let report =
        made.report().iter().map(|(what, value)| format!("{what} {value}")).collect::<Vec<_>>().join("; ");
    let (kind, predicted) = (made.kind(), cost.seconds);
    let (entries, operations) = (cost.entries, cost.operations);
    Ok(Times { kind, order, factors, solve, again, predicted, entries, operations, residual, bits, report })
}

fn main() {
    let kinds = [
        ("cholesky", Kind::Cholesky),
        ("symmetric", Kind::Symmetric),
        ("sparse", Kind::Sparse),
        ("pivoted", Kind::Pivoted),
    ];
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let named = |text: &String| kinds.iter().find(|(name, _)| name == text).map(|(_, kind)| *kind);
    let kind = files.first().and_then(named);
    if kind.is_some() {
        files.remove(0);
    }
    for file in files {
        let name = file.rsplit('/').next().unwrap_or(&file).trim_end_matches(".mtx");
        let a = match lacuna_io::read_matrix::<f64>(&file, &Default::default()) {
            Ok(a) => a,
            Err(error) => {
                println!("{{\"name\":\"{name}\",\"error\":{:?}}}", error.to_string());
                continue;
            }
        };
        let (mut least, mut spent): (Option<Times>, f64) = (None, 0.0);
        for _ in 0..RUNS {
            match run(&a, kind) {
                Ok(times) => {
                    let total = |t: &Times| t.order + t.factors + t.solve;
                    spent += total(&times);
                    if least.as_ref().is_none_or(|least| total(&times) < total(least)) {
                        least = Some(times);
                    }
                }
                Err(error) => {
                    println!("{{\"name\":\"{name}\",\"error\":{:?}}}", error.to_string());
                    break;
                }
            }
            if spent > LONG {
                break;
            }
        }
        if let Some(t) = least {
            println!(
                "{{\"name\":\"{name}\",\"n\":{},\"nnz\":{},\"kind\":\"{:?}\",\"order\":{:.3e},\"factors\":{:.3e},\"solve\":{:.3e},\"again\":{:.3e},\
                 \"predicted\":{:.3e},\"entries\":{:.0},\"operations\":{:.3e},\"residual\":{:.1e},\"bits\":\"{:016x}\",\"report\":{:?}}}",
                a.rows(),
                a.nnz(),
                t.kind,
                t.order,
                t.factors,
                t.solve,
                t.again,
                t.predicted,
                t.entries,
                t.operations,
                t.residual,
                t.bits,
                t.report
            );
        }
    }
}
