//! The cost of choosing a format, in units of products with CSR on one thread, timed alternately: the
//! analysis of the structure, the cost estimates of all formats, the conversion. To run everything on one
//! thread:
//! `RAYON_NUM_THREADS=1 cargo run --release -p lacuna-sparse --example choice MATRIX...`
use lacuna::cpu::{Cpu, CpuOptions};
use lacuna::formats::{candidates, choose_format, convert};
use lacuna::io::open;
use lacuna::{Csr, Device, Format, Result, Structure, TimedProduct};
use std::sync::Arc;
use std::time::Instant;

/// Rounds, whose median is used.
const ROUNDS: usize = 5;
/// How long products are timed in each.
const SECONDS: f64 = 0.02;

fn seconds<R>(work: impl FnOnce() -> R) -> (f64, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64(), result)
}

fn main() -> Result<()> {
    println!("{:34}product ms   structure   costs   chosen   conversion", "");
    for name in std::env::args().skip(1) {
        let a: Arc<Csr<f64>> = Arc::new(open(&name, &Default::default())?);
        let dev = Device::new(Cpu::with(CpuOptions::default().threads(1))?);
        let formats = dev.formats(a.rows(), Format::bytes(&*a))?;
        let mut products = TimedProduct::new(&dev, a.clone(), SECONDS)?;
        let (mut samples, mut chosen) = ([const { Vec::new() }; 4], "");
        for _ in 0..ROUNDS {
            let product = products.time()?;
            let (analysis, structure) = seconds(|| Structure::of(&*a));
            let (costs, _) = seconds(|| candidates(&*a, &structure, formats));
            chosen = choose_format(&*a, &structure, formats).0;
            let (conversion, converted) = seconds(|| convert(&a, chosen));
            converted?;
            let times = [product, analysis, costs, conversion];
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
