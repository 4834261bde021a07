//! Tests of eigenvalues and singular values.
mod eigen;
mod general;
mod svd;
mod trust;
