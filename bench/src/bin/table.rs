//! Medians over rounds of lines `peer method matrix n fresh again`, ours beside the best of the others.
use lacuna_bench::Done;
use lacuna_bench::args::Args;
use lacuna_bench::report::{Report, Value};
use lacuna_bench::stats::Samples;
use std::collections::BTreeMap;

const USAGE: &str = "\
table --lines FILE [--ours lacuna-auto] [--json FILE]
Reads lines `peer method matrix n fresh again` in microseconds an iteration, several rounds of them, and prints a row
for each matrix and method: ours, the best other by the median over rounds, and ours over theirs. A ratio above 1 is
a row in which we are behind. Our gmres-once is held against the others' gmres.";

/// Rounds of one program: everything made anew, and with what there is.
type Times = [Samples; 2];

fn main() -> Done {
    let args = Args::parse(USAGE);
    let mut report = Report::new(&args)?;
    let ours = args.text("--ours", "lacuna-auto");
    let text = std::fs::read_to_string(args.given("--lines").ok_or("--lines: expected a file")?)?;
    let mut order: Vec<(String, String, usize)> = Vec::new();
    let mut times: BTreeMap<(String, String, String), Times> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [peer, method, matrix, n, fresh, again] = words[..] else {
            return Err(format!("expected `peer method matrix n fresh again`, got `{line}`").into());
        };
        let (method, matrix) = (method.to_string(), matrix.to_string());
        let samples = times.entry((matrix.clone(), method.clone(), peer.into())).or_default();
        samples[0].push(fresh.parse()?);
        samples[1].push(again.parse()?);
        let row = (matrix, method, n.parse()?);
        if peer == ours && !order.contains(&row) {
            order.push(row);
        }
    }
    let mut logarithms = [Vec::new(), Vec::new()];
    for (matrix, method, n) in order {
        let of_peers = if method == "gmres-once" { "gmres" } else { &method };
        let others = |mode: usize, theirs: bool| {
            let wanted = if theirs { of_peers } else { &method };
            let rows = times.iter().filter(|((a, m, peer), _)| {
                *a == matrix && m == wanted && peer.starts_with("lacuna") != theirs
            });
            rows.map(|((_, _, peer), t)| (t[mode].median(), peer.as_str()))
                .min_by(|a, b| a.0.total_cmp(&b.0))
                .unwrap_or((f64::NAN, "none"))
        };
        let mut cells: Vec<(&str, Value)> =
            vec![("matrix", matrix.as_str().into()), ("n", n.into()), ("method", method.as_str().into())];
        for (mode, names) in
            [["fresh", "peer", "us", "ratio"], ["again", "peer'", "us'", "ratio'"]].into_iter().enumerate()
        {
            let mine = times[&(matrix.clone(), method.clone(), ours.to_string())][mode].median();
            let (best, peer) = others(mode, true);
            logarithms[mode].push((mine / best).ln());
            let cell = [(mine, 2).into(), format!("{peer:>12}").as_str().into(), (best, 2).into()];
            cells.extend(names.into_iter().zip(cell));
            cells.push((names[3], (mine / best, 2).into()));
        }
        let (best, threads) = others(1, false);
        cells.push(("our best'", (best, 2).into()));
        cells.push(("with", threads.trim_start_matches("lacuna-").into()));
        report.row(&cells)?;
    }
    let mean = |l: &[f64]| {
        let finite: Vec<f64> = l.iter().copied().filter(|x| x.is_finite()).collect();
        (finite.iter().sum::<f64>() / finite.len() as f64).exp()
    };
    println!(
        "\ngeometric mean of the ratios: {:.3} fresh, {:.3} again",
        mean(&logarithms[0]),
        mean(&logarithms[1])
    );
    Ok(())
}
