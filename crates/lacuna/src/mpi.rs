//! Several processes, started together by `mpirun`, that share every system: the same bits of x on any number of them.
//!
//! Every process runs the same program with the same matrix and right-hand sides, in the same order, and gets all of x:
//!
//! ```no_run
//! use lacuna::prelude::*;
//!
//! let job = lacuna::mpi::start()?;
//! let dev = lacuna::mpi::device(&job)?;
//! let a = Spec::parse("gen:poisson2d:512x512")?.build::<f64>()?;
//! let b = Array1::ones(a.rows());
//! let (x, outcome) = LinearSystem::new(a).on(&dev).prepare()?.solve(&b)?;
//! if job.rank() == 0 {
//!     println!("{outcome}, {}", x[0]);
//! }
//! # Ok::<(), lacuna::Error>(())
//! ```
//!
//! What a clock or a cache decides differs between processes: a format, an order or a method by `tune`, and [`advise`](crate::advise),
//! are not for them. A process that does something else than the others, or that fails alone, ends all with an error that has its
//! number; one that panics, or that nobody hears of for `LACUNA_RANK_TIMEOUT` seconds (600), aborts the job.
use lacuna_engine::{Device, Result};
pub use lacuna_mpi::{Job, start};

/// The CPU of this process, on one thread, as its rank in a job. A job has one device at a time.
///
/// # Errors
/// As [`open`](crate::open).
pub fn device(job: &Job) -> Result<Device> {
    Ok(Device::new(crate::divided::member(job)?))
}
