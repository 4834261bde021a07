//! Factors by `faer`, on one thread: with another number of threads its supernodes are summed in another
//! order.
use super::cost::Cost;
use super::{DirectOptions, OPERATION};
use crate::Setup;
use crate::explain::unmatched;
use crate::precond::hermitian::check_hermitian;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::sparse::linalg::LuError;
use faer::sparse::linalg::cholesky::{LltRef, SymbolicCholesky, factorize_symbolic_cholesky};
use faer::sparse::linalg::lu::{LuRef, NumericLu, SymbolicLu, factorize_symbolic_lu};
use faer::sparse::{FaerError, SparseColMatRef, SymbolicSparseColMatRef};
use faer::{Conj, MatMut, Par, Side};
use lacuna_engine::{Error, Result, Scalar};
use lacuna_formats::Csr;
use lacuna_formats::factor::equilibrated;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seconds per operation and per entry of the factors on one thread.
const SPEED_OF_CHOLESKY: [f64; 2] = [4e-11, 2e-8];
const SPEED_OF_LU: [f64; 2] = [1e-10, 7e-8];

/// Operations for each entry of the matrix up to which only one of the matrix and its transpose is looked at, and the part that the
/// other must take at most to be factored.
const CHEAP: f64 = 100.0;
const HALF: f64 = 0.5;

/// A number type in which factors are computed.
pub(super) trait Number: Scalar + faer::traits::ComplexField {}
impl Number for f64 {}
impl Number for lacuna_engine::Complex64 {}

/// Which system is solved with the factors.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// `A x = b`
    Plain,
    /// `Aᴴ x = b`
    Adjoint,
}

/// Factors of a matrix. The arrays of the matrix in compressed rows are those of its transpose in compressed
/// columns, and this transpose is factored.
pub(super) struct Factors<W: Number> {
    form: Form<W>,
    cost: Cost,
    /// Exponents of the powers of two that scale rows and columns.
    rows: Vec<i32>,
    columns: Vec<i32>,
}

enum Form<W: Number> {
    Cholesky {
        symbolic: SymbolicCholesky<u32>,
        values: Vec<W>,
    },
    /// Of the transpose, or of the matrix itself if it is `upright`.
    Lu {
        symbolic: SymbolicLu<u32>,
        numeric: NumericLu<u32, W>,
        upright: bool,
    },
}

/// The order and the size of the factors of a pattern.
pub(super) enum Analysis {
    /// Of Cholesky factors.
    Cholesky(SymbolicCholesky<u32>, Cost),
    /// Of LU factors of the transpose, or of the matrix itself if that is `upright`.
    Lu { symbolic: SymbolicLu<u32>, cost: Cost, upright: bool },
}

impl Analysis {
    /// # Errors
    /// [`Error::Unsupported`] for a structurally singular matrix.
    pub(super) fn of<T: Scalar>(a: &Csr<T>) -> Result<Self> {
        if let Some(message) = unmatched(a) {
            return Err(Error::Unsupported { operation: OPERATION.into(), message });
        }
        let n = a.rows();
        let positive = a.diagonal().iter().all(|d| d.re() > 0.0);
        if !positive || check_hermitian(OPERATION, a).is_err() {
            return Analysis::lu(a);
        }
        let symbolic = guarded(|| {
            let (ptr, columns) = upper(a)?;
            let pattern = SymbolicSparseColMatRef::new_checked(n, n, &ptr, None, &columns);
            let (order, parameters) = (Default::default(), Default::default());
            factorize_symbolic_cholesky(pattern, Side::Lower, order, parameters).map_err(refused(0.0))
        })?;
        let cost = Cost::of(&symbolic);
        Ok(Analysis::Cholesky(symbolic, cost))
    }

    fn lu<T: Scalar>(a: &Csr<T>) -> Result<Self> {
        let (n, mirror) = (a.rows(), a.transpose());
        guarded(|| {
            let pattern = SymbolicSparseColMatRef::new_checked(n, n, a.row_ptr(), None, a.col_idx());
            let transposed =
                SymbolicSparseColMatRef::new_checked(n, n, mirror.row_ptr(), None, mirror.col_idx());
            let of = |pattern, transposed| {
                let symbolic = factorize_symbolic_lu(pattern, Default::default()).map_err(refused(0.0))?;
                let cost = Cost::of_lu(&symbolic, pattern, transposed)?;
                Ok::<_, Error>((symbolic, cost))
            };
            let (symbolic, cost) = of(pattern, transposed)?;
            // A dense row of what is factored fills the factors, a dense column does not.
            if cost.operations > CHEAP * a.nnz() as f64 {
                let (symbolic, other) = of(transposed, pattern)?;
                if other.operations < HALF * cost.operations {
                    return Ok(Analysis::Lu { symbolic, cost: other, upright: true });
                }
            }
            Ok(Analysis::Lu { symbolic, cost, upright: false })
        })
    }

    /// Seconds that the factorisation is expected to take.
    pub(super) fn seconds(&self) -> f64 {
        let (cost, [operation, entry]) = match self {
            Analysis::Cholesky(_, cost) => (cost, SPEED_OF_CHOLESKY),
            Analysis::Lu { cost, .. } => (cost, SPEED_OF_LU),
        };
        cost.operations * operation + cost.entries * entry
    }
}

impl<W: Number> Factors<W> {
    /// Factors a matrix as analysed.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a singular matrix, and if the cost exceeds the limits.
    pub(super) fn new<T: Scalar>(
        a: &Csr<T>,
        analysis: Analysis,
        options: &DirectOptions,
        setup: &mut Setup<'_, T>,
    ) -> Result<Self> {
        let n = a.rows();
        setup.progress("factors", 0, None)?;
        let (form, cost) = match analysis {
            Analysis::Cholesky(symbolic, cost) => (Form::Cholesky { symbolic, values: Vec::new() }, cost),
            Analysis::Lu { symbolic, cost, upright } => {
                (Form::Lu { symbolic, numeric: NumericLu::new(), upright }, cost)
            }
        };
        cost.check::<W>(options)?;
        setup.check_memory(OPERATION, cost.bytes::<W>() as u64)?;
        let is_cholesky = matches!(form, Form::Cholesky { .. });
        let mut factors = Factors { form, cost, rows: vec![0; n], columns: vec![0; n] };
        match factors.refactor(a) {
            // The factorisation detects pivots that are not positive; LU then needs no sign.
            Err(error) if is_cholesky && !matches!(error, Error::OutOfMemory { .. }) => {
                setup.check()?;
                Factors::new(a, Analysis::lu(a)?, options, setup)
            }
            made => made.map(|()| factors),
        }
    }

    /// Factors a matrix of the same pattern, with the same order if its values allow it. Cancelled only before the factors
    /// change.
    ///
    /// # Errors
    /// As [`Factors::new`].
    pub(super) fn renew<T: Scalar>(
        &mut self,
        a: &Csr<T>,
        options: &DirectOptions,
        setup: &mut Setup<'_, T>,
    ) -> Result<()> {
        setup.progress("factors", 0, None)?;
        if matches!(self.form, Form::Lu { .. }) {
            return self.refactor(a);
        }
        if check_hermitian(OPERATION, a).is_err() || self.refactor(a).is_err() {
            *self = Factors::new(a, Analysis::of(a)?, options, &mut setup.unwatched())?;
        }
        Ok(())
    }

    fn refactor<T: Scalar>(&mut self, a: &Csr<T>) -> Result<()> {
        let n = a.rows();
        Error::check_length(OPERATION, "the rows", self.rows.len(), n)?;
        if matches!(self.form, Form::Lu { .. }) {
            (self.rows, self.columns) = equilibrated(a);
        }
        let scaled = a.entries().map(|(i, j, v)| {
            let by = self.rows[i] + self.columns[j];
            W::from_parts(v.re(), v.im()).scale_by_power_of_two(by)
        });
        let scaled: Vec<W> = scaled.collect();
        let (form, bytes) = (&mut self.form, self.cost.bytes::<W>());
        guarded(|| {
            let pattern = SymbolicSparseColMatRef::new_checked(n, n, a.row_ptr(), None, a.col_idx());
            let transposed = SparseColMatRef::new(pattern, &scaled[..]);
            match form {
                Form::Cholesky { symbolic, values } => {
                    let count = symbolic.len_val();
                    let more = count.saturating_sub(values.len());
                    values
                        .try_reserve_exact(more)
                        .map_err(|_| out_of_memory((count * size_of::<W>()) as u64))?;
                    values.resize(count, W::zero());
                    let parameters = Default::default();
                    let mut memory =
                        memory(symbolic.factorize_numeric_llt_scratch::<W>(Par::Seq, parameters))?;
                    let stack = MemStack::new(&mut memory);
                    let (side, regular) = (Side::Lower, Default::default());
                    let made = symbolic.factorize_numeric_llt(
                        values,
                        transposed,
                        side,
                        regular,
                        Par::Seq,
                        stack,
                        parameters,
                    );
                    made.map(drop).map_err(failed)
                }
                Form::Lu { symbolic, numeric, upright } => {
                    let parameters = Default::default();
                    let mut memory =
                        memory(symbolic.factorize_numeric_lu_scratch::<W>(Par::Seq, parameters))?;
                    let stack = MemStack::new(&mut memory);
                    let mirror =
                        upright.then(|| a.with_values(scaled.clone()).map(|a| a.transpose())).transpose()?;
                    let factored = match &mirror {
                        Some(mirror) => {
                            let (ptr, idx) = (mirror.row_ptr(), mirror.col_idx());
                            let pattern = SymbolicSparseColMatRef::new_checked(n, n, ptr, None, idx);
                            SparseColMatRef::new(pattern, mirror.values())
                        }
                        None => transposed,
                    };
                    let made = symbolic.factorize_numeric_lu(numeric, factored, Par::Seq, stack, parameters);
                    made.map(drop).map_err(|error| match error {
                        LuError::Generic(error) => refused(bytes)(error),
                        error => failed(error),
                    })
                }
            }
        })?;
        let mut x = vec![W::one(); n];
        self.solve_in_place(Task::Plain, &mut x);
        match x.iter().all(|v| v.finite()) {
            true => Ok(()),
            false => {
                let message = "a pivot is zero: the matrix is singular to working precision".into();
                Err(Error::Unsupported { operation: OPERATION.into(), message })
            }
        }
    }

    /// `x ← A⁻¹ x` or `x ← A⁻ᴴ x`
    pub(super) fn solve_in_place(&self, task: Task, x: &mut [W]) {
        let n = x.len();
        let (before, after) = match task {
            Task::Plain => (&self.rows, &self.columns),
            Task::Adjoint => (&self.columns, &self.rows),
        };
        let scale = |x: &mut [W], by: &[i32]| {
            x.iter_mut()
                .zip(by)
                .filter(|(_, by)| **by != 0)
                .for_each(|(x, by)| *x = x.scale_by_power_of_two(*by));
        };
        scale(x, before);
        let to = MatMut::from_column_major_slice_mut(x, n, 1);
        match &self.form {
            Form::Cholesky { symbolic, values } => {
                let mut memory = MemBuffer::new(symbolic.solve_in_place_scratch::<W>(1, Par::Seq));
                // The conjugate was factored; the matrix is its own adjoint.
                LltRef::new(symbolic, values).solve_in_place_with_conj(
                    Conj::Yes,
                    to,
                    Par::Seq,
                    MemStack::new(&mut memory),
                );
            }
            Form::Lu { symbolic, numeric, upright } => {
                let plain = symbolic.solve_in_place_scratch::<W>(1, Par::Seq);
                let transposed = symbolic.solve_transpose_in_place_scratch::<W>(1, Par::Seq);
                let mut memory = MemBuffer::new(plain.or(transposed));
                let stack = MemStack::new(&mut memory);
                let lu = LuRef::new_unchecked(symbolic, numeric);
                let conj = if matches!(task, Task::Plain) { Conj::No } else { Conj::Yes };
                match matches!(task, Task::Plain) == *upright {
                    true => lu.solve_in_place_with_conj(conj, to, Par::Seq, stack),
                    false => lu.solve_transpose_in_place_with_conj(conj, to, Par::Seq, stack),
                }
            }
        }
        scale(x, after);
    }

    pub(super) fn report(&self) -> Vec<(&'static str, String)> {
        let (name, about) = match self.form {
            Form::Cholesky { .. } => ("Cholesky", ""),
            Form::Lu { .. } => ("LU with partial pivoting", "at most "),
        };
        let size = self.cost.bytes::<W>() / (1 << 20) as f64;
        vec![("factorisation", name.into()), ("size", format!("{about}{size:.1} MiB"))]
    }
}

/// Rows and columns of a matrix and its transpose, from the diagonal on.
fn upper<T: Scalar>(a: &Csr<T>) -> Result<(Vec<u32>, Vec<u32>)> {
    let mirror = a.transpose();
    let mut ptr = vec![0];
    let mut columns = Vec::new();
    for i in 0..a.rows() {
        let from = |a: &Csr<T>| {
            let row = a.row_slices(i).0;
            row[row.partition_point(|&j| (j as usize) < i)..].to_vec()
        };
        let (own, images) = (from(a), from(&mirror));
        let first = columns.len();
        columns.extend(own.iter().chain(&images));
        columns[first..].sort_unstable();
        let mut kept = first;
        for k in first..columns.len() {
            if kept == first || columns[kept - 1] != columns[k] {
                columns[kept] = columns[k];
                kept += 1;
            }
        }
        columns.truncate(kept);
        ptr.push(u32::try_from(kept).map_err(failed)?);
    }
    Ok((ptr, columns))
}

pub(super) fn memory(needs: StackReq) -> Result<MemBuffer> {
    let bytes = needs.unaligned_bytes_required() as u64;
    MemBuffer::try_new(needs).map_err(|_| out_of_memory(bytes))
}

fn out_of_memory(requested: u64) -> Error {
    let device = "the host".into();
    Error::OutOfMemory { operation: OPERATION.into(), device, requested, available: None }
}

/// The error of a factorisation by `faer` of so many bytes.
fn refused(bytes: f64) -> impl Fn(FaerError) -> Error {
    move |error| match error {
        FaerError::OutOfMemory => out_of_memory(bytes as u64),
        error => failed(error),
    }
}

/// Runs `work` and turns a panic of `faer` into an error.
fn guarded<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(failed("it panicked")))
}

fn failed(why: impl std::fmt::Debug) -> Error {
    Error::Unsupported { operation: OPERATION.into(), message: format!("the factorisation failed: {why:?}") }
}
