//! Compares new measurements with results kept earlier.
use lacuna_measure::Measured;
use lacuna_measure::record::Case;
use std::fmt::Write;

/// A smaller change counts as noise whatever the quartiles say: clocks and placement of memory differ between
/// runs.
const LEAST: f64 = 0.05;
/// A change must exceed this multiple of the combined spread of both runs.
const SPREADS: f64 = 2.0;

/// A case measured in both runs.
struct Pair<'a> {
    case: &'a Case,
    /// New time divided by old.
    ratio: f64,
    /// The difference from 1 that counts as noise.
    noise: f64,
}

/// The result of the comparison.
pub(super) struct Verdict<'a> {
    pairs: Vec<Pair<'a>>,
    /// Cases present in only one of the runs.
    alone: usize,
}

/// Pairs each new case with the old case of the same work on the same kind of device; of several old ones it
/// takes the last.
pub(super) fn judge<'a>(old: &[&'a Case], new: &[&'a Case]) -> Verdict<'a> {
    let place = |c: &Case| (c.backend.clone(), c.device.clone(), c.units);
    let pairs: Vec<Pair<'a>> = new
        .iter()
        .filter_map(|case| {
            let now = case.measured.as_ref()?;
            let before =
                old.iter().rfind(|o| o.same_work(case) && place(o) == place(case))?.measured.as_ref()?;
            let each = |m: &Measured| m.again.median / m.iterations.max(1) as f64;
            let noise = LEAST.max(SPREADS * now.again.spread().hypot(before.again.spread()));
            Some(Pair { case, ratio: each(now) / each(before), noise })
        })
        .collect();
    let alone = new.len() - pairs.len();
    Verdict { pairs, alone }
}

impl Verdict<'_> {
    pub(super) fn is_slower(&self) -> bool {
        self.pairs.iter().any(Pair::is_slower)
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let (slower, rest): (Vec<&Pair<'_>>, Vec<_>) = self.pairs.iter().partition(|p| p.is_slower());
        let faster = rest.iter().filter(|p| 1.0 / p.ratio > 1.0 + p.noise).count();
        let mean = self.pairs.iter().map(|p| p.ratio.ln()).sum::<f64>() / self.pairs.len().max(1) as f64;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "\n{} cases compared: {} slower, {faster} faster, geometric mean of new over old {:.3}; {} in one of them alone",
            self.pairs.len(),
            slower.len(),
            mean.exp(),
            self.alone
        );
        for Pair { case, ratio, noise } in slower {
            let system = &case.system;
            let _ = writeln!(
                text,
                "  SLOWER {ratio:.3} times (noise {noise:.3}): {} {} {} {} {} {}",
                system.matrix,
                system.n,
                system.number,
                case.way(),
                case.format,
                case.backend
            );
        }
        text
    }
}

impl Pair<'_> {
    fn is_slower(&self) -> bool {
        self.ratio > 1.0 + self.noise
    }
}

#[cfg(test)]
mod tests {
    use super::judge;
    use lacuna_measure::record::Case;

    fn case(method: &str, median: f64, low: f64, high: f64) -> Case {
        let text = format!(
            r#"{{"matrix":"a","n":9,"nnz":9,"type":"f64","method":"{method}","precond":"none","format":"csr",
            "stop":"30 iterations","backend":"cpu","device":"it","units":2,"copy":1e9,"measured":{{"iterations":30,"bytes":1,
            "again":{{"median":{median},"low":{low},"high":{high},"rounds":5}},"first_setup":0,"reproducible":true}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn only_what_is_beyond_the_noise_is_slower() {
        let old =
            [case("cg", 1.0, 0.99, 1.01), case("gmres", 1.0, 0.8, 1.2), case("bicgstab", 2.0, 2.0, 2.0)];
        let new =
            [case("cg", 1.2, 1.19, 1.21), case("gmres", 1.2, 1.0, 1.3), case("bicgstab", 2.09, 2.09, 2.09)];
        let (old, new): (Vec<_>, Vec<_>) = (old.iter().collect(), new.iter().collect());
        let verdict = judge(&old, &new);
        let text = verdict.text();
        assert!(verdict.is_slower() && text.contains("3 cases compared: 1 slower"), "{text}");
        assert!(text.contains("SLOWER 1.200 times (noise 0.052): a 9 f64 cg csr cpu"), "{text}");
        assert!(!judge(&new, &old).is_slower() && !judge(&old[2..], &new[2..]).is_slower());
        assert_eq!(judge(&[], &new).alone, 3);
    }
}
