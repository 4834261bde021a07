//! Arrays aligned to cache lines.
use crate::{Result, pages};
use bytemuck::Zeroable;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Bytes of a cache line.
const LINE: usize = 64;

/// An array aligned to a cache line, so that no register load crosses a line.
pub struct AlignedVec<T> {
    /// As long as the array plus one line.
    buffer: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Zeroable> AlignedVec<T> {
    /// An array of zeros, allocated by [`pages::zeroed`].
    ///
    /// # Errors
    /// As [`pages::zeroed`].
    pub fn zeroed(operation: &str, len: usize) -> Result<Self> {
        let buffer = pages::zeroed::<T>(operation, len.saturating_add(LINE / size_of::<T>()))?;
        Ok(AlignedVec { start: to_line(buffer.as_ptr()), buffer, len })
    }
}

/// Number of elements of a buffer before the first cache line boundary, fewer than a line holds.
fn to_line<T>(buffer: *const T) -> usize {
    const { assert!(LINE.is_multiple_of(size_of::<T>()), "a line holds whole numbers") };
    let address = buffer as usize;
    (address.next_multiple_of(LINE) - address) / size_of::<T>()
}

impl<T> Deref for AlignedVec<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.buffer[self.start..self.start + self.len]
    }
}

impl<T> DerefMut for AlignedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.buffer[self.start..self.start + self.len]
    }
}

impl<T: Clone> Clone for AlignedVec<T> {
    fn clone(&self) -> Self {
        let mut buffer = Vec::with_capacity(self.buffer.len());
        let start = to_line(buffer.as_ptr());
        buffer.extend_from_slice(&self.buffer[..start]); // contents do not matter
        buffer.extend_from_slice(self);
        AlignedVec { buffer, start, len: self.len }
    }
}

impl<T: PartialEq> PartialEq for AlignedVec<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: fmt::Debug> fmt::Debug for AlignedVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::{AlignedVec, LINE};
    use crate::Complex64;

    #[test]
    fn arrays_begin_lines_and_copies_too() {
        for len in [0, 1, 7, 8, 1000] {
            let mut array = AlignedVec::<Complex64>::zeroed("a test", len).unwrap();
            array.iter_mut().zip(1..).for_each(|(z, k)| z.re = f64::from(k));
            let copy = array.clone();
            assert_eq!((copy.len(), &copy), (len, &array));
            assert!([&array, &copy].iter().all(|a| (a.as_ptr() as usize).is_multiple_of(LINE)));
        }
    }

    #[test]
    fn more_than_there_is_is_an_error() {
        assert!(AlignedVec::<f64>::zeroed("a test", usize::MAX).is_err());
    }
}
