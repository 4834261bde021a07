//! Operators that are made of the caller's: damped, `min ‖b − A x‖² + δ² ‖x‖²` being `min ‖(b, 0) − (A, δ I) x‖²`; and shifted.
use super::matrix::Matrices;
use super::{Function, Functions, Matrix, Operator};
use lacuna_engine::{Each, Error, Result, Scalar, with_each, with_number};
use lacuna_formats::Csr;
use std::sync::Arc;

/// The operator with `δ I` below.
pub(super) fn damped(operator: Operator, damp: f64) -> Result<Operator> {
    Ok(match operator {
        Operator::Matrix(a) => Operator::Matrix(Matrix(with_each!(a.0, a => below(&a, damp)?))),
        Operator::Functions(a) => {
            let kind = a.kind;
            Operator::Functions(with_number!(kind, T => wrapped::<T>(a, damp)))
        }
    })
}

fn below<T: Scalar>(a: &Csr<T>, damp: f64) -> Result<Each<Matrices>> {
    let (rows, cols) = (a.rows(), a.cols());
    let mut row_ptr = a.row_ptr().to_vec();
    let last = a.nnz() as u32;
    row_ptr.extend((1..=cols as u32).map(|k| last.saturating_add(k)));
    let mut col_idx = a.col_idx().to_vec();
    col_idx.extend(0..cols as u32);
    let mut values = a.values().to_vec();
    values.resize(a.nnz() + cols, T::from_real(damp));
    Ok(T::each(Arc::new(Csr::new(rows + cols, cols, row_ptr, col_idx, values)?)))
}

/// The operator less `σ I`.
///
/// # Errors
/// [`Error::Shape`] unless it is square.
pub(super) fn shifted(operator: Operator, shift: f64) -> Result<Operator> {
    let got @ (rows, cols) = operator.shape();
    if rows != cols {
        let expected = "a square matrix for a shift".into();
        return Err(Error::Shape { operation: "solve".into(), expected, got });
    }
    Ok(match operator {
        Operator::Matrix(a) => Operator::Matrix(Matrix(with_each!(a.0, a => less(&a, shift)?))),
        Operator::Functions(a) => {
            let kind = a.kind;
            Operator::Functions(with_number!(kind, T => less_function::<T>(a, shift)))
        }
    })
}

fn less<T: Scalar>(a: &Csr<T>, shift: f64) -> Result<Each<Matrices>> {
    let mut all = a.to_triplets();
    (0..a.rows()).for_each(|i| all.push(i, i, T::from_real(-shift)));
    Ok(T::each(Arc::new(all.to_csr()?)))
}

fn less_function<T: Scalar>(a: Functions, shift: f64) -> Functions {
    let times = T::from_real(-shift);
    let less = |function: Function| -> Function {
        Arc::new(move |x, y| {
            function(x, y)?;
            let (x, y): (&[T], &mut [T]) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(y));
            y.iter_mut().zip(x).for_each(|(y, x)| *y += times * *x);
            Ok(())
        })
    };
    Functions { product: less(a.product), adjoint: a.adjoint.map(less), ..a }
}

fn wrapped<T: Scalar>(a: Functions, damp: f64) -> Functions {
    let Functions { kind, shape: (rows, cols), product, adjoint } = a;
    let size = size_of::<T>();
    let times = T::from_real(damp);
    let product: Function = Arc::new(move |x, y| {
        let (above, below) = y.split_at_mut(rows * size);
        product(x, above)?;
        let (x, below): (&[T], &mut [T]) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(below));
        below.iter_mut().zip(x).for_each(|(y, x)| *y = times * *x);
        Ok(())
    });
    let adjoint = adjoint.map(|adjoint| {
        let turned: Function = Arc::new(move |u, y| {
            let (above, below) = u.split_at(rows * size);
            adjoint(above, y)?;
            let (below, y): (&[T], &mut [T]) = (bytemuck::cast_slice(below), bytemuck::cast_slice_mut(y));
            y.iter_mut().zip(below).for_each(|(y, u)| *y += times * *u);
            Ok(())
        });
        turned
    });
    Functions { kind, shape: (rows + cols, cols), product, adjoint }
}
