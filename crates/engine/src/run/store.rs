//! Memory of a backend that computes on the host: vectors, bases, cells and matrices by handle.
use crate::run::arena::{Blocks, Serials, Table};
use crate::{
    All, AnyFormat, Basis, Cell, Cells, Error, Family, Format, Matrix, Number, NumberType, Program, Resource,
    Result, Scalar, Vector, check_copy, check_pattern, pages, sum::SEGMENT, with_each, with_number,
};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a cache line; columns start on one.
const LINE: usize = 64;
/// Address distance at which a processor first assumes that two addresses are the same (4K aliasing).
const ALIAS: usize = 4096;
/// Words of a cache line.
const WORDS: usize = LINE / size_of::<u64>();
/// Maximum bytes of freed buffers that are kept for later allocations of the same sizes.
const SPARE: usize = 256 << 20;

/// Where the columns of a block are, in elements.
struct ColumnLayout {
    words: Vec<u64>,
    start: usize,
    stride: usize,
}

impl ColumnLayout {
    fn range(&self, column: usize, n: usize) -> Range<usize> {
        let start = self.start + column * self.stride;
        start..start + n
    }
}

/// The cells of one number type.
struct CellFile<T> {
    values: Vec<T>,
    serials: Serials,
}

impl<T> Default for CellFile<T> {
    fn default() -> Self {
        CellFile { values: Vec::new(), serials: Serials::default() }
    }
}

struct CellFiles;

impl Family for CellFiles {
    type Of<T: Scalar> = CellFile<T>;
}

/// Vectors, bases, cells and matrices in host memory.
///
/// A host backend keeps one and forwards its memory methods to it: see [`host_memory!`](crate::host_memory).
pub struct HostStore {
    device: &'static str,
    blocks: Blocks<ColumnLayout>,
    /// Freed buffers, for reuse by allocations of the same size: getting pages from the system takes time.
    spare: Vec<Vec<u64>>,
    /// Number of allocations so far.
    allocations: usize,
    matrices: Table<(AnyFormat, (usize, usize))>,
    epoch: u64,
    replaced: u64,
    cells: All<CellFiles>,
}

impl HostStore {
    /// An empty store. The device's name appears in errors.
    pub fn new(device: &'static str) -> Self {
        HostStore {
            device,
            blocks: Blocks::default(),
            spare: Vec::new(),
            allocations: 0,
            matrices: Table::default(),
            epoch: 0,
            replaced: 0,
            cells: All::default(),
        }
    }

    /// `columns` vectors in one allocation, each starting on a cache line, with unspecified contents. Each is
    /// followed by zeros up to a multiple of [`SEGMENT`] and by one line that keeps columns from sharing
    /// cache sets. Allocations alternately start at the beginning and in the middle of a page: a load a few
    /// lines after a store at the same page offset would falsely depend on it and stall.
    ///
    /// The values of a `narrow` vector are those of [`Scalar::Narrow`]. They are stored in full width here: the values are the
    /// same, but no memory is saved.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn vectors(&mut self, kind: NumberType, n: usize, columns: usize, narrow: bool) -> Result<Basis> {
        let narrow = narrow && kind != kind.narrow();
        let size = kind.size();
        let refused = |device: &str| Error::OutOfMemory {
            operation: format!("{columns} vectors of {n} elements"),
            device: device.into(),
            requested: (n as u64).saturating_mul(size as u64).saturating_mul(columns as u64),
            available: None,
        };
        let padded = n.checked_next_multiple_of(SEGMENT).and_then(|n| n.checked_mul(size));
        let lines = padded.map_or(usize::MAX, |bytes| bytes / LINE + 1);
        let room =
            lines.checked_mul(columns).and_then(|all| all.checked_add(ALIAS / LINE)?.checked_mul(WORDS));
        let (mut words, is_zero) = room
            .filter(|_| self.blocks.has_room(columns))
            .and_then(|words| if columns == 0 { Some((Vec::new(), true)) } else { self.take(words) })
            .ok_or_else(|| refused(self.device))?;
        let place = ALIAS / 2 * (self.allocations % 2);
        self.allocations += 1;
        let start = place.wrapping_sub(words.as_ptr() as usize) % ALIAS / size;
        let stride = lines.saturating_mul(LINE) / size;
        with_number!(kind, T => {
            let numbers: &mut [T] = bytemuck::cast_slice_mut(&mut words);
            let all = numbers.get_mut(start..).unwrap_or_default().chunks_exact_mut(stride.max(1)).take(columns);
            // The pages of new memory stay untouched until they are needed.
            if !is_zero {
                all.for_each(|column| column[n..].fill(T::from_real(0.0)));
            }
        });
        Ok(self.blocks.add(kind, n, columns, narrow, ColumnLayout { words, start, stride }))
    }

    /// A freed buffer of this size, or a new one of zeros, and whether it is that; other freed buffers are then returned to the
    /// system.
    fn take(&mut self, words: usize) -> Option<(Vec<u64>, bool)> {
        if let Some(fitting) = self.spare.iter().position(|buffer| buffer.len() == words) {
            return Some((self.spare.swap_remove(fitting), false));
        }
        self.spare.clear();
        Some((pages::zeroed("vectors", words).ok()?, true))
    }

    /// A run of zero cells.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn cells(&mut self, kind: NumberType, count: usize) -> Result<Cells> {
        let device = self.device;
        with_number!(kind, T => {
            let file = self.cells.get_mut::<T>();
            let room = file.values.try_reserve(count).is_ok();
            let cells = if room { file.serials.take(kind, count) } else { None };
            let refused = || Error::OutOfMemory {
                operation: format!("{count} cells"),
                device: device.into(),
                requested: (count as u64).saturating_mul(size_of::<T>() as u64),
                available: None,
            };
            let cells = cells.ok_or_else(refused)?;
            file.values.resize(file.serials.len(), T::from_real(0.0));
            file.values[cells.first as usize..][..count].fill(T::from_real(0.0));
            Ok(cells)
        })
    }

    /// Stores a matrix without copying it.
    ///
    /// # Errors
    /// None at present.
    pub fn matrix(&mut self, a: AnyFormat) -> Result<Matrix> {
        let (kind, (rows, cols), nnz, bytes) = (a.kind(), a.shape(), a.nnz(), a.bytes());
        let (slot, serial) = self.matrices.add((a, (rows, cols)));
        Ok(Matrix::of(kind, slot, serial, rows, cols, nnz, bytes))
    }

    /// Replaces a matrix by another one of the same pattern.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Structure`] for another pattern.
    pub fn set_matrix(&mut self, a: Matrix, to: AnyFormat) -> Result<()> {
        let operation = "new values of a matrix";
        let stale = || Error::Stale { operation: operation.into(), what: "matrix" };
        with_each!(&to, to => check_pattern(&**self.format(a, operation)?, a, &**to))?;
        self.matrices.get_mut(a.slot, a.serial).ok_or_else(stale)?.0 = to;
        self.replaced += 1;
        Ok(())
    }
    /// Number of times a matrix was replaced: code that caches a [`Format`] must look it up again when this has changed.
    pub fn replaced(&self) -> u64 {
        self.replaced
    }
    /// Number of times something was freed: what was live before may not be so when this has changed.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Frees memory; the buffer of vectors is kept for the next allocation of its size.
    pub fn free(&mut self, what: Resource) {
        self.epoch += 1;
        match what {
            Resource::Vectors(basis) => {
                if let Some(columns) = self.blocks.remove(basis) {
                    let kept: usize = self.spare.iter().map(|buffer| size_of_val(&**buffer)).sum();
                    if kept + size_of_val(&*columns.words) <= SPARE {
                        self.spare.push(columns.words);
                    }
                }
            }
            Resource::Cells(cells) => {
                with_number!(cells.kind, T => self.cells.get_mut::<T>().serials.give(cells));
            }
            Resource::Matrix(a) => drop(self.matrices.remove(a.slot, a.serial)),
            Resource::Plan(_) => {}
        }
    }

    fn find(&self, v: Vector, operation: &str) -> Result<(&ColumnLayout, usize)> {
        let stale = || Error::Stale { operation: operation.into(), what: "vector" };
        self.blocks.get(v).map(|(block, column)| (&block.buffer, column)).ok_or_else(stale)
    }

    /// The elements of a vector.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn slice<T: Scalar>(&self, v: Vector, operation: &str) -> Result<&[T]> {
        check_kind::<T>(v.kind, operation, "vector")?;
        let (columns, column) = self.find(v, operation)?;
        let all: &[T] = bytemuck::cast_slice(&columns.words);
        Ok(&all[columns.range(column, v.len)])
    }
    fn slice_mut<T: Scalar>(&mut self, v: Vector, operation: &str) -> Result<&mut [T]> {
        check_kind::<T>(v.kind, operation, "vector")?;
        let stale = || Error::Stale { operation: operation.into(), what: "vector" };
        let (block, column) = self.blocks.get_mut(v).ok_or_else(stale)?;
        let range = block.buffer.range(column, v.len);
        let all: &mut [T] = bytemuck::cast_slice_mut(&mut block.buffer.words);
        Ok(&mut all[range])
    }
    /// Sets the elements of a vector, rounded if it is narrow.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn set<T: Scalar>(&mut self, v: Vector, from: &[T], operation: &str) -> Result<()> {
        let to = self.slice_mut(v, operation)?;
        match v.narrow {
            false => to.copy_from_slice(from),
            true => to.iter_mut().zip(from).for_each(|(to, from)| *to = from.rounded()),
        }
        Ok(())
    }

    /// The address of each vector's elements by slot; null for other number types and free slots. They stay valid until the
    /// [`epoch`](HostStore::epoch) changes. Values written to a narrow vector must be [`Scalar::rounded`].
    pub fn starts<T: Scalar>(&mut self, to: &mut Vec<*mut T>) {
        to.clear();
        to.resize(self.blocks.slots(), std::ptr::null_mut());
        for block in self.blocks.iter_mut().filter(|block| block.basis.kind == T::KIND) {
            let start = block.buffer.words.as_mut_ptr().cast::<T>().wrapping_add(block.buffer.start);
            for j in 0..block.basis.columns {
                to[block.basis.first as usize + j] = start.wrapping_add(j * block.buffer.stride);
            }
        }
    }

    /// The matrix of a handle.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn format<T: Scalar>(&self, a: Matrix, operation: &str) -> Result<&Arc<dyn Format<T>>> {
        let live = |(format, shape): &(AnyFormat, (usize, usize))| {
            *shape == (a.rows, a.cols) && format.kind() == a.kind
        };
        let matrix = self.matrices.get(a.slot, a.serial).filter(|matrix| live(matrix));
        let stale = || Error::Stale { operation: operation.into(), what: "matrix" };
        matrix.and_then(|(format, _)| format.get::<T>()).ok_or_else(stale)
    }

    /// All cells of a number type.
    pub fn all_cells<T: Scalar>(&self) -> &[T] {
        &self.cells.get::<T>().values
    }
    /// All cells of a number type, mutable.
    pub fn all_cells_mut<T: Scalar>(&mut self) -> &mut Vec<T> {
        &mut self.cells.get_mut::<T>().values
    }
    /// Fails unless the cell is live.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn check_cell(&self, cell: Cell, operation: &str) -> Result<()> {
        with_number!(cell.kind, T => self.cells.get::<T>().serials.check(cell, operation))
    }

    /// Fails unless every vector, matrix and cell that a program uses is live; the error names the pass.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn check(&self, program: &Program) -> Result<()> {
        for op in program.witnesses() {
            let name = &op.sweep.name;
            if let Some(a) = op.matrix() {
                with_number!(program.kind, T => self.format::<T>(a, name).map(drop))?;
            }
            op.vectors().try_for_each(|v| self.find(v, name).map(drop))?;
            op.cells().try_for_each(|cell| self.check_cell(cell, name))?;
        }
        Ok(())
    }

    /// Copies numbers, given by their bytes, into a vector.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Length`].
    pub fn upload(&mut self, from: &[u8], to: Vector) -> Result<()> {
        with_number!(to.kind, T => self.set::<T>(to, numbers(from, to, "upload")?, "upload"))
    }
    /// Sets a vector to zero.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn clear(&mut self, v: Vector) -> Result<()> {
        with_number!(v.kind, T => self.slice_mut::<T>(v, "clear")?.fill(T::from_real(0.0)));
        Ok(())
    }
    /// Copies a vector into the bytes of numbers.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Length`].
    pub fn download(&self, from: Vector, to: &mut [u8]) -> Result<()> {
        with_number!(from.kind, T => {
            let stored: &[u8] = bytemuck::cast_slice(self.slice::<T>(from, "download")?);
            Error::check_length("download", "the bytes", stored.len(), to.len())?;
            to.copy_from_slice(stored);
        });
        Ok(())
    }
    /// Appends the bytes of some rows of a vector, in full width.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Length`] for rows that the vector does not have.
    pub fn rows_of(&self, v: Vector, rows: &[Range<usize>], to: &mut Vec<u8>) -> Result<()> {
        check_rows(v, rows)?;
        with_number!(v.kind, T => {
            let all = self.slice::<T>(v, "rows of a vector")?;
            rows.iter().for_each(|rows| to.extend_from_slice(bytemuck::cast_slice(&all[rows.clone()])));
        });
        Ok(())
    }
    /// Sets some rows of a vector, given as [`HostStore::rows_of`] gives them.
    ///
    /// # Errors
    /// As [`HostStore::rows_of`]; [`Error::Length`] unless there are as many bytes.
    pub fn set_rows(&mut self, v: Vector, rows: &[Range<usize>], from: &[u8]) -> Result<()> {
        check_rows(v, rows)?;
        let bytes = rows.iter().map(ExactSizeIterator::len).sum::<usize>() * v.kind.size();
        Error::check_length("rows of a vector", "the bytes", bytes, from.len())?;
        with_number!(v.kind, T => {
            let all = self.slice_mut::<T>(v, "rows of a vector")?;
            let mut rest = from;
            for rows in rows {
                let (own, more) = rest.split_at(rows.len() * size_of::<T>());
                let to = &mut all[rows.clone()];
                bytemuck::cast_slice_mut::<T, u8>(to).copy_from_slice(own);
                if v.narrow {
                    to.iter_mut().for_each(|to| *to = to.rounded());
                }
                rest = more;
            }
        });
        Ok(())
    }
    /// Sets some rows of a vector to zero.
    ///
    /// # Errors
    /// As [`HostStore::rows_of`].
    pub fn clear_rows(&mut self, v: Vector, rows: Range<usize>) -> Result<()> {
        check_rows(v, std::slice::from_ref(&rows))?;
        with_number!(v.kind, T => self.slice_mut::<T>(v, "clear")?[rows].fill(T::from_real(0.0)));
        Ok(())
    }
    /// Copies a vector into one with elements of the same type.
    ///
    /// # Errors
    /// Of [`check_copy`]; [`Error::Stale`].
    pub fn copy(&mut self, from: Vector, to: Vector) -> Result<()> {
        check_copy(from, to)?;
        with_number!(from.kind, F => with_number!(to.kind, G => {
            let numbers: Vec<G> = self.slice::<F>(from, "copy")?.iter().map(|v| v.converted()).collect();
            self.set(to, &numbers, "copy")
        }))
    }
    /// Sets a cell.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn write(&mut self, cell: Cell, value: Number) -> Result<()> {
        self.check_cell(cell, "write")?;
        with_number!(cell.kind, T => {
            let stale = || Error::Stale { operation: "write".into(), what: "cell of this number type" };
            self.cells.get_mut::<T>().values[cell.index as usize] = value.get().ok_or_else(stale)?;
        });
        Ok(())
    }
    /// Reads cells, one after the other.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Length`].
    pub fn read(&self, cells: &[Cell], to: &mut [u8]) -> Result<()> {
        let bytes = cells.iter().map(|cell| cell.kind.size()).sum();
        Error::check_length("read", "the bytes", bytes, to.len())?;
        let mut rest = to;
        for cell in cells {
            self.check_cell(*cell, "read")?;
            with_number!(cell.kind, T => {
                let value = self.all_cells::<T>()[cell.index as usize];
                let (own, others) = rest.split_at_mut_checked(size_of::<T>()).unwrap_or_default();
                own.copy_from_slice(bytemuck::bytes_of(&value));
                rest = others;
            });
        }
        Ok(())
    }
}

/// Fails unless a vector has these rows.
///
/// # Errors
/// [`Error::Length`].
pub fn check_rows(v: Vector, rows: &[Range<usize>]) -> Result<()> {
    match rows.iter().find(|rows| rows.start > rows.end || rows.end > v.len) {
        Some(rows) => Error::check_length("rows of a vector", "the vector", rows.end, v.len),
        None => Ok(()),
    }
}

/// Fails unless a handle is of the number type it is used as.
fn check_kind<T: Scalar>(kind: NumberType, operation: &str, what: &'static str) -> Result<()> {
    if kind == T::KIND { Ok(()) } else { Err(Error::Stale { operation: operation.into(), what }) }
}

/// The numbers of a vector from their bytes.
///
/// # Errors
/// [`Error::Length`].
pub fn numbers<'a, T: Scalar>(bytes: &'a [u8], of: Vector, operation: &str) -> Result<&'a [T]> {
    let numbers: &[T] = bytemuck::try_cast_slice(bytes).unwrap_or_default();
    Error::check_length(operation, "the host slice", of.len, numbers.len()).map(|()| numbers)
}

#[cfg(test)]
mod tests {
    use super::{ALIAS, HostStore, LINE, SEGMENT};
    use crate::{Complex32, Complex64, Resource, Scalar};

    #[test]
    fn columns_start_on_cache_lines() {
        fn starts<T: Scalar>(store: &mut HostStore, n: usize) {
            let v = store.vectors(T::KIND, n, 3, false).unwrap();
            for j in 0..3 {
                let start = store.slice::<T>(v.column(j), "test").unwrap().as_ptr() as usize;
                assert_eq!(start % LINE, 0, "column {j} of {n} {}", T::KIND.name());
            }
        }
        let mut store = HostStore::new("test");
        for n in [1, 255, 256, 3000, 1 << 20] {
            starts::<f32>(&mut store, n);
            starts::<f64>(&mut store, n);
            starts::<Complex32>(&mut store, n);
            starts::<Complex64>(&mut store, n);
        }
    }

    #[test]
    fn vectors_begin_a_page_or_half_of_one_alternately() {
        let mut store = HostStore::new("test");
        let starts = [5, 2000, 300_000, 1 << 20].map(|n| {
            let vector = store.vectors(f64::KIND, n, 1, false).unwrap().column(0);
            store.slice::<f64>(vector, "test").unwrap().as_ptr() as usize % ALIAS
        });
        assert_eq!(starts, [0, ALIAS / 2, 0, ALIAS / 2]);
    }

    #[test]
    fn what_was_freed_is_reused() {
        let mut store = HostStore::new("test");
        let old = [3000, 70, 12].map(|n| store.vectors(f64::KIND, n, 1, false).unwrap());
        let places = old.map(|v| {
            store.set(v.column(0), &vec![1.0f64; v.len], "test").unwrap();
            store.slice::<f64>(v.column(0), "test").unwrap().as_ptr() as usize
        });
        [1, 0].into_iter().for_each(|i| store.free(Resource::Vectors(old[i])));
        for (i, n) in [(1, 70), (0, 2950)] {
            let new = store.vectors(f64::KIND, n, 1, false).unwrap().column(0);
            let slice = store.slice::<f64>(new, "test").unwrap();
            assert!((slice.as_ptr() as usize).abs_diff(places[i]) < ALIAS);
            let columns = store.find(new, "test").unwrap().0;
            let all: &[f64] = bytemuck::cast_slice(&columns.words);
            let padding = &all[columns.start + n..][..n.next_multiple_of(SEGMENT) - n];
            assert!(padding.iter().all(|v| *v == 0.0), "{n}");
        }
        let live = |i: usize| store.slice::<f64>(old[i].column(0), "test").is_ok();
        assert_eq!([0, 1, 2].map(live), [false, false, true]);
    }
}
