//! Core types of Lacuna: number types, handles, formulas, passes, programs, and the trait that a device
//! implements.
//!
//! A Krylov method records its passes into a [`Program`]; a [`Backend`] runs it. This crate is independent of
//! any device.
mod algebra;
mod backend;
mod cost;
mod device;
mod divided;
mod error;
mod expr;
mod format;
mod instances;
mod ir;
mod operator;
mod reason;
mod run;
mod scope;
mod setters;
pub mod text;

pub use expr::cells;
pub use ir::{encode, lower};
pub use run::{arena, division, memory, pages, reference, sum};

pub use algebra::{
    AggregateArrays, Algebra, Array, FilteredArrays, LanczosArrays, Look, RowArrays, SparseArrays,
    StrongArrays,
};
pub use backend::{
    Backend, DeviceInfo, Finish, PlanId, Progress, Resource, Run, State, check_copy, next_section,
    step_by_step,
};
pub use cost::Cost;
pub use device::{Caller, Device, InUse, Lease, Outside, Owned, Plan, WeakDevice};
pub use divided::{Divided, OpAt};
pub use error::{Error, ErrorKind, Result};
pub use expr::formula::{Expr, Formula, Test};
pub use expr::handle::{Basis, Cell, Cells, Matrix, Untyped, Vector, as_one, next_serial};
pub use expr::number::{All, Each, Family, Number};
pub use expr::pass::{Confirm, Hessenberg, Pass};
pub use expr::scalar::{Double, NumberType, Scalar};
pub use format::{
    AnyFormat, Argument, CompressedRows, Format, FormatRefs, Formats, Graph, LONG_LANE, MAX_LANES,
    MOST_PIECES, PIECE, Products, check_pattern, is_long, piece_of, row_sum,
};
pub use instances::{instance, same};
pub use ir::control::{Control, History, Section};
pub use ir::operands::{Access, Operand};
pub use ir::operation::{Op, OpKind};
pub use ir::program::Program;
pub use ir::recorder::Recorder;
pub use ir::steps::{Operands, Steps, Stride};
pub use ir::triangle::{Triangle, not_triangular};
pub use num_complex::{Complex, Complex32, Complex64};
pub use operator::{
    Adjoint, AnyOp, Diagonal, Identity, LinOp, Product, Scaled, Shifted, Sum, Transposed, WithAdjoint,
    WithTranspose,
};
pub use reason::{NotConverged, Reason};
pub use run::aligned::AlignedVec;
pub use run::cache::Cached;
pub use run::fork::Process;
pub use run::host::{HostFunction, HostOperator, HostResult, catching, watched};
pub use run::load::crowded;
pub use run::reference::{Reference, add_term, dot_product, largest};
pub use run::store::{HostStore, check_rows, numbers};
pub use run::workers::Workers;
pub use scope::Scope;
