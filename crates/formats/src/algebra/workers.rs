//! Tasks shared among threads, each with its own working memory.
use rayon::prelude::*;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The results of `work` for each task, in task order. Each thread repeatedly takes the next task, with the
/// memory that `init` created for it once; rayon's own `map_init` creates it again for every few tasks.
pub(super) fn shared<I: Send, R: Send, M>(
    tasks: Vec<I>,
    init: impl Fn() -> M + Sync,
    work: impl Fn(&mut M, I) -> R + Sync,
) -> Vec<R> {
    let threads = rayon::current_num_threads().min(tasks.len());
    let count = tasks.len();
    let tasks: Vec<_> = tasks.into_iter().map(|task| Mutex::new(Some(task))).collect();
    let next = AtomicUsize::new(0);
    let take = || {
        let at = next.fetch_add(1, Relaxed);
        let task = tasks.get(at)?.lock().ok()?.take()?;
        Some((at, task))
    };
    let done = Mutex::new(Vec::with_capacity(count));
    on_threads(threads, &|| {
        let (mut memory, mut own) = (None, Vec::new());
        while let Some((at, task)) = take() {
            own.push((at, work(memory.get_or_insert_with(&init), task)));
        }
        done.lock().unwrap_or_else(PoisonError::into_inner).append(&mut own);
    });
    let mut all = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Runs `work` on `threads` threads. Not generic, so that a parallel region is compiled once.
fn on_threads(threads: usize, work: &(dyn Fn() + Sync)) {
    (0..threads).into_par_iter().with_max_len(1).for_each(|_| work());
}

/// Working memory that threads return for reuse by later ones.
pub(super) struct Pool<M, F> {
    free: Mutex<Vec<M>>,
    make: F,
}

/// Memory borrowed from a [`Pool`] until it is dropped.
pub(super) struct Lent<'a, M> {
    memory: Option<M>,
    free: &'a Mutex<Vec<M>>,
}

impl<M, F: Fn() -> M> Pool<M, F> {
    pub(super) fn new(make: F) -> Self {
        Pool { free: Mutex::new(Vec::new()), make }
    }
    pub(super) fn take(&self) -> Lent<'_, M> {
        let kept = self.free.lock().ok().and_then(|mut free| free.pop());
        Lent { memory: Some(kept.unwrap_or_else(&self.make)), free: &self.free }
    }
}

impl<M> Deref for Lent<'_, M> {
    type Target = M;
    fn deref(&self) -> &M {
        self.memory.as_ref().unwrap_or_else(|| unreachable!("it is there until it is dropped"))
    }
}

impl<M> DerefMut for Lent<'_, M> {
    fn deref_mut(&mut self) -> &mut M {
        self.memory.as_mut().unwrap_or_else(|| unreachable!("it is there until it is dropped"))
    }
}

impl<M> Drop for Lent<'_, M> {
    fn drop(&mut self) {
        if let (Some(memory), Ok(mut free)) = (self.memory.take(), self.free.lock()) {
            free.push(memory);
        }
    }
}
