//! One thread's share of one step, in cache-sized chunks of rows.
use crate::pass::dot::{dot_segment, dot_segments};
use crate::pass::fused;
use crate::pass::sweep;
use crate::pass::update::{Bound, BoundTerm, accumulate, round, update};
use crate::plan::compile::{Dot, Kind, Step};
use crate::run::rows::{Pieces, Rows, Sums, spare};
use crate::spmv::hyb;
use lacuna_engine::lower::Coefficient;
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::{Format, Scalar};
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Bytes of one vector in a chunk: the eight vectors of a long pass then fit in a 32 KiB cache.
const CHUNK_BYTES: usize = 4096;
/// The same for a basis, whose columns are streamed: long enough for the prefetcher, short enough for the
/// second-level cache.
const BASIS_CHUNK_BYTES: usize = 65536;
/// Number of basis columns whose coefficients are resolved at a time.
const COLUMNS: usize = 64;
/// Number of basis columns projected on at a time while they fit in a cache; otherwise one by one in memory
/// order, which suits the prefetcher.
const TOGETHER: usize = 4;
/// Maximum bytes of such columns.
const NEAR: usize = 8 << 20;

/// A thread's share of a step.
pub(crate) struct Share<'a, T: Scalar> {
    step: &'a Step<T>,
    rows: Rows<'a, T>,
    cells: &'a [T],
    /// The bound terms of all updates, one update after another.
    terms: &'a [BoundTerm<T>],
    sums: Sums<'a, T>,
    pieces: Pieces<'a, T>,
}

impl<'a, T: Scalar> Share<'a, T> {
    /// The share of these segments, or pieces of long rows if the step sums those; `terms` must have room for
    /// the step's terms.
    ///
    /// # Safety
    /// For `'a`, `vectors` must hold by slot each vector of the step, valid for its whole length and
    /// zero-padded to a whole segment; there must be room for the step's segment sums at `sums` and for its
    /// sums of pieces at `pieces`; and no other thread may write what this share reads or access what it
    /// writes.
    pub(crate) unsafe fn new(
        step: &'a Step<T>,
        vectors: &'a [*mut T],
        cells: &'a [T],
        terms: &'a mut [BoundTerm<T>],
        own: Range<usize>,
        (sums, pieces): (*mut T, *mut T),
    ) -> Self {
        let (segments, own_pieces, count) = match &step.kind {
            Kind::Pieces { a, .. } => (0..0, own, a.partial_sums()),
            Kind::Spmv { a, .. } => (own, 0..0, a.partial_sums()),
            _ => (own, 0..0, 0),
        };
        bind(step, vectors, cells, terms);
        // SAFETY: as the caller promises. Products read all pieces, which a step before them sums.
        unsafe {
            Share {
                sums: Sums::new(sums, step.sums(), step.n.div_ceil(SEGMENT), segments.clone()),
                rows: Rows::new(vectors, step.n, segments),
                pieces: Pieces::new(pieces, count, own_pieces),
                step,
                cells,
                terms,
            }
        }
    }

    /// Runs the share with the best instructions available.
    #[inline(never)]
    pub(crate) fn run(&mut self, arch: Arch) {
        match self.step.kind {
            Kind::Spmm { .. } => arch.dispatch(Columns(self)),
            _ => arch.dispatch(Inlined(self)),
        }
    }
}

/// Resolves the pointers and values of a step's terms.
fn bind<T: Scalar>(step: &Step<T>, vectors: &[*mut T], cells: &[T], terms: &mut [BoundTerm<T>]) {
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

struct Inlined<'s, 'a, T: Scalar>(&'s mut Share<'a, T>);
impl<T: Scalar> WithSimd for Inlined<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        chunks(simd, self.0);
    }
}

struct Columns<'s, 'a, T: Scalar>(&'s mut Share<'a, T>);
impl<T: Scalar> WithSimd for Columns<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        columns(self.0);
    }
}

/// The rows of a product by a kernel for several columns, which has no sweep.
#[inline(always)]
fn columns<T: Scalar>(share: &mut Share<'_, T>) {
    let Share { step, rows, .. } = share;
    let Kind::Spmm { a, x, y, columns } = &step.kind else { return };
    let mut spare = spare();
    for segment in rows.segments() {
        let mut rows = rows.part(segment..segment + 1);
        a.columns(&mut rows, *x, *y, *columns, &mut spare);
        if step.rounds {
            (0..*columns).for_each(|j| round(rows.written(y + j)));
        }
    }
}

#[inline(always)]
fn chunks<T: Scalar, S: Simd>(simd: S, share: &mut Share<'_, T>) {
    let Share { step, rows, cells, terms, sums, pieces } = share;
    if let Kind::Pieces { a, x, columns } = &step.kind {
        let first = pieces.pieces().start;
        for j in 0..*columns {
            let x = rows.operand(x + j, a.shape().1);
            hyb::pieces(simd, a, x, pieces.written(j as usize), first);
        }
        return;
    }
    // A single update runs as well in the loop of its shape.
    let unlisted = matches!(step.kind, Kind::Sweep) && step.fused.is_none() && step.updates.len() > 1;
    let narrow = step.updates.iter().any(|update| update.rounds);
    let interpreted = !S::IS_SCALAR && !narrow && (T::KIND.is_complex() || unlisted);
    let bytes = match step.kind {
        Kind::Sweep if interpreted && step.dots.is_empty() => usize::MAX,
        Kind::BasisDot { .. } | Kind::BasisAxpy { .. } => BASIS_CHUNK_BYTES,
        // The matrix also comes from cache for every column after the first.
        Kind::Spmv { columns: 2.., .. } => 0,
        _ => CHUNK_BYTES,
    };
    // Several sums at once do not read memory in order, which is harmless only in cache.
    let near = step.n * (step.dots.len() + 1) * size_of::<T>() <= NEAR;
    let chunk = (bytes / size_of::<T>() / SEGMENT).max(1);
    let Range { start: mut segment, end } = rows.segments();
    segment += fused::run(simd, step, rows, terms, sums);
    while segment < end {
        let last = segment.saturating_add(chunk).min(end);
        let mut rows = rows.part(segment..last);
        lead(simd, step, &mut rows, cells, sums, pieces);
        let (start, end) = rows.ends();
        if !interpreted {
            for ((dst, terms), row) in updates(step, &rows, terms).zip(&step.updates) {
                // SAFETY: bound terms, and rows of this share.
                unsafe { update(dst, terms, start, end) };
                if row.rounds {
                    round(rows.written(row.dst));
                }
            }
        } else if !step.updates.is_empty() {
            // SAFETY: bound terms, and rows of this share.
            unsafe { sweep::run(simd, updates(step, &rows, terms), start, end) };
        }
        for s in 0..last - segment {
            let mut d = 0;
            for dots in step.dots.chunk_by(|one, next| near && one.b == next.b) {
                d = dots_with(simd, &rows, sums, s, dots, d);
            }
        }
        segment = last;
    }
}

/// The updates of a step, with their terms bound.
#[inline(always)]
fn updates<'a, T: Scalar>(
    step: &'a Step<T>,
    rows: &Rows<'a, T>,
    mut terms: &'a [BoundTerm<T>],
) -> impl Iterator<Item = (*mut T, &'a [BoundTerm<T>])> + Clone + use<'a, T> {
    let vectors = rows.pointers();
    step.updates.iter().map(move |row| {
        let (own, rest) = terms.split_at(row.terms.len());
        terms = rest;
        (vectors[row.dst as usize], own)
    })
}

/// The operation of a step before its sweep, for one chunk.
#[inline(always)]
fn lead<T: Scalar, S: Simd>(
    simd: S,
    step: &Step<T>,
    rows: &mut Rows<'_, T>,
    cells: &[T],
    sums: &mut Sums<'_, T>,
    pieces: &Pieces<'_, T>,
) {
    match &step.kind {
        Kind::Sweep | Kind::Spmm { .. } | Kind::Pieces { .. } | Kind::TriSolve { .. } | Kind::Host { .. } => {
        }
        Kind::Spmv { a, x, y, columns } => {
            let ((start, _), cols) = (rows.ends(), a.cols());
            for j in 0..*columns {
                let ([x], [y]) = rows.product((x + j, cols), y + j, 1, &mut []);
                a.rows(simd, x, &mut *y, pieces.all(j as usize), start);
                if step.rounds {
                    round(y);
                }
            }
        }
        Kind::BasisDot { first, columns, w, .. } => {
            let columns = *columns as usize;
            let near = step.n * columns * size_of::<T>() <= NEAR;
            let together = if near { columns / TOGETHER * TOGETHER } else { 0 };
            for j in (0..together).step_by(TOGETHER) {
                basis_dots::<T, S, TOGETHER>(simd, rows, sums, *first, j, *w);
            }
            for j in together..columns {
                basis_dots::<T, S, 1>(simd, rows, sums, *first, j, *w);
            }
        }
        Kind::BasisAxpy { first, columns, w, h, add } => {
            let mut used = [(T::zero(), 0); COLUMNS];
            let mut j = 0;
            while j < *columns {
                let mut count = 0;
                while j < *columns && count < COLUMNS {
                    let coefficient = cells[(h + j) as usize];
                    if coefficient != T::zero() {
                        used[count] = (if *add { coefficient } else { -coefficient }, first + j);
                        count += 1;
                    }
                    j += 1;
                }
                accumulate(simd, rows, *w, &used[..count]);
            }
            if step.rounds {
                round(rows.written(*w));
            }
        }
    }
}

/// The sums of segment `s` of some rows, from sum `d` on, of dot products with a common `b`; returns the index
/// of the next sum.
#[inline(always)]
fn dots_with<T: Scalar, S: Simd>(
    simd: S,
    rows: &Rows<'_, T>,
    sums: &mut Sums<'_, T>,
    s: usize,
    dots: &[Dot],
    d: usize,
) -> usize {
    let at = |v: u32| &rows.padded(v)[s];
    let to = rows.segments().start + s;
    match *dots {
        [one, two, three] => {
            let [a, b, c] = dot_segments(simd, [at(one.a), at(two.a), at(three.a)], at(one.b));
            sums.put(d, to, a);
            sums.put(d + 1, to, b);
            sums.put(d + 2, to, c);
        }
        [one, two] => {
            let [a, b] = dot_segments(simd, [at(one.a), at(two.a)], at(one.b));
            sums.put(d, to, a);
            sums.put(d + 1, to, b);
        }
        _ => {
            for (k, dot) in dots.iter().enumerate() {
                sums.put(d + k, to, dot_segment(simd, at(dot.a), at(dot.b)));
            }
        }
    }
    d + dots.len()
}

/// The segment sums of `K` columns starting at `j` with `w`.
#[inline(always)]
fn basis_dots<T: Scalar, S: Simd, const K: usize>(
    simd: S,
    rows: &Rows<'_, T>,
    sums: &mut Sums<'_, T>,
    first: u32,
    j: usize,
    w: u32,
) {
    let columns: [_; K] = std::array::from_fn(|c| rows.padded(first + (j + c) as u32));
    for ((k, s), w) in rows.segments().enumerate().zip(rows.padded(w)) {
        let of_columns = dot_segments(simd, columns.map(|column| &column[k]), w);
        for (c, sum) in of_columns.into_iter().enumerate() {
            sums.put(j + c, s, sum);
        }
    }
}
