//! Solves of a fixed number of iterations, by the protocol of Rupp et al. 2016: the median of ten solves or more,
//! everything included but the matrix itself.
use lacuna_bench::args::Args;
use lacuna_bench::matrix_file::{self, matrix};
use lacuna_bench::report::Report;
use lacuna_bench::stats::{Samples, median_of, seconds};
use lacuna_bench::triad::Triad;
use lacuna_bench::{Done, device, with_type};
use lacuna_core::{Backend, Format, Matrix, Result, Scalar};
use lacuna_cpu::Cpu;
use lacuna_formats::{Csr, Structure, choose_format, convert};
use lacuna_solvers::{Gmres, Method, Options, Orthogonalization, Solver, Stop, method};
use std::sync::Arc;
use std::time::{Duration, Instant};

const USAGE: &str = "\
solves [--type f64] [--threads 1,2,auto] [--methods cg,bicgstab,gmres,gmres-once] [--matrices NAME,..] [--format auto]
       [--iterations 30] [--rounds 5] [--repeats 10] [--json FILE] [--lines NAME] [--dump FILE]
A row for each matrix, method and number of threads: microseconds an iteration. `fresh` is a whole solve: recording,
planning and allocating, the solve, the confirmation of the true residual, x brought back; `again` is a second solve
with what the first has made. GB/s counts the bytes of the iterations alone; the triad is measured in every round.
gmres-once orthogonalises once (classical Gram-Schmidt), as most libraries do; gmres, the default, twice.
--format takes the name of a storage format; auto is the library's choice.
With a number of threads all of them work whatever the size; auto is what you get without asking.
With --lines, prints `lacuna-THREADS METHOD NAME ROWS FRESH AGAIN` and nothing else. With --dump, writes the first
matrix to a file for other programs and ends; --matrices takes such files too.";

const MATRICES: &str = "gen:poisson-p1:15,gen:poisson-p1:31,gen:poisson-p1:63,gen:poisson-p1:127,\
gen:poisson-p1:255,gen:poisson-p1:511,gen:elasticity3d:47";

fn main() -> Done {
    let args = Args::parse(USAGE);
    if let Some(path) = args.given("--dump") {
        let names: Vec<String> = args.list("--matrices", MATRICES)?;
        let name = names.first().ok_or("--dump: expected a matrix in --matrices")?;
        return Ok(matrix_file::write(&matrix(name)?, path)?);
    }
    with_type!(args.text("--type", "f64"), T => run::<T>(&args))
}

/// One way of solving one system.
struct Case<T: Scalar> {
    method: String,
    threads: String,
    dev: Cpu,
    a: Matrix<T>,
    solver: Solver<T>,
    fresh: Samples,
    again: Samples,
    /// Over the triad.
    fraction: Samples,
}

fn run<T: Scalar>(args: &Args) -> Done {
    let lines = args.given("--lines");
    let mut report = lines.is_none().then(|| Report::new(args)).transpose()?;
    let rounds: usize = args.number("--rounds", 5)?;
    let repeats: usize = args.number("--repeats", 10)?;
    let iterations: u64 = args.number("--iterations", 30)?;
    let stop = Stop { rtol: 0.0, atol: 0.0, max_iters: iterations, dtol: f64::INFINITY };
    let mut triads = lines.is_none().then(|| [Triad::new(1), Triad::new(2)]);
    for name in args.list::<String>("--matrices", MATRICES)? {
        let a = Arc::new(matrix(&name)?.cast::<T>()?);
        let n = a.rows();
        let stored = in_format(&a, args.text("--format", "auto"))?;
        let mut cases = Vec::new();
        for method in args.list::<String>("--methods", "cg,bicgstab,gmres,gmres-once")? {
            for threads in args.list::<String>("--threads", "1,2,auto")? {
                let mut dev = device(&threads)?;
                let a = dev.matrix::<T>(stored.clone())?;
                let solver = Solver::new(&mut dev, &a, None, &*named(&method)?, stop)?;
                let (fresh, again, fraction) = Default::default();
                let (method, threads) = (method.clone(), threads);
                cases.push(Case { method, threads, dev, a, solver, fresh, again, fraction });
            }
        }
        let b = vec![T::one(); n];
        let mut x = vec![T::zero(); n];
        for _ in 0..rounds {
            for case in &mut cases {
                let yardstick = match &mut triads {
                    None => f64::NAN,
                    Some(triads) => triads[usize::from(case.dev.threads() > 1)].run(),
                };
                measure(case, stop, repeats, yardstick, (&b, &mut x))?;
            }
        }
        for case in &cases {
            let per_iteration = |samples: &Samples| samples.median() * 1e6 / iterations as f64;
            let (fresh, again) = (per_iteration(&case.fresh), per_iteration(&case.again));
            if let Some(name) = lines {
                println!("lacuna-{} {} {name} {n} {fresh:.4} {again:.4}", case.threads, case.method);
            }
            if let Some(report) = &mut report {
                let bytes = bytes(case, iterations as usize);
                report.row(&[
                    ("matrix", name.trim_start_matches("gen:").into()),
                    ("type", T::KIND.name().into()),
                    ("n", n.into()),
                    ("method", case.method.as_str().into()),
                    ("threads", case.threads.as_str().into()),
                    ("fresh_us", (fresh, 3).into()),
                    ("again_us", (again, 3).into()),
                    ("spread%", (case.again.spread(), 1).into()),
                    ("GB/s", (1e-3 * bytes / again, 1).into()),
                    ("of_triad", (case.fraction.median(), 3).into()),
                ])?;
            }
        }
    }
    Ok(())
}

/// The matrix in a format by name, or in the one the CPU's choice falls on.
fn in_format<T: Scalar>(
    a: &Arc<Csr<T>>,
    name: &str,
) -> std::result::Result<Arc<dyn Format<T>>, Box<dyn std::error::Error>> {
    let chosen = choose_format(a, &Structure::of(a), device("1")?.formats()).0;
    Ok(convert(a, if name == "auto" { chosen } else { name })?)
}

fn named<T: Scalar>(name: &str) -> Result<Box<dyn Method<T>>> {
    match name {
        "gmres-once" => {
            let orthogonalization = Orthogonalization::Classical;
            Ok(Box::new(Gmres { orthogonalization, ..Gmres::default() }))
        }
        name => method(name, &Options::default()),
    }
}

/// Bytes that an iteration must move: those of the program's first so many iterations, GMRES's growing with its basis.
fn bytes<T: Scalar>(case: &Case<T>, iterations: usize) -> f64 {
    let program = case.solver.program();
    let (counts, all) = (program.counts(), program.bytes_per_iteration());
    if counts == iterations || counts == 1 { all as f64 } else { f64::NAN }
}

/// One round: solves with everything made anew, then solves again.
fn measure<T: Scalar>(
    case: &mut Case<T>,
    stop: Stop,
    repeats: usize,
    yardstick: f64,
    (b, x): (&[T], &mut [T]),
) -> Done {
    let budget = Duration::from_millis(20);
    let bytes = bytes(case, stop.max_iters as usize);
    let Case { method, dev, a, solver, .. } = case;
    let fresh = median_of(repeats, budget, || -> Result<Duration> {
        let start = Instant::now();
        let mark = dev.mark();
        x.fill(T::zero());
        let done = Solver::new(dev, &*a, None, &*named(method)?, stop)
            .and_then(|mut solver| solver.solve(dev, b, x).map(drop));
        dev.release(mark);
        done.map(|()| start.elapsed())
    })?;
    let mut iterations = 0;
    let again = median_of(repeats, budget, || -> Result<Duration> {
        let mut done = Ok(());
        let time = seconds(|| {
            x.fill(T::zero());
            done = solver.solve(dev, b, x).map(|outcome| iterations = outcome.iterations);
        });
        done.map(|()| Duration::from_secs_f64(time))
    })?;
    if iterations != stop.max_iters {
        eprintln!("{method}: {iterations} iterations instead of {}", stop.max_iters);
    }
    case.fresh.push(fresh);
    case.again.push(again);
    case.fraction.push(1e-9 * bytes * stop.max_iters as f64 / again / yardstick);
    Ok(())
}
