//! LU with partial pivoting by `faer`, for matrices on which pivots near the diagonal fail.
use crate::Number;
use crate::cost::Cost;
use crate::failure::{failed, filled, guarded, memory, out_of_memory, refused};
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::sparse::linalg::LuError;
use faer::sparse::linalg::lu::{LuRef, NumericLu, SymbolicLu, factorize_symbolic_lu};
use faer::sparse::linalg::qr::{
    col_etree, col_etree_scratch, column_counts_aat_scratch, column_counts_ata, postorder, postorder_scratch,
};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMatRef};
use faer::{Conj, MatMut, Par};
use lacuna_engine::{Error, Result};
use lacuna_formats::Csr;
use lacuna_formats::factor::equilibrated;

/// Seconds for an operation and an entry, where the bounds are reached.
const SECONDS: [f64; 2] = [1.7e-10, 1.2e-7];
/// Operations for each entry of the matrix up to which only one of the matrix and its transpose is looked at, and the part that the
/// other must take at most to be factored.
const CHEAP: f64 = 100.0;
const HALF: f64 = 0.5;

/// The order of the columns, and the most that the factors may cost.
#[derive(Debug)]
pub(crate) struct PivotedPlan {
    symbolic: SymbolicLu<u32>,
    /// Whether the matrix itself is factored; otherwise its transpose, whose columns are the rows that are stored.
    is_upright: bool,
    pub(crate) cost: Cost,
}

impl PivotedPlan {
    pub(crate) fn of<W: Number>(a: &Csr<W>) -> Result<Self> {
        let (n, mirror) = (a.rows(), a.transpose());
        let size = if W::KIND.is_complex() { 16.0 } else { 8.0 };
        guarded(|| {
            let pattern = SymbolicSparseColMatRef::new_checked(n, n, a.row_ptr(), None, a.col_idx());
            let transposed =
                SymbolicSparseColMatRef::new_checked(n, n, mirror.row_ptr(), None, mirror.col_idx());
            let of = |pattern, transposed, is_upright| {
                let symbolic = factorize_symbolic_lu(pattern, Default::default()).map_err(refused(0.0))?;
                let cost = bounds(&symbolic, pattern, transposed, size)?;
                Ok::<_, Error>(PivotedPlan { symbolic, is_upright, cost })
            };
            let plan = of(pattern, transposed, false)?;
            // A dense row of what is factored fills the factors, a dense column does not.
            if plan.cost.operations > CHEAP * a.nnz() as f64 {
                let other = of(transposed, pattern, true)?;
                if other.cost.operations < HALF * plan.cost.operations {
                    return Ok(other);
                }
            }
            Ok(plan)
        })
    }
}

/// The most that LU factors with partial pivoting may cost, whatever the values: those of the R and the Householder vectors of a QR
/// factorisation in the same order (George and Ng 1987, doi:10.1137/0908082). Takes the pattern and its transpose.
fn bounds(
    symbolic: &SymbolicLu<u32>,
    pattern: SymbolicSparseColMatRef<'_, u32>,
    transposed: SymbolicSparseColMatRef<'_, u32>,
    size: f64,
) -> Result<Cost> {
    let n = pattern.ncols();
    let needs =
        [col_etree_scratch::<u32>(n, n), postorder_scratch::<u32>(n), column_counts_aat_scratch::<u32>(n, n)];
    let mut memory = memory(StackReq::any_of(&needs))?;
    let stack = MemStack::new(&mut memory);
    let (mut parents, mut order) = (filled(0, n)?, filled(0, n)?);
    let (mut of_r, mut first) = (filled(0, n)?, filled(0, n)?);
    let by = Some(symbolic.col_perm());
    let tree = col_etree(pattern, by, &mut parents, stack);
    postorder(&mut order, tree, stack);
    column_counts_ata(&mut of_r, &mut first, transposed, by, tree, &order, stack);
    // Rows are counted at the first column that has an entry in them, and go on to its parent without one.
    let mut of_h = filled(0u32, n)?;
    first.iter().filter(|column| (**column as usize) < n).for_each(|column| of_h[*column as usize] += 1);
    for j in 0..n {
        if let Some(rows) = of_h.get(parents[j] as usize).copied() {
            of_h[parents[j] as usize] = rows + of_h[j].saturating_sub(1);
        }
    }
    let pairs = of_h.iter().zip(&of_r).map(|(h, r)| (f64::from(*h), f64::from(*r)));
    let (entries, operations) = pairs.fold((0.0, 0.0), |(e, o), (h, r)| (e + h + r, o + 2.0 * h * r));
    let [operation, entry] = SECONDS;
    Ok(Cost { entries, operations, bytes: entries * size, seconds: operation * operations + entry * entries })
}

/// Factors of a matrix or of its transpose.
pub(crate) struct Pivoted<W: Number> {
    plan: PivotedPlan,
    numeric: NumericLu<u32, W>,
    /// Exponents of the powers of two that scale rows and columns.
    rows: Vec<i32>,
    columns: Vec<i32>,
}

impl<W: Number> Pivoted<W> {
    pub(crate) fn new(a: &Csr<W>, plan: PivotedPlan) -> Result<Self> {
        let mut made = Pivoted { plan, numeric: NumericLu::new(), rows: Vec::new(), columns: Vec::new() };
        made.renew(a)?;
        Ok(made)
    }

    /// Factors a matrix of the same pattern.
    pub(crate) fn renew(&mut self, a: &Csr<W>) -> Result<()> {
        let n = a.rows();
        (self.rows, self.columns) = equilibrated(a);
        let scaled = a.entries().map(|(i, j, v)| {
            let by = self.rows[i] + self.columns[j];
            v.scale_by_power_of_two(by)
        });
        let scaled: Vec<W> = scaled.collect();
        let bytes = self.plan.cost.bytes;
        let PivotedPlan { symbolic, is_upright, .. } = &self.plan;
        let numeric = &mut self.numeric;
        guarded(|| {
            let mut memory =
                memory(symbolic.factorize_numeric_lu_scratch::<W>(Par::Seq, Default::default()))?;
            let stack = MemStack::new(&mut memory);
            let mirror =
                is_upright.then(|| a.with_values(scaled.clone()).map(|a| a.transpose())).transpose()?;
            let (ptr, idx, values) = match &mirror {
                Some(mirror) => (mirror.row_ptr(), mirror.col_idx(), mirror.values()),
                None => (a.row_ptr(), a.col_idx(), &scaled[..]),
            };
            let pattern = SymbolicSparseColMatRef::new_checked(n, n, ptr, None, idx);
            let factored = SparseColMatRef::new(pattern, values);
            symbolic
                .factorize_numeric_lu(numeric, factored, Par::Seq, stack, Default::default())
                .map(drop)
                .map_err(|error| match error {
                    LuError::Generic(faer::sparse::FaerError::OutOfMemory) => out_of_memory(bytes as u64),
                    error => failed(error),
                })
        })
    }

    /// `x ← A⁻¹ x`
    pub(crate) fn solve(&self, x: &mut [W]) {
        scale(x, &self.rows);
        self.apply(x, self.plan.is_upright);
        scale(x, &self.columns);
    }

    /// `x ← A⁻ᵀ x`
    pub(crate) fn solve_transposed(&self, x: &mut [W]) {
        scale(x, &self.columns);
        self.apply(x, !self.plan.is_upright);
        scale(x, &self.rows);
    }

    fn apply(&self, x: &mut [W], plain: bool) {
        let symbolic = &self.plan.symbolic;
        let n = x.len();
        let needs = symbolic
            .solve_in_place_scratch::<W>(1, Par::Seq)
            .or(symbolic.solve_transpose_in_place_scratch::<W>(1, Par::Seq));
        let mut memory = MemBuffer::new(needs);
        let (to, stack) = (MatMut::from_column_major_slice_mut(x, n, 1), MemStack::new(&mut memory));
        let lu = LuRef::new_unchecked(symbolic, &self.numeric);
        match plain {
            true => lu.solve_in_place_with_conj(Conj::No, to, Par::Seq, stack),
            false => lu.solve_transpose_in_place_with_conj(Conj::No, to, Par::Seq, stack),
        }
    }
}

fn scale<W: Number>(x: &mut [W], by: &[i32]) {
    x.iter_mut().zip(by).filter(|(_, by)| **by != 0).for_each(|(x, by)| *x = x.scale_by_power_of_two(*by));
}
