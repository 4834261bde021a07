//! Incomplete factorisations.
mod column_order;
mod ic0;
mod ilu0;
mod ilut;
