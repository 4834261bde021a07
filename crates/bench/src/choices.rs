//! The quality of the formats chosen by `auto`.
use lacuna::formats::FORMATS;
use lacuna_measure::page::Results;
use lacuna_measure::record::{Case, PRODUCTS, distinct};

/// The promise of `auto`: at most this multiple of the time of the fastest format, and of CSR.
const OF_FASTEST: f64 = 1.10;
const OF_CSR: f64 = 1.05;
/// The largest number of exceptions listed, the worst first.
const NAMED: usize = 8;

/// The format that `auto` takes for a matrix, compared with others measured there.
pub(crate) struct Choice<'a> {
    taken: &'a Case,
    fastest: &'a Case,
    csr: &'a Case,
}

impl<'a> Choice<'a> {
    /// The choice among the products with one matrix on one backend, if the format of `auto` and CSR were
    /// measured.
    pub(crate) fn among(cases: &[&'a Case]) -> Option<Self> {
        let of = |format: &str| cases.iter().copied().find(|c| c.format == format && time(c).is_finite());
        let taken = cases.iter().find_map(|c| of(c.auto.as_deref()?))?;
        Some(Choice { taken, fastest: fastest(cases)?, csr: of("csr")? })
    }

    /// The format, and its time relative to the fastest.
    pub(crate) fn brief(&self) -> String {
        format!("{} {:.2}", self.taken.format, self.over(self.fastest))
    }

    fn over(&self, other: &Case) -> f64 {
        time(self.taken) / time(other)
    }
}

/// The fastest case among those whose format stores the values unchanged.
pub(crate) fn fastest<'a>(cases: &[&'a Case]) -> Option<&'a Case> {
    let exact = |c: &&Case| !FORMATS.iter().any(|f| f.rounds && f.name == c.format);
    let measured = cases.iter().copied().filter(|c| time(c).is_finite());
    measured.filter(exact).min_by(|a, b| time(a).total_cmp(&time(b)))
}

/// Seconds per product.
fn time(case: &Case) -> f64 {
    case.measured.as_ref().map_or(f64::INFINITY, |m| m.each())
}

/// For each backend that reports the choices of `auto`: the number of matrices for which the promise is kept,
/// and the exceptions.
pub(crate) fn choices(results: &Results<'_>) -> String {
    let mut text = String::new();
    let products = |c: &&&Case| c.stop == PRODUCTS && c.auto.is_some();
    for label in distinct(results.cases.iter().filter(products).map(|c| results.label(c))) {
        let on = |c: &&Case| c.stop == PRODUCTS && results.label(c) == label;
        let of = |system| Choice::among(&results.of(system).into_iter().filter(on).collect::<Vec<_>>());
        let choices: Vec<_> = results.systems().into_iter().filter_map(of).collect();
        if choices.is_empty() {
            continue;
        }
        text += &kept(&label, "the fastest format's", OF_FASTEST, &choices, |c| c.fastest);
        text += &kept(&label, "csr's", OF_CSR, &choices, |c| c.csr);
    }
    text
}

/// A line that says how often the chosen format stays within a limit relative to another's time.
fn kept<'a>(
    label: &str,
    whose: &str,
    limit: f64,
    choices: &[Choice<'a>],
    other: impl Fn(&Choice<'a>) -> &'a Case,
) -> String {
    let ratios = choices.iter().map(|c| (c.over(other(c)), c));
    let mut over: Vec<_> = ratios.filter(|(ratio, _)| *ratio > limit).collect();
    over.sort_by(|a, b| b.0.total_cmp(&a.0));
    let words = over.iter().take(NAMED).map(|(ratio, choice)| {
        let system = &choice.taken.system;
        let [taken, other] = [choice.taken, other(choice)].map(|c| &c.format);
        format!("{} {}: {taken} {ratio:.2} of {other}", system.title(), system.number)
    });
    let words = words.collect::<Vec<_>>().join(", ");
    let rest = match over.len() {
        0 => String::new(),
        1..=NAMED => format!("; not for {words}"),
        many => format!("; not for {words} and {} more", many - NAMED),
    };
    let (within, all) = (choices.len() - over.len(), choices.len());
    format!(
        "- what `auto` takes, {label}: at most {limit:.2} of {whose} time for {within} of {all} matrices{rest}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::choices;
    use lacuna_measure::page::Results;
    use lacuna_measure::record::Line;

    fn line(matrix: usize, format: &str, auto: Option<&str>, median: f64) -> Line {
        let auto = auto.map_or(String::new(), |auto| format!(r#""auto":"{auto}","#));
        let text = format!(
            r#"{{"kind":"case","matrix":"m{matrix}","n":9,"nnz":9,"type":"f64","method":"spmv","precond":"none",
            "format":"{format}",{auto}"stop":"products","backend":"cpu","device":"it","units":2,"copy":1e9,
            "measured":{{"iterations":1,"bytes":1,"again":{{"median":{median},"low":1,"high":1,"rounds":5}},
            "first_setup":0,"reproducible":true}},"date":"","machine":"","version":"","compiler":"","commit":"",
            "command":""}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn exceptions_are_counted_and_the_worst_named() {
        // Equal to the fastest that stores values unchanged; 1.2 times the fastest; slower than csr; nine at
        // twice csr.
        let mut lines = vec![line(0, "csr", Some("sell"), 2.0), line(0, "sell", Some("sell"), 1.0)];
        lines.push(line(0, "packed-f32", Some("sell"), 0.1));
        lines.extend([line(1, "csr", Some("dia"), 2.0), line(1, "dia", Some("dia"), 1.2)]);
        lines.extend([line(1, "ell", Some("dia"), 1.0), line(2, "csr", Some("dia"), 1.0)]);
        lines.push(line(2, "dia", Some("dia"), 1.07));
        assert_eq!(
            choices(&Results::new(&lines, None)),
            "- what `auto` takes, cpu: at most 1.10 of the fastest format's time for 2 of 3 matrices; not for m1 f64: dia 1.20 of \
             ell\n- what `auto` takes, cpu: at most 1.05 of csr's time for 2 of 3 matrices; not for m2 f64: dia 1.07 of csr\n"
        );
        for matrix in 3..12 {
            lines.extend([line(matrix, "csr", Some("coo"), 1.0), line(matrix, "coo", Some("coo"), 2.0)]);
        }
        let text = choices(&Results::new(&lines, None));
        assert!(
            text.contains("of csr's time for 2 of 12 matrices; not for m3 f64: coo 2.00 of csr, m4 "),
            "{text}"
        );
        assert!(text.ends_with("m10 f64: coo 2.00 of csr and 2 more\n"), "{text}");
        // Results that do not report the choice of `auto`, or that lack it, give no output.
        let untold = [line(0, "csr", None, 1.0), line(0, "sell", None, 1.0)];
        assert_eq!(choices(&Results::new(&untold, None)), "");
        let missing = [line(0, "csr", Some("dia"), 1.0), line(0, "sell", Some("dia"), 1.0)];
        assert_eq!(choices(&Results::new(&missing, None)), "");
    }
}
