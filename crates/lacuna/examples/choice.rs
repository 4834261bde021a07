//! The cost of choosing a format, in units of products with CSR on one thread, timed alternately: the
//! analysis of the structure, the cost estimates of all formats, the conversion. To run everything on one
//! thread:
//! `RAYON_NUM_THREADS=1 cargo run --release -p lacuna --example choice MATRIX...`
use lacuna::cpu::{Cpu, CpuOptions};
use lacuna::formats::{candidates, choose_format, convert, open};
use lacuna::{Backend, Csr, Format, Pass, Result, Structure};
use std::sync::Arc;
use std::time::Instant;

/// Rounds, whose median is used, and products timed together.
const ROUNDS: usize = 5;
const PRODUCTS: u32 = 4;

fn seconds<R>(work: impl FnOnce() -> R) -> (f64, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64(), result)
}

fn main() -> Result<()> {
    println!("{:34}product ms   structure   costs   chosen   conversion", "");
    for name in std::env::args().skip(1) {
        let a: Arc<Csr<f64>> = Arc::new(open(&name, &Default::default())?);
        let mut dev = Cpu::with(CpuOptions { threads: Some(1), ..CpuOptions::default() })?;
        let stored = dev.matrix::<f64>(a.clone())?;
        let (x, y) = (Backend::vector(&mut dev, a.cols())?, Backend::vector(&mut dev, a.rows())?);
        let (mut samples, mut chosen) = ([const { Vec::new() }; 4], "");
        for _ in 0..ROUNDS {
            let products = || (0..PRODUCTS).try_for_each(|_| dev.spmv_dot(&stored, x, y, Pass::nothing()));
            let (product, done) = seconds(products);
            done?;
            let (analysis, structure) = seconds(|| Structure::of(&*a));
            let (costs, _) =
                seconds(|| candidates(&*a, &structure, dev.formats(a.rows(), Format::bytes(&*a))));
            chosen = choose_format(&*a, &structure, dev.formats(a.rows(), Format::bytes(&*a))).0;
            let (conversion, converted) = seconds(|| convert(&a, chosen));
            converted?;
            let times = [product / f64::from(PRODUCTS), analysis, costs, conversion];
            samples.iter_mut().zip(times).for_each(|(samples, time)| samples.push(time));
        }
        let [product, structure, costs, conversion] = samples.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[ROUNDS / 2]
        });
        println!(
            "{name:34}{:10.2} {:11.1} {:7.1}   {chosen:6} {:12.1}",
            product * 1e3,
            structure / product,
            costs / product,
            conversion / product
        );
    }
    Ok(())
}
