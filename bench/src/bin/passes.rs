//! Fused passes: far out of cache against a triad, in cache against loops written by hand.
use lacuna_bench::args::Args;
use lacuna_bench::by_hand::{BLOCK, Vectors};
use lacuna_bench::report::Report;
use lacuna_bench::stats::{Samples, seconds};
use lacuna_bench::triad::Triad;
use lacuna_bench::{Done, with_type};
use lacuna_core::{Backend, Cell, Expr, History, Pass, Plan, Recorder, Result, Run, Scalar, Vector};
use lacuna_cpu::{Cpu, CpuOptions};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

const USAGE: &str = "\
passes [--type f64] [--threads 1,2] [--n 16777216,20000,2000] [--rounds 9] [--only NAME,..] [--json FILE]
A row for each pass: microseconds, GB/s by the bytes it must move, and that over the triad measured just before it.
`traffic` counts a vector that is written but not read twice, since ordinary stores read the line first, in the
pass and in the triad alike: it cannot much exceed 1. `by_hand` is the time over that of a hand-written loop, on as many
threads far out of cache and on one in cache, for the passes that methods are made of.";

/// Sizes from here on are held against the triad, smaller ones against loops written by hand.
const LARGE: usize = 1 << 22;
/// Added to vectors of ones it changes nothing, so that they stay ones however often a pass runs.
const TINY: f64 = 1e-30;

fn main() -> Done {
    let args = Args::parse(USAGE);
    with_type!(args.text("--type", "f64"), T => run::<T>(&args))
}

struct Ready<T: Scalar> {
    name: String,
    reads: usize,
    writes: usize,
    bytes: usize,
    /// With the lines that ordinary stores read first.
    traffic: usize,
    plan: Plan<T>,
    seconds: Samples,
    fraction: Samples,
    by_hand: Samples,
}

fn run<T: Scalar>(args: &Args) -> Done {
    let mut report = Report::new(args)?;
    let rounds: usize = args.number("--rounds", 9)?;
    let only: Vec<String> = args.list("--only", "")?;
    for n in args.list::<usize>("--n", "16777216,20000,2000")? {
        for threads in args.list::<usize>("--threads", "1,2")? {
            let parallel_from = Some(if n < 12_000 { usize::MAX } else { 0 });
            if n < 12_000 && threads > 1 {
                continue;
            }
            let mut dev =
                Cpu::with(CpuOptions { threads: Some(threads), parallel_from, ..Default::default() })?;
            let mut passes = record::<T>(&mut dev, n, &only)?;
            if n >= LARGE {
                measure(&mut dev, &mut passes, rounds, n, 3, Some(Triad::new(threads)))?;
            } else {
                measure(&mut dev, &mut passes, rounds, n, (40_000_000 / n) as u64, None)?;
            }
            for p in &passes {
                let time = p.seconds.median();
                let rate = 1e-9 * p.bytes as f64 / time;
                let traffic = p.traffic as f64 / p.bytes as f64 * 24.0 / 32.0;
                let mut cells = vec![
                    ("pass", p.name.as_str().into()),
                    ("type", T::KIND.name().into()),
                    ("n", n.into()),
                    ("threads", threads.into()),
                    ("reads", p.reads.into()),
                    ("writes", p.writes.into()),
                    ("us", (1e6 * time, 3).into()),
                    ("spread%", (p.seconds.spread(), 1).into()),
                    ("GB/s", (rate, 1).into()),
                ];
                if n >= LARGE {
                    cells.push(("of_triad", (p.fraction.median(), 3).into()));
                    cells.push(("traffic", (p.fraction.median() * traffic, 3).into()));
                }
                cells.push(("by_hand", (p.by_hand.median(), 3).into()));
                report.row(&cells)?;
            }
        }
    }
    Ok(())
}

/// Rounds over all passes, each between the triad, if any, and the loop written by hand, if there is one.
fn measure<T: Scalar>(
    dev: &mut Cpu,
    passes: &mut [Ready<T>],
    rounds: usize,
    n: usize,
    iterations: u64,
    mut triad: Option<Triad>,
) -> Done {
    let hands = if triad.is_some() { dev.threads() } else { 1 };
    let mut vectors: Vec<_> = (0..hands).map(|_| Vectors::<T>::new(n / hands / BLOCK * BLOCK)).collect();
    // The first round warms up.
    for round in 0..=rounds {
        for p in &mut *passes {
            let yardstick = triad.as_mut().map_or(f64::NAN, Triad::run);
            let time = timed(dev, &mut p.plan, iterations)?;
            let known = AtomicBool::new(true);
            let by_hand = seconds(|| {
                std::thread::scope(|scope| {
                    let mut hands: Vec<_> = vectors.iter_mut().collect();
                    let own = hands.pop();
                    let work = |hand: &mut Vectors<T>| {
                        for _ in 0..iterations {
                            let sum = hand.run(&p.name, black_box(T::from_real(TINY)));
                            if black_box(sum).is_none() {
                                return known.store(false, Ordering::Relaxed);
                            }
                        }
                    };
                    hands.into_iter().for_each(|hand| drop(scope.spawn(move || work(hand))));
                    own.map(work);
                });
            });
            if round > 0 {
                p.seconds.push(time);
                p.fraction.push(1e-9 * p.bytes as f64 / time / yardstick);
                p.by_hand.push(if known.into_inner() {
                    time / by_hand * iterations as f64
                } else {
                    f64::NAN
                });
            }
        }
    }
    Ok(())
}

/// Seconds of one iteration.
fn timed<T: Scalar>(dev: &mut Cpu, plan: &mut Plan<T>, iterations: u64) -> Result<f64> {
    let mut history = History::off();
    let mut result = Ok(());
    let time = seconds(|| {
        let run = Run { limit: iterations, history: &mut history, watch: None };
        result = dev.execute(plan, run).map(|finish| assert_eq!(finish.iterations, iterations));
    });
    result.map(|()| time / iterations as f64)
}

/// Every pass as a program of its own, all over the same vectors of ones.
fn record<T: Scalar>(dev: &mut Cpu, n: usize, only: &[String]) -> Result<Vec<Ready<T>>> {
    let ones = vec![T::one(); n];
    let mut vectors = Vec::new();
    for _ in 0..7 {
        let v = Backend::vector::<T>(dev, n)?;
        dev.upload(&ones, v)?;
        vectors.push(v);
    }
    let cells = Backend::cells::<T>(dev, 5)?;
    let [c, one, rr, other, third] = std::array::from_fn(|i| cells.at(i));
    dev.write(c, T::from_real(TINY))?;
    dev.write(one, T::one())?;

    let mut list = named(&vectors, c, [rr, other, third]);
    for reads in 1..=6 {
        for writes in 1..=4 {
            list.push((format!("r{reads}w{writes}"), grid(&vectors, reads, writes, c, one, rr)));
        }
    }
    list.retain(|(name, _)| only.is_empty() || only.contains(name));
    list.into_iter()
        .map(|(name, pass)| {
            let mut k = Recorder::new(dev, "pass");
            k.each(|k| k.multi_axpy_dot(pass.count(rr)));
            let program = k.finish()?;
            let touched = program.each[0].sweep.vectors();
            let reads = touched.iter().filter(|v| v.1).count();
            let writes = touched.iter().filter(|v| v.2).count();
            let unread = touched.iter().filter(|v| v.2 && !v.1).count();
            let bytes = program.bytes_per_iteration();
            let traffic = bytes + unread * n * size_of::<T>();
            let plan = dev.plan(program)?;
            let (seconds, fraction, by_hand) = Default::default();
            Ok(Ready { name, reads, writes, bytes, traffic, plan, seconds, fraction, by_hand })
        })
        .collect()
}

/// The passes that methods are made of.
fn named<T: Scalar>(v: &[Vector<T>], c: Cell<T>, dots: [Cell<T>; 3]) -> Vec<(String, Pass<T>)> {
    let [rr, other, third] = dots;
    let [x, r, p, q, s, t, r0] = std::array::from_fn(|i| v[i]);
    let list = [
        ("dot", Pass::new("dot").dot(rr, r, p)),
        ("dots", Pass::new("dots").dot(rr, t, s).dot(other, t, t).dot(third, r0, t)),
        ("axpy", Pass::new("axpy").set(x, x + c * p)),
        ("bicgstab-half", Pass::new("half").set(s, r - c * q)),
        ("cg-descend", Pass::new("descend").set(x, x + c * p).set(r, r - c * q).dot(rr, r, r)),
        ("cg-step", Pass::new("step").set(x, x + c * p).set(r, r - c * q).set(p, r + c * p).dot(rr, r, r)),
        (
            "pcg-step",
            Pass::new("step")
                .set(x, x + c * p)
                .set(r, r - c * q)
                .set(s, s - c * t)
                .set(p, s + c * p)
                .dot(other, r, s)
                .dot(rr, r, r),
        ),
        (
            "bicgstab-step",
            Pass::new("step")
                .set(x, x + c * p + c * s)
                .set(r, s - c * t)
                .set(p, r + c * (p - c * q))
                .dot(other, r0, r)
                .dot(rr, r, r),
        ),
    ];
    list.map(|(name, pass)| (name.to_string(), pass)).into()
}

/// A pass that reads and writes so many vectors: the vectors written take up those only read in turn.
fn grid<T: Scalar>(
    v: &[Vector<T>],
    reads: usize,
    writes: usize,
    c: Cell<T>,
    one: Cell<T>,
    rr: Cell<T>,
) -> Pass<T> {
    let mut pass = Pass::new("grid");
    for j in 0..writes {
        let only_read = (writes..reads).filter(|k| k % writes == j);
        let start: Expr<T> = if j >= reads {
            one * v[j % reads]
        } else if only_read.clone().count() == 0 {
            one * v[j]
        } else {
            v[j].into()
        };
        pass = pass.set(v[j], only_read.fold(start, |sum, k| sum + c * v[k]));
    }
    pass.dot(rr, v[0], v[0])
}
