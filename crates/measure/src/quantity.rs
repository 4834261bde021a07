//! Quantities as text: counts, sizes, times, residuals.
use lacuna::DeviceInfo;

/// A relative residual to four digits.
pub fn relative(residual: f64) -> String {
    if residual == 0.0 { "0".into() } else { format!("{residual:.3e}") }
}

/// `threads` for a CPU, `units` for any other device.
pub fn units(device: &DeviceInfo) -> String {
    counted_units(device.backend, device.units)
}

/// The same for a backend given by name.
pub fn counted_units(backend: &str, count: usize) -> String {
    let what = if backend == "cpu" { "thread" } else { "unit" };
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A count with digits in groups of three.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let group = |(i, digit): (usize, char)| {
        let separate = i > 0 && (digits.len() - i).is_multiple_of(3);
        separate.then_some(' ').into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(group).collect()
}

/// A count with its noun.
pub fn many(count: usize, one: &str, more: &str) -> String {
    format!("{} {}", thousands(count as u64), if count == 1 { one } else { more })
}

/// The unknowns of a system, and its equations if there are more or fewer.
pub fn counted((rows, cols): (usize, usize)) -> String {
    let unknowns = many(cols, "unknown", "unknowns");
    if rows == cols {
        return unknowns;
    }
    format!("{unknowns}, {}", many(rows, "equation", "equations"))
}

/// A size with a unit.
pub fn bytes(count: u64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];
    let mut size = count as f64;
    let mut unit = 0;
    while size >= 999.5 && unit + 1 < units.len() {
        (size, unit) = (size / 1000.0, unit + 1);
    }
    if unit == 0 || size >= 99.95 {
        format!("{size:.0} {}", units[unit])
    } else {
        format!("{size:.1} {}", units[unit])
    }
}

/// A time as text, to about three digits.
pub fn duration(seconds: f64) -> String {
    let digits = |value: f64, unit: &str| {
        let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
        format!("{value:.decimals$} {unit}")
    };
    match seconds {
        s if s >= 5400.0 => digits(s / 3600.0, "h"),
        s if s >= 120.0 => digits(s / 60.0, "min"),
        s if s >= 0.9995 => digits(s, "s"),
        s if s >= 0.9995e-3 => digits(s * 1e3, "ms"),
        s => digits(s * 1e6, "µs"),
    }
}

/// A time in microseconds to three digits.
pub fn micros(seconds: f64) -> String {
    let us = seconds * 1e6;
    match us {
        _ if !us.is_finite() => "-".into(),
        us if us < 9.995 => format!("{us:.2}"),
        us if us < 99.95 => format!("{us:.1}"),
        us => thousands(us.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::{bytes, duration, thousands};

    #[test]
    fn counts_are_grouped() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(9999), "9999");
        assert_eq!(thousands(12345), "12 345");
        assert_eq!(thousands(1_122_000), "1 122 000");
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1500), "1.5 KB");
        assert_eq!(bytes(123_456_789), "123 MB");
        assert_eq!(bytes(u64::MAX), "18.4 EB");
    }

    #[test]
    fn times_have_three_digits() {
        assert_eq!(duration(4321.0), "72.0 min");
        assert_eq!(duration(12.34), "12.3 s");
        assert_eq!(duration(0.0123456), "12.3 ms");
        assert_eq!(duration(0.9999), "1.00 s");
        assert_eq!(duration(1.5e-6), "1.50 µs");
    }
}
