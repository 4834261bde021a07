//! The model's side of `crates/cpu/src/run/sync.rs`: loom's atomics, threads for those of a pool, and no time.
pub(crate) use loom::sync::atomic::Ordering;
use loom::sync::atomic::{Ordering::SeqCst, fence};
pub(crate) use loom::sync::{Arc, Mutex};
use loom::thread::Thread;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex as Plain, PoisonError};
use std::time::Duration;

/// Whether who waits sleeps until something is written, rather than to look again and again. Loom never ends where two threads look
/// in turns and a third is due. Sleeping orders more than the code does, so that orderings are proven with two threads.
static SLEEPS: AtomicBool = AtomicBool::new(false);
/// Who is about to sleep. Loom runs one thread at a time, and this is none of its memory.
static SLEEPERS: Plain<Vec<Thread>> = Plain::new(Vec::new());

pub(crate) fn begin(sleeps: bool) {
    SLEEPS.store(sleeps, Relaxed);
    SLEEPERS.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

pub(crate) fn spin_loop() {
    if !SLEEPS.load(Relaxed) {
        return loom::thread::yield_now();
    }
    let mut sleepers = SLEEPERS.lock().unwrap_or_else(PoisonError::into_inner);
    let me = loom::thread::current();
    if sleepers.iter().any(|other| other.id() == me.id()) {
        drop(sleepers);
        loom::thread::park();
    } else {
        sleepers.push(me);
        fence(SeqCst); // looks once more, at what was written last
    }
}

pub(crate) fn yield_now() {
    spin_loop();
}

/// Nobody else computes.
pub(crate) fn crowded(_: usize) -> bool {
    false
}

pub(crate) fn pause(_: u32) {
    spin_loop();
}

fn wake() {
    if !SLEEPS.load(Relaxed) {
        return;
    }
    fence(SeqCst);
    let sleepers = std::mem::take(&mut *SLEEPERS.lock().unwrap_or_else(PoisonError::into_inner));
    sleepers.iter().for_each(Thread::unpark);
}

/// Loom's atomics, whose writes wake who sleeps.
macro_rules! atomics {
    ($($name:ident: $value:ty, [$($write:ident),*];)*) => {$(
        #[derive(Debug)]
        pub(crate) struct $name(loom::sync::atomic::$name);

        impl $name {
            pub(crate) fn new(value: $value) -> Self {
                $name(loom::sync::atomic::$name::new(value))
            }
            pub(crate) fn load(&self, order: Ordering) -> $value {
                self.0.load(order)
            }
            #[allow(dead_code)]
            pub(crate) fn store(&self, value: $value, order: Ordering) {
                self.0.store(value, order);
                wake();
            }
            $(
                pub(crate) fn $write(&self, value: $value, order: Ordering) -> $value {
                    let before = self.0.$write(value, order);
                    wake();
                    before
                }
            )*
        }
    )*};
}
atomics! {
    AtomicU8: u8, [fetch_or, fetch_and];
    AtomicU32: u32, [swap];
    AtomicUsize: usize, [fetch_add, fetch_sub];
}

/// A count that orders nothing is none of loom's.
pub(crate) type Queued = std::sync::Arc<std::sync::atomic::AtomicUsize>;

/// A pool whose threads answer each call at any time, from at once to after the run.
pub(crate) struct ThreadPool {
    pub(crate) threads: usize,
}

/// What a thread of a pool knows of itself.
pub(crate) struct BroadcastContext(usize);

impl BroadcastContext {
    pub(crate) fn index(&self) -> usize {
        self.0
    }
}

impl ThreadPool {
    pub(crate) fn current_num_threads(&self) -> usize {
        self.threads
    }
    pub(crate) fn current_thread_index(&self) -> Option<usize> {
        None
    }
    pub(crate) fn spawn_broadcast(&self, op: impl Fn(BroadcastContext) + Send + Sync + 'static) {
        let op = Arc::new(op);
        for index in 0..self.threads {
            let op = op.clone();
            loom::thread::spawn(move || op(BroadcastContext(index)));
        }
    }
}

/// A clock on which every wait is over when it is looked at: a caller waits for no one that it need not, and calls again at once.
#[derive(Clone, Copy)]
pub(crate) struct Instant;

impl Instant {
    pub(crate) fn now() -> Self {
        Instant
    }
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::MAX
    }
}
