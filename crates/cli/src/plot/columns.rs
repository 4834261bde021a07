//! The residuals of several right-hand sides over their iterations.
use super::curves::{Curves, Over, RESIDUAL};
use crate::columns::Columns;
use lacuna::Outcome;
use lacuna_measure::figure::{Figure, shortened};
use lacuna_measure::quantity::many;

/// A curve for each column.
pub(crate) fn columns(columns: &Columns) -> Figure {
    let curve = |(column, outcome): (usize, &Outcome)| {
        let at = |(k, r): (usize, &f64)| ((k as u64 * outcome.history_stride) as f64, *r);
        (format!("column {column}"), outcome.history.iter().enumerate().map(at).collect())
    };
    Curves {
        title: format!("{}, {}", shortened(&columns.matrix, 60), columns.kind.name()),
        subtitle: many(columns.outcomes.len(), "right-hand side", "right-hand sides"),
        over: Over::Iterations,
        along: "iteration",
        up: RESIDUAL,
        target: Some(columns.stop.rtol),
        curves: columns.outcomes.iter().enumerate().map(curve).collect(),
    }
    .draw()
}
