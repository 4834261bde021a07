//! A spinning barrier that also carries the caller's wishes to all threads at once.
use super::sync::{AtomicU8, AtomicU32, AtomicUsize, Ordering, spin_loop, yield_now};
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize as Counter;

/// Spins before giving the core away, where every thread can have one: about 50 microseconds.
const SPINS: u32 = 1 << 11;
/// The same where threads outnumber cores: whoever is waited for may need this very core.
const CROWDED_SPINS: u32 = 1 << 4;

/// The wish that the program stop.
pub(crate) const CANCEL: u8 = 1;
/// The wish that all threads but the caller's leave.
pub(crate) const PART: u8 = 2;

/// Threads of this process that are running programs.
static RUNNING: Counter = Counter::new(0);

/// How many cores there are.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// Where the threads of one program meet between operations.
pub(crate) struct Barrier {
    threads: usize,
    arrived: Padded<AtomicUsize>,
    epoch: Padded<AtomicU32>,
    /// What the caller wishes, see [`CANCEL`] and [`PART`].
    wish: AtomicU8,
    /// What the last thread to arrive saw of it, by the parity of the epoch.
    seen: [AtomicU8; 2],
}

/// Alone on its cache lines.
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

    /// Tells all at the next meeting, and until the wish is taken back.
    pub(crate) fn wish(&self, wish: u8) {
        self.wish.fetch_or(wish, Ordering::Relaxed);
    }

    pub(crate) fn take_back(&self, wish: u8) {
        self.wish.fetch_and(!wish, Ordering::Relaxed);
    }

    /// Waits for all threads; the wishes there were when the last one came. All threads are told the same.
    pub(crate) fn wait(&self) -> u8 {
        let epoch = self.epoch.0.load(Ordering::Relaxed);
        let seen = &self.seen[epoch as usize & 1];
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.0.store(0, Ordering::Relaxed);
            seen.store(self.wish.load(Ordering::Relaxed), Ordering::Relaxed);
            self.epoch.0.store(epoch.wrapping_add(1), Ordering::Release);
        } else {
            let crowded = RUNNING.load(Ordering::Relaxed) > cores();
            let (mut spins, limit) = (0, if crowded { CROWDED_SPINS } else { SPINS });
            while self.epoch.0.load(Ordering::Acquire) == epoch {
                if spins < limit {
                    spins += 1;
                    spin_loop();
                } else {
                    yield_now();
                }
            }
        }
        seen.load(Ordering::Relaxed)
    }
}

/// Threads that run a program as long as this lives.
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
