//! A factorised sparse approximate inverse.
mod local;

use super::triangles::name_with;
use crate::named::{OptionInfo, Settings};
use crate::{Handles, Parts, PrecondInfo, Preconditioner, Setup};
use lacuna_engine::{Basis, Double, Error, Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::Csr;
use lacuna_formats::algebra::check_hermitian;
use local::Local;
use std::borrow::Cow;
use std::sync::Mutex;

const OPERATION: &str = "preconditioner `fsai`";

/// How the pattern of the factor is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct FsaiOptions {
    /// The power of the matrix whose lower triangle is the pattern, if it is not adaptive.
    pub power: usize,
    /// Steps in which the pattern of each row grows by the entries with the largest expected gain; 0 for a
    /// pattern derived from that of the matrix.
    pub steps: usize,
    /// The largest number of entries that a step adds to a row.
    pub add: usize,
    /// The largest number of entries of a row: of more, the largest ones are kept.
    pub entries: usize,
    /// A row stops growing once a step enlarges its diagonal entry by at most this fraction.
    pub tolerance: f64,
}

lacuna_engine::setters!(FsaiOptions { power: usize, steps: usize, add: usize, tolerance: f64 });

impl Default for FsaiOptions {
    fn default() -> Self {
        FsaiOptions { power: 1, steps: 0, add: 5, entries: 256, tolerance: 1e-3 }
    }
}

/// `M = Gᴴ G` with `G` lower triangular, on the pattern of the lower triangle of a power of `A` or on one
/// that grows row by row. `G A Gᴴ` has a unit diagonal, and `G` minimises `‖I − G L‖` in the Frobenius norm,
/// where `L` is the Cholesky factor, which is not needed.
///
/// * Needs: a Hermitian positive definite matrix; in each row the small local submatrix must be so
///   numerically.
/// * Cost of an application: two products with matrices of the size of the pattern. Storage: both, and a
///   vector.
/// * Set-up: a dense Cholesky factorisation per row, and one more for each growth step, on all threads, with
///   the same bits on any number of them. New values keep the pattern. Rows with more than [`FsaiOptions::entries`] entries are cut,
///   and no pattern grows through a row with more than 1024.
/// * Reference: Kolotilina and Yeremin 1993, doi:10.1137/0614004; steps by Janna and Ferronato 2011, doi:10.1137/100810368.
#[derive(Default)]
pub struct Fsai {
    options: FsaiOptions,
    /// Row pointers and columns of the pattern of the last set-up with steps.
    pattern: Option<(Vec<u32>, Vec<u32>)>,
}

impl Fsai {
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: "fsai",
        about: "a factorised sparse approximate inverse; two products",
        options: &[
            OptionInfo {
                key: "power",
                default: "1",
                about: "of the matrix whose lower triangle is the pattern, 1 to 4",
            },
            OptionInfo { key: "steps", default: "0", about: "in which the pattern grows instead, 0 to 20" },
            OptionInfo { key: "add", default: "5", about: "entries of a row that a step adds, 1 to 16" },
            OptionInfo { key: "entries", default: "256", about: "the most entries of a row, 1 to 1024" },
            OptionInfo { key: "tolerance", default: "0.001", about: "of what a step must bring, 0 to 1" },
        ],
        needs_diagonal: true,
        needs_hermitian: true,
        needs_stencil: false,
    };

    /// With the given options.
    pub fn new(options: FsaiOptions) -> Self {
        Fsai { options, pattern: None }
    }

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        Ok(Fsai::new(FsaiOptions {
            power: settings.number("power", "a whole number from 1 to 4", |p| (1..=4).contains(p))?,
            steps: settings.number("steps", "a whole number from 0 to 20", |s| *s <= 20)?,
            add: settings.number("add", "a whole number from 1 to 16", |a| (1..=16).contains(a))?,
            entries: settings
                .number("entries", "a whole number from 1 to 1024", |e| (1..=1024).contains(e))?,
            tolerance: settings.number("tolerance", "a number from 0 to 1", |t| (0.0..=1.0).contains(t))?,
        }))
    }
}

/// What the factor needs on a device.
fn parts<T: Scalar>(g: Csr<T>) -> Parts<T> {
    let n = g.rows();
    let mean = g.nnz() as f64 / n.max(1) as f64;
    let adjoint = g.adjoint();
    Parts::new().matrix(g).matrix(adjoint).scratch(n).report("entries of a row", format!("{mean:.1}"))
}

impl<T: Scalar> Preconditioner<T> for Fsai {
    fn name(&self) -> Cow<'static, str> {
        let (own, usual) = (self.options, FsaiOptions::default());
        let mut said = Vec::new();
        let mut say = |differs: bool, what: String| said.extend(differs.then_some(what));
        say(own.power != usual.power, format!("power={}", own.power));
        say(own.steps != usual.steps, format!("steps={}", own.steps));
        say(own.add != usual.add, format!("add={}", own.add));
        say(own.entries != usual.entries, format!("entries={}", own.entries));
        say(own.tolerance != usual.tolerance, format!("tolerance={}", own.tolerance));
        name_with("fsai", said)
    }
    fn keeps_choices(&self) -> bool {
        true
    }
    fn set_up(&mut self, a: &Csr<T>, setup: &mut Setup<'_>) -> Result<Parts<T>> {
        check_hermitian(OPERATION, a)?;
        let wide = a.wide()?;
        let kept = self.pattern.as_ref().filter(|(ptr, _)| setup.is_update() && ptr.len() == a.rows() + 1);
        if let Some((row_ptr, columns)) = kept {
            let row = |i: usize| &columns[row_ptr[i] as usize..row_ptr[i + 1] as usize];
            let g = factor(&wide, setup, |local, i| local.take(row(i)) && local.solve(&wide))?;
            return Ok(parts(Csr::<T>::rounded_from(OPERATION, g)?));
        }
        let options = self.options;
        let g = factor(&wide, setup, |local, i| match options.steps {
            0 => local.reach(&wide, i, &options) && local.solve(&wide),
            _ => local.grow(&wide, i, &options),
        })?;
        self.pattern = (options.steps > 0).then(|| (g.row_ptr().to_vec(), g.col_idx().to_vec()));
        Ok(parts(Csr::<T>::rounded_from(OPERATION, g)?))
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        let ([g, adjoint], [t]) = (on.matrices(), on.scratch());
        k.spmv_dot(&g, r, t, Pass::nothing());
        k.spmv_dot(&adjoint, t, z, then);
    }
    fn takes_columns(&self) -> bool {
        true
    }
    fn apply_columns(
        &self,
        k: &mut Recorder<'_, T>,
        on: &Handles<T>,
        work: &[Basis<T>],
        [r, z]: [Basis<T>; 2],
    ) {
        let ([g, adjoint], t) = (on.matrices(), work[0]);
        k.spmm(&g, r, t);
        k.spmm(&adjoint, t, z);
    }
    fn is_hermitian(&self) -> bool {
        true
    }
}

/// The factor `G`, with each row computed by `solve`, which may fail.
fn factor<T: Double>(
    a: &Csr<T>,
    setup: &mut Setup<'_>,
    solve: impl Fn(&mut Local<T>, usize) -> bool + Sync,
) -> Result<Csr<T>> {
    let n = a.rows();
    // The first row that fails, whichever thread finds it.
    let failed = Mutex::new(None::<usize>);
    let g = setup.rows(
        OPERATION,
        [n, n],
        a.row_shares(),
        || Local::new(n),
        |local, run, out| {
            for i in run {
                if solve(local, i) {
                    out.row(local.pattern(), local.solution());
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
