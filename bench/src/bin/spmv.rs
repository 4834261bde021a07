//! Sparse products: GFLOP/s, GB/s by the format's bytes, and that over a triad measured in the same run.
use lacuna_bench::args::Args;
use lacuna_bench::matrix_file::matrix;
use lacuna_bench::report::Report;
use lacuna_bench::stats::{Samples, seconds};
use lacuna_bench::triad::Triad;
use lacuna_bench::{Done, device, with_type};
use lacuna_core::{Backend, Format, History, Matrix, Pass, Plan, Recorder, Result, Run, Scalar};
use lacuna_cpu::Cpu;
use lacuna_formats::{Csr, FORMATS, Structure, choose_format, convert};
use std::sync::Arc;

const USAGE: &str = "\
spmv [--type f64] [--threads 1,2] [--matrices NAME,..] [--formats csr] [--rounds 9] [--json FILE] [--lines NAME]
A row for each matrix: microseconds a product, GFLOP/s (2 an entry), GB/s by the bytes of the format and of both
vectors, and that over the triad measured just before. A matrix is a generator such as gen:poisson2d:1000x1000, or a
file of `solves --dump`; --formats takes names, `auto` and `all`. With --lines, prints `lacuna-THREADS spmv NAME ROWS US US` and nothing else.";

const MATRICES: &str = "gen:poisson2d:1000x1000,gen:poisson3d:100x100x100,gen:poisson3d:100x100x100:27,\
gen:poisson-p1:255,gen:poisson-p1:511,gen:elasticity3d:47,gen:power-law:1000000";

fn main() -> Done {
    let args = Args::parse(USAGE);
    with_type!(args.text("--type", "f64"), T => run::<T>(&args))
}

fn run<T: Scalar>(args: &Args) -> Done {
    let lines = args.given("--lines");
    let mut report = lines.is_none().then(|| Report::new(args)).transpose()?;
    let rounds: usize = args.number("--rounds", 9)?;
    let threads: Vec<String> = args.list("--threads", "1,2")?;
    let mut triads: Vec<_> = threads.iter().map(|_| None).collect();
    for name in args.list::<String>("--matrices", MATRICES)? {
        let a = Arc::new(matrix(&name)?.cast::<T>()?);
        for (format, a) in in_formats(&a, &args.list::<String>("--formats", "csr")?)? {
            for (threads, triad) in threads.iter().zip(&mut triads) {
                let mut dev = device(threads)?;
                let stored = dev.matrix::<T>(a.clone())?;
                let mut plan = product(&mut dev, stored)?;
                let bytes = plan.program.bytes_per_iteration() as f64;
                let mut once = timed(&mut dev, &mut plan, 3)?;
                once = once.min(timed(&mut dev, &mut plan, 3)?);
                let iterations = (0.03 / once).ceil().max(3.0) as u64;
                let (mut times, mut fractions) = (Samples::default(), Samples::default());
                for _ in 0..rounds {
                    let yardstick = match lines {
                        Some(_) => f64::NAN,
                        None => triad.get_or_insert_with(|| Triad::new(dev.threads())).run(),
                    };
                    let time = timed(&mut dev, &mut plan, iterations)?;
                    times.push(time);
                    fractions.push(1e-9 * bytes / time / yardstick);
                }
                let time = times.median();
                if let Some(name) = lines {
                    println!(
                        "lacuna-{threads} spmv {name} {} {:.3} {:.3}",
                        a.shape().0,
                        1e6 * time,
                        1e6 * time
                    );
                }
                if let Some(report) = &mut report {
                    report.row(&[
                        ("matrix", name.trim_start_matches("gen:").into()),
                        ("type", T::KIND.name().into()),
                        ("format", format.into()),
                        ("lanes", a.lanes().into()),
                        ("rows", a.shape().0.into()),
                        ("nnz", a.nnz().into()),
                        ("threads", threads.as_str().into()),
                        ("us", (1e6 * time, 1).into()),
                        ("spread%", (times.spread(), 1).into()),
                        ("GFLOP/s", (2e-9 * a.nnz() as f64 / time, 2).into()),
                        ("GB/s", (1e-9 * bytes / time, 1).into()),
                        ("of_triad", (fractions.median(), 3).into()),
                    ])?;
                }
            }
        }
    }
    Ok(())
}

/// A matrix with the name of its format.
type Named<T> = (&'static str, Arc<dyn Format<T>>);

/// The matrix in each of the formats asked for; of `all`, in those that take it.
fn in_formats<T: Scalar>(a: &Arc<Csr<T>>, names: &[String]) -> Result<Vec<Named<T>>> {
    let mut made = Vec::new();
    for name in names {
        match name.as_str() {
            "all" => made.extend(FORMATS.iter().filter_map(|f| Some((f.name, convert(a, f.name).ok()?)))),
            "auto" => {
                let (name, _) = choose_format(a, &Structure::of(a), Cpu::new()?.formats());
                made.push((name, convert(a, name)?));
            }
            name => {
                let known = FORMATS.iter().find(|f| f.name == name).map_or("csr", |f| f.name);
                made.push((known, convert(a, name)?));
            }
        }
    }
    Ok(made)
}

/// `y ← A x` over and over.
fn product<T: Scalar>(dev: &mut Cpu, a: Matrix<T>) -> Result<Plan<T>> {
    let mut k = Recorder::new(dev, "spmv");
    let ([x], [y], [zero]) = (k.vectors(a.cols), k.vectors(a.rows), k.cells());
    k.each(|k| k.spmv_dot(&a, x, y, Pass::new("count").count(zero)));
    let program = k.finish()?;
    dev.upload(&vec![T::one(); a.cols], x)?;
    dev.plan(program)
}

/// Seconds of one product.
fn timed<T: Scalar>(dev: &mut Cpu, plan: &mut Plan<T>, iterations: u64) -> Result<f64> {
    let mut history = History::off();
    let mut result = Ok(());
    let time = seconds(|| {
        result = dev.execute(plan, Run { limit: iterations, history: &mut history, watch: None }).map(drop);
    });
    result.map(|()| time / iterations as f64)
}
