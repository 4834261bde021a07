//! Products of matrices in compressed rows.
//!
//! Row by row (Gustavson 1978, doi:10.1145/355791.355796), each by a team of threads: the columns of a row are found in a
//! hash table of its own, then sorted, then the sums are taken, one entry of the left factor after the other.
use super::{AlgebraDevice, GROUP, Kernel, KernelArgument, TEAM, Threads, read};
use bytemuck::cast_slice;
use lacuna_engine::{
    Argument, CompressedRows, Each, Error, FormatRefs, NumberType, Products, Result, Scalar, pages,
    with_each, with_number,
};
use lacuna_formats::is_own_type;

const OPERATION: &str = "sparse product on a device";
/// Elements of a group that scans; the kernels have the same number.
const TILE: usize = 8 * GROUP;
/// Maximum number of rows, entries and slots: 32-bit indices go beyond the last by a team at the most.
pub(super) const MOST: u64 = u32::MAX as u64 - 256;
/// Maximum number of entries in a row of a left factor, of slots for a row, and of entries in a row of the product. A
/// team alone takes long for a longer one; the entries of a row are sorted by counting.
const LONGEST_LEFT: u32 = 1 << 13;
const MOST_SLOTS: u64 = 1 << 18;
const LONGEST: u64 = 1 << 12;

const fn kernel(stem: &'static str) -> Kernel {
    Kernel { stem, is_typed: false }
}
const BOUNDS: Kernel = kernel("product_bounds");
const TILES: Kernel = kernel("product_tiles");
const SCAN: Kernel = kernel("product_scan");
const ENDS: Kernel = kernel("product_ends");
const INSERT: Kernel = kernel("product_insert");
const COMPACT: Kernel = kernel("product_compact");
const SORT: Kernel = kernel("product_sort");
const SUMS: Kernel = Kernel { stem: "product_sums", is_typed: true };

/// The kernels.
pub const PRODUCT_KERNELS: [Kernel; 8] = [BOUNDS, TILES, SCAN, ENDS, INSERT, COMPACT, SORT, SUMS];

/// A matrix on the device.
pub(super) struct Sparse<A> {
    pub(super) shape: (usize, usize),
    pub(super) entries: usize,
    pub(super) row_ptr: A,
    pub(super) columns: A,
    pub(super) values: A,
}

impl<A> Sparse<A> {
    pub(super) fn borrowed(&self) -> Sparse<&A> {
        let Sparse { shape, entries, row_ptr, columns, values } = self;
        Sparse { shape: *shape, entries: *entries, row_ptr, columns, values }
    }
}

/// The product of matrices in `csr`, from the last to the first: see [`lacuna_engine::Backend::sparse_product`]. The device's
/// work is on their number type.
///
/// # Errors
/// As there, and [`Error::OutOfMemory`].
pub fn sparse_product<D: AlgebraDevice>(
    dev: &mut D,
    factors: &[Each<FormatRefs<'_>>],
) -> Result<Option<Each<Products>>> {
    let factors = factors.iter().map(Factor::of).collect::<Result<Vec<_>>>()?;
    let (last, others) = factors.split_last().ok_or_else(|| Error::Argument {
        what: OPERATION.into(),
        message: "expected at least one factor, got none".into(),
    })?;
    for pair in factors.windows(2) {
        let [left, right] = pair else { continue };
        if left.shape.1 != right.shape.0 {
            let expected = format!("a right factor of {} rows", left.shape.1);
            return Err(Error::Shape { operation: OPERATION.into(), expected, got: right.shape });
        }
        if left.kind != right.kind {
            let message = format!("a product of {} and {}", left.kind.name(), right.kind.name());
            return Err(Error::Unsupported { operation: OPERATION.into(), message });
        }
    }
    if others.iter().any(|factor| !factor.suits_left()) || last.columns.len() as u64 > MOST {
        return Ok(None);
    }
    let kind = last.kind;
    let not_finite = dev.zeros(4)?;
    let mut product = last.uploaded(dev)?;
    for factor in others.iter().rev() {
        let left = factor.uploaded(dev)?;
        let Some(next) = multiplied(dev, kind, &left.borrowed(), &product.borrowed(), &not_finite)? else {
            return Ok(None);
        };
        product = next;
    }
    let mut is_not_finite = [0u32];
    read(dev, &not_finite, &mut is_not_finite)?;
    if is_not_finite != [0] {
        return Ok(None);
    }
    let Sparse { shape, entries, row_ptr: rows, columns, values: numbers } = product;
    let mut row_ptr = pages::zeroed::<u32>(OPERATION, shape.0 + 1)?;
    let mut col_idx = pages::zeroed::<u32>(OPERATION, entries)?;
    read(dev, &rows, &mut row_ptr)?;
    read(dev, &columns, &mut col_idx)?;
    with_number!(kind, T => {
        let mut values = pages::zeroed::<T>(OPERATION, entries)?;
        read(dev, &numbers, &mut values)?;
        Ok(Some(T::each::<Products>(CompressedRows { shape, row_ptr, col_idx, values })))
    })
}

/// A matrix in `csr` on the host.
pub(super) struct Factor<'a> {
    pub(super) kind: NumberType,
    pub(super) shape: (usize, usize),
    pub(super) row_ptr: &'a [u32],
    pub(super) columns: &'a [u32],
    /// The bytes of the values.
    pub(super) values: &'a [u8],
}

impl<'a> Factor<'a> {
    pub(super) fn of(a: &Each<FormatRefs<'a>>) -> Result<Self> {
        with_each!(a, of => {
            let csr = is_own_type(&**of) && of.kernel() == "csr";
            match of.stored()[..] {
                [Argument::Indices(row_ptr), Argument::Indices(columns), Argument::Values(values)] if csr => {
                    Ok(Factor { kind: a.kind(), shape: of.shape(), row_ptr, columns, values: cast_slice(values) })
                }
                _ => {
                    let message = format!("expected factors in `csr`, got `{}`", of.kernel());
                    Err(Error::Unsupported { operation: OPERATION.into(), message })
                }
            }
        })
    }

    /// Whether it is small enough for a left factor, with short enough rows.
    fn suits_left(&self) -> bool {
        let small = (self.shape.0 * TEAM) as u64 <= MOST && self.columns.len() as u64 <= MOST;
        small && self.row_ptr.windows(2).all(|ends| ends[1] - ends[0] <= LONGEST_LEFT)
    }

    fn uploaded<D: AlgebraDevice>(&self, dev: &mut D) -> Result<Sparse<D::Array>> {
        Ok(Sparse {
            shape: self.shape,
            entries: self.columns.len(),
            row_ptr: dev.array(cast_slice(self.row_ptr))?,
            columns: dev.array(cast_slice(self.columns))?,
            values: dev.array(self.values)?,
        })
    }
}

/// Threads of a row of a product, by the mean row of its right factor: as many as there are entries to take at a time.
fn team_of(entries: usize, rows: usize) -> usize {
    entries.div_ceil(rows.max(1)).next_power_of_two().clamp(4, TEAM)
}

/// `A B`, unless it is too large; sets `not_finite` if a sum is not finite.
pub(super) fn multiplied<D: AlgebraDevice>(
    dev: &mut D,
    kind: NumberType,
    a: &Sparse<&D::Array>,
    b: &Sparse<&D::Array>,
    not_finite: &D::Array,
) -> Result<Option<Sparse<D::Array>>> {
    use KernelArgument::{Array, Word};
    let (rows, cols) = (a.shape.0, b.shape.1);
    let count = Word(rows as u32);
    let team = if dev.waits_for_others() { team_of(b.entries, b.shape.0) } else { TEAM };
    let by_rows = Threads::Teams(rows, team);
    let lanes = Word(team as u32);
    let [a_rows, a_columns] = [Array(a.row_ptr), Array(a.columns)];
    let [b_rows, b_columns] = [Array(b.row_ptr), Array(b.columns)];

    // As many slots for a row as there are products of entries, and half as many again.
    let slots = dev.zeros(4 * rows)?;
    dev.launch(BOUNDS, Threads::Each(rows), &[a_rows, a_columns, b_rows, Array(&slots), count])?;
    let Scanned { ends: tables, total: all_slots, most: most_slots } = scanned(dev, &slots, rows)?;
    drop(slots);
    if all_slots > MOST || most_slots > MOST_SLOTS {
        return Ok(None);
    }
    let table = dev.zeros(4 * all_slots as usize)?;
    let counts = dev.zeros(4 * rows)?;
    let insert =
        [a_rows, a_columns, b_rows, b_columns, Array(&tables), Array(&table), Array(&counts), lanes, count];
    dev.launch(INSERT, by_rows, &insert)?;
    let Scanned { ends: row_ptr, total: entries, most: longest } = scanned(dev, &counts, rows)?;
    if entries > MOST || longest > LONGEST {
        return Ok(None);
    }
    let entries = entries as usize;

    let unsorted = dev.zeros(4 * entries)?;
    let compact =
        [Array(&tables), Array(&table), Array(&row_ptr), Array(&counts), Array(&unsorted), lanes, count];
    dev.launch(COMPACT, by_rows, &compact)?;
    drop((tables, table, counts));
    let columns = dev.zeros(4 * entries)?;
    dev.launch(SORT, by_rows, &[Array(&row_ptr), Array(&unsorted), Array(&columns), lanes, count])?;
    drop(unsorted);
    let values = dev.zeros(kind.size() * entries)?;
    let sums = [
        a_rows,
        a_columns,
        Array(a.values),
        b_rows,
        b_columns,
        Array(b.values),
        Array(&row_ptr),
        Array(&columns),
        Array(&values),
        Array(not_finite),
        lanes,
        count,
    ];
    dev.launch(SUMS, by_rows, &sums)?;
    Ok(Some(Sparse { shape: (rows, cols), entries, row_ptr, columns, values }))
}

/// Where runs of elements end that follow one another, from 0, with the number of all and the longest run.
pub(super) struct Scanned<A> {
    pub(super) ends: A,
    pub(super) total: u64,
    pub(super) most: u64,
}

/// The ends of `n` runs by their lengths.
pub(super) fn scanned<D: AlgebraDevice>(
    dev: &mut D,
    lengths: &D::Array,
    n: usize,
) -> Result<Scanned<D::Array>> {
    use KernelArgument::{Array, Word};
    let tiles = n.div_ceil(TILE);
    let [count, tile_count] = [Word(n as u32), Word(tiles as u32)];
    let ends = dev.zeros(4 * (n + 1))?;
    // The sum of each tile, then where it begins; the longest run of each.
    let (starts, longest) = (dev.zeros(8 * tiles)?, dev.zeros(4 * tiles)?);
    let totals = dev.zeros(16)?;
    let mut found = [0u64; 2];
    dev.launch(TILES, Threads::Groups(tiles), &[Array(lengths), Array(&starts), Array(&longest), count])?;
    let scan = [Array(&starts), Array(&longest), Array(&totals), tile_count];
    dev.launch(SCAN, Threads::Groups(1), &scan)?;
    dev.launch(ENDS, Threads::Groups(tiles), &[Array(lengths), Array(&starts), Array(&ends), count])?;
    read(dev, &totals, &mut found)?;
    Ok(Scanned { ends, total: found[0], most: found[1] })
}
