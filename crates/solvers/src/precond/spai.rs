//! A sparse approximate inverse by least squares.
use super::adjoint::{self, ADJOINT, kept_adjoint};
use super::triangles::name_with;
use crate::named::{OptionInfo, Settings};
use crate::{Handles, Parts, PrecondInfo, Preconditioner, Setup};
use lacuna_engine::{Basis, Error, Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::Csr;
use std::borrow::Cow;

const OPERATION: &str = "preconditioner `spai`";
/// Rows with more entries stand in no local problem but their own, which would otherwise be as long.
const LONG: usize = 1024;
/// Marks a column outside the local problem.
const OUTSIDE: u32 = u32::MAX;

/// `M` on the pattern of `A`, row by row the minimiser of `‖eᵢᵀ − mᵢᵀ A‖`.
///
/// * Needs: in each row an entry in some row of its pattern whose column is that of the row. `M` is not Hermitian, so `cg` does not
///   take it: [`Fsai`](crate::Fsai) is.
/// * Cost of an application: one product with a matrix of the size of `A`. Storage: that matrix, and as much again
///   with the adjoint (`adjoint=yes`).
/// * Set-up: a small dense least-squares problem per row, on all threads, with the same bits on any number of them. Rows
///   with more than [`Spai::entries`] entries keep the largest of them and the diagonal.
/// * Reference: Grote and Huckle 1997, doi:10.1137/S1064827594276552, with a fixed pattern.
#[derive(Clone, Copy, Debug)]
pub struct Spai {
    /// The largest number of entries of a row.
    pub entries: usize,
    /// Whether the adjoint is stored too.
    pub adjoint: bool,
}

impl Default for Spai {
    fn default() -> Self {
        Spai { entries: 32, adjoint: false }
    }
}

impl Spai {
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: "spai",
        about: "a sparse approximate inverse on the pattern of the matrix; one product; not for cg",
        options: &[
            OptionInfo { key: "entries", default: "32", about: "the most entries of a row, 1 to 128" },
            ADJOINT,
        ],
        needs_diagonal: false,
        needs_hermitian: false,
        needs_stencil: false,
    };

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        let expected = "a whole number from 1 to 128";
        let entries = settings.number("entries", expected, |e| (1..=128).contains(e))?;
        Ok(Spai { entries, adjoint: adjoint::named(settings)? })
    }
}

impl<T: Scalar> Preconditioner<T> for Spai {
    fn name(&self) -> Cow<'static, str> {
        let differs = self.entries != Spai::default().entries;
        let entries = differs.then(|| format!("entries={}", self.entries));
        name_with("spai", entries.into_iter().chain(adjoint::said(self.adjoint)).collect())
    }
    fn set_up(&mut self, a: &Csr<T>, setup: &mut Setup<'_>) -> Result<Parts<T>> {
        let (wide, n) = (a.wide()?, a.rows());
        let local = || Local { place: vec![OUTSIDE; n], ..Local::default() };
        let most: usize = (0..n).map(|i| a.row_slices(i).0.len().min(self.entries)).sum();
        setup.check_memory(OPERATION, (most * (size_of::<T::Wide>() + size_of::<u32>())) as u64)?;
        let m = setup.rows(OPERATION, [n, n], a.row_shares(), local, |local, run, out| {
            for i in run {
                local.minimise(&wide, i, self.entries);
                out.row(&local.pattern, &local.solution);
            }
        })?;
        let m = Csr::<T>::rounded_from(OPERATION, m)?;
        if let Some(row) = (0..n).find(|&i| m.row_slices(i).1.iter().all(|v| *v == T::zero())) {
            let message = "no combination of the rows coupled to it approximates its unit vector".into();
            return Err(Error::Entry { operation: OPERATION.into(), row, column: row, message });
        }
        let mean = m.nnz() as f64 / n.max(1) as f64;
        let adjoint = self.adjoint.then(|| m.adjoint());
        let parts = Parts::new().matrix(m).report("entries of a row", format!("{mean:.1}"));
        Ok(adjoint.into_iter().fold(parts, Parts::matrix))
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        let [m] = on.matrices();
        k.spmv_dot(&m, r, z, then);
    }
    fn takes_columns(&self) -> bool {
        true
    }
    fn apply_columns(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, _: &[Basis<T>], [r, z]: [Basis<T>; 2]) {
        let [m] = on.matrices();
        k.spmm(&m, r, z);
    }
    kept_adjoint!(|_, k, on, [r, z], then| {
        let [_, adjoint] = on.matrices();
        k.spmv_dot(&adjoint, r, z, then);
    });
}

/// The least-squares problem of a row: its unit vector by the rows of the pattern.
#[derive(Default)]
struct Local<T> {
    pattern: Vec<u32>,
    solution: Vec<T>,
    /// Where each column of the matrix stands in the local problem.
    place: Vec<u32>,
    touched: Vec<u32>,
    /// The rows of the pattern, one after the other; then an orthonormal basis of them.
    q: Vec<T>,
    /// The upper triangle, row by row.
    r: Vec<T>,
    rest: Vec<T>,
}

impl<T: Scalar> Local<T> {
    /// Puts the minimiser for row `i` into `solution`, by modified Gram–Schmidt. A row that depends on those before it gets 0.
    fn minimise(&mut self, a: &Csr<T>, i: usize, most: usize) {
        self.choose(a, i, most);
        let Local { pattern, solution, place, touched, q, r, rest } = self;
        touched.clear();
        let reached = pattern.iter().flat_map(|&j| a.row_slices(j as usize).0);
        for &c in reached.chain([&(i as u32)]) {
            if place[c as usize] == OUTSIDE {
                place[c as usize] = touched.len() as u32;
                touched.push(c);
            }
        }
        let (count, len) = (pattern.len(), touched.len());
        q.clear();
        q.resize(count * len, T::zero());
        for (row, &j) in q.chunks_exact_mut(len).zip(pattern.iter()) {
            a.row_entries(j as usize).for_each(|(c, v)| row[place[c] as usize] = v);
        }
        rest.clear();
        rest.resize(len, T::zero());
        rest[place[i] as usize] = T::one();
        touched.iter().for_each(|&c| place[c as usize] = OUTSIDE);
        solution.clear();
        solution.resize(count, T::zero());
        r.clear();
        r.resize(count * count, T::zero());
        for k in 0..count {
            let (before, later) = q.split_at_mut((k + 1) * len);
            let own = &mut before[k * len..];
            let given: f64 = a.row_slices(pattern[k] as usize).1.iter().map(|v| square(*v)).sum();
            let left: f64 = own.iter().map(|v| square(*v)).sum();
            if left <= T::EPSILON * given {
                continue; // the diagonal of r stays 0
            }
            let inverse = T::from_real(left.sqrt().recip());
            own.iter_mut().for_each(|v| *v *= inverse);
            r[k * count + k] = T::from_real(left.sqrt());
            for (other, l) in later.chunks_exact_mut(len).zip(k + 1..) {
                r[k * count + l] = remove(own, other);
            }
            solution[k] = remove(own, rest);
        }
        for k in (0..count).rev() {
            let sum = (k + 1..count).fold(solution[k], |sum, l| sum - r[k * count + l] * solution[l]);
            let pivot = r[k * count + k];
            solution[k] = if pivot == T::zero() { T::zero() } else { sum.quotient(pivot) };
        }
    }

    /// The pattern of row `i`: its columns without those of other long rows; the diagonal and the largest of the others if
    /// these are too many.
    fn choose(&mut self, a: &Csr<T>, i: usize, most: usize) {
        let (columns, values) = a.row_slices(i);
        let short = |j: u32| j as usize == i || a.row_slices(j as usize).0.len() <= LONG;
        self.pattern.clear();
        self.pattern.extend(columns.iter().filter(|&&j| short(j)));
        if self.pattern.len() <= most {
            return;
        }
        let size = |j: u32| match columns.binary_search(&j) {
            Ok(k) if j as usize != i => square(values[k]),
            _ => f64::INFINITY,
        };
        self.pattern.sort_unstable_by(|&j, &l| size(l).total_cmp(&size(j)).then(j.cmp(&l)));
        self.pattern.truncate(most);
        self.pattern.sort_unstable();
    }
}

fn square<T: Scalar>(v: T) -> f64 {
    v.re() * v.re() + v.im() * v.im()
}

/// Makes `v` orthogonal to the unit vector `q`; returns the coefficient `⟨q, v⟩`.
fn remove<T: Scalar>(q: &[T], v: &mut [T]) -> T {
    let along = q.iter().zip(&*v).fold(T::zero(), |sum, (q, v)| sum + q.conj() * *v);
    v.iter_mut().zip(q).for_each(|(v, q)| *v -= along * *q);
    along
}
