//! Ending long work on the host: whoever starts it names a check for the calling thread, and what takes long calls it now and then.
use lacuna_engine::{Error, Result};
use std::cell::RefCell;
use std::mem;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two calls of a check, about.
const BETWEEN: Duration = Duration::from_millis(20);

/// Stack of a thread that works [`aside`].
const STACK: usize = 16 << 20;

/// The check of a thread.
struct Checked {
    check: *mut (dyn FnMut() -> Result<()> + 'static),
    last: Instant,
    /// Whether it has failed: then the work ends, whatever is said later.
    ended: bool,
}

thread_local! {
    static CHECKED: RefCell<Option<Checked>> = const { RefCell::new(None) };
}

/// Returns to a check, or none.
struct Back(Option<Checked>);

impl Drop for Back {
    fn drop(&mut self) {
        let _ = CHECKED.try_with(|current| current.replace(self.0.take()));
    }
}

/// Does something that a check may end: [`check`] calls it from time to time, on this thread. Its first error ends the work. Results
/// do not depend on being checked.
///
/// ```
/// use lacuna_formats::interrupt;
///
/// let mut calls = 0;
/// let mut check = || {
///     calls += 1;
///     Ok(())
/// };
/// let sum = interrupt::checked(&mut check, || (0..1000).try_fold(0, |sum, k| interrupt::check().map(|()| sum + k)));
/// assert_eq!(sum.ok(), Some(499_500));
/// ```
pub fn checked<R>(check: &mut dyn FnMut() -> Result<()>, work: impl FnOnce() -> R) -> R {
    let check: *mut (dyn FnMut() -> Result<()> + '_) = check;
    // SAFETY: only the lifetime changes, and `Back` takes the pointer away before it ends.
    let check: *mut (dyn FnMut() -> Result<()> + 'static) = unsafe { mem::transmute(check) };
    let own = Checked { check, last: Instant::now(), ended: false };
    let _back = Back(CHECKED.with(|current| current.replace(Some(own))));
    work()
}

/// Whether to go on: calls the check of this thread if there is one and it is due.
///
/// # Errors
/// Those of the check; [`Error::Cancelled`] after the first.
pub fn check() -> Result<()> {
    // Taken away meanwhile, so that what the check does is not checked itself.
    let Some(mut own) = CHECKED.with(RefCell::take) else { return Ok(()) };
    let answer = match own.ended {
        true => Err(Error::Cancelled { operation: "work on the host".into() }),
        false if own.last.elapsed() < BETWEEN => Ok(()),
        false => {
            // SAFETY: it is there until `checked` returns, and nobody else has it: it was taken away.
            let answer = unsafe { (*own.check)() };
            own.last = Instant::now();
            answer
        }
    };
    own.ended |= answer.is_err();
    CHECKED.with(|current| current.replace(Some(own)));
    answer
}

/// Does something that nobody ends, and whose only errors are those of checks.
pub(crate) fn unchecked<R>(work: impl FnOnce() -> Result<R>) -> R {
    let _back = Back(CHECKED.with(RefCell::take));
    work().unwrap_or_else(|_| unreachable!("only checks fail"))
}

/// [`check`] at every 1024th step of a loop.
pub(crate) fn check_at(step: usize) -> Result<()> {
    if step.is_multiple_of(1024) { check() } else { Ok(()) }
}

/// Does something that takes `long` in one piece and cannot check by itself. If this thread has a check, another one does it while this
/// one checks; if that fails, the other is left to end by itself, and its result is dropped.
///
/// # Errors
/// As [`check`].
pub fn aside<R: Send + 'static>(long: bool, work: impl FnOnce() -> R + Send + 'static) -> Result<R> {
    if !long || CHECKED.with(|current| current.borrow().is_none()) {
        return Ok(work());
    }
    let task = Arc::new(Mutex::new(Some(work)));
    let (send, receive) = channel();
    let (own, builder) = (task.clone(), thread::Builder::new().name("lacuna aside".into()).stack_size(STACK));
    let spawned = builder.spawn(move || {
        // Nobody may be left to hear of it.
        let _ = taken(&own).map(|work| send.send(work()));
    });
    let thread = match spawned {
        Ok(thread) => thread,
        Err(_) => match taken(&task) {
            Some(work) => return Ok(work()),
            None => unreachable!("no thread took it"),
        },
    };
    loop {
        match receive.recv_timeout(BETWEEN) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => check()?,
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("it sends what it found"),
            },
        }
    }
}

fn taken<F>(task: &Mutex<Option<F>>) -> Option<F> {
    task.lock().unwrap_or_else(PoisonError::into_inner).take()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cancelled() -> Error {
        Error::Cancelled { operation: "a test".into() }
    }

    #[test]
    fn the_first_error_ends_it_and_stays() {
        let mut left = 2;
        let mut fails = || {
            left -= 1;
            if left == 0 { Err(cancelled()) } else { Ok(()) }
        };
        let steps = checked(&mut fails, || {
            let steps = (0..1000).take_while(|_| {
                thread::sleep(BETWEEN / 4);
                check().is_ok()
            });
            let steps = steps.count();
            assert!(check().is_err() && check().is_err());
            steps
        });
        assert!(steps < 100, "{steps}");
        assert!(check().is_ok());
    }

    #[test]
    fn what_is_done_aside_is_left_behind() {
        assert_eq!(aside(true, || 7).unwrap(), 7);
        let mut ok = || Ok(());
        let found = checked(&mut ok, || {
            aside(true, || {
                thread::sleep(3 * BETWEEN);
                8
            })
        });
        assert_eq!(found.unwrap(), 8);
        let start = Instant::now();
        let mut fails = || Err(cancelled());
        let found = checked(&mut fails, || aside(true, || thread::sleep(Duration::from_secs(2))));
        assert!(found.is_err() && start.elapsed() < Duration::from_secs(1));
        let mut ok = || Ok(());
        let panics = || checked(&mut ok, || aside(true, || panic!("as it is")));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
    }
}
