//! The `lacuna` command: solves sparse linear systems, compares backends, times products, describes, converts
//! and generates matrices, lists devices.
//!
//! Public is what the laboratory, `lacuna-bench`, shares with it. It is no interface for others.
#![doc(hidden)]

mod advise;
pub mod args;
mod axis;
mod compare;
mod convert;
mod devices;
pub mod failure;
mod figure;
mod generate;
mod info;
pub mod input;
mod interrupt;
pub mod measure;
pub mod number;
pub mod out;
pub mod page;
mod plot;
mod progress;
pub mod quantity;
pub mod record;
mod report;
mod scaling;
pub mod session;
mod shell;
mod solve;
mod solving;
mod spmv;
mod vector;

use args::Command;
use failure::Failure;
use std::process::ExitCode;

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    let done = match args::parse() {
        Command::Solve(args) => solve::run(&args),
        Command::Advise(args) => advise::run(&args),
        Command::Spmv(args) => spmv::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Compare(args) => compare::run(&args),
        Command::Info(args) => info::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Convert(args) => convert::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Generate(args) => generate::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Devices(args) => devices::run(&args).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(Failure::report)
}
