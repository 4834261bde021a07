//! What a search among methods and preconditioners found, in words and as JSON.
use crate::report::{before, tolerance};
use crate::shell::quoted;
use lacuna::{DeviceInfo, NumberType, Reason, Stop, Trial, Way};
use lacuna_measure::quantity::{counted, duration, many, relative, thousands};
use serde_json::{Value, json};
use std::fmt::Write;

/// The trials of a search and their results.
pub(crate) struct Searched {
    pub(crate) matrix: String,
    /// The command that solves the same system, without method and preconditioner.
    pub(crate) command: String,
    /// The same settings in Rust.
    pub(crate) settings: String,
    /// Rows and columns.
    pub(crate) shape: (usize, usize),
    pub(crate) nnz: usize,
    pub(crate) kind: NumberType,
    pub(crate) device: DeviceInfo,
    pub(crate) stop: Stop,
    pub(crate) trials: Vec<Trial>,
}

/// A method and its preconditioner.
pub(crate) fn way(method: &str, preconditioner: &str) -> String {
    match preconditioner {
        "auto" | "none" => method.into(),
        _ => format!("{method} + {preconditioner}"),
    }
}

impl Searched {
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let (size, nnz) = (counted(self.shape), many(self.nnz, "entry", "entries"));
        writeln!(text, "{}: {size}, {nnz}, {}", self.matrix, self.kind.name())?;
        let to = tolerance(self.stop, "|b|");
        writeln!(text, "  {}: {}; to {to}", self.device.backend, self.device.name)?;
        writeln!(
            text,
            "\n  {:26} {:>9} {:>9} {:>9} {:>10} {:>10}",
            "way", "setup", "solve", "total", "iterations", "residual"
        )?;
        let best = self.trials.first().filter(|trial| trial.converged());
        for trial in &self.trials {
            write!(text, "  {:26} ", way(&trial.method, &trial.preconditioner))?;
            let outcome = match &trial.outcome {
                Ok(outcome) => outcome,
                Err(error) => {
                    writeln!(text, "not available: {error}")?;
                    continue;
                }
            };
            let times = [trial.setup, trial.again(), trial.total()].map(|t| duration(t.as_secs_f64()));
            let [setup, again, total] = times;
            let (iterations, residual) = (thousands(outcome.iterations), relative(outcome.true_residual));
            write!(text, "{setup:>9} {again:>9} {total:>9} {iterations:>10} {residual:>10}")?;
            let said = match (trial.converged(), trial.given_up()) {
                (true, _) if best.is_some_and(|best| std::ptr::eq(best, trial)) => "  <- fastest".into(),
                (true, _) => String::new(),
                (false, true) => "  given up, took longer".into(),
                (false, false) => format!("  {}", outcome.reason.name().replace('_', " ")),
            };
            writeln!(text, "{said}")?;
        }
        let Some(best) = best else {
            return self.write_next(text);
        };
        writeln!(text, "\n  once        {}", self.command(best))?;
        let converged = self.trials.iter().filter(|trial| trial.converged());
        if let Some(again) = converged.min_by_key(|trial| trial.again()) {
            writeln!(text, "  many times  {}", self.command(again))?;
        }
        writeln!(text, "  in Rust     {}", self.expression(best))?;
        if let (true, Ok(outcome)) = (best.method == "auto", &best.outcome)
            && let Some((Way { method, preconditioner }, _)) = outcome.finished_by()
        {
            writeln!(text, "              {}", method.sentence("method"))?;
            writeln!(text, "              {}", preconditioner.sentence("preconditioner"))?;
            if let Some(before) = before(outcome) {
                writeln!(text, "              after {before}")?;
            }
        }
        Ok(())
    }

    /// What to do if nothing solved it: why that is, and what was not among the trials.
    fn write_next(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "\nNothing solved it.")?;
        let outcomes = || self.trials.iter().filter_map(|trial| Some((trial, trial.outcome.as_ref().ok()?)));
        if let Some((_, outcome)) =
            outcomes().find(|(trial, outcome)| trial.method == "auto" && !outcome.why.is_empty())
        {
            writeln!(text, "  why         {}", outcome.why)?;
        }
        let mut next = Vec::new();
        if self.trials.iter().any(Trial::given_up) {
            next.push("`--seconds` with a larger number: some were given up after their time".into());
        }
        if outcomes().any(|(_, outcome)| outcome.reason == Reason::Limit) {
            next.push("`--max-iters` with a larger number: some reached the limit".into());
        }
        if self.shape.0 == self.shape.1 {
            let tells = "its misfit tells whether any x solves the system; if it stays large, A is singular for this b";
            next.push(format!("`{} --method lsmr`: {tells}", self.command));
        }
        next.push(format!(
            "`lacuna info {} --why`: how the values are scaled, and whether A looks singular",
            quoted(&self.matrix)
        ));
        next.into_iter().try_for_each(|line| writeln!(text, "  try         {line}"))
    }

    /// The command that repeats a trial.
    fn command(&self, trial: &Trial) -> String {
        format!("{} {}", self.command, trial.options()).trim_end().into()
    }

    /// The Rust expression that repeats a trial.
    fn expression(&self, trial: &Trial) -> String {
        trial.expression() + &self.settings
    }

    pub(crate) fn json(&self) -> Value {
        let trials = self.trials.iter().map(|trial| {
            let common = json!({
                "method": trial.method,
                "precond": trial.preconditioner,
                "options": trial.options(),
                "command": self.command(trial),
                "rust": self.expression(trial),
                "setup": trial.setup.as_secs_f64(),
            });
            let rest = match &trial.outcome {
                Ok(outcome) => json!({
                    "outcome": outcome.reason.name(),
                    "iterations": outcome.iterations,
                    "true_residual": outcome.true_residual,
                    "solve": trial.again().as_secs_f64(),
                    "choices": outcome.choices,
                    "notes": outcome.notes,
                }),
                Err(error) => json!({ "outcome": "refused", "reason": error.to_string() }),
            };
            match (common, rest) {
                (Value::Object(mut all), Value::Object(rest)) => {
                    all.extend(rest);
                    Value::Object(all)
                }
                (common, _) => common,
            }
        });
        json!({
            "matrix": self.matrix,
            "n": self.shape.1,
            "nnz": self.nnz,
            "type": self.kind.name(),
            "backend": self.device.backend,
            "device": self.device.name,
            "rtol": self.stop.rtol,
            "atol": self.stop.atol,
            "trials": trials.collect::<Vec<_>>(),
            "version": env!("CARGO_PKG_VERSION"),
        })
    }
}
