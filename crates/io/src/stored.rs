//! A matrix as a file stores it, before a number type is chosen.
use super::elements::{Elements, reading, too_many};
use super::mm::{ReadOptions, Symmetry};
use super::mm::{mirror, most_rows};
use super::opened::About;
use super::{DenseArray, Form};
use lacuna_engine::{Error, NumberType, Result, Scalar, memory, pages};
use lacuna_formats::Csr;
use lacuna_formats::build::{Entry, assemble, check_sizes, compressed, pieces};

/// The layout of a stored matrix.
pub(super) enum Layout {
    /// Compressed rows.
    Rows { ptr: Vec<u32>, idx: Vec<u32> },
    /// Compressed columns.
    DenseArray { ptr: Vec<u32>, idx: Vec<u32> },
    /// Compressed rows of dense blocks, of which there are `blocks`.
    Blocks { ptr: Vec<u32>, idx: Vec<u32>, height: usize, width: usize, blocks: usize, column_major: bool },
    /// Diagonals: value `j` of the diagonal at `offset` is at row `j - offset` and column `j`.
    Diagonals { offsets: Vec<i64>, length: usize, column_major: bool },
    /// Coordinates.
    Entries { row: Vec<u32>, col: Vec<u32> },
    /// Every place.
    Dense { column_major: bool },
}

/// The values of a matrix.
pub(super) enum StoredValues {
    /// All 1; the number of entries.
    Pattern(usize),
    /// Real or complex numbers.
    Numbers(Elements),
    /// Real and imaginary parts in separate arrays.
    Parts(Elements, Elements),
}

impl StoredValues {
    fn len(&self) -> usize {
        match self {
            StoredValues::Pattern(count) => *count,
            StoredValues::Numbers(elements) | StoredValues::Parts(elements, _) => elements.len(),
        }
    }

    fn kind(&self) -> NumberType {
        match self {
            StoredValues::Pattern(_) => NumberType::F64,
            StoredValues::Numbers(elements) => elements.number_type(),
            StoredValues::Parts(re, _) if re.number_type() == NumberType::F32 => NumberType::C32,
            StoredValues::Parts(..) => NumberType::C64,
        }
    }

    fn numbers<T: Scalar>(&self, options: &ReadOptions<'_>) -> Result<Vec<T>> {
        let note_losses = |elements: &Elements, values: &[T]| {
            if let (Some(notes), Some(said)) = (options.notes, elements.losses(values)) {
                notes(&said);
            }
        };
        match self {
            StoredValues::Pattern(count) => Ok(vec![T::one(); *count]),
            StoredValues::Numbers(elements) => {
                let values = elements.numbers::<T>()?;
                note_losses(elements, &values);
                Ok(values)
            }
            StoredValues::Parts(re, im) => {
                let mut values = re.numbers::<T>()?;
                note_losses(re, &values);
                let imaginary = im.numbers::<T>()?;
                note_losses(im, &imaginary);
                for (value, im) in values.iter_mut().zip(imaginary) {
                    *value = T::from_parts(value.re(), im.re());
                }
                Ok(values)
            }
        }
    }
}

/// What is found in a file.
pub(super) struct Found {
    /// What is wanted.
    pub(super) main: Stored,
    /// A right-hand side in the same file.
    pub(super) beside: Option<Stored>,
    /// What else the file holds, in words.
    pub(super) left_out: Vec<String>,
}

impl Found {
    /// All that a file holds.
    pub(super) fn alone(main: Stored) -> Self {
        Found { main, beside: None, left_out: Vec::new() }
    }
}

/// A matrix read from a file. Indices are in range and arrays have equal lengths.
pub(super) struct Stored {
    /// Its name for errors.
    pub(super) name: String,
    pub(super) form: Form,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) layout: Layout,
    pub(super) symmetry: Symmetry,
    pub(super) values: StoredValues,
}

impl Stored {
    pub(super) fn about(&self) -> About {
        About {
            form: self.form,
            rows: self.rows,
            cols: self.cols,
            entries: self.values.len() as u64,
            kind: self.values.kind(),
            is_dense: matches!(self.layout, Layout::Dense { .. }),
        }
    }

    /// A dense row as a column; anything else as it is.
    pub(super) fn upright(self) -> Self {
        let is_row = self.rows == 1 && self.cols > 1 && matches!(self.layout, Layout::Dense { .. });
        let (rows, cols) = if is_row { (self.cols, 1) } else { (self.rows, self.cols) };
        Stored { rows, cols, ..self }
    }

    /// Checks made before any memory is allocated.
    fn check<T: Scalar>(&self) -> Result<()> {
        let (operation, kind) = (reading(&self.name), T::KIND);
        if self.values.kind().is_complex() && !kind.is_complex() {
            let message = format!("the file holds complex numbers, {} cannot; use c64 or c32", kind.name());
            return Err(Error::Unsupported { operation, message });
        }
        let entries = self.values.len();
        check_sizes(&operation, self.rows, self.cols, entries)?;
        let (side, most) = (self.rows.max(self.cols) as u64, most_rows(entries as u64));
        if side > most {
            let message =
                format!("{side} rows or columns for {entries} entries: at most {most} are made room for");
            return Err(Error::Structure { operation, message });
        }
        let images = if self.symmetry == Symmetry::General { 1 } else { 2 };
        memory::check(&operation, entries as u64 * images * size_of::<Entry<T>>() as u64)
    }

    /// The matrix in a number type.
    pub(super) fn matrix<T: Scalar>(&self, options: &ReadOptions<'_>) -> Result<Csr<T>> {
        self.check::<T>()?;
        let values = self.values.numbers::<T>(options)?;
        let operation = reading(&self.name);
        if let (Layout::Rows { ptr, idx }, Symmetry::General) = (&self.layout, self.symmetry) {
            let range = |i: usize| ptr[i] as usize..ptr[i + 1] as usize;
            if (0..self.rows).all(|i| idx[range(i)].windows(2).all(|w| w[0] < w[1])) {
                return compressed(&operation, self.rows, self.cols, ptr.clone(), idx.clone(), values);
            }
        }
        let entries = self.entries(values)?;
        assemble(&operation, self.rows, self.cols, pieces(&entries).collect())
    }

    /// Every entry with its place, in file order.
    fn entries<T: Scalar>(&self, values: Vec<T>) -> Result<Vec<Entry<T>>> {
        let mut entries = Vec::with_capacity(values.len());
        let lines = |ptr: &[u32]| -> Vec<(u32, std::ops::Range<usize>)> {
            ptr.windows(2).zip(0..).map(|(w, i)| (i, w[0] as usize..w[1] as usize)).collect()
        };
        match &self.layout {
            Layout::Rows { ptr, idx } => {
                for (i, range) in lines(ptr) {
                    entries.extend(range.map(|k| (i, idx[k], values[k])));
                }
            }
            Layout::DenseArray { ptr, idx } => {
                for (j, range) in lines(ptr) {
                    entries.extend(range.map(|k| (idx[k], j, values[k])));
                }
            }
            Layout::Blocks { ptr, idx, height, width, blocks, column_major } => {
                let (blocks, (h, w)) = (*blocks, (*height, *width));
                for (row, range) in lines(ptr) {
                    for (k, r, c) in
                        range.flat_map(|k| (0..h).flat_map(move |r| (0..w).map(move |c| (k, r, c))))
                    {
                        let at = if *column_major { k + blocks * (r + h * c) } else { (k * h + r) * w + c };
                        entries.push((row * h as u32 + r as u32, idx[k] * w as u32 + c as u32, values[at]));
                    }
                }
            }
            Layout::Diagonals { offsets, length, column_major } => {
                for (d, &offset) in offsets.iter().enumerate() {
                    for j in 0..(*length).min(self.cols) {
                        let row = i128::from(j as u64) - i128::from(offset);
                        let at = if *column_major { d + offsets.len() * j } else { d * length + j };
                        if (0..self.rows as i128).contains(&row) && values[at] != T::zero() {
                            entries.push((row as u32, j as u32, values[at]));
                        }
                    }
                }
            }
            Layout::Entries { row, col } => {
                entries.extend(row.iter().zip(col).zip(values).map(|((&i, &j), v)| (i, j, v)));
            }
            Layout::Dense { column_major } => {
                let (rows, cols) = (self.rows, self.cols);
                for (k, v) in values.into_iter().enumerate().filter(|(_, v)| *v != T::zero()) {
                    let (i, j) = if *column_major { (k % rows, k / rows) } else { (k / cols, k % cols) };
                    entries.push((i as u32, j as u32, v));
                }
            }
        }
        if self.symmetry != Symmetry::General {
            for k in 0..entries.len() {
                let entry = entries[k];
                mirror(self.symmetry, entry, &mut entries).map_err(|(_, message)| Error::Entry {
                    operation: reading(&self.name),
                    row: entry.0 as usize,
                    column: entry.1 as usize,
                    message,
                })?;
            }
        }
        Ok(entries)
    }

    /// The only column, in a number type.
    pub(super) fn vector<T: Scalar>(&self, options: &ReadOptions<'_>) -> Result<Vec<T>> {
        if self.cols != 1 {
            let (operation, expected) = (reading(&self.name), "a vector, that is one column".into());
            return Err(Error::Shape { operation, expected, got: (self.rows, self.cols) });
        }
        Ok(self.columns(options)?.values)
    }

    /// All places, column by column.
    pub(super) fn columns<T: Scalar>(&self, options: &ReadOptions<'_>) -> Result<DenseArray<T>> {
        let (rows, cols) = (self.rows, self.cols);
        let Layout::Dense { column_major } = self.layout else {
            return DenseArray::of(&reading(&self.name), &self.matrix(options)?);
        };
        self.check::<T>()?;
        let operation = reading(&self.name);
        let mut values = self.values.numbers::<T>(options)?;
        if !column_major && rows > 1 && cols > 1 {
            let by_rows = std::mem::replace(&mut values, pages::zeroed(&operation, rows * cols)?);
            by_rows.into_iter().enumerate().for_each(|(k, v)| values[k % cols * rows + k / cols] = v);
        }
        match values.iter().position(|v| !v.finite()) {
            None => Ok(DenseArray { rows, cols, values }),
            Some(k) => Err(Error::Element {
                operation,
                what: format!("column {}", k / rows),
                row: k % rows,
                message: format!("{} is not a finite number of type {}", values[k], T::KIND.name()),
            }),
        }
    }

    /// A one- or two-dimensional array.
    pub(super) fn dense(
        name: &str,
        form: Form,
        (rows, cols): (u64, u64),
        column_major: bool,
        values: Elements,
    ) -> Result<Self> {
        let [rows, cols] = sizes(name, [("rows", rows), ("columns", cols)])?;
        let (layout, values) = (Layout::Dense { column_major }, StoredValues::Numbers(values));
        Ok(Stored { name: name.into(), form, rows, cols, layout, symmetry: Symmetry::General, values })
    }
}

/// Sizes that must fit in 32-bit indices.
pub(super) fn sizes<const N: usize>(name: &str, sizes: [(&str, u64); N]) -> Result<[usize; N]> {
    match sizes.iter().find(|(_, size)| *size > u64::from(u32::MAX)) {
        Some((what, size)) => Err(too_many(name, what, size)),
        None => Ok(sizes.map(|(_, size)| size as usize)),
    }
}
