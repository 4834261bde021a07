//! One system on several processes, joined by MPI: the same bits of x on any number of them, with any MPI.
//!
//! Every process runs the same program with the same matrix. It sets everything up by itself, computes some rows of every vector, and
//! gets all of x: see [`lacuna_ranks`].
//!
//! ```no_run
//! use lacuna_cpu::{Cpu, CpuOptions};
//!
//! let job = lacuna_mpi::start()?;
//! let part = Cpu::with(CpuOptions::default().threads(1))?;
//! let group = lacuna_ranks::Group::member(Box::new(part), job.links());
//! # let _ = group;
//! # Ok::<(), lacuna_engine::Error>(())
//! ```
//!
//! A process that panics, or that cannot go on, aborts the job. One that waits for another longer than the seconds of
//! `LACUNA_RANK_TIMEOUT`, by default 600, says so and aborts it too.
mod job;
mod links;

pub use job::{Job, start};
