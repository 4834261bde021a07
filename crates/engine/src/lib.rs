//! Core types of Lacuna: number types, handles, formulas, passes, programs, and the trait that a device
//! implements.
//!
//! A Krylov method records its passes into a [`Program`]; a [`Backend`] runs it. This crate is independent of
//! any device.
mod backend;
mod cost;
mod error;
mod expr;
mod format;
mod instances;
mod ir;
mod operator;
mod reason;
mod run;
pub mod text;

pub use expr::cells;
pub use ir::{encode, lower};
pub use run::{memory, pages, sum};

pub use backend::{
    Backend, DeviceInfo, Finish, Mark, Plan, Progress, Run, Ticket, next_section, step_by_step,
};
pub use cost::Cost;
pub use error::{Error, Result};
pub use expr::formula::{Expr, Formula, Test};
pub use expr::handle::{Basis, Cell, Cells, Matrix, Vector, next_serial};
pub use expr::pass::{Confirm, Hessenberg, Pass, Rotate, Statement};
pub use expr::scalar::{Kind, Scalar};
pub use format::{
    Argument, CompressedRows, Format, Graph, LONG_LANE, MAX_LANES, MOST_PIECES, PIECE, check_pattern,
    is_long, piece_of, row_sum,
};
pub use instances::instance;
pub use ir::control::{Control, History, Section};
pub use ir::operands::{Access, Operand};
pub use ir::operation::{Kind as OpKind, Op};
pub use ir::program::Program;
pub use ir::recorder::{Memory, Recorder};
pub use ir::steps::{Operands, Steps, Stride};
pub use ir::triangle::{Triangle, not_triangular};
pub use num_complex::{Complex, Complex32, Complex64};
pub use operator::{
    Adjoint, Diagonal, Identity, LinOp, Product, Scaled, Shifted, Sum, Transposed, WithAdjoint, WithTranspose,
};
pub use reason::Reason;
pub use run::aligned::AlignedVec;
pub use run::fork::check_process;
pub use run::host::{HostFunction, HostOperator, StepByStep, host_call};
pub use run::reference::{Reference, add_term, dot_product, reference_step};
pub use run::store::HostStore;
