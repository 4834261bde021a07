//! The data behind handles: vectors, bases, matrices and cells in device memory.
mod cells;

use crate::driver::{Address, Driver};
use crate::launches::columns_kernel;
use crate::memory::{ALIGNMENT, Buffer, Pool};
use bytemuck::{bytes_of, cast_slice, cast_slice_mut};
use cells::CellFile;
use lacuna_engine::arena::{Blocks, Table};
use lacuna_engine::{
    AnyFormat, Argument, Basis, Cell, Cells, Error, MAX_LANES, Matrix, NumberType, Op, Program, Resource,
    Result, Scalar, Vector, check_copy, check_pattern, numbers, with_each, with_number,
};
use lacuna_gpu::check_type;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Vectors that were allocated together.
struct ColumnBlock {
    buffer: Buffer,
    /// Bytes to the next column.
    stride: usize,
}

/// A matrix on the device.
pub(crate) struct StoredMatrix {
    shape: (usize, usize),
    /// The format on the host.
    pub(crate) format: AnyFormat,
    /// The stem of its kernels' names.
    pub(crate) kernel: &'static str,
    pub(crate) lanes: u32,
    /// The format's arguments in order: numbers by value, arrays by address.
    pub(crate) arguments: Vec<u64>,
    /// The numbers among the arguments.
    pub(crate) sizes: Vec<u32>,
    /// The arrays among the arguments.
    pub(crate) arrays: Vec<Arc<Buffer>>,
    /// The epoch in which it was given its values; 0 if it has those it was made with.
    values: u64,
}

/// Everything that a backend stores.
pub(crate) struct Store {
    vectors: Blocks<ColumnBlock>,
    matrices: Table<StoredMatrix>,
    /// By number type.
    cells: [CellFile; 4],
    pub(crate) pool: Pool,
    /// Changes whenever something was freed or a matrix was given new values: what was live before may not be so any more.
    pub(crate) epoch: u64,
}

impl Default for Store {
    fn default() -> Self {
        use NumberType::{C32, C64, F32, F64};
        Store {
            vectors: Blocks::default(),
            matrices: Table::default(),
            cells: [F32, F64, C32, C64].map(CellFile::new),
            pool: Pool::default(),
            epoch: 0,
        }
    }
}

/// The bytes of an array; a number as it is.
fn bytes_of_argument<'a, T: Scalar>(argument: &Argument<'a, T>) -> Result<&'a [u8], u32> {
    Ok(match *argument {
        Argument::Size(size) => return Err(size),
        Argument::Indices(a) => cast_slice(a),
        Argument::Offsets(a) => cast_slice(a),
        Argument::Short(a) => cast_slice(a),
        Argument::Values(a) => cast_slice(a),
        Argument::Narrow(a) => cast_slice(a),
    })
}

impl Store {
    /// Vectors with unspecified contents.
    pub(crate) fn vectors(
        &mut self,
        driver: &Driver,
        kind: NumberType,
        n: usize,
        columns: usize,
        narrow: bool,
    ) -> Result<Basis> {
        let narrow = narrow && kind != kind.narrow();
        let operation = format!("{columns} vectors of {n} elements");
        let stride = n.checked_mul(kind.element(narrow)).and_then(|b| b.checked_next_multiple_of(ALIGNMENT));
        let bytes = stride.and_then(|stride| stride.checked_mul(columns));
        let (Some(stride), Some(bytes), true) = (stride, bytes, self.vectors.has_room(columns)) else {
            return Err(Error::OutOfMemory {
                operation,
                device: driver.limits.name.clone(),
                requested: u64::MAX,
                available: driver.free_bytes(),
            });
        };
        let buffer = self.pool.take(driver, bytes, &operation)?;
        Ok(self.vectors.add(kind, n, columns, narrow, ColumnBlock { buffer, stride }))
    }

    pub(crate) fn matrix(&mut self, driver: &Driver, a: AnyFormat) -> Result<Matrix> {
        let (kernel, lanes) = (a.kernel(), a.lanes());
        if !lanes.is_power_of_two() || lanes > MAX_LANES {
            return Err(Error::Unsupported {
                operation: format!("a matrix in format `{kernel}`"),
                message: format!("its rows have {lanes} lanes; expected a power of two up to {MAX_LANES}"),
            });
        }
        let (mut arguments, mut sizes, mut arrays) = (Vec::new(), Vec::new(), Vec::new());
        with_each!(&a, a => for argument in a.arguments() {
            match bytes_of_argument(&argument) {
                Ok(bytes) => {
                    let buffer = self.pool.filled(driver, bytes, "a matrix")?;
                    arguments.push(buffer.address);
                    arrays.push(Arc::new(buffer));
                }
                Err(size) => {
                    arguments.push(size.into());
                    sizes.push(size);
                }
            }
        });
        let (kind, (rows, cols), nnz, bytes) = (a.kind(), a.shape(), a.nnz(), a.bytes());
        let (shape, lanes) = ((rows, cols), lanes as u32);
        let stored = StoredMatrix { shape, format: a, kernel, lanes, arguments, sizes, arrays, values: 0 };
        let (slot, serial) = self.matrices.add(stored);
        Ok(Matrix::of(kind, slot, serial, rows, cols, nnz, bytes))
    }

    /// A matrix in `csr` whose arrays are there.
    pub(crate) fn keep_matrix(&mut self, a: AnyFormat, arrays: [Arc<Buffer>; 3]) -> Matrix {
        let (kind, (rows, cols), nnz, bytes) = (a.kind(), a.shape(), a.nnz(), a.bytes());
        let (kernel, lanes, arguments) =
            (a.kernel(), a.lanes() as u32, arrays.iter().map(|array| array.address).collect());
        let (shape, sizes, arrays) = ((rows, cols), Vec::new(), arrays.into());
        let stored = StoredMatrix { shape, format: a, kernel, lanes, arguments, sizes, arrays, values: 0 };
        let (slot, serial) = self.matrices.add(stored);
        Matrix::of(kind, slot, serial, rows, cols, nnz, bytes)
    }
    /// The pointers of rows, the columns and the values of a matrix in one of these formats.
    pub(crate) fn arrays_of(
        &self,
        a: Matrix,
        formats: &[&str],
        operation: &str,
    ) -> Result<Option<[Arc<Buffer>; 3]>> {
        let stored = self.stored(a, operation)?;
        let arrays = <&[Arc<Buffer>; 3]>::try_from(&stored.arrays[..]).ok();
        Ok(arrays.filter(|_| formats.contains(&stored.kernel)).cloned())
    }
    /// Notes that a matrix has other values.
    pub(crate) fn new_values(&mut self, a: Matrix) -> Result<()> {
        let stale = Error::Stale { operation: "new values of a matrix".into(), what: "matrix" };
        self.epoch += 1;
        self.matrices.get_mut(a.slot, a.serial).ok_or(stale)?.values = self.epoch;
        Ok(())
    }

    /// Gives a matrix new values on the same pattern, in its existing memory.
    pub(crate) fn set_matrix(&mut self, driver: &Driver, a: Matrix, to: AnyFormat) -> Result<()> {
        let operation = "new values of a matrix";
        let stale = || Error::Stale { operation: operation.into(), what: "matrix" };
        let stored = self.stored(a, operation)?;
        check_type(&to)?;
        with_each!(&to, to => {
            check_pattern(&**stored.format.get().ok_or_else(stale)?, a, &**to)?;
            to.prepare()?;
            let arguments = to.arguments();
            let arrays = arguments.iter().filter(|argument| !matches!(argument, Argument::Size(_)));
            for (argument, array) in arrays.zip(&stored.arrays) {
                if let (Argument::Values(_) | Argument::Narrow(_), Ok(bytes)) = (argument, bytes_of_argument(argument)) {
                    if bytes.len() > array.bytes {
                        let message = format!("{} bytes of values, expected at most {}", bytes.len(), array.bytes);
                        return Err(Error::Structure { operation: operation.into(), message });
                    }
                    driver.upload(bytes, array.address, operation)?;
                }
            }
        });
        self.epoch += 1;
        let stored = self.matrices.get_mut(a.slot, a.serial).ok_or_else(stale)?;
        (stored.format, stored.values) = (to, self.epoch);
        Ok(())
    }
    /// The latest epoch in which one of these matrices was given new values.
    pub(crate) fn values_of(&self, matrices: &[Matrix]) -> u64 {
        let values = matrices.iter().filter_map(|a| self.matrices.get(a.slot, a.serial)).map(|a| a.values);
        values.max().unwrap_or(0)
    }

    pub(crate) fn free(&mut self, what: Resource) {
        self.epoch += 1;
        match what {
            Resource::Vectors(v) => drop(self.vectors.remove(v)),
            Resource::Cells(cells) => self.cells[cells.kind as usize].give(cells),
            Resource::Matrix(a) => drop(self.matrices.remove(a.slot, a.serial)),
            Resource::Plan(_) => {}
        }
    }

    fn columns(&self, v: Vector, operation: &str) -> Result<(&ColumnBlock, usize)> {
        let stale = || Error::Stale { operation: operation.into(), what: "vector" };
        self.vectors.get(v).map(|(block, column)| (&block.buffer, column)).ok_or_else(stale)
    }
    /// The address of a vector.
    pub(crate) fn address(&self, v: Vector, operation: &str) -> Result<Address> {
        let (columns, column) = self.columns(v, operation)?;
        Ok(columns.buffer.address + (column * columns.stride) as u64)
    }
    /// The address of a vector as kernels take it: bit 0 marks a narrow one.
    pub(crate) fn place(&self, v: Vector, operation: &str) -> Result<Address> {
        self.address(v, operation).map(|address| address | u64::from(v.narrow))
    }
    /// The address of a basis in the same form, and the bytes between columns.
    pub(crate) fn basis_place(&self, v: Basis, operation: &str) -> Result<(Address, usize)> {
        if v.columns == 0 {
            return Ok((0, 0));
        }
        let (columns, _) = self.columns(v.column(v.columns - 1), operation)?;
        Ok((self.place(v.column(0), operation)?, columns.stride))
    }
    pub(crate) fn upload(&self, driver: &Driver, from: &[u8], to: Vector) -> Result<()> {
        let address = self.address(to, "upload")?;
        if to.narrow {
            return with_number!(to.kind, T => {
                let from = numbers::<T>(from, to, "upload")?;
                let rounded: Vec<_> = from.par_iter().map(|number| number.narrowed()).collect();
                driver.upload(cast_slice(&rounded), address, "upload")
            });
        }
        Error::check_length("upload", "the bytes", to.bytes(), from.len())?;
        driver.upload(from, address, "upload")
    }
    pub(crate) fn clear(&self, driver: &Driver, v: Vector) -> Result<()> {
        driver.zero(self.address(v, "clear")?, v.bytes())
    }
    pub(crate) fn download(&self, driver: &Driver, from: Vector, to: &mut [u8]) -> Result<()> {
        let address = self.address(from, "download")?;
        Error::check_length("download", "the bytes", from.len * from.kind.size(), to.len())?;
        if !from.narrow {
            return driver.download(address, to, "download");
        }
        with_number!(from.kind, T => {
            let mut stored = vec![<T as Scalar>::Narrow::default(); from.len];
            driver.download(address, cast_slice_mut(&mut stored), "download")?;
            let to = to.chunks_exact_mut(size_of::<T>());
            to.zip(stored).for_each(|(to, number)| to.copy_from_slice(bytes_of(&T::widened(number))));
        });
        Ok(())
    }
    /// Copies a vector into one with elements of the same type.
    pub(crate) fn copy(&self, driver: &Driver, from: Vector, to: Vector) -> Result<()> {
        check_copy(from, to)?;
        let places = [self.address(from, "copy")?, self.address(to, "copy")?];
        if places[0] == places[1] { Ok(()) } else { driver.copy(places[0], places[1], from.bytes()) }
    }
    /// Copies numbers from memory of the device that somebody else has, and waits.
    ///
    /// # Safety
    /// There must be as many as the vector has elements.
    pub(crate) unsafe fn copy_in(&self, driver: &Driver, from: u64, to: Vector) -> Result<()> {
        let address = self.address(to, "copy")?;
        wide(to)?;
        driver.check_address(from)?;
        driver.copy(from, address, to.bytes())?;
        driver.wait("copying on the device")
    }
    /// The same in the other direction.
    ///
    /// # Safety
    /// There must be room for as many numbers as the vector has elements.
    pub(crate) unsafe fn copy_out(&self, driver: &Driver, from: Vector, to: u64) -> Result<()> {
        let address = self.address(from, "copy")?;
        wide(from)?;
        driver.check_address(to)?;
        driver.copy(address, to, from.bytes())?;
        driver.wait("copying on the device")
    }
    /// The matrix behind a handle.
    pub(crate) fn stored(&self, a: Matrix, operation: &str) -> Result<&StoredMatrix> {
        let stale = || Error::Stale { operation: operation.into(), what: "matrix" };
        let live = |m: &&StoredMatrix| m.shape == (a.rows, a.cols) && m.format.kind() == a.kind;
        self.matrices.get(a.slot, a.serial).filter(live).ok_or_else(stale)
    }
    /// Whether there is a kernel for several columns at once, and `worth` accepts the format and its bytes.
    pub(crate) fn multiplies_columns(&self, a: Matrix, worth: impl Fn(&str, usize) -> bool) -> bool {
        let has_kernel = |a: &StoredMatrix| columns_kernel(a.kernel).is_some() && !a.format.has_long_rows();
        self.stored(a, "spmm").is_ok_and(|stored| has_kernel(stored) && worth(stored.kernel, a.bytes))
    }

    /// The cells of a number type.
    pub(crate) fn cells_of(&mut self, kind: NumberType) -> &mut CellFile {
        &mut self.cells[kind as usize]
    }
    pub(crate) fn cells(&mut self, driver: &Driver, kind: NumberType, count: usize) -> Result<Cells> {
        self.cells_of(kind).take(driver, count)
    }
    /// The cells of a number type on the device, up to date.
    pub(crate) fn device_cells(&mut self, driver: &Driver, kind: NumberType) -> Result<Address> {
        self.cells[kind as usize].on_device(driver, &self.pool)
    }
    /// The same, but for a range that still has to be passed to the device: at most `most` cells within `range`.
    pub(crate) fn device_cells_but(
        &mut self,
        driver: &Driver,
        kind: NumberType,
        range: &Range<usize>,
        most: usize,
    ) -> Result<(Address, Range<usize>)> {
        self.cells[kind as usize].on_device_but(driver, &self.pool, range, most)
    }
    /// Waits for the stream and reads cells, one after the other.
    pub(crate) fn read(&mut self, driver: &Driver, cells: &[Cell], to: &mut [u8]) -> Result<()> {
        Error::check_length("read", "the bytes", cells.iter().map(|c| c.kind.size()).sum(), to.len())?;
        let mut rest = to;
        for cell in cells {
            let file = &mut self.cells[cell.kind as usize];
            file.check(*cell, "read")?;
            file.refresh(driver)?;
            let (own, others) = rest.split_at_mut(cell.kind.size());
            own.copy_from_slice(file.known(&(cell.index as usize..cell.index as usize + 1)));
            rest = others;
        }
        Ok(())
    }

    /// Fails unless everything that an operation names is live; the error names the pass.
    pub(crate) fn check_op(&self, op: &Op) -> Result<()> {
        let name = op.sweep.name();
        op.matrix().map_or(Ok(()), |a| self.stored(a, name).map(drop))?;
        op.vectors().try_for_each(|v| self.columns(v, name).map(drop))?;
        op.cells().try_for_each(|cell| self.cells[cell.kind as usize].check(cell, name))
    }
    /// The same of a program.
    pub(crate) fn check(&self, program: &Program) -> Result<()> {
        program.witnesses().try_for_each(|op| self.check_op(op))
    }
}
/// Fails for a vector whose elements are not stored in its type.
fn wide(v: Vector) -> Result<()> {
    match v.narrow {
        false => Ok(()),
        true => Err(Error::Unsupported {
            operation: "copying on the device".into(),
            message: "the vector is stored in a narrower type".into(),
        }),
    }
}
