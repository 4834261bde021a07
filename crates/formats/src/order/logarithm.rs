//! A fast logarithm for costs of entries.

/// Low bits of the mantissa that are ignored. Without them the next larger number has a logarithm that is larger
/// by more than rounding errors.
const IGNORED: u64 = (1 << 12) - 1;
const MANTISSA: u64 = (1 << 52) - 1;
/// The bits of `√½`: mantissas are taken between it and `√2`.
const LEAST: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
/// 2^54, by which subnormal numbers are multiplied.
const UP: f64 = (1u64 << 54) as f64;
const BIAS: u64 = 1024;
/// The bits of 2^52, to which an integer below it is added bit by bit.
const INTEGER: u64 = 0x433 << 52;
/// Adding it rounds to a multiple of 2^-34.
const GRID: f64 = 1.5 * (1u64 << 18) as f64;
/// `2 / (k ln 2)` for k = 1, 3, …, 13: the series of `log₂((1 + s) / (1 - s))` in odd powers of `s`.
const SERIES: [f64; 7] = {
    let mut series = [0.0; 7];
    let mut k = 0;
    while k < 7 {
        series[k] = 2.0 * std::f64::consts::LOG2_E / (2 * k + 1) as f64;
        k += 1;
    }
    series
};

/// `log₂ x` of a number that is not negative, with an error below 2^-34: exact for powers of two, minus infinity
/// for zero, and never larger for a smaller number. It has the same bits on every platform, and results are
/// multiples of 2^-34, so that sums of them below 2^19 are exact.
#[inline]
pub(crate) fn log2(x: f64) -> f64 {
    let (normal, shift) = if x < f64::MIN_POSITIVE { (x * UP, 54.0) } else { (x, 0.0) };
    let bits = (normal.to_bits() & !IGNORED) + (BIAS << 52) - LEAST;
    let exponent = f64::from_bits(INTEGER | (bits >> 52)) - f64::from_bits(INTEGER | BIAS) - shift;
    let mantissa = f64::from_bits((bits & MANTISSA) + LEAST);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    // In pairs of terms, which wait for each other less than one sum does.
    let [a, b, c, d, e, f, g] = SERIES;
    let (s2, s4) = (s * s, (s * s) * (s * s));
    let sum = (a + b * s2) + (c + d * s2) * s4 + ((e + f * s2) + g * s4) * (s4 * s4);
    // The series is cut off towards zero on both sides, so that the step from √2 to the next exponent is upwards.
    let rounded = (exponent + s * sum + GRID) - GRID;
    if x == 0.0 { f64::NEG_INFINITY } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::log2;
    use proptest::prelude::*;
    use std::f64::consts::SQRT_2;

    const ERROR: f64 = 1.0 / (1u64 << 34) as f64;

    /// A finite number that is not negative, of any magnitude.
    fn number() -> impl Strategy<Value = f64> {
        (0..f64::INFINITY.to_bits()).prop_map(f64::from_bits)
    }

    proptest! {
        #[test]
        fn it_is_close_to_the_logarithm(x in number()) {
            prop_assert!(x == 0.0 || (log2(x) - libm::log2(x)).abs() < ERROR, "{x}: {}", log2(x));
            prop_assert_eq!(log2(x) / ERROR, (log2(x) / ERROR).round());
        }

        #[test]
        fn it_is_monotone(x in number(), steps in 0u64..1 << 20, exponent in -1000i32..1000) {
            prop_assert!(log2(f64::from_bits(x.to_bits() + steps)) >= log2(x), "{x}");
            let border = SQRT_2 * 2f64.powi(exponent);
            prop_assert!(log2(f64::from_bits(border.to_bits() + steps)) >= log2(border));
            prop_assert!(log2(f64::from_bits(border.to_bits() - steps)) <= log2(border));
        }
    }

    #[test]
    fn powers_of_two_are_exact_and_zero_is_infinite() {
        for exponent in -1074..1024 {
            assert_eq!(log2(libm::scalbn(1.0, exponent)), exponent as f64);
        }
        assert_eq!(log2(0.0), f64::NEG_INFINITY);
    }
}
