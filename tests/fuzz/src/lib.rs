//! Fuzz targets: functions of bytes that panic where a property does not hold.
//!
//! `tests/corpus.rs` runs all of them over the kept corpus and over changes of it; `README.md` says how libFuzzer runs them.
mod assembly;
mod bytes;
#[path = "../../../crates/cpu/tests/calls/mod.rs"]
mod calls;
mod conversions;
mod exact;
mod factors;
mod mutate;
mod options;
mod programs;
mod readers;
mod solves;
mod specs;

pub use assembly::assembly;
pub use calls::calls;
pub use conversions::conversions;
pub use exact::{Wide, norm, residual};
pub use factors::factors;
pub use mutate::Mutator;
pub use options::options;
pub use programs::programs;
pub use readers::{archives, boeing, matlab, matrix_market, npy, npz, petsc};
pub use solves::solves;
pub use specs::specs;

/// A target and its name, which its binary and the folder of its corpus have too.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Runs it; panics where a property does not hold.
    pub run: fn(&[u8]),
}

/// Calls a macro with the names of all targets.
#[macro_export]
macro_rules! with_targets {
    ($macro:ident) => {
        $macro! { matrix_market, npy, npz, matlab, petsc, boeing, archives, specs, options, conversions, assembly, factors, programs, calls, solves }
    };
}

macro_rules! list {
    ($($name:ident),*) => {
        /// Every target.
        pub const TARGETS: &[Target] = &[$(Target { name: stringify!($name), run: $name }),*];
    };
}
with_targets!(list);
