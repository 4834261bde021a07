//! Time against size, and the size from which a GPU pays.
use super::chart::{Chart, Point, Scale, Series, legend};
use super::results::Results;
use crate::quantity::{micros, thousands};
use crate::record::{BY_HAND, Case, PRODUCTS, distinct};
use std::fmt::Write;

/// One method over several sizes of one kind of system.
struct Scaling<'a> {
    family: &'a str,
    number: &'a str,
    way: String,
    stop: &'a str,
    /// Curves by name, the smallest size first: unknowns, seconds per iteration, the same with the set-up,
    /// and a description.
    curves: Vec<(String, Vec<Sample>)>,
}

struct Sample {
    n: f64,
    again: f64,
    fresh: Option<f64>,
    what: String,
}

/// The family of matrices that a matrix is one size of.
fn family(matrix: &str) -> &str {
    let generated = matrix.starts_with("gen:");
    matrix.rsplit_once(':').filter(|(family, _)| generated && family.contains(':')).map_or(matrix, |f| f.0)
}

fn scalings<'a>(results: &Results<'a>) -> Vec<Scaling<'a>> {
    let kinds = distinct(
        results
            .cases
            .iter()
            .map(|c| (family(&c.system.matrix), c.system.number.as_str(), c.way(), c.stop.as_str())),
    );
    let scalings = kinds.into_iter().map(|(family_name, number, way, stop)| {
        let of = |c: &&&Case| {
            (family(&c.system.matrix), c.system.number.as_str(), c.way(), c.stop.as_str())
                == (family_name, number, way.clone(), stop)
        };
        let cases: Vec<&Case> = results.cases.iter().filter(of).copied().collect();
        let mut curves: Vec<(String, Vec<Sample>)> = Vec::new();
        for (name, sample) in cases.iter().flat_map(|case| samples(results, case)) {
            match curves.iter_mut().find(|c| c.0 == name) {
                Some((_, samples)) => match samples.iter_mut().find(|r| r.n == sample.n) {
                    Some(slower) if slower.again > sample.again => *slower = sample,
                    Some(_) => {}
                    None => samples.push(sample),
                },
                None => curves.push((name, vec![sample])),
            }
        }
        curves.iter_mut().for_each(|c| c.1.sort_by(|a, b| a.n.total_cmp(&b.n)));
        Scaling { family: family_name, number, way, stop, curves }
    });
    scalings.filter(|l| l.curves.iter().any(|c| c.1.len() > 1)).collect()
}

/// A case and the peers beside it, as points.
fn samples(results: &Results<'_>, case: &Case) -> Vec<(String, Sample)> {
    let n = case.system.n as f64;
    let mut list = Vec::new();
    if let Some(m) = &case.measured {
        let sample = Sample { n, again: m.each(), fresh: m.each_fresh(), what: case.format.clone() };
        list.push((results.label(case), sample));
    }
    list.extend(results.peers_of(case).map(|p| {
        let (again, fresh) = (p.again_us * 1e-6, Some(p.fresh_us * 1e-6));
        (p.peer.clone(), Sample { n, again, fresh, what: p.with() })
    }));
    list
}

/// The number of unknowns from which one curve stays below another.
enum Crossing {
    At(f64),
    Always,
    Never,
}

/// The size from which `gpu` stays faster, by linear interpolation on logarithmic axes between two sizes.
fn crossing(cpu: &[Sample], gpu: &[Sample]) -> Option<Crossing> {
    let at = |g: &Sample| cpu.iter().find(|c| c.n == g.n).map(|c| (g.n.ln(), (g.again / c.again).ln()));
    let ratios: Vec<(f64, f64)> = gpu.iter().filter_map(at).collect();
    let last = ratios.last()?;
    if last.1 >= 0.0 {
        return Some(Crossing::Never);
    }
    let Some(slower) = ratios.iter().rposition(|r| r.1 >= 0.0) else { return Some(Crossing::Always) };
    let ((x0, y0), (x1, y1)) = (ratios[slower], ratios[slower + 1]);
    Some(Crossing::At((x0 + (x1 - x0) * y0 / (y0 - y1)).exp()))
}

/// All pairs of a CPU and another backend in a scaling, with their crossings.
fn crossings(scaling: &Scaling<'_>, ours: &[String]) -> Vec<(String, String, Crossing)> {
    let cpu = scaling.curves.iter().filter(|c| c.0.starts_with("cpu"));
    let pairs = cpu.flat_map(|cpu| {
        let other = |name: &String| ours.contains(name) && !name.starts_with("cpu") && name != BY_HAND;
        let others = scaling.curves.iter().filter(move |c| other(&c.0));
        others.filter_map(|gpu| Some((cpu.0.clone(), gpu.0.clone(), crossing(&cpu.1, &gpu.1)?)))
    });
    pairs.collect()
}

/// The charts and the table of crossings.
pub(super) fn html(results: &Results<'_>) -> String {
    let scalings = scalings(results);
    if scalings.is_empty() {
        return String::new();
    }
    let ours: Vec<String> = results.cases.iter().map(|c| results.label(c)).collect();
    let mut html = String::from(
        "<h2>Time against size</h2>\n<p>Of each backend the fastest format. Filled markers and solid lines: solving \
         again with what is there, transfers of <code>b</code> and <code>x</code> included. Hollow markers and broken \
         lines: with the set-up of the solve. Dotted uprights: where a backend overtakes the CPU.</p>\n",
    );
    html += &legend(&results.names());
    html += "<div class=\"grid\">\n";
    for scaling in &scalings {
        let marks = crossings(scaling, &ours).into_iter().filter_map(|c| match c.2 {
            Crossing::At(n) => Some(n),
            _ => None,
        });
        html += &chart(results, scaling, marks.collect()).html();
    }
    html += "</div>\n";
    html + &table(&scalings, &ours)
}

fn chart<'c>(results: &Results<'_>, scaling: &Scaling<'_>, marks: Vec<f64>) -> Chart<'c> {
    let mut series = Vec::new();
    for (name, samples) in &scaling.curves {
        let style = results.style(name);
        let point = |r: &Sample, seconds: f64, with: &str| {
            let words = format!("{name}, {}: {} unknowns, {} µs{with}", r.what, r.n, micros(seconds));
            Point { x: r.n, y: seconds * 1e6, words }
        };
        let fresh = samples.iter().filter_map(|r| Some(point(r, r.fresh?, " with the set-up")));
        series.push(Series { style, dashed: true, points: fresh.collect() });
        let again = samples.iter().map(|r| point(r, r.again, ""));
        series.push(Series { style, dashed: false, points: again.collect() });
    }
    Chart {
        title: format!("{}, {}, {}", scaling.way, scaling.family.trim_start_matches("gen:"), scaling.number),
        subtitle: scaling.stop.into(),
        x: (if scaling.stop == "passes" { "elements" } else { "unknowns" }, Scale::Log),
        y: match scaling.stop {
            PRODUCTS => "time of a product (µs)",
            "passes" => "time of a pass (µs)",
            _ => "time per iteration (µs)",
        },
        series,
        marks,
    }
}

/// The sizes from which a backend is faster than the CPU.
fn table(scalings: &[Scaling<'_>], ours: &[String]) -> String {
    let mut rows = String::new();
    for scaling in scalings {
        let (family, way) = (scaling.family.trim_start_matches("gen:"), &scaling.way);
        for (cpu, gpu, crossing) in crossings(scaling, ours) {
            let words = match crossing {
                Crossing::At(n) => format!("from about {} unknowns on", thousands(two_digits(n))),
                Crossing::Always => "at every size measured".into(),
                Crossing::Never => "at no size measured".into(),
            };
            let _ = writeln!(
                rows,
                "<tr><td class=\"text\">{way}</td><td class=\"text\">{family}, {}</td><td class=\"text\">{gpu}</td>\
                 <td class=\"text\">{cpu}</td><td class=\"text\">{words}</td></tr>",
                scaling.number
            );
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<h3>Cross-over with the CPU</h3>\n<div class=\"scroll\"><table>\n<tr><th class=\"text\">method</th>\
         <th class=\"text\">system</th><th class=\"text\">this</th><th class=\"text\">is faster than</th>\
         <th class=\"text\">when solving again</th></tr>\n{rows}</table></div>\n"
    )
}

/// Rounds a size to two digits, the useful precision of an interpolation.
fn two_digits(n: f64) -> u64 {
    let unit = 10f64.powf((n.log10().floor() - 1.0).max(0.0));
    ((n / unit).round() * unit) as u64
}

#[cfg(test)]
mod tests {
    use super::{Crossing, Sample, crossing, family, two_digits};

    fn curve(points: &[(f64, f64)]) -> Vec<Sample> {
        let sample = |&(n, again): &(f64, f64)| Sample { n, again, fresh: None, what: String::new() };
        points.iter().map(sample).collect()
    }

    #[test]
    fn curves_cross_between_sizes() {
        let cpu = curve(&[(100.0, 1.0), (10_000.0, 100.0)]);
        let gpu = curve(&[(100.0, 10.0), (10_000.0, 10.0)]);
        assert!(matches!(crossing(&cpu, &gpu), Some(Crossing::At(n)) if (n - 1000.0).abs() < 1e-6));
        assert!(matches!(crossing(&gpu, &gpu), Some(Crossing::Never)));
        assert!(matches!(crossing(&curve(&[(100.0, 20.0)]), &gpu), Some(Crossing::Always)));
        assert!(crossing(&curve(&[(7.0, 1.0)]), &gpu).is_none());
    }

    #[test]
    fn families_and_digits() {
        assert_eq!(family("gen:poisson-p1:63"), "gen:poisson-p1");
        assert_eq!((family("A:b.mtx"), family("gen:x")), ("A:b.mtx", "gen:x"));
        assert_eq!((two_digits(1234.0), two_digits(7.0)), (1200, 7));
    }
}
