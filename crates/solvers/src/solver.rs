//! A solve made ready: vectors, cells and program, used for as many right-hand sides as you like.
use crate::{Method, Outcome, System};
use lacuna_core::{
    Backend, Cell, Error, Finish, Formula, History, LinOp, Plan, Progress, Reason, Recorder, Result, Run,
    Scalar, Vector,
};
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::time::Instant;

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    /// Converged where `‖b − A x‖ ≤ max(rtol ‖b‖, atol)`.
    pub rtol: f64,
    /// The absolute tolerance of the same test.
    pub atol: f64,
    /// Iterations at the most.
    pub max_iters: u64,
    /// Diverged where the residual grows beyond this times `max(‖b‖, ‖b − A x₀‖)`.
    pub dtol: f64,
}

impl Default for Stop {
    fn default() -> Self {
        Stop { rtol: 1e-8, atol: 0.0, max_iters: 10_000, dtol: 1e8 }
    }
}

/// What a solve tells while it runs.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Iterations done.
    pub iterations: u64,
    /// `‖r‖ / ‖b‖` by the recurrence; NaN for a solve of what is already on the device.
    pub residual: f64,
}

/// A method on a system, ready to solve: a second right-hand side allocates nothing on the device and compiles
/// nothing.
pub struct Solver<T: Scalar> {
    plan: Plan<T>,
    b: Vector<T>,
    x: Vector<T>,
    bb: Cell<T>,
    rtol2: Cell<T>,
    atol2: Cell<T>,
    dtol2: Cell<T>,
    stop: Stop,
    history: History,
    outcome: Outcome,
}

impl<T: Scalar> Solver<T> {
    /// Makes a method ready for `A x = b`, with a preconditioner `M ≈ A⁻¹` or none.
    ///
    /// # Errors
    /// [`Error::Shape`] where `A` is not square or `M` is not of its shape, [`Error::Argument`] for a tolerance that is
    /// negative or NaN, and whatever recording and planning find.
    pub fn new<B: Backend>(
        dev: &mut B,
        a: &dyn LinOp<T>,
        m: Option<&dyn LinOp<T>>,
        method: &dyn Method<T>,
        stop: Stop,
    ) -> Result<Self> {
        let (rows, cols) = a.shape();
        if rows != cols {
            let expected = "a square matrix".into();
            return Err(Error::Shape { operation: "solve".into(), expected, got: (rows, cols) });
        }
        if let Some(m) = m
            && m.shape() != (rows, cols)
        {
            let expected = format!("a {rows}x{cols} preconditioner");
            return Err(Error::Shape { operation: "solve".into(), expected, got: m.shape() });
        }
        for (what, value) in [("rtol", stop.rtol), ("atol", stop.atol), ("dtol", stop.dtol)] {
            if value.is_nan() || value < 0.0 {
                let message = format!("expected a number not below 0, got {value}");
                return Err(Error::Argument { what: what.into(), message });
            }
        }
        let mut k = Recorder::new(dev, method.name());
        let [b, x] = k.vectors(rows);
        let [bb, target, goal, rtol2, atol2, dtol2, diverged, last, shrink] = k.cells();
        let system = System { a, m, b, x, bb, target, goal, rtol2, atol2, dtol2, diverged, last, shrink };
        system.begin(&mut k);
        k.multi_axpy_dot(lacuna_core::Pass::new("shrink").eval(shrink, Formula::from(method.shrink())));
        method.record(&mut k, &system);
        let program = k.finish()?;
        let plan = dev.plan(program)?;
        let (history, outcome) = (History::default(), Outcome::default());
        Ok(Solver { plan, b, x, bb, rtol2, atol2, dtol2, stop, history, outcome })
    }

    /// The right-hand side on the device, for those who compute it there.
    pub fn b(&self) -> Vector<T> {
        self.b
    }
    /// The starting guess and then the solution on the device.
    pub fn x(&self) -> Vector<T> {
        self.x
    }
    /// The program that runs.
    pub fn program(&self) -> &lacuna_core::Program<T> {
        &self.plan.program
    }
    /// Changes when to stop, for the solves to come.
    pub fn set_stop(&mut self, stop: Stop) {
        self.stop = stop;
    }

    /// Solves for `b`, starting from `x`, which receives the solution.
    ///
    /// A right-hand side so large or small that squares of its elements could overflow or vanish is scaled by a power
    /// of two, exactly, and the solution back. For `b = 0` the solution is 0.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::Element`] (an element that is not finite) for `b` and `x`; device failures.
    pub fn solve<B: Backend>(&mut self, dev: &mut B, b: &[T], x: &mut [T]) -> Result<&Outcome> {
        self.solve_watched(dev, b, x, None)
    }

    /// [`Solver::solve`], calling `watch` now and then while it runs; breaking cancels the solve.
    ///
    /// # Errors
    /// As [`Solver::solve`].
    pub fn solve_watched<B: Backend>(
        &mut self,
        dev: &mut B,
        b: &[T],
        x: &mut [T],
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<&Outcome> {
        let start = Instant::now();
        let largest = survey(b, self.b.len, "b")?;
        let from_zero = survey(x, self.x.len, "x0")? == 0.0;
        if largest == 0.0 {
            x.fill(T::zero());
            self.outcome = Outcome {
                reason: Reason::Converged,
                residual: 0.0,
                true_residual: 0.0,
                history: vec![0.0],
                time: start.elapsed(),
                ..Outcome::default()
            };
            return Ok(&self.outcome);
        }
        let exponent = scaling_exponent::<T>(largest);
        if exponent == 0 {
            dev.upload(b, self.b)?;
        } else {
            dev.upload(&scaled(b, exponent), self.b)?;
        }
        match (from_zero, exponent) {
            (true, _) => dev.clear(self.x)?,
            (false, 0) => dev.upload(x, self.x)?,
            (false, _) => dev.upload(&scaled(x, exponent), self.x)?,
        }
        // Nobody else asks for it.
        let norm = if watch.is_some() { norm(b, largest).scale_by_power_of_two(exponent) } else { f64::NAN };
        let there = start.elapsed();
        self.run(dev, exponent, norm, watch)?;
        let done = start.elapsed();
        dev.download(self.x, x)?;
        if exponent != 0 {
            x.iter_mut().for_each(|v| *v = v.scale_by_power_of_two(-exponent));
        }
        self.outcome.time = start.elapsed();
        self.outcome.transfers = self.outcome.time.saturating_sub(done.saturating_sub(there));
        Ok(&self.outcome)
    }

    /// Solves for what [`Solver::b`] holds on the device, starting from what [`Solver::x`] holds.
    ///
    /// # Errors
    /// Device failures.
    pub fn solve_on_device<B: Backend>(
        &mut self,
        dev: &mut B,
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<&Outcome> {
        let start = Instant::now();
        self.run(dev, 0, f64::NAN, watch)?;
        (self.outcome.time, self.outcome.transfers) = (start.elapsed(), std::time::Duration::ZERO);
        Ok(&self.outcome)
    }

    fn run<B: Backend>(
        &mut self,
        dev: &mut B,
        exponent: i32,
        norm: f64,
        watch: Option<&mut dyn FnMut(Watch) -> ControlFlow<()>>,
    ) -> Result<()> {
        let Stop { rtol, atol, dtol, max_iters } = self.stop;
        let atol = atol.scale_by_power_of_two(exponent);
        for (cell, value) in [(self.rtol2, rtol), (self.atol2, atol), (self.dtol2, dtol)] {
            dev.write(cell, T::from_real(value * value))?;
        }
        let mut tell = watch.map(|watch| {
            move |p: Progress| {
                watch(Watch { iterations: p.iterations, residual: p.rr.max(0.0).sqrt() / norm })
            }
        });
        let watch = tell.as_mut().map(|tell| tell as &mut dyn FnMut(Progress) -> ControlFlow<()>);
        let finish =
            dev.execute(&mut self.plan, Run { limit: max_iters, history: &mut self.history, watch })?;
        let bb = dev.read(&[self.bb])?[0].re();
        self.conclude(finish, bb);
        Ok(())
    }

    fn conclude(&mut self, finish: Finish, bb: f64) {
        let relative = |rr: f64| if rr == 0.0 { 0.0 } else { (rr / bb).sqrt() };
        let outcome = &mut self.outcome;
        outcome.reason = finish.reason;
        outcome.iterations = finish.iterations;
        outcome.restarts = finish.restarts.saturating_sub(1); // the first confirmation begins the solve
        outcome.residual = relative(finish.recurrence);
        outcome.true_residual = relative(finish.confirmed);
        outcome.history.clear();
        outcome.history.extend(self.history.values.iter().map(|&rr| relative(rr)));
        outcome.history_stride = self.history.stride;
    }
}

fn scaled<T: Scalar>(values: &[T], exponent: i32) -> Vec<T> {
    values.iter().map(|v| v.scale_by_power_of_two(exponent)).collect()
}

/// Elements that a thread looks at, at least.
const GRAIN: usize = 1 << 16;
/// Elements of a vector that are looked at side by side, so that the compiler can use vector instructions.
const LANES: usize = 16;

/// The largest modulus of the parts of a vector, all of which must be finite.
fn survey<T: Scalar>(values: &[T], expected: usize, what: &str) -> Result<f64> {
    Error::check_length("solve", what, expected, values.len())?;
    let largest = match values.len() {
        0..GRAIN => largest(values),
        _ => values
            .par_chunks(GRAIN)
            .map(largest)
            .reduce(|| 0.0, |a, b| if a.is_nan() || a > b { a } else { b }),
    };
    let bad = || values.iter().enumerate().find(|(_, v)| !v.finite());
    if let Some((row, v)) = largest.is_nan().then(bad).flatten() {
        let message = format!("expected a finite number, got {v}");
        return Err(Error::Element { operation: "solve".into(), what: what.into(), row, message });
    }
    Ok(largest)
}

/// The largest modulus of the parts of some numbers, NaN where one of them is not finite.
fn largest<T: Scalar>(values: &[T]) -> f64 {
    let (mut lanes, mut zeros) = ([0.0f64; LANES], [0.0f64; LANES]);
    let mut look = |chunk: &[T]| {
        for ((v, largest), zero) in chunk.iter().zip(&mut lanes).zip(&mut zeros) {
            let (re, im) = (v.re().abs(), v.im().abs());
            let part = if re > im { re } else { im };
            *largest = if part > *largest { part } else { *largest };
            *zero += re * 0.0 + im * 0.0; // NaN from the first that is not finite on
        }
    };
    let (chunks, rest) = values.as_chunks::<LANES>();
    chunks.iter().for_each(|chunk| look(chunk));
    look(rest);
    let finite = zeros.iter().all(|zero| !zero.is_nan());
    if finite { lanes.into_iter().fold(0.0, f64::max) } else { f64::NAN }
}

/// The norm of a vector whose largest part has that modulus, not 0.
fn norm<T: Scalar>(values: &[T], largest: f64) -> f64 {
    let squares = values.iter().map(|v| (v.re() / largest).powi(2) + (v.im() / largest).powi(2));
    largest * squares.sum::<f64>().sqrt()
}

/// The power of two that brings a largest element near 1, or 0 where its squares are safe as they are: above the
/// square of the tolerance's last bit and below overflow, with room for the size of the matrix.
fn scaling_exponent<T: Scalar>(largest: f64) -> i32 {
    let bits = T::MAX.log2();
    let exponent = largest.log2().floor();
    if exponent > -bits / 6.0 && exponent < bits / 4.0 { 0 } else { -exponent as i32 }
}

#[cfg(test)]
mod tests {
    use super::{GRAIN, LANES, survey};
    use lacuna_core::{Complex64, Error};

    #[test]
    fn every_element_is_looked_at() {
        for (n, place) in [2 * LANES + 3, 2 * GRAIN + 1]
            .into_iter()
            .flat_map(|n| (0..n).step_by(1 + n / 40).map(move |p| (n, p)))
        {
            let mut values = vec![1.0; n];
            values[place] = -f64::MAX;
            assert_eq!(survey(&values, n, "b").ok(), Some(f64::MAX));
            for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                values[place] = bad;
                assert!(matches!(survey(&values, n, "b"), Err(Error::Element { row, .. }) if row == place));
                let complex: Vec<_> = values.iter().map(|&im| Complex64::new(f64::MAX, im)).collect();
                assert!(matches!(survey(&complex, n, "b"), Err(Error::Element { row, .. }) if row == place));
            }
        }
        assert_eq!(survey(&[Complex64::new(f64::MAX, -f64::MAX)], 1, "b").ok(), Some(f64::MAX));
    }
}
