//! Methods and preconditioners on the serial reference backend.
mod adjoints;
mod amg;
mod faults;
mod least_squares;
mod max_norm;
mod multigrid;
mod preconditioners;
mod reference;
mod ritz;
mod setups;

use lacuna_engine::Scalar;
use lacuna_formats::Csr;
use lacuna_io::Spec;

/// The matrix of a generator.
fn generated<T: Scalar>(name: &str) -> Csr<T> {
    Spec::parse(name).unwrap().build().unwrap()
}
