//! Measures the CUDA backend on this machine's device: solvers, products, and the copy bandwidth of the
//! device.
//!
//! Protocol (Rupp et al. 2016): f64, right-hand side of ones, 30 fixed iterations, the median of ten solves,
//! including the set-up of a solve and copies of `b` and `x`, divided by 30. Bytes are the minimum that the
//! solve can move, including its setup and the confirmation of the true residual. Each line is also printed
//! as JSON.
//!
//! `bench [quick|large] [modes] [systems=a,b] [methods=a,b] [formats=a,b] [iterations=30]`: `quick` skips the
//! large systems, `large` all others. Modes as in `auto,jit,graph`. Systems and methods by suffix of their
//! names, default all. Formats by name, default `auto`; for products (`methods=product`) every format that
//! can store the matrix.
use lacuna_cuda::{Compile, Cuda, CudaOptions, Mode, compiler_found};
use lacuna_engine::{Device, Format, Pass, Result};
use lacuna_formats::{Csr, FORMATS, Structure, choose_format, convert};
use lacuna_io::Spec;
use lacuna_solvers::{BiCgStab, Cg, Cycle, Gmres, Method, Orthogonalization, Side, Solver, Stop};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ITERATIONS: u64 = 30;
const SOLVES: usize = 10;
/// Warm-up time before the first measured solve: an idle device is slow at first.
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

/// Systems for timing products.
const PRODUCTS: [&str; 8] = [
    "gen:poisson1d:1000000",
    "gen:poisson2d:1000x1000",
    "gen:poisson3d:100x100x100",
    "gen:poisson2d:1000x1000:9",
    "gen:poisson3d:100x100x100:27",
    "gen:elasticity3d:47",
    "gen:power-law:1000000",
    "gen:poisson3d:256x256x256",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|a| a == "quick");
    let only_large = arguments.iter().any(|a| a == "large");
    let list = arguments
        .iter()
        .find(|a| *a != "quick" && *a != "large" && !a.contains('='))
        .map_or("auto,graph,stream", |a| a);
    let chosen = |what: &str, name: &str| {
        let list = arguments.iter().find_map(|a| a.strip_prefix(what));
        list.is_none_or(|list| list.split(',').any(|part| name.ends_with(part)))
    };
    let iterations = arguments.iter().find_map(|a| a.strip_prefix("iterations="));
    let iterations = iterations.map_or(Ok(ITERATIONS), str::parse)?;
    let modes: Vec<Mode> = list.split(',').map(str::parse).collect::<Result<_>>()?;
    // Times the kernel, not the graph that runs until it is compiled.
    let compile = compiler_found().then_some(Compile::Always);
    let dev = Device::new(Cuda::with(&CudaOptions::default().compile(compile))?);
    let info = dev.info();
    println!("{}: {} multiprocessors, {:?}", info.name, info.units, info.details);
    let bytes = if quick { 1 << 26 } else { 1 << 30 };
    let copy = 2.0 * bytes as f64 / dev.with(|cuda: &mut Cuda| cuda.time_copy(bytes, 20))?? / 1e9;
    println!("copy: {copy:.0} GB/s");
    println!("{{\"bench\":\"copy\",\"gbs\":{copy:.1}}}");

    for (name, large) in SYSTEMS {
        if (large && quick) || (!large && only_large) || !chosen("systems=", name) {
            continue;
        }
        let a: Arc<Csr<f64>> = Arc::new(Spec::parse(name)?.build()?);
        let n = a.rows();
        println!("\n{name}: n = {n}, {} entries, {} lanes", a.nnz(), a.lanes());
        let auto = choose_format(&a, &Structure::of(&*a), dev.formats(a.rows(), Format::bytes(&*a))?).0;
        let wanted = arguments.iter().find_map(|a| a.strip_prefix("formats=")).unwrap_or("auto");
        let wanted = wanted.split(',').map(|f| if f == "auto" { auto } else { f });
        let formats: Vec<_> = wanted.filter_map(|f| Some((f, convert(&a, f).ok()?))).collect();
        for (method_name, method) in methods().into_iter().filter(|(name, _)| chosen("methods=", name)) {
            for ((format, stored), mode) in formats.iter().flat_map(|f| modes.iter().map(move |m| (f, m))) {
                set_mode(&dev, *mode)?;
                match solves(&dev, stored, &*method, iterations) {
                    Ok((micros, bytes, actual)) => {
                        let rate = bytes as f64 / micros / 1e3;
                        println!(
                            "{method_name:>12} {format:>5} {:>7}{} {micros:9.2} us/iteration {rate:7.0} GB/s ({:3.0} %)",
                            mode.name(),
                            if *mode == Mode::Auto {
                                format!("={:<6}", actual.name())
                            } else {
                                " ".repeat(7)
                            },
                            100.0 * rate / copy
                        );
                        println!(
                            "{{\"bench\":\"solve\",\"matrix\":\"{name}\",\"n\":{n},\"method\":\"{method_name}\",\"format\":\"{format}\",\"mode\":\"{}\",\"ran\":\"{}\",\"us\":{micros:.3},\"gbs\":{rate:.1}}}",
                            mode.name(),
                            actual.name()
                        );
                    }
                    Err(error) => println!("{method_name:>12} {format:>5} {:>7}: {error}", mode.name()),
                }
            }
        }
    }
    for name in PRODUCTS.iter().filter(|_| chosen("methods=", "product")) {
        if quick || !chosen("systems=", name) {
            continue;
        }
        let a: Arc<Csr<f64>> = Arc::new(Spec::parse(name)?.build()?);
        println!("\n{name}: n = {}, {} entries, {} lanes", a.rows(), a.nnz(), a.lanes());
        for format in FORMATS.iter().filter(|f| chosen("formats=", f.name)) {
            if let Ok(stored) = convert(&a, format.name) {
                product(&dev, name, format.name, stored, copy)?;
            }
        }
    }
    if chosen("methods=", "transfer") {
        transfers(&dev, if quick { 1 << 20 } else { 1 << 24 })?;
    }
    if chosen("methods=", "pass") {
        sweep(&dev, if quick { 1 << 16 } else { 1 << 25 }, copy)?;
        sweep(&dev, if quick { 1 << 14 } else { 1 << 20 }, copy)?;
    }
    Ok(())
}

fn set_mode(dev: &Device, mode: Mode) -> Result<()> {
    dev.with(|cuda: &mut Cuda| cuda.set_mode(mode))
}

/// Waits until the device has done what was queued.
fn wait(dev: &Device) -> Result<()> {
    dev.with(|cuda: &mut Cuda| cuda.wait())?
}

fn methods() -> Vec<(&'static str, Box<dyn Method<f64>>)> {
    let gmres =
        |orthogonalization| Gmres { cycle: Cycle { restart: 30, orthogonalization }, side: Side::Right };
    vec![
        ("cg", Box::new(Cg)),
        ("bicgstab", Box::new(BiCgStab)),
        ("gmres-once", Box::new(gmres(Orthogonalization::Classical))),
        ("gmres", Box::new(gmres(Orthogonalization::ClassicalTwice))),
    ]
}

/// Microseconds and bytes per iteration, and the mode it ran in.
fn solves(
    dev: &Device,
    a: &Arc<dyn Format<f64>>,
    method: &dyn Method<f64>,
    max_iters: u64,
) -> Result<(f64, usize, Mode)> {
    let matrix = dev.matrix(a.clone())?;
    let stop = Stop::default().rtol(0.0).max_iters(max_iters).dtol(f64::INFINITY);
    let mut solver = Solver::new(dev, &matrix, None, method, stop)?;
    let n = a.shape().0;
    let (b, x) = (vec![1.0; n], vec![0.0; n]);
    let (mut times, mut bytes) = (Vec::new(), 0);
    let begin = Instant::now();
    while times.len() < SOLVES {
        // As in Rupp et al., the right-hand side and the guess are on the device; the time ends when the
        // solution is.
        dev.upload(&b, solver.b())?;
        dev.upload(&x, solver.x())?;
        wait(dev)?;
        let start = Instant::now();
        let outcome = solver.solve_on_device(None)?;
        let iterations = outcome.iterations.max(1);
        let restarts = outcome.restarts;
        let seconds = start.elapsed().as_secs_f64();
        bytes = solver.program().bytes_of_solve(iterations, restarts) / iterations;
        if begin.elapsed() > WARM_UP {
            times.push(seconds / iterations as f64);
        }
    }
    times.sort_by(f64::total_cmp);
    let plan = dev.plan(solver.program().clone())?;
    let mode = dev.with(|cuda: &mut Cuda| cuda.mode_of(plan.id()))?;
    Ok((times[times.len() / 2] * 1e6, bytes as usize, mode.unwrap_or_default()))
}

/// Many products in one program, so that launch overhead does not count.
fn product(dev: &Device, name: &str, format: &str, a: Arc<dyn Format<f64>>, copy: f64) -> Result<()> {
    set_mode(dev, Mode::Auto)?;
    let matrix = dev.matrix(a.clone())?;
    let n = a.shape().0;
    let (x, y) = (dev.vector::<f64>(n)?, dev.vector(n)?);
    dev.upload(&vec![1.0; n], *x)?;
    let micros = repeat(dev, |k, c| k.spmv_dot(&matrix, *x, *y, Pass::new("count").count(c)))?;
    let bytes = a.bytes() + 16 * n;
    let rate = bytes as f64 / micros / 1e3;
    println!(
        "{:>12} {:>14} {micros:9.2} us            {rate:7.0} GB/s ({:3.0} %)",
        "spmv",
        format,
        100.0 * rate / copy
    );
    println!(
        "{{\"bench\":\"spmv\",\"matrix\":\"{name}\",\"n\":{n},\"format\":\"{format}\",\"us\":{micros:.3},\"gbs\":{rate:.1}}}"
    );
    Ok(())
}

/// Bandwidth of vectors to the device and back, compared with the link; into memory written before, and into
/// fresh pages.
fn transfers(dev: &Device, n: usize) -> Result<()> {
    const TIMES: usize = 5;
    let vector = dev.vector::<f64>(n)?;
    let v = *vector;
    let link = dev.with(|cuda: &mut Cuda| cuda.time_link(8 * n))??;
    let mut host = vec![1.0; n];
    let mut fastest = [f64::INFINITY; 3];
    for _ in 0..TIMES {
        let start = Instant::now();
        dev.upload(&host, v)?;
        wait(dev)?;
        fastest[0] = fastest[0].min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        dev.download(v, &mut host)?;
        fastest[1] = fastest[1].min(start.elapsed().as_secs_f64());
        let mut fresh = vec![0.0; n];
        let start = Instant::now();
        dev.download(v, &mut fresh)?;
        fastest[2] = fastest[2].min(start.elapsed().as_secs_f64());
    }
    let names = ["upload", "download", "download-fresh"];
    for ((name, seconds), link) in names.iter().zip(fastest).zip([link[0], link[1], link[1]]) {
        let rate = |seconds: f64| 8.0 * n as f64 / seconds / 1e9;
        let (got, most) = (rate(seconds), rate(link));
        println!("{name:>14} n = {n}: {:9.2} ms {got:6.1} GB/s, the link {most:6.1}", seconds * 1e3);
        println!("{{\"bench\":\"{name}\",\"n\":{n},\"gbs\":{got:.2},\"link\":{most:.2}}}");
    }
    Ok(())
}

/// The update pass of conjugate gradients.
fn sweep(dev: &Device, n: usize, copy: f64) -> Result<()> {
    set_mode(dev, Mode::Graph)?;
    let v = (0..4).map(|_| dev.vector::<f64>(n)).collect::<Result<Vec<_>>>()?;
    let c = dev.cells::<f64>(3)?;
    let micros = repeat(dev, |k, rr| {
        let (x, r, p, q, alpha, beta) = (*v[0], *v[1], *v[2], *v[3], c.at(0), c.at(1));
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
    Ok(())
}

/// Microseconds of what `body` records, over 200 runs within one program: the median of five, minus an empty
/// program's.
fn repeat(
    dev: &Device,
    body: impl FnOnce(&mut lacuna_engine::Recorder<'_, f64>, lacuna_engine::Cell<f64>),
) -> Result<f64> {
    const RUNS: u64 = 208;
    let mut k = lacuna_engine::Recorder::new(dev, "repeat");
    let [c] = k.cells();
    k.each(|k| body(k, c));
    let program = k.finish()?;
    let mut plan = dev.plan(program)?;
    let mut times = Vec::new();
    for _ in 0..6 {
        let start = Instant::now();
        let mut history = lacuna_engine::History::default();
        plan.execute(lacuna_engine::Run { limit: RUNS, history: &mut history, watch: None })?;
        times.push(start.elapsed().as_secs_f64() / RUNS as f64 * 1e6);
    }
    times.remove(0);
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
