//! The barrier and the gang of the CPU backend, their own source, under loom: every order in which the threads of a run may take
//! their steps, and every value that the memory model lets a load return.
//!
//! What drives them is a run in small, as `crates/cpu/src/run/execute.rs` has it: sections in stretches, steps that write a thread's own
//! row and read all rows of the step before, sums in two halves, wishes. Rows, sums and state are cells that loom watches: two
//! accesses that nothing orders, one of them a write, fail the model, and so do a thread that waits for ever and a sum that differs.
//!
//! `cargo test --release -p lacuna-model` says how many orders there were; `-- --ignored` explores more of them for minutes.
#![cfg(test)]

#[path = "../../../crates/cpu/src/run/barrier.rs"]
#[allow(dead_code)]
mod barrier;
#[path = "../../../crates/cpu/src/run/gang.rs"]
#[allow(dead_code)]
mod gang;
mod sync;

mod barriers;
mod run;
