//! Times passes of several shapes over vectors of ones: `passes SIZES TYPES [THREADS]`, with comma-separated
//! lists.
use lacuna_cpu::{Cpu, CpuOptions};
use lacuna_engine::{Cells, Device, History, NumberType, Pass, Recorder, Run, Scalar, Vector, with_number};
use std::time::Instant;

type Make<T> = fn([Vector<T>; 9], Cells<T>) -> Pass<T>;

/// Passes of the methods, and some that no method uses.
fn passes<T: Scalar>() -> Vec<(&'static str, Make<T>)> {
    vec![
        ("dot", |[x, y, ..], c| Pass::new("").dot(c.at(1), x, y)),
        ("bicgstab-dots", |[s, t, r0, ..], c| {
            Pass::new("").dot(c.at(1), t, s).dot(c.at(2), t, t).dot(c.at(3), r0, t)
        }),
        ("scale", |[x, ..], c| Pass::new("").set(x, c.at(4) * x)),
        ("axpy", |[x, p, ..], c| Pass::new("").set(x, x + c.at(0) * p)),
        ("cg-step", |[x, p, r, q, ..], c| {
            Pass::new("").set(x, x + c.at(0) * p).set(r, r - c.at(0) * q).set(p, r + c.at(0) * p).dot(
                c.at(1),
                r,
                r,
            )
        }),
        ("pcg-step", |[x, p, r, q, z, mq, ..], c| {
            Pass::new("")
                .set(x, x + c.at(0) * p)
                .set(r, r - c.at(0) * q)
                .set(z, z - c.at(0) * mq)
                .set(p, z + c.at(0) * p)
                .dot(c.at(2), r, z)
                .dot(c.at(1), r, r)
        }),
        ("bicgstab-step", |[x, p, s, r, t, v, r0, ..], c| {
            Pass::new("")
                .set(x, x + c.at(0) * p + c.at(0) * s)
                .set(r, s - c.at(0) * t)
                .set(p, r + c.at(0) * (p - c.at(0) * v))
                .dot(c.at(2), r0, r)
                .dot(c.at(1), r, r)
        }),
        ("half-jacobi", |[r, v, s, d, ms, ..], c| Pass::new("").set(s, r - c.at(0) * v).set(ms, d * s)),
        ("own", |[x, y, z, p, q, d, w, ..], c| {
            Pass::new("")
                .set(w, x + c.at(0) * y + c.at(0) * z + c.at(0) * p + c.at(0) * q)
                .set(x, w - c.at(0) * (d * q))
                .dot(c.at(1), w, x)
                .dot(c.at(2), w, q)
        }),
    ]
}

fn time<T: Scalar>(n: usize, threads: Option<usize>, rounds: usize) {
    for (name, make) in passes::<T>() {
        let dev = Device::new(Cpu::with(CpuOptions::default().threads(threads)).unwrap()).scope();
        let ones = vec![T::one(); n];
        let vectors = std::array::from_fn(|_| {
            let v = dev.vector::<T>(n).unwrap();
            dev.upload(&ones, v).unwrap();
            v
        });
        let c = dev.run_of_cells::<T>(5).unwrap();
        dev.write(c.at(0), T::from_real(1e-30)).unwrap();
        dev.write(c.at(4), T::one()).unwrap();
        let mut k = Recorder::new(&dev, "pass");
        k.each(|k| k.multi_axpy_dot(make(vectors, c).count(c.at(1))));
        let program = k.finish().unwrap();
        let bytes = program.bytes_of(1);
        let mut plan = dev.plan(program).unwrap();
        let mut times = Vec::new();
        let mut limit = 3;
        for _ in 0..rounds + 1 {
            let start = Instant::now();
            dev.execute(&mut plan, Run { limit, history: &mut History::off(), watch: None }).unwrap();
            let time = start.elapsed().as_secs_f64() / limit as f64;
            if limit > 3 {
                times.push(time);
            }
            limit = ((6e-3 / time) as u64).max(4);
        }
        times.sort_by(f64::total_cmp);
        let least = times[0];
        let rate = bytes as f64 / least / 1e9;
        println!("{n} {} {name} {:.3} {:.1}", T::KIND.name(), least * 1e6, rate);
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let threads = args.get(2).map(|t| t.parse().unwrap());
    let rounds = args.get(3).map_or(6, |t| t.parse().unwrap());
    for n in args[0].split(',').map(|n| n.parse().unwrap()) {
        for kind in [NumberType::F64, NumberType::F32, NumberType::C64, NumberType::C32] {
            if args[1].split(',').any(|name| name == kind.name()) {
                with_number!(kind, T => time::<T>(n, threads, rounds));
            }
        }
    }
}
