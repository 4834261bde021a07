//! Times an assembly: `assemble_time [SPEC [REPEATS]]`.
//!
//! The entries of a generated matrix are given in four orders: by row, by column, each entry twice, and at
//! random.
use lacuna_formats::{Csr, Triplets};
use lacuna_io::Spec;
use std::time::Instant;

type Order = fn(&Csr<f64>) -> Triplets<f64>;

fn by_row(a: &Csr<f64>) -> Triplets<f64> {
    triplets(a, a.entries())
}

fn by_column(a: &Csr<f64>) -> Triplets<f64> {
    triplets(a, a.transpose().entries().map(|(j, i, v)| (i, j, v)))
}

fn twice(a: &Csr<f64>) -> Triplets<f64> {
    triplets(a, a.entries().chain(a.entries()).map(|(i, j, v)| (i, j, v / 2.0)))
}

fn at_random(a: &Csr<f64>) -> Triplets<f64> {
    let mut entries: Vec<_> = a.entries().collect();
    let mut state = 1u64;
    for k in (1..entries.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        entries.swap(k, ((u128::from(state) * (k as u128 + 1)) >> 64) as usize);
    }
    triplets(a, entries.into_iter())
}

fn triplets(a: &Csr<f64>, entries: impl Iterator<Item = (usize, usize, f64)>) -> Triplets<f64> {
    let mut t = Triplets::with_capacity(a.rows(), a.cols(), a.nnz());
    t.extend(entries);
    t
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let spec = Spec::parse(&arguments.next().unwrap_or("gen:poisson3d:100x100x100:27".into()))?;
    let repeats = arguments.next().map_or(Ok(5), |n| n.parse::<usize>())?.max(1);
    let a = spec.build::<f64>()?;
    let orders: [(&str, Order); 4] =
        [("by row", by_row), ("by column", by_column), ("twice", twice), ("at random", at_random)];
    for (name, order) in orders {
        let t = order(&a);
        let mut times = Vec::new();
        for _ in 0..repeats {
            let start = Instant::now();
            let b = t.to_csr()?;
            times.push(start.elapsed().as_secs_f64());
            assert_eq!(a, b);
        }
        times.sort_by(f64::total_cmp);
        let (best, median) = (times[0], times[repeats / 2]);
        println!("{name:>10}: {} triplets, best {best:.3} s, median {median:.3} s", t.len());
    }
    Ok(())
}
