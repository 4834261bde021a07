//! The report of a solve: a summary as text, and JSON for programs.
use lacuna::solvers::{METHODS, Needs, name_of};
use lacuna::{Chosen, DeviceInfo, Norm, NumberType, Outcome, Stop, Way};
use lacuna_measure::quantity::{bytes, counted, duration, many, relative, thousands, units};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// How the time was spent.
pub(crate) struct Times {
    pub(crate) read: Duration,
    /// Opening the device.
    pub(crate) open: Duration,
    /// With the set-up of other methods that continued.
    pub(crate) setup: Duration,
    /// The set-up by part.
    pub(crate) setup_parts: Vec<(&'static str, Duration)>,
    /// Transfers of `b` and `x`.
    pub(crate) transfers: Duration,
    pub(crate) iterations: Duration,
}

impl Times {
    /// The set-up and the solve.
    pub(crate) fn total(&self) -> Duration {
        self.setup + self.transfers + self.iterations
    }
}

/// All information about a solve.
pub(crate) struct Report {
    pub(crate) matrix: String,
    /// Notes on the input.
    pub(crate) notes: Vec<String>,
    /// Rows and columns.
    pub(crate) shape: (usize, usize),
    pub(crate) nnz: usize,
    pub(crate) kind: NumberType,
    pub(crate) device: DeviceInfo,
    /// What finished the solve.
    pub(crate) by: Way,
    pub(crate) format: Chosen,
    pub(crate) order: Chosen,
    pub(crate) stop: Stop,
    pub(crate) bytes_per_iteration: usize,
    pub(crate) times: Times,
    pub(crate) outcome: Outcome,
    /// `max |b − A x|`, computed on the host; NaN for least squares.
    pub(crate) largest: f64,
    /// The same relative to `max |b|`.
    pub(crate) relative_largest: f64,
}

impl Report {
    /// The summary; `verbose` with all that the choices report.
    pub(crate) fn summary(&self, verbose: bool) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_summary(&mut text, verbose);
        text
    }

    fn write_summary(&self, text: &mut String, verbose: bool) -> std::fmt::Result {
        let (outcome, times) = (&self.outcome, &self.times);
        let device = &self.device;
        writeln!(
            text,
            "{}: {}, {}, {}",
            self.matrix,
            counted(self.shape),
            many(self.nnz, "entry", "entries"),
            self.kind.name()
        )?;
        writeln!(text, "  backend     {}: {}, {}", device.backend, device.name, units(device))?;
        let Way { method, preconditioner } = &self.by;
        writeln!(text, "  method      {}: {}", method.name, method.why)?;
        writeln!(text, "  precond     {}: {}", preconditioner.name, preconditioner.why)?;
        if let Some(before) = before(outcome) {
            writeln!(text, "  after       {before}: see the notes")?;
        }
        writeln!(text, "  format      {}: {}", self.format.name, self.format.why)?;
        if self.order.name != "none" {
            writeln!(text, "  order       {}: {}", self.order.name, self.order.why)?;
        }
        if verbose {
            self.details().try_for_each(|line| writeln!(text, "  {line}"))?;
            let parts = times
                .setup_parts
                .iter()
                .map(|(part, took)| format!("{part} {}", duration(took.as_secs_f64())));
            writeln!(text, "  set-up      {}", parts.collect::<Vec<_>>().join(", "))?;
        }
        writeln!(text, "{}", self.conclusion())?;
        let lines = [("why", &outcome.why), ("try", &outcome.advice)];
        let mut lines = lines.iter().filter(|(_, line)| !line.is_empty());
        lines.try_for_each(|(what, line)| writeln!(text, "  {what:<11} {line}"))?;
        writeln!(text, "  iterations  {}", thousands(outcome.iterations))?;
        let to = if outcome.misfit.is_finite() { "|A^H (b - A x)| to |A^H b|" } else { "relative to |b|" };
        writeln!(
            text,
            "  residual    {} true, {} by the recurrence, {to}",
            relative(outcome.true_residual),
            relative(outcome.residual)
        )?;
        if self.largest.is_finite() {
            writeln!(
                text,
                "  largest     {} of |b - A x|, {} relative to max |b|",
                relative(self.largest),
                relative(self.relative_largest)
            )?;
        }
        if outcome.misfit.is_finite() {
            writeln!(text, "  misfit      {}, |b - A x| relative to |b|", relative(outcome.misfit))?;
        }
        if outcome.backward_error.is_finite() {
            writeln!(text, "  backward    {}, relative to |A| |x| + |b|", relative(outcome.backward_error))?;
        }
        outcome.notes.iter().try_for_each(|note| writeln!(text, "  note        {note}"))?;
        let seconds = |d: Duration| duration(d.as_secs_f64());
        writeln!(
            text,
            "  time        read {}, device {}, setup {}, transfers {}, iterations {}",
            seconds(times.read),
            seconds(times.open),
            seconds(times.setup),
            seconds(times.transfers),
            seconds(times.iterations)
        )?;
        if outcome.iterations > 0 {
            let each = times.iterations.as_secs_f64() / outcome.iterations as f64;
            writeln!(
                text,
                "  speed       {} an iteration, {:.1} GB/s ({} an iteration)",
                duration(each),
                self.bytes_per_iteration as f64 / each / 1e9,
                bytes(self.bytes_per_iteration as u64)
            )?;
        }
        Ok(())
    }

    /// What was reported besides the choices that the summary names: the levels of a hierarchy, the fill of factors.
    fn details(&self) -> impl Iterator<Item = &str> {
        let Report { by: Way { method, preconditioner }, format, order, .. } = self;
        let named = [
            method.sentence("method"),
            preconditioner.sentence("preconditioner"),
            format.sentence("format"),
            order.sentence("order"),
        ];
        self.outcome
            .choices
            .iter()
            .map(String::as_str)
            .filter(move |line| !named.iter().any(|known| known == line))
    }

    /// The reason why it stopped, as text.
    fn conclusion(&self) -> String {
        let max_iters = self.stop.limit(self.shape);
        let least_squares = !self.outcome.misfit.is_nan();
        let needs =
            METHODS.iter().find(|info| info.name == name_of(&self.by.method.name)).map(|info| info.needs);
        let (residual, size) = match needs {
            Some(Needs::Range) => ("|b - A x|", "|b|"),
            _ if least_squares => ("|A^H (b - A x)|", "|A^H b|"),
            _ if self.stop.norm == Norm::Max => ("max |b - A x|", "max |b|"),
            _ => ("the true residual", "|b|"),
        };
        let tolerance = tolerance(self.stop, size);
        match self.outcome.reason {
            lacuna::Reason::Converged => {
                format!("converged: {residual} meets the tolerance {tolerance}")
            }
            lacuna::Reason::Limit => {
                format!("not converged: the limit of {max_iters} iterations was reached")
            }
            _ => format!("not converged: {}", self.reason()),
        }
    }

    /// Why the solve ended.
    fn reason(&self) -> String {
        match self.outcome.reason {
            lacuna::Reason::Cancelled => "cancelled by Ctrl-C".into(),
            reason => reason.to_string(),
        }
    }

    /// The outcome as JSON.
    pub(crate) fn json(&self) -> Value {
        let outcome = &self.outcome;
        let part = |(part, took): &(&'static str, Duration)| ((*part).into(), took.as_secs_f64().into());
        let parts: serde_json::Map<String, Value> = self.times.setup_parts.iter().map(part).collect();
        json!({
            "outcome": outcome.reason.name(),
            "reason": self.reason(),
            "why": outcome.why,
            "try": outcome.advice,
            "iterations": outcome.iterations,
            "residual": outcome.residual,
            "true_residual": outcome.true_residual,
            "backward_error": outcome.backward_error,
            "misfit": outcome.misfit,
            "norm": if self.stop.norm == Norm::Max { "max" } else { "2" },
            "max_residual": self.largest,
            "relative_max_residual": self.relative_largest,
            "notes": self.notes.iter().chain(&outcome.notes).collect::<Vec<_>>(),
            "history": outcome.history,
            "history_stride": outcome.history_stride,
            "time": {
                "read": self.times.read.as_secs_f64(),
                "open": self.times.open.as_secs_f64(),
                "setup": self.times.setup.as_secs_f64(),
                "setup_parts": parts,
                "transfers": self.times.transfers.as_secs_f64(),
                "iterations": self.times.iterations.as_secs_f64(),
                "solve": (self.times.transfers + self.times.iterations).as_secs_f64(),
            },
            "backend": self.device.backend,
            "device": self.device.name,
            "method": self.by.method.name,
            "precond": self.by.preconditioner.name,
            "before": ways_before(outcome),
            "format": self.format.name,
            "order": self.order.name,
            "type": self.kind.name(),
            "n": self.shape.1,
            "nnz": self.nnz,
            "choices": outcome.choices,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }
}

/// The most ways that a line names.
const NAMED: usize = 2;

/// The ways that were tried before the one that finished, if there are any.
pub(crate) fn before(outcome: &Outcome) -> Option<String> {
    let (_, before) = outcome.finished_by().filter(|(_, before)| !before.is_empty())?;
    let (named, more) = before.split_at(NAMED.min(before.len()));
    let named = named.iter().map(Way::to_string).collect::<Vec<_>>().join(", then ");
    Some(if more.is_empty() { named } else { format!("{named} and {} more", more.len()) })
}

/// The same by name.
pub(crate) fn ways_before(outcome: &Outcome) -> Vec<Value> {
    outcome.finished_by().map_or(&[][..], |(_, before)| before).iter().map(named).collect()
}

/// A method and its preconditioner by name.
pub(crate) fn named(way: &Way) -> Value {
    json!({ "method": way.method.name, "precond": way.preconditioner.name })
}

/// The tolerance of a residual relative to `size`, as text.
pub(crate) fn tolerance(Stop { rtol, atol, .. }: Stop, size: &str) -> String {
    match (rtol, atol) {
        (0.0, 0.0) => "0".into(),
        (_, 0.0) => format!("{rtol:e} {size}"),
        _ => format!("max({rtol:e} {size}, {atol:e})"),
    }
}
