//! One thread's share of one step, in cache-sized chunks of rows.
use crate::pass::dot::{dot_segment, dot_segments, largest_segment, weighted_segment};
use crate::pass::fused;
use crate::pass::sweep;
use crate::pass::update::{Bound, BoundTerm, accumulate, round, update};
use crate::plan::step::{Dot, Step, StepKind};
use crate::run::block;
use crate::simd::known::Known;
use crate::spmv::{Stored, hyb};
use lacuna_engine::lower::Coefficient;
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::{Format, Scalar};
use pulp::{Arch, Simd, WithSimd};

/// Bytes of one vector in a chunk: the eight vectors of a long pass then fit in a 32 KiB cache.
const CHUNK_BYTES: usize = 4096;
/// The same for a basis, whose columns are streamed: long enough for the prefetcher, short enough for the
/// second-level cache.
const BASIS_CHUNK_BYTES: usize = 65536;
/// Number of basis columns whose pointers are resolved at a time.
const COLUMNS: usize = 64;
/// Number of basis columns projected on at a time while they fit in a cache; otherwise one by one in memory
/// order, which suits the prefetcher.
const TOGETHER: usize = 4;
/// Maximum bytes of such columns.
const NEAR: usize = 8 << 20;

/// The inputs of a thread for its share of a step.
pub(crate) struct Share<'a, T: Scalar> {
    pub(crate) step: &'a Step,
    /// Vectors by slot; each one used by the step is valid for its whole length and zero-padded to a whole
    /// segment.
    pub(crate) vectors: &'a [*mut T],
    pub(crate) cells: &'a [T],
    /// The bound terms of all updates, one update after another.
    pub(crate) terms: &'a [BoundTerm<T>],
    /// The segments of this thread; for a step on pieces, its pieces.
    pub(crate) segments: std::ops::Range<usize>,
    /// Segment sums: sum `d` of segment `s` at `d · segments + s`.
    pub(crate) sums: *mut T,
    /// Sums of the pieces of long rows.
    pub(crate) pieces: *mut T,
}

/// Resolves the pointers and values of a step's terms; `terms` must have room for them.
pub(crate) fn bind<T: Scalar>(step: &Step, vectors: &[*mut T], cells: &[T], terms: &mut [BoundTerm<T>]) {
    let mut rest = terms;
    for row in &step.updates {
        let (own, more) = rest.split_at_mut(row.terms.len());
        for (bound, term) in own.iter_mut().zip(&row.terms) {
            *bound = BoundTerm {
                vector: vectors[term.vector as usize],
                factor: term.factor.map_or(std::ptr::null(), |f| vectors[f as usize]),
                coefficient: match term.coefficient {
                    Coefficient::One => Bound::One,
                    Coefficient::MinusOne => Bound::MinusOne,
                    Coefficient::Cell(c) => Bound::Value(cells[c as usize]),
                },
            };
        }
        rest = more;
    }
}

/// Runs a share with the best instructions available.
///
/// # Safety
/// The vectors and `sums` must be valid for the step, and no other thread may write what this share reads or
/// access what it writes.
#[inline(never)]
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
    struct ColumnTask<'a, T: Scalar>(&'a Share<'a, T>);
    impl<T: Scalar> WithSimd for ColumnTask<'_, T> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            // SAFETY: as the caller of `run` promises.
            unsafe { columns(self.0) }
        }
    }
    match share.step.kind {
        StepKind::Spmm { .. } => arch.dispatch(ColumnTask(share)),
        _ => arch.dispatch(Inlined(share)),
    }
}

/// The rows of a product by a kernel for several columns, which has no sweep.
///
/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn columns<T: Scalar>(share: &Share<'_, T>) {
    let StepKind::Spmm { a, x, y, columns } = &share.step.kind else { return };
    let Some(a) = a.get::<T>() else { return };
    let of = |first: u32| &share.vectors[first as usize..(first + columns) as usize];
    for segment in share.segments.clone() {
        let (start, end) = (segment * SEGMENT, ((segment + 1) * SEGMENT).min(share.step.n));
        // SAFETY: rows of this share, as the caller promises.
        unsafe {
            a.columns(of(*x), of(*y), start, end);
            if share.step.rounds {
                of(*y).iter().for_each(|y| round(*y, start, end));
            }
        }
    }
}

#[inline(always)]
unsafe fn chunks<T: Scalar, S: Simd>(simd: S, share: &Share<'_, T>) {
    let Share { step, vectors, .. } = *share;
    if let StepKind::Pieces { a, x, columns } = &step.kind {
        let Some(Stored::Hyb(a)) = a.get::<T>() else { return };
        for j in 0..*columns as usize {
            let sums = share.pieces.wrapping_add(j * a.partial_sums());
            // SAFETY: pieces of this thread, as the caller promises.
            unsafe { hyb::pieces(simd, a, vectors[*x as usize + j], sums, share.segments.clone()) };
        }
        return;
    }
    // A single update runs as well in the loop of its shape.
    let unlisted = matches!(step.kind, StepKind::Sweep) && step.fused.is_none() && step.updates.len() > 1;
    let narrow = step.updates.iter().any(|update| update.rounds);
    let interpreted = !S::IS_SCALAR && !narrow && (Known::<T, S>::COMPLEX || unlisted);
    let bytes = match step.kind {
        StepKind::BasisGram { rows, columns, .. } | StepKind::BasisCombine { rows, columns, .. } => {
            block::chunk_bytes(rows + columns)
        }
        StepKind::Sweep if interpreted && step.dots.is_empty() => usize::MAX,
        StepKind::BasisDot { .. } | StepKind::BasisAxpy { .. } => BASIS_CHUNK_BYTES,
        // The matrix also comes from cache for every column after the first.
        StepKind::Spmv { columns: 2.., .. } => 0,
        _ => CHUNK_BYTES,
    };
    // Several sums at once do not read memory in order, which is harmless only in cache.
    let near = step.n * (step.dots.len() + 1) * size_of::<T>() <= NEAR;
    let chunk = (bytes / size_of::<T>() / SEGMENT).max(1);
    // SAFETY: as the caller promises.
    let mut segment = share.segments.start + unsafe { fused::run(simd, share) };
    let sums = step.dots.partition_point(|dot| !dot.largest);
    for (d, dot) in step.dots.iter().enumerate().skip(sums) {
        for s in share.segments.start..segment {
            // SAFETY: a segment of this share, which the loop has computed.
            unsafe { share.put(d, s, largest_segment(share.vectors[dot.a as usize].add(s * SEGMENT))) };
        }
    }
    while segment < share.segments.end {
        let last = segment.saturating_add(chunk).min(share.segments.end);
        let (start, end) = (segment * SEGMENT, (last * SEGMENT).min(step.n));
        // SAFETY: rows of this share, as the caller promises.
        unsafe {
            lead(simd, share, segment, last, start, end);
            if !interpreted {
                for ((dst, terms), row) in updates(share).zip(&step.updates) {
                    update(dst, terms, start, end);
                    if row.rounds {
                        round(dst, start, end);
                    }
                }
            } else if S::IS_SCALAR {
                // Never interpreted.
            } else if !step.updates.is_empty() {
                sweep::run(simd, updates(share), start, end);
            }
            for s in segment..last {
                let mut d = 0;
                let together =
                    |one: &Dot, next: &Dot| near && one.b == next.b && next.factor.is_none() && !next.largest;
                for dots in step.dots.chunk_by(together) {
                    d = dots_with(simd, share, s, dots, d);
                }
            }
        }
        segment = last;
    }
}

/// The updates of a step, with their terms bound.
#[inline(always)]
fn updates<'a, T: Scalar>(
    share: &Share<'a, T>,
) -> impl Iterator<Item = (*mut T, &'a [BoundTerm<T>])> + Clone {
    let Share { step, vectors, mut terms, .. } = *share;
    step.updates.iter().map(move |row| {
        let (own, rest) = terms.split_at(row.terms.len());
        terms = rest;
        (vectors[row.dst as usize], own)
    })
}

/// The operation of a step before its sweep, for one chunk.
#[inline(always)]
unsafe fn lead<T: Scalar, S: Simd>(
    simd: S,
    share: &Share<'_, T>,
    segment: usize,
    last: usize,
    start: usize,
    end: usize,
) {
    let Share { step, vectors, cells, .. } = *share;
    // SAFETY: rows of this share, as the caller promises.
    unsafe {
        match &step.kind {
            StepKind::Sweep
            | StepKind::Spmm { .. }
            | StepKind::Pieces { .. }
            | StepKind::TriSolve { .. }
            | StepKind::Host { .. } => {}
            StepKind::Spmv { a, x, y, columns } => {
                let Some(a) = a.get::<T>() else { return };
                let sums = a.partial_sums();
                for j in 0..*columns as usize {
                    let (x, y) = (vectors[*x as usize + j], vectors[*y as usize + j]);
                    a.rows(simd, x, y, share.pieces.wrapping_add(j * sums), start, end);
                    if step.rounds {
                        round(y, start, end);
                    }
                }
            }
            StepKind::BasisGram { .. } => block::gram(simd, share, segment..last),
            StepKind::BasisCombine { .. } => block::combine(simd, share, start, end),
            StepKind::BasisDot { first, columns, w, .. } => {
                let columns = *columns as usize;
                let near = step.n * columns * size_of::<T>() <= NEAR;
                let together = if near { columns / TOGETHER * TOGETHER } else { 0 };
                for j in (0..together).step_by(TOGETHER) {
                    basis_dots::<T, S, TOGETHER>(simd, share, *first, j, *w, segment..last);
                }
                for j in together..columns {
                    basis_dots::<T, S, 1>(simd, share, *first, j, *w, segment..last);
                }
            }
            StepKind::BasisAxpy { first, columns, w, h, add } => {
                let mut used = [(T::zero(), std::ptr::null::<T>()); COLUMNS];
                let mut j = 0;
                while j < *columns {
                    let mut count = 0;
                    while j < *columns && count < COLUMNS {
                        let coefficient = cells[(h + j) as usize];
                        if coefficient != T::zero() {
                            let coefficient = if *add { coefficient } else { -coefficient };
                            used[count] = (coefficient, vectors[(first + j) as usize].cast_const());
                            count += 1;
                        }
                        j += 1;
                    }
                    accumulate(simd, vectors[*w as usize], &used[..count], start, end);
                }
                if step.rounds {
                    round(vectors[*w as usize], start, end);
                }
            }
        }
    }
}

/// The segment sums, from sum `d` on, of dot products with a common `b`; returns the index of the next sum.
#[inline(always)]
unsafe fn dots_with<T: Scalar, S: Simd>(
    simd: S,
    share: &Share<'_, T>,
    s: usize,
    dots: &[Dot],
    d: usize,
) -> usize {
    // SAFETY: rows of this share, as the caller promises.
    unsafe {
        let at = |v: u32| share.vectors[v as usize].add(s * SEGMENT).cast_const();
        match *dots {
            [one, two, three] => {
                let [a, b, c] = dot_segments(simd, [at(one.a), at(two.a), at(three.a)], at(one.b));
                share.put(d, s, a);
                share.put(d + 1, s, b);
                share.put(d + 2, s, c);
            }
            [one, two] => {
                let [a, b] = dot_segments(simd, [at(one.a), at(two.a)], at(one.b));
                share.put(d, s, a);
                share.put(d + 1, s, b);
            }
            _ => {
                for (k, dot) in dots.iter().enumerate() {
                    let sum = match dot.factor {
                        None if dot.largest => largest_segment(at(dot.a)),
                        None => dot_segment(simd, at(dot.a), at(dot.b)),
                        Some(f) => weighted_segment(simd, at(dot.a), at(f), at(dot.b)),
                    };
                    share.put(d + k, s, sum);
                }
            }
        }
    }
    d + dots.len()
}

/// The segment sums of `K` columns starting at `j` with `w`, for the given segments.
#[inline(always)]
unsafe fn basis_dots<T: Scalar, S: Simd, const K: usize>(
    simd: S,
    share: &Share<'_, T>,
    first: u32,
    j: usize,
    w: u32,
    segments: std::ops::Range<usize>,
) {
    let mut columns = [std::ptr::null::<T>(); K];
    for (c, column) in columns.iter_mut().enumerate() {
        *column = share.vectors[first as usize + j + c];
    }
    for s in segments {
        // SAFETY: rows of this share, as the caller promises.
        unsafe {
            let columns = columns.map(|v| v.add(s * SEGMENT));
            let sums = dot_segments(simd, columns, share.vectors[w as usize].add(s * SEGMENT));
            for (c, sum) in sums.into_iter().enumerate() {
                share.put(j + c, s, sum);
            }
        }
    }
}

impl<T: Scalar> Share<'_, T> {
    /// Stores sum `d` of segment `s`.
    ///
    /// # Safety
    /// The step must have this sum, and this share this segment.
    #[inline(always)]
    pub(super) unsafe fn put(&self, d: usize, s: usize, sum: T) {
        // SAFETY: as the caller promises.
        unsafe { *self.sums.add(d * self.step.n.div_ceil(SEGMENT) + s) = sum }
    }
}
