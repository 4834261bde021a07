//! The `lacuna` command: solves sparse linear systems, compares backends, times products, describes, converts
//! and generates matrices, lists devices.
mod advise;
mod args;
mod bench;
mod compare;
mod convert;
mod devices;
mod document;
mod failure;
mod generate;
mod info;
mod input;
mod kept;
mod measure;
mod number;
mod out;
mod page;
mod plot;
mod progress;
mod record;
mod report;
mod solve;
mod spmv;

use args::Command;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match args::parse() {
        Command::Solve(args) => solve::run(&args),
        Command::Advise(args) => advise::run(&args),
        Command::Spmv(args) => spmv::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Compare(args) => compare::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Report(args) => kept::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Info(args) => info::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Convert(args) => convert::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Generate(args) => generate::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Devices(args) => devices::run(&args).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(Failure::tell)
}
