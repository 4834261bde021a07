//! Measured memory bandwidth of a device.
use lacuna::backend::{History, Run};
use lacuna::{Cell, Device, Pass, Recorder, Result, Scalar, Vector};
use std::time::Instant;

/// Elements of each of the three vectors: 128 MiB in f64, beyond the caches of most devices.
const ELEMENTS: usize = 1 << 24;
/// The vectors take at most one part in this many of the memory.
const MEMORY_SHARE: u64 = 8;
/// Sweeps in a run, and the number of runs, of which the fastest counts.
const SWEEPS: u64 = 5;
const RUNS: usize = 3;

/// Bytes moved per second by `z ← x + c y` over vectors larger than the caches.
pub fn triad<T: Scalar>(dev: &Device, memory: Option<u64>) -> Result<f64> {
    speed::<T>(dev, memory, 2, |[x, y, z], c| Pass::new("triad").set(z, x + c * y))
}

/// Bytes read and written per second by `z ← x` over vectors larger than the caches.
pub(crate) fn copy<T: Scalar>(dev: &Device, memory: Option<u64>) -> Result<f64> {
    speed::<T>(dev, memory, 1, |[x, _, z], _| Pass::new("copy").set(z, x))
}

/// The bandwidth of a pass that reads the first `read` vectors.
fn speed<T: Scalar>(
    dev: &Device,
    memory: Option<u64>,
    read: usize,
    pass: impl FnOnce([Vector<T>; 3], Cell<T>) -> Pass<T>,
) -> Result<f64> {
    let affordable = memory.map_or(u64::MAX, |memory| memory / MEMORY_SHARE / (3 * 8));
    let n = ELEMENTS.min(usize::try_from(affordable).unwrap_or(usize::MAX)).max(1);
    measure(dev, n, read, pass)
}

fn measure<T: Scalar>(
    dev: &Device,
    n: usize,
    read: usize,
    pass: impl FnOnce([Vector<T>; 3], Cell<T>) -> Pass<T>,
) -> Result<f64> {
    let mut k = Recorder::<T>::new(dev, "bandwidth");
    let vectors = k.vectors(n);
    let [c, rr] = k.cells();
    k.multi_axpy_dot(Pass::new("start").eval(c, 0.5).eval(rr, 1.0));
    k.each(|k| k.multi_axpy_dot(pass(vectors, c).count(rr)));
    let program = k.finish()?;
    let moved = program.bytes_per_iteration() as f64 * SWEEPS as f64;
    let mut plan = dev.plan(program)?;
    // Pages never written to may all map to the same physical page.
    let numbers = vec![T::one(); n];
    vectors.into_iter().take(read).try_for_each(|v| dev.upload(&numbers, v))?;
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        plan.execute(Run { limit: SWEEPS, history: &mut History::off(), watch: None })?;
        dev.read(&[rr])?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(moved / best)
}
