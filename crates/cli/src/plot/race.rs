//! The residuals of several trials over time.
use super::curves::{Curves, Over, RESIDUAL};
use crate::searched::{Searched, way};
use lacuna_measure::figure::{Figure, shortened};

/// A curve for each trial on logarithmic scales; it starts at the end of its set-up. The legend lists the
/// best first.
pub(crate) fn race(search: &Searched) -> Figure {
    let curve = |trial: &lacuna::Trial| (way(&trial.method, &trial.preconditioner), trial.curve());
    Curves {
        title: format!("{}, {}", shortened(&search.matrix, 50), search.kind.name()),
        subtitle: format!("{}: {}", search.device.backend, shortened(&search.device.name, 60)),
        over: Over::Time,
        along: "time since preparing began",
        up: RESIDUAL,
        target: Some(search.stop.rtol),
        curves: search.trials.iter().map(curve).collect(),
    }
    .draw()
}
