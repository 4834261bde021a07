//! Assembly in the terms of an application: coefficients and rows, fixed unknowns, finite elements; once more with new values
//! without sorting again.
mod builder;
mod elements;
mod plan;
mod solved;

pub use builder::Assembly;
pub use elements::{Elements, FIXED};
pub use plan::AssemblyPlan;
pub use solved::Assembled;
