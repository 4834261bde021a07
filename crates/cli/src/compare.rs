//! `lacuna compare`
use crate::args::{CompareArgs, check_restart, joined};
use crate::plot;
use lacuna_measure::args::MeasuringArgs;
use lacuna_measure::failure::Result;
use lacuna_measure::record::cases;
use lacuna_measure::session::{Ending, MODEL_PROBLEMS, Session, Work, names};
use lacuna_measure::vector::{VectorSource, Vectors};
use lacuna_measure::{of_matrices, out};
use std::process::ExitCode;
use std::rc::Rc;

pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode> {
    args.plot.as_deref().map_or(Ok(()), plot::check_name)?;
    check_outputs(args)?;
    let work = Work {
        matrices: if args.matrices.is_empty() { names(&MODEL_PROBLEMS) } else { args.matrices.clone() },
        methods: joined(&args.methods),
        formats: args.formats.clone(),
        types: args.types.clone(),
        preconds: joined(&args.precond),
        vectors: Rc::new(Vectors::open(args.rhs.as_deref(), args.x0.as_deref())?),
        ending: match args.rtol {
            Some(rtol) => Ending::Tolerance { rtol, max_iters: args.max_iters, norm: args.norm.into() },
            None => Ending::Iterations(args.iterations),
        },
        restart: args.restart,
        unfused: args.unfused,
        ..Work::default()
    };
    work.check()?;
    work.methods.iter().try_for_each(|method| check_restart(method, args.restart))?;
    let subjects = work.subjects()?;
    let measured = Session::run(&args.measuring, of_matrices, |session| session.measure_all(&work, subjects));
    let (code, lines) = measured?;
    if let Some(path) = &args.plot {
        let cases: Vec<_> = cases(&lines).collect();
        plot::save(&plot::residuals(&cases, args.rtol), path)?;
    }
    Ok(code)
}

/// Rejects outputs that cannot be written or would overwrite an input.
fn check_outputs(args: &CompareArgs) -> Result<()> {
    let vectors = [("--rhs", &args.rhs), ("--x0", &args.x0)];
    let files =
        vectors.map(|(option, path)| (option, path.as_deref().filter(|path| VectorSource::is_file(path))));
    let matrices = args.matrices.iter().map(|path| ("a matrix", Some(path.as_str())));
    let inputs: Vec<_> = matrices.chain(files).collect();
    let MeasuringArgs { json, html, .. } = &args.measuring;
    let outputs =
        [("--json", json.as_deref()), ("--html", html.as_deref()), ("--plot", args.plot.as_deref())];
    out::check_outputs(&outputs, &inputs)?;
    args.measuring.check_outputs(&args.matrices)
}
