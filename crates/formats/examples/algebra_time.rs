//! Times of sparse products: `cargo run --release -p lacuna-formats --example algebra_time [MATRIX [UNKNOWNS]]`, where `UNKNOWNS` are
//! those of a node.
use lacuna_formats::algebra::{
    GalerkinPlan, ProductPlan, TransposePlan, build_rows, galerkin, galerkin_by_cells, product,
};
use std::time::Instant;

const RUNS: usize = 5;

/// Processor seconds of all threads, if the system reports them; in hundredths.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn least<R>(what: &str, f: impl Fn() -> R) -> R {
    let (mut best, before) = (f64::INFINITY, processor_time());
    let mut result = None;
    for _ in 0..RUNS {
        drop(result.take());
        let start = Instant::now();
        result = Some(f());
        best = best.min(start.elapsed().as_secs_f64());
    }
    let used = (processor_time() - before) / RUNS as f64;
    println!("{what:<28} {:8.1} ms, {:8.1} ms of processors", 1e3 * best, 1e3 * used);
    result.unwrap_or_else(f)
}

fn main() -> lacuna_engine::Result<()> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "gen:poisson3d:100x100x100".into());
    let a = lacuna_io::open::<f64>(&name, &Default::default())?;
    let unknowns: usize = std::env::args().nth(2).and_then(|count| count.parse().ok()).unwrap_or(1);
    let cells = [unknowns; 2];
    // Aggregates of eleven consecutive nodes, smoothed once: about as many entries as a prolongator has.
    let n = a.rows();
    let coarse = |i: usize| (i / unknowns / 11 * unknowns + i % unknowns) as u32;
    let t = build_rows("T", n, n.div_ceil(11 * unknowns) * unknowns, a.row_shares(), |rows, out| {
        rows.for_each(|i| out.row(&[coarse(i)], &[1.0]));
    })?;
    let p = product(&a, &t)?;
    println!("A {n} rows, {} entries; P {} entries", a.nnz(), p.nnz());
    least("A A", || product(&a, &a).map(|c| c.nnz()))?;
    least("A A with plan", || ProductPlan::new(&a, &a).map(|c| c.1.nnz()))?;
    let (plan, c) = ProductPlan::new(&a, &a)?;
    let c = std::cell::RefCell::new(c);
    least("A A by plan", || plan.multiply(&a, &a, &mut c.borrow_mut()))?;
    drop((plan, c));
    least("A P", || product(&a, &p).map(|c| c.nnz()))?;
    let turned = least("plan of the transpose of P", || TransposePlan::new(&p))?;
    let r = least("transpose of P by plan", || turned.adjoint(&p))?;
    least("P^H A P", || galerkin(&r, &a, &p).map(|c| c.nnz()))?;
    if unknowns > 1 {
        least("P^H A P by cells", || galerkin_by_cells(&r, &a, &p, cells).map(|c| c.nnz()))?;
    }
    let (plan, c) = least("P^H A P with plan", || GalerkinPlan::by_cells(&r, &a, &p, cells))?;
    let c = std::cell::RefCell::new(c);
    least("P^H A P by plan", || plan.multiply(&r, &a, &p, &mut c.borrow_mut()))?;
    println!("plan {:.1} bytes a row", plan.bytes() as f64 / n as f64);
    Ok(())
}
