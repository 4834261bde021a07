//! Products of matrices in compressed rows: the kernels that compute one, in order, for any driver.
//!
//! Row by row (Gustavson 1978, doi:10.1145/355791.355796), each by a team of threads: the columns of a row are found in a
//! hash table of its own, then sorted, then the sums are taken, one entry of the left factor after the other.
use bytemuck::Pod;
use lacuna_engine::{Argument, CompressedRows, Error, Format, Result, Scalar, pages};

const OPERATION: &str = "sparse product on a device";
/// Threads of a row; the kernels have the same number.
pub const TEAM: usize = 32;
/// Maximum number of rows, entries and slots: 32-bit indices go beyond the last by a team at the most.
const MOST: u64 = u32::MAX as u64 - 256;
/// Maximum number of entries in a row of a left factor, of slots for a row, and of entries in a row of the product. A
/// team alone takes long for a longer one; the entries of a row are sorted by counting.
const LONGEST_LEFT: u32 = 1 << 13;
const MOST_SLOTS: u64 = 1 << 18;
const LONGEST: u64 = 1 << 12;

/// The kernels, by the stems of their names.
pub const KERNELS: [&str; 6] =
    ["product_bounds", "product_scan", "product_insert", "product_compact", "product_sort", "product_sums"];

/// An argument of a kernel.
pub enum KernelArgument<'a, A> {
    /// An array.
    Array(&'a A),
    /// A number.
    Word(u32),
}

impl<A> Clone for KernelArgument<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<A> Copy for KernelArgument<'_, A> {}

/// The threads of a kernel.
#[derive(Clone, Copy)]
pub enum Threads {
    /// At least so many, in groups of any size.
    Each(usize),
    /// So many teams of [`TEAM`], each a group, or a part of one that runs in step.
    Teams(usize),
    /// One group, as large as the kernel says.
    One,
}

/// A device, as far as products need it. All methods fail with [`Error::OutOfMemory`] where memory is too small.
pub trait ProductDevice {
    /// An array on the device, freed on drop after the kernels that use it.
    type Array;
    /// An array of zeros.
    ///
    /// # Errors
    /// Device failures.
    fn zeros(&mut self, bytes: usize) -> Result<Self::Array>;
    /// An array with these elements.
    ///
    /// # Errors
    /// Device failures.
    fn array<E: Pod>(&mut self, elements: &[E]) -> Result<Self::Array>;
    /// Waits for the kernels and reads the first elements of an array.
    ///
    /// # Errors
    /// Device failures.
    fn read<E: Pod>(&mut self, from: &Self::Array, to: &mut [E]) -> Result<()>;
    /// Queues a kernel.
    ///
    /// # Errors
    /// Device failures.
    fn launch(
        &mut self,
        kernel: &'static str,
        over: Threads,
        arguments: &[KernelArgument<'_, Self::Array>],
    ) -> Result<()>;
}

/// A matrix on the device.
struct Sparse<A> {
    shape: (usize, usize),
    entries: usize,
    row_ptr: A,
    columns: A,
    values: A,
}

/// The product of matrices in `csr`, from the last to the first: see [`lacuna_engine::Backend::sparse_product`].
///
/// # Errors
/// As there, and [`Error::OutOfMemory`].
pub fn sparse_product<T: Scalar, D: ProductDevice>(
    dev: &mut D,
    factors: &[&dyn Format<T>],
) -> Result<Option<CompressedRows<T>>> {
    let (last, others) = factors.split_last().ok_or_else(|| Error::Argument {
        what: OPERATION.into(),
        message: "expected at least one factor, got none".into(),
    })?;
    for pair in factors.windows(2) {
        if pair[0].shape().1 != pair[1].shape().0 {
            let expected = format!("a right factor of {} rows", pair[0].shape().1);
            return Err(Error::Shape { operation: OPERATION.into(), expected, got: pair[1].shape() });
        }
    }
    for factor in factors {
        compressed(*factor)?;
    }
    if others.iter().any(|factor| !suits_left(*factor)) || last.nnz() as u64 > MOST {
        return Ok(None);
    }
    let not_finite = dev.zeros(4)?;
    let mut product = uploaded(dev, *last)?;
    for factor in others.iter().rev() {
        let left = uploaded(dev, *factor)?;
        let Some(next) = multiplied::<T, D>(dev, &left, &product, &not_finite)? else { return Ok(None) };
        product = next;
    }
    let mut is_not_finite = [0u32];
    dev.read(&not_finite, &mut is_not_finite)?;
    if is_not_finite != [0] {
        return Ok(None);
    }
    let mut row_ptr = pages::zeroed::<u32>(OPERATION, product.shape.0 + 1)?;
    let mut col_idx = pages::zeroed::<u32>(OPERATION, product.entries)?;
    let mut values = pages::zeroed::<T>(OPERATION, product.entries)?;
    dev.read(&product.row_ptr, &mut row_ptr)?;
    dev.read(&product.columns, &mut col_idx)?;
    dev.read(&product.values, &mut values)?;
    Ok(Some(CompressedRows { shape: product.shape, row_ptr, col_idx, values }))
}

/// The arrays of a matrix in `csr`.
type Arrays<'a, T> = (&'a [u32], &'a [u32], &'a [T]);

fn compressed<T: Scalar>(a: &dyn Format<T>) -> Result<Arrays<'_, T>> {
    match a.stored()[..] {
        [Argument::Indices(row_ptr), Argument::Indices(columns), Argument::Values(values)]
            if a.kernel() == "csr" =>
        {
            Ok((row_ptr, columns, values))
        }
        _ => {
            let message = format!("expected factors in `csr`, got `{}`", a.kernel());
            Err(Error::Unsupported { operation: OPERATION.into(), message })
        }
    }
}

/// Whether a left factor is small enough, with short enough rows.
fn suits_left<T: Scalar>(a: &dyn Format<T>) -> bool {
    let short = |row_ptr: &[u32]| row_ptr.windows(2).all(|ends| ends[1] - ends[0] <= LONGEST_LEFT);
    let small = (a.shape().0 * TEAM) as u64 <= MOST && a.nnz() as u64 <= MOST;
    small && compressed(a).is_ok_and(|(row_ptr, ..)| short(row_ptr))
}

fn uploaded<T: Scalar, D: ProductDevice>(dev: &mut D, a: &dyn Format<T>) -> Result<Sparse<D::Array>> {
    let (row_ptr, columns, values) = compressed(a)?;
    Ok(Sparse {
        shape: a.shape(),
        entries: values.len(),
        row_ptr: dev.array(row_ptr)?,
        columns: dev.array(columns)?,
        values: dev.array(values)?,
    })
}

/// `A B`, unless it is too large; sets `not_finite` if a sum is not finite.
fn multiplied<T: Scalar, D: ProductDevice>(
    dev: &mut D,
    a: &Sparse<D::Array>,
    b: &Sparse<D::Array>,
    not_finite: &D::Array,
) -> Result<Option<Sparse<D::Array>>> {
    use KernelArgument::{Array, Word};
    let (rows, cols) = (a.shape.0, b.shape.1);
    let count = Word(rows as u32);
    let by_rows = Threads::Teams(rows);
    let [a_rows, a_columns] = [Array(&a.row_ptr), Array(&a.columns)];
    let [b_rows, b_columns] = [Array(&b.row_ptr), Array(&b.columns)];
    // Sum and maximum of what was scanned.
    let totals = dev.zeros(16)?;
    let mut read = [0u64; 2];

    // As many slots for a row as there are products of entries, and half as many again.
    let slots = dev.zeros(4 * rows)?;
    dev.launch("product_bounds", Threads::Each(rows), &[a_rows, a_columns, b_rows, Array(&slots), count])?;
    let tables = dev.zeros(4 * (rows + 1))?;
    dev.launch("product_scan", Threads::One, &[Array(&slots), Array(&tables), Array(&totals), count])?;
    drop(slots);
    dev.read(&totals, &mut read)?;
    let [all_slots, most_slots] = read;
    if all_slots > MOST || most_slots > MOST_SLOTS {
        return Ok(None);
    }
    let table = dev.zeros(4 * all_slots as usize)?;
    let counts = dev.zeros(4 * rows)?;
    let insert = [a_rows, a_columns, b_rows, b_columns, Array(&tables), Array(&table), Array(&counts), count];
    dev.launch("product_insert", by_rows, &insert)?;
    let row_ptr = dev.zeros(4 * (rows + 1))?;
    dev.launch("product_scan", Threads::One, &[Array(&counts), Array(&row_ptr), Array(&totals), count])?;
    dev.read(&totals, &mut read)?;
    let [entries, longest] = read;
    if entries > MOST || longest > LONGEST {
        return Ok(None);
    }
    let entries = entries as usize;

    let unsorted = dev.zeros(4 * entries)?;
    let compact = [Array(&tables), Array(&table), Array(&row_ptr), Array(&counts), Array(&unsorted), count];
    dev.launch("product_compact", by_rows, &compact)?;
    drop((tables, table, counts));
    let columns = dev.zeros(4 * entries)?;
    dev.launch("product_sort", by_rows, &[Array(&row_ptr), Array(&unsorted), Array(&columns), count])?;
    drop(unsorted);
    let values = dev.zeros(size_of::<T>() * entries)?;
    let sums = [
        a_rows,
        a_columns,
        Array(&a.values),
        b_rows,
        b_columns,
        Array(&b.values),
        Array(&row_ptr),
        Array(&columns),
        Array(&values),
        Array(not_finite),
        count,
    ];
    dev.launch("product_sums", by_rows, &sums)?;
    Ok(Some(Sparse { shape: (rows, cols), entries, row_ptr, columns, values }))
}
