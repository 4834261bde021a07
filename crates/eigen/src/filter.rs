//! Chebyshev polynomials of an operator, which keep the end of its spectrum that is sought and damp the rest.
use lacuna_engine::{LinOp, Pass, Recorder, Scalar, Vector};

/// The largest degree for each column of a cycle, so that the products of a step take about as long as making it orthogonal.
const DEGREE: f64 = 0.5;
/// The least degree that pays.
const LEAST: u32 = 4;
/// The logarithm of twice the polynomial's largest value: what is sought is this much above what is damped, and no further from the
/// rest of what is sought.
const HEIGHT: f64 = 4.0;
const HIGHEST: f64 = 7.0;
/// The part of the interval's length by which it is longer than the spectrum seems to be.
const MARGIN: f64 = 0.01;
/// The steps that another filter must save.
const PAYS: f64 = 1.5;

/// The interval on which a polynomial is at most 1, and its degree, which is even.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) center: f64,
    pub(crate) half: f64,
    pub(crate) degree: u32,
    /// How much further values are apart, beside the range of all, than those of the operator, about.
    gain: f64,
}

impl Interval {
    /// The interval for a spectrum of which the lowest value, one beside those that are wanted, the last of these and the highest are
    /// about known, in a search by cycles of so many columns; none where few products suffice.
    pub(crate) fn of([low, next, last, high]: [f64; 4], columns: usize) -> Option<Interval> {
        let low = low - MARGIN * (high - low);
        let most = 2 * ((DEGREE * columns as f64 / 2.0).round() as u32);
        // The end of the interval for which the highest value has its height.
        let stretch = (HEIGHT / f64::from(most)).cosh();
        let cut = ((2.0 * high + (stretch - 1.0) * low) / (stretch + 1.0)).min(next).min(last);
        let (center, half) = (0.5 * (cut + low), 0.5 * (cut - low));
        let highest = ((high - center) / half).acosh();
        if !(half > 0.0 && highest > 0.0 && highest.is_finite()) {
            return None;
        }
        let degree = most.min(2 * ((HIGHEST / highest / 2.0) as u32));
        let gain = f64::from(degree).powi(2) / (f64::from(degree) * highest).max(1.0);
        (degree >= LEAST).then_some(Interval { center, half, degree, gain })
    }

    /// Where it begins.
    pub(crate) fn low(&self) -> f64 {
        self.center - self.half
    }
    /// The same interval down to `low` at least.
    pub(crate) fn down_to(self, low: f64) -> Interval {
        let (high, low) = (self.center + self.half, low.min(self.low()));
        Interval { center: 0.5 * (high + low), half: 0.5 * (high - low), ..self }
    }

    /// Whether a change from another interval to this one pays.
    pub(crate) fn pays_beside(&self, other: &Interval) -> bool {
        self.gain > PAYS * other.gain
    }
}

/// `p(A)` or `p(−A)`, with Chebyshev's polynomial `p` of an interval.
///
/// Reference: Zhou and Saad 2007, doi:10.1137/050630404; Saad 2011, Numerical Methods for Large Eigenvalue Problems, section 7.4.
#[derive(Clone, Copy)]
pub(crate) struct Filter<'a, T: Scalar> {
    pub(crate) a: &'a dyn LinOp<T>,
    /// That of `sign` times the operator.
    pub(crate) interval: Interval,
    pub(crate) sign: f64,
    pub(crate) work: [Vector<T>; 2],
}

impl<T: Scalar> LinOp<T> for Filter<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.shape()
    }
    /// Two vectors in turn: those of odd degree in a work vector, those of even degree in `y`.
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        let ([odd, q], Interval { center, half, degree, .. }) = (self.work, self.interval);
        let (of_product, of_vector) = (self.sign / half, center / half);
        k.spmv_dot(self.a, x, q, Pass::new("first").set(odd, of_product * q - of_vector * x));
        let mut then = Some(then);
        for step in 2..=degree {
            let (from, to, before) = match step {
                2 => (odd, y, x),
                _ if step % 2 == 0 => (odd, y, y),
                _ => (y, odd, odd),
            };
            let next = (2.0 * of_product) * q - (2.0 * of_vector) * from - before;
            let mut pass = Pass::new("next").set(to, next);
            if step == degree
                && let Some(then) = then.take()
            {
                pass = pass.then(then);
            }
            k.spmv_dot(self.a, from, q, pass);
        }
    }
}
