//! Threads that share the work of the host.

/// The threads that a device computes on, for what the host computes for it: see
/// [`Backend::workers`](crate::Backend::workers).
pub trait Workers: Send + Sync {
    /// How many there are, with the calling one.
    fn count(&self) -> usize;
    /// Has the calling thread and up to as many `others` do the work, and returns when all that began it have ended. **Must**
    /// call `work` on the calling thread, and **must not** wait for a thread that has not begun. A panic of the work continues
    /// on the calling thread.
    fn run(&self, others: usize, work: &(dyn Fn() + Sync));
}
