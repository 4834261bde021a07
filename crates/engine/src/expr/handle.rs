//! Handles of device objects. They are `Copy`; the backend that made one checks it at planning.
use crate::{NumberType, Scalar};
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

/// The type parameter of a handle whose number type is known at run time only: see [`Vector::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untyped {}

/// A serial number unique in this process: distinguishes a live handle from a stale or foreign one. Within [`as_one`], several
/// devices get the same ones.
pub fn next_serial() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let new = || NEXT.fetch_add(1, Ordering::Relaxed);
    SHARED.with_borrow_mut(|shared| match shared {
        None => new(),
        Some((serials, at)) => {
            if *at == serials.len() {
                serials.push(new());
            }
            *at += 1;
            serials[*at - 1]
        }
    })
}

thread_local! {
    /// The serials of [`as_one`] so far, and how many of them the present device has got.
    static SHARED: RefCell<Option<(Vec<u32>, usize)>> = const { RefCell::new(None) };
}

/// Makes the same on each of several devices that are one for their user: where all make handles by the same calls in the same
/// order, the handles are equal.
pub fn as_one<D, R>(devices: impl IntoIterator<Item = D>, mut make: impl FnMut(D) -> R) -> Vec<R> {
    /// Ends the sharing, also when a device panics.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            SHARED.set(None);
        }
    }
    let _end = End;
    SHARED.set(Some((Vec::new(), 0)));
    let each = devices.into_iter().map(|device| {
        SHARED.with_borrow_mut(|shared| shared.iter_mut().for_each(|(_, at)| *at = 0));
        make(device)
    });
    each.collect()
}

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty),* }) => {
        $(#[$doc])*
        pub struct $name<T = Untyped> {
            $($(#[$field_doc])* pub $field: $type,)*
            /// The number type.
            pub kind: NumberType,
            /// Ties the handle to its number type.
            pub marker: PhantomData<fn() -> T>,
        }
        impl<T: Scalar> $name<T> {
            /// A handle made by a backend.
            pub fn new($($field: $type),*) -> Self {
                $name { $($field,)* kind: T::KIND, marker: PhantomData }
            }
        }
        impl $name {
            /// A handle made by a backend, of a number type known at run time.
            pub fn of(kind: NumberType, $($field: $type),*) -> Self {
                $name { $($field,)* kind, marker: PhantomData }
            }
            /// The same handle with its number type as a parameter. Using it as another number type than its own is an error
            /// of the backend.
            pub fn typed<T>(self) -> $name<T> {
                $name { $($field: self.$field,)* kind: self.kind, marker: PhantomData }
            }
        }
        impl<T> $name<T> {
            /// The same handle with its number type as a value.
            pub fn untyped(self) -> $name {
                $name { $($field: self.$field,)* kind: self.kind, marker: PhantomData }
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
                ($(&self.$field,)* self.kind) == ($(&other.$field,)* other.kind)
            }
        }
        impl<T> Eq for $name<T> {}
        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))$(.field(stringify!($field), &self.$field))*.finish()
            }
        }
        impl<T> From<$name<T>> for $name where T: Scalar {
            fn from(handle: $name<T>) -> Self {
                handle.untyped()
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

impl Vector {
    /// A handle to nothing, used after recording has failed.
    pub(crate) fn dangling(kind: NumberType, len: usize) -> Self {
        Vector::of(kind, u32::MAX, 0, len, false)
    }
}

impl<T> Vector<T> {
    /// The number type of its elements: the narrower one if it is narrow.
    pub fn stored(self) -> NumberType {
        if self.narrow { self.kind.narrow() } else { self.kind }
    }
    /// Bytes of its elements.
    pub fn bytes(self) -> usize {
        self.len * self.kind.element(self.narrow)
    }
    /// The vector as a basis of one column.
    pub fn alone(self) -> Basis<T> {
        let Vector { slot, serial, len, narrow, kind, .. } = self;
        Basis { first: slot, serial, len, columns: 1, narrow, kind, marker: PhantomData }
    }
}

impl<T> Cells<T> {
    /// Cell `i` of the run.
    ///
    /// # Panics
    /// If `i` is not below the count, which is a bug in the calling method.
    pub fn at(self, i: usize) -> Cell<T> {
        assert!(i < self.count as usize, "cell {i} of a run of {}", self.count);
        self.cell(self.first + i as u32)
    }
    fn cell(self, index: u32) -> Cell<T> {
        Cell { index, serial: self.serial, kind: self.kind, marker: PhantomData }
    }
    /// The `count` cells of the run from cell `first` on.
    ///
    /// # Panics
    /// If the run is shorter, which is a bug in the calling method.
    pub fn part(self, first: usize, count: usize) -> Self {
        let end = first.saturating_add(count);
        assert!(end <= self.count as usize, "cells {first}..{end} of a run of {}", self.count);
        Cells { first: self.first + first as u32, count: count as u32, ..self }
    }
    /// The first `count` cells of the run.
    ///
    /// # Panics
    /// As [`Cells::part`].
    pub fn take(self, count: usize) -> Self {
        self.part(0, count)
    }
    /// Whether the cell with this index is in the run.
    pub(crate) fn has(self, index: u32) -> bool {
        index.checked_sub(self.first).is_some_and(|i| i < self.count)
    }
    /// The first and the last cell, if there are any.
    pub fn ends(self) -> impl Iterator<Item = Cell<T>> {
        let end = self.first.saturating_add(self.count.saturating_sub(1));
        (self.count > 0).then(|| [self.first, end].map(|index| self.cell(index))).into_iter().flatten()
    }
}

impl<T> Basis<T> {
    /// Bytes of its elements.
    pub fn bytes(self) -> usize {
        self.len * self.columns * self.kind.element(self.narrow)
    }
    /// Column `j` as a vector.
    ///
    /// # Panics
    /// If `j` is not a column, which is a bug in the calling method.
    pub fn column(self, j: usize) -> Vector<T> {
        assert!(j < self.columns, "column {j} of a basis of {}", self.columns);
        let Basis { first, serial, len, narrow, kind, .. } = self;
        Vector { slot: first + j as u32, serial, len, narrow, kind, marker: PhantomData }
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
    /// The `count` columns from column `first` on.
    ///
    /// # Panics
    /// As [`Basis::take`].
    pub fn part(self, first: usize, count: usize) -> Self {
        let end = first.saturating_add(count);
        assert!(end <= self.columns, "columns {first}..{end} of a basis of {}", self.columns);
        Basis { first: self.first + first as u32, columns: count, ..self }
    }
    /// Whether the two share a column.
    pub(crate) fn overlaps(self, other: Self) -> bool {
        let end = |v: Self| v.first as usize + v.columns;
        self.serial == other.serial
            && (self.first as usize) < end(other)
            && (other.first as usize) < end(self)
    }
}
