//! Factors by `faer`, on one thread: with another number of threads its supernodes are summed in another
//! order.
use super::{DirectOptions, OPERATION};
use crate::Setup;
use crate::explain::unmatched;
use crate::precond::hermitian::check_hermitian;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::sparse::linalg::cholesky::{
    LltRef, SymbolicCholesky, SymbolicCholeskyRaw, factorize_symbolic_cholesky,
};
use faer::sparse::linalg::lu::{LuRef, NumericLu, SymbolicLu, factorize_symbolic_lu};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMatRef};
use faer::{Conj, MatMut, Par, Side};
use lacuna_engine::{Error, Result, Scalar};
use lacuna_formats::Csr;
use lacuna_formats::factor::equilibrated;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seconds per operation and per entry of the factors on one thread.
const SPEED_OF_CHOLESKY: [f64; 2] = [4e-11, 2e-8];
const SPEED_OF_LU: [f64; 2] = [1e-10, 7e-8];

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
    Cholesky { symbolic: SymbolicCholesky<u32>, values: Vec<W> },
    Lu { symbolic: SymbolicLu<u32>, numeric: NumericLu<u32, W> },
}

/// The cost of a factorisation, counted before it.
#[derive(Clone, Copy, Debug)]
struct Cost {
    entries: f64,
    operations: f64,
}

/// The order and the size of the factors of a pattern.
pub(super) struct Analysis {
    symbolic: SymbolicCholesky<u32>,
    /// Whether Cholesky factors are tried.
    definite: bool,
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
        let symbolic = guarded(|| {
            let (ptr, columns) = upper(a)?;
            let pattern = SymbolicSparseColMatRef::new_checked(n, n, &ptr, None, &columns);
            let (order, parameters) = (Default::default(), Default::default());
            factorize_symbolic_cholesky(pattern, Side::Lower, order, parameters).map_err(failed)
        })?;
        Ok(Analysis { symbolic, definite: positive && check_hermitian(OPERATION, a).is_ok() })
    }

    /// Seconds that the factorisation is expected to take.
    pub(super) fn seconds(&self) -> f64 {
        let [operation, entry] = if self.definite { SPEED_OF_CHOLESKY } else { SPEED_OF_LU };
        let cost = self.cost();
        cost.operations * operation + cost.entries * entry
    }

    /// The cost of Cholesky factors; or of both factors of `L U`, and their fill from pivoting, estimated from
    /// a symmetric pattern.
    fn cost(&self) -> Cost {
        let cost = Cost::of(&self.symbolic);
        if self.definite { cost } else { cost.twice() }
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
        let cost = analysis.cost();
        cost.check::<W>(options)?;
        setup.check_memory(OPERATION, cost.bytes::<W>() as u64)?;
        setup.progress("factors", 0, None)?;
        if analysis.definite {
            let form = Form::Cholesky { symbolic: analysis.symbolic, values: Vec::new() };
            let mut factors = Factors { form, cost, rows: vec![0; n], columns: vec![0; n] };
            // The factorisation detects pivots that are not positive; LU then needs no sign.
            if factors.refactor(a).is_ok() {
                return Ok(factors);
            }
            cost.twice().check::<W>(options)?;
            setup.check_memory(OPERATION, cost.twice().bytes::<W>() as u64)?;
            setup.check()?;
        }
        let cost = if analysis.definite { cost.twice() } else { cost };
        let symbolic = guarded(|| {
            let pattern = SymbolicSparseColMatRef::new_checked(n, n, a.row_ptr(), None, a.col_idx());
            factorize_symbolic_lu(pattern, Default::default()).map_err(failed)
        })?;
        setup.check()?;
        let form = Form::Lu { symbolic, numeric: NumericLu::new() };
        let mut factors = Factors { form, cost, rows: vec![0; n], columns: vec![0; n] };
        factors.refactor(a)?;
        Ok(factors)
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
        let form = &mut self.form;
        guarded(|| {
            let pattern = SymbolicSparseColMatRef::new_checked(n, n, a.row_ptr(), None, a.col_idx());
            let transposed = SparseColMatRef::new(pattern, &scaled[..]);
            match form {
                Form::Cholesky { symbolic, values } => {
                    let count = symbolic.len_val();
                    values.try_reserve_exact(count.saturating_sub(values.len())).map_err(failed)?;
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
                Form::Lu { symbolic, numeric } => {
                    let parameters = Default::default();
                    let mut memory =
                        memory(symbolic.factorize_numeric_lu_scratch::<W>(Par::Seq, parameters))?;
                    let stack = MemStack::new(&mut memory);
                    let made =
                        symbolic.factorize_numeric_lu(numeric, transposed, Par::Seq, stack, parameters);
                    made.map(drop).map_err(failed)
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
            Form::Lu { symbolic, numeric } => {
                let plain = symbolic.solve_in_place_scratch::<W>(1, Par::Seq);
                let transposed = symbolic.solve_transpose_in_place_scratch::<W>(1, Par::Seq);
                let mut memory = MemBuffer::new(plain.or(transposed));
                let stack = MemStack::new(&mut memory);
                let lu = LuRef::new_unchecked(symbolic, numeric);
                match task {
                    Task::Plain => lu.solve_transpose_in_place_with_conj(Conj::No, to, Par::Seq, stack),
                    Task::Adjoint => lu.solve_in_place_with_conj(Conj::Yes, to, Par::Seq, stack),
                }
            }
        }
        scale(x, after);
    }

    pub(super) fn report(&self) -> Vec<(&'static str, String)> {
        let (name, about) = match self.form {
            Form::Cholesky { .. } => ("Cholesky", ""),
            Form::Lu { .. } => ("LU with partial pivoting", "about "),
        };
        let size = self.cost.bytes::<W>() / (1 << 20) as f64;
        vec![("factorisation", name.into()), ("size", format!("{about}{size:.1} MiB"))]
    }
}

impl Cost {
    fn of(symbolic: &SymbolicCholesky<u32>) -> Self {
        let operations = match symbolic.raw() {
            SymbolicCholeskyRaw::Simplicial(s) => {
                s.col_ptr().windows(2).map(|w| f64::from(w[1] - w[0]).powi(2)).sum()
            }
            SymbolicCholeskyRaw::Supernodal(s) => {
                let (first, end, rows) = (s.supernode_begin(), s.supernode_end(), s.col_ptr_for_row_idx());
                let of = |k: usize| {
                    let (own, below) = (f64::from(end[k] - first[k]), f64::from(rows[k + 1] - rows[k]));
                    // The sum of (below + j)² over the columns j of the supernode.
                    own * (below * (below + own) + own * own / 3.0)
                };
                (0..s.n_supernodes()).map(of).sum()
            }
        };
        Cost { entries: symbolic.len_val() as f64, operations }
    }

    fn twice(self) -> Self {
        Cost { entries: 2.0 * self.entries, operations: 2.0 * self.operations }
    }

    fn bytes<W>(&self) -> f64 {
        self.entries * size_of::<W>() as f64
    }

    fn check<W>(&self, options: &DirectOptions) -> Result<()> {
        let (memory, work) = (self.bytes::<W>() / (1u64 << 30) as f64, self.operations / 1e9);
        let refused = |what: String| {
            let message = format!("{what}; iterate with another preconditioner, or raise the limit");
            Err(Error::Unsupported { operation: OPERATION.into(), message })
        };
        if memory > options.memory {
            return refused(format!(
                "the factors would take {memory:.1} GiB, the limit is memory={}",
                options.memory
            ));
        }
        if work > options.work {
            let limit = options.work;
            return refused(format!(
                "it would take {work:.3} times 10^9 operations, the limit is work={limit}"
            ));
        }
        Ok(())
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

fn memory(needs: StackReq) -> Result<MemBuffer> {
    MemBuffer::try_new(needs).map_err(failed)
}

/// Runs `work` and turns a panic of `faer` into an error.
fn guarded<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(failed("it panicked")))
}

fn failed(why: impl std::fmt::Debug) -> Error {
    Error::Unsupported { operation: OPERATION.into(), message: format!("the factorisation failed: {why:?}") }
}
