//! One thread's share of one step, a cache-sized chunk of rows at a time.
use crate::apart::apart;
use crate::compile::{Counts, Kind, Step};
use crate::dot::dot_segments;
use crate::spmv_hyb;
use crate::sweep::{self, BoundDot, Sweep};
use crate::update::{Bound, BoundTerm, BoundUpdate};
use lacuna_core::lower::Coefficient;
use lacuna_core::sum::SEGMENT;
use lacuna_core::{Format, Scalar};
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Bytes of one vector in a chunk of a product: with the eight vectors of a long pass it stays within a 32 KiB cache.
const CHUNK_BYTES: usize = 4096;
/// The same under a basis, whose columns stream past: long enough for the prefetcher, short enough for the second-level
/// cache.
const BASIS_CHUNK_BYTES: usize = 65536;
/// Columns of a basis that are projected on at a time while a cache holds them; the others one by one in the order of memory,
/// which the prefetcher follows.
const TOGETHER: usize = 4;
/// Columns that are added at a time while a cache holds them; [`TOGETHER`] of others.
const ADDED: usize = 8;
/// Bytes of such columns at the most.
const NEAR: usize = 8 << 20;

/// What a thread needs to run its share of a step.
pub(crate) struct Share<'a, T: Scalar> {
    pub(crate) step: &'a Step<T>,
    /// Vectors by slot, each that the step names valid for its whole length and padded with zeros to a whole segment.
    pub(crate) vectors: &'a [*mut T],
    pub(crate) cells: &'a [T],
    /// Its pass, with pointers found.
    pub(crate) sweep: Sweep<'a, T>,
    /// The segments of this thread; where the step is about pieces, its pieces.
    pub(crate) segments: Range<usize>,
    /// Segment sums: sum `d` of segment `s` at `d · segments + s`.
    pub(crate) sums: *mut T,
    /// Sums of the pieces of long rows.
    pub(crate) pieces: *mut T,
}

/// What a thread binds for a step, in room for that of any.
#[derive(Default)]
pub(crate) struct Binding<T> {
    updates: Vec<BoundUpdate<T>>,
    terms: Vec<BoundTerm<T>>,
    dots: Vec<BoundDot<T>>,
}

impl<T: Scalar> Binding<T> {
    /// Nothing bound, and no room.
    pub(crate) fn new() -> Self {
        Binding { updates: Vec::new(), terms: Vec::new(), dots: Vec::new() }
    }

    /// Makes room for that of any step.
    pub(crate) fn reserve(&mut self, most: Counts) {
        self.updates.resize(most.updates, BoundUpdate::NONE);
        self.terms.resize(most.terms, BoundTerm::none());
        self.dots.resize(most.dots, BoundDot::NONE);
    }

    /// Finds the pointers and values of a step's pass: the one place where its vectors are found.
    pub(crate) fn bind(
        &mut self,
        step: &Step<T>,
        vectors: &[*mut T],
        cells: &[T],
        sums: *mut T,
    ) -> Sweep<'_, T> {
        let mut terms = self.terms.iter_mut();
        let mut count = 0;
        for (update, row) in self.updates.iter_mut().zip(&step.updates) {
            *update = BoundUpdate {
                dst: vectors[row.dst as usize],
                terms: row.terms.len(),
                multiplies: row.multiplies,
            };
            for (term, bound) in row.terms.iter().zip(terms.by_ref()) {
                let (coefficient, value) = match term.coefficient {
                    Coefficient::One => (Bound::One, T::one()),
                    Coefficient::MinusOne => (Bound::MinusOne, -T::one()),
                    Coefficient::Cell(c) => (Bound::Value, cells[c as usize]),
                };
                let factor = term.factor.map_or(std::ptr::null_mut(), |f| vectors[f as usize]);
                let vector = match term.set {
                    true => std::ptr::null(),
                    false => vectors[term.vector as usize].cast_const(),
                };
                *bound = BoundTerm { coefficient, value, factor, vector };
            }
            count += row.terms.len();
        }
        let all = step.n.div_ceil(SEGMENT);
        let before = step.sums() - step.dots.len();
        for (d, (bound, dot)) in self.dots.iter_mut().zip(&step.dots).enumerate() {
            let (a, b) = (vectors[dot.a as usize], vectors[dot.b as usize]);
            *bound = BoundDot { a, b, sums: sums.wrapping_add((before + d) * all) };
        }
        Sweep {
            updates: &self.updates[..step.updates.len()],
            terms: &self.terms[..count],
            dots: &self.dots[..step.dots.len()],
            plain: step.plain,
        }
    }
}

/// Runs a share with the best instructions there are.
///
/// # Safety
/// The vectors and `sums` must be valid for the step, and no other thread may write what this share reads or touch
/// what it writes.
pub(crate) unsafe fn run<T: Scalar>(arch: Arch, share: &Share<'_, T>) {
    struct Inlined<'a, T: Scalar>(&'a Share<'a, T>);
    impl<T: Scalar> WithSimd for Inlined<'_, T> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            // SAFETY: as the caller of `run` promises.
            unsafe { chunks(simd, self.0) }
        }
    }
    struct Columns<'a, T: Scalar>(&'a Share<'a, T>);
    impl<T: Scalar> WithSimd for Columns<'_, T> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            // SAFETY: as the caller of `run` promises.
            unsafe { columns(self.0) }
        }
    }
    match share.step.kind {
        Kind::Spmm { .. } => arch.dispatch(Columns(share)),
        _ => arch.dispatch(Inlined(share)),
    }
}

/// The rows of a product by a kernel for several columns, which has no sweep.
///
/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn columns<T: Scalar>(share: &Share<'_, T>) {
    let Kind::Spmm { a, x, y, columns } = &share.step.kind else { return };
    let of = |first: u32| &share.vectors[first as usize..(first + columns) as usize];
    for segment in share.segments.clone() {
        let (start, end) = (segment * SEGMENT, ((segment + 1) * SEGMENT).min(share.step.n));
        // SAFETY: rows of this share, as the caller promises.
        unsafe { a.columns(of(*x), of(*y), start, end) };
    }
}

#[inline(always)]
unsafe fn chunks<T: Scalar, S: Simd>(simd: S, share: &Share<'_, T>) {
    let Share { step, vectors, .. } = *share;
    if let Kind::Pieces { a, x, columns } = &step.kind {
        for j in 0..*columns as usize {
            let sums = share.pieces.wrapping_add(j * a.partial_sums());
            // SAFETY: pieces of this thread, as the caller promises.
            unsafe { spmv_hyb::pieces(simd, a, vectors[*x as usize + j], sums, share.segments.clone()) };
        }
        return;
    }
    let bytes = match step.kind {
        Kind::Sweep => usize::MAX,
        Kind::BasisDot { .. } | Kind::BasisAxpy { .. } => BASIS_CHUNK_BYTES,
        // The matrix too comes from cache for every column but the first.
        Kind::Spmv { columns: 2.., .. } => 0,
        Kind::Spmv { .. } | Kind::Spmm { .. } | Kind::Pieces { .. } | Kind::Host { .. } => CHUNK_BYTES,
    };
    let chunk = (bytes / size_of::<T>() / SEGMENT).max(1);
    let mut segment = share.segments.start;
    while segment < share.segments.end {
        let last = segment.saturating_add(chunk).min(share.segments.end);
        let (start, end) = (segment * SEGMENT, (last * SEGMENT).min(step.n));
        // SAFETY: rows of this share, as the caller promises.
        unsafe {
            lead(simd, share, segment..last, start, end);
            sweep::run(simd, &share.sweep, segment..last, step.n);
        }
        segment = last;
    }
}

/// The part of a step before its sweep, for one chunk.
#[inline(always)]
unsafe fn lead<T: Scalar, S: Simd>(
    simd: S,
    share: &Share<'_, T>,
    segments: Range<usize>,
    start: usize,
    end: usize,
) {
    let Share { step, vectors, .. } = *share;
    // SAFETY: rows of this share, as the caller promises.
    unsafe {
        match &step.kind {
            Kind::Sweep | Kind::Spmm { .. } | Kind::Pieces { .. } | Kind::Host { .. } => {}
            Kind::Spmv { a, x, y, columns } => {
                let sums = a.partial_sums();
                for j in 0..*columns as usize {
                    let (x, y) = (vectors[*x as usize + j], vectors[*y as usize + j]);
                    a.rows(simd, x, y, share.pieces.wrapping_add(j * sums), start, end);
                }
            }
            Kind::BasisDot { .. } => apart(
                simd,
                #[inline(always)]
                move || project(simd, share, segments),
            ),
            Kind::BasisAxpy { .. } => apart(
                simd,
                #[inline(always)]
                move || add_columns(simd, share, segments),
            ),
        }
    }
}

/// The segment sums of the columns of a basis with a vector.
///
/// # Safety
/// As [`run`], for these segments.
#[inline(always)]
unsafe fn project<T: Scalar, S: Simd>(simd: S, share: &Share<'_, T>, segments: Range<usize>) {
    let Share { step, vectors, .. } = *share;
    let Kind::BasisDot { first, columns, w, .. } = step.kind else { return };
    let (first, columns, w) = (first as usize, columns as usize, vectors[w as usize]);
    let near = step.n * columns * size_of::<T>() <= NEAR;
    let together = if near { columns / TOGETHER * TOGETHER } else { 0 };
    let all = step.n.div_ceil(SEGMENT);
    // SAFETY: rows of this share, as the caller promises.
    unsafe {
        for j in (0..together).step_by(TOGETHER) {
            for s in segments.clone() {
                let mut of = [std::ptr::null::<T>(); TOGETHER];
                of.iter_mut().enumerate().for_each(|(c, v)| *v = vectors[first + j + c].add(s * SEGMENT));
                let sums = dot_segments(simd, of, w.add(s * SEGMENT));
                for (c, sum) in sums.into_iter().enumerate() {
                    *share.sums.add((j + c) * all + s) = sum;
                }
            }
        }
        for j in together..columns {
            for s in segments.clone() {
                let of = [vectors[first + j].add(s * SEGMENT).cast_const()];
                let [sum] = dot_segments(simd, of, w.add(s * SEGMENT));
                *share.sums.add(j * all + s) = sum;
            }
        }
    }
}

/// Adds the columns of a basis to a vector, in order, some at a time.
///
/// # Safety
/// As [`run`], for these segments.
#[inline(always)]
unsafe fn add_columns<T: Scalar, S: Simd>(simd: S, share: &Share<'_, T>, segments: Range<usize>) {
    let Share { step, vectors, cells, .. } = *share;
    let Kind::BasisAxpy { first, columns, w, h, add } = step.kind else { return };
    let w = vectors[w as usize];
    // The vector itself, and columns whose coefficient is not zero.
    let mut terms = [BoundTerm { vector: w.cast_const(), ..BoundTerm::none() }; ADDED + 1];
    let near = step.n * columns as usize * size_of::<T>() <= NEAR;
    let most = if near { ADDED } else { TOGETHER };
    let mut count = 1;
    for j in 0..columns {
        let value = cells[(h + j) as usize];
        if value != T::zero() {
            let value = if add { value } else { -value };
            let vector = vectors[(first + j) as usize];
            terms[count] = BoundTerm { coefficient: Bound::Value, value, vector, ..terms[0] };
            count += 1;
        }
        if count > most || j + 1 == columns && count > 1 {
            let updates = &[BoundUpdate { dst: w, terms: count, multiplies: false }];
            let plain = !T::KIND.is_complex();
            let sweep = Sweep { updates, terms: &terms[..count], dots: &[], plain };
            // SAFETY: rows of this share, as the caller promises.
            unsafe { sweep::run_here(simd, &sweep, segments.clone(), step.n) };
            count = 1;
        }
    }
}
