//! The state of a run that the next run reuses.
use crate::pass::update::BoundTerm;
use crate::plan::compile::Compiled;
use crate::plan::rolled::Rolled;
use crate::run::barrier::{CANCEL, FAIL};
use lacuna_engine::cells::Machine;
use lacuna_engine::{Control, Each, Family, History, Scalar, Section};
use std::ops::ControlFlow;
use std::time::Duration;

/// State of a run that the next run reuses.
pub(crate) struct Arena<T: Scalar> {
    /// Addresses of the vectors by slot; resolved again when memory was freed.
    pub(crate) vectors: Vec<*mut T>,
    /// Segment sums; consecutive barriers use alternate halves.
    pub(crate) sums: Vec<T>,
    /// Sums of the pieces of long rows.
    pub(crate) pieces: Vec<T>,
    pub(crate) threads: Vec<Thread<T>>,
    pub(super) quickest: Quickest,
}

/// The [`Family`] of arenas.
pub(crate) enum Arenas {}

impl Family for Arenas {
    type Of<T: Scalar> = Arena<T>;
}

/// An arena of any number type.
pub(crate) type AnyArena = Each<Arenas>;

/// State of one thread, on its own cache lines and the adjacent ones.
#[repr(align(128))]
pub(crate) struct Thread<T: Scalar> {
    pub(crate) rolled: Option<Rolled>,
    pub(crate) private: Private<T>,
}

/// State private to one thread.
pub(crate) struct Private<T: Scalar> {
    pub(super) machine: Machine<T>,
    /// Space for the terms of any step, allocated by the thread itself: memory allocated by other threads may
    /// share cache lines with what they write.
    pub(crate) terms: Vec<BoundTerm<T>>,
}

impl<T: Scalar> Arena<T> {
    pub(crate) fn new(compiled: &Compiled, threads: usize) -> Self {
        let private = || Private {
            machine: Machine { cells: Vec::new(), control: Control::new(0, false), history: History::off() },
            terms: Vec::new(),
        };
        Arena {
            vectors: Vec::new(),
            sums: vec![T::zero(); 2 * compiled.sums],
            pieces: vec![T::zero(); compiled.pieces],
            threads: (0..threads)
                .map(|_| Thread { rolled: compiled.rolled.clone(), private: private() })
                .collect(),
            quickest: Quickest([Duration::MAX; 3]),
        }
    }
}

impl<T: Scalar> Private<T> {
    /// Stops or cancels if requested; breaks if the rest of the section is skipped.
    pub(super) fn obey(&mut self, wishes: u8, section: Section) -> ControlFlow<()> {
        let control = &mut self.machine.control;
        if wishes & FAIL != 0 {
            control.abort();
        }
        if wishes & CANCEL != 0 && section == Section::Each && !control.halted() {
            control.cancel();
        }
        if control.halted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

// SAFETY: the pointers refer to vectors that outlive the run; its threads share them by the rules of
// `share::run`.
unsafe impl<T: Scalar> Send for Arena<T> {}

/// A constant allowance for a stretch on threads without interference.
pub(super) const HELD_UP: Duration = Duration::from_millis(1);

/// The shortest time that each section has taken on all threads so far.
pub(super) struct Quickest([Duration; 3]);

impl Quickest {
    /// Records a time and returns whether threads without interference would have been faster.
    pub(super) fn is_late(&mut self, section: Section, took: Duration, at_most: Duration) -> bool {
        let Some(quickest) = self.0.get_mut(section as usize) else { return false };
        *quickest = took.min(*quickest);
        took > HELD_UP + at_most.min(quickest.saturating_mul(3))
    }
}
