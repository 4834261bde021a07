//! Times the two-level cycle under CG on a backend, in f64 and with the cycle in f32: `two_levels cuda|opencl
//! [sides=100,1000,4000] [iterations=50] [solves=5]`.
//!
//! The system is `gen:poisson2d` with that side, stored as diagonals; the coarse level has at most 32 x 32
//! boxes. Each line is a mode: the fastest of several solves with fixed iterations, with right-hand side and
//! solution on the device, and the least bandwidth that this implies. The last line says whether all modes
//! gave the same bits.
use lacuna_engine::{Device, LinOp};
use lacuna_formats::{Csr, convert};
use lacuna_io::Spec;
use lacuna_solvers::{Options, Placed, Setup, Solver, Stop, method};
use lacuna_tests::narrow::TwoLevel;
use std::error::Error;
use std::sync::Arc;

type Done<X> = Result<X, Box<dyn Error>>;

struct Work {
    a: Arc<Csr<f64>>,
    side: usize,
    narrow: bool,
    iterations: u64,
    solves: usize,
}

/// Times a device; returns the solution as bits.
fn time(dev: &Device, mode: &str, work: &Work) -> Done<Vec<u64>> {
    let Work { a, side, narrow, iterations, solves } = work;
    let operator = dev.matrix::<f64>(convert(a, "dia")?)?;
    let cycle = TwoLevel { side: *side, of_box: side.div_ceil(32).max(4), narrow: *narrow };
    let m = Placed::new(dev, Box::new(cycle), a, *operator, Setup::new())?;
    let stop = Stop::default().rtol(0.0).max_iters(*iterations);
    let m = Some(&m as &dyn LinOp<f64>);
    let mut solver = Solver::new(dev, &operator, m, &*method("cg", &Options::default())?, stop)?;
    let b: Vec<f64> = (0..a.rows()).map(|i| (i * 7919 % 1013) as f64 / 1013.0 - 0.4).collect();
    let mut x = vec![0.0; b.len()];
    solver.solve(&b, &mut x)?;
    let bits = x.iter().map(|x| x.to_bits()).collect();
    let mut best = f64::INFINITY;
    for _ in 0..*solves {
        dev.clear(solver.x())?;
        best = best.min(solver.solve_on_device(None)?.time.as_secs_f64());
    }
    let done = solver.solve_on_device(None)?.iterations;
    let bytes = solver.program().bytes_of_solve(done, 0) as f64;
    println!(
        "n {:>9} {:<6} {mode:<8} {done:>3} iterations, {:>9.2} us each, {:>7.1} GB/s",
        b.len(),
        if *narrow { "narrow" } else { "f64" },
        best / done as f64 * 1e6,
        bytes / best * 1e-9,
    );
    Ok(bits)
}

fn cuda(work: &Work) -> Done<Vec<Vec<u64>>> {
    use lacuna_cuda::{Cuda, CudaOptions, Mode};
    let modes = [("jit", Mode::Jit), ("graph", Mode::Graph), ("stream", Mode::Stream)];
    let open = |mode| Cuda::with(&CudaOptions::default().mode(mode));
    modes.into_iter().map(|(name, mode)| time(&open(mode)?.into(), name, work)).collect()
}

fn opencl(work: &Work) -> Done<Vec<Vec<u64>>> {
    use lacuna_opencl::{Mode, OpenCl, OpenClOptions};
    let open = |mode| OpenCl::new(OpenClOptions::from_env()?.mode(mode));
    let can = open(Mode::Auto)?.modes();
    let modes = [("jit", Mode::Jit), ("launches", Mode::Launches)];
    let modes = modes.into_iter().filter(|(_, mode)| can.contains(mode));
    modes.map(|(name, mode)| time(&open(mode)?.into(), name, work)).collect()
}

fn main() -> Done<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    let number = |key: &str, default: usize| value(key).map_or(Ok(default), str::parse);
    let (iterations, solves) = (number("iterations", 50)? as u64, number("solves", 5)?);
    for side in value("sides").unwrap_or("100,1000,4000").split(',') {
        let side: usize = side.parse()?;
        let a = Arc::new(Spec::parse(&format!("gen:poisson2d:{side}x{side}"))?.build()?);
        for narrow in [false, true] {
            let work = Work { a: Arc::clone(&a), side, narrow, iterations, solves };
            let bits = match words.first().map(String::as_str) {
                Some("cuda") => cuda(&work)?,
                Some("opencl") => opencl(&work)?,
                _ => {
                    return Err(
                        "two_levels cuda|opencl [sides=100,1000,4000] [iterations=50] [solves=5]".into()
                    );
                }
            };
            println!("  the same bits: {}", bits.windows(2).all(|pair| pair[0] == pair[1]));
        }
    }
    Ok(())
}
