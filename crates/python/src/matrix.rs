//! A matrix, checked and copied once.
use crate::arrays::{List, Numbers, array, char, kind};
use crate::errors::{Slot, raised};
use crate::watching::interruptible;
use lacuna::dynamic;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A sparse matrix of one of the four types.
#[pyclass(frozen, module = "lacuna_sparse._core")]
pub(crate) struct Matrix(pub(crate) dynamic::Matrix);

#[pymethods]
impl Matrix {
    /// By compressed rows; columns in any order, repeated ones are summed.
    #[staticmethod]
    fn csr(
        py: Python<'_>,
        char: &str,
        shape: (usize, usize),
        indptr: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let kind = kind(char)?;
        let (indptr, indices) = (List::new(indptr, "indptr")?, List::new(indices, "indices")?);
        let data = Numbers::new(data, kind, "data")?;
        let (row_ptr, col_idx) = (indptr.indices("indptr")?, indices.indices("indices")?);
        let values = data.bytes("data")?;
        let slot = Slot::default();
        let made =
            interruptible(py, &slot, || dynamic::Matrix::csr(kind, shape, row_ptr, col_idx, values, 0));
        match slot.take() {
            Some(exception) => Err(exception),
            None => made.map(Matrix).map_err(raised),
        }
    }

    /// A dense one by rows, as a flat array; zeros are left out.
    #[staticmethod]
    fn dense(py: Python<'_>, char: &str, shape: (usize, usize), data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let kind = kind(char)?;
        let data = Numbers::new(data, kind, "A")?;
        let values = data.bytes("A")?;
        py.detach(|| dynamic::Matrix::dense(kind, shape, values)).map(Matrix).map_err(raised)
    }

    /// In a file.
    #[staticmethod]
    fn read(py: Python<'_>, path: &str, char: &str) -> PyResult<Self> {
        let kind = kind(char)?;
        py.detach(|| dynamic::Matrix::read(path, kind)).map(Matrix).map_err(raised)
    }

    /// Writes it to a file.
    fn write(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        py.detach(|| self.0.write(path)).map_err(raised)
    }

    /// `indptr`, `indices` and `data`, copied.
    fn arrays<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>) {
        let (row_ptr, col_idx, values) = self.0.arrays();
        let list = |indices: &[u32]| match indices.iter().any(|&index| index > i32::MAX as u32) {
            false => PyArray1::<i32>::from_slice(py, bytemuck::cast_slice(indices)).into_any(),
            true => PyArray1::from_iter(py, indices.iter().map(|&index| i64::from(index))).into_any(),
        };
        (list(row_ptr), list(col_idx), array(py, self.0.kind(), values))
    }

    /// What its structure is.
    fn structure<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let s = py.detach(|| self.0.structure());
        let found = PyDict::new(py);
        for (name, count) in [
            ("rows", s.rows),
            ("columns", s.cols),
            ("entries", s.nnz),
            ("shortest_row", s.row_min),
            ("longest_row", s.row_max),
            ("empty_rows", s.empty_rows),
            ("lower_bandwidth", s.lower_bandwidth),
            ("upper_bandwidth", s.upper_bandwidth),
            ("diagonals", s.diagonals),
            ("zero_diagonal", s.zero_diagonal),
        ] {
            found.set_item(name, count)?;
        }
        for (name, holds) in [
            ("pattern_symmetric", s.pattern_symmetric),
            ("symmetric", s.symmetric),
            ("hermitian", s.hermitian),
            ("skew_symmetric", s.skew_symmetric),
            ("diagonal_positive", s.diagonal_positive),
            ("diagonally_dominant", s.diagonally_dominant),
        ] {
            found.set_item(name, holds)?;
        }
        found.set_item("asymmetry", py.detach(|| self.0.asymmetry()))?;
        found.set_item("mean_row", s.row_mean)?;
        found.set_item("norm_inf", s.norm_inf)?;
        found.set_item("block_size", s.block_size())?;
        Ok(found)
    }

    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }
    #[getter]
    fn nnz(&self) -> usize {
        self.0.nnz()
    }
    #[getter]
    fn char(&self) -> &'static str {
        char(self.0.kind())
    }
}
