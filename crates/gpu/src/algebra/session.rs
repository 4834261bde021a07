//! A set-up on a device: its arrays by handle, and the operations on them, see [`lacuna_engine::Algebra`].
use super::aggregates::{FIRST_SET, JOIN, LABELS, OPEN, ROOTS, STATES};
use super::arnoldi::{APPLY, HASHED, PROJECT};
use super::lanczos::{ENERGY, START, STEP};
use super::look::{DIAGONAL, DIVISORS, GRAPH, LOOK, LUMP, SCALED, STRONG};
use super::product::{Factor, MOST, Sparse, multiplied};
use super::prolongator::{
    COLUMNS, COUNT, MEMBERS, NORMS, PROLONG, REGULAR, SCATTER, TENTATIVE, TURN, adjoint, prolongator, regular,
};
use super::{AlgebraDevice, Keeper, Kernel, aggregates, arnoldi, lanczos, look, read};
use bytemuck::cast_slice;
use lacuna_engine::arena::Table;
use lacuna_engine::{
    AggregateArrays, Algebra, AnyFormat, Array, CompressedRows, Each, Error, FilteredArrays, Format,
    FormatRefs, LanczosArrays, Look, Matrix, NumberType, Products, Result, RowArrays, Scalar, SparseArrays,
    StrongArrays, Vector, pages, with_number,
};
use lacuna_formats::{RemoteCsr, parallel};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) const OPERATION: &str = "a set-up on a device";
/// Entries of a row at the most: a thread alone takes long for more.
pub(super) const LONGEST_ROW: u32 = 1 << 12;

/// The kernels of a set-up, besides those of products and of independent sets.
pub const LEVEL_KERNELS: [Kernel; 27] = [
    DIAGONAL, LOOK, STRONG, GRAPH, LUMP, DIVISORS, SCALED, START, ENERGY, STEP, HASHED, APPLY, PROJECT, OPEN,
    STATES, ROOTS, LABELS, JOIN, COUNT, MEMBERS, NORMS, TENTATIVE, COLUMNS, PROLONG, SCATTER, TURN, REGULAR,
];
/// Those of devices with [`AlgebraDevice::waits_for_others`].
pub const WAITING_KERNELS: [Kernel; 1] = [FIRST_SET];

/// The arrays of set-ups on one device.
pub struct Arrays<A>(Table<A>);

impl<A> Default for Arrays<A> {
    fn default() -> Self {
        Arrays(Table::default())
    }
}

impl<A> Arrays<A> {
    pub(super) fn add(&mut self, array: A) -> Array {
        let (slot, serial) = self.0.add(array);
        Array { slot, serial }
    }
    pub(super) fn get(&self, array: Array) -> Result<&A> {
        self.0.get(array.slot, array.serial).ok_or_else(stale)
    }
    fn take(&mut self, array: Array) -> Result<A> {
        self.0.remove(array.slot, array.serial).ok_or_else(stale)
    }
    pub(super) fn sparse(&self, a: &SparseArrays) -> Result<Sparse<&A>> {
        let [row_ptr, columns, values] = [self.get(a.row_ptr)?, self.get(a.columns)?, self.get(a.values)?];
        Ok(Sparse { shape: a.shape, entries: a.entries, row_ptr, columns, values })
    }
    pub(super) fn add_sparse(&mut self, a: Sparse<A>) -> SparseArrays {
        let Sparse { shape, entries, row_ptr, columns, values } = a;
        let [row_ptr, columns, values] = [row_ptr, columns, values].map(|array| self.add(array));
        SparseArrays { shape, entries, row_ptr, columns, values }
    }
}

fn stale() -> Error {
    Error::Stale { operation: OPERATION.into(), what: "array" }
}

/// The arrays of set-ups on one device, between calls.
pub type SharedArrays<A> = Arc<Mutex<Arrays<A>>>;

/// A set-up at work on matrices of one number type.
pub struct Session<D: AlgebraDevice, K> {
    dev: D,
    keeper: K,
    arrays: Arrays<D::Array>,
    home: SharedArrays<D::Array>,
    kind: NumberType,
}

impl<D: AlgebraDevice, K> Drop for Session<D, K> {
    fn drop(&mut self) {
        *self.home.lock().unwrap_or_else(PoisonError::into_inner) = std::mem::take(&mut self.arrays);
    }
}

impl<D: AlgebraDevice, K: Keeper<D>> Session<D, K> {
    /// On a device, with what the backend keeps, the arrays of earlier calls, and a number type of double precision.
    pub fn new(dev: D, keeper: K, home: SharedArrays<D::Array>, kind: NumberType) -> Self {
        let arrays = std::mem::take(&mut *home.lock().unwrap_or_else(PoisonError::into_inner));
        Session { dev, keeper, arrays, home, kind }
    }

    /// A matrix whose rows begin there, if it is small enough.
    fn checked(&self, rows: &[u32]) -> bool {
        let longest = |i: usize| rows[i + 1] - rows[i] > LONGEST_ROW;
        let n = rows.len() - 1;
        (rows[n] as u64) < MOST && parallel::find_first(n, 1 << 14, longest).is_none()
    }
}

impl<D: AlgebraDevice, K: Keeper<D>> Algebra for Session<D, K> {
    fn upload(&mut self, a: Each<FormatRefs<'_>>) -> Result<Option<SparseArrays>> {
        let factor = Factor::of(&a)?;
        if factor.kind != self.kind || !self.checked(factor.row_ptr) {
            return Ok(None);
        }
        let dev = &mut self.dev;
        Ok(Some(self.arrays.add_sparse(Sparse {
            shape: factor.shape,
            entries: factor.columns.len(),
            row_ptr: dev.array(cast_slice(factor.row_ptr))?,
            columns: dev.array(cast_slice(factor.columns))?,
            values: dev.array(factor.values)?,
        })))
    }
    fn stored(&mut self, a: Matrix) -> Result<Option<SparseArrays>> {
        if a.kind != self.kind || a.nnz as u64 >= MOST {
            return Ok(None);
        }
        let Some([row_ptr, columns, values]) = self.keeper.stored(&mut self.dev, a)? else { return Ok(None) };
        let (shape, entries) = ((a.rows, a.cols), a.nnz);
        Ok(Some(self.arrays.add_sparse(Sparse { shape, entries, row_ptr, columns, values })))
    }
    fn download(&mut self, a: &SparseArrays) -> Result<Each<Products>> {
        let Sparse { shape, entries, row_ptr: rows, columns, values: numbers } = self.arrays.sparse(a)?;
        let mut row_ptr = pages::zeroed::<u32>(OPERATION, shape.0 + 1)?;
        let mut col_idx = pages::zeroed::<u32>(OPERATION, entries)?;
        read(&mut self.dev, rows, &mut row_ptr)?;
        read(&mut self.dev, columns, &mut col_idx)?;
        with_number!(self.kind, T => {
            let mut values = pages::zeroed::<T>(OPERATION, entries)?;
            read(&mut self.dev, numbers, &mut values)?;
            Ok(T::each::<Products>(CompressedRows { shape, row_ptr, col_idx, values }))
        })
    }
    fn reals(&mut self, from: Array, n: usize) -> Result<Vec<f64>> {
        let mut to = pages::zeroed::<f64>(OPERATION, n)?;
        read(&mut self.dev, self.arrays.get(from)?, &mut to)?;
        Ok(to)
    }
    fn free(&mut self, arrays: &[Array]) {
        for array in arrays {
            // One that is not there any more was freed before.
            let _ = self.arrays.take(*array);
        }
    }

    fn look(&mut self, a: &SparseArrays, hermitian: Option<bool>, at_least: f64) -> Result<Look> {
        look::look(&mut self.dev, &mut self.arrays, self.kind, a, hermitian, at_least)
    }
    fn strong(
        &mut self,
        a: &SparseArrays,
        rows: &RowArrays,
        threshold: f64,
        all: bool,
    ) -> Result<Option<StrongArrays>> {
        if all {
            return Ok(Some(StrongArrays { marks: None, graph: [a.row_ptr, a.columns], edges: a.entries }));
        }
        look::strong(&mut self.dev, &mut self.arrays, a, rows, threshold)
    }
    fn filtered(
        &mut self,
        a: &SparseArrays,
        rows: &RowArrays,
        marks: Option<Array>,
        near_null: Option<Array>,
    ) -> Result<FilteredArrays> {
        look::filtered(&mut self.dev, &mut self.arrays, self.kind, a, rows, marks, near_null)
    }
    fn smoothed(&mut self, a: &SparseArrays, rows: &RowArrays) -> Result<FilteredArrays> {
        look::smoothed(&mut self.dev, &mut self.arrays, self.kind, a, rows)
    }

    fn lanczos(&mut self, n: usize, by: Array) -> Result<Option<(LanczosArrays, f64)>> {
        lanczos::start(&mut self.dev, &mut self.arrays, self.kind, n, by)
    }
    fn lanczos_energy(
        &mut self,
        a: &SparseArrays,
        matrix: &FilteredArrays,
        on: &LanczosArrays,
    ) -> Result<f64> {
        lanczos::energy(&mut self.dev, &mut self.arrays, self.kind, a, matrix, on)
    }
    fn lanczos_step(
        &mut self,
        n: usize,
        matrix: &FilteredArrays,
        on: &mut LanczosArrays,
        factors: [f64; 3],
    ) -> Result<f64> {
        lanczos::step(&mut self.dev, &mut self.arrays, self.kind, n, matrix, on, factors)
    }

    fn arnoldi(&mut self, n: usize) -> Result<(Array, f64)> {
        arnoldi::start(&mut self.dev, &mut self.arrays, self.kind, n)
    }
    fn arnoldi_apply(
        &mut self,
        a: &SparseArrays,
        matrix: &FilteredArrays,
        v: Array,
        u: Array,
    ) -> Result<(Array, [f64; 2])> {
        arnoldi::apply(&mut self.dev, &mut self.arrays, self.kind, (a, matrix), [v, u])
    }
    fn arnoldi_project(
        &mut self,
        n: usize,
        w: Array,
        c: [f64; 2],
        v: Array,
        u: Option<Array>,
    ) -> Result<[f64; 2]> {
        arnoldi::project(&mut self.dev, &self.arrays, self.kind, n, [w, v], c, u)
    }

    fn aggregates(
        &mut self,
        a: &SparseArrays,
        rows: &RowArrays,
        strong: &StrongArrays,
    ) -> Result<Option<AggregateArrays>> {
        aggregates::aggregates(&mut self.dev, &mut self.arrays, a, rows, strong)
    }
    fn prolongator(
        &mut self,
        a: &SparseArrays,
        matrix: &FilteredArrays,
        aggregates: &AggregateArrays,
        near_null: Option<Array>,
        omega: f64,
    ) -> Result<Option<(SparseArrays, Array)>> {
        prolongator(&mut self.dev, &mut self.arrays, self.kind, a, matrix, aggregates, near_null, omega)
    }
    fn adjoint(&mut self, a: &SparseArrays) -> Result<Option<SparseArrays>> {
        adjoint(&mut self.dev, &mut self.arrays, self.kind, a)
    }
    fn product(&mut self, factors: &[&SparseArrays]) -> Result<Option<SparseArrays>> {
        let Some((last, others)) = factors.split_last() else { return Ok(None) };
        let dev = &mut self.dev;
        let not_finite = dev.zeros(4)?;
        let mut product: Option<Sparse<D::Array>> = None;
        for left in others.iter().rev() {
            let left = self.arrays.sparse(left)?;
            let made = match &product {
                Some(right) => multiplied(dev, self.kind, &left, &right.borrowed(), &not_finite)?,
                None => multiplied(dev, self.kind, &left, &self.arrays.sparse(last)?, &not_finite)?,
            };
            let Some(made) = made else { return Ok(None) };
            product = Some(made);
        }
        let mut is_not_finite = [0u32];
        read(dev, &not_finite, &mut is_not_finite)?;
        Ok(product.filter(|_| is_not_finite == [0]).map(|product| self.arrays.add_sparse(product)))
    }
    fn regular(
        &mut self,
        coarse: &SparseArrays,
        r: &SparseArrays,
        diagonal: Array,
        epsilon: f64,
    ) -> Result<usize> {
        regular(&mut self.dev, &self.arrays, coarse, r, diagonal, epsilon)
    }
    fn scaled(&mut self, n: usize, from: Array, by: f64) -> Result<Array> {
        look::scaled(&mut self.dev, &mut self.arrays, self.kind, n, from, by)
    }

    fn matrix(&mut self, a: &SparseArrays) -> Result<Matrix> {
        let mut row_ptr = pages::zeroed::<u32>(OPERATION, a.shape.0 + 1)?;
        read(&mut self.dev, self.arrays.get(a.row_ptr)?, &mut row_ptr)?;
        let format: AnyFormat = with_number!(self.kind, T => {
            let remote: Arc<dyn Format<T>> = Arc::new(RemoteCsr::<T>::new(a.shape, row_ptr)?);
            T::each(remote)
        });
        let [row_ptr, columns, values] = a.arrays();
        let arrays = [self.arrays.take(row_ptr)?, self.arrays.take(columns)?, self.arrays.take(values)?];
        self.keeper.keep(&mut self.dev, format, arrays)
    }
    fn set_matrix(&mut self, to: Matrix, from: &SparseArrays) -> Result<()> {
        if (to.rows, to.cols, to.nnz) != (from.shape.0, from.shape.1, from.entries) {
            let message = "the shape or the number of entries differs from that of the matrix that is there; \
                           prepare the system anew";
            return Err(Error::Structure {
                operation: "new values of a matrix".into(),
                message: message.into(),
            });
        }
        self.keeper.set_matrix(&mut self.dev, to, self.arrays.get(from.values)?)
    }
    fn set_vector(&mut self, to: Vector, from: Array) -> Result<()> {
        self.keeper.set_vector(&mut self.dev, to, self.arrays.get(from)?)
    }
}
