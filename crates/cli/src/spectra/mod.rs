//! `lacuna eigen` and `lacuna svd`: what both do around a search.
mod general;
mod hermitian;
mod svd;

use crate::args::{CheckName, EigenArgs, KRYLOV_SCHUR, Wanted};
use crate::convert::check_matrix_output;
use crate::plot;
use general::part;
pub(crate) use hermitian::Spectrum;
use indicatif::ProgressBar;
use lacuna::eigen::{EigenProgress, Part, Which};
use lacuna::formats::algebra::check_hermitian;
use lacuna::{Complex64, Csr, Device, DeviceInfo, NumberType, Scalar};
use lacuna_measure::failure::{NOT_CONVERGED, Result};
use lacuna_measure::input::{Source, is_stream, set_threads};
use lacuna_measure::interrupt::{cancel_on_interrupt, interrupted, solved};
use lacuna_measure::number::with_type;
use lacuna_measure::out;
use lacuna_measure::progress::{style, target};
use lacuna_measure::quantity::{duration, many, thousands};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
pub(crate) use svd::svd;

/// `lacuna eigen`
pub(crate) fn eigen(args: &EigenArgs) -> Result<ExitCode> {
    args.plot.as_deref().map_or(Ok(()), plot::check_name)?;
    let outputs = [
        ("--vectors", args.vectors.as_deref()),
        ("--json", args.report.json.as_deref()),
        ("--plot", args.plot.as_deref()),
    ];
    out::check_outputs(
        &outputs,
        &[
            ("the matrix", Some(&args.matrix)),
            ("--mass", args.mass.as_deref()),
            ("--verify", args.verify.as_deref()),
        ],
    )?;
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

fn search<T: Scalar>(
    args: &EigenArgs,
    source: &Source,
    mass: Option<&Source>,
    dev: &Device,
) -> Result<ExitCode> {
    let a = Arc::new(source.read::<T>(args.report.quiet)?);
    match sought(args, &a)? {
        Sought::Hermitian(which) => hermitian::search(args, source, (a, which), mass, dev),
        Sought::General(part, why) => general::search(args, source, (&a, part), why, dev),
    }
}

/// What is sought, by a method for Hermitian matrices or by one for all, with the reason.
enum Sought {
    Hermitian(Which),
    General(Part, &'static str),
}

fn sought<T: Scalar>(args: &EigenArgs, a: &Csr<T>) -> Result<Sought> {
    let refused = |what: &str, message: String| lacuna::Error::Argument { what: what.into(), message };
    let hermitian = check_hermitian("eigenvalues", a);
    let named = args.method != "auto";
    let by_krylov_schur = args.method == KRYLOV_SCHUR;
    // What else is only for Hermitian matrices says where the matrix is not.
    let only_hermitian = args.mass.is_some() || named && !by_krylov_schur;
    let has_no_order = hermitian.is_err() || args.which.is_some_and(|wanted| which(wanted).is_none());
    if !by_krylov_schur && (only_hermitian || !has_no_order) {
        let wanted = args.which.unwrap_or(Wanted::Smallest);
        let message = || format!("{} is not for a mass matrix, nor for this method", wanted.name());
        return Ok(Sought::Hermitian(which(wanted).ok_or_else(|| refused("--which", message()))?));
    }
    if let Some((option, _)) = [
        ("--mass", args.mass.is_some()),
        ("--precond", args.precond != "auto"),
        ("--verify", args.verify.is_some()),
        ("--complete", !matches!(args.complete, CheckName::Auto | CheckName::Off)),
    ]
    .into_iter()
    .find(|(_, given)| *given)
    {
        let message = format!("{KRYLOV_SCHUR} has none; it is for the methods for Hermitian matrices");
        return Err(refused(option, message).into());
    }
    let wanted = args.which.unwrap_or(Wanted::Modulus);
    let message = || {
        let why = hermitian.as_ref().err().map_or(String::new(), |error| format!("; {error}"));
        format!(
            "{} is for Hermitian matrices: modulus, leftmost, rightmost or near:NUMBER is for all{why}",
            wanted.name()
        )
    };
    let part = part(wanted).ok_or_else(|| refused("--which", message()))?;
    Ok(Sought::General(part, if hermitian.is_ok() { "as asked for" } else { "the matrix is not Hermitian" }))
}

/// What a method for Hermitian matrices looks for.
fn which(wanted: Wanted) -> Option<Which> {
    match wanted {
        Wanted::Smallest | Wanted::Leftmost => Some(Which::Smallest),
        Wanted::Largest | Wanted::Rightmost => Some(Which::Largest),
        Wanted::Near(Complex64 { re, im: 0.0 }) => Some(Which::Near(re)),
        Wanted::Near(_) | Wanted::Modulus => None,
    }
}

/// How many are looked for if nobody says.
const USUAL: usize = 6;

/// How many are looked for among so many.
fn how_many(asked: Option<usize>, all: usize) -> usize {
    asked.unwrap_or(USUAL.min(all).max(1))
}

/// Runs a search with a line of progress, until it ends or somebody interrupts it.
fn watched<R>(
    quiet: bool,
    unit: &str,
    solve: impl FnOnce(&mut dyn FnMut(EigenProgress) -> ControlFlow<()>) -> lacuna::Result<R>,
) -> Result<R> {
    let bar = ProgressBar::with_draw_target(None, target(quiet));
    bar.set_style(style("{msg}"));
    let mut watch = |at: EigenProgress| {
        let EigenProgress { what, iterations, converged, of, worst, .. } = at;
        let iterations = thousands(iterations);
        bar.set_message(format!(
            "{what}: {iterations} {unit}, {converged} of {of} converged, residual {worst:.1e} times the tolerance"
        ));
        if interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    cancel_on_interrupt();
    let found = solve(&mut watch);
    solved();
    bar.finish_and_clear();
    Ok(found?)
}

/// Vectors as the columns of a matrix.
fn beside<T: Scalar>(vectors: &[Vec<T>]) -> lacuna::Result<Csr<T>> {
    let (rows, cols) = (vectors.first().map_or(0, Vec::len), vectors.len());
    let row_ptr = (0..=rows).map(|i| (i * cols) as u32).collect();
    let columns = (0..rows).flat_map(|_| 0..cols as u32).collect();
    let values = (0..rows).flat_map(|i| vectors.iter().map(move |x| x[i])).collect();
    Csr::new(rows, cols, row_ptr, columns, values)
}

/// The columns of a matrix as vectors.
fn apart<T: Scalar>(matrix: &Csr<T>) -> Vec<Vec<T>> {
    let mut vectors = vec![vec![T::zero(); matrix.rows()]; matrix.cols()];
    matrix.entries().for_each(|(i, j, v)| vectors[j][i] = v);
    vectors
}

/// The first lines of a report: the matrix, the device, and what was chosen.
fn heading(
    text: &mut String,
    (matrix, size, nnz, kind): (&str, &str, usize, NumberType),
    device: &DeviceInfo,
    choices: &[String],
) -> std::fmt::Result {
    writeln!(text, "{matrix}: {size}, {}, {}", many(nnz, "entry", "entries"), kind.name())?;
    writeln!(text, "  {}: {}", device.backend, device.name)?;
    choices.iter().try_for_each(|choice| writeln!(text, "  {choice}"))
}

/// The last ones: the time, with what else stands beside it, and notes.
fn ending(
    text: &mut String,
    [setup, time]: [Duration; 2],
    beside: &str,
    notes: &[String],
) -> std::fmt::Result {
    let [setup, time] = [setup, time].map(|time| duration(time.as_secs_f64()));
    writeln!(text, "  {time}, of which set-up {setup}{beside}")?;
    notes.iter().try_for_each(|note| writeln!(text, "  note: {note}"))
}

/// A report that is written line by line.
fn written(write: impl FnOnce(&mut String) -> std::fmt::Result) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut text);
    text
}

fn exit(converged: bool) -> ExitCode {
    if converged { ExitCode::SUCCESS } else { ExitCode::from(NOT_CONVERGED) }
}
