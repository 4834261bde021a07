//! Kernels that the GPU backends of Lacuna write for one program: its passes and formulas as plain code in OpenCL C, in
//! a frame that keeps vectors in registers where they fit.
//!
//! A backend asks for a [`Layout`] of a program, compiles [`Layout::text`] (CUDA through a prelude that gives the words
//! of OpenCL C their meaning there), makes the buffers the layout counts, and launches.
pub mod background;
mod cache;
mod costs;
mod layout;
mod plan_cache;
mod repacked;
mod rows;
mod slices;
mod source;
mod stages;
mod write;

pub use cache::Cached;
pub use costs::{columns_pay, costs, rows_come_first};
pub use layout::{Device, Layout, MatrixFacts, has_shorter};
pub use plan_cache::{Key, Placement, PlanCache, Repack};
pub use repacked::Repacked;
pub use rows::{Entries, Rows};
pub use slices::{Apart, Slices};
pub use source::{AT_CELLS, AT_HISTORY, MATRIX_WORDS, SEGMENT, batch, header, joined};
pub use stages::{Stage, solve_stages};
pub use write::{Generated, Product, Shape, write};
