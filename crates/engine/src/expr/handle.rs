//! Handles of device objects. They are `Copy`; the backend that made one checks it at planning.
use crate::Scalar;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

/// A serial number unique in this process: distinguishes a live handle from a stale or foreign one.
pub fn next_serial() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty),* }) => {
        $(#[$doc])*
        pub struct $name<T> {
            $($(#[$field_doc])* pub $field: $type,)*
            /// Ties the handle to its number type.
            pub marker: PhantomData<fn() -> T>,
        }
        impl<T> $name<T> {
            /// A handle made by a backend.
            pub fn new($($field: $type),*) -> Self {
                $name { $($field,)* marker: PhantomData }
            }
        }
        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $name<T> {}
        impl<T> PartialEq for $name<T> {
            fn eq(&self, other: &Self) -> bool {
                ($(&self.$field,)*) == ($(&other.$field,)*)
            }
        }
        impl<T> Eq for $name<T> {}
        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))$(.field(stringify!($field), &self.$field))*.finish()
            }
        }
    };
}

handle! {
    /// A vector of `len` numbers on the device.
    ///
    /// A narrow vector is stored in [`Scalar::Narrow`](crate::Scalar::Narrow): it is widened exactly when
    /// read, all arithmetic is done in `T`, and each element is rounded to nearest when written.
    Vector {
        /// The backend's slot for it.
        slot: u32,
        /// Identifies stale handles.
        serial: u32,
        /// Number of elements.
        len: usize,
        /// Whether it is stored in the narrower type.
        narrow: bool
    }
}
handle! {
    /// One number on the device: a dot product, a coefficient, a tolerance.
    Cell {
        /// Index into the cells of this number type.
        index: u32,
        /// Identifies stale handles.
        serial: u32
    }
}
handle! {
    /// A run of cells with consecutive indices.
    Cells {
        /// Index of the first.
        first: u32,
        /// Number of cells.
        count: u32,
        /// Identifies stale handles.
        serial: u32
    }
}
handle! {
    /// A tall, thin block of `columns` vectors of `len` numbers each, stored one after the other.
    Basis {
        /// The slot of column 0; column `j` has slot `first + j`.
        first: u32,
        /// Identifies stale handles; all columns share it.
        serial: u32,
        /// Rows.
        len: usize,
        /// Columns.
        columns: usize,
        /// Whether it is stored in the narrower type, like a narrow [`Vector`].
        narrow: bool
    }
}
handle! {
    /// A sparse matrix on the device.
    Matrix {
        /// The backend's slot for it.
        slot: u32,
        /// Identifies stale handles.
        serial: u32,
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
        /// Stored entries.
        nnz: usize,
        /// Bytes of its arrays: what one product reads besides the vectors.
        bytes: usize
    }
}

impl<T> Vector<T> {
    /// A handle to nothing, used after recording has failed.
    pub(crate) fn dangling(len: usize) -> Self {
        Vector::new(u32::MAX, 0, len, false)
    }
}

/// Bytes of one stored element.
fn element<T: Scalar>(narrow: bool) -> usize {
    if narrow { size_of::<T::Narrow>() } else { size_of::<T>() }
}

impl<T: Scalar> Vector<T> {
    /// Bytes of its elements.
    pub fn bytes(self) -> usize {
        self.len * element::<T>(self.narrow)
    }
}

impl<T: Scalar> Basis<T> {
    /// Bytes of its elements.
    pub fn bytes(self) -> usize {
        self.len * self.columns * element::<T>(self.narrow)
    }
}

impl<T> Cells<T> {
    /// Cell `i` of the run.
    ///
    /// # Panics
    /// If `i` is not below the count, which is a bug in the calling method.
    pub fn at(self, i: usize) -> Cell<T> {
        assert!(i < self.count as usize, "cell {i} of a run of {}", self.count);
        Cell::new(self.first + i as u32, self.serial)
    }
    /// The first `count` cells of the run.
    ///
    /// # Panics
    /// If the run is shorter, which is a bug in the calling method.
    pub fn take(self, count: usize) -> Self {
        assert!(count <= self.count as usize, "{count} cells of a run of {}", self.count);
        Cells::new(self.first, count as u32, self.serial)
    }
    /// Whether the cell with this index is in the run.
    pub(crate) fn has(self, index: u32) -> bool {
        index.checked_sub(self.first).is_some_and(|i| i < self.count)
    }
    /// The first and the last cell, if there are any.
    pub fn ends(self) -> impl Iterator<Item = Cell<T>> {
        let end = self.first.saturating_add(self.count.saturating_sub(1));
        (self.count > 0)
            .then(|| [self.first, end].map(|index| Cell::new(index, self.serial)))
            .into_iter()
            .flatten()
    }
}

impl<T> Basis<T> {
    /// Column `j` as a vector.
    ///
    /// # Panics
    /// If `j` is not a column, which is a bug in the calling method.
    pub fn column(self, j: usize) -> Vector<T> {
        assert!(j < self.columns, "column {j} of a basis of {}", self.columns);
        Vector::new(self.first + j as u32, self.serial, self.len, self.narrow)
    }
    /// Whether the vector is one of the first `count` columns.
    pub(crate) fn has(self, vector: Vector<T>, count: u32) -> bool {
        vector.serial == self.serial && vector.slot.checked_sub(self.first).is_some_and(|j| j < count)
    }
    /// The first and the last of `count` columns, if there are any.
    pub fn ends(self, count: u32) -> impl Iterator<Item = Vector<T>> {
        count.checked_sub(1).map(|last| [0, last].map(|j| self.column(j as usize))).into_iter().flatten()
    }
    /// The first `columns` columns.
    ///
    /// # Panics
    /// If the basis has fewer, which is a bug in the calling method.
    pub fn take(self, columns: usize) -> Self {
        assert!(columns <= self.columns, "{columns} columns of a basis of {}", self.columns);
        Basis { columns, ..self }
    }
    /// Whether the two share a column.
    pub(crate) fn overlaps(self, other: Self) -> bool {
        let end = |v: Self| v.first as usize + v.columns;
        self.serial == other.serial
            && (self.first as usize) < end(other)
            && (other.first as usize) < end(self)
    }
}
