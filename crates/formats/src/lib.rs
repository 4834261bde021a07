//! Sparse matrices on the host.
//!
//! - [`Csr`] is the format that everything else is built from; [`Triplets`] assembles it from entries in any
//!   order, [`Elements`] from finite elements, [`Assembly`] from equations, with optional fixed unknowns.
//! - [`Stencil`], [`Dia`], [`Sell`] (and ELLPACK) and [`Bcsr`] store suitable matrices in less memory,
//!   [`Packed`] stores compressed rows in fewer bytes, [`Pkt`] rows in parts whose x fits in local memory,
//!   [`Dense`] matrices with few zeros, [`Hyb`] (and COO) rows of any length; [`choose_format`] selects one.
//! - [`Interpolation`] is the linear interpolation between a grid and a coarser one, which stores nothing.
//! - [`Triangular`] stores triangular matrices for solves, with the levels of their rows.
//! - [`algebra`] multiplies and transposes.
//! - [`factor`] computes incomplete factorisations; [`by_colours`] colours rows.
//! - [`matching`] matches rows with columns, [`scaled_diagonal`] by large entries; [`block_triangular`] finds blocks.
//! - [`Pair`] puts a matrix and its conjugate transpose on a device.
//! - [`reorder`] finds an order of the rows that keeps coupled rows close together.
//! - [`parallel`] shares work among threads; [`interrupt`] ends it.
//! - [`Structure`] analyses a matrix, [`spy`] counts entries for a picture of it.
//! - Matrices of other crates convert by `From` and `TryFrom`, each behind a feature with the crate's name and version. They
//!   are here and not in the crate of files, `lacuna-io`, since only the crate of [`Csr`] may implement such a trait for it.
//!
//! Files and generators of model problems are the crate `lacuna-io`.
pub mod algebra;
pub mod build;
mod choose;
pub mod factor;
mod interop;
pub mod interrupt;
mod order;
pub mod parallel;
mod storage;

pub use algebra::CsrTransposed;
pub use build::assembly::{Assembled, Assembly, AssemblyPlan, Elements, FIXED};
pub use build::csr_ref::CsrRef;
pub use build::triplets::Triplets;
pub use choose::blocks::LEAST_FILL;
pub use choose::select::{
    Candidate, FORMATS, FormatInfo, VARIANTS, candidates, check_format, choose_format, choose_lasting_format,
    choose_stencil, convert,
};
pub use choose::structure::{Structure, spy};
pub use order::colours::{by_colours, greedy_colours};
pub use order::components::{BlockTriangular, block_triangular};
pub use order::dissection::{Dissection, nested_dissection};
pub use order::matching::matching;
pub use order::minimum_degree::{MinimumDegree, minimum_degree};
pub use order::parts::{compact_parts, parts};
pub use order::permutation::Permutation;
pub use order::reorder::{
    MATCHING, ORDERS, OrderInfo, Profile, by_length, by_parts, reorder, reverse_cuthill_mckee,
};
pub use order::transversal::{ScaledDiagonal, heaviest_diagonal, scaled_diagonal};
pub use storage::bcsr::{BLOCK_SIZES, Bcsr};
pub use storage::csr::Csr;
pub use storage::dense::Dense;
pub use storage::dia::{DIA_ROWS, Dia};
pub use storage::hyb::Hyb;
pub use storage::hyb_layout::HybLayout;
pub use storage::interpolation::{Grids, Interpolation, Taps};
pub use storage::is_own_type;
pub use storage::packed::{Packed, Values, widened};
pub use storage::pair::Pair;
pub use storage::pkt::{PACKET, Pkt};
pub use storage::precision::rounded;
pub use storage::reads::{columns_read, places_before, solved_from};
pub use storage::remote::RemoteCsr;
pub use storage::sell::{SLICE, Sell};
pub use storage::stencil::{MOST_NEIGHBOURS, POSITIONS, Stencil, position};
pub use storage::triangular::{Half, Triangular};

/// Tests the programs of a page of the guide.
#[cfg(all(
    doctest,
    feature = "faer024",
    feature = "nalgebra-sparse012",
    feature = "serde",
    feature = "sprs011"
))]
#[doc = include_str!("../../../docs/guide/interop.md")]
pub struct Interop;
