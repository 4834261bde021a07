//! The machine, the program and the date of a measurement.
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// Stored with every result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    pub date: String,
    pub machine: String,
    pub version: String,
    pub compiler: String,
    /// The commit the program was built from, if `LACUNA_COMMIT` gives it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub commit: String,
    pub command: String,
}

impl Machine {
    /// This machine, this program, today's date.
    pub(crate) fn here() -> Self {
        Machine {
            date: date(),
            machine: machine(),
            version: env!("CARGO_PKG_VERSION").into(),
            compiler: env!("LACUNA_RUSTC").into(),
            commit: std::env::var("LACUNA_COMMIT").unwrap_or_default(),
            command: command(),
        }
    }
}

/// The command line, without the folder of the program.
fn command() -> String {
    let mut words: Vec<String> = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    if let Some(first) = words.first_mut() {
        *first = first.rsplit('/').next().unwrap_or_default().into();
    }
    words.join(" ")
}

/// Today in UTC, as `2026-11-21`.
fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    calendar(seconds / 86_400)
}

/// The date `days` days after 1970-01-01, counted from 0000-03-01 in eras of 400 years of 146097 days; see
/// Hinnant, "chrono-compatible date algorithms".
fn calendar(days: u64) -> String {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = 400 * era + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The processor and its cores.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find(|l| l.starts_with("model name")).and_then(|l| l.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    format!("{} x {cores}", name.unwrap_or(std::env::consts::ARCH))
}

#[cfg(test)]
mod tests {
    use super::calendar;

    #[test]
    fn days_become_dates() {
        assert_eq!(calendar(0), "1970-01-01");
        assert_eq!(calendar(11_016), "2000-02-29");
        assert_eq!(calendar(20_778), "2026-11-21");
    }
}
