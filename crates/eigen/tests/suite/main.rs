//! Tests of eigenvalues and singular values.
mod eigen;
