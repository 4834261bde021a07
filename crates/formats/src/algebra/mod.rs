//! Sparse algebra on the host: products, Galerkin products, transposes, and plans to repeat them with new
//! values.
//!
//! The order of every sum depends on the operands, not on the threads: an entry `(i, j)` of a product is
//! `Σ a_ik b_kj` over increasing `k`, each product and each sum rounded once, so that any number of threads
//! gives the same bits. A plan keeps the pattern of a result and the destination of each product of two
//! entries; recomputing the result for new values on the same patterns then takes one pass over the operands.
mod accumulate;
mod cells;
mod fill;
mod galerkin;
mod hermitian;
mod operators;
mod pattern;
mod product;
mod rows;
mod slots;
mod transpose;
mod window;

pub(crate) use rows::sort_order;

pub use fill::{fill_rows, fill_rows_with, refill_rows_with};
pub use galerkin::{GalerkinPlan, galerkin, galerkin_by_cells};
pub use hermitian::{check_hermitian, lost_symmetry};
pub use operators::CsrTransposed;
pub use product::{ProductPlan, product};
pub use rows::{RowWriter, build_rows, build_rows_with};
pub use transpose::TransposePlan;
pub(crate) use transpose::turned;
