//! Methods and preconditioners on the serial reference backend.
mod adjoints;
mod amg;
mod faults;
mod least_squares;
mod multigrid;
mod preconditioners;
mod reference;
mod ritz;
