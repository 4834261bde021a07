//! Eigenvalues of a matrix that need not be Hermitian.
use super::{beside, ending, exit, heading, how_many, watched, written};
use crate::args::{EigenArgs, Wanted};
use crate::convert::save_matrix;
use crate::plot;
use lacuna::eigen::{GeneralEigen, GeneralOutcome, GeneralProblem, Part};
use lacuna::io::mm::WriteOptions;
use lacuna::{Complex64, Csr, Device, DeviceInfo, NumberType, Scalar};
use lacuna_measure::failure::Result;
use lacuna_measure::input::{STANDARD, Source};
use lacuna_measure::out;
use lacuna_measure::quantity::{counted, thousands};
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

/// What a method for all matrices looks for.
pub(super) fn part(wanted: Wanted) -> Option<Part> {
    match wanted {
        Wanted::Smallest | Wanted::Largest => None,
        Wanted::Modulus => Some(Part::Modulus),
        Wanted::Leftmost => Some(Part::Leftmost),
        Wanted::Rightmost => Some(Part::Rightmost),
        Wanted::Near(sigma) => Some(Part::Near(sigma)),
    }
}

pub(super) fn search<T: Scalar>(
    args: &EigenArgs,
    source: &Source,
    (a, part): (&Csr<T>, Part),
    why: &str,
    dev: &Device,
) -> Result<ExitCode> {
    let mut problem = GeneralProblem::new(a)?
        .count(how_many(args.count, a.rows()))
        .which(part)
        .max_iters(args.max_iters.unwrap_or(MOST_PRODUCTS))
        .seed(args.seed);
    if let Some(rtol) = args.rtol {
        problem = problem.rtol(rtol);
    }
    let json = args.report.json.as_deref();
    let found =
        watched(args.report.quiet || json.is_some(), "products", |watch| problem.solve_watched(dev, watch))?;
    let GeneralEigen { values, vectors, mut outcome } = found;
    outcome.choices.insert(0, format!("which: {why}"));
    let found = Found {
        matrix: source.name().into(),
        shape: (a.rows(), a.cols()),
        nnz: a.nnz(),
        kind: T::KIND,
        device: dev.info().clone(),
        part,
        values,
        outcome,
    };
    let aside = args.vectors.as_deref() == Some(STANDARD);
    out::report_aside(args.report.quiet, aside, json, || written(|text| found.write(text)), || found.json())?;
    if let Some(path) = &args.plot {
        let title = format!("{}: {} eigenvalues {}", found.matrix, found.values.len(), found.which());
        plot::save(&plot::plane(&title, &found.values, &found.outcome), path)?;
    }
    if let Some(path) = &args.vectors {
        save_matrix(path, &beside(&vectors)?, &WriteOptions::default())?;
    }
    Ok(exit(found.outcome.converged()))
}

/// The most products, if nobody says.
const MOST_PRODUCTS: u64 = 100_000;

/// What was found, for reports.
struct Found {
    matrix: String,
    shape: (usize, usize),
    nnz: usize,
    kind: NumberType,
    device: DeviceInfo,
    part: Part,
    values: Vec<Complex64>,
    outcome: GeneralOutcome,
}

impl Found {
    /// Which values, in words.
    fn which(&self) -> String {
        match self.part {
            Part::Rightmost => "of largest real part".into(),
            Part::Leftmost => "of smallest real part".into(),
            Part::Near(sigma) => format!("nearest to {sigma}"),
            _ => "of largest modulus".into(),
        }
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let outcome = &self.outcome;
        let matrix = (&*self.matrix, &*counted(self.shape), self.nnz, self.kind);
        heading(text, matrix, &self.device, &outcome.choices)?;
        let which = format!("{} {}", self.values.len(), self.which());
        writeln!(text, "\n  {which:>50}  {:>9}", "residual")?;
        for ((value, left), met) in self.values.iter().zip(&outcome.residuals).zip(&outcome.converged) {
            let said = if *met { "" } else { "  not converged" };
            writeln!(text, "  {:>24.16e} {:>+24.16e}i  {left:>9.1e}{said}", value.re, value.im)?;
        }
        writeln!(text, "\n  {}", outcome.reason.name().replace('_', " "))?;
        let [products, restarts] = [outcome.products, outcome.restarts].map(thousands);
        writeln!(text, "  {products} products, {restarts} restarts")?;
        ending(text, [outcome.setup, outcome.time], "", &outcome.notes)
    }

    fn json(&self) -> Value {
        let outcome = &self.outcome;
        let values: Vec<[f64; 2]> = self.values.iter().map(|value| [value.re, value.im]).collect();
        json!({
            "matrix": self.matrix,
            "n": self.shape.0,
            "nnz": self.nnz,
            "type": self.kind.name(),
            "backend": self.device.backend,
            "device": self.device.name,
            "which": self.which(),
            "outcome": outcome.reason.name(),
            "values": values,
            "residuals": outcome.residuals,
            "converged": outcome.converged,
            "products": outcome.products,
            "restarts": outcome.restarts,
            "setup": outcome.setup.as_secs_f64(),
            "time": outcome.time.as_secs_f64(),
            "history": outcome.history,
            "choices": outcome.choices,
            "notes": outcome.notes,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }
}
