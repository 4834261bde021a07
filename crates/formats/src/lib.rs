//! Sparse matrices on the host.
