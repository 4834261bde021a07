//! The language of a method: numbers, handles, formulas over them, and passes made of formulas.
pub mod cells;
pub(crate) mod formula;
pub(crate) mod handle;
pub(crate) mod linear;
pub(crate) mod number;
pub(crate) mod pass;
pub(crate) mod scalar;
