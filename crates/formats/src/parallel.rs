//! Work shared among threads: those of a device within [`on`], otherwise those of the current rayon pool. The scheduler is
//! compiled once, and what handles tasks and results once for each of their types, not for each closure or iterator: a use
//! costs little more code than a loop. Results never depend on the number of threads.
use lacuna_engine::{Process, Result, Workers, crowded, pages};
use rayon::prelude::*;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Elements and small tasks are divided into about this many parts per thread.
const PARTS: usize = 16;
/// Units of work, such as entries of a matrix, that take longer than to wake a thread.
const LARGE: usize = 100_000;

/// Elements of a part from which on each is but a unit of work.
const MANY: usize = 1024;

/// Time between two calls of a [`Check`], about.
const BETWEEN_CHECKS: Duration = Duration::from_millis(20);

/// Called from time to time by a long computation, on the thread that asked for it. An error ends the computation and
/// is its result.
pub type Check<'a> = Option<&'a mut dyn FnMut() -> Result<()>>;

thread_local! {
    /// The threads that share what this thread asks for.
    static WORKERS: RefCell<Option<Arc<dyn Workers>>> = const { RefCell::new(None) };
}

/// Does something whose work is shared by these threads. It remains on the calling thread.
pub fn on<R>(workers: Option<Arc<dyn Workers>>, work: impl FnOnce() -> R) -> R {
    /// Returns to what was before.
    struct Back(Option<Arc<dyn Workers>>);
    impl Drop for Back {
        fn drop(&mut self) {
            let _ = WORKERS.try_with(|current| current.replace(self.0.take()));
        }
    }
    let Some(workers) = workers else { return work() };
    let before = WORKERS.with(|current| current.replace(Some(workers)));
    let _back = Back(before);
    work()
}

fn workers() -> Option<Arc<dyn Workers>> {
    WORKERS.with(|current| current.borrow().clone())
}

/// How many threads share work here. A process that was forked from one where this was asked has no threads of rayon's.
pub fn threads() -> usize {
    static PROCESS: OnceLock<Process> = OnceLock::new();
    match WORKERS.with(|current| current.borrow().as_ref().map(|workers| workers.count())) {
        Some(count) => count,
        None if *PROCESS.get_or_init(Process::this) == Process::this() => rayon::current_num_threads(),
        None => 1,
    }
}

/// Tasks that threads take, or the results that they put in their places.
struct Slots<I>(Vec<Mutex<Option<I>>>);

impl<I> Slots<I> {
    fn of(next: Next<'_, I>) -> Self {
        let mut slots = Vec::new();
        while let Some(task) = next() {
            slots.push(Mutex::new(Some(task)));
        }
        Slots(slots)
    }
    fn empty(count: usize) -> Self {
        let mut slots = Vec::with_capacity(count);
        slots.resize_with(count, || Mutex::new(None));
        Slots(slots)
    }
    #[inline(never)]
    fn take(&self, at: usize) -> Option<I> {
        self.0[at].lock().unwrap_or_else(PoisonError::into_inner).take()
    }
    #[inline(never)]
    fn put(&self, at: usize, result: I) {
        *self.0[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }
    fn into_results(self) -> Vec<I> {
        let mut results = Vec::with_capacity(self.0.len());
        for slot in self.0 {
            match slot.into_inner().unwrap_or_else(PoisonError::into_inner) {
                Some(result) => results.push(result),
                None => unreachable!("every task is done"),
            }
        }
        results
    }
}

/// Returns the tasks, one after the other.
type Next<'a, I> = &'a mut dyn FnMut() -> Option<I>;

/// What a thread does with each of its tasks, in working memory of its own.
type Work<'a, I, R> = Box<dyn FnMut(I) -> R + Send + 'a>;

/// Makes the [`Work`] of a thread.
type Make<'a, I, R> = &'a (dyn Fn() -> Work<'a, I, R> + Sync);

/// Whether the calling thread does everything.
fn alone(units: usize) -> bool {
    units < LARGE || threads() == 1
}

/// Runs `work` for each task, in no particular order.
pub fn for_each<I: Send>(tasks: impl IntoIterator<Item = I>, work: impl Fn(I) + Sync) {
    for_each_large(usize::MAX, tasks, work);
}

/// [`for_each`] on the calling thread alone for fewer than 100 000 units of work, as in [`map_large`].
pub(crate) fn for_each_large<I: Send>(
    units: usize,
    tasks: impl IntoIterator<Item = I>,
    work: impl Fn(I) + Sync,
) {
    let mut tasks = tasks.into_iter();
    do_all(alone(units), &mut || tasks.next(), &work);
}

fn do_all<I: Send>(alone: bool, tasks: Next<'_, I>, work: &(dyn Fn(I) + Sync)) {
    if alone {
        while let Some(task) = tasks() {
            work(task);
        }
        return;
    }
    let tasks = Slots::of(tasks);
    run(tasks.0.len(), &|next| {
        while let Some(at) = next() {
            if let Some(task) = tasks.take(at) {
                work(task);
            }
        }
    });
}

/// The results of `work` for each task, in task order.
pub fn map<I: Send, R: Send>(tasks: impl IntoIterator<Item = I>, work: impl Fn(I) -> R + Sync) -> Vec<R> {
    map_large(usize::MAX, tasks, work)
}

/// [`map`] on the calling thread alone for fewer than 100 000 units of work, such as entries of a
/// matrix, which take less time than waking another.
pub fn map_large<I: Send, R: Send>(
    units: usize,
    tasks: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> R + Sync,
) -> Vec<R> {
    let mut tasks = tasks.into_iter();
    map_all(alone(units), &mut || tasks.next(), &|| Box::new(&work))
}

/// The results of `work` for each task, in task order. Each thread repeatedly takes the next task, with the
/// memory that `init` created for it once.
pub fn map_with<I: Send, M: Send, R: Send>(
    tasks: impl IntoIterator<Item = I>,
    init: impl Fn() -> M + Sync,
    work: impl Fn(&mut M, I) -> R + Sync,
) -> Vec<R> {
    let mut tasks = tasks.into_iter();
    map_all(alone(usize::MAX), &mut || tasks.next(), &|| with_memory(init(), &work))
}

/// Working memory, and what is done in it.
fn with_memory<'a, I, M: Send + 'a, R>(
    mut memory: M,
    work: &'a (impl Fn(&mut M, I) -> R + Sync),
) -> Work<'a, I, R> {
    Box::new(move |task| work(&mut memory, task))
}

fn map_all<'a, I: Send, R: Send>(alone: bool, tasks: Next<'_, I>, make: Make<'a, I, R>) -> Vec<R> {
    if alone {
        let (mut work, mut results) = (None, Vec::new());
        while let Some(task) = tasks() {
            results.push(work.get_or_insert_with(make)(task));
        }
        return results;
    }
    let tasks = Slots::of(tasks);
    let results = Slots::empty(tasks.0.len());
    run(tasks.0.len(), &|next| {
        let mut work = None;
        while let Some(at) = next() {
            if let Some(task) = tasks.take(at) {
                results.put(at, work.get_or_insert_with(make)(task));
            }
        }
    });
    results.into_results()
}

/// [`map_with`], which ends soon after a check fails. With a check, tasks are run in batches, whose results are the same.
///
/// # Errors
/// Those of the check.
pub fn map_checked<I: Send, M: Send, R: Send>(
    tasks: impl IntoIterator<Item = I>,
    check: Check<'_>,
    init: impl Fn() -> M + Sync,
    work: impl Fn(&mut M, I) -> R + Sync,
) -> Result<Vec<R>> {
    let mut tasks = tasks.into_iter();
    in_batches(&mut || tasks.next(), check, &|| with_memory(init(), &work))
}

fn in_batches<I: Send, R: Send>(
    tasks: Next<'_, I>,
    check: Check<'_>,
    make: Make<'_, I, R>,
) -> Result<Vec<R>> {
    let alone = alone(usize::MAX);
    let Some(check) = check else { return Ok(map_all(alone, tasks, make)) };
    let workers = Pool::new(make);
    let mut done = Vec::new();
    let threads = threads();
    let mut size = threads;
    loop {
        check()?;
        let (before, start, mut left) = (done.len(), Instant::now(), size);
        let mut batch = || {
            left = left.checked_sub(1)?;
            tasks()
        };
        done.append(&mut map_all(alone, &mut batch, &|| {
            let mut worker = workers.take();
            Box::new(move |task| {
                let work = &mut *worker;
                work(task)
            })
        }));
        if done.len() == before {
            return Ok(done);
        }
        let by = BETWEEN_CHECKS.as_secs_f64() / start.elapsed().as_secs_f64().max(1e-6);
        size = ((size as f64 * by.min(4.0)) as usize).max(threads);
    }
}

/// The results of two tasks, done at the same time, unless they are fewer than 100 000 units of work together.
/// For a task that runs on one thread, beside one that runs on all.
pub fn both<R: Send, S: Send>(
    units: usize,
    one: impl FnOnce() -> R + Send,
    other: impl FnOnce() -> S + Send,
) -> (R, S) {
    if alone(units) {
        return (one(), other());
    }
    let Some(workers) = workers() else { return rayon::join(one, other) };
    let (one, other) = (Mutex::new(Task::Open(one)), Mutex::new(Task::Open(other)));
    workers.run(1, &|| {
        Task::take_up(&one);
        Task::take_up(&other);
    });
    (Task::result(one), Task::result(other))
}

/// A task that one of two threads does.
enum Task<F, R> {
    Open(F),
    Taken,
    Done(R),
}

impl<R, F: FnOnce() -> R> Task<F, R> {
    /// Does the task, unless another thread does.
    fn take_up(place: &Mutex<Self>) {
        let lock = || place.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = std::mem::replace(&mut *lock(), Task::Taken);
        let next = match taken {
            Task::Open(task) => Task::Done(task()),
            Task::Taken => return,
            done => done,
        };
        *lock() = next;
    }
    fn result(place: Mutex<Self>) -> R {
        match place.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Task::Done(result) => result,
            _ => unreachable!("every task is done"),
        }
    }
}

/// The results of two tasks, done at the same time: one on the calling thread, which mostly waits for a device, the other on
/// the threads of rayon.
pub fn beside<R, S: Send>(here: impl FnOnce() -> R, elsewhere: impl FnOnce() -> S + Send) -> (R, S) {
    let mut result = None;
    let own = rayon::in_place_scope(|scope| {
        scope.spawn(|_| result = Some(elsewhere()));
        here()
    });
    (own, result.unwrap_or_else(|| unreachable!("the scope ends after its tasks")))
}

/// `f(0), …, f(n − 1)`, computed in parts of at least `grain`.
pub fn collect<R: Send>(n: usize, grain: usize, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
    collect_parts(n, grain, &|start, places| {
        for (k, place) in places.iter_mut().enumerate() {
            place.write(f(start + k));
        }
    })
}

/// [`collect`] by a function that writes all places from an index on.
fn collect_parts<R: Send>(
    n: usize,
    grain: usize,
    write: &(dyn Fn(usize, &mut [MaybeUninit<R>]) + Sync),
) -> Vec<R> {
    let mut all = pages::reserved(n);
    let grain = part(n, grain);
    let parts = all.spare_capacity_mut()[..n].chunks_mut(grain).enumerate();
    for_each(parts, |(part, places)| write(part * grain, places));
    // SAFETY: all `n` elements were written; if `write` panics, this line is not reached.
    unsafe { all.set_len(n) };
    all
}

/// The parts one after the other.
pub fn concat<E: Copy + Send + Sync>(parts: &[impl AsRef<[E]> + Sync]) -> Vec<E> {
    let total = parts.iter().map(|part| part.as_ref().len()).sum();
    let mut all = pages::reserved(total);
    let mut rest = &mut all.spare_capacity_mut()[..total];
    let mut copies = Vec::with_capacity(parts.len());
    for part in parts {
        let (own, others) = std::mem::take(&mut rest).split_at_mut(part.as_ref().len());
        rest = others;
        copies.push((own, part.as_ref()));
    }
    let copy = |(places, part): (&mut [MaybeUninit<E>], &[E])| {
        places.iter_mut().zip(part).for_each(|(place, element)| {
            place.write(*element);
        });
    };
    for_each_large(total, copies, copy);
    // SAFETY: all `total` elements were written: each part has as many places as elements, and they add up to all.
    unsafe { all.set_len(total) };
    all
}

/// The first index below `n` that passes a test. Tests in parts of at least `grain`.
pub fn find_first(n: usize, grain: usize, test: impl Fn(usize) -> bool + Sync) -> Option<usize> {
    first_found(n, grain, &|part| {
        let mut part = part;
        part.find(|k| test(*k))
    })
}

/// How many indices below `n` pass a test. Counts in parts of at least `grain`.
pub fn count(n: usize, grain: usize, test: impl Fn(usize) -> bool + Sync) -> usize {
    total(n, grain, &|part| part.filter(|k| test(*k)).count())
}

/// The sum of `f(0), …, f(n − 1)`, computed in parts of at least `grain`.
pub fn sum(n: usize, grain: usize, f: impl Fn(usize) -> usize + Sync) -> usize {
    total(n, grain, &|part| part.map(&f).sum())
}

/// Consecutive parts of `0..n` of `length` elements each; the last may be shorter.
pub fn ranges(n: usize, length: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(length.max(1)).map(move |start| start..n.min(start + length.max(1)))
}

/// The length of the parts into which `n` elements are divided: at least `grain`, unless there are fewer. Elements of
/// which many make a part are units of work.
fn part(n: usize, grain: usize) -> usize {
    if n <= grain || (grain >= MANY && n < LARGE) {
        return n.max(1);
    }
    n.div_ceil(PARTS * threads()).max(grain).max(1)
}

fn total(n: usize, grain: usize, of: &(dyn Fn(Range<usize>) -> usize + Sync)) -> usize {
    map(ranges(n, part(n, grain)), of).into_iter().sum()
}

fn first_found(
    n: usize,
    grain: usize,
    look: &(dyn Fn(Range<usize>) -> Option<usize> + Sync),
) -> Option<usize> {
    let first = AtomicUsize::new(usize::MAX);
    for_each(ranges(n, part(n, grain)), |part| {
        if part.start < first.load(Relaxed)
            && let Some(found) = look(part)
        {
            first.fetch_min(found, Relaxed);
        }
    });
    Some(first.into_inner()).filter(|first| *first != usize::MAX)
}

/// What a thread does: it calls the function for the number of its next task until there is none.
type Worker<'a> = dyn Fn(&mut dyn FnMut() -> Option<usize>) + Sync + 'a;

/// Has the threads do `count` tasks.
fn run(count: usize, work: &Worker<'_>) {
    // A single task does not start the threads.
    let threads = if count > 1 { threads().min(count) } else { 1 };
    // Many small tasks are taken several at a time.
    let batch = (count / (PARTS * threads.max(1))).max(1);
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut own = 0..0;
        work(&mut || {
            if own.is_empty() {
                let start = next.fetch_add(batch, Relaxed).min(count);
                own = start..count.min(start + batch);
            }
            own.next()
        });
    };
    match (threads, workers()) {
        (0 | 1, _) => worker(),
        (threads, None) if crowded(threads) => worker(),
        (threads, Some(workers)) => workers.run(threads - 1, &worker),
        (threads, None) => (0..threads).into_par_iter().with_max_len(1).for_each(|_| worker()),
    }
}

/// Working memory that threads return for reuse by later ones.
pub(crate) struct Pool<M, F> {
    free: Mutex<Vec<M>>,
    make: F,
}

/// Memory borrowed from a [`Pool`] until it is dropped.
pub(crate) struct Lent<'a, M> {
    memory: Option<M>,
    free: &'a Mutex<Vec<M>>,
}

impl<M, F: Fn() -> M> Pool<M, F> {
    pub(crate) fn new(make: F) -> Self {
        Pool { free: Mutex::new(Vec::new()), make }
    }
    pub(crate) fn take(&self) -> Lent<'_, M> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_tasks() {
        for n in [0, 1, 2, 1000, 100_003] {
            assert_eq!(map(0..n.min(1000), |k| 2 * k), (0..n.min(1000)).map(|k| 2 * k).collect::<Vec<_>>());
            assert_eq!(collect(n, 7, |k| k.to_string()), (0..n).map(|k| k.to_string()).collect::<Vec<_>>());
            assert_eq!(count(n, 7, |k| k % 3 == 0), n.div_ceil(3));
            assert_eq!(sum(n, 7, |k| k), n * n.saturating_sub(1) / 2);
        }
    }

    #[test]
    fn a_failed_check_ends_the_tasks() {
        let mut calls = 0;
        let mut count = || {
            calls += 1;
            Ok(())
        };
        assert_eq!(
            map_checked(0..1000, Some(&mut count), || 7, |seven, k| *seven * k).unwrap(),
            map(0..1000, |k| 7 * k)
        );
        assert!(calls > 1, "{calls}");
        let (run, mut left) = (AtomicUsize::new(0), 3);
        let mut fails = || {
            left -= 1;
            let cancelled = || lacuna_engine::Error::Cancelled { operation: "a test".into() };
            if left == 0 { Err(cancelled()) } else { Ok(()) }
        };
        let tasks = 0..100_000;
        let found = map_checked(tasks, Some(&mut fails), || (), |(), _| run.fetch_add(1, Relaxed));
        assert!(matches!(found, Err(lacuna_engine::Error::Cancelled { .. })));
        assert!(run.into_inner() < 100_000);
    }

    #[test]
    fn the_first_of_several_is_found() {
        assert_eq!(find_first(100_000, 10, |k| k >= 70_000 || k == 69_999), Some(69_999));
        assert_eq!(find_first(100_000, 10, |_| true), Some(0));
        assert_eq!(find_first(100_000, 10, |_| false), None);
        assert_eq!(find_first(0, 10, |_| true), None);
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let panics = || for_each(0..100, |k| assert_ne!(k, 50));
        assert!(std::panic::catch_unwind(panics).is_err());
    }

    #[test]
    fn parts_cover_everything_once() {
        assert_eq!(ranges(10, 4).collect::<Vec<_>>(), [0..4, 4..8, 8..10]);
        assert_eq!(ranges(0, 4).count(), 0);
    }
}
