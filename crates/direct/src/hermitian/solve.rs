//! Solves with supernodes: plain loops over their columns, since most supernodes are small.
use crate::Number;
use crate::dot::dot;
use faer::sparse::linalg::cholesky::supernodal::SymbolicSupernodalCholesky;

/// The factor of a matrix whose conjugate was factored, in the order of its supernodes.
pub(super) struct Supernodes<'a, W> {
    pub(super) symbolic: &'a SymbolicSupernodalCholesky<u32>,
    /// For each supernode its columns, from the first row of the supernode on.
    pub(super) values: &'a [W],
    /// Pivots of `L B Lᴴ`.
    pub(super) pivots: Option<Pivots<'a, W>>,
}

/// What `L B Lᴴ` has beside `L`, whose diagonal is that of `B`.
pub(super) struct Pivots<'a, W> {
    /// The entries of `B` beside its diagonal.
    pub(super) beside: &'a [W],
    /// Where the rows of the symbolic order are in that of the pivots.
    pub(super) inverse: &'a [u32],
}

impl<W: Number> Supernodes<'_, W> {
    /// `x ← A⁻¹ x`, in the order of the factor.
    pub(super) fn solve(&self, x: &mut [W]) {
        let mut t = vec![W::zero(); x.len()];
        let unit = self.pivots.is_some();
        let place = |row: u32| match &self.pivots {
            Some(pivots) => pivots.inverse[row as usize] as usize,
            None => row as usize,
        };
        for k in 0..self.symbolic.n_supernodes() {
            let (first, own, pattern, columns) = self.supernode(k);
            let t = &mut t[..own + pattern.len()];
            t[..own].copy_from_slice(&x[first..first + own]);
            t[own..].fill(W::zero());
            for (j, column) in columns.chunks_exact(t.len()).enumerate() {
                if !unit {
                    t[j] = t[j].quotient(column[j]);
                }
                let v = t[j];
                t[j + 1..].iter_mut().zip(&column[j + 1..]).for_each(|(t, l)| *t -= l.conj() * v);
            }
            x[first..first + own].copy_from_slice(&t[..own]);
            pattern.iter().zip(&t[own..]).for_each(|(row, t)| x[place(*row)] += *t);
        }
        self.divide(x);
        for k in (0..self.symbolic.n_supernodes()).rev() {
            let (first, own, pattern, columns) = self.supernode(k);
            let t = &mut t[..own + pattern.len()];
            t[..own].copy_from_slice(&x[first..first + own]);
            pattern.iter().zip(&mut t[own..]).for_each(|(row, t)| *t = x[place(*row)]);
            for (j, column) in columns.chunks_exact(t.len()).enumerate().rev() {
                let sum = dot(&column[j + 1..], &t[j + 1..]);
                t[j] -= sum;
                if !unit {
                    t[j] = t[j].quotient(column[j]);
                }
            }
            x[first..first + own].copy_from_slice(&t[..own]);
        }
    }

    /// The first row, the number of columns, the rows below them, and the entries.
    fn supernode(&self, k: usize) -> (usize, usize, &[u32], &[W]) {
        let symbolic = self.symbolic;
        let (first, end) = (symbolic.supernode_begin()[k] as usize, symbolic.supernode_end()[k] as usize);
        let (own, pattern) = (end - first, symbolic.supernode(k).pattern());
        let values = &self.values[symbolic.col_ptr_for_val()[k] as usize..];
        (first, own, pattern, &values[..own * (own + pattern.len())])
    }

    /// `x ← B⁻¹ x`
    fn divide(&self, x: &mut [W]) {
        let Some(Pivots { beside, .. }) = self.pivots else { return };
        for k in 0..self.symbolic.n_supernodes() {
            let (first, own, pattern, columns) = self.supernode(k);
            let rows = own + pattern.len();
            let diagonal = |j: usize| columns[j * rows + j].re();
            let mut j = 0;
            while j < own {
                let (i, off) = (first + j, beside[first + j].conj());
                if off == W::zero() || j + 1 == own {
                    x[i] *= W::from_real(1.0 / diagonal(j));
                    j += 1;
                    continue;
                }
                // Scaled by the entry beside the diagonal, as that is the largest of the block.
                let scale = off.modulus();
                let (a, d) = (diagonal(j) / scale, diagonal(j + 1) / scale);
                let turn = off * W::from_real(1.0 / scale);
                let by = W::from_real(1.0 / ((a * d - 1.0) * scale));
                let (p, q) = (x[i], x[i + 1]);
                x[i] = (p * W::from_real(d) - turn.conj() * q) * by;
                x[i + 1] = (q * W::from_real(a) - turn * p) * by;
                j += 2;
            }
        }
    }
}
