//! `lacuna solve` with several right-hand sides.
use crate::convert::save_columns;
use crate::plot;
use crate::report::{before, named, tolerance, ways_before};
use crate::solve::Solve;
use crate::solving::Solving;
use lacuna::ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder};
use lacuna::{Chosen, Device, DeviceInfo, Error, Norm, Outcome, Scalar, Stop, Watch, Way};
use lacuna::{NumberType, io::DenseArray};
use lacuna_measure::failure::{NOT_CONVERGED, Result};
use lacuna_measure::input::STANDARD;
use lacuna_measure::interrupt::{cancel_on_interrupt, solved};
use lacuna_measure::out;
use lacuna_measure::quantity::{counted, duration, many, relative, thousands};
use lacuna_measure::vector::{VectorSource, read_columns};
use serde_json::{Value, json};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the solves for all columns report.
pub(crate) struct Columns {
    pub(crate) matrix: String,
    notes: Vec<String>,
    shape: (usize, usize),
    nnz: usize,
    pub(crate) kind: NumberType,
    device: DeviceInfo,
    /// What finished the last column, with which a next one would begin.
    by: Way,
    format: Chosen,
    pub(crate) stop: Stop,
    setup: Duration,
    solve: Duration,
    pub(crate) outcomes: Vec<Outcome>,
}

impl Solve<'_> {
    /// Solves for every column of the right-hand side.
    pub(crate) fn solve_columns<T: Scalar>(self, dev: &Device) -> Result<ExitCode> {
        let (args, quiet) = (self.args, self.args.report.quiet);
        let a = Arc::new(self.source.read::<T>(quiet)?);
        let read = |given: &VectorSource, rows| read_columns::<T>(given, rows, &self.source, quiet);
        let b = match &self.rhs {
            Some(rhs) => read(rhs, a.rows())?,
            None => DenseArray { rows: a.rows(), cols: 0, values: Vec::new() },
        };
        let mut x = match &self.x0 {
            Some(x0) => read(x0, a.cols())?,
            None => {
                let values = lacuna::backend::pages::zeroed("the solutions", a.cols() * b.cols)?;
                DenseArray { rows: a.cols(), cols: b.cols, values }
            }
        };
        self.job.map_or(Ok(()), |job| job.agree(&a, [&b.values, &x.values]))?;
        self.warn(&a);
        let (shape, nnz, stop) = ((a.rows(), a.cols()), a.nnz(), self.stop::<T>());
        let setting_up = self.setting_up(shape, nnz);
        let start = Instant::now();
        let mut system = self.system(a, stop).on(dev).prepare()?;
        let setup = start.elapsed();
        drop(setting_up);
        let begins = Way { method: system.method().clone(), preconditioner: system.preconditioner().clone() };
        let mut progress = Solving::new(quiet, stop.rtol, stop.limit(shape));
        let mut watch = |at: Watch| -> ControlFlow<()> { progress.at(at) };
        cancel_on_interrupt();
        let start = Instant::now();
        let outcomes = {
            let wrong = |error: lacuna::ndarray::ShapeError| Error::Unsupported {
                operation: "solve of several columns".into(),
                message: error.to_string(),
            };
            let b = ArrayView2::from_shape((b.rows, b.cols).f(), &b.values).map_err(wrong)?;
            let x = ArrayViewMut2::from_shape((x.rows, x.cols).f(), &mut x.values).map_err(wrong)?;
            system.solve_columns_watched(b, x, Some(&mut watch))
        };
        solved();
        let outcomes = outcomes?;
        let last = outcomes.last().and_then(Outcome::finished_by);
        let report = Columns {
            matrix: self.source.name().into(),
            notes: self.source.notes(),
            shape,
            nnz,
            kind: T::KIND,
            device: dev.info().clone(),
            by: last.map_or(begins, |(way, _)| way.clone()),
            format: system.format().clone(),
            stop,
            setup,
            solve: start.elapsed(),
            outcomes,
        };
        drop(progress);
        let aside = args.output.as_deref() == Some(STANDARD);
        out::report_aside(quiet, aside, args.report.json.as_deref(), || report.text(), || report.json())?;
        if let Some(path) = &args.plot {
            plot::save(&plot::columns(&report), path)?;
        }
        if let Some(path) = &args.output {
            if x.values.iter().all(|v| v.finite()) {
                save_columns(path, &x)?;
            } else {
                out::note(&format!("{path}: not written, a solution is not finite"));
            }
        }
        let all = report.outcomes.iter().all(Outcome::converged);
        Ok(if all { ExitCode::SUCCESS } else { ExitCode::from(NOT_CONVERGED) })
    }
}

impl Columns {
    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let (size, nnz) = (counted(self.shape), many(self.nnz, "entry", "entries"));
        let count = many(self.outcomes.len(), "right-hand side", "right-hand sides");
        writeln!(text, "{}: {size}, {nnz}, {}; {count}", self.matrix, self.kind.name())?;
        writeln!(text, "  backend     {}: {}", self.device.backend, self.device.name)?;
        let chosen = [&self.by.method, &self.by.preconditioner, &self.format];
        for (what, chosen) in ["method", "precond", "format"].into_iter().zip(chosen) {
            writeln!(text, "  {what:<11} {}: {}", chosen.name, chosen.why)?;
        }
        let missed = self.outcomes.iter().filter(|outcome| !outcome.converged()).count();
        let in_max = self.stop.norm == Norm::Max;
        let to = tolerance(self.stop, if in_max { "max |b|" } else { "|b|" });
        match missed {
            0 => writeln!(text, "converged: every true residual meets the tolerance {to}")?,
            _ => writeln!(text, "not converged: {missed} of {count} do not meet the tolerance {to}")?,
        }
        writeln!(text, "  {:>6} {:>10} {:>10}  outcome", "column", "iterations", "residual")?;
        for (column, outcome) in self.outcomes.iter().enumerate() {
            let residual = if in_max { outcome.relative_max_residual } else { outcome.true_residual };
            let (iterations, residual) = (thousands(outcome.iterations), relative(residual));
            let why = if outcome.why.is_empty() { String::new() } else { format!(": {}", outcome.why) };
            let ended = outcome.reason.name().replace('_', " ");
            let other = outcome.finished_by().map(|(way, _)| way).filter(|way| named(way) != named(&self.by));
            let by = other.map_or(String::new(), |way| format!(", by {way}"));
            let after = before(outcome).map_or(String::new(), |before| format!(", after {before}"));
            writeln!(text, "  {column:>6} {iterations:>10} {residual:>10}  {ended}{by}{after}{why}")?;
        }
        let [setup, solve] = [self.setup, self.solve].map(|time| duration(time.as_secs_f64()));
        let each = duration(self.solve.as_secs_f64() / self.outcomes.len().max(1) as f64);
        writeln!(text, "  time        setup {setup}, all solves {solve}, {each} a right-hand side")
    }

    fn json(&self) -> Value {
        let column = |outcome: &Outcome| {
            let by = outcome.finished_by().map_or(&self.by, |(way, _)| way);
            json!({
                "outcome": outcome.reason.name(),
                "method": by.method.name,
                "precond": by.preconditioner.name,
                "before": ways_before(outcome),
                "why": outcome.why,
                "iterations": outcome.iterations,
                "residual": outcome.residual,
                "true_residual": outcome.true_residual,
                "max_residual": outcome.max_residual,
                "relative_max_residual": outcome.relative_max_residual,
                "history": outcome.history,
                "history_stride": outcome.history_stride,
                "notes": outcome.notes,
            })
        };
        json!({
            "columns": self.outcomes.iter().map(column).collect::<Vec<_>>(),
            "time": { "setup": self.setup.as_secs_f64(), "solve": self.solve.as_secs_f64() },
            "backend": self.device.backend,
            "device": self.device.name,
            "method": self.by.method.name,
            "precond": self.by.preconditioner.name,
            "format": self.format.name,
            "type": self.kind.name(),
            "n": self.shape.1,
            "nnz": self.nnz,
            "notes": self.notes,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }
}
