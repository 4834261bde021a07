//! Eigenvalues of a Hermitian matrix.
use super::{apart, beside, ending, exit, heading, how_many, watched, written};
use crate::args::EigenArgs;
use crate::convert::save_matrix;
use crate::plot;
use lacuna::eigen::{Eigen, EigenProblem, Which};
use lacuna::io::mm::WriteOptions;
use lacuna::{Csr, Device, DeviceInfo, NumberType, Scalar};
use lacuna_measure::failure::Result;
use lacuna_measure::input::{STANDARD, Source};
use lacuna_measure::out;
use lacuna_measure::quantity::{counted, many, thousands};
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;
use std::sync::Arc;

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

pub(super) fn search<T: Scalar>(
    args: &EigenArgs,
    source: &Source,
    (a, which): (Arc<Csr<T>>, Which),
    mass: Option<&Source>,
    dev: &Device,
) -> Result<ExitCode> {
    let quiet = args.report.quiet;
    let (shape, nnz) = ((a.rows(), a.cols()), a.nnz());
    let mut problem = EigenProblem::new(a)
        .count(how_many(args.count, shape.0))
        .which(which)
        .method(&args.method)
        .preconditioner(&args.precond)
        .check(args.complete.check())
        .max_iters(args.max_iters.unwrap_or(MOST_ITERATIONS))
        .seed(args.seed);
    if let Some(mass) = mass {
        problem = problem.mass(mass.read::<T>(quiet)?);
    }
    if let Some(rtol) = args.rtol {
        problem = problem.rtol(rtol);
    }
    let json = args.report.json.as_deref();
    let found = match &args.verify {
        Some(path) => {
            let vectors = apart(&Source::open(path)?.read::<T>(quiet)?);
            let values = problem.rayleigh_quotients(&vectors)?;
            problem.verify(values, vectors, dev)?
        }
        None => watched(quiet || json.is_some(), "iterations", |watch| problem.solve_watched(dev, watch))?,
    };
    let Eigen { values, vectors, outcome } = found;
    let spectrum = Spectrum {
        matrix: source.name().into(),
        shape,
        nnz,
        kind: T::KIND,
        device: dev.info().clone(),
        which,
        values,
        outcome,
    };
    let aside = args.vectors.as_deref() == Some(STANDARD);
    out::report_aside(quiet, aside, json, || written(|text| spectrum.write(text)), || spectrum.json())?;
    if let Some(path) = &args.plot {
        plot::save(&plot::spectrum(&spectrum), path)?;
    }
    if let Some(path) = &args.vectors {
        save_matrix(path, &beside(&vectors)?, &WriteOptions::default())?;
    }
    Ok(exit(spectrum.outcome.converged()))
}

/// The most iterations, if nobody says.
const MOST_ITERATIONS: u64 = 10_000;

impl Spectrum {
    /// Which values, in words.
    pub(crate) fn which(&self) -> String {
        match self.which {
            Which::Largest => "largest".into(),
            Which::Near(sigma) => format!("nearest to {sigma}"),
            _ => "smallest".into(),
        }
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let outcome = &self.outcome;
        let matrix = (&*self.matrix, &*counted(self.shape), self.nnz, self.kind);
        heading(text, matrix, &self.device, &outcome.choices)?;
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
        let angles = format!("; |X^H B X - I| = {:.1e}", outcome.orthogonality);
        ending(text, [outcome.setup, outcome.time], &angles, &outcome.notes)
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
            "bounds": outcome.bounds,
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
