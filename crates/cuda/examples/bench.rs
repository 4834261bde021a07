//! What the CUDA backend does on this machine's device: solvers, products, and what the card can copy.
//!
//! Protocol (Rupp et al. 2016): f64, right-hand side of ones, 30 fixed iterations, the median of ten solves, set-up of a solve
//! and copies of `b` and `x` included, divided by 30. Each line is also printed as JSON.
//!
//! `bench [quick|large] [modes] [systems=a,b] [methods=a,b]`: `quick` leaves out the large systems, `large` all others;
//! modes as in `auto,grid,graph`; systems and methods by the ends of their names, all where none is given.
use lacuna_core::{Backend, Matrix, Pass, Vector};
use lacuna_cuda::{Cuda, CudaOptions, Mode};
use lacuna_formats::{Csr, Spec};
use lacuna_solvers::{Gmres, Method, Orthogonalization, PipelinedBiCgStab, PipelinedCg, Side, Solver, Stop};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ITERATIONS: u64 = 30;
const SOLVES: usize = 10;
/// How long solves are repeated before the first that counts: a device that has been idle is slow at first.
const WARM_UP: Duration = Duration::from_millis(100);
const SYSTEMS: [(&str, bool); 11] = [
    ("gen:poisson-p1:15", false),
    ("gen:poisson-p1:31", false),
    ("gen:poisson-p1:63", false),
    ("gen:poisson-p1:127", false),
    ("gen:poisson-p1:255", false),
    ("gen:elasticity3d:4", false),
    ("gen:elasticity3d:8", false),
    ("gen:elasticity3d:16", false),
    ("gen:poisson-p1:511", true),
    ("gen:poisson-p1:1023", true),
    ("gen:elasticity3d:47", true),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|a| a == "quick");
    let only_large = arguments.iter().any(|a| a == "large");
    let list = arguments
        .iter()
        .find(|a| *a != "quick" && *a != "large" && !a.contains('='))
        .map_or("auto,block,grid,graph,stream", |a| a);
    let chosen = |what: &str, name: &str| {
        let list = arguments.iter().find_map(|a| a.strip_prefix(what));
        list.is_none_or(|list| list.split(',').any(|part| name.ends_with(part)))
    };
    let modes: Vec<Mode> = list.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let mut dev = Cuda::with(&CudaOptions::default())?;
    let info = dev.device();
    println!("{}: {} multiprocessors, {:?}", info.name, info.units, info.details);
    let bytes = if quick { 1 << 26 } else { 1 << 30 };
    let copy = 2.0 * bytes as f64 / dev.time_copy(bytes, 20)? / 1e9;
    println!("copy: {copy:.0} GB/s");
    println!("{{\"bench\":\"copy\",\"gbs\":{copy:.1}}}");

    for (name, large) in SYSTEMS {
        if (large && quick) || (!large && only_large) || !chosen("systems=", name) {
            continue;
        }
        let a: Arc<Csr<f64>> = Arc::new(Spec::parse(name)?.build()?);
        let n = a.rows();
        println!("\n{name}: n = {n}, {} entries, {} lanes", a.nnz(), lacuna_core::Format::lanes(&*a));
        for (method_name, method) in methods().into_iter().filter(|(name, _)| chosen("methods=", name)) {
            for mode in &modes {
                if *mode == Mode::Block && n > 17_000 {
                    continue;
                }
                dev.set_mode(*mode);
                match solves(&mut dev, &a, &*method) {
                    Ok((micros, bytes, actual)) => {
                        let rate = bytes as f64 / micros / 1e3;
                        println!(
                            "{method_name:>12} {:>7}{} {micros:9.2} us/iteration {rate:7.0} GB/s ({:3.0} %)",
                            mode.name(),
                            if *mode == Mode::Auto {
                                format!("={:<6}", actual.name())
                            } else {
                                " ".repeat(7)
                            },
                            100.0 * rate / copy
                        );
                        println!(
                            "{{\"bench\":\"solve\",\"matrix\":\"{name}\",\"n\":{n},\"method\":\"{method_name}\",\"mode\":\"{}\",\"ran\":\"{}\",\"us\":{micros:.3},\"gbs\":{rate:.1}}}",
                            mode.name(),
                            actual.name()
                        );
                    }
                    Err(error) => println!("{method_name:>12} {:>7}: {error}", mode.name()),
                }
            }
        }
        if chosen("methods=", "product") {
            product(&mut dev, name, &a, copy)?;
        }
    }
    if chosen("methods=", "pass") {
        sweep(&mut dev, if quick { 1 << 16 } else { 1 << 25 }, copy)?;
        sweep(&mut dev, if quick { 1 << 14 } else { 1 << 20 }, copy)?;
    }
    Ok(())
}

fn methods() -> Vec<(&'static str, Box<dyn Method<f64>>)> {
    let gmres = |orthogonalization| Gmres { restart: 30, orthogonalization, side: Side::Right };
    vec![
        ("cg", Box::new(PipelinedCg)),
        ("bicgstab", Box::new(PipelinedBiCgStab)),
        ("gmres-once", Box::new(gmres(Orthogonalization::Classical))),
        ("gmres", Box::new(gmres(Orthogonalization::ClassicalTwice))),
    ]
}

/// Microseconds and bytes of an iteration, and the mode it ran in.
fn solves(
    dev: &mut Cuda,
    a: &Arc<Csr<f64>>,
    method: &dyn Method<f64>,
) -> Result<(f64, usize, Mode), lacuna_core::Error> {
    let mark = dev.mark();
    let done = (|| {
        let matrix: Matrix<f64> = dev.matrix(a.clone())?;
        let stop = Stop { rtol: 0.0, atol: 0.0, max_iters: ITERATIONS, dtol: f64::INFINITY };
        let mut solver = Solver::new(dev, &matrix, None, method, stop)?;
        let (b, mut x) = (vec![1.0; a.rows()], vec![0.0; a.rows()]);
        let mut times = Vec::new();
        let begin = Instant::now();
        while times.len() < SOLVES {
            x.fill(0.0);
            // As Rupp et al. do, the right-hand side and the guess are on the device; the time ends when the solution is.
            dev.upload(&b, solver.b())?;
            dev.upload(&x, solver.x())?;
            dev.wait()?;
            let start = Instant::now();
            let outcome = solver.solve_on_device(dev, None)?;
            let iterations = outcome.iterations.max(1);
            let seconds = start.elapsed().as_secs_f64();
            if begin.elapsed() > WARM_UP {
                times.push(seconds / iterations as f64);
            }
        }
        times.sort_by(f64::total_cmp);
        let plan = dev.plan(solver.program().clone())?;
        let mode = Cuda::mode_of(&plan).unwrap_or_default();
        Ok((times[times.len() / 2] * 1e6, solver.program().bytes_per_iteration(), mode))
    })();
    dev.release(mark);
    done
}

/// Twenty products in one program, so that launches do not count.
fn product(dev: &mut Cuda, name: &str, a: &Arc<Csr<f64>>, copy: f64) -> Result<(), lacuna_core::Error> {
    let mark = dev.mark();
    dev.set_mode(Mode::Graph);
    let matrix: Matrix<f64> = dev.matrix(a.clone())?;
    let n = a.rows();
    let (x, y): (Vector<f64>, Vector<f64>) = (dev.vector(n)?, dev.vector(n)?);
    dev.upload(&vec![1.0; n], x)?;
    let micros = repeat(dev, |k, c| k.spmv_dot(&matrix, x, y, Pass::new("count").count(c)))?;
    let bytes = a.nnz() * 12 + (n + 1) * 4 + 16 * n;
    let rate = bytes as f64 / micros / 1e3;
    println!(
        "{:>12} {:>14} {micros:9.2} us            {rate:7.0} GB/s ({:3.0} %)",
        "spmv",
        "csr",
        100.0 * rate / copy
    );
    println!(
        "{{\"bench\":\"spmv\",\"matrix\":\"{name}\",\"n\":{n},\"format\":\"csr\",\"us\":{micros:.3},\"gbs\":{rate:.1}}}"
    );
    dev.release(mark);
    Ok(())
}

/// The update pass of conjugate gradients.
fn sweep(dev: &mut Cuda, n: usize, copy: f64) -> Result<(), lacuna_core::Error> {
    let mark = dev.mark();
    dev.set_mode(Mode::Graph);
    let v: Vec<Vector<f64>> = (0..4).map(|_| dev.vector(n)).collect::<Result<_, _>>()?;
    let c = Backend::cells::<f64>(dev, 3)?;
    let micros = repeat(dev, |k, rr| {
        let (x, r, p, q, alpha, beta) = (v[0], v[1], v[2], v[3], c.at(0), c.at(1));
        let step = Pass::new("step").set(x, x + alpha * p).set(r, r - alpha * q).set(p, r + beta * p);
        k.multi_axpy_dot(step.dot(rr, r, r).count(rr));
    })?;
    let rate = 56.0 * n as f64 / micros / 1e3;
    println!(
        "\n{:>12} n = {n}: {micros:9.2} us {rate:7.0} GB/s ({:3.0} %)",
        "cg's pass",
        100.0 * rate / copy
    );
    println!("{{\"bench\":\"sweep\",\"n\":{n},\"us\":{micros:.3},\"gbs\":{rate:.1}}}");
    dev.release(mark);
    Ok(())
}

/// Microseconds of what `body` records, of 200 runs within one program: the median of five, less an empty program's.
fn repeat(
    dev: &mut Cuda,
    body: impl FnOnce(&mut lacuna_core::Recorder<'_, f64>, lacuna_core::Cell<f64>),
) -> Result<f64, lacuna_core::Error> {
    const RUNS: u64 = 208;
    let mut k = lacuna_core::Recorder::new(dev, "repeat");
    let [c] = k.cells();
    k.each(|k| body(k, c));
    let program = k.finish()?;
    let mut plan = dev.plan(program)?;
    let mut times = Vec::new();
    for _ in 0..6 {
        let start = Instant::now();
        let mut history = lacuna_core::History::default();
        dev.execute(&mut plan, lacuna_core::Run { limit: RUNS, history: &mut history, watch: None })?;
        times.push(start.elapsed().as_secs_f64() / RUNS as f64 * 1e6);
    }
    times.remove(0);
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
