//! How programs were run: a report for tests and for who wonders why a solve is slow.
use std::cell::Cell;

/// Numbers of runs of programs with a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// By a kernel generated for the program.
    pub generated: u64,
    /// By the kernels that serve every program.
    pub general: u64,
}

thread_local! {
    static RUNS: Cell<Runs> = const { Cell::new(Runs { generated: 0, general: 0 }) };
}

/// The runs that the calling thread has begun, on all devices.
pub fn runs() -> Runs {
    RUNS.get()
}

/// Counts a run of a program with a loop.
pub fn count_run(generated: bool) {
    let mut runs = RUNS.get();
    *if generated { &mut runs.generated } else { &mut runs.general } += 1;
    RUNS.set(runs);
}
