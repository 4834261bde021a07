//! Device memory: one arena for vectors, bases and matrices, one buffer of cells for each number type.
mod cells;
use crate::device::Device;
use crate::driver::{Buffer, Context, Queue, Status, failed};
use crate::source::{SEGMENT, TEAM};
use cells::CellFile;
use lacuna_engine::{
    Argument, Basis, Error, Format, Kind, Mark, Matrix, Program, Result, Scalar, Vector, check_pattern,
    next_serial,
};
use std::any::Any;
use std::sync::Arc;

/// Alignment of every array in the arena, in bytes.
const ALIGN: usize = 256;
/// Initial size of the arena, in bytes.
const FIRST: usize = 1 << 20;

/// The location of a vector.
struct Slot {
    serial: u32,
    kind: Kind,
    /// In bytes.
    offset: usize,
    len: usize,
}

struct StoredMatrix {
    serial: u32,
    kind: Kind,
    shape: (usize, usize),
    start: usize,
    /// The words of the matrix in a table of names.
    words: Vec<u64>,
    /// Keeps the host's arrays alive, as the trait promises.
    format: Box<dyn Any + Send + Sync>,
}

/// The device memory behind handles.
pub(crate) struct Memory {
    device: String,
    total: u64,
    largest: u64,
    arena: Option<Buffer>,
    capacity: usize,
    used: usize,
    slots: Vec<Slot>,
    matrices: Vec<StoredMatrix>,
    cells: [CellFile; 4],
    /// A copy of cells on the device: number type, first cell, bytes.
    mirror: Option<(Kind, usize, Vec<u8>)>,
    /// Counts replaced buffers: kernel arguments set before a change are invalid.
    pub(crate) generation: u64,
    /// Counts how often a matrix was given new values.
    pub(crate) values: u64,
}

/// The kernels of products by code, as in `kernels-opencl/shared/shape.cl`, with their formats.
const PRODUCTS: [(&str, &[&str]); 11] = [
    ("spmv_csr", &["csr"]),
    ("spmv_dia", &["dia"]),
    ("spmv_sell", &["sell", "ell"]),
    ("spmv_bcsr", &["bcsr"]),
    ("spmv_hyb", &["hyb", "coo"]),
    ("spmv_stencil", &["stencil"]),
    ("spmv_packed", &["packed"]),
    ("spmv_dense", &["dense"]),
    ("spmv_pkt", &["pkt"]),
    (SOLVE, &["triangular"]),
    ("spmv_interpolation", &["interpolation"]),
];

/// Stands in for the kernels of triangular solves, which are no products.
const SOLVE: &str = "tri_solve";

/// The code of a format in the kernels.
fn format_code(kernel: &str) -> Option<u64> {
    PRODUCTS.iter().position(|(_, formats)| formats.contains(&kernel)).map(|code| code as u64)
}

impl Memory {
    pub(crate) fn new(device: &Device) -> Self {
        Memory {
            device: device.name.clone(),
            total: device.memory,
            largest: device.largest_buffer,
            arena: None,
            capacity: 0,
            used: 0,
            slots: Vec::new(),
            matrices: Vec::new(),
            cells: Default::default(),
            mirror: None,
            generation: 0,
            values: 0,
        }
    }

    /// A buffer, or an out-of-memory error with the requested and the available bytes: the device's largest
    /// buffer, or less if this backend holds the rest. Some drivers allocate only on first use, so the first
    /// bytes are written.
    pub(crate) fn buffer(
        &self,
        context: &Context,
        queue: &Queue,
        bytes: usize,
        operation: &str,
    ) -> Result<Buffer> {
        let exhausted = || Error::OutOfMemory {
            operation: operation.into(),
            device: self.device.clone(),
            requested: bytes as u64,
            available: Some(self.total.saturating_sub(context.held()).min(self.largest)),
        };
        if bytes as u64 > self.total {
            return Err(exhausted());
        }
        let used = |buffer: Buffer| queue.fill(&buffer, 0, bytes.min(16), &[0]).map(|()| buffer);
        context.buffer(bytes).and_then(used).map_err(|status| match status.is_out_of_memory() {
            true => exhausted(),
            false => failed(&self.device, operation, status),
        })
    }

    fn fail(&self, operation: &str) -> impl Fn(Status) -> Error + use<> {
        let (device, operation) = (self.device.clone(), operation.to_owned());
        move |status| failed(&device, &operation, status)
    }

    /// Allocates `bytes` bytes in the arena; returns their offset.
    fn take(&mut self, context: &Context, queue: &Queue, bytes: usize, operation: &str) -> Result<usize> {
        let start = self.used;
        let end = bytes.checked_next_multiple_of(ALIGN).and_then(|bytes| bytes.checked_add(start));
        let end = end.ok_or_else(|| Error::OutOfMemory {
            operation: operation.into(),
            device: self.device.clone(),
            requested: u64::MAX,
            available: Some(self.total),
        })?;
        if end > self.capacity || self.arena.is_none() {
            let generous = end.max(self.capacity.saturating_mul(2)).max(FIRST);
            let (bytes, buffer) = match self.buffer(context, queue, generous, operation) {
                Ok(buffer) => (generous, buffer),
                Err(_) => (end, self.buffer(context, queue, end, operation)?),
            };
            if let Some(old) = &self.arena {
                queue.copy(old, &buffer, self.used).map_err(self.fail(operation))?;
            }
            (self.arena, self.capacity) = (Some(buffer), bytes);
            self.generation += 1;
        }
        self.used = end;
        Ok(start)
    }

    /// Vectors stored in the type `S`, which is `T` or its narrower type.
    pub(crate) fn basis<T: Scalar, S: Scalar>(
        &mut self,
        context: &Context,
        queue: &Queue,
        n: usize,
        columns: usize,
    ) -> Result<Basis<T>> {
        let operation = format!("{columns} vectors of {n} elements");
        // Kernels process whole segments.
        let stride = n.div_ceil(SEGMENT).saturating_mul(SEGMENT * size_of::<S>());
        let bytes = stride.saturating_mul(columns);
        let offset = self.take(context, queue, bytes, &operation)?;
        if let Some(arena) = &self.arena {
            queue.fill(arena, offset, bytes, &[0; 4]).map_err(self.fail(&operation))?;
        }
        let (first, serial) = (self.slots.len() as u32, next_serial());
        let slot = |j| Slot { serial, kind: S::KIND, offset: offset + j * stride, len: n };
        self.slots.extend((0..columns).map(slot));
        Ok(Basis::new(first, serial, n, columns, S::KIND != T::KIND))
    }

    pub(crate) fn matrix<T: Scalar>(
        &mut self,
        context: &Context,
        queue: &Queue,
        a: Arc<dyn Format<T>>,
    ) -> Result<Matrix<T>> {
        let ((rows, cols), lanes) = (a.shape(), a.lanes());
        let operation = format!("a {rows}x{cols} matrix in format `{}`", a.kernel());
        let code = format_code(a.kernel()).filter(|_| lanes.is_power_of_two() && lanes <= TEAM);
        let Some(code) = code else {
            let message = "there is no OpenCL kernel for it; use CSR".into();
            return Err(Error::Unsupported { operation, message });
        };
        a.prepare()?;
        let mut words = vec![code, lanes as u64];
        let start = self.used;
        let mut put_all = || -> Result<()> {
            for argument in a.arguments() {
                let bytes = match argument {
                    Argument::Size(size) => {
                        words.push(size.into());
                        continue;
                    }
                    Argument::Indices(array) => bytemuck::cast_slice(array),
                    Argument::Offsets(array) => bytemuck::cast_slice(array),
                    Argument::Short(array) => bytemuck::cast_slice(array),
                    Argument::Values(array) => bytemuck::cast_slice(array),
                    Argument::Narrow(array) => bytemuck::cast_slice(array),
                };
                let offset = self.take(context, queue, bytes.len().max(ALIGN), &operation)?;
                if let Some(arena) = &self.arena {
                    queue.write(arena, offset, bytes).map_err(self.fail(&operation))?;
                }
                words.push(offset as u64);
            }
            if a.partial_sums() > 0 {
                let bytes = a.partial_sums().saturating_mul(size_of::<T>());
                words.push(self.take(context, queue, bytes, &operation)? as u64);
            }
            Ok(())
        };
        if let Err(error) = put_all() {
            self.used = start;
            return Err(error);
        }
        words.resize(crate::source::MATRIX_WORDS, 0);
        let serial = next_serial();
        let handle = Matrix::new(self.matrices.len() as u32, serial, rows, cols, a.nnz(), a.bytes());
        self.matrices.push(StoredMatrix {
            serial,
            kind: T::KIND,
            shape: a.shape(),
            start,
            words,
            format: Box::new(a),
        });
        Ok(handle)
    }

    /// Gives a matrix new values on the same pattern, in its existing memory.
    pub(crate) fn set_matrix<T: Scalar>(
        &mut self,
        queue: &Queue,
        a: Matrix<T>,
        to: Arc<dyn Format<T>>,
    ) -> Result<()> {
        let operation = "new values of a matrix";
        let words = self.matrix_words(a, operation)?;
        let stale = || Error::Stale { operation: operation.into(), what: "matrix" };
        check_pattern(&**self.format(a).ok_or_else(stale)?, &*to)?;
        to.prepare()?;
        for (argument, offset) in to.arguments().iter().zip(&words[2..]) {
            match argument {
                Argument::Values(values) => {
                    self.upload(queue, *offset as usize, bytemuck::cast_slice(values))?
                }
                Argument::Narrow(values) => {
                    self.upload(queue, *offset as usize, bytemuck::cast_slice(values))?
                }
                _ => {}
            }
        }
        self.matrices[a.slot as usize].format = Box::new(to);
        self.values += 1;
        Ok(())
    }

    pub(crate) fn mark(&self) -> Mark {
        let [a, b, c, d] = [0, 1, 2, 3].map(|kind| self.cells[kind].serials.len());
        Mark { counts: [self.slots.len(), self.matrices.len(), a, b, c, d] }
    }

    pub(crate) fn release(&mut self, mark: Mark) {
        let [slots, matrices, cells @ ..] = mark.counts;
        let starts = self.slots.get(slots).map(|s| s.offset).into_iter();
        let starts = starts.chain(self.matrices.get(matrices).map(|m| m.start));
        self.used = starts.min().unwrap_or(self.used).min(self.used);
        self.slots.truncate(slots);
        self.matrices.truncate(matrices);
        self.cells.iter_mut().zip(cells).for_each(|(file, count)| file.truncate(count));
    }

    /// Whether a matrix still exists.
    pub(crate) fn has_matrix(&self, serial: u32) -> bool {
        self.matrices.iter().any(|m| m.serial == serial)
    }
    /// The byte offset of a live vector.
    pub(crate) fn offset<T: Scalar>(&self, v: Vector<T>, operation: &str) -> Result<usize> {
        let kind = if v.narrow { T::Narrow::KIND } else { T::KIND };
        let live = |slot: &&Slot| slot.serial == v.serial && slot.kind == kind && slot.len == v.len;
        let slot = self.slots.get(v.slot as usize).filter(live);
        slot.map(|s| s.offset).ok_or_else(|| Error::Stale { operation: operation.into(), what: "vector" })
    }

    /// The byte offset of column 0 of a live basis, and the bytes from one column to the next.
    pub(crate) fn basis_offset<T: Scalar>(&self, v: Basis<T>, operation: &str) -> Result<(usize, usize)> {
        if v.columns == 0 {
            return Ok((0, 0));
        }
        let first = self.offset(v.column(0), operation)?;
        let last = self.offset(v.column(v.columns - 1), operation)?;
        Ok((first, if v.columns > 1 { (last - first) / (v.columns - 1) } else { 0 }))
    }

    /// The host's copy of a live matrix.
    pub(crate) fn format<T: Scalar>(&self, a: Matrix<T>) -> Option<&Arc<dyn Format<T>>> {
        let live = self.matrices.get(a.slot as usize).filter(|m| m.serial == a.serial);
        live.and_then(|m| m.format.downcast_ref())
    }

    /// The words of a live matrix.
    pub(crate) fn matrix_words<T: Scalar>(&self, a: Matrix<T>, operation: &str) -> Result<&[u64]> {
        let live =
            |m: &&StoredMatrix| m.serial == a.serial && m.kind == T::KIND && m.shape == (a.rows, a.cols);
        let matrix = self.matrices.get(a.slot as usize).filter(live);
        matrix
            .map(|m| m.words.as_slice())
            .ok_or_else(|| Error::Stale { operation: operation.into(), what: "matrix" })
    }

    /// The kernel of products with a live matrix.
    pub(crate) fn spmv_kernel<T: Scalar>(&self, a: Matrix<T>, operation: &str) -> Result<&'static str> {
        match PRODUCTS[self.matrix_words(a, operation)?[0] as usize].0 {
            SOLVE => Err(Error::Unsupported {
                operation: format!("{operation}: a product with a matrix in format `triangular`"),
                message: "the OpenCL backend has no kernel for it; use CSR".into(),
            }),
            kernel => Ok(kernel),
        }
    }

    /// Number of partial sums that a product with a live matrix computes before its rows.
    pub(crate) fn partial_sums<T: Scalar>(&self, a: Matrix<T>) -> usize {
        self.format(a).map_or(0, |format| format.partial_sums())
    }

    /// The arena, created if needed.
    pub(crate) fn arena(&mut self, context: &Context, queue: &Queue) -> Result<&Buffer> {
        if self.arena.is_none() {
            self.take(context, queue, 0, "device memory")?;
        }
        self.arena.as_ref().ok_or_else(|| Error::Stale { operation: "device memory".into(), what: "arena" })
    }

    pub(crate) fn upload(&self, queue: &Queue, offset: usize, from: &[u8]) -> Result<()> {
        let Some(arena) = &self.arena else { return Ok(()) };
        queue.write(arena, offset, from).map_err(self.fail("upload"))
    }
    pub(crate) fn clear(&self, queue: &Queue, offset: usize, bytes: usize) -> Result<()> {
        let Some(arena) = &self.arena else { return Ok(()) };
        queue.fill(arena, offset, bytes, &[0; 4]).map_err(self.fail("clear"))
    }
    pub(crate) fn download(&self, queue: &Queue, offset: usize, to: &mut [u8]) -> Result<()> {
        let Some(arena) = &self.arena else { return Ok(()) };
        queue.read(arena, offset, to).map_err(self.fail("download"))
    }

    /// Fails unless every vector, matrix and cell that a program names is live; the error names the pass.
    pub(crate) fn check<T: Scalar>(&self, program: &Program<T>) -> Result<()> {
        for op in program.ops() {
            let name = &op.sweep.name;
            op.matrix().map_or(Ok(()), |a| self.matrix_words(a, name).map(drop))?;
            op.vectors().try_for_each(|v| self.offset(v, name).map(drop))?;
            op.cells().try_for_each(|cell| self.check_cell(cell, name))?;
        }
        Ok(())
    }

    /// The arena and the cells, if both exist.
    pub(crate) fn both<T: Scalar>(&self) -> Option<(&Buffer, &Buffer)> {
        self.arena.as_ref().zip(self.cells[T::KIND as usize].buffer.as_ref())
    }
}
