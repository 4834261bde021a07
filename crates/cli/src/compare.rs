//! `lacuna compare`
use crate::args::{CompareArgs, check_restart, joined};
use lacuna_measure::failure::Result;
use lacuna_measure::of_matrices;
use lacuna_measure::session::{Ending, MODEL_PROBLEMS, Session, Work, names};
use std::process::ExitCode;

pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode> {
    let work = Work {
        matrices: if args.matrices.is_empty() { names(&MODEL_PROBLEMS) } else { args.matrices.clone() },
        methods: joined(&args.methods),
        formats: args.formats.clone(),
        types: args.types.clone(),
        precond: Some(args.precond.clone()),
        ending: match args.rtol {
            Some(rtol) => Ending::Tolerance { rtol, max_iters: args.max_iters },
            None => Ending::Iterations(args.iterations),
        },
        restart: args.restart,
        ..Work::default()
    };
    work.check()?;
    args.measuring.check_outputs(&args.matrices)?;
    work.methods.iter().try_for_each(|method| check_restart(method, args.restart))?;
    let subjects = work.subjects()?;
    Session::run(&args.measuring, of_matrices, |session| session.measure_all(&work, subjects))
        .map(|(code, _)| code)
}
