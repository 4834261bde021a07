//! Incomplete factorisations on the host.
//!
//! The order of all sums depends on the matrix only; the factors are the same with any number of threads.
mod column_order;
mod elimination;
mod equilibrate;
mod ic0;
mod ilu0;
mod ilut;
mod pivots;

pub use column_order::{column_order, diagonal_order};
pub use equilibrate::{SCALINGS, ScalingInfo, equilibrated, scaling};
pub use ic0::ic0;
pub use ilu0::ilu0;
pub use ilut::{Ilut, IlutOptions, ilut};
pub use pivots::{Incomplete, Pivots};
