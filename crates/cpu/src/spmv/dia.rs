//! `y ← A x` for diagonals: 8 bytes a place in `f64`, with x from cache.
use lacuna_engine::{Format, Scalar};
use lacuna_formats::{DIA_ROWS, Dia};

/// `y[i] ← (A x)[start + i]` for each `i`; `start` must begin a segment.
#[inline(always)]
pub(crate) fn rows<T: Scalar>(a: &Dia<T>, x: &[T], y: &mut [T], start: usize) {
    let a = Diagonals::of(a);
    for (first, y) in (start..).step_by(DIA_ROWS).zip(y.chunks_mut(DIA_ROWS)) {
        match y.first_chunk_mut::<DIA_ROWS>() {
            Some(y) if a.is_inside(first) => [*y] = a.inside([x], first),
            _ => a.at_border(x, y, first),
        }
    }
}

/// A matrix in diagonals.
#[derive(Clone, Copy)]
pub(crate) struct Diagonals<'a, T> {
    offsets: &'a [i32],
    starts: &'a [i32],
    step: usize,
    values: &'a [T],
    cols: usize,
}

impl<'a, T: Scalar> Diagonals<'a, T> {
    #[inline(always)]
    pub(crate) fn of(a: &'a Dia<T>) -> Self {
        let (offsets, starts, step) = (a.offsets(), a.starts(), a.step());
        Diagonals { offsets, starts, step, values: a.values(), cols: a.shape().1 }
    }

    /// Whether the block that begins at row `first`, if complete, lies entirely within the matrix.
    #[inline(always)]
    pub(crate) fn is_inside(self, first: usize) -> bool {
        let (lowest, highest) = match self.offsets {
            [] => (0, 0),
            [first, ..] => (*first as isize, self.offsets[self.offsets.len() - 1] as isize),
        };
        let first = first as isize;
        first + lowest >= 0 && first + DIA_ROWS as isize + highest <= self.cols as isize
    }

    /// The rows of a complete block that lies entirely within the matrix, for each `x`: the values are read
    /// in storage order.
    #[inline(always)]
    pub(crate) fn inside<const K: usize>(self, x: [&'a [T]; K], first: usize) -> [[T; DIA_ROWS]; K] {
        let mut sums = [[T::zero(); DIA_ROWS]; K];
        self.add_inside(x, first, &mut sums);
        sums
    }

    /// Adds the same to `sums`.
    #[inline(always)]
    pub(crate) fn add_inside<const K: usize>(
        self,
        x: [&'a [T]; K],
        first: usize,
        sums: &mut [[T; DIA_ROWS]; K],
    ) {
        assert!(self.is_inside(first) && x.iter().all(|x| x.len() >= self.cols), "columns that exist");
        let places = first / DIA_ROWS * self.step;
        // SAFETY: offsets increase, so that all columns exist if the first and the last do, and then all
        // places do.
        let from = |numbers: &'a [T], first: usize, offset: i32| unsafe {
            &*numbers.as_ptr().offset(first as isize + offset as isize).cast::<[T; DIA_ROWS]>()
        };
        for (&offset, &start) in self.offsets.iter().zip(self.starts) {
            let values = from(self.values, places, start);
            for (x, sums) in x.iter().zip(&mut *sums) {
                let x = from(x, first, offset);
                for (l, sum) in sums.iter_mut().enumerate() {
                    *sum = values[l].fma(x[l], *sum);
                }
            }
        }
    }

    /// The rows of the block that begins at row `first`, where it lies partly outside the matrix.
    #[inline(always)]
    pub(crate) fn at_border(self, x: &[T], y: &mut [T], first: usize) {
        let places = first / DIA_ROWS * self.step;
        let n = y.len() as isize;
        y.fill(T::zero());
        for (&offset, &start) in self.offsets.iter().zip(self.starts) {
            // Rows and columns are clipped to the matrix.
            let (column, place) = (first as isize + offset as isize, places as isize + start as isize);
            let from = (-column).clamp(0, n);
            let to = (self.cols as isize - column).clamp(from, n);
            if from < to {
                let own = from as usize..to as usize;
                let values = &self.values[(place + from) as usize..][..own.len()];
                let x = &x[(column + from) as usize..][..own.len()];
                for ((y, value), x) in y[own].iter_mut().zip(values).zip(x) {
                    *y = value.fma(*x, *y);
                }
            }
        }
    }
}
