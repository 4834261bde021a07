//! What a hierarchy says of itself.
use super::hierarchy::{Coarsest, Hierarchy};
use lacuna_engine::Scalar;
use lacuna_formats::Csr;
use std::time::Duration;

impl<T: Scalar> Hierarchy<T> {
    /// Levels as lines of a table, and what they add up to.
    pub(super) fn report(&self, a: &Csr<T>) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        let matrices: Vec<&Csr<T>> =
            std::iter::once(a).chain(self.levels.iter().map(|level| &*level.coarse)).collect();
        for (k, m) in matrices.iter().enumerate() {
            let (rows, each) = (m.rows(), m.nnz() as f64 / m.rows().max(1) as f64);
            let mut line = format!("{k}: {rows} rows, {} entries, {each:.1} a row", m.nnz());
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
        let sum = |f: fn(&Csr<T>) -> usize| matrices.iter().map(|m| f(m)).sum::<usize>() as f64;
        let per = |total: f64, first: usize| total / first.max(1) as f64;
        let (entries, rows) = (per(sum(Csr::nnz), a.nnz()), per(sum(Csr::rows), a.rows()));
        lines.push(("complexity", format!("{entries:.2} of entries, {rows:.2} of rows")));
        let all: Duration = self.times.0.iter().map(|(_, time)| *time).sum();
        let part = |(part, time): &(&str, Duration)| format!("{part} {:.4}", time.as_secs_f64());
        let parts: Vec<_> = self.times.0.iter().map(part).collect();
        lines.push(("set-up", format!("{:.4} s: {}", all.as_secs_f64(), parts.join(", "))));
        lines.extend(self.notes.iter().chain(&self.coarsest_note).map(|note| ("note", note.clone())));
        lines
    }
}
