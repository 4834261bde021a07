//! Triangular matrices with the order in which their rows are solved.
use crate::{Error, Matrix, Result, Scalar, Vector};
use std::ops::Range;

/// A triangular matrix in the form that solves take: rows ordered by level; no row depends on a row of its
/// own or a later level.
///
/// The row at *place* `k` holds its off-diagonal entries and then, at the column equal to the row, the
/// **reciprocal** of its diagonal entry. With `x` and `b` in the numbering of the columns,
/// `x_i = (b_i − a_ij x_j − …) · (1 / a_ii)`, with one fused multiply-add per entry in the order stored: the
/// bits do not depend on which rows are solved concurrently.
#[derive(Clone, Copy, Debug)]
pub struct Triangle<'a, T> {
    /// The start of the entries of each place, and the end of the last. Every place has at least its last
    /// entry.
    pub row_ptr: &'a [u32],
    /// The column of each entry.
    pub columns: &'a [u32],
    /// The value of each entry.
    pub values: &'a [T],
    /// The first place of each level, and the end of the last.
    pub levels: &'a [u32],
}

impl<T: Scalar> Triangle<'_, T> {
    /// The row at a place, and its element of `x`.
    ///
    /// # Panics
    /// May panic if there is no such place or a vector is too short.
    #[inline(always)]
    pub fn place(&self, k: usize, b: &[T], x: &[T]) -> (usize, T) {
        let own = self.row_ptr[k] as usize..self.row_ptr[k + 1] as usize - 1;
        let (row, reciprocal) = (self.columns[own.end] as usize, self.values[own.end]);
        let entries = self.columns[own.clone()].iter().zip(&self.values[own]);
        let sum = entries.fold(b[row], |sum, (&j, &a)| (-a).fma(x[j as usize], sum));
        (row, sum * reciprocal)
    }

    /// `x ← A⁻¹ b`, row by row.
    ///
    /// # Panics
    /// As [`Triangle::place`].
    pub fn solve(&self, b: &[T], x: &mut [T]) {
        for k in 0..self.row_ptr.len() - 1 {
            let (row, value) = self.place(k, b, x);
            x[row] = value;
        }
    }

    /// Number of levels.
    pub fn depth(&self) -> usize {
        self.levels.len() - 1
    }

    /// The places of a level.
    ///
    /// # Panics
    /// If there is no such level.
    pub fn level(&self, level: usize) -> Range<usize> {
        self.levels[level] as usize..self.levels[level + 1] as usize
    }
}

/// The error for a matrix that is not stored for triangular solves.
pub fn not_triangular(operation: &str, kernel: &str) -> Error {
    Error::Unsupported {
        operation: format!("triangular solve `{operation}`"),
        message: format!(
            "a matrix in format `{kernel}` has no order to solve its rows in; make it a `Triangular`"
        ),
    }
}

/// Fails unless the shapes of `x ← A⁻¹ b` match.
pub(crate) fn check_solve(pass: &str, a: Matrix, b: Vector, x: Vector) -> Result<()> {
    let operation = format!("triangular solve `{pass}`");
    if a.rows != a.cols {
        return Err(Error::Shape { operation, expected: "a square matrix".into(), got: (a.rows, a.cols) });
    }
    Error::check_fits(&operation, (a.rows, a.cols), "b", a.rows, b.len)?;
    Error::check_fits(&operation, (a.rows, a.cols), "x", a.rows, x.len)?;
    let message = match () {
        () if b == x => "x ← A⁻¹ b with x the same vector as b",
        () if b.narrow || x.narrow => "a triangular solve on a vector that is stored narrow",
        () => return Ok(()),
    };
    Err(Error::Pass { pass: pass.into(), message: message.into() })
}
