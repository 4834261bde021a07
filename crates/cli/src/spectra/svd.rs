//! Singular values.
use super::{beside, ending, exit, heading, how_many, watched, written};
use crate::args::SvdArgs;
use crate::convert::{check_matrix_output, save_matrix};
use lacuna::eigen::{Svd, SvdOutcome, SvdProblem};
use lacuna::io::mm::WriteOptions;
use lacuna::{Device, NumberType, Scalar};
use lacuna_measure::failure::Result;
use lacuna_measure::input::{STANDARD, Source, set_threads};
use lacuna_measure::number::with_type;
use lacuna_measure::out;
use lacuna_measure::quantity::{many, thousands};
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

/// `lacuna svd`
pub(crate) fn svd(args: &SvdArgs) -> Result<ExitCode> {
    let vectors = [("--left", args.left.as_deref()), ("--right", args.right.as_deref())];
    let outputs = [vectors[0], vectors[1], ("--json", args.report.json.as_deref())];
    out::check_outputs(&outputs, &[("the matrix", Some(&args.matrix))])?;
    vectors.iter().filter_map(|(_, path)| *path).try_for_each(check_matrix_output)?;
    set_threads(args.place.threads)?;
    let source = Source::open(&args.matrix)?;
    let kind = source.number_type(args.number, false)?;
    let dev = args.place.open()?;
    with_type!(kind, T => search::<T>(args, &source, &dev))
}

fn search<T: Scalar>(args: &SvdArgs, source: &Source, dev: &Device) -> Result<ExitCode> {
    let quiet = args.report.quiet;
    let a = source.read::<T>(quiet)?;
    let (shape, nnz) = ((a.rows(), a.cols()), a.nnz());
    let mut problem = SvdProblem::new(a)
        .count(how_many(args.count, shape.0.min(shape.1)))
        .which(args.which.extreme())
        .check(args.complete.check())
        .max_iters(args.max_iters)
        .seed(args.seed);
    if let Some(rtol) = args.rtol {
        problem = problem.rtol(rtol);
    }
    let json = args.report.json.as_deref();
    let found = watched(quiet || json.is_some(), "products", |watch| problem.solve_watched(dev, watch))?;
    let Svd { values, left, right, outcome } = found;
    let found = Found { args, matrix: source.name().into(), shape, nnz, kind: T::KIND, dev, values, outcome };
    let aside = [&args.left, &args.right].iter().any(|path| path.as_deref() == Some(STANDARD));
    out::report_aside(quiet, aside, json, || written(|text| found.write(text)), || found.json())?;
    for (path, vectors) in [(&args.left, &left), (&args.right, &right)] {
        if let Some(path) = path {
            save_matrix(path, &beside(vectors)?, &WriteOptions::default())?;
        }
    }
    Ok(exit(found.outcome.converged()))
}

/// What was found, for reports.
struct Found<'a> {
    args: &'a SvdArgs,
    matrix: String,
    shape: (usize, usize),
    nnz: usize,
    kind: NumberType,
    dev: &'a Device,
    values: Vec<f64>,
    outcome: SvdOutcome,
}

impl Found<'_> {
    fn write(&self, text: &mut String) -> std::fmt::Result {
        let (outcome, info) = (&self.outcome, self.dev.info());
        let (rows, cols) = self.shape;
        let size = format!("{} x {}", thousands(rows as u64), thousands(cols as u64));
        heading(text, (&self.matrix, &size, self.nnz, self.kind), info, &outcome.choices)?;
        let which = format!("{} {}", self.values.len(), self.args.which.name());
        writeln!(text, "\n  {which:>24}  {:>12}  {:>12}", "|Av - su|", "|A^H u - sv|")?;
        for (j, value) in self.values.iter().enumerate() {
            let [right, left] = outcome.residuals[j];
            let said = if outcome.converged[j] { "" } else { "  not converged" };
            writeln!(text, "  {value:>24.16e}  {right:>12.1e}  {left:>12.1e}{said}")?;
        }
        writeln!(text, "\n  {}, {}", outcome.reason.name().replace('_', " "), outcome.complete)?;
        let mut work = vec![format!("{} products", thousands(outcome.products))];
        if outcome.second_starts > 0 {
            work.push(many(outcome.second_starts as usize, "second start", "second starts"));
        }
        writeln!(text, "  {}", work.join(", "))?;
        let [left, right] = outcome.orthogonality;
        let angles = format!("; |U^H U - I| = {left:.1e}, |V^H V - I| = {right:.1e}");
        ending(text, [outcome.setup, outcome.time], &angles, &outcome.notes)
    }

    fn json(&self) -> Value {
        let (outcome, info) = (&self.outcome, self.dev.info());
        json!({
            "matrix": self.matrix,
            "rows": self.shape.0,
            "cols": self.shape.1,
            "nnz": self.nnz,
            "type": self.kind.name(),
            "backend": info.backend,
            "device": info.name,
            "which": self.args.which.name(),
            "outcome": outcome.reason.name(),
            "complete": outcome.complete.to_string(),
            "values": self.values,
            "residuals": outcome.residuals,
            "converged": outcome.converged,
            "orthogonality": outcome.orthogonality,
            "products": outcome.products,
            "restarts": outcome.restarts,
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
