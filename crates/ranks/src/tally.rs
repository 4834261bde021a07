//! What the ranks have sent.
use std::time::Duration;

/// What a rank has sent and waited for since it was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Iterations.
    pub iterations: u64,
    /// Gathers by all ranks: of sums, of whole vectors, and of short ones that every rank keeps.
    pub gathers: u64,
    /// Bytes that this rank contributed to them.
    pub gathered: u64,
    /// Products for which halos were exchanged.
    pub exchanges: u64,
    /// Bytes of halos that this rank received.
    pub halo: u64,
    /// Vectors that every rank gathered whole: for what cannot be divided.
    pub whole: u64,
    /// Bytes of them that this rank contributed.
    pub whole_bytes: u64,
    /// Time in programs.
    pub time: Duration,
    /// The part of it that was spent on messages: packing, waiting and unpacking.
    pub messages: Duration,
}
