//! Hermitian factorisations by `faer`: `L Lᴴ`, and `L B Lᴴ` with pivots of one and two rows within supernodes.
mod solve;

use crate::cost::{Cost, Count};
use crate::failure::{failed, filled, guarded, memory, refused, with_room};
use crate::order::{by_minimum_degree, dissected, is_hopeless};
use crate::{Inertia, Number};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::perm::PermRef;
use faer::sparse::linalg::SupernodalThreshold;
use faer::sparse::linalg::cholesky::{
    CholeskySymbolicParams, LltRef, SymbolicCholesky, SymbolicCholeskyRaw, SymmetricOrdering,
    factorize_symbolic_cholesky,
};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMatRef};
use faer::{Conj, MatMut, Par, Side};
use lacuna_engine::Result;
use lacuna_formats::{Csr, interrupt};
use std::borrow::Cow;
use std::sync::Arc;

use solve::{Pivots, Supernodes};

/// Operations for each entry, in units of 40, from which supernodes pay for `L Lᴴ`.
const SUPERNODES: f64 = 0.5;
/// Seconds for an operation, for an entry of a front or of what it passes on, for a front, and for an entry of the factor.
const BY_SUPERNODES: [f64; 4] = [1e-11, 8e-10, 2e-8, 7.5e-9];
/// Seconds for an operation and an entry.
const BY_ENTRIES: [f64; 2] = [4.3e-10, 1.6e-8];
/// Rows from which an order, and seconds from which factors, are long to wait for.
pub(crate) const LARGE: usize = 30_000;
const LONG: f64 = 0.05;
/// The work of `L B Lᴴ` over that of `L Lᴴ`.
const INDEFINITE: f64 = 2.5;

/// The order of a Hermitian matrix and the places of its factor.
#[derive(Debug)]
pub(crate) struct HermitianPlan {
    symbolic: Arc<SymbolicCholesky<u32>>,
    is_definite: bool,
    pub(crate) cost: Cost,
}

impl HermitianPlan {
    pub(crate) fn of<W: Number>(a: &Csr<W>, is_definite: bool, within: f64) -> Result<Option<Self>> {
        let n = a.rows();
        let supernodal_flop_ratio_threshold = match is_definite {
            true => SupernodalThreshold(SUPERNODES),
            false => SupernodalThreshold::FORCE_SUPERNODAL,
        };
        let (ptr, columns) = upper(a)?;
        let found = move || -> Result<_> {
            let counted = |order: SymmetricOrdering<'_, u32>| {
                guarded(|| {
                    let pattern = SymbolicSparseColMatRef::new_checked(n, n, &ptr, None, &columns);
                    let params =
                        CholeskySymbolicParams { supernodal_flop_ratio_threshold, ..Default::default() };
                    let found = factorize_symbolic_cholesky(pattern, Side::Lower, order, params);
                    let symbolic = found.map_err(refused(0.0))?;
                    let (count, seconds) = cost(&symbolic);
                    Ok((symbolic, count, if is_definite { seconds } else { INDEFINITE * seconds }))
                })
            };
            let in_order = |order: &[u32]| {
                let mut inverse = filled(0u32, n)?;
                order.iter().enumerate().for_each(|(k, &i)| inverse[i as usize] = k as u32);
                counted(SymmetricOrdering::Custom(PermRef::new_checked(order, &inverse, n)))
            };
            // A diagonal matrix stays as it is.
            if columns.len() == n {
                return counted(SymmetricOrdering::Identity).map(Some);
            }
            let Some(usual) = by_minimum_degree(n, &ptr, &columns, within)? else { return Ok(None) };
            if is_hopeless(usual.count.operations, within) {
                return Ok(None);
            }
            let mut best = in_order(&usual.order)?;
            // The operations of LU factors are counted.
            if let Some(other) = dissected(n, &ptr, &columns, within, (best.2, 2.0 * best.1.operations))? {
                let other = in_order(&other.order)?;
                if other.2 < best.2 {
                    best = other;
                }
            }
            Ok(Some(best))
        };
        let Some((symbolic, count, seconds)) = interrupt::aside(n >= LARGE, found)?? else {
            return Ok(None);
        };
        let size = if W::KIND.is_complex() { 16.0 } else { 8.0 };
        let cost = Cost {
            entries: count.entries,
            operations: count.operations,
            bytes: count.entries * size,
            seconds,
        };
        Ok(Some(HermitianPlan { symbolic: Arc::new(symbolic), is_definite, cost }))
    }
}

/// Whether some row without a diagonal entry has fewer couplings than each row that it is coupled with. It is eliminated before these,
/// and then has no pivot among the rows that are eliminated with it, where `L B Lᴴ` seeks one.
pub(crate) fn lacks_pivots<W: Number>(a: &Csr<W>) -> bool {
    let is_zero = |i: usize| a.get(i, i).is_none_or(|d| d == W::zero());
    let length = |i: usize| a.row_slices(i).0.len() - usize::from(a.get(i, i).is_some());
    let is_first = |i: usize| {
        let own = length(i);
        a.row_slices(i).0.iter().map(|j| *j as usize).all(|j| j == i || length(j) > own)
    };
    (0..a.rows()).filter(|i| is_zero(*i)).any(is_first)
}

fn cost(symbolic: &SymbolicCholesky<u32>) -> (Count, f64) {
    let entries = symbolic.len_val() as f64;
    match symbolic.raw() {
        SymbolicCholeskyRaw::Simplicial(s) => {
            let operations = s.col_ptr().windows(2).map(|w| f64::from(w[1] - w[0]).powi(2)).sum();
            let [operation, entry] = BY_ENTRIES;
            (Count { entries, operations }, operation * operations + entry * entries)
        }
        SymbolicCholeskyRaw::Supernodal(s) => {
            let [operation, moved, front, entry] = BY_SUPERNODES;
            let (mut operations, mut seconds) = (0.0, entry * entries);
            for k in 0..s.n_supernodes() {
                let own = f64::from(s.supernode_end()[k] - s.supernode_begin()[k]);
                let below = s.supernode(k).pattern().len() as f64;
                // The sum of (below + j)² over the columns j of the supernode.
                let work = own * (below * (below + own) + own * own / 3.0);
                operations += work;
                seconds += operation * work + moved * ((own + below) * own + below * below) + front;
            }
            (Count { entries, operations }, seconds)
        }
    }
}

/// Factors of a Hermitian matrix. The arrays of its rows are those of the columns of its conjugate, which is factored.
pub(crate) struct Hermitian<W: Number> {
    plan: HermitianPlan,
    factor: HermitianFactor<W>,
}

/// The numbers of a factorisation.
struct HermitianFactor<W> {
    values: Vec<W>,
    /// Whether the negative of the matrix was factored, which may be positive definite.
    is_negated: bool,
    /// Of pivots of two rows.
    beside: Vec<W>,
    order: Vec<u32>,
    inverse: Vec<u32>,
}

impl<W: Number> Hermitian<W> {
    pub(crate) fn new(a: &Csr<W>, plan: HermitianPlan) -> Result<Self> {
        let rows = if plan.is_definite { 0 } else { a.rows() };
        let mut factor = HermitianFactor {
            values: filled(W::zero(), plan.symbolic.len_val())?,
            is_negated: false,
            beside: filled(W::zero(), rows)?,
            order: filled(0, rows)?,
            inverse: filled(0, rows)?,
        };
        if plan.cost.seconds < LONG {
            factor.renew(a, &plan.symbolic, plan.is_definite)?;
            return Ok(Hermitian { plan, factor });
        }
        // Whoever ends it does not wait for the end of what has its own copy of the matrix.
        let (a, symbolic, is_definite) = (a.clone(), plan.symbolic.clone(), plan.is_definite);
        let made = move || factor.renew(&a, &symbolic, is_definite).map(|()| factor);
        Ok(Hermitian { plan, factor: interrupt::aside(true, made)?? })
    }

    /// Factors a matrix of the same pattern.
    pub(crate) fn renew(&mut self, a: &Csr<W>) -> Result<()> {
        self.factor.renew(a, &self.plan.symbolic, self.plan.is_definite)
    }

    /// `x ← A⁻¹ x`
    pub(crate) fn solve(&self, x: &mut [W]) {
        let (symbolic, factor) = (&*self.plan.symbolic, &self.factor);
        match symbolic.raw() {
            SymbolicCholeskyRaw::Supernodal(supernodes) => {
                let pivots = Pivots { beside: &factor.beside, inverse: &factor.inverse };
                let pivots = (!self.plan.is_definite).then_some(pivots);
                let outer = symbolic.perm().map(|order| order.arrays().0);
                let place = |step: usize| {
                    let row = if self.plan.is_definite { step } else { factor.order[step] as usize };
                    outer.map_or(row, |outer| outer[row] as usize)
                };
                let mut ordered: Vec<W> = (0..x.len()).map(|step| x[place(step)]).collect();
                Supernodes { symbolic: supernodes, values: &factor.values, pivots }.solve(&mut ordered);
                ordered.iter().enumerate().for_each(|(step, v)| x[place(step)] = *v);
            }
            SymbolicCholeskyRaw::Simplicial(_) => {
                let mut memory = MemBuffer::new(symbolic.solve_in_place_scratch::<W>(1, Par::Seq));
                let n = x.len();
                let (to, stack) = (MatMut::from_column_major_slice_mut(x, n, 1), MemStack::new(&mut memory));
                // The conjugate was factored.
                LltRef::new(symbolic, &factor.values).solve_in_place_with_conj(
                    Conj::Yes,
                    to,
                    Par::Seq,
                    stack,
                );
            }
        }
        if factor.is_negated {
            x.iter_mut().for_each(|v| *v = -*v);
        }
    }

    /// How many eigenvalues are positive, negative and zero, by Sylvester's law of inertia.
    pub(crate) fn inertia(&self) -> Inertia {
        let n = self.factor.beside.len();
        if self.plan.is_definite {
            let n = self.plan.symbolic.nrows();
            return match self.factor.is_negated {
                true => Inertia { negative: n, ..Inertia::default() },
                false => Inertia { positive: n, ..Inertia::default() },
            };
        }
        let SymbolicCholeskyRaw::Supernodal(s) = self.plan.symbolic.raw() else { return Inertia::default() };
        let mut diagonal = vec![0.0; n];
        for k in 0..s.n_supernodes() {
            let (first, end) = (s.supernode_begin()[k] as usize, s.supernode_end()[k] as usize);
            let rows = end - first + s.supernode(k).pattern().len();
            let values = &self.factor.values[s.col_ptr_for_val()[k] as usize..];
            (first..end).enumerate().for_each(|(j, step)| diagonal[step] = values[j * rows + j].re());
        }
        let mut inertia = Inertia::default();
        let mut k = 0;
        while k < n {
            let beside = self.factor.beside[k].modulus();
            if beside == 0.0 || k + 1 == n {
                inertia.count(diagonal[k]);
                k += 1;
                continue;
            }
            let (trace, determinant) =
                (diagonal[k] + diagonal[k + 1], diagonal[k] * diagonal[k + 1] - beside * beside);
            let first = if determinant > 0.0 { trace } else { 1.0 };
            inertia.count(first);
            inertia.count(if determinant == 0.0 { 0.0 } else { determinant * first });
            k += 2;
        }
        inertia
    }
}

impl<W: Number> HermitianFactor<W> {
    fn renew(&mut self, a: &Csr<W>, symbolic: &SymbolicCholesky<u32>, is_definite: bool) -> Result<()> {
        let n = a.rows();
        self.is_negated = is_definite && a.get(0, 0).is_some_and(|d| d.re() < 0.0);
        let values = match self.is_negated {
            true => Cow::Owned(a.values().iter().map(|v| -*v).collect()),
            false => Cow::Borrowed(a.values()),
        };
        guarded(|| {
            let pattern = SymbolicSparseColMatRef::new_checked(n, n, a.row_ptr(), None, a.col_idx());
            let a = SparseColMatRef::new(pattern, &values);
            if is_definite {
                let scratch = symbolic.factorize_numeric_llt_scratch::<W>(Par::Seq, Default::default());
                let mut memory = memory(scratch)?;
                let stack = MemStack::new(&mut memory);
                let (side, none) = (Side::Lower, Default::default());
                return symbolic
                    .factorize_numeric_llt(
                        &mut self.values,
                        a,
                        side,
                        none,
                        Par::Seq,
                        stack,
                        Default::default(),
                    )
                    .map(drop)
                    .map_err(failed);
            }
            let scratch =
                symbolic.factorize_numeric_intranode_lblt_scratch::<W>(Par::Seq, Default::default());
            let mut memory = memory(scratch)?;
            symbolic.factorize_numeric_intranode_lblt(
                &mut self.values,
                &mut self.beside,
                &mut self.order,
                &mut self.inverse,
                a,
                Side::Lower,
                Par::Seq,
                MemStack::new(&mut memory),
                Default::default(),
            );
            Ok(())
        })
    }
}

/// The rows of a Hermitian matrix from the diagonal on.
fn upper<W: Number>(a: &Csr<W>) -> Result<(Vec<u32>, Vec<u32>)> {
    let (mut ptr, mut columns) = (with_room(a.rows() + 1)?, with_room((a.nnz() + a.rows()) / 2 + 1)?);
    ptr.push(0);
    for i in 0..a.rows() {
        let row = a.row_slices(i).0;
        columns.extend_from_slice(&row[row.partition_point(|&j| (j as usize) < i)..]);
        ptr.push(u32::try_from(columns.len()).map_err(failed)?);
    }
    Ok((ptr, columns))
}
