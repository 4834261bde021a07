//! What a caller sees of a running solve, iteration by iteration.
use crate::System;
use lacuna_engine::{Cell, HostFunction, Pass, Reason, Recorder, Scalar, Untyped, Vector};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// A function of the caller's that is called after each iteration of a solve, on the thread that called the solve. Breaking ends
/// the solve with [`Reason::Cancelled`].
///
/// It is part of the program that a device runs: on the CPU it reads the vectors in place; on a GPU each call transfers what it
/// shows.
pub struct Observer<T> {
    shown: Shown,
    function: Arc<Show<T>>,
    state: Arc<State>,
}

/// A function that is shown numbers.
type Show<T> = dyn Fn(&[T]) -> ControlFlow<()> + Send + Sync;

/// What it is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Iterate,
    Residual,
}

#[derive(Default)]
struct State {
    /// The solution on the device is the caller's times two to this power.
    exponent: AtomicI32,
    /// Whether the section that every solve starts with has run.
    begun: AtomicBool,
}

impl<T> Clone for Observer<T> {
    fn clone(&self) -> Self {
        Observer { shown: self.shown, function: self.function.clone(), state: self.state.clone() }
    }
}

impl<T: Scalar> Observer<T> {
    /// Shows `x` after each iteration. Methods whose `x` is complete after several, as `gmres` with its cycles, `idr` and
    /// `bicgstab-l`, show it then.
    pub fn of_iterates(function: impl Fn(&[T]) -> ControlFlow<()> + Send + Sync + 'static) -> Self {
        Observer { shown: Shown::Iterate, function: Arc::new(function), state: Arc::default() }
    }
    /// Shows `‖r‖ / ‖b‖` by the recurrence after each iteration, within the cycles of `gmres`. Methods without cycles show
    /// nothing but the last one; [`Observer::of_iterates`] is for them.
    pub fn of_residuals(function: impl Fn(f64) -> ControlFlow<()> + Send + Sync + 'static) -> Self {
        let function = move |shown: &[T]| function(shown.first().map_or(f64::NAN, |r| r.re()));
        Observer { shown: Shown::Residual, function: Arc::new(function), state: Arc::default() }
    }

    /// Begins a solve whose solution is multiplied by two to this power on the device.
    pub(crate) fn begin(&self, exponent: i32) {
        self.state.exponent.store(exponent, Ordering::Relaxed);
        self.state.begun.store(false, Ordering::Relaxed);
    }
    /// Shows what a solve of so many iterations ended with, which ends it before the program would show it.
    pub(crate) fn end(&self, iterations: u64, x: &[T], residual: f64) {
        if iterations == 0 {
            return;
        }
        // The solve is over: there is nothing left to break.
        let _ = match self.shown {
            Shown::Iterate => (self.function)(x),
            Shown::Residual => (self.function)(&[T::from_real(residual)]),
        };
    }
}

/// An [`Observer`] in a program.
pub(crate) trait Observing {
    fn shown(&self) -> Shown;
    /// The function that a program calls with vectors of the device: it writes 0 to end the solve, else 1.
    fn in_program(&self, at_restart: bool) -> HostFunction;
}

impl<T: Scalar> Observing for Observer<T> {
    fn shown(&self) -> Shown {
        self.shown
    }
    fn in_program(&self, at_restart: bool) -> HostFunction {
        let Observer { shown, function, state } = self.clone();
        HostFunction::new(move |given: &[T], goes_on: &mut [T]| {
            let starts = at_restart && !state.begun.swap(true, Ordering::Relaxed);
            let call = || match (shown, state.exponent.load(Ordering::Relaxed)) {
                (Shown::Iterate, exponent) if exponent != 0 => {
                    let back = |v: &T| v.scale_by_power_of_two(-exponent);
                    function(&given.iter().map(back).collect::<Vec<_>>())
                }
                _ => function(given),
            };
            let ends = !starts && call().is_break();
            goes_on.fill(if ends { T::zero() } else { T::one() });
        })
    }
}

impl<T> System<'_, T> {
    /// Records the calls of an observer of iterates: after each iteration, and where one left for the confirmation and is to go
    /// on from there.
    pub(crate) fn show_iterates(&self, k: &mut Recorder<'_, T>) {
        let Some(observer) = self.observer.filter(|observer| observer.shown() == Shown::Iterate) else {
            return;
        };
        k.restart(|k| self.show(k, observer, true));
        k.each(|k| self.show(k, observer, false));
    }

    /// Records several iterations that a section has together, numbered from 0; an observer sees each.
    pub(crate) fn iterations(
        &self,
        k: &mut Recorder<'_, T>,
        count: usize,
        record: &mut dyn FnMut(&mut Recorder<'_, T>, usize),
    ) {
        for j in 0..count {
            // What follows a section is recorded with it.
            if let Some(observer) = self.observer.filter(|o| j > 0 && o.shown() == Shown::Iterate) {
                self.show(k, observer, false);
            }
            record(k, j);
        }
    }

    fn show(&self, k: &mut Recorder<'_, T>, observer: &dyn Observing, at_restart: bool) {
        let (goes_on, [flag]) = (k.vector(1), k.cells());
        let asked = Pass::new("observed").dot(flag, goes_on, goes_on);
        let asked = asked.stop_if(flag.is_zero(), Reason::Cancelled);
        k.host_product(&observer.in_program(at_restart), self.x, goes_on, asked);
    }

    /// Makes the calls of an observer of residuals within a cycle, which are recorded by [`Residuals::show`].
    pub(crate) fn residuals(&self, k: &mut Recorder<'_, T>) -> Option<Residuals<T>> {
        let observer = self.observer.filter(|observer| observer.shown() == Shown::Residual)?;
        let [relative, flag] = k.cells();
        let (one, [shown, goes_on]) = (k.vector_of_reals(&[1.0]), k.vectors(1));
        let function = observer.in_program(false);
        Some(Residuals { function, bb: self.bb, relative, flag, one, shown, goes_on })
    }
}

/// Shows residuals within a cycle.
pub(crate) struct Residuals<T = Untyped> {
    function: HostFunction,
    bb: Cell<T>,
    relative: Cell<T>,
    flag: Cell<T>,
    one: Vector<T>,
    shown: Vector<T>,
    goes_on: Vector<T>,
}

impl<T> Residuals<T> {
    /// Records a call with the square root of `rr / ‖b‖²`.
    pub(crate) fn show(&self, k: &mut Recorder<'_, T>, rr: Cell<T>) {
        let Residuals { relative, flag, one, shown, goes_on, .. } = *self;
        k.multi_axpy_dot(Pass::new("relative").eval(relative, (rr / self.bb).sqrt()));
        k.multi_axpy_dot(Pass::new("shown").set(shown, relative * one));
        let asked = Pass::new("observed").dot(flag, goes_on, goes_on);
        let asked = asked.stop_if(flag.is_zero(), Reason::Cancelled);
        k.host_product(&self.function, shown, goes_on, asked);
    }
}
