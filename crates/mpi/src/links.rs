//! Messages by MPI.
use crate::job::{Joined, abort};
use lacuna_engine::{Error, Result};
use lacuna_ranks::Links;
use mpi::ffi;
use mpi::traits::{AsRaw, Communicator};
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::time::Instant;

/// The tag of all messages.
const TAG: c_int = 1;
/// Looks at a request before the core is offered to others, and between looks at the clock.
const LOOKS: u32 = 64;

/// Links to the other processes of a job.
pub(crate) struct MpiLinks {
    joined: Arc<Joined>,
    /// Messages that may still be on their way, with their bytes.
    sending: Vec<(ffi::MPI_Request, Vec<u8>)>,
    /// Buffers of messages that were sent.
    spare: Vec<Vec<u8>>,
    /// Bytes of each rank, and where they begin.
    counts: Vec<c_int>,
    starts: Vec<c_int>,
}

// SAFETY: requests are handles of MPI, which any thread may use in turns.
unsafe impl Send for MpiLinks {}

fn failed(operation: &str, message: String) -> Error {
    Error::Device { device: "MPI".into(), operation: operation.into(), message }
}

/// A number of bytes as MPI takes it.
fn int(operation: &str, count: usize) -> Result<c_int> {
    c_int::try_from(count).map_err(|_| {
        failed(operation, format!("{count} bytes are more than MPI sends at once: use more ranks"))
    })
}

/// Fails unless MPI says that something was done.
fn check(operation: &str, code: c_int) -> Result<()> {
    if code == ffi::MPI_SUCCESS as c_int { Ok(()) } else { Err(failed(operation, format!("error {code}"))) }
}

/// Whether a request is done.
fn is_done(operation: &str, request: &mut ffi::MPI_Request) -> Result<bool> {
    let mut done = 0;
    // SAFETY: a request of this process; its status is not wanted.
    check(operation, unsafe { ffi::MPI_Test(request, &mut done, ffi::RSMPI_STATUS_IGNORE) })?;
    Ok(done != 0)
}

impl MpiLinks {
    pub(crate) fn new(joined: Arc<Joined>) -> Self {
        let (sending, spare, counts, starts) = Default::default();
        MpiLinks { joined, sending, spare, counts, starts }
    }

    fn world(&self) -> ffi::MPI_Comm {
        self.joined.world.as_raw()
    }

    /// Waits until a request is done. If it is not in time, all processes end.
    fn wait(&mut self, operation: &str, request: &mut ffi::MPI_Request) -> Result<()> {
        let (began, mut looks) = (Instant::now(), 0u32);
        while !is_done(operation, request)? {
            looks = looks.wrapping_add(1);
            if looks % LOOKS != 0 {
                std::hint::spin_loop();
                continue;
            }
            if began.elapsed() > self.joined.timeout {
                let seconds = self.joined.timeout.as_secs();
                let rank = self.rank();
                eprintln!(
                    "rank {rank}: {operation}: no answer from another rank in {seconds} s (LACUNA_RANK_TIMEOUT): the job ends"
                );
                abort();
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Takes back the buffers of messages that have left.
    fn collect(&mut self) -> Result<()> {
        let mut at = 0;
        while at < self.sending.len() {
            if is_done("send", &mut self.sending[at].0)? {
                self.spare.push(self.sending.swap_remove(at).1);
            } else {
                at += 1;
            }
        }
        Ok(())
    }
}

impl Links for MpiLinks {
    fn rank(&self) -> usize {
        self.joined.world.rank().try_into().unwrap_or(0)
    }
    fn ranks(&self) -> usize {
        self.joined.world.size().try_into().unwrap_or(1)
    }
    fn all_gather(&mut self, mine: &[u8], counts: &[usize], all: &mut Vec<u8>) -> Result<()> {
        const OPERATION: &str = "a gather";
        Error::check_length(OPERATION, "the counts", self.ranks(), counts.len())?;
        Error::check_length(OPERATION, "the part of this rank", counts[self.rank()], mine.len())?;
        self.counts.clear();
        self.starts.clear();
        let mut total = 0;
        for count in counts {
            self.counts.push(int(OPERATION, *count)?);
            self.starts.push(int(OPERATION, total)?);
            total += count;
        }
        all.clear();
        all.resize(total, 0);
        let mut request = no_request();
        // SAFETY: both buffers have the lengths that are told, and live until the request is done.
        let code = unsafe {
            ffi::MPI_Iallgatherv(
                mine.as_ptr().cast(),
                int(OPERATION, mine.len())?,
                ffi::RSMPI_UINT8_T,
                all.as_mut_ptr().cast(),
                self.counts.as_ptr(),
                self.starts.as_ptr(),
                ffi::RSMPI_UINT8_T,
                self.world(),
                &mut request,
            )
        };
        check(OPERATION, code)?;
        self.wait(OPERATION, &mut request)?;
        self.collect()
    }
    fn send(&mut self, to: usize, bytes: &[u8]) -> Result<()> {
        const OPERATION: &str = "send";
        let mut own = self.spare.pop().unwrap_or_default();
        own.clear();
        own.extend_from_slice(bytes);
        let mut request = no_request();
        // SAFETY: the bytes stay where they are until the request is done: the buffer is kept with it.
        let code = unsafe {
            let (bytes, count): (*const c_void, _) = (own.as_ptr().cast(), int(OPERATION, own.len())?);
            ffi::MPI_Isend(
                bytes,
                count,
                ffi::RSMPI_UINT8_T,
                int(OPERATION, to)?,
                TAG,
                self.world(),
                &mut request,
            )
        };
        check(OPERATION, code)?;
        self.sending.push((request, own));
        Ok(())
    }
    fn receive(&mut self, from: usize, count: usize, to: &mut Vec<u8>) -> Result<()> {
        let operation = format!("a message of rank {from}");
        let start = to.len();
        to.resize(start + count, 0);
        let mut request = no_request();
        // SAFETY: so many bytes follow, and nobody touches them until the request is done.
        let code = unsafe {
            let bytes = to.as_mut_ptr().add(start).cast();
            let (count, from) = (int(&operation, count)?, int(&operation, from)?);
            ffi::MPI_Irecv(bytes, count, ffi::RSMPI_UINT8_T, from, TAG, self.world(), &mut request)
        };
        check(&operation, code)?;
        self.wait(&operation, &mut request)
    }
    fn abort(&self) {
        eprintln!("rank {}: could not go on: the job ends", self.rank());
        abort();
    }
}

/// The request that is none.
fn no_request() -> ffi::MPI_Request {
    // SAFETY: a constant of the library.
    unsafe { ffi::RSMPI_REQUEST_NULL }
}

impl Drop for MpiLinks {
    fn drop(&mut self) {
        for (mut request, bytes) in std::mem::take(&mut self.sending) {
            if self.wait("send", &mut request).is_err() {
                // MPI may still read them.
                std::mem::forget(bytes);
            }
        }
    }
}
