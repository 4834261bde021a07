//! `lacuna advise`
use crate::args::AdviseArgs;
use crate::plot;
use crate::searched::{Searched, way};
use crate::shell::quoted;
use crate::solving::Solving;
use lacuna::ndarray::ArrayView1;
use lacuna::{Device, LinearSystem, Scalar, Stop, Trial, Watch, advise};
use lacuna_measure::failure::{NOT_CONVERGED, Result};
use lacuna_measure::input::{Source, is_stream, set_threads};
use lacuna_measure::interrupt::{cancel_on_interrupt, interrupted, solved};
use lacuna_measure::number::with_type;
use lacuna_measure::out;
use lacuna_measure::vector::{VectorSource, right_hand_side};
use std::ops::ControlFlow;
use std::process::ExitCode;

pub(crate) fn run(args: &AdviseArgs) -> Result<ExitCode> {
    args.plot.as_deref().map_or(Ok(()), plot::check_name)?;
    out::check_outputs(
        &[("--json", args.report.json.as_deref()), ("--plot", args.plot.as_deref())],
        &[
            ("the matrix", Some(&args.matrix)),
            ("--rhs", args.rhs.as_deref().filter(|rhs| VectorSource::is_file(rhs))),
        ],
    )?;
    set_threads(args.place.threads)?;
    let source = Source::open(&args.matrix)?;
    if args.rhs.as_deref().is_some_and(is_stream) {
        source.keep_stream()?;
    }
    let rhs = args.rhs.as_deref().map(|rhs| VectorSource::open("--rhs", rhs)).transpose()?;
    let kind = source.number_type(args.number, rhs.as_ref().is_some_and(VectorSource::is_complex))?;
    let dev = args.place.open()?;
    with_type!(kind, T => Search { args, source, rhs }.search::<T>(&dev))
}

/// A search whose input is open.
struct Search<'a> {
    args: &'a AdviseArgs,
    source: Source,
    rhs: Option<VectorSource>,
}

impl Search<'_> {
    fn search<T: Scalar>(self, dev: &Device) -> Result<ExitCode> {
        let (args, quiet) = (self.args, self.args.report.quiet);
        let a = self.source.read::<T>(quiet)?;
        let b = right_hand_side::<T>(self.rhs.as_ref(), &self.source, a.rows(), quiet)?;
        let (shape, nnz) = ((a.rows(), a.cols()), a.nnz());
        let stop = Stop::default()
            .rtol(args.rtol.unwrap_or(LinearSystem::<T>::DEFAULT_RTOL))
            .atol(args.atol)
            .max_iters(args.max_iters);
        let norm = b.iter().map(|v| v.modulus().powi(2)).sum::<f64>().sqrt();
        let relative_tolerance = stop.rtol.max(stop.atol / norm);
        let mut progress: Option<Solving> = None;
        let mut watch = |(method, preconditioner): (&str, &str), at: Option<Watch>| match (at, &mut progress)
        {
            (Some(at), Some(progress)) => progress.at(at),
            _ if interrupted() => ControlFlow::Break(()),
            _ => {
                let solving = Solving::new(quiet, relative_tolerance, stop.limit(shape));
                solving.name(&way(method, preconditioner));
                progress = Some(solving);
                ControlFlow::Continue(())
            }
        };
        cancel_on_interrupt();
        let trials = advise(dev, a, ArrayView1::from(&b), stop, args.seconds, &mut watch);
        solved();
        drop(progress);
        let search = Searched {
            matrix: self.source.name().into(),
            command: command(args),
            settings: settings(args),
            shape,
            nnz,
            kind: T::KIND,
            device: dev.info().clone(),
            stop,
            trials: trials?,
        };
        let json = args.report.json.as_deref();
        out::report(quiet, json, || search.table(), || search.json())?;
        if let Some(path) = &args.plot {
            plot::save(&plot::race(&search), path)?;
        }
        let solved = search.trials.first().is_some_and(Trial::converged);
        Ok(if solved { ExitCode::SUCCESS } else { ExitCode::from(NOT_CONVERGED) })
    }
}

/// The command that solves the same system to the same tolerance.
fn command(args: &AdviseArgs) -> String {
    let options = [
        ("--rhs", args.rhs.clone()),
        ("--type", args.number.map(|number| number.kind().name().into())),
        ("--rtol", args.rtol.map(|rtol| format!("{rtol:e}"))),
        ("--atol", Some(args.atol).filter(|atol| *atol > 0.0).map(|atol| format!("{atol:e}"))),
        ("--max-iters", args.max_iters.map(|most| most.to_string())),
        ("--backend", args.place.backend.clone()),
        ("--device", args.place.device.clone()),
    ];
    let given = options.iter().filter_map(|(option, value)| Some((option, value.as_deref()?)));
    given.fold(format!("lacuna solve {}", quoted(&args.matrix)), |command, (option, value)| {
        format!("{command} {option} {}", quoted(value))
    })
}

/// The same stopping criteria as a call in Rust; empty for the default ones.
fn settings(args: &AdviseArgs) -> String {
    let rtol = args.rtol.map(|rtol| format!(".rtol({rtol:e})"));
    let atol = Some(args.atol).filter(|atol| *atol > 0.0).map(|atol| format!(".atol({atol:e})"));
    let most = args.max_iters.map(|most| format!(".max_iters({most})"));
    let given: String = [rtol, atol, most].into_iter().flatten().collect();
    if given.is_empty() { given } else { format!(".stop(Stop::default(){given})") }
}
