//! The storage formats: their contents, their conversion from compressed rows and the cost of their products.
pub(crate) mod bcsr;
pub(crate) mod checks;
pub(crate) mod csr;
pub(crate) mod dense;
pub(crate) mod dia;
pub(crate) mod hyb;
pub(crate) mod hyb_layout;
pub(crate) mod interpolation;
pub(crate) mod packed;
pub(crate) mod padding;
pub(crate) mod pair;
pub(crate) mod pkt;
pub(crate) mod sell;
pub(crate) mod stencil;
pub(crate) mod triangular;
