//! A factorised sparse approximate inverse.
use super::hermitian::check_hermitian;
use crate::named::{OptionInfo, Settings};
use crate::{Handles, Parts, PrecondInfo, Preconditioner};
use lacuna_core::{Error, Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::Csr;
use lacuna_formats::algebra::build_rows_with;
use std::borrow::Cow;
use std::sync::Mutex;

const OPERATION: &str = "preconditioner `fsai`";

/// `M = Gᴴ G` with `G` lower triangular on the pattern of the lower triangle of a power of `A`, such that `G A Gᴴ` has a
/// diagonal of ones and `‖I − G L‖` is least in Frobenius' norm, where `L` is Cholesky's factor, which is not needed.
///
/// * Needs: a Hermitian positive definite matrix; each row needs its own small part of it to be so.
/// * Cost of an application: two products with matrices of the pattern's entries. Storage: both, and a vector.
/// * Set-up: a dense Cholesky factorisation a row, on all threads, with the same bits on any number of them.
/// * Reference: Kolotilina and Yeremin 1993, doi:10.1137/0614004.
#[derive(Clone, Copy, Debug)]
pub struct Fsai {
    /// The power of the matrix whose lower triangle is the pattern.
    pub power: usize,
}

impl Default for Fsai {
    fn default() -> Self {
        Fsai { power: 1 }
    }
}

impl Fsai {
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: "fsai",
        about: "a factorised sparse approximate inverse; two products",
        options: &[OptionInfo {
            key: "power",
            default: "1",
            about: "of the matrix whose lower triangle is the pattern, 1 to 4",
        }],
        needs_diagonal: true,
        needs_hermitian: true,
    };

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        Ok(Fsai { power: settings.number("power", "a whole number from 1 to 4", |p| (1..=4).contains(p))? })
    }
}

impl<T: Scalar> Preconditioner<T> for Fsai {
    fn name(&self) -> Cow<'static, str> {
        format!("fsai:power={}", self.power).into()
    }
    fn set_up(&mut self, a: &Csr<T>) -> Result<Parts<T>> {
        check_hermitian(OPERATION, a)?;
        let g = factor(a, self.power)?;
        let mean = g.nnz() as f64 / a.rows().max(1) as f64;
        let adjoint = g.adjoint();
        let parts = Parts::new().matrix(g).matrix(adjoint).scratch(a.rows());
        Ok(parts.tell("entries of a row", format!("{mean:.1}")))
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        let ([g, adjoint], [t]) = (on.matrices(), on.scratch());
        k.spmv_dot(&g, r, t, Pass::nothing());
        k.spmv_dot(&adjoint, t, z, then);
    }
    /// `M` is Hermitian.
    fn apply_adjoint(
        &self,
        k: &mut Recorder<'_, T>,
        on: &Handles<T>,
        r: Vector<T>,
        z: Vector<T>,
        then: Pass<T>,
    ) {
        self.apply(k, on, r, z, then);
    }
}

/// The factor `G`.
fn factor<T: Scalar>(a: &Csr<T>, power: usize) -> Result<Csr<T>> {
    let n = a.rows();
    // The first row that fails, whichever thread comes to it.
    let failed = Mutex::new(None::<usize>);
    let g = build_rows_with(
        OPERATION,
        n,
        n,
        a.row_shares(),
        || Local::new(n),
        |local, run, out| {
            for i in run {
                local.gather(a, i, power);
                if local.solve(a) {
                    out.row(&local.pattern, &local.solution);
                } else {
                    let mut failed = failed.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    *failed = Some(failed.map_or(i, |row| row.min(i)));
                    out.row(&[], &[]);
                }
            }
        },
    )?;
    match failed.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        None => Ok(g),
        Some(row) => {
            let message =
                "the part of the matrix that this row of the pattern takes is not positive definite";
            Err(Error::Entry { operation: OPERATION.into(), row, column: row, message: message.into() })
        }
    }
}

/// What a thread works with.
struct Local<T> {
    /// Columns of the row, increasing, its own the last.
    pattern: Vec<u32>,
    /// Rows reached, those above too.
    reached: Vec<u32>,
    /// The row that reached each last, plus one.
    mark: Vec<u32>,
    /// The part of the matrix, lower triangle by rows.
    dense: Vec<T>,
    solution: Vec<T>,
}

impl<T: Scalar> Local<T> {
    fn new(n: usize) -> Self {
        let (pattern, reached, dense, solution) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Local { pattern, reached, mark: vec![0; n], dense, solution }
    }

    /// The pattern of row `i`: what it reaches in `power` steps, up to the diagonal.
    fn gather(&mut self, a: &Csr<T>, i: usize, power: usize) {
        let own = i as u32 + 1;
        self.reached.clear();
        self.reached.push(i as u32);
        self.mark[i] = own;
        let mut from = 0;
        for _ in 0..power {
            let to = self.reached.len();
            for k in from..to {
                for &j in a.row_slices(self.reached[k] as usize).0 {
                    if std::mem::replace(&mut self.mark[j as usize], own) != own {
                        self.reached.push(j);
                    }
                }
            }
            from = to;
        }
        self.pattern.clear();
        self.pattern.extend(self.reached.iter().filter(|&&j| j as usize <= i));
        self.pattern.sort_unstable();
    }

    /// Solves `A_JJ y = e` for the last unit vector on the pattern, and keeps `ȳ / √y_i`; whether it could.
    fn solve(&mut self, a: &Csr<T>) -> bool {
        let m = self.pattern.len();
        let at = |i: usize| i * (i + 1) / 2;
        self.dense.clear();
        self.dense.resize(at(m), T::zero());
        for (r, &row) in self.pattern.iter().enumerate() {
            let (columns, values) = a.row_slices(row as usize);
            let mut place = 0;
            for (&j, &v) in columns.iter().zip(values) {
                if j > row {
                    break;
                }
                while place < r && self.pattern[place] < j {
                    place += 1;
                }
                if self.pattern[place] == j {
                    self.dense[at(r) + place] = v;
                }
            }
        }
        // Cholesky's factorisation, row by row.
        for i in 0..m {
            for j in 0..=i {
                let (row_i, row_j) = (&self.dense[at(i)..at(i) + j], &self.dense[at(j)..at(j) + j]);
                let sum = row_i.iter().zip(row_j).fold(self.dense[at(i) + j], |s, (&x, &y)| s - x * y.conj());
                if i == j {
                    let root = sum.re().sqrt();
                    if !(root > 0.0 && root.is_finite() && sum.im() == 0.0) {
                        return false;
                    }
                    self.dense[at(i) + i] = T::from_real(root);
                } else {
                    self.dense[at(i) + j] = sum.quotient(self.dense[at(j) + j]);
                }
            }
        }
        // Forward substitution leaves the last unit vector over the last pivot; then back, and the root of the last
        // element divides out that pivot once.
        self.solution.clear();
        self.solution.resize(m, T::zero());
        self.solution[m - 1] = T::one();
        for i in (0..m).rev() {
            let y = self.solution[i].quotient(self.dense[at(i) + i]);
            self.solution[i] = y;
            for j in 0..i {
                let l = self.dense[at(i) + j].conj();
                self.solution[j] -= l * y;
            }
        }
        self.solution.iter_mut().for_each(|y| *y = y.conj());
        self.solution.iter().all(|y| y.finite())
    }
}
