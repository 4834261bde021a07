//! What choosing a format costs, in products: the analysis of the structure, the costs of all formats, the conversion.
use lacuna_bench::Done;
use lacuna_bench::args::Args;
use lacuna_bench::device;
use lacuna_bench::matrix_file::matrix;
use lacuna_bench::stats::{Samples, seconds};
use lacuna_core::{Backend, Pass};
use lacuna_formats::{Csr, Structure, candidates, choose_format, convert};
use std::sync::Arc;

const USAGE: &str = "\
choice [--matrices NAME,..] [--rounds 9]
A row for each matrix: milliseconds of a product in compressed rows on one thread, and the rest in such products, measured
in turn. With RAYON_NUM_THREADS=1 all of it is on one thread.";

const MATRICES: &str = "gen:poisson2d:1000x1000,gen:poisson3d:100x100x100,gen:poisson3d:60x60x60:27,\
gen:elasticity3d:30,gen:convection:1000x1000,gen:power-law:1000000";
/// Products timed together.
const PRODUCTS: u32 = 4;

fn main() -> Done {
    let args = Args::parse(USAGE);
    println!("{:34}product ms   structure   costs   chosen   conversion", "");
    for name in args.list::<String>("--matrices", MATRICES)? {
        let a: Arc<Csr<f64>> = Arc::new(matrix(&name)?);
        let mut dev = device("1")?;
        let stored = dev.matrix::<f64>(a.clone())?;
        let (x, y) = (Backend::vector(&mut dev, a.cols())?, Backend::vector(&mut dev, a.rows())?);
        let mut samples = <[Samples; 4]>::default();
        let mut chosen = "";
        for _ in 0..args.number("--rounds", 9)? {
            let mut done = Ok(());
            let product = seconds(|| {
                done = (0..PRODUCTS).try_for_each(|_| dev.spmv_dot(&stored, x, y, Pass::nothing()));
            });
            done?;
            let mut structure = None;
            let analysis = seconds(|| structure = Some(Structure::of(&*a)));
            let Some(structure) = structure else { continue };
            let costs = seconds(|| drop(candidates(&*a, &structure, dev.formats())));
            chosen = choose_format(&*a, &structure, dev.formats()).0;
            let mut converted = None;
            let conversion = seconds(|| converted = Some(convert(&a, chosen)));
            converted.transpose()?;
            for (samples, value) in
                samples.iter_mut().zip([product / f64::from(PRODUCTS), analysis, costs, conversion])
            {
                samples.push(value);
            }
        }
        let [product, structure, costs, conversion] = samples.map(|s| s.median());
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
