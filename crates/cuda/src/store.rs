//! The data behind handles: vectors, bases, matrices and cells in device memory.
mod cells;

use crate::driver::{Address, Driver};
use crate::launches::columns_kernel;
use crate::memory::{ALIGNMENT, Buffer, Pool};
use cells::CellFile;
use lacuna_engine::{
    Argument, Basis, Error, Format, Kind, Mark, Matrix, Program, Result, Scalar, Vector, check_pattern,
    next_serial,
};
use std::any::Any;
use std::sync::Arc;

struct Slot {
    serial: u32,
    kind: Kind,
    address: Address,
    len: usize,
    /// Index into the buffers.
    buffer: usize,
    /// Bytes to the next column of the same basis.
    stride: usize,
}

/// A matrix on the device.
pub(crate) struct StoredMatrix {
    serial: u32,
    kind: Kind,
    shape: (usize, usize),
    /// The stem of its kernels' names.
    pub(crate) kernel: &'static str,
    pub(crate) lanes: u32,
    /// The format's arguments in order: numbers by value, arrays by address.
    pub(crate) arguments: Vec<u64>,
    /// The numbers among the arguments.
    pub(crate) sizes: Vec<u32>,
    /// The arrays among the arguments.
    pub(crate) arrays: Vec<Address>,
    buffers: Vec<Buffer>,
    /// The format on the host, an `Arc<dyn Format<T>>`.
    format: Box<dyn Any + Send + Sync>,
}

/// Everything that a backend stores.
pub(crate) struct Store {
    slots: Vec<Slot>,
    buffers: Vec<Buffer>,
    matrices: Vec<StoredMatrix>,
    /// A `CellFile<T>` for each number type, in the order of [`Kind`].
    cells: [Box<dyn Any + Send>; 4],
    pub(crate) pool: Pool,
    /// Counts how often a matrix was given new values.
    pub(crate) generation: u64,
}

impl Store {
    pub(crate) fn new() -> Self {
        fn file<T: Scalar>() -> Box<dyn Any + Send> {
            Box::new(CellFile::<T> {
                host: Vec::new(),
                serials: Vec::new(),
                changed: 0..0,
                stale: 0..0,
                buffer: None,
            })
        }
        Store {
            generation: 0,
            slots: Vec::new(),
            buffers: Vec::new(),
            matrices: Vec::new(),
            cells: [
                file::<f32>(),
                file::<f64>(),
                file::<lacuna_engine::Complex32>(),
                file::<lacuna_engine::Complex64>(),
            ],
            pool: Pool::default(),
        }
    }

    /// Vectors stored in the type `S`, which is `T` or its narrower type.
    pub(crate) fn basis<T: Scalar, S: Scalar>(
        &mut self,
        driver: &Driver,
        n: usize,
        columns: usize,
    ) -> Result<Basis<T>> {
        let narrow = S::KIND != T::KIND;
        let operation = || format!("{columns} vectors of {n} elements");
        let stride = n.checked_mul(size_of::<S>()).and_then(|b| b.checked_next_multiple_of(ALIGNMENT));
        let bytes = stride.and_then(|stride| stride.checked_mul(columns));
        let (Some(stride), Some(bytes)) = (stride, bytes) else {
            return Err(Error::OutOfMemory {
                operation: operation(),
                device: driver.limits.name.clone(),
                requested: u64::MAX,
                available: driver.free_bytes(),
            });
        };
        if columns == 0 {
            return Ok(Basis::new(self.slots.len() as u32, next_serial(), n, 0, narrow));
        }
        let buffer = self.pool.take_zeroed(driver, bytes, &operation())?;
        let (first, serial) = (self.slots.len() as u32, next_serial());
        self.slots.extend((0..columns).map(|j| Slot {
            serial,
            kind: S::KIND,
            address: buffer.address + (j * stride) as u64,
            len: n,
            buffer: self.buffers.len(),
            stride,
        }));
        self.buffers.push(buffer);
        Ok(Basis::new(first, serial, n, columns, narrow))
    }

    pub(crate) fn matrix<T: Scalar>(&mut self, driver: &Driver, a: Arc<dyn Format<T>>) -> Result<Matrix<T>> {
        let mut buffers = Vec::new();
        let given = a.arguments();
        let arguments = match upload(driver, &mut self.pool, &mut buffers, &given) {
            Ok(arguments) => arguments,
            Err(error) => {
                buffers.into_iter().for_each(|b| self.pool.give(b));
                return Err(error);
            }
        };
        let is_size = |argument: &Argument<'_, T>| matches!(argument, Argument::Size(_));
        let (sizes, arrays): (Vec<_>, Vec<_>) = given.iter().zip(&arguments).partition(|(a, _)| is_size(a));
        let sizes = sizes.into_iter().map(|(_, size)| *size as u32).collect();
        let arrays = arrays.into_iter().map(|(_, address)| *address).collect();
        let (serial, (rows, cols)) = (next_serial(), a.shape());
        let handle = Matrix::new(self.matrices.len() as u32, serial, rows, cols, a.nnz(), a.bytes());
        self.matrices.push(StoredMatrix {
            serial,
            kind: T::KIND,
            shape: (rows, cols),
            kernel: a.kernel(),
            lanes: a.lanes() as u32,
            arguments,
            sizes,
            arrays,
            buffers,
            format: Box::new(a),
        });
        Ok(handle)
    }

    /// Gives a matrix new values on the same pattern, in its existing memory.
    pub(crate) fn set_matrix<T: Scalar>(
        &mut self,
        driver: &Driver,
        a: Matrix<T>,
        to: Arc<dyn Format<T>>,
    ) -> Result<()> {
        let operation = "new values of a matrix";
        self.stored(a, operation)?;
        let stale = || Error::Stale { operation: operation.into(), what: "matrix" };
        check_pattern(&**self.format(a).ok_or_else(stale)?, &*to)?;
        to.prepare()?;
        let stored = &mut self.matrices[a.slot as usize];
        for (argument, address) in to.arguments().iter().zip(&stored.arguments) {
            match argument {
                Argument::Values(values) => driver.upload(values, *address, operation)?,
                Argument::Narrow(values) => driver.upload(values, *address, operation)?,
                _ => {}
            }
        }
        stored.format = Box::new(to);
        self.generation += 1;
        Ok(())
    }

    pub(crate) fn mark(&self) -> Mark {
        let [a, b, c, d] = [
            self.file::<f32>().host.len(),
            self.file::<f64>().host.len(),
            self.file::<lacuna_engine::Complex32>().host.len(),
            self.file::<lacuna_engine::Complex64>().host.len(),
        ];
        Mark { counts: [self.slots.len(), self.matrices.len(), a, b, c, d] }
    }

    pub(crate) fn release(&mut self, mark: Mark) {
        let [slots, matrices, a, b, c, d] = mark.counts;
        if let Some(slot) = self.slots.get(slots) {
            for buffer in self.buffers.drain(slot.buffer..) {
                self.pool.give(buffer);
            }
        }
        self.slots.truncate(slots);
        let keep = matrices.min(self.matrices.len());
        for matrix in self.matrices.drain(keep..) {
            matrix.buffers.into_iter().for_each(|b| self.pool.give(b));
        }
        fn cut<T: Scalar>(store: &mut Store, count: usize) {
            let file = store.file_mut::<T>();
            file.host.truncate(count);
            file.serials.truncate(count);
            for range in [&mut file.changed, &mut file.stale] {
                *range = range.start.min(count)..range.end.min(count);
            }
        }
        cut::<f32>(self, a);
        cut::<f64>(self, b);
        cut::<lacuna_engine::Complex32>(self, c);
        cut::<lacuna_engine::Complex64>(self, d);
    }

    fn slot<T: Scalar>(&self, v: Vector<T>, operation: &str) -> Result<&Slot> {
        let kind = if v.narrow { T::Narrow::KIND } else { T::KIND };
        let live = |slot: &&Slot| slot.serial == v.serial && slot.kind == kind && slot.len == v.len;
        let stale = || Error::Stale { operation: operation.into(), what: "vector" };
        self.slots.get(v.slot as usize).filter(live).ok_or_else(stale)
    }
    /// The address of a vector.
    pub(crate) fn address<T: Scalar>(&self, v: Vector<T>, operation: &str) -> Result<Address> {
        self.slot(v, operation).map(|slot| slot.address)
    }
    /// The address of a vector as kernels take it: bit 0 marks a narrow one.
    pub(crate) fn place<T: Scalar>(&self, v: Vector<T>, operation: &str) -> Result<Address> {
        self.address(v, operation).map(|address| address | u64::from(v.narrow))
    }
    /// The address of a basis in the same form, and the bytes between columns.
    pub(crate) fn basis_place<T: Scalar>(&self, v: Basis<T>, operation: &str) -> Result<(Address, usize)> {
        if v.columns == 0 {
            return Ok((0, 0));
        }
        self.slot(v.column(v.columns - 1), operation)?;
        let slot = self.slot(v.column(0), operation)?;
        Ok((slot.address | u64::from(v.narrow), slot.stride))
    }
    /// The matrix behind a handle.
    pub(crate) fn stored<T: Scalar>(&self, a: Matrix<T>, operation: &str) -> Result<&StoredMatrix> {
        let stale = || Error::Stale { operation: operation.into(), what: "matrix" };
        let live =
            |m: &&StoredMatrix| m.serial == a.serial && m.kind == T::KIND && m.shape == (a.rows, a.cols);
        self.matrices.get(a.slot as usize).filter(live).ok_or_else(stale)
    }
    /// Whether a matrix still exists.
    pub(crate) fn has_matrix(&self, serial: u32) -> bool {
        self.matrices.iter().any(|m| m.serial == serial)
    }
    /// Whether there is a kernel for several columns at once, and `worth` accepts the format and its bytes.
    pub(crate) fn multiplies_columns<T: Scalar>(
        &self,
        a: Matrix<T>,
        worth: impl Fn(&str, usize) -> bool,
    ) -> bool {
        self.stored(a, "spmm").is_ok_and(|a| columns_kernel(a.kernel).is_some())
            && self.format(a).is_some_and(|a| !a.has_long_rows() && worth(a.kernel(), a.bytes()))
    }
    /// The format of a matrix, on the host.
    pub(crate) fn format<T: Scalar>(&self, a: Matrix<T>) -> Option<&Arc<dyn Format<T>>> {
        self.matrices.get(a.slot as usize).and_then(|m| m.format.downcast_ref())
    }

    /// Fails unless everything that a program names is live; the error names the pass.
    pub(crate) fn check<T: Scalar>(&self, program: &Program<T>) -> Result<()> {
        program.ops().try_for_each(|op| {
            let name = &op.sweep.name;
            op.matrix().map_or(Ok(()), |a| self.stored(a, name).map(drop))?;
            op.vectors().try_for_each(|v| self.address(v, name).map(drop))?;
            self.check_cells_of(op)
        })
    }
    /// Returns every buffer to the driver.
    pub(crate) fn free(&mut self, driver: &Driver) {
        self.release(Mark { counts: [0; 6] });
        fn drop_file<T: Scalar>(store: &mut Store) {
            let buffer = store.file_mut::<T>().buffer.take();
            buffer.into_iter().for_each(|b| store.pool.give(b));
        }
        drop_file::<f32>(self);
        drop_file::<f64>(self);
        drop_file::<lacuna_engine::Complex32>(self);
        drop_file::<lacuna_engine::Complex64>(self);
        self.pool.clear(driver);
    }
}

fn upload<T: Scalar>(
    driver: &Driver,
    pool: &mut Pool,
    buffers: &mut Vec<Buffer>,
    arguments: &[Argument<'_, T>],
) -> Result<Vec<u64>> {
    fn one<E: bytemuck::Pod>(
        driver: &Driver,
        pool: &mut Pool,
        buffers: &mut Vec<Buffer>,
        array: &[E],
    ) -> Result<u64> {
        let buffer = pool.take(driver, size_of_val(array), "a matrix")?;
        let address = buffer.address;
        buffers.push(buffer);
        driver.upload(array, address, "copying a matrix to the device")?;
        Ok(address)
    }
    let mut arrays = Vec::new();
    for argument in arguments {
        arrays.push(match argument {
            Argument::Size(size) => u64::from(*size),
            Argument::Indices(a) => one(driver, pool, buffers, a)?,
            Argument::Offsets(a) => one(driver, pool, buffers, a)?,
            Argument::Short(a) => one(driver, pool, buffers, a)?,
            Argument::Values(a) => one(driver, pool, buffers, a)?,
            Argument::Narrow(a) => one(driver, pool, buffers, a)?,
        });
    }
    Ok(arrays)
}
