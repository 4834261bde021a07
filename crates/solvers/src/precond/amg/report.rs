//! What a hierarchy says of itself.
use super::hierarchy::{Coarsest, Hierarchy};
use super::stages::Times;
use lacuna_engine::Double;
use std::time::Duration;

/// A level, for its line.
pub(super) struct Line {
    pub(super) rows: usize,
    pub(super) entries: usize,
    /// Unknowns that nothing determines.
    pub(super) floating: usize,
    /// Entries of the prolongator and rows in no aggregate, where there is a coarser level.
    pub(super) prolongator: Option<(usize, usize)>,
    /// What is done there.
    pub(super) by: &'static str,
}

/// Levels as lines of a table, what they add up to, and the time of the set-up by part, with where it was done.
pub(super) fn report(
    levels: &[Line],
    (times, place): (&Times, &str),
    notes: &[String],
) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    for (k, Line { rows, entries, floating, prolongator, by }) in levels.iter().enumerate() {
        let each = |entries: usize| entries as f64 / (*rows).max(1) as f64;
        let mut line = format!("{k}: {rows} rows, {entries} entries, {:.1} a row", each(*entries));
        if *floating > 0 {
            line += &format!(", {floating} of parts that are singular by themselves");
        }
        if let Some((of_p, _)) = prolongator {
            line += &format!(", P {:.1} a row", each(*of_p));
        }
        line += &format!(", {by}");
        if let Some((_, isolated)) = prolongator.filter(|(_, isolated)| *isolated > 0) {
            line += &format!(", {isolated} rows in no aggregate");
        }
        lines.push(("level", line));
    }
    let per = |of: fn(&Line) -> usize| {
        levels.iter().map(of).sum::<usize>() as f64 / levels.first().map_or(0, of).max(1) as f64
    };
    let (entries, rows) = (per(|line| line.entries), per(|line| line.rows));
    lines.push(("complexity", format!("{entries:.2} of entries, {rows:.2} of rows")));
    let all: Duration = times.0.iter().map(|(_, time)| *time).sum();
    let part = |(part, time): &(&str, Duration)| format!("{part} {:.4}", time.as_secs_f64());
    let parts: Vec<_> = times.0.iter().map(part).collect();
    lines.push(("set-up", format!("{:.4} s {place}: {}", all.as_secs_f64(), parts.join(", "))));
    lines.extend(notes.iter().map(|note| ("note", note.clone())));
    lines
}

/// The note of a level without a coarser one.
pub(super) fn no_couplings(level: usize) -> String {
    format!("level {level} has no strong couplings: not coarsened")
}

/// The note of a level that coarsening would hardly make smaller.
pub(super) fn hardly_smaller(level: usize, kept: usize, rows: usize) -> String {
    format!("level {level} would keep {kept} of {rows} rows: not coarsened")
}

/// The note of a level that is left out.
pub(super) fn too_many_entries(level: usize, times: f64, most: f64) -> String {
    format!(
        "level {level} would bring the entries of all levels to {times:.2} times those of the matrix, more than {most}: \
         not made"
    )
}

/// The note of a coarsest level that is not solved.
pub(super) fn no_inverse(rows: usize) -> String {
    format!("the coarsest level has {rows} rows, too many for an inverse: smoothed")
}

/// The note of a coarsest level that is solved but for its null space.
pub(super) fn null_space(dimension: usize) -> String {
    format!("the coarsest matrix has a null space of dimension {dimension}: left out")
}

impl<T: Double> Hierarchy<T> {
    /// See [`report`]; the finest matrix has so many rows and entries.
    pub(super) fn report(&self, finest: [usize; 2]) -> Vec<(&'static str, String)> {
        let coarser =
            self.levels.iter().map(|level| ([level.coarse.rows(), level.coarse.nnz()], level.floating));
        let sizes = std::iter::once((finest, 0)).chain(coarser).enumerate();
        let line = |(k, ([rows, entries], floating)): (usize, ([usize; 2], usize))| {
            let level = self.levels.get(k);
            let prolongator = level.map(|level| (level.p.nnz(), level.plan.aggregates.isolated()));
            let by = match (level, &self.coarsest) {
                (Some(level), _) => level.smoother.name(),
                (None, Coarsest::Inverse(_)) => "dense inverse",
                (None, Coarsest::Smoothed(smoother)) => smoother.name(),
            };
            Line { rows, entries, floating, prolongator, by }
        };
        let lines: Vec<_> = sizes.map(line).collect();
        let notes: Vec<_> = self.notes.iter().chain(&self.coarsest_note).cloned().collect();
        report(&lines, (&self.times, "on the host"), &notes)
    }
}
