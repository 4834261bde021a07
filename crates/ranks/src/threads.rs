//! Links between threads of one process.
use crate::Links;
use lacuna_engine::{Error, Result};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Spins before sleeping if every rank can have a core: some tens of microseconds.
const SPINS: u32 = 1 << 11;
/// The same if there are fewer cores than ranks: the awaited one may need this very core.
const CROWDED_SPINS: u32 = 1 << 4;

/// Links between ranks that are threads of this process.
pub struct Threads {
    rank: usize,
    shared: Arc<Shared>,
    /// Collective calls so far.
    calls: usize,
}

struct Shared {
    ranks: usize,
    spins: u32,
    /// What each rank contributes to a gather. Consecutive gathers use alternate halves: who writes for the next but one has met
    /// all others at the next, when they had read this one.
    gathered: [Vec<Mutex<Vec<u8>>>; 2],
    /// How often ranks have arrived at a gather, all together.
    arrived: AtomicUsize,
    /// The messages from each rank to each, at `from · ranks + to`.
    boxes: Vec<Mailbox>,
    /// By rank.
    bells: Vec<Bell>,
    aborted: AtomicBool,
}

/// Wakes a rank that sleeps.
#[derive(Default)]
struct Bell {
    sleeps: AtomicBool,
    lock: Mutex<()>,
    rings: Condvar,
}

impl Bell {
    /// Sleeps until something is so, which others make so before they ring.
    fn sleep(&self, so: impl Fn() -> bool) {
        let mut guard = lock(&self.lock);
        self.sleeps.store(true, Ordering::Relaxed);
        // Either this rank sees what the other did, or the other sees that this one sleeps.
        fence(Ordering::SeqCst);
        while !so() {
            guard = self.rings.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleeps.store(false, Ordering::Relaxed);
    }
    fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.sleeps.load(Ordering::Relaxed) {
            // The sleeper holds the lock until it waits.
            drop(lock(&self.lock));
            self.rings.notify_one();
        }
    }
}

#[derive(Default)]
struct Mailbox {
    count: AtomicUsize,
    messages: Mutex<Messages>,
}

#[derive(Default)]
struct Messages {
    waiting: VecDeque<Vec<u8>>,
    /// Buffers of messages that were received.
    spare: Vec<Vec<u8>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Threads {
    /// Links between as many ranks, one for each.
    pub fn new(ranks: usize) -> Vec<Self> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let half = || (0..ranks).map(|_| Mutex::default()).collect();
        let shared = Arc::new(Shared {
            ranks,
            spins: if ranks > cores { CROWDED_SPINS } else { SPINS },
            gathered: [half(), half()],
            arrived: AtomicUsize::new(0),
            boxes: (0..ranks * ranks).map(|_| Mailbox::default()).collect(),
            bells: (0..ranks).map(|_| Bell::default()).collect(),
            aborted: AtomicBool::new(false),
        });
        (0..ranks).map(|rank| Threads { rank, shared: shared.clone(), calls: 0 }).collect()
    }
}

impl Shared {
    /// Makes a rank wait until something is so.
    fn wait(&self, rank: usize, so: impl Fn() -> bool) -> Result<()> {
        let over = || so() || self.aborted.load(Ordering::Acquire);
        let mut spins = 0;
        while !over() {
            if spins == self.spins {
                self.bells[rank].sleep(over);
                break;
            }
            spins += 1;
            std::hint::spin_loop();
        }
        if so() {
            return Ok(());
        }
        Err(Error::Device {
            device: "ranks".into(),
            operation: "waiting for a message".into(),
            message: "another rank could not go on".into(),
        })
    }
    fn ring_all(&self) {
        self.bells.iter().for_each(Bell::ring);
    }
}

impl Links for Threads {
    fn rank(&self) -> usize {
        self.rank
    }
    fn ranks(&self) -> usize {
        self.shared.ranks
    }
    fn all_gather(&mut self, mine: &[u8], counts: &[usize], all: &mut Vec<u8>) -> Result<()> {
        let shared = &*self.shared;
        let half = &shared.gathered[self.calls % 2];
        self.calls += 1;
        {
            let mut own = lock(&half[self.rank]);
            own.clear();
            own.extend_from_slice(mine);
        }
        let expected = self.calls * shared.ranks;
        if shared.arrived.fetch_add(1, Ordering::AcqRel) + 1 == expected {
            shared.ring_all();
        }
        shared.wait(self.rank, || shared.arrived.load(Ordering::Acquire) >= expected)?;
        all.clear();
        for (bytes, count) in half.iter().zip(counts) {
            let bytes = lock(bytes);
            Error::check_length("a gather", "the part of a rank", *count, bytes.len())?;
            all.extend_from_slice(&bytes);
        }
        Ok(())
    }
    fn send(&mut self, to: usize, bytes: &[u8]) -> Result<()> {
        let mailbox = &self.shared.boxes[self.rank * self.shared.ranks + to];
        {
            let mut messages = lock(&mailbox.messages);
            let mut message = messages.spare.pop().unwrap_or_default();
            message.clear();
            message.extend_from_slice(bytes);
            messages.waiting.push_back(message);
        }
        mailbox.count.fetch_add(1, Ordering::Release);
        self.shared.bells[to].ring();
        Ok(())
    }
    fn receive(&mut self, from: usize, count: usize, to: &mut Vec<u8>) -> Result<()> {
        let mailbox = &self.shared.boxes[from * self.shared.ranks + self.rank];
        self.shared.wait(self.rank, || mailbox.count.load(Ordering::Acquire) > 0)?;
        mailbox.count.fetch_sub(1, Ordering::AcqRel);
        let mut messages = lock(&mailbox.messages);
        let message = messages.waiting.pop_front().unwrap_or_default();
        Error::check_length("a message", format!("of rank {from}").as_str(), count, message.len())?;
        to.extend_from_slice(&message);
        messages.spare.push(message);
        Ok(())
    }
    fn abort(&self) {
        self.shared.aborted.store(true, Ordering::Release);
        self.shared.ring_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_gathers_the_same_and_messages_arrive_in_order() {
        for ranks in [1, 2, 3, 7] {
            std::thread::scope(|scope| {
                for mut links in Threads::new(ranks) {
                    scope.spawn(move || {
                        let counts: Vec<usize> = (0..ranks).map(|rank| rank + 1).collect();
                        let mut all = Vec::new();
                        for round in 0..200u8 {
                            let rank = links.rank();
                            links.all_gather(&vec![round ^ rank as u8; rank + 1], &counts, &mut all).unwrap();
                            let expected: Vec<u8> =
                                (0..ranks).flat_map(|r| vec![round ^ r as u8; r + 1]).collect();
                            assert_eq!(all, expected);
                            let (next, last) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
                            links.send(next, &[round, 1]).unwrap();
                            links.send(next, &[round, 2]).unwrap();
                            let mut got = Vec::new();
                            links.receive(last, 2, &mut got).unwrap();
                            links.receive(last, 2, &mut got).unwrap();
                            assert_eq!(got, [round, 1, round, 2]);
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn nobody_waits_for_a_rank_that_cannot_go_on() {
        let mut links = Threads::new(3);
        let last = links.pop().unwrap();
        std::thread::scope(|scope| {
            let waits: Vec<_> = links
                .into_iter()
                .map(|mut links| {
                    scope.spawn(move || match links.rank() {
                        0 => links.all_gather(&[1], &[1, 1, 1], &mut Vec::new()),
                        _ => links.receive(2, 1, &mut Vec::new()),
                    })
                })
                .collect();
            std::thread::sleep(std::time::Duration::from_millis(5));
            last.abort();
            for wait in waits {
                assert!(wait.join().unwrap().unwrap_err().to_string().contains("could not go on"));
            }
        });
    }
}
