//! Checking vectors, and scaling by powers of two, which is exact.
use lacuna_engine::{Error, Result, Scalar, compiled_here};
use lacuna_formats::parallel;

/// A factor `±2^exponent` between the caller's operator or vectors and those on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Factor {
    /// The exponent of two.
    pub exponent: i32,
    /// Whether the sign is changed.
    pub negative: bool,
}

impl Factor {
    /// A number times the factor.
    pub fn of<T: Scalar>(self, v: T) -> T {
        let scaled = v.scale_by_power_of_two(self.exponent);
        if self.negative { -scaled } else { scaled }
    }
    /// The numbers times the factor.
    pub fn times<T: Scalar>(self, values: &[T]) -> Vec<T> {
        compiled_here!(T, |factor: Factor, values: &[T]| -> Vec<T> {
            values.iter().map(|v| factor.of(*v)).collect()
        })(self, values)
    }
    /// Whether it is 1.
    pub fn is_one(self) -> bool {
        self == Factor::default()
    }
}

/// The numbers times `2^exponent`.
pub(crate) fn scaled<T: Scalar>(values: &[T], exponent: i32) -> Vec<T> {
    values.iter().map(|v| v.scale_by_power_of_two(exponent)).collect()
}

/// The least number of elements that a thread processes.
const GRAIN: usize = 1 << 16;
/// Elements processed side by side, so that the compiler can use vector instructions.
const LANES: usize = 16;

/// The largest modulus of the real and imaginary parts of a vector. Fails if an element is not finite.
pub(crate) fn survey<T: Scalar>(values: &[T], expected: usize, what: &str) -> Result<f64> {
    Error::check_length("solve", what, expected, values.len())?;
    let largest = largest(values);
    let bad = || values.iter().enumerate().find(|(_, v)| !v.finite());
    if let Some((row, v)) = largest.is_nan().then(bad).flatten() {
        let message = format!("expected a finite number, got {v}");
        return Err(Error::Element { operation: "solve".into(), what: what.into(), row, message });
    }
    Ok(largest)
}

/// The largest modulus of the real and imaginary parts, NaN if one of them is not finite. Uses all threads.
pub fn largest<T: Scalar>(values: &[T]) -> f64 {
    compiled_here!(T, |values: &[T]| -> f64 {
        match values.len() {
            0..GRAIN => largest_of(values),
            _ => {
                let parts = parallel::map(values.chunks(GRAIN), largest_of);
                parts.into_iter().fold(0.0f64, |a, b| if a.is_nan() || a > b { a } else { b })
            }
        }
    })(values)
}

/// The same for one chunk, on one thread.
fn largest_of<T: Scalar>(values: &[T]) -> f64 {
    let (mut lanes, mut zeros) = ([0.0f64; LANES], [0.0f64; LANES]);
    let mut look = |chunk: &[T]| {
        for ((v, largest), zero) in chunk.iter().zip(&mut lanes).zip(&mut zeros) {
            let (re, im) = (v.re().abs(), v.im().abs());
            let part = if re > im { re } else { im };
            *largest = if part > *largest { part } else { *largest };
            *zero += re * 0.0 + im * 0.0; // NaN from the first element on that is not finite
        }
    };
    let (chunks, rest) = values.as_chunks::<LANES>();
    chunks.iter().for_each(|chunk| look(chunk));
    look(rest);
    let finite = zeros.iter().all(|zero| !zero.is_nan());
    if finite { lanes.into_iter().fold(0.0, f64::max) } else { f64::NAN }
}

/// `‖v‖` without overflow or underflow; NaN if an element is not finite. The bits are the same on any number
/// of threads.
pub fn vector_norm<T: Scalar>(values: &[T]) -> f64 {
    norm(values, largest(values))
}

/// The largest modulus of an element, NaN if one is not finite.
pub fn max_norm<T: Scalar>(values: &[T]) -> f64 {
    if !T::KIND.is_complex() {
        return largest(values);
    }
    compiled_here!(T, |values: &[T]| -> f64 {
        let of = |values: &[T]| {
            let larger = |a: f64, b: f64| if a.is_nan() || a >= b { a } else { b };
            values.iter().map(|v| if v.finite() { v.modulus() } else { f64::NAN }).fold(0.0, larger)
        };
        let parts = parallel::map(values.chunks(GRAIN), of);
        parts.into_iter().fold(0.0f64, |a, b| if a.is_nan() || a > b { a } else { b })
    })(values)
}

/// The norm of a vector, given the largest modulus of its parts.
pub(crate) fn norm<T: Scalar>(values: &[T], largest: f64) -> f64 {
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    compiled_here!(T, |values: &[T], largest: f64| -> f64 {
        // If the largest part is far from 1, the elements are divided by it before they are squared.
        let unit = if (1e-100..1e100).contains(&largest) { 1.0 } else { largest };
        let squares = |part: &[T]| -> f64 {
            let square = |v: f64| if unit == 1.0 { v * v } else { (v / unit).powi(2) };
            part.iter().map(|v| square(v.re()) + square(v.im())).sum()
        };
        let parts = match values.len() {
            0..GRAIN => vec![squares(values)],
            _ => parallel::map(values.chunks(GRAIN), squares),
        };
        unit * parts.into_iter().sum::<f64>().sqrt()
    })(values, largest)
}

/// The exponent of the power of two that brings a largest element near 1. Returns 0 if its squares are safe
/// as they are: above the square of the tolerance's last bit and below overflow, with a margin for the size
/// of the matrix.
pub fn scaling_exponent<T: Scalar>(largest: f64) -> i32 {
    let bits = libm::log2(T::MAX);
    let exponent = libm::log2(largest).floor();
    if exponent > -bits / 6.0 && exponent < bits / 4.0 { 0 } else { -exponent as i32 }
}

#[cfg(test)]
mod tests {
    use super::{GRAIN, LANES, survey};
    use lacuna_engine::{Complex64, Error};

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
