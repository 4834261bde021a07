//! Matrices.
use crate::callback::{Apply, functions};
use crate::error::{guard, wrong};
use crate::pointers::{indices, kind, numbers, reference, result, size, text, wide};
use lacuna::Error;
use lacuna::dynamic::{Indices, Matrix, Operator};
use std::ffi::{c_char, c_int, c_void};

/// `lac_matrix`
pub(crate) struct LacMatrix(pub(crate) Operator);

fn hand_over(to: &mut *mut LacMatrix, operator: Operator) {
    *to = Box::into_raw(Box::new(LacMatrix(operator)));
}

/// The entries that pointers count, which is checked before anything is read there.
fn counted(pointers: Indices<'_>, base: i64) -> Result<usize, Error> {
    let last = match pointers {
        Indices::I32(list) => list.last().map(|last| i64::from(*last)),
        Indices::I64(list) => list.last().copied(),
    };
    let first = match pointers {
        Indices::I32(list) => list.first().map(|first| i64::from(*first)),
        Indices::I64(list) => list.first().copied(),
    };
    let structure = |message: String| Error::Structure { operation: "matrix".into(), message };
    let (Some(first), Some(last)) = (first, last) else { return Err(structure("no pointers".into())) };
    if first != base {
        return Err(structure(format!("the pointers should begin with {base}, got {first}")));
    }
    let ordered = match pointers {
        Indices::I32(list) => list.is_sorted(),
        Indices::I64(list) => list.is_sorted(),
    };
    if !ordered {
        return Err(structure("a row ends before it begins".into()));
    }
    last.checked_sub(base)
        .and_then(|count| usize::try_from(count).ok())
        .ok_or_else(|| structure(format!("the pointers end with {last}")))
}

/// The base of indices.
fn checked_base(base: c_int) -> Result<i64, Error> {
    match base {
        0 | 1 => Ok(i64::from(base)),
        other => Err(wrong("base", format!("expected 0 or 1, got {other}"))),
    }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_matrix_compressed(
    r#type: c_int,
    index: c_int,
    layout: c_int,
    rows: i64,
    cols: i64,
    pointers: *const c_void,
    list: *const c_void,
    values: *const c_void,
    base: c_int,
    matrix: *mut *mut LacMatrix,
) -> c_int {
    guard(|| {
        // SAFETY: as the header asks of the caller.
        let to = unsafe { result(matrix)? };
        let (kind, wide) = (kind(r#type)?, wide(index)?);
        let shape = (size("rows", rows)?, size("cols", cols)?);
        let base = checked_base(base)?;
        let by_columns = match layout {
            0 => false,
            1 => true,
            other => return Err(wrong("layout", format!("expected 0 or 1, as in lac_layout, got {other}"))),
        };
        let (lines, others) = if by_columns { (shape.1, shape.0) } else { shape };
        let count = lines.checked_add(1).ok_or_else(|| wrong("rows", "too many"))?;
        // SAFETY: as the header asks of the caller; what the pointers count is read once they are checked.
        let (row_ptr, col_idx, bytes) = unsafe {
            let row_ptr = indices("the pointers", pointers, count, wide)?;
            let entries = counted(row_ptr, base)?;
            (
                row_ptr,
                indices("the indices", list, entries, wide)?,
                numbers("the values", values, entries, kind)?,
            )
        };
        let made = Matrix::csr(kind, (lines, others), row_ptr, col_idx, bytes, base)?;
        hand_over(to, Operator::Matrix(if by_columns { made.transpose() } else { made }));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_matrix_csr(
    r#type: c_int,
    index: c_int,
    rows: i64,
    cols: i64,
    row_ptr: *const c_void,
    col_idx: *const c_void,
    values: *const c_void,
    base: c_int,
    matrix: *mut *mut LacMatrix,
) -> c_int {
    // SAFETY: as the header asks of the caller.
    unsafe { lac_matrix_compressed(r#type, index, 0, rows, cols, row_ptr, col_idx, values, base, matrix) }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_matrix_coo(
    r#type: c_int,
    index: c_int,
    rows: i64,
    cols: i64,
    entries: i64,
    i: *const c_void,
    j: *const c_void,
    values: *const c_void,
    base: c_int,
    matrix: *mut *mut LacMatrix,
) -> c_int {
    guard(|| {
        // SAFETY: as the header asks of the caller.
        let to = unsafe { result(matrix)? };
        let (kind, wide) = (kind(r#type)?, wide(index)?);
        let shape = (size("rows", rows)?, size("cols", cols)?);
        let count = size("entries", entries)?;
        let base = checked_base(base)?;
        // SAFETY: as the header asks of the caller.
        let (i, j, bytes) = unsafe {
            (
                indices("i", i, count, wide)?,
                indices("j", j, count, wide)?,
                numbers("values", values, count, kind)?,
            )
        };
        hand_over(to, Operator::Matrix(Matrix::coo(kind, shape, i, j, bytes, base)?));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_matrix_operator(
    r#type: c_int,
    rows: i64,
    cols: i64,
    apply: Apply,
    adjoint: Apply,
    user: *mut c_void,
    matrix: *mut *mut LacMatrix,
) -> c_int {
    guard(|| {
        // SAFETY: as the header asks of the caller.
        let to = unsafe { result(matrix)? };
        let shape = (size("rows", rows)?, size("cols", cols)?);
        // SAFETY: as the header asks of the caller.
        let made = unsafe { functions(kind(r#type)?, shape, (apply, adjoint), user)? };
        hand_over(to, Operator::Functions(made));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_matrix_read(
    path: *const c_char,
    r#type: c_int,
    matrix: *mut *mut LacMatrix,
) -> c_int {
    guard(|| {
        // SAFETY: as the header asks of the caller.
        let (to, path) = unsafe { (result(matrix)?, text("the path", path)?) };
        let path = path.ok_or_else(|| wrong("the path", "expected a text, got NULL"))?;
        hand_over(to, Operator::Matrix(Matrix::read(path, kind(r#type)?)?));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_matrix_size(
    matrix: *const LacMatrix,
    rows: *mut i64,
    cols: *mut i64,
    entries: *mut i64,
) -> c_int {
    guard(|| {
        // SAFETY: as the header asks of the caller.
        let matrix = unsafe { reference("the matrix", matrix)? };
        let (of_rows, of_cols) = matrix.0.shape();
        let stored = match &matrix.0 {
            Operator::Matrix(a) => a.nnz() as i64,
            Operator::Functions(_) => -1,
        };
        for (to, value) in [(rows, of_rows as i64), (cols, of_cols as i64), (entries, stored)] {
            // SAFETY: null, or a number that can be written, as the header asks of the caller.
            if let Some(to) = unsafe { to.as_mut() } {
                *to = value;
            }
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_matrix_free(matrix: *mut LacMatrix) {
    guard(|| {
        if !matrix.is_null() {
            // SAFETY: a handle of this library that is not freed yet, as the header asks of the caller.
            drop(unsafe { Box::from_raw(matrix) });
        }
        Ok(())
    });
}
