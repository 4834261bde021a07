//! What is behind handles: vectors and matrices in the arena, cells in a buffer for each number type.
mod cells;
use crate::compiler::{SEGMENT, TEAM};
use crate::driver::{Buffer, Driver};
use crate::memory::{Arena, Place, padded};
use cells::CellFile;
use lacuna_engine::arena::{Blocks, Table};
use lacuna_engine::{
    AnyFormat, Argument, Basis, Error, Matrix, NumberType, Op, Program, Resource, Result, Scalar, Vector,
    check_copy, check_pattern, numbers, with_each, with_number,
};
use lacuna_gpu::check_type;
use std::collections::BTreeMap;

struct StoredMatrix {
    shape: (usize, usize),
    place: Place,
    /// The words of the matrix in a table of names.
    words: Vec<u64>,
    /// Keeps the host's arrays alive, as the trait promises.
    format: AnyFormat,
}

/// The device memory behind handles.
#[derive(Default)]
pub(crate) struct Store {
    arena: Arena,
    blocks: Blocks<Place>,
    matrices: Table<StoredMatrix>,
    cells: BTreeMap<NumberType, CellFile>,
    /// A copy of cells on the device: number type, first cell, bytes.
    mirror: Option<(NumberType, usize, Vec<u8>)>,
    /// Counts replaced buffers: kernel arguments set before a change are invalid.
    pub(crate) generation: u64,
    /// Counts how often a matrix was given new values.
    pub(crate) values: u64,
    /// Counts how often something was freed or a matrix was given new values: what was live before may not be so any
    /// more.
    pub(crate) epoch: u64,
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

fn stale(operation: &str, what: &'static str) -> Error {
    Error::Stale { operation: operation.into(), what }
}

/// Bytes from one vector to the next: kernels process whole segments.
fn stride(kind: NumberType, n: usize, narrow: bool) -> usize {
    n.div_ceil(SEGMENT).saturating_mul(SEGMENT * kind.element(narrow))
}

/// The bytes of an argument's array; `None` for a number.
fn array<'a, T: Scalar>(argument: &Argument<'a, T>) -> Option<&'a [u8]> {
    Some(match *argument {
        Argument::Size(_) => return None,
        Argument::Indices(array) => bytemuck::cast_slice(array),
        Argument::Offsets(array) => bytemuck::cast_slice(array),
        Argument::Short(array) => bytemuck::cast_slice(array),
        Argument::Values(array) => bytemuck::cast_slice(array),
        Argument::Narrow(array) => bytemuck::cast_slice(array),
    })
}

impl Store {
    fn take(&mut self, driver: &Driver, bytes: usize, operation: &str) -> Result<Place> {
        let (place, replaced) = self.arena.take(driver, bytes, operation)?;
        self.generation += u64::from(replaced);
        Ok(place)
    }

    /// `columns` vectors. What follows the last element of each is zero up to a whole segment.
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
        let (stride, used) = (stride(kind, n, narrow), n.saturating_mul(kind.element(narrow)));
        let bytes = stride.saturating_mul(columns);
        if !self.blocks.has_room(columns) {
            return Err(driver.exhausted(bytes as u64, &operation));
        }
        let place = self.take(driver, bytes, &operation)?;
        for j in 0..if n > 0 { columns } else { 0 } {
            let filled = self.clear_bytes(driver, place.offset() + j * stride + used, stride - used);
            if let Err(error) = filled {
                self.arena.give(place);
                return Err(error);
            }
        }
        Ok(self.blocks.add(kind, n, columns, narrow, place))
    }

    pub(crate) fn matrix(&mut self, driver: &Driver, a: AnyFormat) -> Result<Matrix> {
        check_type(&a)?;
        let (kind, (rows, cols), nnz, bytes) = (a.kind(), a.shape(), a.nnz(), a.bytes());
        let (lanes, sums) = (a.lanes(), a.partial_sums());
        let operation = format!("a {rows}x{cols} matrix in format `{}`", a.kernel());
        let code = format_code(a.kernel()).filter(|_| lanes.is_power_of_two() && lanes <= TEAM);
        let Some(code) = code else {
            let message = "there is no OpenCL kernel for it; use CSR".into();
            return Err(Error::Unsupported { operation, message });
        };
        with_each!(&a, a => a.prepare())?;
        // Where each array begins; then the sums.
        let mut words = vec![code, lanes as u64];
        let mut end = 0;
        let mut room = |bytes: usize| {
            let at = end;
            end = padded(bytes.max(1)).and_then(|bytes| bytes.checked_add(end)).unwrap_or(usize::MAX);
            at as u64
        };
        let mut offsets = Vec::new();
        with_each!(&a, a => for argument in a.arguments() {
            match (&argument, array(&argument)) {
                (_, Some(bytes)) => {
                    offsets.push(words.len());
                    words.push(room(bytes.len()));
                }
                (Argument::Size(size), _) => words.push((*size).into()),
                _ => {}
            }
        });
        if sums > 0 {
            offsets.push(words.len());
            words.push(room(sums.saturating_mul(kind.size())));
        }
        let place = self.take(driver, end, &operation)?;
        offsets.iter().for_each(|word| words[*word] += place.offset() as u64);
        words.resize(crate::compiler::MATRIX_WORDS, 0);
        let written = with_each!(&a, a => self.write_arrays(driver, &a.arguments(), &words, |_| true));
        if let Err(error) = written {
            self.arena.give(place);
            return Err(error);
        }
        let stored = StoredMatrix { shape: (rows, cols), place, words, format: a };
        let (slot, serial) = self.matrices.add(stored);
        Ok(Matrix::of(kind, slot, serial, rows, cols, nnz, bytes))
    }

    /// A matrix in `csr` with copies of its pointers of rows, its columns and its values.
    pub(crate) fn keep_matrix(
        &mut self,
        driver: &Driver,
        a: AnyFormat,
        arrays: &[&Buffer; 3],
    ) -> Result<Matrix> {
        let (kind, (rows, cols), nnz, bytes) = (a.kind(), a.shape(), a.nnz(), a.bytes());
        let operation = format!("a {rows}x{cols} matrix in format `{}`", a.kernel());
        let lengths = [4 * (rows + 1), 4 * nnz, kind.size() * nnz];
        let sums = a.partial_sums() * kind.size();
        let mut words = vec![format_code(a.kernel()).unwrap_or(0), a.lanes() as u64];
        let mut end = 0;
        for bytes in lengths.into_iter().chain((sums > 0).then_some(sums)) {
            words.push(end as u64);
            end = padded(bytes.max(1)).and_then(|bytes| bytes.checked_add(end)).unwrap_or(usize::MAX);
        }
        let place = self.take(driver, end, &operation)?;
        words[2..].iter_mut().for_each(|word| *word += place.offset() as u64);
        words.resize(crate::compiler::MATRIX_WORDS, 0);
        let mut copied = arrays.iter().zip(lengths).zip(&words[2..]);
        let copied =
            copied.try_for_each(|((from, bytes), at)| self.copy_in(driver, from, *at as usize, bytes));
        if let Err(error) = copied {
            self.arena.give(place);
            return Err(error);
        }
        let (slot, serial) = self.matrices.add(StoredMatrix { shape: (rows, cols), place, words, format: a });
        Ok(Matrix::of(kind, slot, serial, rows, cols, nnz, bytes))
    }
    /// Gives a matrix in `csr` these values.
    pub(crate) fn set_values(&mut self, driver: &Driver, a: Matrix, values: &Buffer) -> Result<()> {
        let places = self.arrays_of(a, "new values of a matrix")?;
        if let Some((at, bytes)) = places.last() {
            self.copy_in(driver, values, *at, *bytes)?;
        }
        (self.values, self.epoch) = (self.values + 1, self.epoch + 1);
        Ok(())
    }
    /// Where the arrays of a matrix begin, with their bytes.
    pub(crate) fn arrays_of(&self, a: Matrix, operation: &str) -> Result<Vec<(usize, usize)>> {
        let stored = self.stored(a, operation)?;
        let lengths = match stored.format.kernel() {
            "csr" => vec![4 * (a.rows + 1), 4 * a.nnz, a.kind.size() * a.nnz],
            _ => with_each!(&stored.format, format => {
                format.arguments().iter().filter_map(array).map(<[u8]>::len).collect()
            }),
        };
        let first = match stored.format.kernel() {
            "csr" => 2,
            // After the size of a block.
            _ => 3,
        };
        Ok(stored.words[first..].iter().map(|at| *at as usize).zip(lengths).collect())
    }
    /// Copies a part of the arena to a buffer.
    pub(crate) fn copy_out(&self, driver: &Driver, at: usize, to: &Buffer, bytes: usize) -> Result<()> {
        let Some(arena) = self.arena.buffer().filter(|_| bytes > 0) else { return Ok(()) };
        driver.queue.copy((arena, at), (to, 0), bytes).map_err(driver.fail("copying an array"))
    }
    /// Copies a buffer to a part of the arena.
    pub(crate) fn copy_in(&self, driver: &Driver, from: &Buffer, at: usize, bytes: usize) -> Result<()> {
        let Some(arena) = self.arena.buffer().filter(|_| bytes > 0) else { return Ok(()) };
        driver.queue.copy((from, 0), (arena, at), bytes).map_err(driver.fail("copying an array"))
    }

    /// Writes the arrays of a matrix that are `wanted` to where its words say.
    fn write_arrays<T: Scalar>(
        &self,
        driver: &Driver,
        arguments: &[Argument<'_, T>],
        words: &[u64],
        wanted: impl Fn(&Argument<'_, T>) -> bool,
    ) -> Result<()> {
        for (argument, offset) in arguments.iter().zip(&words[2..]).filter(|(argument, _)| wanted(argument)) {
            if let Some(bytes) = array(argument) {
                self.write_bytes(driver, *offset as usize, bytes)?;
            }
        }
        Ok(())
    }

    /// Gives a matrix new values on the same pattern, in its existing memory.
    pub(crate) fn set_matrix(&mut self, driver: &Driver, a: Matrix, to: AnyFormat) -> Result<()> {
        let operation = "new values of a matrix";
        let old = self.stored(a, operation)?;
        check_type(&to)?;
        with_each!(&to, to => {
            let same = check_pattern(&**own(&old.format, operation)?, a, &**to);
            same?;
            to.prepare()?;
            let values =
                |argument: &Argument<'_, _>| matches!(argument, Argument::Values(_) | Argument::Narrow(_));
            self.write_arrays(driver, &to.arguments(), &old.words, values)?;
        });
        if let Some(old) = self.matrices.get_mut(a.slot, a.serial) {
            old.format = to;
        }
        (self.values, self.epoch) = (self.values + 1, self.epoch + 1);
        Ok(())
    }

    /// Frees memory.
    pub(crate) fn free(&mut self, what: Resource) {
        self.epoch += 1;
        match what {
            Resource::Vectors(basis) => {
                if let Some(place) = self.blocks.remove(basis) {
                    self.arena.give(place);
                }
            }
            Resource::Cells(cells) => {
                if let Some(file) = self.cells.get_mut(&cells.kind) {
                    file.free(cells);
                }
            }
            Resource::Matrix(a) => {
                if let Some(matrix) = self.matrices.remove(a.slot, a.serial) {
                    self.arena.give(matrix.place);
                }
            }
            Resource::Plan(_) => {}
        }
    }

    /// The byte offset of a live vector.
    pub(crate) fn offset(&self, v: Vector, operation: &str) -> Result<usize> {
        let (block, column) = self.blocks.get(v).ok_or_else(|| stale(operation, "vector"))?;
        Ok(block.buffer.offset() + column * stride(v.kind, v.len, v.narrow))
    }

    /// The byte offset of column 0 of a live basis, and the bytes from one column to the next.
    pub(crate) fn basis_offset(&self, v: Basis, operation: &str) -> Result<(usize, usize)> {
        v.ends(v.columns as u32).try_for_each(|end| self.offset(end, operation).map(drop))?;
        match v.columns {
            0 => Ok((0, 0)),
            _ => Ok((self.offset(v.column(0), operation)?, stride(v.kind, v.len, v.narrow))),
        }
    }

    fn stored(&self, a: Matrix, operation: &str) -> Result<&StoredMatrix> {
        let live = |m: &&StoredMatrix| (m.format.kind(), m.shape) == (a.kind, (a.rows, a.cols));
        self.matrices.get(a.slot, a.serial).filter(live).ok_or_else(|| stale(operation, "matrix"))
    }
    /// The host's copy of a live matrix.
    pub(crate) fn format(&self, a: Matrix, operation: &str) -> Result<&AnyFormat> {
        self.stored(a, operation).map(|m| &m.format)
    }
    /// The words of a live matrix.
    pub(crate) fn matrix_words(&self, a: Matrix, operation: &str) -> Result<&[u64]> {
        self.stored(a, operation).map(|m| &*m.words)
    }

    /// The kernel of products with a live matrix.
    pub(crate) fn spmv_kernel(&self, a: Matrix, operation: &str) -> Result<&'static str> {
        match PRODUCTS[self.matrix_words(a, operation)?[0] as usize].0 {
            SOLVE => Err(Error::Unsupported {
                operation: format!("{operation}: a product with a matrix in format `triangular`"),
                message: "the OpenCL backend has no kernel for it; use CSR".into(),
            }),
            kernel => Ok(kernel),
        }
    }

    /// Copies numbers, given by their bytes, into a vector.
    pub(crate) fn upload(&self, driver: &Driver, from: &[u8], to: Vector) -> Result<()> {
        let offset = self.offset(to, "upload")?;
        with_number!(to.kind, T => {
            let from: &[T] = numbers(from, to, "upload")?;
            if to.narrow {
                let rounded: Vec<_> = from.iter().map(|number| number.narrowed()).collect();
                return self.write_bytes(driver, offset, bytemuck::cast_slice(&rounded));
            }
        });
        self.write_bytes(driver, offset, from)
    }
    /// Sets a vector to zero.
    pub(crate) fn clear(&self, driver: &Driver, v: Vector) -> Result<()> {
        self.clear_bytes(driver, self.offset(v, "clear")?, v.bytes())
    }
    /// Copies a vector into the bytes of numbers.
    pub(crate) fn download(&self, driver: &Driver, from: Vector, to: &mut [u8]) -> Result<()> {
        let offset = self.offset(from, "download")?;
        with_number!(from.kind, T => {
            numbers::<T>(to, from, "download")?;
            if from.narrow {
                let mut stored = vec![<T as Scalar>::Narrow::default(); from.len];
                self.read_bytes(driver, offset, bytemuck::cast_slice_mut(&mut stored))?;
                let to: &mut [T] = bytemuck::cast_slice_mut(to);
                to.iter_mut().zip(stored).for_each(|(to, number)| *to = T::widened(number));
                return Ok(());
            }
        });
        self.read_bytes(driver, offset, to)
    }

    /// Copies a vector into one with elements of the same type.
    pub(crate) fn copy(&self, driver: &Driver, from: Vector, to: Vector) -> Result<()> {
        check_copy(from, to)?;
        let places = [self.offset(from, "copy")?, self.offset(to, "copy")?];
        let Some(arena) = self.arena.buffer().filter(|_| places[0] != places[1]) else { return Ok(()) };
        driver.queue.copy((arena, places[0]), (arena, places[1]), from.bytes()).map_err(driver.fail("copy"))
    }

    fn write_bytes(&self, driver: &Driver, offset: usize, from: &[u8]) -> Result<()> {
        let Some(arena) = self.arena.buffer() else { return Ok(()) };
        driver.queue.write(arena, offset, from).map_err(driver.fail("upload"))
    }
    fn clear_bytes(&self, driver: &Driver, offset: usize, bytes: usize) -> Result<()> {
        let Some(arena) = self.arena.buffer() else { return Ok(()) };
        driver.queue.fill(arena, offset, bytes, &[0; 4]).map_err(driver.fail("clear"))
    }
    fn read_bytes(&self, driver: &Driver, offset: usize, to: &mut [u8]) -> Result<()> {
        let Some(arena) = self.arena.buffer() else { return Ok(()) };
        driver.queue.read(arena, offset, to).map_err(driver.fail("download"))
    }

    /// Fails unless every vector, matrix and cell that an operation names is live.
    pub(crate) fn check_op(&self, op: &Op) -> Result<()> {
        let name = op.sweep.name();
        op.matrix().map_or(Ok(()), |a| self.stored(a, name).map(drop))?;
        op.vectors().try_for_each(|v| self.offset(v, name).map(drop))?;
        op.cells().try_for_each(|cell| self.check_cell(cell, name))
    }
    /// The same for a program; the error names the pass.
    pub(crate) fn check(&self, program: &Program) -> Result<()> {
        program.witnesses().try_for_each(|op| self.check_op(op))
    }

    /// The arena and the cells of a number type, created if needed.
    pub(crate) fn buffers(&mut self, driver: &Driver, kind: NumberType) -> Result<(&Buffer, &Buffer)> {
        if self.arena.buffer().is_none() {
            self.take(driver, 0, "device memory")?;
        }
        if self.cell_buffer(kind).is_none() {
            self.cells(driver, kind, 0)?;
        }
        let both = self.arena.buffer().zip(self.cell_buffer(kind));
        both.ok_or_else(|| stale("device memory", "buffer"))
    }
}

/// The format of a matrix, if it is of this number type.
fn own<'a, T: Scalar>(
    format: &'a AnyFormat,
    operation: &str,
) -> Result<&'a std::sync::Arc<dyn lacuna_engine::Format<T>>> {
    format.get::<T>().ok_or_else(|| stale(operation, "matrix"))
}
