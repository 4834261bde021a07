//! Blocks of a matrix with the vectors that they multiply, read without checks of every block and column: the
//! format holds only rows of blocks that exist, in block columns that exist.
use lacuna_engine::{Format, Scalar};
use lacuna_formats::Bcsr;
use std::ops::Range;

/// Consecutive blocks of `B` rows and columns, and `K` vectors. Every block column is one of each vector.
#[derive(Clone, Copy)]
pub(crate) struct Blocks<'a, T, const B: usize, const K: usize = 1> {
    values: &'a [T],
    columns: &'a [u32],
    first: usize,
    last: usize,
    x: [&'a [T]; K],
}

/// The blocks of each block row.
#[inline(always)]
pub(crate) fn rows_of_bcsr<'a, T: Scalar, const B: usize, const K: usize>(
    a: &'a Bcsr<T>,
    x: [&'a [T]; K],
    block_rows: Range<usize>,
) -> impl Iterator<Item = Blocks<'a, T, B, K>> {
    assert!(a.block() == B && x.iter().all(|x| x.len() >= a.shape().1), "vectors as long as a row");
    let (values, columns) = (a.values(), a.col_idx());
    a.row_ptr()[block_rows.start..=block_rows.end].array_windows().map(
        #[inline(always)]
        move |&[first, last]| Blocks { values, columns, first: first as usize, last: last as usize, x },
    )
}

impl<'a, T: Scalar, const B: usize, const K: usize> Blocks<'a, T, B, K> {
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.last - self.first
    }

    /// The address of the column of block `k`.
    #[inline(always)]
    pub(crate) fn column_at(self, k: usize) -> *const u32 {
        self.columns.as_ptr().wrapping_add(self.first + k)
    }

    /// The address of the values of block `k`.
    #[inline(always)]
    pub(crate) fn value_at(self, k: usize) -> *const T {
        self.values.as_ptr().wrapping_add((self.first + k) * B * B)
    }

    /// Block `k`, column by column, and the elements that it multiplies.
    #[inline(always)]
    pub(crate) fn at(self, k: usize) -> (&'a [[T; B]; B], [&'a [T; B]; K]) {
        assert!(k < self.len(), "a block that exists");
        // SAFETY: one of these blocks; a matrix holds only block columns that it has, and each vector is as
        // long as a row.
        unsafe {
            let column = *self.columns.get_unchecked(self.first + k) as usize * B;
            let x = self.x.map(|x| &*x.as_ptr().add(column).cast::<[T; B]>());
            (&*self.value_at(k).cast::<[[T; B]; B]>(), x)
        }
    }

    /// The values from block `k` on.
    #[inline(always)]
    pub(crate) fn values(self, k: usize) -> &'a [T] {
        &self.values[(self.first + k) * B * B..]
    }
}
