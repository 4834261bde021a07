//! Reports to a caller that watches a run, and its requests.
use lacuna_engine::{Control, Progress};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Interval between calls of the caller's `watch`.
const TELL: Duration = Duration::from_millis(40);

/// The callback of a watching caller.
pub(crate) type Watching<'w> = Option<&'w mut dyn FnMut(Progress) -> ControlFlow<()>>;

/// A caller's `watch`, which must not panic, called at intervals until it requests the end of the run.
pub(crate) struct Watch<'w> {
    watch: Watching<'w>,
    told: Option<Instant>,
}

impl<'w> Watch<'w> {
    pub(crate) fn new(watch: Watching<'w>) -> Self {
        let told = watch.is_some().then(Instant::now);
        Watch { watch, told }
    }

    /// Reports progress to the caller if that is due; returns whether the run is to end.
    pub(crate) fn ends(&mut self, control: &Control) -> bool {
        let Some(watch) = self.watch.as_mut().filter(|_| self.told.is_some_and(|at| at.elapsed() >= TELL))
        else {
            return false;
        };
        let progress = Progress { iterations: control.iterations, rr: control.recurrence };
        let ends = watch(progress).is_break();
        self.told = (!ends).then(Instant::now);
        ends
    }
}
