//! The job that `mpirun` started: what this process is in it, and how it ends.
use crate::links::MpiLinks;
use lacuna_engine::{Error, Result};
use lacuna_ranks::Links;
use mpi::Threading;
use mpi::environment::Universe;
use mpi::ffi;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{AsRaw, Communicator};
use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

/// The status with which a process ends that aborts the job.
const ABORTED: c_int = 70;
/// Seconds for which a process waits for another by default.
const TIMEOUT: u64 = 600;

/// The processes that `mpirun` started together. MPI is left when the last copy and the last links are dropped.
#[derive(Clone)]
pub struct Job {
    joined: Arc<Joined>,
}

/// MPI, in use.
pub(crate) struct Joined {
    pub(crate) world: SimpleCommunicator,
    pub(crate) timeout: Duration,
    _universe: Universe,
}

// SAFETY: MPI was asked for `Serialized`: any thread may call it, one at a time. Links call it through `&mut self`, of which a job
// makes one at a time.
unsafe impl Send for Joined {}
// SAFETY: see above.
unsafe impl Sync for Joined {}

/// Joins the other processes of this job. From now on a panic of any thread ends all of them.
///
/// # Errors
/// [`Error::Device`] if MPI was started before, or if it does not let threads call it in turns; [`Error::Argument`] for a
/// `LACUNA_RANK_TIMEOUT` that is no number of seconds.
pub fn start() -> Result<Job> {
    let failed = |message: String| Error::Device { device: "MPI".into(), operation: "start".into(), message };
    let timeout = match std::env::var("LACUNA_RANK_TIMEOUT") {
        Err(_) => TIMEOUT,
        Ok(text) => text.parse().ok().filter(|seconds| *seconds > 0).ok_or_else(|| Error::Argument {
            what: "LACUNA_RANK_TIMEOUT".into(),
            message: format!("expected a whole number of seconds from 1 on, got {text:?}"),
        })?,
    };
    let (universe, threading) = mpi::initialize_with_threading(Threading::Serialized)
        .ok_or_else(|| failed("it was started before in this process".into()))?;
    if !matches!(threading, Threading::Serialized | Threading::Multiple) {
        return Err(failed(format!("it offers {threading:?}, and Serialized is needed")));
    }
    let world = universe.world();
    let rank = world.rank();
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        usual(info);
        eprintln!("rank {rank}: panicked: the job ends");
        abort();
    }));
    let timeout = Duration::from_secs(timeout);
    Ok(Job { joined: Arc::new(Joined { world, timeout, _universe: universe }) })
}

/// Ends all processes of the job.
pub(crate) fn abort() -> ! {
    // SAFETY: MPI was started, and the function does not return.
    unsafe { ffi::MPI_Abort(SimpleCommunicator::world().as_raw(), ABORTED) };
    std::process::exit(ABORTED)
}

impl Job {
    /// The number of this process, from 0.
    pub fn rank(&self) -> usize {
        self.joined.world.rank().try_into().unwrap_or(0)
    }
    /// How many processes there are.
    pub fn ranks(&self) -> usize {
        self.joined.world.size().try_into().unwrap_or(1)
    }
    /// Links to the other processes. Only one of all that were made **may** be in use at a time.
    pub fn links(&self) -> Box<dyn Links> {
        Box::new(MpiLinks::new(self.joined.clone()))
    }
    /// Fails on every process unless something is the same on all. All **must** call it.
    ///
    /// # Errors
    /// [`Error::Argument`], which names the first process that differs from rank 0, and what both have.
    pub fn agree(&self, what: &str, own: &str) -> Result<()> {
        let mut links = self.links();
        let length = (own.len() as u64).to_le_bytes();
        let (mut lengths, mut all) = (Vec::new(), Vec::new());
        links.all_gather(&length, &vec![length.len(); self.ranks()], &mut lengths)?;
        let counts: Vec<usize> = lengths
            .chunks_exact(length.len())
            .map(|bytes| bytes.try_into().map_or(0, u64::from_le_bytes) as usize)
            .collect();
        links.all_gather(own.as_bytes(), &counts, &mut all)?;
        let mut rest = &all[..];
        let texts: Vec<&[u8]> = counts
            .iter()
            .map(|count| {
                let (own, more) = rest.split_at(*count);
                rest = more;
                own
            })
            .collect();
        let Some(rank) = texts.iter().position(|text| *text != texts[0]) else { return Ok(()) };
        let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        let message = format!("rank {rank} has {:?}, rank 0 has {:?}", shown(texts[rank]), shown(texts[0]));
        Err(Error::Argument { what: what.into(), message })
    }
    /// Ends all processes of the job.
    pub fn abort(&self) -> ! {
        abort()
    }
}
