//! `y ← A x` in the formats with CPU kernels.
pub(crate) mod bcsr;
pub(crate) mod csr;
pub(crate) mod dense;
pub(crate) mod dia;
pub(crate) mod hyb;
pub(crate) mod interpolation;
pub(crate) mod packed;
pub(crate) mod pkt;
pub(crate) mod sell;
pub(crate) mod stencil;

use crate::simd::outlined::outlined_rows;
use lacuna_engine::{Cost, Each, Family, Format, Matrix, Scalar};
use lacuna_formats::{Bcsr, Csr, Dense, Dia, Hyb, Interpolation, Packed, Pkt, Sell, places_before};
use pulp::Simd;
use std::any::Any;
use std::sync::Arc;

/// Estimated cost of a product in each format. Fitted so that the cheapest format comes closest to the
/// fastest one for 87 products of real numbers on two threads of an Intel Xeon, in runs earlier than the one
/// in docs/results/two-cores-formats.md. `dia`, `dense` and `bcsr` were fitted before, also on two threads of
/// an AMD EPYC. `stencil` was lowered when `dia-sym` was added: for 9- and 27-point grids in `f32` it takes
/// 0.29 and 0.55 of the time of `dia-sym`.
pub(crate) const COSTS: [Cost; 11] = [
    Cost::of_bytes("csr", 1.0).and_places(6.0).and_rows(10.0, 50.0),
    Cost::of_bytes("stencil", 0.5).and_places(1.0),
    Cost::of_bytes("dia", 0.67),
    Cost::of_bytes("dense", 0.15).and_places(2.3),
    Cost::of_bytes("bcsr", 0.55).and_places(2.6),
    Cost::of_bytes("sell", 0.65).and_places(1.2).and_rows(5.0, 0.0),
    Cost::of_bytes("ell", 0.66).and_places(1.2).and_rows(5.0, 0.0),
    Cost::of_bytes("packed", 1.5).and_places(3.0).and_rows(10.0, 50.0),
    Cost::of_bytes("pkt", 1.8).and_places(7.0).and_rows(20.0, 0.0),
    Cost::of_bytes("hyb", 0.85).and_places(5.0).and_rows(4.0, 0.0),
    Cost::of_bytes("coo", 1.0).and_places(2.0).and_rows(35.0, 50.0),
];

/// A matrix in the form that the kernels take.
#[derive(Clone)]
pub(crate) enum Stored<T: Scalar> {
    Csr(Arc<Csr<T>>),
    Dia(Arc<Dia<T>>),
    /// Also ELLPACK.
    Sell(Arc<Sell<T>>),
    Bcsr(Arc<Bcsr<T>>),
    /// Also COO.
    Hyb(Arc<Hyb<T>>),
    Packed(Arc<Packed<T>>),
    Pkt(Arc<Pkt<T>>),
    Dense(Arc<Dense<T>>),
    Stencil(Arc<stencil::Lines<T>>),
    Interpolation(Arc<Interpolation<T>>),
    /// Any other format, by its reference product.
    Other(Opaque<T>),
}

/// A format of any type. Its code may do anything that safe code can: lengths are those of the handle.
#[derive(Clone)]
pub(crate) struct Opaque<T: Scalar> {
    format: Arc<dyn Format<T>>,
    cols: usize,
    /// Entries of a row if all rows had as many.
    each: usize,
}

impl<T: Scalar> Opaque<T> {
    /// `y[i] ← (A x)[i]` for the rows `start..end`, for a format that may panic.
    ///
    /// # Safety
    /// As [`Stored::rows`].
    unsafe fn rows(&self, x: *const T, y: *mut T, start: usize, end: usize) {
        // SAFETY: `x` is valid for the columns, as the caller promises.
        let x = unsafe { std::slice::from_raw_parts(x, self.cols) };
        for i in start..end {
            let row = self.format.row(i, x);
            // SAFETY: a row, as the caller promises.
            unsafe { *y.add(i) = row };
        }
    }
}

/// The [`Family`] of stored matrices.
#[derive(Clone)]
pub(crate) enum Stores {}

impl Family for Stores {
    type Of<T: Scalar> = Stored<T>;
}

/// A stored matrix of any number type.
pub(crate) type AnyStored = Each<Stores>;

impl<T: Scalar> Stored<T> {
    /// The matrix of a handle.
    pub(crate) fn new(format: &Arc<dyn Format<T>>, handle: Matrix) -> Self {
        let any = || -> Arc<dyn Any + Send + Sync> { format.clone() };
        any()
            .downcast()
            .map(Stored::Csr)
            .or_else(|_| any().downcast().map(Stored::Dia))
            .or_else(|_| any().downcast().map(Stored::Sell))
            .or_else(|_| any().downcast().map(Stored::Bcsr))
            .or_else(|_| any().downcast().map(Stored::Hyb))
            .or_else(|_| any().downcast().map(Stored::Packed))
            .or_else(|_| any().downcast().map(Stored::Pkt))
            .or_else(|_| any().downcast().map(Stored::Dense))
            .or_else(|_| any().downcast().map(Stored::Interpolation))
            .or_else(|_| any().downcast().map(|a| Stored::Stencil(Arc::new(stencil::Lines::new(a)))))
            .unwrap_or_else(|_| {
                let each = handle.nnz / handle.rows.max(1);
                Stored::Other(Opaque { format: format.clone(), cols: handle.cols, each })
            })
    }

    /// Whether a product runs code of the caller's, which may panic.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self, Stored::Other(_))
    }

    /// Partial sums that a product computes before the rows.
    pub(crate) fn partial_sums(&self) -> usize {
        if let Stored::Hyb(a) = self { a.partial_sums() } else { 0 }
    }

    /// Entries stored before a row; used to balance the shares.
    pub(crate) fn entries_before(&self, row: usize) -> usize {
        let of = |a: &dyn Format<T>| places_before(a, row).unwrap_or(0);
        match self {
            Stored::Csr(a) => of(&**a),
            Stored::Dia(a) => of(&**a),
            Stored::Sell(a) => of(&**a),
            Stored::Bcsr(a) => of(&**a),
            Stored::Hyb(a) => of(&**a),
            Stored::Packed(a) => of(&**a),
            Stored::Pkt(a) => of(&**a),
            Stored::Dense(a) => of(&**a),
            Stored::Stencil(a) => of(&*a.stencil),
            Stored::Interpolation(a) => of(&**a),
            Stored::Other(a) => a.each * row,
        }
    }

    /// `y[i] ← (A x)[i]` for the rows `start..end`, whole segments except for the last.
    ///
    /// # Safety
    /// `x` must be valid for the columns of the matrix, `y` for its rows without overlap with `x`, and `sums`
    /// for its partial sums, which must already be computed; the rows must exist.
    #[inline(always)]
    pub(crate) unsafe fn rows<S: Simd>(
        &self,
        simd: S,
        x: *const T,
        y: *mut T,
        sums: *const T,
        start: usize,
        end: usize,
    ) {
        match self {
            // SAFETY: as the caller promises.
            Stored::Csr(a) => unsafe { csr::rows(simd, a, x, y, start, end) },
            Stored::Dia(a) => outlined_rows!(simd, dia::rows(a, x, y, start, end)),
            Stored::Sell(a) => outlined_rows!(simd, sell::rows(simd, a, x, y, start, end)),
            Stored::Bcsr(a) => outlined_rows!(simd, bcsr::rows(simd, a, x, y, start, end)),
            Stored::Hyb(a) => outlined_rows!(simd, hyb::rows(simd, a, x, y, sums, start, end)),
            Stored::Dense(a) => outlined_rows!(simd, dense::rows(simd, a, x, y, start, end)),
            // SAFETY: as the caller promises.
            Stored::Packed(a) => unsafe { packed::rows(simd, a, x, y, start, end) },
            Stored::Pkt(a) => outlined_rows!(simd, pkt::rows(simd, a, x, y, start, end)),
            Stored::Stencil(a) => outlined_rows!(simd, stencil::rows(a, x, y, start, end)),
            Stored::Interpolation(a) => outlined_rows!(simd, interpolation::rows(a, x, y, start, end)),
            // SAFETY: as the caller promises.
            Stored::Other(a) => unsafe { a.rows(x, y, start, end) },
        }
    }
}
