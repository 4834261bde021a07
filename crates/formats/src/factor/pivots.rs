//! Handling of pivots that are unusable.
use crate::Csr;
use crate::algebra::build_rows;
use crate::interrupt;
use lacuna_engine::{Double, Error, Result};
use std::borrow::Cow;

/// What to do if a pivot is nearly zero, or not positive where it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pivots {
    /// Factor `A + α D` instead, with `α = 1e-3`, doubled until it succeeds; `D` has the moduli of the
    /// diagonal, or of the largest entry of a row if that is more than `1e8` times larger.
    Shift,
    /// Fail and report the row.
    Refuse,
}

/// A factor, and the diagonal shift used for it.
#[derive(Clone, Debug)]
pub struct Incomplete<T> {
    /// The factors on the pattern of the matrix.
    pub factor: Csr<T>,
    /// `α`; 0 if the matrix was factored unchanged.
    pub shift: f64,
}

/// The first shift, and the maximum number of doublings.
const FIRST: f64 = 1e-3;
const DOUBLED: i32 = 24;

/// A pivot that stopped a factorisation, or a check did: [`interrupt::check`] says then why.
pub(super) struct Stopped {
    pub(super) row: usize,
    pub(super) message: String,
}

/// [`interrupt::check`] at some of the rows.
pub(super) fn go_on(row: usize) -> Result<(), Stopped> {
    interrupt::check_at(row).map_err(|error| Stopped { row, message: error.to_string() })
}

/// The modulus below which a pivot is nearly zero, for a row whose largest entry is `largest`.
pub(super) fn least<T: Double>(largest: f64) -> f64 {
    // The power of 3/4 by roots, which every platform rounds alike.
    let root = T::EPSILON.sqrt();
    root * root.sqrt() * largest
}

/// Factors with shifts as the policy allows.
pub(super) fn with_shifts<T: Double>(
    operation: &'static str,
    a: Cow<'_, Csr<T>>,
    pivots: Pivots,
    factor: impl Fn(&Csr<T>, &mut [T]) -> Result<(), Stopped>,
) -> Result<Incomplete<T>> {
    if a.rows() != a.cols() {
        let (expected, got) = ("a square matrix".into(), (a.rows(), a.cols()));
        return Err(Error::Shape { operation: operation.into(), expected, got });
    }
    interrupt::check()?;
    let a = with_diagonal(operation, &a)?.map_or(a, Cow::Owned);
    let refused = |stopped: Stopped| {
        let Stopped { row, mut message } = stopped;
        if a.row_entries(row).all(|(_, v)| v == T::zero()) {
            message = "the row has no nonzero entry, so that the matrix is singular".into();
        }
        Error::Entry { operation: operation.into(), row, column: row, message }
    };
    interrupt::check()?;
    let mut values = a.values().to_vec();
    let mut stopped = match factor(&a, &mut values) {
        Ok(()) => return Ok(Incomplete { factor: finished(operation, a, values)?, shift: 0.0 }),
        Err(stopped) => stopped,
    };
    // A check may have stopped it.
    interrupt::check()?;
    if pivots == Pivots::Refuse {
        return Err(refused(stopped));
    }
    for doubled in 0..DOUBLED {
        let shift = FIRST * f64::powi(2.0, doubled);
        interrupt::check()?;
        values.copy_from_slice(a.values());
        raise(&a, &mut values, shift);
        match factor(&a, &mut values) {
            Ok(()) => return Ok(Incomplete { factor: finished(operation, a, values)?, shift }),
            Err(next) => stopped = next,
        }
    }
    interrupt::check()?;
    stopped.message +=
        &format!(", raised by up to {:.0e} of the diagonal", FIRST * f64::powi(2.0, DOUBLED - 1));
    Err(refused(stopped))
}

/// The factor as a matrix. A value that is not finite is an error that identifies it.
fn finished<T: Double>(operation: &str, a: Cow<'_, Csr<T>>, values: Vec<T>) -> Result<Csr<T>> {
    let factor = match a {
        Cow::Borrowed(a) => a.with_values(values),
        Cow::Owned(a) => a.having(values),
    };
    factor.map_err(|error| match error {
        Error::Entry { row, column, message, .. } => {
            Error::Entry { operation: operation.into(), row, column, message }
        }
        other => other,
    })
}

/// Adds `shift · D` to the diagonal, in the direction of each entry.
fn raise<T: Double>(a: &Csr<T>, values: &mut [T], shift: f64) {
    for i in 0..a.rows() {
        let start = a.row_ptr()[i] as usize;
        let (columns, own) = a.row_slices(i);
        let Ok(k) = columns.binary_search(&(i as u32)) else { continue };
        let (diagonal, largest) = (own[k], own.iter().map(|v| v.modulus()).fold(0.0, f64::max));
        let modulus = diagonal.modulus();
        let (by, towards) = match modulus > 1e-8 * largest {
            true => (modulus, T::from_parts(diagonal.re() / modulus, diagonal.im() / modulus)),
            false => (largest, T::one()),
        };
        values[start + k] += T::from_real(shift * by) * towards;
    }
}

/// The matrix with its diagonal fully stored, if some of it is not.
fn with_diagonal<T: Double>(operation: &'static str, a: &Csr<T>) -> Result<Option<Csr<T>>> {
    let has = |i: usize| a.row_slices(i).0.binary_search(&(i as u32)).is_ok();
    if (0..a.rows()).all(has) {
        return Ok(None);
    }
    let full = build_rows(operation, a.rows(), a.cols(), a.row_shares(), |run, out| {
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for i in run {
            let (own_columns, own_values) = a.row_slices(i);
            columns.clear();
            values.clear();
            columns.extend_from_slice(own_columns);
            values.extend_from_slice(own_values);
            if let Err(place) = columns.binary_search(&(i as u32)) {
                columns.insert(place, i as u32);
                values.insert(place, T::zero());
            }
            out.row(&columns, &values);
        }
    })?;
    Ok(Some(full))
}
