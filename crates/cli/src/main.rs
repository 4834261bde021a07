//! The `lacuna` command: solves sparse linear systems, finds eigenvalues and singular values, compares backends, times products,
//! shows what five papers showed, describes, converts and generates matrices, lists devices.
mod advise;
mod args;
mod columns;
mod compare;
mod convert;
mod devices;
mod generate;
mod info;
mod launched;
mod papers;
mod plot;
mod report;
mod scaling;
mod searched;
mod shell;
mod solve;
mod solving;
mod spectra;
mod speeds;
mod spmv;

use args::Command;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut command = args::parse();
    let job = match launched::join(&mut command) {
        Ok(job) => job,
        Err(failure) => return failure.report(),
    };
    let done = match command {
        Command::Solve(args) => solve::run(&args, job.as_ref()),
        Command::Eigen(args) => spectra::eigen(&args),
        Command::Svd(args) => spectra::svd(&args),
        Command::Advise(args) => advise::run(&args),
        Command::Spmv(args) => spmv::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Compare(args) => compare::run(&args),
        Command::Papers(args) => papers::run(&args),
        Command::Info(args) => info::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Convert(args) => convert::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Generate(args) => generate::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Devices(args) => devices::run(&args).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|failure| match &job {
        Some(job) => job.failed(failure),
        None => failure.report(),
    })
}
