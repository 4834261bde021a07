//! Times a generator: `generate_time SPEC [REPEATS]`.
use lacuna_formats::Structure;
use lacuna_io::Spec;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let spec = Spec::parse(&arguments.next().unwrap_or("gen:poisson3d:100x100x100:27".into()))?;
    for _ in 0..arguments.next().map_or(Ok(3), |n| n.parse())? {
        let start = Instant::now();
        let a = spec.build::<f64>()?;
        let built = start.elapsed();
        let s = Structure::of(&a);
        let analysed = start.elapsed() - built;
        println!("{spec}: {} rows, {} entries in {built:.3?}, analysed in {analysed:.3?}", s.rows, s.nnz);
        let start = Instant::now();
        let t = a.transpose();
        println!("  transposed in {:.3?}, symmetric: {}", start.elapsed(), t == a);
    }
    Ok(())
}
