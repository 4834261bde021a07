//! What there is to measure.

/// A case to measure, by name: a solve, products if the method is [`SPMV`], or other work on the subject.
#[derive(Clone, Debug)]
pub struct Task {
    pub method: String,
    pub(crate) precond: String,
    pub(crate) format: &'static str,
    pub(crate) stop: lacuna::Stop,
    pub(crate) restart: Option<usize>,
}

impl Task {
    /// The error for work that needs a matrix, given vectors.
    pub fn needs_matrix(&self) -> lacuna::Error {
        let message = "it needs a matrix".into();
        lacuna::Error::Unsupported { operation: self.method.clone(), message }
    }
}

/// The method name that means sparse products.
pub const SPMV: &str = "spmv";
/// GMRES with one classical Gram-Schmidt sweep, as in most libraries.
pub const GMRES_ONCE: &str = "gmres-once";
