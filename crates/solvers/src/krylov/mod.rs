//! The methods: a file each, and the list that they are found in.
mod bicgstab;
mod cg;
mod classical_bicgstab;
mod classical_cg;
mod gmres;
mod method;

pub use bicgstab::BiCgStab;
pub use cg::Cg;
pub use classical_bicgstab::ClassicalBiCgStab;
pub use classical_cg::ClassicalCg;
pub use gmres::{Gmres, Orthogonalization, Side};
pub use method::{METHODS, Method, MethodInfo, Options, method};
