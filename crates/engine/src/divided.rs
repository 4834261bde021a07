//! What a device implements to be one of several that share a system.
use crate::division::Subtree;
use crate::{Backend, PlanId, Program, Result, Section, State, Vector};
use std::ops::Range;

/// Where an operation is in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpAt {
    /// The section.
    pub section: Section,
    /// The step, for an operation of [`Program::steps`] in a plan that keeps them rolled.
    pub step: Option<u32>,
    /// Its number in the section or in the step; see [`Divided::is_rolled`].
    pub index: usize,
}

/// A backend that can run its part of each operation: the rows of some segments.
///
/// Handles, lengths and matrices are those of the whole system, but a part reads and writes its own rows of a vector alone, and
/// those of others that products read, which are sent to it before. A backend **should** keep in memory only the rows that were
/// written. So a part has every format that the backend has, with the kernels that it has.
///
/// An operation runs in this order: [`Divided::before`]; if that says so [`Divided::part`] for all segments of the part, in
/// one call or several; [`Divided::sums`] if there are any, which are then finished from those of all parts; [`Divided::after`].
pub trait Divided: Backend {
    /// Prepares for a run of a program that was planned by [`Backend::plan`]: resolves again what has changed since.
    ///
    /// # Errors
    /// As [`Backend::execute`].
    fn begin(&mut self, program: &Program, plan: PlanId) -> Result<()>;
    /// Whether the plan keeps the steps of the iteration rolled. Then its operations are those of [`crate::Steps::at`] for
    /// each step and of [`Program::section_behind_steps`], otherwise those of [`Program::section`].
    fn is_rolled(&self, plan: PlanId) -> bool;
    /// The number of sums over all rows that an operation computes.
    ///
    /// # Errors
    /// [`crate::Error::Stale`], as for all methods with a plan.
    fn sum_count(&mut self, plan: PlanId, at: OpAt) -> Result<usize>;
    /// How many of them, the last ones, are maxima.
    ///
    /// # Errors
    /// As [`Divided::sum_count`].
    fn maximum_count(&mut self, plan: PlanId, at: OpAt) -> Result<usize>;
    /// Evaluates the instructions before an operation. Returns whether it is to be run.
    ///
    /// # Errors
    /// Device failures.
    fn before(&mut self, plan: PlanId, at: OpAt, state: State<'_>) -> Result<bool>;
    /// Computes the rows of some segments, with the updates of the pass, and the sums of these segments. A solve with
    /// a triangular matrix may compute other rows too; a function of the host is called for all rows, whichever segments are named.
    ///
    /// # Errors
    /// Device failures; [`crate::Error::Function`].
    fn part(&mut self, plan: PlanId, at: OpAt, segments: Range<usize>) -> Result<()>;
    /// Appends the bytes of this part's subtree sums: for each sum in an order of the backend's own, maxima last, for each subtree.
    ///
    /// # Errors
    /// Device failures.
    fn sums(&mut self, plan: PlanId, at: OpAt, trees: &[Subtree], to: &mut Vec<u8>) -> Result<()>;
    /// Stores the bytes of the finished sums in their cells, in the order of [`Divided::sums`], and evaluates the instructions
    /// after the operation.
    ///
    /// # Errors
    /// Device failures.
    fn after(&mut self, plan: PlanId, at: OpAt, sums: &[u8], state: State<'_>) -> Result<()>;

    /// Appends the bytes of some rows of a vector, as numbers of its type in full width.
    ///
    /// # Errors
    /// [`crate::Error::Stale`]; [`crate::Error::Length`] for rows that it does not have; device failures.
    fn rows_of(&mut self, v: Vector, rows: &[Range<usize>], to: &mut Vec<u8>) -> Result<()>;
    /// Sets some rows of a vector from their bytes, rounded if it is narrow.
    ///
    /// # Errors
    /// As [`Divided::rows_of`]; [`crate::Error::Length`] for another number of bytes.
    fn set_rows(&mut self, v: Vector, rows: &[Range<usize>], from: &[u8]) -> Result<()>;
    /// Sets some rows of a vector to zero.
    ///
    /// # Errors
    /// As [`Divided::rows_of`].
    fn clear_rows(&mut self, v: Vector, rows: Range<usize>) -> Result<()>;
}
