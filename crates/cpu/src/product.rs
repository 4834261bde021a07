//! `y ← A x` in the formats that the CPU has kernels for.
use crate::{
    spmv_bcsr, spmv_csr, spmv_dense, spmv_dia, spmv_hyb, spmv_packed, spmv_pkt, spmv_sell, spmv_stencil,
};
use lacuna_core::sum::SEGMENT;
use lacuna_core::{Format, Scalar};
use lacuna_formats::{Bcsr, Csr, Dense, Dia, Hyb, Packed, Pkt, SLICE, Sell};
use pulp::Simd;
use std::any::Any;
use std::sync::Arc;

/// What a byte of each format costs, relative to CSR: fitted so that the choice comes nearest to the fastest format of 91
/// products on one thread of an AMD EPYC, by `lacuna compare MATRIX... --methods spmv --formats all --backends cpu --threads 1
/// --rounds 5` of grids, elasticity, look-alikes (`gen:alike`) in f32 and f64, and 41 real matrices of 25 000 entries and more,
/// and of 34 on two threads by `lacuna bench papers`, with blocks before diagonals where two threads are far out of cache.
pub(crate) const COSTS: [(&str, f64); 11] = [
    ("csr", 1.0),
    ("stencil", 1.3),
    ("dia", 0.78),
    ("dense", 1.0),
    ("bcsr", 0.96),
    ("sell", 1.09),
    ("ell", 1.06),
    ("packed", 1.9),
    ("pkt", 1.3),
    ("hyb", 1.12),
    ("coo", 0.99),
];

/// A matrix as the kernels take it.
#[derive(Clone)]
pub(crate) enum Stored<T: Scalar> {
    Csr(Arc<Csr<T>>),
    Dia(Arc<Dia<T>>),
    /// ELLPACK too.
    Sell(Arc<Sell<T>>),
    Bcsr(Arc<Bcsr<T>>),
    /// COO too.
    Hyb(Arc<Hyb<T>>),
    Packed(Arc<Packed<T>>),
    Pkt(Arc<Pkt<T>>),
    Dense(Arc<Dense<T>>),
    Stencil(Arc<spmv_stencil::Lines<T>>),
    /// Any other format, through its reference product.
    Other(Arc<dyn Format<T>>),
}

impl<T: Scalar> Stored<T> {
    pub(crate) fn new(format: &Arc<dyn Format<T>>) -> Self {
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
            .or_else(|_| any().downcast().map(|a| Stored::Stencil(Arc::new(spmv_stencil::Lines::new(a)))))
            .unwrap_or_else(|_| Stored::Other(format.clone()))
    }

    /// Partial sums that a product takes ahead of the rows.
    pub(crate) fn partial_sums(&self) -> usize {
        if let Stored::Hyb(a) = self { a.partial_sums() } else { 0 }
    }

    /// Entries stored before a row, which shares of the work are balanced by.
    pub(crate) fn entries_before(&self, row: usize) -> usize {
        match self {
            Stored::Csr(a) => a.row_ptr()[row] as usize,
            Stored::Dia(a) => a.offsets().len() * row,
            Stored::Sell(a) => a.slice_ptr()[row.div_ceil(SLICE)] as usize * SLICE,
            Stored::Bcsr(a) => {
                let b = a.block();
                a.row_ptr()[row.div_ceil(b)] as usize * b * b
            }
            Stored::Hyb(a) => {
                let layout = a.layout();
                let in_slices = layout.slice_ptr()[row.div_ceil(SLICE)] as usize * SLICE;
                in_slices + layout.segment_ptr()[row.div_ceil(SEGMENT)] as usize - layout.in_slices()
            }
            Stored::Packed(a) => a.row_ptr()[row] as usize,
            Stored::Pkt(a) => a.slice_ptr()[row.div_ceil(SLICE)] as usize * SLICE + a.far_ptr()[row] as usize,
            Stored::Dense(a) => a.shape().1 * row,
            Stored::Stencil(a) => a.stencil.coefficients().len() * row,
            Stored::Other(a) => (a.nnz() / a.shape().0.max(1)) * row,
        }
    }

    /// `y[i] ← (A x)[i]` for the rows `start..end`, whole segments but for the last.
    ///
    /// # Safety
    /// `x` must be valid for the columns of the matrix, `y` for its rows, none of which `x` holds, and `sums` for its partial
    /// sums, which must be there; the rows must exist.
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
        // SAFETY: as the caller promises.
        unsafe {
            match self {
                Stored::Csr(a) => spmv_csr::rows(a, x, y, start, end),
                Stored::Dia(a) => spmv_dia::rows(a, x, y, start, end),
                Stored::Sell(a) => spmv_sell::rows(a, x, y, start, end),
                Stored::Bcsr(a) => spmv_bcsr::rows(simd, a, x, y, start, end),
                Stored::Hyb(a) => spmv_hyb::rows(a, x, y, sums, start, end),
                Stored::Dense(a) => spmv_dense::rows(simd, a, x, y, start, end),
                Stored::Packed(a) => spmv_packed::rows(a, x, y, start, end),
                Stored::Pkt(a) => spmv_pkt::rows(a, x, y, start, end),
                Stored::Stencil(a) => spmv_stencil::rows(a, x, y, start, end),
                Stored::Other(a) => {
                    let x = std::slice::from_raw_parts(x, a.shape().1);
                    for i in start..end {
                        *y.add(i) = a.row(i, x);
                    }
                }
            }
        }
    }
}
