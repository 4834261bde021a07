//! Residuals without rounding: sums of products as one long fixed-point number (Kulisch and Miranker 1981).
use lacuna::{Csr, Scalar};
use std::cmp::Ordering;

/// A number whose exponent has no bounds: `m · 2^e` with `m` 0 or in [1, 2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wide {
    m: f64,
    e: i64,
}

impl Wide {
    const ZERO: Wide = Wide { m: 0.0, e: 0 };

    fn new(m: f64, e: i64) -> Self {
        if m == 0.0 {
            return Self::ZERO;
        }
        let (m, e) = if m.abs() < f64::MIN_POSITIVE { (m * 2f64.powi(64), e - 64) } else { (m, e) };
        let exponent = ((m.to_bits() >> 52) & 0x7ff) as i64 - 1023;
        let m = f64::from_bits((m.abs().to_bits() & ((1 << 52) - 1)) | (1023 << 52));
        Wide { m, e: e + exponent }
    }

    /// Whether it is 0.
    pub fn is_zero(self) -> bool {
        self.m == 0.0
    }

    /// The quotient, as near as an `f64` is; 1 for 0 by 0.
    pub fn over(self, by: Self) -> f64 {
        match (self.is_zero(), by.is_zero()) {
            (true, true) => 1.0,
            (_, true) => f64::INFINITY,
            (true, _) => 0.0,
            _ => {
                let e = self.e - by.e;
                (self.m / by.m) * 2f64.powi(e.clamp(-1070, 1020) as i32)
            }
        }
    }
}

/// The 2-norm of numbers of any size, to about the accuracy of an `f64`.
fn norm_of(parts: &[Wide]) -> Wide {
    let Some(largest) = parts.iter().filter(|p| !p.is_zero()).map(|p| p.e).max() else { return Wide::ZERO };
    let scaled = |p: &Wide| if p.is_zero() { 0.0 } else { p.m * 2f64.powi((p.e - largest).max(-500) as i32) };
    Wide::new(parts.iter().map(|p| scaled(p).powi(2)).sum::<f64>().sqrt(), largest)
}

/// The 2-norm.
pub fn norm<T: Scalar>(v: &[T]) -> Wide {
    let parts: Vec<Wide> = v.iter().flat_map(|v| [Wide::new(v.re(), 0), Wide::new(v.im(), 0)]).collect();
    norm_of(&parts)
}

/// `‖b − A x‖`, each element exact before it is squared. All numbers must be finite.
pub fn residual<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T]) -> Wide {
    let mut parts = Vec::with_capacity(2 * b.len());
    for (i, b) in b.iter().enumerate() {
        let (mut re, mut im) = (Long::new(), Long::new());
        re.add(b.re(), 1.0);
        im.add(b.im(), 1.0);
        for (j, v) in a.row_entries(i) {
            re.add(-v.re(), x[j].re());
            re.add(v.im(), x[j].im());
            im.add(-v.re(), x[j].im());
            im.add(-v.im(), x[j].re());
        }
        parts.extend([re.value(), im.value()]);
    }
    norm_of(&parts)
}

/// The exponent of the lowest bit: products of two of the smallest `f64`.
const LOWEST: i64 = -2148;
/// Words of 32 bits, up to products of two of the largest and sums of 2^32 of them.
const WORDS: usize = 136;

/// A sum of products of two `f64`, exact: two's complement in words of 32 bits with room for carries.
struct Long {
    words: [i64; WORDS],
}

impl Long {
    fn new() -> Self {
        Long { words: [0; WORDS] }
    }

    fn add(&mut self, a: f64, b: f64) {
        let ((m, e), (n, f)) = (split(a), split(b));
        let product = i128::from(m) * i128::from(n);
        if product == 0 {
            return;
        }
        let at = (e + f - LOWEST) as usize;
        let (word, shift) = (at / 32, at % 32);
        let (sign, mut rest) = (product.signum() as i64, product.unsigned_abs());
        // 106 bits shifted by up to 31 do not fit 128: the lowest word goes first.
        let low = (rest << shift) as u32;
        self.words[word] += sign * i64::from(low);
        rest >>= 32 - shift;
        for k in 1.. {
            if rest == 0 {
                break;
            }
            self.words[word + k] += sign * i64::from(rest as u32);
            rest >>= 32;
        }
    }

    /// The size of the sum.
    fn value(mut self) -> Wide {
        self.carry();
        if self.words[WORDS - 1] < 0 {
            self.words.iter_mut().for_each(|w| *w = -*w);
            self.carry();
        }
        let Some(top) = self.words.iter().rposition(|w| *w != 0) else { return Wide::ZERO };
        // Four words hold more than the 53 bits.
        let low = top.saturating_sub(3);
        let m = self.words[low..=top].iter().rev().fold(0.0, |sum, w| sum * 4_294_967_296.0 + *w as f64);
        Wide::new(m, LOWEST + 32 * low as i64)
    }

    /// Brings all words but the last to 0..2^32.
    fn carry(&mut self) {
        let mut carry = 0;
        for word in &mut self.words[..WORDS - 1] {
            let sum = *word + carry;
            *word = sum & 0xffff_ffff;
            carry = sum >> 32;
        }
        self.words[WORDS - 1] += carry;
    }
}

/// A finite number as a whole one times a power of two.
fn split(v: f64) -> (i64, i64) {
    let bits = v.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i64, (bits & ((1 << 52) - 1)) as i64);
    let m = match exponent.cmp(&0) {
        Ordering::Equal => fraction,
        _ => fraction | 1 << 52,
    };
    (if v < 0.0 { -m } else { m }, exponent.max(1) - 1075)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(terms: &[(f64, f64)]) -> f64 {
        let mut long = Long::new();
        terms.iter().for_each(|(a, b)| long.add(*a, *b));
        long.value().over(Wide::new(1.0, 0))
    }

    #[test]
    fn sums_are_exact() {
        assert_eq!(value(&[(3.0, 4.0), (-5.0, 2.0)]), 2.0);
        assert_eq!(value(&[(1e300, 1e300), (2.5, -3.0), (-1e300, 1e300)]), 7.5);
        assert_eq!(value(&[(f64::MAX, f64::MAX), (5e-324, 5e-324), (f64::MAX, -f64::MAX), (1.0, -1.0)]), 1.0);
        assert_eq!(value(&[(0.1, 10.0), (-1.0, 1.0)]), 2f64.powi(-54));
        let tiny = Wide::new(5e-324, 0);
        assert_eq!((tiny.m, tiny.e), (1.0, -1074));
        assert_eq!(norm(&[3e-200, 4e-200]).over(Wide::new(1e-200, 0)), 5.0);
        assert_eq!(norm(&[0.0; 3]).over(norm(&[0.0])), 1.0);
    }

    #[test]
    fn a_residual_is_that_of_whole_numbers() {
        let a = Csr::<f64>::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![2.0, 1.0, 4.0]).unwrap();
        let r = residual(&a, &[7.0, 0.0], &[1.0, 1.0]);
        assert_eq!(r.over(Wide::new(1.0, 0)), 32f64.sqrt());
    }
}
