//! What a factorisation costs, counted before it.
use super::factors::memory;
use super::{DirectOptions, OPERATION};
use faer::dyn_stack::{MemStack, StackReq};
use faer::sparse::SymbolicSparseColMatRef;
use faer::sparse::linalg::cholesky::{SymbolicCholesky, SymbolicCholeskyRaw};
use faer::sparse::linalg::lu::SymbolicLu;
use faer::sparse::linalg::qr::{
    col_etree, col_etree_scratch, column_counts_aat_scratch, column_counts_ata, postorder, postorder_scratch,
};
use lacuna_engine::{Error, Result};

/// Entries of the factors, and operations: the most there can be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) entries: f64,
    pub(super) operations: f64,
}

impl Cost {
    /// The cost of Cholesky factors.
    pub(super) fn of(symbolic: &SymbolicCholesky<u32>) -> Self {
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

    /// The most that LU factors with partial pivoting may cost, whatever the values: those of the R and the Householder vectors of a
    /// QR factorisation in the same order (George and Ng 1987, doi:10.1137/0908082). Takes the pattern and its transpose.
    pub(super) fn of_lu(
        symbolic: &SymbolicLu<u32>,
        pattern: SymbolicSparseColMatRef<'_, u32>,
        transposed: SymbolicSparseColMatRef<'_, u32>,
    ) -> Result<Self> {
        let n = pattern.ncols();
        let needs = [
            col_etree_scratch::<u32>(n, n),
            postorder_scratch::<u32>(n),
            column_counts_aat_scratch::<u32>(n, n),
        ];
        let mut memory = memory(StackReq::any_of(&needs))?;
        let stack = MemStack::new(&mut memory);
        let (mut parents, mut order, mut of_r, mut first) = (vec![0; n], vec![0; n], vec![0; n], vec![0; n]);
        let by = Some(symbolic.col_perm());
        let tree = col_etree(pattern, by, &mut parents, stack);
        postorder(&mut order, tree, stack);
        column_counts_ata(&mut of_r, &mut first, transposed, by, tree, &order, stack);
        // Rows are counted at the first column that has an entry in them, and go on to its parent without one.
        let mut of_h = vec![0u32; n];
        first.iter().filter(|column| (**column as usize) < n).for_each(|column| of_h[*column as usize] += 1);
        for j in 0..n {
            if let Some(rows) = of_h.get(parents[j] as usize).copied() {
                of_h[parents[j] as usize] = rows + of_h[j].saturating_sub(1);
            }
        }
        let pairs = of_h.iter().zip(&of_r).map(|(h, r)| (f64::from(*h), f64::from(*r)));
        let (entries, operations) = pairs.fold((0.0, 0.0), |(e, o), (h, r)| (e + h + r, o + 2.0 * h * r));
        Ok(Cost { entries, operations })
    }

    pub(super) fn bytes<W>(&self) -> f64 {
        self.entries * size_of::<W>() as f64
    }

    /// Refuses what exceeds the limits.
    pub(super) fn check<W>(&self, options: &DirectOptions) -> Result<()> {
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
