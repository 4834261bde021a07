//! Systems on several ranks: opening them, and what outcomes say about them.
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::{Device, Error, Format, Result, Scalar};
use lacuna_ranks::{Group, Survey, Tally};
use lacuna_solvers::Outcome;
use std::fmt::Write;
use std::sync::Arc;

/// The CPU as several ranks of one thread each.
///
/// # Errors
/// As [`lacuna_cpu::Cpu::with`]; [`Error::Argument`] for 0 ranks.
#[cfg(feature = "cpu")]
pub(crate) fn group(ranks: usize) -> Result<Group> {
    let parts = (0..ranks).map(|_| part()).collect::<Result<Vec<_>>>()?;
    Ok(Group::new(parts)?.whole_below(WHOLE_BELOW))
}

/// GPUs of this host, by their indices, each a rank.
///
/// # Errors
/// As [`lacuna_cuda::Cuda::with`].
#[cfg(feature = "cuda")]
pub(crate) fn gpus(devices: &[usize]) -> Result<Group> {
    use lacuna_cuda::{Cuda, CudaOptions};
    let part = |device: &usize| -> Result<Box<dyn lacuna_engine::Divided>> {
        Ok(Box::new(Cuda::part(&CudaOptions::default().device(device.to_string()))?))
    };
    Ok(Group::new(devices.iter().map(part).collect::<Result<_>>()?)?.whole_below(WHOLE_BELOW))
}

/// Levels of a multigrid method with fewer rows are kept whole by every rank: they cost more messages than arithmetic.
#[cfg(any(feature = "cpu", feature = "cuda"))]
const WHOLE_BELOW: usize = 65_536;

/// A rank on one thread of the CPU.
#[cfg(feature = "cpu")]
fn part() -> Result<Box<dyn lacuna_engine::Divided>> {
    use lacuna_cpu::{Cpu, CpuOptions};
    Ok(Box::new(Cpu::with(CpuOptions::default().threads(1))?))
}

/// The CPU of this process as its rank in a job.
#[cfg(feature = "mpi")]
pub(crate) fn member(job: &lacuna_mpi::Job) -> Result<Group> {
    Ok(Group::member(part()?, job.links()).whole_below(WHOLE_BELOW))
}

/// Whether a device is several ranks.
fn is_divided(dev: &Device) -> bool {
    dev.info().backend == "ranks"
}

/// Fails if a system has fewer segments of rows than the device has ranks.
pub(crate) fn check_rows(dev: &Device, rows: usize) -> Result<()> {
    if is_divided(dev) { check_ranks(dev.info().units, rows) } else { Ok(()) }
}

/// Fails unless so many rows can be divided among so many ranks.
fn check_ranks(ranks: usize, rows: usize) -> Result<()> {
    let most = rows.div_ceil(SEGMENT).max(1);
    if (1..=most).contains(&ranks) {
        return Ok(());
    }
    let message = match ranks {
        0 => "expected 1 or more, got 0".into(),
        _ => format!(
            "{rows} rows are divided among {most} at most, in whole segments of {SEGMENT} rows; got {ranks}"
        ),
    };
    Err(Error::Argument { what: "ranks".into(), message })
}

/// How the rows of a square matrix would be divided among ranks, and what that costs: see
/// [`DeviceOptions::ranks`](crate::DeviceOptions::ranks).
///
/// ```
/// use lacuna::prelude::*;
///
/// let a = Spec::parse("gen:poisson2d:64x64")?.build::<f64>()?;
/// let survey = lacuna::survey_ranks(std::sync::Arc::new(a), 4)?;
/// assert_eq!(survey.parts.iter().map(|part| part.halo).collect::<Vec<_>>(), [64, 128, 128, 64]);
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// [`Error::Argument`] for no ranks, or more than there are segments of rows; [`Error::Unsupported`] for a matrix that is not
/// square, and for a format of another crate.
pub fn survey_ranks<T: Scalar>(a: Arc<dyn Format<T>>, ranks: usize) -> Result<Survey> {
    let (rows, cols) = a.shape();
    check_ranks(ranks, rows)?;
    Survey::of(&T::each(a), ranks).ok_or_else(|| Error::Unsupported {
        operation: "a division among ranks".into(),
        message: format!("expected a square matrix in a format of this crate, got {rows} x {cols}"),
    })
}

/// Begins to count messages.
pub(crate) fn begin(dev: &Device) {
    if is_divided(dev) {
        let _ = dev.with(Group::take_tallies);
    }
}

/// Notes in an outcome how the system is divided, and what was sent since [`begin`].
pub(crate) fn note(dev: &Device, outcome: &mut Outcome) {
    if !is_divided(dev) {
        return;
    }
    let asked = dev.with(|group: &mut Group| (group.survey(), group.take_tallies()));
    let Ok((survey, tallies)) = asked else { return };
    let Some(first) = tallies.first().filter(|tally| !tally.time.is_zero()) else { return };
    let each = |count: u64| count as f64 / outcome.iterations.max(1) as f64;
    let share = |tally: &Tally| tally.messages.as_secs_f64() / tally.time.as_secs_f64();
    let mut text = match survey {
        Some(survey) => survey.to_string(),
        None => format!("{} ranks", tallies.len()),
    };
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "; an iteration: {:.1} gathers, {:.1} exchanges of {} bytes; messages and waiting {:.0} % of the time of a rank at most",
        each(first.gathers),
        each(first.exchanges),
        tallies.iter().map(|tally| tally.halo).sum::<u64>() / outcome.iterations.max(1),
        100.0 * tallies.iter().map(share).fold(0.0, f64::max)
    );
    if first.whole > 0 {
        let _ = write!(
            text,
            "; {:.1} whole vectors an iteration for what cannot be divided, as triangular solves: slow",
            each(first.whole)
        );
    }
    outcome.notes.push(text);
}
