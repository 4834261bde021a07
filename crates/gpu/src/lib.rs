//! The kernels that the GPU backends of Lacuna generate for one program: its passes and formulas as plain
//! OpenCL C code, in a frame that keeps vectors in registers if they fit.
//!
//! A backend asks for the [`Layout`] of a program, compiles [`Layout::text`] (CUDA through a prelude that
//! defines the words of OpenCL C), allocates the buffers of the layout, and launches.
pub mod algebra;
pub mod background;
mod costs;
mod layout;
mod plan_cache;
mod repacked;
mod rows;
mod runs;
mod slices;
mod source;
mod stages;
mod write;

pub use costs::{columns_pay, costs, rows_come_first};
pub use layout::{Device, Layout, MatrixFacts, has_shorter};
pub use plan_cache::{Key, Placement, PlanCache, Repack};
pub use repacked::Repacked;
pub use rows::{KernelMatrix, RowValues, Source, StoredValues, check_type};
pub use runs::{Runs, count_run, runs};
pub use slices::{Apart, Slicer, Slices};
pub use source::{AT_CELLS, AT_HISTORY, MATRIX_WORDS, SEGMENT, batch, header, joined};
pub use stages::{Stage, solve_stages};
pub use write::{Generated, Product, Shape, write};
