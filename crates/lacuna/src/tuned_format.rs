//! The fastest format by measurement, with a cache of the results.
use crate::{TimedProduct, formats};
use lacuna_engine::Cached;
use lacuna_engine::{Cost, Device, Format, Result, Scalar};
use lacuna_formats::{Csr, FORMATS, Structure, candidates, convert};
use std::sync::Arc;

/// A format is timed if its estimated cost is at most this multiple of the lowest.
const PLAUSIBLE: f64 = 2.5;
/// Seconds of a measurement, and the number of measurements per format; the minimum counts.
const SECONDS: f64 = 0.004;
const ROUNDS: usize = 5;

/// The measured times of the formats of a matrix on a device.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tuned {
    /// Seconds per product by format, the fastest first.
    pub times: Vec<(&'static str, f64)>,
    /// Whether the result came from the cache.
    pub remembered: bool,
}

impl Tuned {
    /// The fastest format.
    pub fn name(&self) -> &'static str {
        self.times.first().map_or(FORMATS[0].name, |(name, _)| *name)
    }

    /// The reason for the choice, in words.
    pub fn why(&self) -> String {
        let of = |(name, seconds): &(&str, f64)| format!("{:.1} us a product in {name}", seconds * 1e6);
        let times: Vec<_> = self.times.iter().take(3).map(of).collect();
        let when = if self.remembered { "measured before" } else { "measured" };
        format!("{}; {when}", times.join(", "))
    }
}

/// Times the plausible formats of a matrix on a device, always including CSR, or takes the result from a
/// cache. The cache is keyed by the structure of the matrix, the number type, the device and the version of
/// this crate. It is a file in `$LACUNA_CACHE`, or in `lacuna` in the user's cache folder if that is not set;
/// `off` disables it. Only one format at a time is on the device, and none afterwards.
///
/// ```
/// use lacuna::prelude::*;
/// use std::sync::Arc;
///
/// let a = Arc::new(Spec::parse("gen:poisson2d:50x50")?.build::<f64>()?);
/// let tuned = lacuna::tune_format(&default_device()?, &a, &Structure::of(&*a))?;
/// println!("{}: {}", tuned.name(), tuned.why());
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// Out of memory for a conversion; device failures.
pub fn tune_format<T: Scalar>(dev: &Device, a: &Arc<Csr<T>>, s: &Structure) -> Result<Tuned> {
    let (device, formats) = (dev.info(), dev.formats(a.rows(), Format::bytes(&**a))?);
    let hash = format!("{:032x}", a.structure_hash());
    let units = device.units.to_string();
    let version = env!("CARGO_PKG_VERSION");
    let all = candidates(a, s, formats);
    // Some formats are ruled out by the values.
    let possible = all.iter().filter(|c| c.refused.is_none()).map(|c| c.name);
    let possible =
        possible.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(" ");
    let key = [&hash, T::KIND.name(), device.backend, &device.name, &units, version, &possible];
    let cached = Cached::new("format", &key);
    if let Some(times) = cached.read().and_then(|text| parsed(&text, formats)) {
        return Ok(Tuned { times, remembered: true });
    }
    let least = all.first().map_or(f64::INFINITY, |c| c.cost);
    let plausible =
        |c: &formats::Candidate| c.refused.is_none() && (c.cost <= PLAUSIBLE * least || c.name == "csr");
    let mut times = Vec::new();
    for candidate in all.into_iter().filter(plausible) {
        times.push((candidate.name, best_of_rounds(dev, convert(a, candidate.name)?)?));
    }
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    let lines: String = times.iter().map(|(name, seconds)| format!("{name} {seconds:e}\n")).collect();
    cached.keep(lines.as_bytes());
    Ok(Tuned { times, remembered: false })
}

fn best_of_rounds<T: Scalar>(dev: &Device, stored: Arc<dyn Format<T>>) -> Result<f64> {
    let mut product = TimedProduct::new(dev, stored, SECONDS)?;
    (0..ROUNDS).try_fold(f64::INFINITY, |best, _| Ok(product.time()?.min(best)))
}

/// The contents of a cache file, if it is complete and names only formats that the device has.
fn parsed(text: &[u8], formats: &[Cost]) -> Option<Vec<(&'static str, f64)>> {
    let line = |line: &str| {
        let (name, seconds) = line.split_once(' ')?;
        let format = FORMATS.iter().find(|f| f.name == name)?;
        let seconds = seconds.parse().ok().filter(|s: &f64| s.is_finite() && *s > 0.0)?;
        Cost::find(formats, format.name, format.kernel).is_some().then_some((format.name, seconds))
    };
    let times: Option<Vec<_>> = std::str::from_utf8(text).ok()?.lines().map(line).collect();
    times.filter(|times| times.iter().any(|(name, _)| *name == "csr") && times.is_sorted_by_key(|(_, s)| *s))
}

#[cfg(test)]
mod tests {
    use super::parsed;
    use lacuna_engine::Cost;

    #[test]
    fn only_whole_answers_are_taken() {
        let formats = ["csr", "dia"].map(|format| Cost::of_bytes(format, 1.0));
        let taken = |text: &str| parsed(text.as_bytes(), &formats);
        assert_eq!(taken("dia 1e-6\ncsr 2e-6\n"), Some(vec![("dia", 1e-6), ("csr", 2e-6)]));
        for broken in [
            "",
            "dia 1e-6\n",
            "csr 2e-6\ndia 1e-6\n",
            "dia 1e-6\ncs",
            "csr -1\n",
            "csr NaN\n",
            "csr 1\nxyz 2\n",
            "csr 1\nsell 2\n",
        ] {
            assert_eq!(taken(broken), None, "{broken:?}");
        }
        assert_eq!(parsed(&[0xff, 0x20, 0x31], &formats), None);
    }
}
