//! Sparse matrices on the host.
//!
//! - [`Csr`] is the format everything else is built from; [`Triplets`] assembles it from entries in any order, [`Elements`] from
//!   finite elements, [`Assembly`] from equations, with unknowns that are fixed.
//! - [`Stencil`], [`Dia`], [`Sell`] (and ELLPACK) and [`Bcsr`] hold what suits them in less, [`Packed`] compressed rows in fewer
//!   bytes, [`Pkt`] rows in parts that local memory holds the x of, [`Dense`] what has few zeros, [`Hyb`] (and COO) rows of any length; [`choose_format`] says which does.
//! - [`Triangular`] holds triangular matrices for solves, with the levels of their rows.
//! - [`algebra`] multiplies and transposes.
//! - [`factor`] makes incomplete factorisations; [`by_colours`] colours rows.
//! - [`matching`] matches rows with columns.
//! - [`Pair`] puts a matrix and its conjugate transpose on a device.
//! - [`reorder`] finds an order of the rows that brings what is coupled together.
//! - [`Spec`] makes model problems of any size by name.
//! - [`io`] reads and writes files: Matrix Market ([`mm`]), NumPy and SciPy, PETSc, MATLAB, Rutherford–Boeing.
//! - [`open`] takes either, a file or a name.
//! - [`Structure`] says what a matrix looks like, [`spy`] counts entries for a picture of it.
pub mod algebra;
mod assemble;
mod assembly;
mod bcsr;
mod blocks;
mod colours;
mod csr;
mod csr_ref;
mod cut;
mod dense;
mod dia;
pub mod factor;
mod footprint;
mod generate;
mod graph;
mod hyb;
mod hyb_layout;
mod interop;
pub mod io;
mod lengths;
mod matching;
mod mirror;
mod packed;
mod padding;
mod pair;
mod parts;
mod permutation;
mod pkt;
mod reorder;
mod select;
mod sell;
mod stencil;
mod structure;
mod triangular;
mod triplets;

pub use assembly::{Assembled, Assembly, AssemblyPlan, Elements, FIXED};
pub use bcsr::{BLOCK_SIZES, Bcsr};
pub use blocks::LEAST_FILL;
pub use colours::{by_colours, greedy_colours};
pub use csr::Csr;
pub use csr_ref::CsrRef;
pub use dense::Dense;
pub use dia::{DIA_ROWS, Dia};
pub use generate::{Generator, Spec, look_alikes};
pub use hyb::Hyb;
pub use hyb_layout::HybLayout;
pub use io::{field, mm, open};
pub use matching::matching;
pub use packed::{Packed, Values, widened};
pub use pair::Pair;
pub use parts::{compact_parts, parts};
pub use permutation::Permutation;
pub use pkt::{PACKET, Pkt};
pub use reorder::{ORDERS, OrderInfo, Profile, by_length, by_parts, reorder, reverse_cuthill_mckee};
pub use select::{Candidate, FORMATS, FormatInfo, candidates, choose_format, choose_lasting_format, convert};
pub use sell::{SLICE, Sell};
pub use stencil::{MOST_NEIGHBOURS, Stencil};
pub use structure::{Structure, spy};
pub use triangular::{Half, Triangular};
pub use triplets::Triplets;

/// The programs of a page of the guide.
#[cfg(all(
    doctest,
    feature = "faer024",
    feature = "nalgebra-sparse012",
    feature = "serde",
    feature = "sprs011"
))]
#[doc = include_str!("../../../docs/guide/interop.md")]
pub struct Interop;
