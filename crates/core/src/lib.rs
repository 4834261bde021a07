//! The vocabulary of Lacuna: number types, handles, formulas, passes, programs, and the trait a device implements.
//!
//! A Krylov method records its passes into a [`Program`]; a [`Backend`] runs it. Nothing here names a device.
pub mod cells;
pub mod encode;
pub mod lower;
pub mod memory;
pub mod sum;
pub mod text;

mod backend;
mod control;
mod cost;
mod error;
mod fork;
mod format;
mod formula;
mod handle;
mod host;
mod instances;
mod linear;
mod lines;
mod operands;
mod operator;
mod outcome;
pub mod pages;
mod pass;
mod program;
mod recorder;
mod reference;
mod scalar;
mod steps;
mod store;
mod triangle;

pub use backend::{
    Backend, DeviceInfo, Finish, Mark, Plan, Progress, Run, Ticket, next_section, step_by_step,
};
pub use control::{Control, History, Section};
pub use cost::Cost;
pub use error::{Error, Result};
pub use fork::check_process;
pub use format::{
    Argument, Format, LONG_LANE, MAX_LANES, MOST_PIECES, PIECE, check_pattern, is_long, piece_of, row_sum,
};
pub use formula::{Expr, Formula, Test};
pub use handle::{Basis, Cell, Cells, Matrix, Vector, next_serial};
pub use host::{HostFunction, HostOperator, StepByStep, host_call};
pub use instances::instance;
pub use lines::Lines;
pub use num_complex::{Complex, Complex32, Complex64};
pub use operands::{Access, Operand};
pub use operator::{
    Adjoint, Diagonal, Identity, LinOp, Product, Scaled, Shifted, Sum, Transposed, WithAdjoint, WithTranspose,
};
pub use outcome::Reason;
pub use pass::{Confirm, Hessenberg, Pass, Rotate, Statement};
pub use program::{Kind as OpKind, Op, Program};
pub use recorder::{Memory, Recorder};
pub use reference::{Reference, add_term, dot_product, reference_step};
pub use scalar::{Kind, Scalar};
pub use steps::{Growth, Numbered, Steps};
pub use store::HostStore;
pub use triangle::{Triangle, not_triangular};
