//! Round numbers along an axis.

/// Steps of 1, 2 or 5 times a power of ten from 0 to `last`, at most `most` of them.
pub fn counts(last: u64, most: u64) -> Vec<u64> {
    let mut step = 1u64;
    while last / step > most.max(1) {
        let decade = 10u64.pow(step.ilog10());
        step = match step / decade {
            1 => 2 * decade,
            2 => 5 * decade,
            _ => decade.saturating_mul(10),
        };
    }
    (0..=last / step).map(|k| k * step).collect()
}

/// Multiples of one number of decades from `low` to `high`, about `most` of them.
pub fn decades(low: i32, high: i32, most: i32) -> Vec<i32> {
    let step = ((high - low) / most.max(1) + 1).max(1);
    let first = low + (-low).rem_euclid(step);
    (first..=high).step_by(step as usize).collect()
}

/// `10ⁿ` with superscript digits.
pub fn power_of_ten(n: i32) -> String {
    let digit = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => char::from_u32('⁰' as u32 + c.to_digit(10).unwrap_or(0)).unwrap_or(c),
    };
    match n {
        0 => "1".into(),
        1 => "10".into(),
        n => format!("10{}", n.to_string().chars().map(digit).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::{counts, decades, power_of_ten};

    #[test]
    fn steps_are_round() {
        assert_eq!(counts(0, 8), [0]);
        assert_eq!(counts(7, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(counts(1029, 8), [0, 200, 400, 600, 800, 1000]);
        assert_eq!(counts(100_000, 8), [0, 20_000, 40_000, 60_000, 80_000, 100_000]);
        assert!(counts(u64::MAX, 8).len() <= 9);
    }

    #[test]
    fn decades_are_multiples() {
        assert_eq!(decades(-8, 0, 10), (-8..=0).collect::<Vec<_>>());
        assert_eq!(decades(-17, 2, 10), [-16, -14, -12, -10, -8, -6, -4, -2, 0, 2]);
        assert_eq!(decades(-39, 1, 10), [-35, -30, -25, -20, -15, -10, -5, 0]);
    }

    #[test]
    fn powers_have_superscripts() {
        assert_eq!(power_of_ten(-10), "10⁻¹⁰");
        assert_eq!(power_of_ten(4), "10⁴");
    }
}
