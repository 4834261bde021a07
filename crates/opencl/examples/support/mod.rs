//! Shared by the measuring examples.
use lacuna_engine::{Backend, Cell, Recorder, Result};
use lacuna_opencl::OpenCl;
use std::time::Instant;

/// Microseconds of what `body` records, over many runs within one program: the median of five.
pub(crate) fn repeat(dev: &mut OpenCl, body: impl FnOnce(&mut Recorder<'_, f64>, Cell<f64>)) -> Result<f64> {
    const RUNS: u64 = 208;
    let mut k = Recorder::new(dev, "repeat");
    let [c] = k.cells();
    k.each(|k| body(k, c));
    let program = k.finish()?;
    let mut plan = dev.plan(program)?;
    let mut times = Vec::new();
    for _ in 0..6 {
        let start = Instant::now();
        let mut history = lacuna_engine::History::default();
        dev.execute(&mut plan, lacuna_engine::Run { limit: RUNS, history: &mut history, watch: None })?;
        times.push(start.elapsed().as_secs_f64() / RUNS as f64 * 1e6);
    }
    times.remove(0);
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
