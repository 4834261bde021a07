//! Times reading a Matrix Market file: `read_time FILE|SPEC [REPEATS]`.
//!
//! A generated matrix is first written to a temporary file, with all entries, row by row.
use lacuna_io::Spec;
use lacuna_io::mm::{ReadOptions, Storage, Symmetry, WriteOptions, read_matrix, write_matrix};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or("gen:poisson3d:100x100x100:27".into());
    let repeats = arguments.next().map_or(Ok(5), |n| n.parse::<usize>())?.max(1);
    let mut path = std::path::PathBuf::from(&name);
    if name.starts_with(Spec::PREFIX) {
        let a = Spec::parse(&name)?.build::<f64>()?;
        path = std::env::temp_dir().join("lacuna_read_time.mtx");
        let start = Instant::now();
        let options = WriteOptions { storage: Storage::As(Symmetry::General), comment: "" };
        write_matrix(&path, &a, &options)?;
        println!("wrote {} entries in {:.3?}", a.nnz(), start.elapsed());
        assert_eq!(read_matrix::<f64>(&path, &ReadOptions::default())?, a);
    }
    let megabytes = std::fs::metadata(&path)?.len() as f64 / 1e6;
    let mut times = Vec::new();
    for _ in 0..repeats {
        let start = Instant::now();
        let a = read_matrix::<f64>(&path, &ReadOptions::default())?;
        let seconds = start.elapsed().as_secs_f64();
        println!("{} entries, {megabytes:.0} MB in {seconds:.3} s: {:.0} MB/s", a.nnz(), megabytes / seconds);
        times.push(seconds);
    }
    times.sort_by(f64::total_cmp);
    println!("median {:.3} s on {} threads", times[times.len() / 2], rayon::current_num_threads());
    Ok(())
}
