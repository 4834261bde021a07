//! `lacuna eigen`
use crate::args::EigenArgs;
use crate::convert::{check_matrix_output, save_matrix};
use crate::plot;
use indicatif::ProgressBar;
use lacuna::eigen::{Eigen, EigenProblem, EigenProgress, Which};
use lacuna::io::mm::WriteOptions;
use lacuna::{Csr, Device, DeviceInfo, NumberType, Scalar};
use lacuna_measure::failure::{NOT_CONVERGED, Result};
use lacuna_measure::input::{STANDARD, Source, is_stream, set_threads};
use lacuna_measure::interrupt::{cancel_on_interrupt, interrupted, solved};
use lacuna_measure::number::with_type;
use lacuna_measure::out;
use lacuna_measure::progress::{style, target};
use lacuna_measure::quantity::{counted, duration, many, thousands};
use serde_json::{Value, json};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;

pub(crate) fn run(args: &EigenArgs) -> Result<ExitCode> {
    args.plot.as_deref().map_or(Ok(()), plot::check_name)?;
    let outputs = [
        ("--vectors", args.vectors.as_deref()),
        ("--json", args.report.json.as_deref()),
        ("--plot", args.plot.as_deref()),
    ];
    out::check_outputs(&outputs, &[("the matrix", Some(&args.matrix)), ("--mass", args.mass.as_deref())])?;
    args.vectors.as_deref().map_or(Ok(()), check_matrix_output)?;
    set_threads(args.place.threads)?;
    let source = Source::open(&args.matrix)?;
    if args.mass.as_deref().is_some_and(is_stream) {
        source.keep_stream()?;
    }
    let mass = args.mass.as_deref().map(Source::open).transpose()?;
    let mass_type = mass.as_ref().map(|mass| mass.number_type(args.number, false)).transpose()?;
    let kind = source.number_type(args.number, mass_type.is_some_and(NumberType::is_complex))?;
    let dev = args.place.open()?;
    with_type!(kind, T => search::<T>(args, &source, mass.as_ref(), &dev))
}

/// What was found, for reports and plots.
pub(crate) struct Spectrum {
    pub(crate) matrix: String,
    shape: (usize, usize),
    nnz: usize,
    pub(crate) kind: NumberType,
    pub(crate) device: DeviceInfo,
    which: Which,
    pub(crate) values: Vec<f64>,
    pub(crate) outcome: lacuna::eigen::EigenOutcome,
}

fn search<T: Scalar>(
    args: &EigenArgs,
    source: &Source,
    mass: Option<&Source>,
    dev: &Device,
) -> Result<ExitCode> {
    let quiet = args.report.quiet;
    let a = source.read::<T>(quiet)?;
    let (shape, nnz) = ((a.rows(), a.cols()), a.nnz());
    let mut problem = EigenProblem::new(a)
        .count(args.count)
        .which(args.which)
        .method(&args.method)
        .preconditioner(&args.precond)
        .check(args.complete.check())
        .max_iters(args.max_iters)
        .seed(args.seed);
    if let Some(mass) = mass {
        problem = problem.mass(mass.read::<T>(quiet)?);
    }
    if let Some(rtol) = args.rtol {
        problem = problem.rtol(rtol);
    }
    let bar = ProgressBar::with_draw_target(None, target(quiet || args.report.json.is_some()));
    bar.set_style(style("{msg}"));
    let mut watch = |at: EigenProgress| {
        let EigenProgress { what, iterations, converged, of, worst, .. } = at;
        let iterations = thousands(iterations);
        bar.set_message(format!(
            "{what}: iteration {iterations}, {converged} of {of} converged, residual {worst:.1e} times the tolerance"
        ));
        if interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    cancel_on_interrupt();
    let found = problem.solve_watched(dev, &mut watch);
    solved();
    bar.finish_and_clear();
    let Eigen { values, vectors, outcome } = found?;
    let spectrum = Spectrum {
        matrix: source.name().into(),
        shape,
        nnz,
        kind: T::KIND,
        device: dev.info().clone(),
        which: args.which,
        values,
        outcome,
    };
    let aside = args.vectors.as_deref() == Some(STANDARD);
    let json = args.report.json.as_deref();
    out::report_aside(quiet, aside, json, || spectrum.text(), || spectrum.json())?;
    if let Some(path) = &args.plot {
        plot::save(&plot::spectrum(&spectrum), path)?;
    }
    if let Some(path) = &args.vectors {
        save_matrix(path, &beside(&vectors)?, &WriteOptions::default())?;
    }
    Ok(if spectrum.outcome.converged() { ExitCode::SUCCESS } else { ExitCode::from(NOT_CONVERGED) })
}

/// Vectors as the columns of a matrix.
pub(crate) fn beside<T: Scalar>(vectors: &[Vec<T>]) -> lacuna::Result<Csr<T>> {
    let (rows, cols) = (vectors.first().map_or(0, Vec::len), vectors.len());
    let row_ptr = (0..=rows).map(|i| (i * cols) as u32).collect();
    let columns = (0..rows).flat_map(|_| 0..cols as u32).collect();
    let values = (0..rows).flat_map(|i| vectors.iter().map(move |x| x[i])).collect();
    Csr::new(rows, cols, row_ptr, columns, values)
}

impl Spectrum {
    /// Which values, in words.
    pub(crate) fn which(&self) -> String {
        match self.which {
            Which::Largest => "largest".into(),
            Which::Near(sigma) => format!("nearest to {sigma}"),
            _ => "smallest".into(),
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let (size, nnz, outcome) = (counted(self.shape), many(self.nnz, "entry", "entries"), &self.outcome);
        writeln!(text, "{}: {size}, {nnz}, {}", self.matrix, self.kind.name())?;
        writeln!(text, "  {}: {}", self.device.backend, self.device.name)?;
        outcome.choices.iter().try_for_each(|choice| writeln!(text, "  {choice}"))?;
        writeln!(text, "\n  {:>24}  {:>9}", format!("{} {}", self.values.len(), self.which()), "residual")?;
        for (j, value) in self.values.iter().enumerate() {
            let said = match (outcome.converged[j], outcome.by_rounding[j]) {
                (false, _) => "  not converged",
                (true, true) => "  to rounding",
                (true, false) => "",
            };
            writeln!(text, "  {value:>24.16e}  {:>9.1e}{said}", outcome.residuals[j])?;
        }
        writeln!(text, "\n  {}, {}", outcome.reason.name().replace('_', " "), outcome.complete)?;
        let mut work = vec![format!("{} iterations", thousands(outcome.iterations))];
        work.push(format!("{} products", thousands(outcome.products)));
        if outcome.preconditionings > 0 {
            work.push(format!("{} applications of the preconditioner", thousands(outcome.preconditionings)));
        }
        if outcome.second_starts > 0 {
            work.push(many(outcome.second_starts as usize, "second start", "second starts"));
        }
        writeln!(text, "  {}", work.join(", "))?;
        let [setup, time] = [outcome.setup, outcome.time].map(|time| duration(time.as_secs_f64()));
        writeln!(text, "  {time}, of which set-up {setup}; |X^H B X - I| = {:.1e}", outcome.orthogonality)?;
        outcome.notes.iter().try_for_each(|note| writeln!(text, "  note: {note}"))
    }

    fn json(&self) -> Value {
        let outcome = &self.outcome;
        json!({
            "matrix": self.matrix,
            "n": self.shape.0,
            "nnz": self.nnz,
            "type": self.kind.name(),
            "backend": self.device.backend,
            "device": self.device.name,
            "which": self.which(),
            "outcome": outcome.reason.name(),
            "complete": outcome.complete.to_string(),
            "values": self.values,
            "residuals": outcome.residuals,
            "converged": outcome.converged,
            "by_rounding": outcome.by_rounding,
            "orthogonality": outcome.orthogonality,
            "iterations": outcome.iterations,
            "products": outcome.products,
            "preconditionings": outcome.preconditionings,
            "second_starts": outcome.second_starts,
            "setup": outcome.setup.as_secs_f64(),
            "time": outcome.time.as_secs_f64(),
            "history": outcome.history,
            "choices": outcome.choices,
            "notes": outcome.notes,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }
}
