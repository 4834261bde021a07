//! The Schur form of small complex matrices, and its order.
use crate::small::{Small, length};
use lacuna_engine::{Complex64, Error, Result, Scalar};

/// QR steps for one eigenvalue, of which two or three are usual.
const MOST_STEPS: usize = 60;
/// Steps after which a shift is taken that is none of the usual ones.
const STUCK: usize = 10;

/// `A = Q T Qᴴ` with an upper triangle `T`.
pub(super) struct Schur {
    pub(super) triangle: Small<Complex64>,
    pub(super) vectors: Small<Complex64>,
}

fn size(v: Complex64) -> f64 {
    length(&[v])
}

/// `[i j] ← [a i + b j, a* j − b* i]` on the columns of a matrix, for its first rows.
fn turn_columns(of: &mut Small<Complex64>, [i, j]: [usize; 2], [a, b]: [Complex64; 2], rows: usize) {
    for row in 0..rows {
        let (one, two) = (of.at(row, i), of.at(row, j));
        of.set(row, i, one * a + two * b);
        of.set(row, j, two * a.conj() - one * b.conj());
    }
}

/// The adjoint of that on rows, from a column on.
fn turn_rows(of: &mut Small<Complex64>, [i, j]: [usize; 2], [a, b]: [Complex64; 2], first: usize) {
    for column in first..of.shape().1 {
        let (one, two) = (of.at(i, column), of.at(j, column));
        of.set(i, column, a.conj() * one + b.conj() * two);
        of.set(j, column, a * two - b * one);
    }
}

/// The rotation whose adjoint maps `(a, b)` to a multiple of `(1, 0)`.
fn rotation(a: Complex64, b: Complex64) -> [Complex64; 2] {
    let norm = length(&[a, b]);
    if norm == 0.0 { [1.0.into(), 0.0.into()] } else { [a / norm, b / norm] }
}

impl Schur {
    /// By rotations to Hessenberg form, and QR steps with Wilkinson's shift.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a matrix that is not finite.
    ///
    /// Reference: Golub and Van Loan 2013, Matrix Computations, sections 7.4 and 7.5.
    pub(super) fn of(mut a: Small<Complex64>) -> Result<Self> {
        let n = a.shape().0;
        let mut q = Small::identity(n);
        let refused = |message: &str| {
            Err(Error::Unsupported { operation: "small Schur form".into(), message: message.into() })
        };
        if !a.values().iter().all(|v| v.finite()) {
            return refused("the matrix has entries that are not finite");
        }
        let zero = Complex64::from(0.0);
        for k in 0..n.saturating_sub(2) {
            for i in k + 2..n {
                if a.at(i, k) == zero {
                    continue;
                }
                let by = rotation(a.at(k + 1, k), a.at(i, k));
                turn_rows(&mut a, [k + 1, i], by, k);
                turn_columns(&mut a, [k + 1, i], by, n);
                turn_columns(&mut q, [k + 1, i], by, n);
                a.set(i, k, zero);
            }
        }
        let (mut last, mut steps) = (n.saturating_sub(1), 0);
        while last > 0 {
            let negligible = |k: &usize| {
                let beside = size(a.at(*k, *k)) + size(a.at(k - 1, k - 1));
                let whole = if beside == 0.0 { 1.0 } else { beside };
                size(a.at(*k, k - 1)) <= f64::EPSILON * whole
            };
            let first = (1..=last).rev().find(negligible).unwrap_or(0);
            if first > 0 {
                a.set(first, first - 1, zero);
            }
            if first == last {
                (last, steps) = (last - 1, 0);
                continue;
            }
            if steps == MOST_STEPS {
                return refused("QR steps do not come to an end");
            }
            steps += 1;
            let shift = match steps % STUCK {
                0 => a.at(last, last) + size(a.at(last, last - 1)),
                _ => wilkinson(&a, last),
            };
            step(&mut a, &mut q, [first, last], shift);
        }
        for j in 0..n {
            (j + 1..n).for_each(|i| a.set(i, j, zero));
        }
        Ok(Schur { triangle: a, vectors: q })
    }

    /// The eigenvalues, in their order.
    pub(super) fn values(&self) -> Vec<Complex64> {
        (0..self.triangle.shape().0).map(|i| self.triangle.at(i, i)).collect()
    }

    /// Brings the `count` eigenvalues that come before all others to the front, in their order.
    pub(super) fn order(&mut self, count: usize, before: &dyn Fn(Complex64, Complex64) -> bool) {
        let n = self.triangle.shape().0;
        for place in 0..count.min(n) {
            let mut best = place;
            for i in place + 1..n {
                if before(self.triangle.at(i, i), self.triangle.at(best, best)) {
                    best = i;
                }
            }
            (place..best).rev().for_each(|i| self.swap(i));
        }
    }

    /// Exchanges the eigenvalues `i` and `i + 1`.
    fn swap(&mut self, i: usize) {
        let (t, n) = (&mut self.triangle, self.vectors.shape().0);
        let (one, two) = (t.at(i, i), t.at(i + 1, i + 1));
        let by = rotation(t.at(i, i + 1), two - one);
        turn_rows(t, [i, i + 1], by, i);
        turn_columns(t, [i, i + 1], by, i + 2);
        turn_columns(&mut self.vectors, [i, i + 1], by, n);
        t.set(i + 1, i, 0.0.into());
        t.set(i, i, two);
        t.set(i + 1, i + 1, one);
    }

    /// The first `count` eigenvectors of `T`, of length 1.
    pub(super) fn eigenvectors(&self, count: usize) -> Small<Complex64> {
        let (t, n) = (&self.triangle, self.triangle.shape().0);
        let whole = (0..n).map(|i| size(t.at(i, i))).fold(f64::MIN_POSITIVE, f64::max);
        let mut all = Small::zeros(n, count);
        for i in 0..count {
            let mut y = vec![Complex64::from(0.0); n];
            y[i] = 1.0.into();
            for j in (0..i).rev() {
                let sum = (j + 1..=i).fold(Complex64::from(0.0), |sum, l| sum + t.at(j, l) * y[l]);
                let apart = t.at(j, j) - t.at(i, i);
                let apart =
                    if size(apart) < f64::EPSILON * whole { (f64::EPSILON * whole).into() } else { apart };
                y[j] = -sum / apart;
            }
            let norm = length(&y);
            y.iter().enumerate().for_each(|(j, v)| all.set(j, i, *v / norm));
        }
        all
    }
}

/// The square root with a real part that is not negative, by real roots alone.
fn root(v: Complex64) -> Complex64 {
    let larger = (0.5 * (size(v) + v.re.abs())).sqrt();
    if larger == 0.0 {
        return 0.0.into();
    }
    let other = v.im / (2.0 * larger);
    if v.re >= 0.0 {
        Complex64::new(larger, other)
    } else {
        Complex64::new(other.abs(), larger.copysign(v.im))
    }
}

/// The eigenvalue of the last two rows that is nearer to the last entry.
fn wilkinson(a: &Small<Complex64>, last: usize) -> Complex64 {
    let [p, q, r, s] = [(1, 1), (1, 0), (0, 1), (0, 0)].map(|(i, j)| a.at(last - i, last - j));
    let half = (p - s) * 0.5;
    let root = root(half * half + q * r);
    let away = if size(half + root) > size(half - root) { half + root } else { half - root };
    if size(away) == 0.0 { s } else { s - q * r / away }
}

/// A QR step on the rows from `first` to `last`.
fn step(a: &mut Small<Complex64>, q: &mut Small<Complex64>, [first, last]: [usize; 2], shift: Complex64) {
    let n = a.shape().0;
    let shifted = |a: &mut Small<Complex64>, by: Complex64| {
        (first..=last).for_each(|k| a.set(k, k, a.at(k, k) + by));
    };
    shifted(a, -shift);
    let mut turned = Vec::with_capacity(last - first);
    for k in first..last {
        let by = rotation(a.at(k, k), a.at(k + 1, k));
        turn_rows(a, [k, k + 1], by, k);
        turned.push(by);
    }
    for (k, by) in (first..last).zip(turned) {
        turn_columns(a, [k, k + 1], by, k + 2);
        turn_columns(q, [k, k + 1], by, n);
    }
    shifted(a, shift);
}
