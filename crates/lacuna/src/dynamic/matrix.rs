//! A matrix of a number type that is known at run time.
use super::bytes::{bytes_of, numbers};
use lacuna_engine::{Each, Error, Family, NumberType, Result, Scalar, with_each, with_number};
use lacuna_formats::algebra::lost_symmetry;
use lacuna_formats::{Csr, CsrRef, Structure, Triplets};
use std::sync::Arc;

/// Matrices, by number type.
pub(super) struct Matrices;

impl Family for Matrices {
    type Of<T: Scalar> = Arc<Csr<T>>;
}

/// A sparse matrix in `csr`. Cloning it is cheap.
#[derive(Clone)]
pub struct Matrix(pub(super) Each<Matrices>);

/// Indices as other languages have them.
#[derive(Clone, Copy, Debug)]
pub enum Indices<'a> {
    /// In 32 bits.
    I32(&'a [i32]),
    /// In 64 bits.
    I64(&'a [i64]),
}

impl Indices<'_> {
    /// How many.
    pub fn len(self) -> usize {
        match self {
            Indices::I32(list) => list.len(),
            Indices::I64(list) => list.len(),
        }
    }
    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
    fn at(self, k: usize) -> i64 {
        match self {
            Indices::I32(list) => i64::from(list[k]),
            Indices::I64(list) => list[k],
        }
    }
    /// As `u32`, less the base.
    fn narrowed(self, what: &str, base: i64, most: usize) -> Result<Vec<u32>> {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let narrow = |k: usize| {
            let index = self.at(k).checked_sub(base).and_then(|index| u32::try_from(index).ok());
            index.filter(|index| *index <= most).ok_or_else(|| {
                let got = self.at(k);
                let last = i64::from(most).saturating_add(base);
                structure(format!("{what}[{k}]: expected {base} to {last}, got {got}"))
            })
        };
        (0..self.len()).map(narrow).collect()
    }
}

fn structure(message: String) -> Error {
    Error::Structure { operation: "matrix".into(), message }
}

/// An error of an entry, without the name of a function that the caller did not call.
fn of_matrix(error: Error) -> Error {
    match error {
        Error::Entry { row, column, message, .. } => {
            Error::Entry { operation: "matrix".into(), row, column, message }
        }
        error => error,
    }
}

impl Matrix {
    /// A matrix by compressed rows, with indices from `base` on. Columns may be in any order, and repeated ones are summed. The
    /// arrays are checked before they are followed.
    ///
    /// # Errors
    /// [`Error::Structure`] for pointers and indices that contradict themselves or the shape, [`Error::Argument`] for values that
    /// are not as many numbers of the type; [`Error::Entry`] for one that is not finite.
    pub fn csr(
        kind: NumberType,
        (rows, cols): (usize, usize),
        row_ptr: Indices<'_>,
        col_idx: Indices<'_>,
        values: &[u8],
        base: i64,
    ) -> Result<Self> {
        if base == 0
            && let Some(a) = as_given(kind, (rows, cols), row_ptr, col_idx, values)
        {
            return Ok(a);
        }
        if row_ptr.len() != rows.saturating_add(1) {
            return Err(structure(format!("row_ptr: expected {rows} + 1 numbers, got {}", row_ptr.len())));
        }
        let row_ptr = row_ptr.narrowed("row_ptr", base, col_idx.len())?;
        let ends = (row_ptr[0], row_ptr[rows] as usize);
        if ends != (0, col_idx.len()) {
            let (first, last) = ends;
            let n = col_idx.len();
            return Err(structure(format!(
                "row_ptr: expected to begin at {base} and to end at {}, got {} and {}",
                n as i64 + base,
                i64::from(first) + base,
                last as i64 + base
            )));
        }
        if let Some(i) = (0..rows).find(|&i| row_ptr[i] > row_ptr[i + 1]) {
            return Err(structure(format!("row_ptr: row {i} ends before it begins")));
        }
        let col_idx = col_idx.narrowed("col_idx", base, cols.saturating_sub(1))?;
        with_number!(kind, T => {
            let values = counted::<T>(values, col_idx.len())?;
            let row = |i: usize| &col_idx[row_ptr[i] as usize..row_ptr[i + 1] as usize];
            let a = if (0..rows).all(|i| row(i).is_sorted_by(|a, b| a < b)) {
                Csr::new(rows, cols, row_ptr, col_idx, values.to_vec()).map_err(of_matrix)?
            } else {
                let mut all = Triplets::with_capacity(rows, cols, values.len());
                for i in 0..rows {
                    let of_row = row_ptr[i] as usize..row_ptr[i + 1] as usize;
                    of_row.for_each(|k| all.push(i, col_idx[k] as usize, values[k]));
                }
                all.to_csr().map_err(of_matrix)?
            };
            Ok(Matrix(T::each(Arc::new(a))))
        })
    }

    /// A matrix by its entries, in any order; repeated ones are summed.
    ///
    /// # Errors
    /// As [`Matrix::csr`].
    pub fn coo(
        kind: NumberType,
        (rows, cols): (usize, usize),
        i: Indices<'_>,
        j: Indices<'_>,
        values: &[u8],
        base: i64,
    ) -> Result<Self> {
        Error::check_length("matrix", "the columns", i.len(), j.len())?;
        let i = i.narrowed("i", base, rows.saturating_sub(1))?;
        let j = j.narrowed("j", base, cols.saturating_sub(1))?;
        with_number!(kind, T => {
            let values = counted::<T>(values, i.len())?;
            let mut all = Triplets::with_capacity(rows, cols, values.len());
            i.iter().zip(&j).zip(values).for_each(|((i, j), v)| all.push(*i as usize, *j as usize, *v));
            Ok(Matrix(T::each(Arc::new(all.to_csr().map_err(of_matrix)?))))
        })
    }

    /// A dense matrix by rows; zeros are left out.
    ///
    /// # Errors
    /// [`Error::Argument`] unless there are as many numbers as elements; as [`crate::from_dense`].
    pub fn dense(kind: NumberType, (rows, cols): (usize, usize), values: &[u8]) -> Result<Self> {
        with_number!(kind, T => {
            let values = counted::<T>(values, rows.saturating_mul(cols))?;
            let view = ndarray::ArrayView2::from_shape((rows, cols), values)
                .map_err(|error| structure(error.to_string()))?;
            Ok(Matrix(T::each(Arc::new(crate::from_dense(view).map_err(of_matrix)?))))
        })
    }

    /// A matrix in a file of any form that [`crate::io`] reads, or a generated one (`gen:…`), in a number type.
    ///
    /// # Errors
    /// As [`crate::io::read_matrix`].
    #[cfg(feature = "io")]
    pub fn read(path: &str, kind: NumberType) -> Result<Self> {
        with_number!(kind, T => {
            let a: Csr<T> = match path.starts_with("gen:") {
                true => lacuna_io::Spec::parse(path)?.build()?,
                false => lacuna_io::read_matrix(path, &lacuna_io::mm::ReadOptions::default())?,
            };
            Ok(Matrix(T::each(Arc::new(a))))
        })
    }

    /// Writes it to a file, whose form its name says.
    ///
    /// # Errors
    /// As [`crate::io::write_matrix`].
    #[cfg(feature = "io")]
    pub fn write(&self, path: &str) -> Result<()> {
        with_each!(&self.0, a => lacuna_io::write_matrix(path, &**a, &lacuna_io::mm::WriteOptions::default()))
    }

    /// The number type.
    pub fn kind(&self) -> NumberType {
        self.0.kind()
    }
    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        with_each!(&self.0, a => (a.rows(), a.cols()))
    }
    /// Stored entries.
    pub fn nnz(&self) -> usize {
        with_each!(&self.0, a => a.nnz())
    }
    /// The start of each row and the end of the last, the column of each entry, and the bytes of the values.
    pub fn arrays(&self) -> (&[u32], &[u32], &[u8]) {
        with_each!(&self.0, a => (a.row_ptr(), a.col_idx(), bytes_of(a.values())))
    }
    /// What its structure is.
    pub fn structure(&self) -> Structure {
        with_each!(&self.0, a => Structure::of(&**a))
    }
    /// By how much entries differ from their mirror images at most, relative to themselves, if that is no more than rounding;
    /// `None` for a matrix that is not Hermitian.
    pub fn asymmetry(&self) -> Option<f64> {
        let s = self.structure();
        match (s.hermitian, s.pattern_symmetric) {
            (true, _) => Some(0.0),
            (false, true) => with_each!(&self.0, a => lost_symmetry(&**a)),
            (false, false) => None,
        }
    }
    /// Its transpose.
    pub fn transpose(&self) -> Self {
        match &self.0 {
            Each::F32(a) => Matrix(Each::F32(Arc::new(a.transpose()))),
            Each::F64(a) => Matrix(Each::F64(Arc::new(a.transpose()))),
            Each::C32(a) => Matrix(Each::C32(Arc::new(a.transpose()))),
            Each::C64(a) => Matrix(Each::C64(Arc::new(a.transpose()))),
        }
    }
    /// It as a matrix of a number type, if it is of that.
    pub fn get<T: Scalar>(&self) -> Option<&Arc<Csr<T>>> {
        self.0.get::<T>()
    }
}

/// A matrix whose arrays are in order as they are, without a pass over them for the base; `None` for others.
fn as_given(
    kind: NumberType,
    (rows, cols): (usize, usize),
    row_ptr: Indices<'_>,
    col_idx: Indices<'_>,
    values: &[u8],
) -> Option<Matrix> {
    with_number!(kind, T => {
        let values = counted::<T>(values, col_idx.len()).ok()?;
        let a = match (row_ptr, col_idx) {
            // A negative index is one that is too large for any matrix.
            (Indices::I32(row_ptr), Indices::I32(col_idx)) => {
                let (row_ptr, col_idx) = (bytemuck::cast_slice(row_ptr), bytemuck::cast_slice(col_idx));
                CsrRef::new(rows, cols, row_ptr, col_idx, values).ok()?.to_csr()
            }
            (Indices::I64(row_ptr), Indices::I64(col_idx)) => {
                Csr::from_indices(rows, cols, row_ptr, col_idx, values.to_vec()).ok()?
            }
            _ => return None,
        };
        Some(Matrix(T::each(Arc::new(a))))
    })
}

/// Bytes as so many numbers.
fn counted<T: Scalar>(values: &[u8], expected: usize) -> Result<&[T]> {
    let values = numbers::<T>("values", values)?;
    Error::check_length("matrix", "the values", expected, values.len())?;
    Ok(values)
}
