//! What there is to measure.

/// A case to measure, by name: a solve, products if the method is [`SPMV`], or other work on the subject.
#[derive(Clone, Debug)]
pub struct Task {
    pub method: String,
    pub(crate) precond: String,
    pub(crate) format: String,
    pub(crate) stop: lacuna::Stop,
    pub(crate) restart: Option<usize>,
    /// Whether the sweeps of the method are kept apart.
    pub(crate) unfused: bool,
    /// Whether the solution is kept with the measurements.
    pub(crate) keeps_solution: bool,
}

impl Task {
    /// The error for work that needs a matrix, given vectors.
    pub fn needs_matrix(&self) -> lacuna::Error {
        let message = "it needs a matrix".into();
        lacuna::Error::Unsupported { operation: self.method.clone(), message }
    }
}

impl Task {
    /// The method as shown.
    pub(crate) fn shown(&self) -> String {
        if self.unfused { format!("{}, unfused", self.method) } else { self.method.clone() }
    }
}

/// The method name that means sparse products.
pub const SPMV: &str = "spmv";
/// GMRES with one classical Gram-Schmidt sweep, as in most libraries.
pub const GMRES_ONCE: &str = "gmres-once";
