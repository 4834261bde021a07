//! Measures this backend on a device: solvers, passes, and the copy bandwidth of the device.
//!
//! Protocol (Rupp et al. 2016): f64, right-hand side of ones, 30 fixed iterations, the median of ten solves
//! of data on the device, divided by 30. Each line is also printed as JSON.
//!
//! `bench [quick|large] [modes] [systems=a,b] [methods=a,b] [formats=a,b]`: `quick` skips the large systems,
//! `large` all others; `methods=transfers` times transfers of vectors to the device and back. Modes as in
//! `auto,jit,launches,one-group`. Systems and methods by suffix of their names, default all; formats by name,
//! default `auto`. `iterations=300` changes the number of iterations. The environment selects the device, see
//! `OpenClOptions::from_env`. The example `primitives` times products.
use lacuna_engine::{Backend, Format, Matrix, Pass, Result, Vector};
use lacuna_formats::{Csr, Spec, Structure, choose_format, convert};
use lacuna_opencl::{Mode, OpenCl, OpenClOptions};
use lacuna_solvers::{BiCgStab, Cg, Cycle, Gmres, Method, Orthogonalization, Side, Solver, Stop};
use std::sync::Arc;
use std::time::{Duration, Instant};

mod support;
use support::repeat;

const SOLVES: usize = 10;
/// Warm-up time before the first measured solve: an idle device is slow at first.
const WARM_UP: Duration = Duration::from_millis(200);
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

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|a| a == "quick");
    let only_large = arguments.iter().any(|a| a == "large");
    let list =
        arguments.iter().find(|a| *a != "quick" && *a != "large" && !a.contains('=')).map_or("auto", |a| a);
    let chosen = |what: &str, name: &str| {
        let list = arguments.iter().find_map(|a| a.strip_prefix(what));
        list.is_none_or(|list| list.split(',').any(|part| name.ends_with(part)))
    };
    let iterations = arguments.iter().find_map(|a| a.strip_prefix("iterations=")?.parse().ok()).unwrap_or(30);
    let modes: Vec<(&str, Mode)> = list
        .split(',')
        .map(|name| match name {
            "launches" => (name, Mode::Launches),
            "one-group" => (name, Mode::OneGroup),
            "jit" => (name, Mode::Jit),
            _ => (name, Mode::Auto),
        })
        .collect();
    let open = |mode| OpenCl::new(OpenClOptions { mode, ..OpenClOptions::from_env()? });
    let mut dev = open(Mode::Launches)?;
    let info = dev.device();
    println!("{}: {} units, {:?}", info.name, info.units, info.details);
    let copy = dev.measure_bandwidth()? / 1e9;
    println!("copy: {copy:.0} GB/s\n{{\"bench\":\"copy\",\"gbs\":{copy:.1}}}");
    if chosen("methods=", "transfers") {
        for megabytes in [1, 16, if quick { 64 } else { 256 }] {
            transfers(&mut dev, megabytes << 20)?;
        }
    }

    for (name, large) in SYSTEMS {
        if (large && quick) || (!large && only_large) || !chosen("systems=", name) {
            continue;
        }
        let a: Arc<Csr<f64>> = Arc::new(Spec::parse(name)?.build()?);
        let n = a.rows();
        println!("\n{name}: n = {n}, {} entries, {} lanes", a.nnz(), Format::lanes(&*a));
        let auto =
            choose_format(&a, &Structure::of(&*a), open(Mode::Auto)?.formats(a.rows(), Format::bytes(&*a))).0;
        let wanted = arguments.iter().find_map(|a| a.strip_prefix("formats=")).unwrap_or("auto");
        let wanted = wanted.split(',').map(|f| if f == "auto" { auto } else { f });
        let formats: Vec<_> = wanted.filter_map(|f| Some((f, convert(&a, f).ok()?))).collect();
        for (method_name, method) in methods().into_iter().filter(|(name, _)| chosen("methods=", name)) {
            for ((format, a), (mode_name, mode)) in
                formats.iter().flat_map(|f| modes.iter().map(move |m| (f, m)))
            {
                if *mode == Mode::OneGroup && n > 17_000 {
                    continue;
                }
                match open(*mode).and_then(|mut dev| solves(&mut dev, a, &*method, iterations)) {
                    Ok((micros, planned, bytes)) => {
                        let rate = bytes as f64 / micros / 1e3;
                        let share = 100.0 * rate / copy;
                        println!(
                            "{method_name:>12} {format:>5} {mode_name:>10} {micros:9.2} us/iteration {rate:7.1} GB/s ({share:3.0} %), planned in {planned:.0} ms"
                        );
                        println!(
                            "{{\"bench\":\"solve\",\"matrix\":\"{name}\",\"n\":{n},\"method\":\"{method_name}\",\"format\":\"{format}\",\
                             \"mode\":\"{mode_name}\",\"us\":{micros:.3},\"gbs\":{rate:.1},\"plan_ms\":{planned:.1}}}"
                        );
                    }
                    Err(error) => println!("{method_name:>12} {format:>5} {mode_name:>10}: {error}"),
                }
            }
        }
    }
    if !chosen("methods=", "pass") {
        return Ok(());
    }
    sweep(&mut dev, if quick { 1 << 16 } else { 1 << 25 }, copy)?;
    sweep(&mut dev, if quick { 1 << 14 } else { 1 << 20 }, copy)
}

fn methods() -> Vec<(&'static str, Box<dyn Method<f64>>)> {
    let gmres =
        |orthogonalization| Gmres { cycle: Cycle { restart: 30, orthogonalization }, side: Side::Right };
    vec![
        ("cg", Box::new(Cg)),
        ("bicgstab", Box::new(BiCgStab)),
        ("gmres-once", Box::new(gmres(Orthogonalization::Classical))),
        ("gmres", Box::new(gmres(Orthogonalization::default()))),
    ]
}

/// Microseconds per iteration, milliseconds of planning, bytes per iteration.
fn solves(
    dev: &mut OpenCl,
    a: &Arc<dyn Format<f64>>,
    method: &dyn Method<f64>,
    max_iters: u64,
) -> Result<(f64, f64, usize)> {
    let matrix: Matrix<f64> = dev.matrix(a.clone())?;
    let stop = Stop { rtol: 0.0, atol: 0.0, max_iters, dtol: f64::INFINITY };
    let planned = Instant::now();
    let mut solver = Solver::new(dev, &matrix, None, method, stop)?;
    let planned = planned.elapsed().as_secs_f64() * 1e3;
    let (b, x) = (vec![1.0; a.shape().0], vec![0.0; a.shape().0]);
    let mut back = x.clone();
    let mut times = Vec::new();
    let begun = Instant::now();
    while times.len() < SOLVES {
        dev.upload(&b, solver.b())?;
        dev.upload(&x, solver.x())?;
        // A write that has returned may still be in flight.
        dev.download(solver.x(), &mut back)?;
        let start = Instant::now();
        let iterations = solver.solve_on_device(dev, None)?.iterations.max(1);
        if begun.elapsed() > WARM_UP {
            times.push(start.elapsed().as_secs_f64() / iterations as f64);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok((times[times.len() / 2] * 1e6, planned, solver.program().bytes_per_iteration()))
}

/// Bandwidth of a vector to the device and back, the best of ten, and back into untouched pages.
fn transfers(dev: &mut OpenCl, bytes: usize) -> Result<()> {
    let mark = dev.mark();
    let x: Vector<f64> = Backend::vector(dev, bytes / 8)?;
    let mut host = vec![1.0; bytes / 8];
    let mut best = [f64::INFINITY; 3];
    for _ in 0..10 {
        let mut untouched = vec![0.0; bytes / 8];
        let start = Instant::now();
        dev.upload(&host, x)?;
        // A write that has returned may still be in flight; the read of a cell is queued behind it.
        let c = Backend::cells::<f64>(dev, 1)?;
        dev.read(&[c.at(0)])?;
        let up = start.elapsed();
        dev.download(x, &mut host)?;
        let down = start.elapsed() - up;
        dev.download(x, &mut untouched)?;
        let fresh = start.elapsed() - up - down;
        for (best, time) in best.iter_mut().zip([up, down, fresh]) {
            *best = best.min(time.as_secs_f64());
        }
    }
    let [up, down, fresh] = best.map(|seconds| bytes as f64 / seconds / 1e9);
    let mib = bytes >> 20;
    println!("{mib} MiB: upload {up:.1} GB/s, download {down:.1}, to untouched pages {fresh:.1}");
    println!(
        "{{\"bench\":\"transfer\",\"mib\":{mib},\"up\":{up:.2},\"down\":{down:.2},\"fresh\":{fresh:.2}}}"
    );
    dev.release(mark);
    Ok(())
}

/// The update pass of conjugate gradients.
fn sweep(dev: &mut OpenCl, n: usize, copy: f64) -> Result<()> {
    let mark = dev.mark();
    let v: Vec<Vector<f64>> = (0..4).map(|_| Backend::vector(dev, n)).collect::<Result<_, _>>()?;
    let c = Backend::cells::<f64>(dev, 3)?;
    let micros = repeat(dev, |k, rr| {
        let (x, r, p, q, alpha, beta) = (v[0], v[1], v[2], v[3], c.at(0), c.at(1));
        let step = Pass::new("step").set(x, x + alpha * p).set(r, r - alpha * q).set(p, r + beta * p);
        k.multi_axpy_dot(step.dot(rr, r, r).count(rr));
    })?;
    let rate = 56.0 * n as f64 / micros / 1e3;
    println!(
        "\n{:>12} n = {n}: {micros:9.2} us {rate:7.1} GB/s ({:3.0} %)",
        "cg's pass",
        100.0 * rate / copy
    );
    println!("{{\"bench\":\"sweep\",\"n\":{n},\"us\":{micros:.3},\"gbs\":{rate:.1}}}");
    dev.release(mark);
    Ok(())
}
