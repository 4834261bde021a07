//! The vectors and sums of a step as slices. Pointers become slices here, once for all rows that a kernel
//! works on, so that the kernels are safe functions.
use lacuna_engine::Scalar;
use lacuna_engine::sum::SEGMENT;
use std::marker::PhantomData;
use std::ops::Range;

/// Rows of a step's vectors that one thread works on: its share, or a part of it.
pub(crate) struct Rows<'a, T> {
    vectors: &'a [*mut T],
    n: usize,
    segments: Range<usize>,
}

impl<'a, T> Rows<'a, T> {
    /// The rows of these segments.
    ///
    /// # Safety
    /// For `'a`, the vectors that the step uses, which alone may be asked for, must be valid for their whole
    /// lengths and zero-padded to whole segments. No other thread may access these rows of a vector that the
    /// step writes, and none may write to a vector that the step multiplies.
    pub(crate) unsafe fn new(vectors: &'a [*mut T], n: usize, segments: Range<usize>) -> Self {
        assert!(segments.end <= n.div_ceil(SEGMENT), "segments of the step");
        Rows { vectors, n, segments }
    }

    /// A part of these rows.
    #[inline(always)]
    pub(crate) fn part(&mut self, segments: Range<usize>) -> Rows<'_, T> {
        assert!(self.segments.start <= segments.start && segments.end <= self.segments.end, "own segments");
        Rows { vectors: self.vectors, n: self.n, segments }
    }

    #[inline(always)]
    pub(crate) fn segments(&self) -> Range<usize> {
        self.segments.clone()
    }

    /// The first row and the end of the last.
    #[inline(always)]
    pub(crate) fn ends(&self) -> (usize, usize) {
        let start = self.segments.start * SEGMENT;
        (start, (self.segments.end * SEGMENT).clamp(start, self.n.max(start)))
    }

    /// The addresses of whole vectors, by slot.
    #[inline(always)]
    pub(crate) fn pointers(&self) -> &'a [*mut T] {
        self.vectors
    }

    #[inline(always)]
    fn pointer(&self, v: u32) -> *mut T {
        self.vectors[v as usize]
    }

    /// These rows of a vector, padded to whole segments.
    #[inline(always)]
    pub(crate) fn padded(&self, v: u32) -> &[[T; SEGMENT]] {
        let at = self.pointer(v).wrapping_add(self.segments.start * SEGMENT);
        // SAFETY: segments of a vector of the step, to which nothing is written while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(at.cast(), self.segments.len()) }
    }

    /// These rows of a vector that the step writes.
    #[inline(always)]
    pub(crate) fn written(&mut self, v: u32) -> &mut [T] {
        let (start, end) = self.ends();
        // SAFETY: rows of a vector of the step, accessed only through this borrow of `self`.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(v).wrapping_add(start), end - start) }
    }

    /// These rows of a vector that the step writes, and of `K` others.
    #[inline(always)]
    pub(crate) fn written_beside<const K: usize>(
        &mut self,
        v: u32,
        others: [u32; K],
    ) -> (&mut [T], [&[T]; K]) {
        let (start, end) = self.ends();
        let (v, others) = (self.pointer(v), others.map(|other| self.pointer(other)));
        assert!(!others.contains(&v), "a vector is written beside others");
        // SAFETY: rows of vectors of the step, accessed only through this borrow of `self`; none of those read
        // is the one written.
        unsafe {
            (
                std::slice::from_raw_parts_mut(v.wrapping_add(start), end - start),
                others.map(|other| std::slice::from_raw_parts(other.wrapping_add(start), end - start)),
            )
        }
    }

    /// All `cols` elements of `count` vectors that the step multiplies, from `x` on, and these rows of as many
    /// vectors that the products are written to, from `y` on. Of the `K` places, those left over repeat the
    /// last `x`, and have rows of `spare`.
    #[inline(always)]
    pub(crate) fn product<'b, const K: usize>(
        &'b mut self,
        (x, cols): (u32, usize),
        y: u32,
        count: usize,
        spare: &'b mut [[T; SEGMENT]],
    ) -> ([&'b [T]; K], [&'b mut [T]; K]) {
        assert!((1..=K).contains(&count), "columns of a product");
        let (start, end) = self.ends();
        let x: [*mut T; K] = std::array::from_fn(|j| self.pointer(x + j.min(count - 1) as u32));
        let y: [*mut T; K] = std::array::from_fn(|j| self.pointer(y + j.min(count - 1) as u32));
        for (j, own) in y[..count].iter().enumerate() {
            assert!(!x.contains(own) && !y[..j].contains(own), "vectors of a product differ");
        }
        let mut spare = spare.iter_mut();
        let y = std::array::from_fn(|j| {
            if j >= count {
                return &mut spare.next().expect("spare rows")[..end - start];
            }
            // SAFETY: rows of a vector of the step, accessed only through this borrow of `self`; none of these
            // vectors is another one of them, or an operand.
            unsafe { std::slice::from_raw_parts_mut(y[j].wrapping_add(start), end - start) }
        });
        // SAFETY: vectors of the step, which nobody writes to.
        (x.map(|x| unsafe { std::slice::from_raw_parts(x, cols) }), y)
    }

    /// All `cols` elements of a vector that the step multiplies.
    #[inline(always)]
    pub(crate) fn operand(&self, x: u32, cols: usize) -> &[T] {
        // SAFETY: a vector of the step, which nobody writes to.
        unsafe { std::slice::from_raw_parts(self.pointer(x), cols) }
    }
}

/// Rows of columns that fill up a product of several columns: their sums are not used.
pub(crate) type Spare<T> = [[T; SEGMENT]; 3];

pub(crate) fn spare<T: Scalar>() -> Spare<T> {
    [[T::zero(); SEGMENT]; 3]
}

/// The segment sums that a step computes, several for each segment, as one thread writes them.
pub(crate) struct Sums<'a, T> {
    at: *mut T,
    count: usize,
    /// Segments of the whole step: sum `d` of segment `s` is at `d · all + s`.
    all: usize,
    own: Range<usize>,
    lives: PhantomData<&'a mut T>,
}

impl<T> Sums<'_, T> {
    /// `count` sums for each of the step's `all` segments.
    ///
    /// # Safety
    /// For `'a`, there must be room for all of them at `at`, and nothing else may access those of the thread's
    /// `own` segments.
    pub(crate) unsafe fn new(at: *mut T, count: usize, all: usize, own: Range<usize>) -> Self {
        assert!(own.end <= all, "segments of the step");
        Sums { at, count, all, own, lives: PhantomData }
    }

    /// Sum `d` of the own segments.
    #[inline(always)]
    pub(crate) fn of(&mut self, d: usize) -> &mut [T] {
        assert!(d < self.count, "sums of the step");
        // SAFETY: own segments of one of the sums, accessed only through this borrow of `self`.
        unsafe { std::slice::from_raw_parts_mut(self.at.add(d * self.all + self.own.start), self.own.len()) }
    }

    /// Stores sum `d` of segment `s`.
    #[inline(always)]
    pub(crate) fn put(&mut self, d: usize, s: usize, sum: T) {
        let at = s - self.own.start;
        self.of(d)[at] = sum;
    }
}

/// The sums of the pieces of long rows, for each column of a product.
pub(crate) struct Pieces<'a, T> {
    at: *mut T,
    count: usize,
    own: Range<usize>,
    lives: PhantomData<&'a mut T>,
}

impl<T> Pieces<'_, T> {
    /// `count` sums for each column.
    ///
    /// # Safety
    /// For `'a`, there must be room for the sums of all columns of the step at `at`. If the thread has `own`
    /// pieces, nothing else may access those of any column; otherwise nothing may write to any piece.
    pub(crate) unsafe fn new(at: *mut T, count: usize, own: Range<usize>) -> Self {
        assert!(own.end <= count, "pieces of the matrix");
        Pieces { at, count, own, lives: PhantomData }
    }

    /// The pieces of this thread.
    #[inline(always)]
    pub(crate) fn pieces(&self) -> Range<usize> {
        self.own.clone()
    }

    /// The sums of all pieces for column `j` of the step, none of which is this thread's to write.
    #[inline(always)]
    pub(crate) fn all(&self, j: usize) -> &[T] {
        assert!(self.own.is_empty(), "pieces are all summed");
        // SAFETY: sums of a column of the step, to which nothing writes.
        unsafe { std::slice::from_raw_parts(self.at.wrapping_add(j * self.count), self.count) }
    }

    /// The sums of the pieces of this thread for column `j` of the step.
    #[inline(always)]
    pub(crate) fn written(&mut self, j: usize) -> &mut [T] {
        let at = self.at.wrapping_add(j * self.count + self.own.start);
        // SAFETY: own pieces of a column of the step, accessed only through this borrow of `self`.
        unsafe { std::slice::from_raw_parts_mut(at, self.own.len()) }
    }
}
