//! Copies of large arrays between host and device by several threads, through page-locked memory.
//!
//! Each thread takes the next piece of the array, with two places of its own: while the device copies one, the thread
//! copies the other. For pageable memory the driver would copy with one thread.
use crate::driver::{Address, Driver, Event};
use crate::transfer::Pinned;
use cust::sys;
use lacuna_engine::Result;
use rayon::prelude::*;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Minimum bytes of an array that is copied in this way.
pub(crate) const LARGE: usize = 1 << 20;
/// Bytes of a piece.
const PIECE: usize = 256 << 10;
/// Threads, of which each has two places.
const LANES: usize = 8;

/// The places of the threads.
pub(crate) struct Carrier(Vec<[Place; 2]>);

/// Memory for a piece, and the event recorded after its last copy.
struct Place {
    piece: Pinned,
    passed: Event,
}

impl Place {
    fn wait(&self) -> Result<(), sys::CUresult> {
        done(self.passed.wait())
    }
    fn address(&self) -> *mut c_void {
        self.piece.address() as *mut c_void
    }
}

/// An array in device memory, for any thread.
struct Remote {
    context: sys::CUcontext,
    stream: sys::CUstream,
    address: Address,
}
// SAFETY: the driver accepts calls for a context and a stream from any thread; both outlive the transfer.
unsafe impl Sync for Remote {}

/// The status as a `Result`.
fn done(result: sys::CUresult) -> Result<(), sys::CUresult> {
    if result == sys::CUresult::CUDA_SUCCESS { Ok(()) } else { Err(result) }
}

impl Remote {
    /// Does something in the context, and leaves the thread in the one that was current there before.
    fn within(&self, work: impl FnOnce() -> Result<(), sys::CUresult>) -> Result<(), sys::CUresult> {
        // SAFETY: a live context.
        done(unsafe { sys::cuCtxPushCurrent_v2(self.context) })?;
        let worked = work();
        let mut popped = std::ptr::null_mut();
        // SAFETY: writes the context that was pushed above.
        let restored = done(unsafe { sys::cuCtxPopCurrent_v2(&mut popped) });
        worked.and(restored)
    }
    /// Queues a copy from a place, and records its event.
    fn send(&self, place: &Place, bytes: usize, offset: usize) -> Result<(), sys::CUresult> {
        let to = self.address + offset as u64;
        // SAFETY: the place has room for a piece, and does not change before its event has passed.
        done(unsafe { sys::cuMemcpyHtoDAsync_v2(to, place.address(), bytes, self.stream) })?;
        done(place.passed.record(self.stream))
    }
    /// Queues a copy to a place, and records its event.
    fn fetch(&self, place: &Place, bytes: usize, offset: usize) -> Result<(), sys::CUresult> {
        let from = self.address + offset as u64;
        // SAFETY: the place has room for a piece, and is not read before its event has passed.
        done(unsafe { sys::cuMemcpyDtoHAsync_v2(place.address(), from, bytes, self.stream) })?;
        done(place.passed.record(self.stream))
    }
}

impl Carrier {
    pub(crate) fn new(driver: &Driver) -> Result<Self> {
        let place =
            || -> Result<_> { Ok(Place { piece: driver.pinned(PIECE)?, passed: Event::new(driver)? }) };
        (0..LANES).map(|_| Ok([place()?, place()?])).collect::<Result<_>>().map(Carrier)
    }

    /// Copies to the device; the array may change once this returns.
    pub(crate) fn upload(
        &mut self,
        driver: &Driver,
        from: &[u8],
        to: Address,
        operation: &str,
    ) -> Result<()> {
        let pieces: Vec<&[u8]> = from.chunks(PIECE).collect();
        self.run(driver, to, pieces.len(), operation, |remote, places, take| {
            for k in 0.. {
                let Some(i) = take() else { break };
                let place = &mut places[k % 2];
                place.wait()?;
                place.piece.bytes_mut()[..pieces[i].len()].copy_from_slice(pieces[i]);
                remote.send(place, pieces[i].len(), i * PIECE)?;
            }
            Ok(())
        })
    }

    /// Copies from the device.
    pub(crate) fn download(
        &mut self,
        driver: &Driver,
        from: Address,
        to: &mut [u8],
        operation: &str,
    ) -> Result<()> {
        let pieces: Vec<Mutex<&mut [u8]>> = to.chunks_mut(PIECE).map(Mutex::new).collect();
        let piece = |i: usize| pieces[i].lock().unwrap_or_else(PoisonError::into_inner);
        self.run(driver, from, pieces.len(), operation, |remote, places, take| {
            // The piece that is on its way to each place.
            let mut coming = [take(), None];
            if let Some(i) = coming[0] {
                remote.fetch(&places[0], piece(i).len(), i * PIECE)?;
            }
            for k in 0.. {
                let (here, next) = (k % 2, (k + 1) % 2);
                let Some(i) = coming[here].take() else { break };
                coming[next] = take();
                if let Some(i) = coming[next] {
                    remote.fetch(&places[next], piece(i).len(), i * PIECE)?;
                }
                places[here].wait()?;
                let mut to = piece(i);
                let bytes = to.len();
                to.copy_from_slice(&places[here].piece.bytes_mut()[..bytes]);
            }
            Ok(())
        })
    }

    /// Has each thread do its part of `count` pieces of an array, which it takes by their numbers.
    fn run(
        &mut self,
        driver: &Driver,
        address: Address,
        count: usize,
        operation: &str,
        lane: impl Fn(&Remote, &mut [Place; 2], &dyn Fn() -> Option<usize>) -> Result<(), sys::CUresult> + Sync,
    ) -> Result<()> {
        // One thread waits for what is queued, not all of them.
        driver.wait(operation)?;
        let remote = Remote { context: driver.context(), stream: driver.stream.as_inner(), address };
        let next = AtomicUsize::new(0);
        let take = || Some(next.fetch_add(1, Relaxed)).filter(|i| *i < count);
        let work = |places: &mut [Place; 2]| remote.within(|| lane(&remote, places, &take));
        let used = &mut self.0[..count.min(LANES)];
        let failed = used.par_iter_mut().with_max_len(1).map(work).find_map_any(Result::err);
        // The calling thread may have done other work meanwhile.
        driver.enter()?;
        failed.map_or(Ok(()), |result| {
            // Nothing queued may outlive what it copies; the first error is the one to report.
            let _ = driver.wait(operation);
            driver.check(operation, result)
        })
    }
}
