//! Passes and their bits, calls from within calls, and calls that must not reach undefined behaviour.
#[path = "../calls/mod.rs"]
#[allow(unreachable_pub)] // the fuzz target's
mod calls;
mod nested;
mod passes;
mod soundness;
