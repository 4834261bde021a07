//! Between the caller's vectors and those on the device.
use super::Solver;
use crate::scale::{largest, scaled, survey};
use crate::{Factor, Outcome};
use lacuna_engine::{Reason, Result, Scalar};

/// What [`Solver::load`] put on the device.
#[derive(Clone, Copy)]
pub(crate) struct Loaded {
    /// The largest modulus of the parts of `b`.
    pub(super) largest: f64,
    /// The exponents of the powers of two by which the right-hand side and the solution are multiplied on the device.
    pub(super) exponent: i32,
    pub(super) of_x: i32,
    /// Whether the guess is 0.
    pub(crate) from_zero: bool,
}

impl<T: Scalar> Solver<T> {
    /// Puts the right-hand side and the guess on the device. For `b = 0` nothing is left to do: `x` is set to 0, and the outcome
    /// says so. A guess whose residual is likely to overflow is replaced by 0, unless its residual is no larger than `b`.
    ///
    /// # Errors
    /// As [`Solver::solve`].
    pub(crate) fn load(&mut self, b: &[T], x: &mut [T]) -> Result<Option<Loaded>> {
        let dev = self.plan.device().clone();
        let largest = survey(b, self.b.len, "b")?;
        let largest_of_guess = survey(x, self.x.len, "x0")?;
        if largest == 0.0 {
            x.fill(T::zero());
            self.outcome = Outcome {
                reason: Reason::Converged,
                residual: 0.0,
                true_residual: 0.0,
                max_residual: 0.0,
                relative_max_residual: 0.0,
                norm: self.stop.norm,
                target: self.stop.rtol,
                history: vec![0.0],
                ..Outcome::default()
            };
            return Ok(None);
        }
        let exponent = self.exponent(largest);
        let of_x = exponent - self.operator.exponent;
        match (Factor { exponent, ..self.operator }) {
            factor if factor.is_one() => dev.upload(b, self.b)?,
            factor => dev.upload(&factor.times(b), self.b)?,
        }
        let mut from_zero = largest_of_guess == 0.0;
        match (from_zero, of_x) {
            (true, _) => dev.clear(self.x)?,
            (false, 0) => dev.upload(x, self.x)?,
            (false, _) => dev.upload(&scaled(x, of_x), self.x)?,
        }
        // The residual of so large a guess is likely to overflow, or to be larger than that of 0.
        let far = libm::log2(largest_of_guess) + f64::from(of_x) > libm::log2(T::MAX) / 4.0;
        if far {
            self.run((exponent, 0), f64::NAN, None)?;
            if !no_worse(self.outcome.true_residual, 1.0) {
                x.fill(T::zero());
                dev.clear(self.x)?;
                from_zero = true;
            }
        }
        Ok(Some(Loaded { largest, exponent, of_x, from_zero }))
    }

    /// Replaces the guess by the vector on the device if that is no worse: `first` is the residual of the guess, and `found`
    /// describes the vector on the device. Returns what describes the vector returned.
    ///
    /// # Errors
    /// Device failures.
    pub(crate) fn hand_back(
        &mut self,
        x: &mut [T],
        Loaded { exponent, of_x, from_zero, .. }: Loaded,
        first: f64,
        found: (Reason, f64),
    ) -> Result<(Reason, f64)> {
        let dev = self.plan.device().clone();
        let (mut reason, mut residual) = found;
        // One that converged in the maximum norm may have a larger 2-norm.
        if reason != Reason::Converged && !is_result(found, first) {
            self.forget_maximum();
            return Ok((reason, first));
        }
        self.guess.clear();
        if !from_zero {
            self.guess.extend_from_slice(x);
        }
        dev.download(self.x, x)?;
        let mut exact = true;
        if of_x != 0 {
            for v in x.iter_mut() {
                let back = v.scale_by_power_of_two(-of_x);
                exact &= back.scale_by_power_of_two(of_x) == *v;
                *v = back;
            }
        }
        let refused = if largest(x).is_nan() {
            Some(if of_x == 0 { Reason::NotFinite("the solution") } else { Reason::OutOfRange })
        } else if exact {
            None
        } else {
            // Scaling back rounded some elements: the rounded solution is confirmed again.
            dev.upload(&scaled(x, of_x), self.x)?;
            let before = std::mem::take(&mut self.outcome);
            self.run((exponent, 0), f64::NAN, None)?;
            let after = std::mem::replace(&mut self.outcome, before);
            residual = after.true_residual;
            self.outcome.max_residual = after.max_residual;
            self.outcome.relative_max_residual = after.relative_max_residual;
            if reason == Reason::Converged && !after.converged() {
                reason = Reason::OutOfRange;
            }
            let stands = after.converged() || no_worse(after.true_residual, first);
            (!stands).then_some(reason)
        };
        if let Some(refused) = refused {
            (reason, residual) = (refused, first);
            self.forget_maximum();
            if from_zero { x.fill(T::zero()) } else { x.copy_from_slice(&self.guess) }
        }
        Ok((reason, residual))
    }

    /// What is handed back is not what was confirmed last.
    fn forget_maximum(&mut self) {
        (self.outcome.max_residual, self.outcome.relative_max_residual) = (f64::NAN, f64::NAN);
    }
}

/// Whether a vector, with why its solve ended and its residual, stands in place of a guess with the residual `first`.
pub(super) fn is_result((reason, residual): (Reason, f64), first: f64) -> bool {
    let unconfirmed = residual.is_nan() && !matches!(reason, Reason::NotFinite(_));
    unconfirmed || no_worse(residual, first)
}

/// Whether a residual is finite and not larger than another, which may be any value.
pub(super) fn no_worse(residual: f64, than: f64) -> bool {
    residual.is_finite() && (residual <= than || than.is_nan())
}
