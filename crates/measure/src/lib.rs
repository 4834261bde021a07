//! What the command, `lacuna`, and the laboratory, `lacuna-bench`, share. Both measure solves and products on every
//! available backend, in alternating rounds, and keep and show the results; both read, print and fail alike.
//!
//! It is no interface for others.
#![doc(hidden)]

pub mod args;
pub mod axis;
mod bandwidth;
pub mod bus;
pub mod calls;
pub mod failure;
pub mod figure;
pub mod input;
pub mod interrupt;
mod machine;
mod measured;
pub mod number;
pub mod out;
pub mod page;
pub mod pass;
mod product;
pub mod progress;
pub mod quantity;
pub mod record;
mod repeated;
mod samples;
pub mod session;
mod solve;
mod system;
mod target;
mod task;
pub mod vector;

pub use bandwidth::triad;
pub use machine::Machine;
pub use measured::{BUDGET, Measured, budget, four_digits, set_budget};
pub use samples::{Samples, Timing};
pub use solve::digest;
pub use system::{Subject, System, Typed};
pub use target::{Prepare, PreparedCase, Target, of_everything, of_matrices};
pub use task::{GMRES_ONCE, SPMV, Task};
