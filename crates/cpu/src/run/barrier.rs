//! A spinning barrier that also broadcasts the caller's requests to all threads.
use super::sync::{AtomicU8, AtomicU32, AtomicUsize, Ordering, pause, spin_loop};
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize as Counter;

/// Spins before yielding the core if every thread can have one: about 50 microseconds.
const SPINS: u32 = 1 << 11;
/// The same if threads outnumber cores: the awaited thread may need this very core.
const CROWDED_SPINS: u32 = 1 << 4;

/// Request: stop the program.
pub(crate) const CANCEL: u8 = 1;
/// Request: stop the program at once, since code of the caller's panicked.
pub(crate) const FAIL: u8 = 4;
/// Request: all threads except the caller's leave.
pub(crate) const PART: u8 = 2;

/// Number of threads of this process that are running programs.
static RUNNING: Counter = Counter::new(0);

/// Number of cores.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// The barrier of a program's threads between operations.
pub(crate) struct Barrier {
    threads: usize,
    arrived: Padded<AtomicUsize>,
    epoch: Padded<AtomicU32>,
    /// The caller's requests: see [`CANCEL`], [`FAIL`] and [`PART`].
    wish: AtomicU8,
    /// The requests seen by the last thread to arrive, by the parity of the epoch.
    seen: [AtomicU8; 2],
}

/// Padded to its own cache lines.
#[repr(align(128))]
struct Padded<T>(T);

impl Barrier {
    pub(crate) fn new(threads: usize) -> Self {
        Barrier {
            threads,
            arrived: Padded(AtomicUsize::new(0)),
            epoch: Padded(AtomicU32::new(0)),
            wish: AtomicU8::new(0),
            seen: [AtomicU8::new(0), AtomicU8::new(0)],
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Requests something at the next barrier, until the request is withdrawn.
    pub(crate) fn wish(&self, wish: u8) {
        self.wish.fetch_or(wish, Ordering::Relaxed);
    }

    pub(crate) fn take_back(&self, wish: u8) {
        self.wish.fetch_and(!wish, Ordering::Relaxed);
    }

    /// Waits for all threads; returns the requests at the time the last one arrived. All threads get the same
    /// value.
    pub(crate) fn wait(&self) -> u8 {
        let epoch = self.epoch.0.load(Ordering::Relaxed);
        let seen = &self.seen[epoch as usize & 1];
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.0.store(0, Ordering::Relaxed);
            seen.store(self.wish.load(Ordering::Relaxed), Ordering::Relaxed);
            self.epoch.0.store(epoch.wrapping_add(1), Ordering::Release);
        } else {
            let crowded = RUNNING.load(Ordering::Relaxed) > cores();
            let (mut spins, mut pauses, limit) = (0, 0, if crowded { CROWDED_SPINS } else { SPINS });
            while self.epoch.0.load(Ordering::Acquire) == epoch {
                if spins < limit {
                    spins += 1;
                    spin_loop();
                } else {
                    pause(pauses);
                    pauses += 1;
                }
            }
        }
        seen.load(Ordering::Relaxed)
    }
}

/// Threads that are running a program during the lifetime of this value.
pub(crate) struct Running(usize);

impl Running {
    pub(crate) fn new(threads: usize) -> Self {
        RUNNING.fetch_add(threads, Ordering::Relaxed);
        Running(threads)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(self.0, Ordering::Relaxed);
    }
}
