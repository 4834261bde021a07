//! The laboratory of Lacuna, `lacuna-bench`: measures passes, products and solvers; makes pages and tables of kept results.
mod against;
mod args;
mod choices;
mod document;
mod markdown;
mod measure;
mod report;
mod run;

use args::{Cli, Command};
use clap::CommandFactory;
use lacuna_measure::failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match lacuna_measure::args::parsed::<Cli>(Cli::command()).command {
        Command::Run(args) => run::run(&args),
        Command::Report(args) => report::run(&args).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(Failure::report)
}
