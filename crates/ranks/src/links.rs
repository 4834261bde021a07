//! Messages between the ranks of one system.
use lacuna_engine::Result;

/// What carries messages between ranks. Every rank has its own.
///
/// After an error, or after [`Links::abort`] by any rank, every method **must** return an error on every rank, and nobody wait.
pub trait Links: Send {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;
    /// How many ranks there are.
    fn ranks(&self) -> usize;
    /// Everybody's bytes in `all`, in order of rank; `counts` are their numbers, the same on every rank. All ranks **must** call
    /// it, in the same order among their collective calls.
    ///
    /// # Errors
    /// [`lacuna_engine::Error::Device`].
    fn all_gather(&mut self, mine: &[u8], counts: &[usize], all: &mut Vec<u8>) -> Result<()>;
    /// Sends bytes to a rank. Returns at once. Messages from one rank to another arrive in order.
    ///
    /// # Errors
    /// As [`Links::all_gather`].
    fn send(&mut self, to: usize, bytes: &[u8]) -> Result<()>;
    /// Waits for the next message of a rank, of so many bytes, and appends it.
    ///
    /// # Errors
    /// As [`Links::all_gather`].
    fn receive(&mut self, from: usize, count: usize, to: &mut Vec<u8>) -> Result<()>;
    /// Ends all waiting, now and later, with errors: for a rank that cannot go on.
    fn abort(&self);
}
