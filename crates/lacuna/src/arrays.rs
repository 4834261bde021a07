//! Conversions from and to `ndarray`.
use crate::AsVector;
use lacuna_engine::{Device, Error, LinOp, Owned, Result, Scalar, Vector};
use lacuna_formats::{Csr, Dense};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ShapeBuilder};
use std::borrow::Cow;

/// The elements of a view in order: borrowed if contiguous, otherwise copied.
fn in_order<'a, T: Scalar>(view: &'a ArrayView1<'_, T>) -> Cow<'a, [T]> {
    match view.as_slice() {
        Some(slice) => Cow::Borrowed(slice),
        None => Cow::Owned(view.to_vec()),
    }
}

/// Allocates a vector on the device and copies a host vector to it.
///
/// # Errors
/// Out of memory; device failures.
pub fn to_device<T: Scalar>(dev: &Device, elements: impl AsVector<T>) -> Result<Owned<Vector<T>>> {
    let view = elements.as_vector();
    let vector = dev.vector(view.len())?;
    dev.upload(&in_order(&view), *vector)?;
    Ok(vector)
}

/// Copies a vector of the device to an array. Waits for the queue.
///
/// ```
/// use lacuna::prelude::*;
///
/// let dev = default_device()?;
/// let matrix = Array2::from_shape_fn((3, 2), |(i, j)| (10 * i + j) as f64);
/// let column = to_device(&dev, matrix.column(1))?;
/// assert_eq!(to_host(&dev, *column)?, matrix.column(1));
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// A stale handle; device failures.
pub fn to_host<T: Scalar>(dev: &Device, vector: Vector<T>) -> Result<Array1<T>> {
    let mut elements = vec![T::zero(); vector.len];
    dev.download(vector, &mut elements)?;
    Ok(Array1::from_vec(elements))
}

/// `A X` for all columns of a dense matrix at once. The bits are those of separate products, but the matrix
/// is read once for several of them.
///
/// ```
/// use lacuna::prelude::*;
/// use std::sync::Arc;
///
/// let a = Spec::parse("gen:poisson2d:30x30")?.build::<f64>()?;
/// let dev = default_device()?;
/// let stored = dev.matrix(Arc::new(a))?;
/// let x = Array2::from_shape_fn((900, 4), |(i, j)| (i * j) as f64);
/// let y = multiply(&dev, &stored, x.view())?;
/// assert_eq!(y.dim(), (900, 4));
/// assert_eq!(y[(465, 1)], 4.0 * 465.0 - 464.0 - 466.0 - 435.0 - 495.0);
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// [`Error::Length`] unless `x` has as many rows as `a` has columns; out of memory; device failures.
pub fn multiply<T: Scalar>(dev: &Device, a: &dyn LinOp<T>, x: ArrayView2<'_, T>) -> Result<Array2<T>> {
    let ((rows, cols), (n, count)) = (a.shape(), x.dim());
    Error::check_fits("product", (rows, cols), "a column of X", cols, n)?;
    Array2::from_shape_vec((rows, count).f(), columns_of(dev, a, x)?)
        .map_err(|e| Error::Structure { operation: "multiply".into(), message: e.to_string() })
}

/// The columns of `A X`, one after another.
fn columns_of<T: Scalar>(dev: &Device, a: &dyn LinOp<T>, x: ArrayView2<'_, T>) -> Result<Vec<T>> {
    let (rows, cols) = a.shape();
    let [from, to] = [dev.basis(cols, x.ncols())?, dev.basis(rows, x.ncols())?];
    for (j, column) in x.columns().into_iter().enumerate() {
        dev.upload(&in_order(&column), from.column(j))?;
    }
    dev.spmm(a, *from, *to)?;
    let mut product = vec![T::zero(); rows * x.ncols()];
    for j in 0..x.ncols() {
        dev.download(to.column(j), &mut product[j * rows..(j + 1) * rows])?;
    }
    Ok(product)
}

/// The sparse matrix of a dense one; stores the nonzero elements.
///
/// ```
/// use lacuna::prelude::*;
///
/// let a = from_dense(ndarray::arr2(&[[4.0, -1.0], [0.0, 2.0]]).view())?;
/// assert_eq!((a.nnz(), a.get(1, 0)), (3, None));
/// # use lacuna::ndarray;
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// [`Error::Entry`] if an element is infinite or NaN, [`Error::Structure`] if 32-bit indices cannot count the
/// rows, columns or entries.
pub fn from_dense<T: Scalar>(a: ArrayView2<'_, T>) -> Result<Csr<T>> {
    let (rows, cols) = a.dim();
    let count = a.iter().filter(|v| **v != T::zero()).count();
    if [rows, cols, count].iter().any(|&n| n > u32::MAX as usize) {
        let message = format!(
            "a {rows}x{cols} matrix with {count} entries has more than 32-bit indices count ({})",
            u32::MAX
        );
        return Err(Error::Structure { operation: "from_dense".into(), message });
    }
    let (mut row_ptr, mut col_idx, mut values) =
        (Vec::with_capacity(rows + 1), Vec::with_capacity(count), Vec::with_capacity(count));
    row_ptr.push(0);
    for row in a.rows() {
        for (j, &v) in row.iter().enumerate().filter(|(_, v)| **v != T::zero()) {
            col_idx.push(j as u32);
            values.push(v);
        }
        row_ptr.push(values.len() as u32);
    }
    Csr::new(rows, cols, row_ptr, col_idx, values)
}

/// A dense matrix as a storage format, stored on a device with its zeros.
///
/// ```
/// use lacuna::prelude::*;
/// use std::sync::Arc;
///
/// let a = lacuna::dense(lacuna::ndarray::arr2(&[[4.0, -1.0], [0.5, 2.0]]).view())?;
/// let dev = default_device()?;
/// let a = dev.matrix(Arc::new(a))?;
/// let (x, y) = (to_device(&dev, Array1::ones(2).view())?, to_device(&dev, Array1::zeros(2).view())?);
/// dev.spmv_dot(&a, *x, *y, Pass::nothing())?;
/// assert_eq!(to_host(&dev, *y)?, lacuna::ndarray::arr1(&[3.0, 2.5]));
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// # Errors
/// As [`Dense::new`]: an element that is not finite, or more elements than 32-bit indices can count.
pub fn dense<T: Scalar>(a: ArrayView2<'_, T>) -> Result<Dense<T>> {
    let (rows, cols) = a.dim();
    Dense::new(rows, cols, a.iter().copied().collect())
}

/// The dense matrix of a sparse one.
///
/// # Errors
/// [`Error::OutOfMemory`] if its elements do not fit the address space.
pub fn to_dense<T: Scalar>(a: &Csr<T>) -> Result<Array2<T>> {
    let (rows, cols) = (a.rows(), a.cols());
    let mut elements = Vec::new();
    let count = rows.checked_mul(cols);
    if count.is_none_or(|count| elements.try_reserve_exact(count).is_err()) {
        let requested = (rows as u64).saturating_mul(cols as u64).saturating_mul(size_of::<T>() as u64);
        return Err(Error::OutOfMemory {
            operation: "to_dense".into(),
            device: "host".into(),
            requested,
            available: None,
        });
    }
    elements.resize(rows * cols, T::zero());
    for (i, j, v) in a.entries() {
        elements[i * cols + j] = v;
    }
    Array2::from_shape_vec((rows, cols), elements)
        .map_err(|e| Error::Structure { operation: "to_dense".into(), message: e.to_string() })
}
