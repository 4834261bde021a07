//! Memory of a backend that computes on the host: vectors, bases, cells and matrices by handle.
use crate::{
    Basis, Cell, Cells, Error, Format, Kind, Mark, Matrix, Program, Result, Scalar, Vector, check_pattern,
    next_serial, pages, sum::SEGMENT,
};
use std::any::Any;
use std::sync::Arc;

/// Bytes of a cache line; columns start on one.
const LINE: usize = 64;
/// Address distance at which a processor first assumes that two addresses are the same (4K aliasing).
const ALIAS: usize = 4096;
/// Words of a cache line.
const WORDS: usize = LINE / size_of::<u64>();

/// The location of a vector's elements.
struct Slot {
    serial: u32,
    kind: Kind,
    /// Whether its values are restricted to those of [`Scalar::Narrow`], each stored in full width.
    narrow: bool,
    buffer: usize,
    /// In elements.
    offset: usize,
    len: usize,
}

struct StoredMatrix {
    serial: u32,
    /// An `Arc<dyn Format<T>>`.
    format: Box<dyn Any + Send + Sync>,
}

/// The cells of one number type with their serials.
struct CellFile<T> {
    values: Vec<T>,
    serials: Vec<u32>,
}

/// Vectors, bases, cells and matrices in host memory.
///
/// A host backend keeps one and forwards its memory methods to it.
pub struct HostStore {
    device: &'static str,
    slots: Vec<Slot>,
    buffers: Vec<Vec<u64>>,
    /// Buffers released last, for reuse by allocations of the same size.
    spare: Vec<Vec<u64>>,
    matrices: Vec<StoredMatrix>,
    generation: u64,
    /// A `CellFile<T>` for each number type, in the order of [`Kind`].
    cells: [Box<dyn Any + Send>; 4],
}

impl HostStore {
    /// An empty store. The device's name appears in errors.
    pub fn new(device: &'static str) -> Self {
        fn file<T: Scalar>() -> Box<dyn Any + Send> {
            Box::new(CellFile::<T> { values: Vec::new(), serials: Vec::new() })
        }
        HostStore {
            device,
            slots: Vec::new(),
            buffers: Vec::new(),
            spare: Vec::new(),
            matrices: Vec::new(),
            generation: 0,
            cells: [file::<f32>(), file::<f64>(), file::<crate::Complex32>(), file::<crate::Complex64>()],
        }
    }

    /// A vector of `n` zeros.
    pub fn vector<T: Scalar>(&mut self, n: usize) -> Result<Vector<T>> {
        let vector = self.basis::<T>(n, 1)?.column(0);
        self.slice_mut(vector, "vector")?.fill(T::zero());
        Ok(vector)
    }

    /// `columns` vectors in one allocation, each starting on a cache line, with unspecified contents. Each is
    /// followed by zeros up to a multiple of [`SEGMENT`] and by one line that keeps columns from sharing
    /// cache sets. Allocations alternately start at the beginning and in the middle of a page: a load a few
    /// lines after a store at the same page offset would falsely depend on it and stall.
    pub fn basis<T: Scalar>(&mut self, n: usize, columns: usize) -> Result<Basis<T>> {
        self.columns(n, columns, false)
    }
    /// The same for values of [`Scalar::Narrow`]. They are stored in full width here: the values are the
    /// same, but no memory is saved.
    pub fn narrow_basis<T: Scalar>(&mut self, n: usize, columns: usize) -> Result<Basis<T>> {
        self.columns(n, columns, T::HAS_NARROW)
    }

    fn columns<T: Scalar>(&mut self, n: usize, columns: usize, narrow: bool) -> Result<Basis<T>> {
        if columns == 0 {
            return Ok(Basis::new(self.slots.len() as u32, next_serial(), n, 0, narrow));
        }
        let refused = |device: &str| Error::OutOfMemory {
            operation: format!("{columns} vectors of {n} elements"),
            device: device.into(),
            requested: (n as u64).saturating_mul(size_of::<T>() as u64).saturating_mul(columns as u64),
            available: None,
        };
        let padded = n.checked_next_multiple_of(SEGMENT).and_then(|n| n.checked_mul(size_of::<T>()));
        let lines = padded.map_or(usize::MAX, |bytes| bytes / LINE + 1);
        let places = self.slots.len().checked_add(columns).filter(|&places| places <= u32::MAX as usize);
        let mut buffer = places
            .and_then(|_| lines.checked_mul(columns)?.checked_add(ALIAS / LINE)?.checked_mul(WORDS))
            .and_then(|words| self.take(words))
            .filter(|_| self.slots.try_reserve(columns).is_ok())
            .ok_or_else(|| refused(self.device))?;
        let (first, serial) = (self.slots.len() as u32, next_serial());
        let stride = lines * LINE / size_of::<T>();
        let numbers: &mut [T] = bytemuck::cast_slice_mut(&mut buffer);
        let place = ALIAS / 2 * (self.buffers.len() % 2);
        let start = place.wrapping_sub(numbers.as_ptr() as usize) % ALIAS / size_of::<T>();
        numbers[start..]
            .chunks_exact_mut(stride)
            .take(columns)
            .for_each(|column| column[n..].fill(T::zero()));
        self.slots.extend((0..columns).map(|j| Slot {
            serial,
            kind: T::KIND,
            narrow,
            buffer: self.buffers.len(),
            offset: start + j * stride,
            len: n,
        }));
        self.buffers.push(buffer);
        Ok(Basis::new(first, serial, n, columns, narrow))
    }

    /// A released buffer of this size, or a new one; other released buffers are then returned to the system.
    fn take(&mut self, words: usize) -> Option<Vec<u64>> {
        if let Some(fitting) = self.spare.iter().position(|buffer| buffer.len() == words) {
            return Some(self.spare.remove(fitting));
        }
        self.spare.clear();
        pages::zeroed("vectors", words).ok()
    }

    /// A run of zero cells.
    pub fn cells<T: Scalar>(&mut self, count: usize) -> Result<Cells<T>> {
        let (serial, device) = (next_serial(), self.device);
        let file = self.file_mut::<T>();
        let fits = (file.values.len().checked_add(count)).is_some_and(|cells| cells <= u32::MAX as usize)
            && file.values.try_reserve(count).is_ok()
            && file.serials.try_reserve(count).is_ok();
        if !fits {
            return Err(Error::OutOfMemory {
                operation: format!("{count} cells"),
                device: device.into(),
                requested: (count as u64).saturating_mul(size_of::<T>() as u64),
                available: None,
            });
        }
        let first = file.values.len() as u32;
        file.values.resize(file.values.len() + count, T::zero());
        file.serials.resize(file.values.len(), serial);
        Ok(Cells::new(first, count as u32, serial))
    }

    /// Stores a matrix without copying it.
    pub fn matrix<T: Scalar>(&mut self, a: Arc<dyn Format<T>>) -> Result<Matrix<T>> {
        let (serial, (rows, cols)) = (next_serial(), a.shape());
        let handle = Matrix::new(self.matrices.len() as u32, serial, rows, cols, a.nnz(), a.bytes());
        self.matrices.push(StoredMatrix { serial, format: Box::new(a) });
        Ok(handle)
    }

    /// Replaces a matrix by another one of the same pattern.
    pub fn set_matrix<T: Scalar>(&mut self, a: Matrix<T>, to: Arc<dyn Format<T>>) -> Result<()> {
        check_pattern(&**self.format(a, "new values of a matrix")?, &*to)?;
        self.matrices[a.slot as usize].format = Box::new(to);
        self.generation += 1;
        Ok(())
    }
    /// Number of times a matrix was replaced: code that caches a [`Format`] must look it up again when this
    /// has changed.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Marks what has been allocated so far.
    pub fn mark(&self) -> Mark {
        let [a, b, c, d] = [
            self.file::<f32>().values.len(),
            self.file::<f64>().values.len(),
            self.file::<crate::Complex32>().values.len(),
            self.file::<crate::Complex64>().values.len(),
        ];
        Mark { counts: [self.slots.len(), self.matrices.len(), a, b, c, d] }
    }

    /// Releases everything allocated after the mark. The memory of vectors is kept for later allocations of
    /// the same sizes, because obtaining pages from the system takes time.
    pub fn release(&mut self, mark: Mark) {
        let [slots, matrices, a, b, c, d] = mark.counts;
        if let Some(slot) = self.slots.get(slots) {
            self.spare = self.buffers.split_off(slot.buffer);
        }
        self.slots.truncate(slots);
        self.matrices.truncate(matrices);
        fn cut<T: Scalar>(store: &mut HostStore, count: usize) {
            let file = store.file_mut::<T>();
            file.values.truncate(count);
            file.serials.truncate(count);
        }
        cut::<f32>(self, a);
        cut::<f64>(self, b);
        cut::<crate::Complex32>(self, c);
        cut::<crate::Complex64>(self, d);
    }

    fn slot<T: Scalar>(&self, v: Vector<T>, operation: &str) -> Result<&Slot> {
        let live = |slot: &&Slot| {
            slot.serial == v.serial && slot.kind == T::KIND && slot.narrow == v.narrow && slot.len == v.len
        };
        self.slots
            .get(v.slot as usize)
            .filter(live)
            .ok_or_else(|| Error::Stale { operation: operation.into(), what: "vector" })
    }

    /// The elements of a vector.
    pub fn slice<T: Scalar>(&self, v: Vector<T>, operation: &str) -> Result<&[T]> {
        let slot = self.slot(v, operation)?;
        let all: &[T] = bytemuck::cast_slice(&self.buffers[slot.buffer]);
        Ok(&all[slot.offset..slot.offset + slot.len])
    }
    fn slice_mut<T: Scalar>(&mut self, v: Vector<T>, operation: &str) -> Result<&mut [T]> {
        let slot = self.slot(v, operation)?;
        let (buffer, range) = (slot.buffer, slot.offset..slot.offset + slot.len);
        let all: &mut [T] = bytemuck::cast_slice_mut(&mut self.buffers[buffer]);
        Ok(&mut all[range])
    }
    /// Sets the elements of a vector, rounded if it is narrow.
    pub fn set<T: Scalar>(&mut self, v: Vector<T>, from: &[T], operation: &str) -> Result<()> {
        let to = self.slice_mut(v, operation)?;
        match v.narrow {
            false => to.copy_from_slice(from),
            true => to.iter_mut().zip(from).for_each(|(to, from)| *to = from.rounded()),
        }
        Ok(())
    }

    /// The address of each vector's elements by slot, up to the slot of `last`; null for other number types.
    /// Values written to a narrow vector must be [`Scalar::rounded`].
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn starts<T: Scalar>(
        &mut self,
        last: Vector<T>,
        operation: &str,
        to: &mut Vec<*mut T>,
    ) -> Result<()> {
        self.slot(last, operation)?;
        to.clear();
        to.extend(self.slots[..=last.slot as usize].iter().map(|slot| match slot.kind {
            kind if kind == T::KIND => {
                self.buffers[slot.buffer].as_mut_ptr().cast::<T>().wrapping_add(slot.offset)
            }
            _ => std::ptr::null_mut(),
        }));
        Ok(())
    }

    /// The matrix of a handle.
    pub fn format<T: Scalar>(&self, a: Matrix<T>, operation: &str) -> Result<&Arc<dyn Format<T>>> {
        self.matrices
            .get(a.slot as usize)
            .filter(|m| m.serial == a.serial)
            .and_then(|m| m.format.downcast_ref::<Arc<dyn Format<T>>>())
            .filter(|format| format.shape() == (a.rows, a.cols))
            .ok_or_else(|| Error::Stale { operation: operation.into(), what: "matrix" })
    }

    fn file<T: Scalar>(&self) -> &CellFile<T> {
        let file = self.cells[T::KIND as usize].downcast_ref();
        file.expect("the file of a kind holds numbers of that kind")
    }
    fn file_mut<T: Scalar>(&mut self) -> &mut CellFile<T> {
        let file = self.cells[T::KIND as usize].downcast_mut();
        file.expect("the file of a kind holds numbers of that kind")
    }

    /// All cells of a number type.
    pub fn all_cells<T: Scalar>(&self) -> &[T] {
        &self.file().values
    }
    /// All cells of a number type, mutable.
    pub fn all_cells_mut<T: Scalar>(&mut self) -> &mut Vec<T> {
        &mut self.file_mut().values
    }
    /// Fails unless the cell is live.
    pub fn check_cell<T: Scalar>(&self, cell: Cell<T>, operation: &str) -> Result<()> {
        let file = self.file::<T>();
        match file.serials.get(cell.index as usize) {
            Some(serial) if *serial == cell.serial => Ok(()),
            _ => Err(Error::Stale { operation: operation.into(), what: "cell" }),
        }
    }

    /// Fails unless every vector, matrix and cell that a program uses is live; the error names the pass.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn check<T: Scalar>(&self, program: &Program<T>) -> Result<()> {
        for op in program.witnesses() {
            let name = &op.sweep.name;
            op.matrix().map_or(Ok(()), |a| self.format(a, name).map(drop))?;
            op.vectors().try_for_each(|v| self.slot(v, name).map(drop))?;
            op.cells().try_for_each(|cell| self.check_cell(cell, name))?;
        }
        Ok(())
    }

    /// Copies a host slice into a vector.
    pub fn upload<T: Scalar>(&mut self, from: &[T], to: Vector<T>) -> Result<()> {
        Error::check_length("upload", "the host slice", to.len, from.len())?;
        self.set(to, from, "upload")
    }
    /// Sets a vector to zero.
    pub fn clear<T: Scalar>(&mut self, v: Vector<T>) -> Result<()> {
        self.slice_mut(v, "clear")?.fill(T::zero());
        Ok(())
    }
    /// Copies a vector into a host slice.
    pub fn download<T: Scalar>(&self, from: Vector<T>, to: &mut [T]) -> Result<()> {
        Error::check_length("download", "the host slice", from.len, to.len())?;
        to.copy_from_slice(self.slice(from, "download")?);
        Ok(())
    }
    /// Sets a cell.
    pub fn write<T: Scalar>(&mut self, cell: Cell<T>, value: T) -> Result<()> {
        self.check_cell(cell, "write")?;
        self.file_mut::<T>().values[cell.index as usize] = value;
        Ok(())
    }
    /// Reads cells.
    pub fn read<T: Scalar>(&self, cells: &[Cell<T>]) -> Result<Vec<T>> {
        let values = &self.file::<T>().values;
        let read = |c: &Cell<T>| self.check_cell(*c, "read").map(|()| values[c.index as usize]);
        cells.iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{ALIAS, HostStore, LINE};
    use crate::Scalar;

    #[test]
    fn columns_start_on_cache_lines() {
        fn starts<T: Scalar>(store: &mut HostStore, n: usize) {
            let v = store.basis::<T>(n, 3).unwrap();
            for j in 0..3 {
                let start = store.slice_mut(v.column(j), "test").unwrap().as_ptr() as usize;
                assert_eq!(start % LINE, 0, "column {j} of {n} {}", T::KIND.name());
            }
        }
        let mut store = HostStore::new("test");
        for n in [1, 255, 256, 3000, 1 << 20] {
            starts::<f32>(&mut store, n);
            starts::<f64>(&mut store, n);
            starts::<crate::Complex32>(&mut store, n);
            starts::<crate::Complex64>(&mut store, n);
        }
    }

    #[test]
    fn vectors_begin_a_page_or_half_of_one_in_turns() {
        let mut store = HostStore::new("test");
        let starts = [5, 2000, 300_000, 1 << 20].map(|n| {
            let vector = store.vector::<f64>(n).unwrap();
            store.slice(vector, "test").unwrap().as_ptr() as usize % ALIAS
        });
        assert_eq!(starts, [0, ALIAS / 2, 0, ALIAS / 2]);
    }

    #[test]
    fn released_memory_is_taken_again_as_zeros() {
        let mut store = HostStore::new("test");
        let mark = store.mark();
        let old = [3000, 70].map(|n| store.vector::<f64>(n).unwrap());
        let places = old.map(|v| {
            let slice = store.slice_mut(v, "test").unwrap();
            slice.fill(1.0);
            slice.as_ptr()
        });
        store.release(mark);
        for (i, n) in [(1, 70), (0, 3000)] {
            let new = store.vector::<f64>(n).unwrap();
            let slice = store.slice(new, "test").unwrap();
            assert!((slice.as_ptr() as usize).abs_diff(places[i] as usize) < ALIAS);
            assert!(slice.iter().all(|&x| x == 0.0));
        }
        assert!(old.into_iter().all(|v| store.slice(v, "test").is_err()));
    }
}
