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
pub(crate) mod pattern;
pub(crate) mod pkt;
pub(crate) mod precision;
pub(crate) mod reads;
pub(crate) mod remote;
pub(crate) mod sell;
pub(crate) mod stencil;
pub(crate) mod triangular;

use crate::{Bcsr, Csr, Dense, Dia, Hyb, Interpolation, Packed, Pkt, Sell, Stencil, Triangular};
use lacuna_engine::{Format, Scalar};
use std::any::{Any, TypeId};

/// Whether a matrix is of a type of this crate: every index that it holds was checked when it was made, and none
/// changes. Kernels that read arrays unchecked rely on it, and on the type alone: what a format says of itself may be
/// wrong.
pub fn is_own_type<T: Scalar>(a: &dyn Format<T>) -> bool {
    let own = [
        TypeId::of::<Csr<T>>(),
        TypeId::of::<Packed<T>>(),
        TypeId::of::<Pkt<T>>(),
        TypeId::of::<Dia<T>>(),
        TypeId::of::<Stencil<T>>(),
        TypeId::of::<Sell<T>>(),
        TypeId::of::<Hyb<T>>(),
        TypeId::of::<Bcsr<T>>(),
        TypeId::of::<Dense<T>>(),
        TypeId::of::<Interpolation<T>>(),
        TypeId::of::<Triangular<T>>(),
    ];
    own.contains(&(a as &dyn Any).type_id())
}
