//! `Y ← A X` for diagonals: 8 bytes a place in `f64` for all columns together.
use crate::spmm::Columns;
use crate::spmv::dia::Diagonals;
use lacuna_engine::Scalar;
use lacuna_formats::{DIA_ROWS, Dia};

impl<T: Scalar> Columns<T> for Dia<T> {
    const TOGETHER: usize = 2;

    #[inline(always)]
    fn rows<const K: usize>(&self, x: [&[T]; K], mut y: [&mut [T]; K], start: usize) {
        let (a, n) = (Diagonals::of(self), y[0].len());
        assert!(y.iter().all(|y| y.len() == n), "rows of each column");
        for at in (0..n).step_by(DIA_ROWS) {
            let (first, end) = (start + at, n.min(at + DIA_ROWS));
            if end == at + DIA_ROWS && a.is_inside(first) {
                let mut sums = [[T::zero(); DIA_ROWS]; K];
                a.add_inside(x, first, &mut sums);
                for (y, sums) in y.iter_mut().zip(&sums) {
                    y[at..end].copy_from_slice(sums);
                }
            } else {
                for (x, y) in x.into_iter().zip(&mut y) {
                    a.at_border(x, &mut y[at..end], first);
                }
            }
        }
    }
}
