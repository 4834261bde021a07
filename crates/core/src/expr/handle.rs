//! Names for things that live on a device. Handles are `Copy`; the backend that made one checks it at planning.
use crate::Scalar;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

/// A number no other allocation of this process has: what tells a stale or foreign handle from a live one.
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
    /// A narrow one is stored in [`Scalar::Narrow`](crate::Scalar::Narrow): it is widened, exactly, where it is read,
    /// all arithmetic is done in `T`, and each element is rounded to nearest where it is written.
    Vector {
        /// The backend's place for it.
        slot: u32,
        /// Tells a stale handle.
        serial: u32,
        /// Elements.
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
        /// Tells a stale handle.
        serial: u32
    }
}
handle! {
    /// A run of cells with consecutive indices.
    Cells {
        /// Index of the first.
        first: u32,
        /// How many.
        count: u32,
        /// Tells a stale handle.
        serial: u32
    }
}
handle! {
    /// A tall, thin block of `columns` vectors of `len` numbers each, stored one after the other.
    Basis {
        /// The slot of column 0; column `j` has slot `first + j`.
        first: u32,
        /// Tells a stale handle; all columns share it.
        serial: u32,
        /// Rows.
        len: usize,
        /// Columns.
        columns: usize,
        /// Whether it is stored in the narrower type, as a narrow [`Vector`] is.
        narrow: bool
    }
}
handle! {
    /// A sparse matrix on the device.
    Matrix {
        /// The backend's place for it.
        slot: u32,
        /// Tells a stale handle.
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
    /// A handle that stands for nothing, where recording has already failed.
    pub(crate) fn dangling(len: usize) -> Self {
        Vector::new(u32::MAX, 0, len, false)
    }
}

/// Bytes of an element in the type it is stored in.
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
    /// Where `i` is not below the count: a bug in the method that asks.
    pub fn at(self, i: usize) -> Cell<T> {
        assert!(i < self.count as usize, "cell {i} of a run of {}", self.count);
        Cell::new(self.first + i as u32, self.serial)
    }
    /// The first `count` cells of the run.
    ///
    /// # Panics
    /// Where the run is shorter: a bug in the method that asks.
    pub fn take(self, count: usize) -> Self {
        assert!(count <= self.count as usize, "{count} cells of a run of {}", self.count);
        Cells::new(self.first, count as u32, self.serial)
    }
    /// Whether the cell with this index is one of the run.
    pub(crate) fn has(self, index: u32) -> bool {
        index.checked_sub(self.first).is_some_and(|i| i < self.count)
    }
    /// The first cell and the last, where there are any.
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
    /// Where `j` is not a column: a bug in the method that asks.
    pub fn column(self, j: usize) -> Vector<T> {
        assert!(j < self.columns, "column {j} of a basis of {}", self.columns);
        Vector::new(self.first + j as u32, self.serial, self.len, self.narrow)
    }
    /// Whether the vector is one of the first `count` columns.
    pub(crate) fn has(self, vector: Vector<T>, count: u32) -> bool {
        vector.serial == self.serial && vector.slot.checked_sub(self.first).is_some_and(|j| j < count)
    }
    /// The first of `count` columns and the last, where there are any.
    pub fn ends(self, count: u32) -> impl Iterator<Item = Vector<T>> {
        count.checked_sub(1).map(|last| [0, last].map(|j| self.column(j as usize))).into_iter().flatten()
    }
    /// The first `columns` columns.
    ///
    /// # Panics
    /// Where the basis has fewer: a bug in the method that asks.
    pub fn take(self, columns: usize) -> Self {
        assert!(columns <= self.columns, "{columns} columns of a basis of {}", self.columns);
        Basis { columns, ..self }
    }
    /// Whether a column of the one is a column of the other.
    pub(crate) fn overlaps(self, other: Self) -> bool {
        let end = |v: Self| v.first as usize + v.columns;
        self.serial == other.serial
            && (self.first as usize) < end(other)
            && (other.first as usize) < end(self)
    }
}
