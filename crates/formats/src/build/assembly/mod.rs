//! Assembly in terms of an application: coefficients and rows, fixed unknowns, finite elements; repeated for
//! new values without sorting.
mod builder;
mod elements;
mod plan;
mod solved;

pub use builder::Assembly;
pub use elements::{Elements, FIXED};
pub use plan::AssemblyPlan;
pub use solved::Assembled;
