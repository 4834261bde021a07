//! A table that compares our results with the best of the other libraries, and lists where those are ahead.
use super::grid::Grid;
use lacuna_measure::Measured;
use lacuna_measure::page::Results;
use lacuna_measure::quantity::{micros, thousands};
use lacuna_measure::record::{Case, Peer, distinct};

/// Which of our cases are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ours {
    /// Every format.
    All,
    /// The fastest format of each method.
    Fastest,
}

/// The largest number of rows listed where peers are ahead.
const NAMED: usize = 8;

/// A time that both sides have: its name, ours in seconds, theirs in microseconds.
struct Time {
    name: &'static str,
    ours: fn(&Measured) -> Option<f64>,
    theirs: fn(&Peer) -> Option<f64>,
}

const TIMES: [Time; 3] = [
    Time { name: "with set-up", ours: Measured::each_fresh, theirs: |p| Some(p.fresh_us) },
    Time { name: "again", ours: |m| Some(m.each()), theirs: |p| Some(p.again_us) },
    Time { name: "on the device", ours: Measured::each_on_device, theirs: |p| p.on_device_us },
];

/// A case with each time next to that of the best peer: our time, its time, its name.
struct Row<'a> {
    case: &'a Case,
    times: Vec<Option<(f64, f64, String)>>,
}

impl<'a> Row<'a> {
    /// `None` unless both sides measured it.
    fn new(results: &Results<'a>, case: &'a Case, times: &[&Time]) -> Option<Self> {
        let m = case.measured.as_ref()?;
        // The time of an iteration if all do the same number of them, otherwise of the whole solve.
        let of = |time: &Time| {
            let whole = |p: &Peer| p.iterations.map_or(1e-6, |count| 1e-6 * count as f64);
            let theirs = results.peers_of(case).filter_map(|p| Some(((time.theirs)(p)? * whole(p), p)));
            let (best, peer) = theirs.min_by(|a, b| a.0.total_cmp(&b.0))?;
            let ours = (time.ours)(m)? * peer.iterations.map_or(1.0, |_| m.iterations as f64);
            Some((ours, best, peer.label()))
        };
        let times: Vec<_> = times.iter().map(|time| of(time)).collect();
        times.iter().any(Option::is_some).then_some(Row { case, times })
    }

    fn ratio(&self, time: usize) -> Option<f64> {
        self.times[time].as_ref().map(|(ours, theirs, _)| ours / theirs)
    }
}

/// A row for each case, and the geometric mean for each method; then the rows in which a peer is ahead.
pub(super) fn table(results: &Results<'_>, ours: Ours) -> String {
    let has = |time: &&Time| {
        results.cases.iter().any(|c| c.measured.as_ref().is_some_and(|m| (time.ours)(m).is_some()))
            && results.peers.iter().any(|p| (time.theirs)(p).is_some())
    };
    let times: Vec<_> = TIMES.iter().filter(has).collect();
    let each = |case: &Case| case.measured.as_ref().map_or(f64::INFINITY, |m| m.each());
    let taken = |case: &&&Case| {
        let rival = |c: &&Case| {
            (&c.system, c.way(), &c.stop, results.label(c))
                == (&case.system, case.way(), &case.stop, results.label(case))
                && each(c) < each(case)
        };
        ours == Ours::All || !results.cases.iter().any(rival)
    };
    let rows: Vec<_> =
        results.cases.iter().filter(taken).filter_map(|case| Row::new(results, case, &times)).collect();
    let labels = distinct(rows.iter().map(|row| results.label(row.case)));
    let several = labels.len() > 1;

    let mut headings: Vec<String> = ["system", ">n", "method", "format"].map(String::from).to_vec();
    headings.extend(several.then(|| "backend".into()));
    headings
        .extend(times.iter().flat_map(|t| [format!(">{}, µs", t.name), "best peer".into(), ">ratio".into()]));
    let mut grid = Grid::new(headings);
    for row in &rows {
        let (case, system) = (row.case, &row.case.system);
        let mut cells = vec![system.title(), thousands(system.n as u64), case.way(), case.format.clone()];
        cells.extend(several.then(|| results.label(case)));
        cells.extend(row.times.iter().flat_map(|time| match time {
            Some((ours, theirs, peer)) => {
                [micros(*ours), format!("{} {peer}", micros(*theirs)), format!("{:.2}", ours / theirs)]
            }
            None => ["-", "-", "-"].map(String::from),
        }));
        grid.row(cells);
    }
    for label in &labels {
        let of_label: Vec<_> = rows.iter().filter(|row| results.label(row.case) == *label).collect();
        for way in distinct(of_label.iter().map(|row| row.case.way())) {
            let of: Vec<_> = of_label.iter().filter(|row| row.case.way() == way).collect();
            let mut cells = vec!["*geometric mean*".into(), String::new(), way.clone(), String::new()];
            cells.extend(several.then(|| label.clone()));
            cells.extend((0..times.len()).flat_map(|time| {
                let ratios: Vec<f64> = of.iter().filter_map(|row| row.ratio(time)).collect();
                let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp();
                let mean = if ratios.is_empty() { "-".into() } else { format!("**{mean:.2}**") };
                [String::new(), String::new(), mean]
            }));
            grid.row(cells);
        }
    }
    let ahead = times.iter().enumerate().map(|(at, time)| behind(results, &rows, at, time.name, several));
    format!("{}\n{}", grid.text(), ahead.collect::<String>())
}

/// Describes the rows in which a peer is faster: how many, and the worst of them.
fn behind(results: &Results<'_>, rows: &[Row<'_>], time: usize, name: &str, several: bool) -> String {
    let measured = rows.iter().filter(|row| row.ratio(time).is_some()).count();
    let mut slower: Vec<(f64, &Row<'_>)> = rows
        .iter()
        .filter_map(|row| row.ratio(time).filter(|ratio| *ratio >= 1.005).map(|ratio| (ratio, row)))
        .collect();
    if slower.is_empty() {
        return format!("- {name}: ahead or level in all {measured} rows\n");
    }
    slower.sort_by(|a, b| b.0.total_cmp(&a.0));
    let words = slower.iter().take(NAMED).map(|(ratio, row)| {
        let (case, system) = (row.case, row.case.system.title());
        let backend = if several { format!(" {}", results.label(case)) } else { String::new() };
        format!("{system} {} {}{backend} ({ratio:.2})", case.way(), case.format)
    });
    let more = match slower.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (count, words) = (slower.len(), words.collect::<Vec<_>>().join(", "));
    format!("- {name}: behind in {count} of {measured} rows: {words}{more}\n")
}
