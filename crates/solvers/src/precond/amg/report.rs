//! What a hierarchy says of itself.
use super::hierarchy::{Coarsest, Hierarchy};
use lacuna_engine::Double;
use std::time::Duration;

impl<T: Double> Hierarchy<T> {
    /// Levels as lines of a table, and what they add up to; the finest matrix has so many rows and entries.
    pub(super) fn report(&self, finest: [usize; 2]) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        let coarser = self.levels.iter().map(|level| [level.coarse.rows(), level.coarse.nnz()]);
        let sizes: Vec<[usize; 2]> = std::iter::once(finest).chain(coarser).collect();
        for (k, &[rows, entries]) in sizes.iter().enumerate() {
            let each = entries as f64 / rows.max(1) as f64;
            let mut line = format!("{k}: {rows} rows, {entries} entries, {each:.1} a row");
            let floating = if k > 0 { self.levels[k - 1].floating } else { 0 };
            if floating > 0 {
                line += &format!(", {floating} of parts that are singular by themselves");
            }
            match (self.levels.get(k), &self.coarsest) {
                (Some(level), _) => {
                    let isolated = level.plan.aggregates.isolated();
                    let each = level.p.nnz() as f64 / rows.max(1) as f64;
                    line += &format!(", P {each:.1} a row, {}", level.smoother.name());
                    if isolated > 0 {
                        line += &format!(", {isolated} rows in no aggregate");
                    }
                }
                (None, Coarsest::Inverse(_)) => line += ", dense inverse",
                (None, Coarsest::Smoothed(smoother)) => line += &format!(", {}", smoother.name()),
            }
            lines.push(("level", line));
        }
        let per = |k: usize| sizes.iter().map(|size| size[k]).sum::<usize>() as f64 / finest[k].max(1) as f64;
        let (entries, rows) = (per(1), per(0));
        lines.push(("complexity", format!("{entries:.2} of entries, {rows:.2} of rows")));
        let all: Duration = self.times.0.iter().map(|(_, time)| *time).sum();
        let part = |(part, time): &(&str, Duration)| format!("{part} {:.4}", time.as_secs_f64());
        let parts: Vec<_> = self.times.0.iter().map(part).collect();
        lines.push(("set-up", format!("{:.4} s: {}", all.as_secs_f64(), parts.join(", "))));
        lines.extend(self.notes.iter().chain(&self.coarsest_note).map(|note| ("note", note.clone())));
        lines
    }
}
