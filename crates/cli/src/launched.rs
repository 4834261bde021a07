//! Copies of this program that `mpirun` started together.
use crate::args::{Command, SolveArgs};
use lacuna::{Csr, Device, Scalar};
use lacuna_measure::failure::{Failure, Result};
use std::process::ExitCode;

/// Where launchers say how many copies they started: Open MPI, and those of MPICH.
const COPIES: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];

/// How many copies of this program were started together.
fn copies() -> usize {
    COPIES.iter().find_map(|name| std::env::var(name).ok()?.parse().ok()).unwrap_or(1)
}

/// The job of which this process is one, if there are several. Without MPI there is none.
#[cfg(not(feature = "mpi"))]
pub(crate) enum Job {}
#[cfg(feature = "mpi")]
pub(crate) struct Job {
    job: lacuna::mpi::Job,
}

/// Joins the copies that were started together, if there are several. All but the first print and write nothing then.
pub(crate) fn join(command: &mut Command) -> Result<Option<Job>> {
    match copies() {
        0 | 1 => Ok(None),
        copies => Job::of(copies, command).map(Some),
    }
}

#[cfg(not(feature = "mpi"))]
impl Job {
    fn of(copies: usize, _: &mut Command) -> Result<Self> {
        let message = format!(
            "{copies} copies were started together, and this `lacuna` is built without MPI: build it with `--features mpi`, or \
             start one and give it `--ranks {copies}`"
        );
        Err(Failure::Usage(message))
    }
    pub(crate) fn device(&self, _: &SolveArgs) -> Result<Device> {
        match *self {}
    }
    pub(crate) fn agree<T: Scalar>(&self, _: &Csr<T>, _: [&[T]; 2]) -> Result<()> {
        match *self {}
    }
    pub(crate) fn failed(&self, _: Failure) -> ExitCode {
        match *self {}
    }
}

#[cfg(feature = "mpi")]
mod joined {
    use super::*;
    use std::hash::{DefaultHasher, Hasher};
    use std::time::Duration;

    /// How long the first process waits before it ends the others for its error, and the others before they print theirs: what
    /// all meet is printed once.
    const FIRST: Duration = Duration::from_millis(200);
    const OTHERS: Duration = Duration::from_millis(600);

    impl Job {
        pub(super) fn of(_: usize, command: &mut Command) -> Result<Self> {
            let job = Job { job: lacuna::mpi::start()? };
            let joined = job.quieted(command);
            match joined {
                Ok(()) => Ok(job),
                Err(failure) => {
                    let _ = job.failed(failure);
                    job.job.abort()
                }
            }
        }

        fn quieted(&self, command: &mut Command) -> Result<()> {
            let own =
                format!("{} {:?}", env!("CARGO_PKG_VERSION"), std::env::args().skip(1).collect::<Vec<_>>());
            self.job.agree("the versions and arguments", &own)?;
            let Command::Solve(args) = command else {
                let message = "only `lacuna solve` runs on several processes: start one copy of this command";
                return Err(Failure::Usage(message.into()));
            };
            if self.job.rank() > 0 {
                args.report.quiet = true;
                (args.report.json, args.output, args.plot) = (None, None, None);
            }
            Ok(())
        }

        /// The device of this process.
        pub(crate) fn device(&self, args: &SolveArgs) -> Result<Device> {
            let place = &args.place;
            let refuse = |what: &str| Err(Failure::Usage(format!("{what} is not for several processes")));
            if place.ranks.is_some() {
                return refuse("`--ranks`");
            }
            if place.backend.as_deref().is_some_and(|name| name != "cpu") || place.device.is_some() {
                return refuse("a device other than the CPU");
            }
            // What a clock decides would differ between them.
            if args.method == "tune" || args.format == "tune" {
                return refuse("`tune`");
            }
            Ok(lacuna::mpi::device(&self.job)?)
        }

        /// Fails unless all processes have read the same.
        pub(crate) fn agree<T: Scalar>(&self, a: &Csr<T>, vectors: [&[T]; 2]) -> Result<()> {
            let mut hash = DefaultHasher::new();
            let add = |hash: &mut DefaultHasher, values: &[T]| {
                values.iter().for_each(|v| {
                    hash.write_u64(v.re().to_bits());
                    hash.write_u64(v.im().to_bits());
                });
            };
            add(&mut hash, a.values());
            for i in 0..a.rows() {
                a.row_slices(i).0.iter().for_each(|j| hash.write_u32(*j));
                hash.write_u8(0);
            }
            let matrix = hash.finish();
            vectors.iter().for_each(|v| add(&mut hash, v));
            let own = format!(
                "{} x {}, {} entries, hash {matrix:016x} and {:016x}",
                a.rows(),
                a.cols(),
                a.nnz(),
                hash.finish()
            );
            Ok(self.job.agree("the matrix and the vectors", &own)?)
        }

        /// Prints an error, and ends all processes.
        pub(crate) fn failed(&self, failure: Failure) -> ExitCode {
            let rank = self.job.rank();
            if rank > 0 {
                std::thread::sleep(OTHERS);
                eprint!("rank {rank}: ");
            }
            let _ = failure.report();
            std::thread::sleep(FIRST);
            self.job.abort()
        }
    }
}
