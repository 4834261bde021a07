//! Solves with fronts.
use super::{Front, Fronts};
use crate::Number;
use crate::dot::dot;

impl<W: Number> Fronts<W> {
    /// `x ← A⁻¹ x`
    pub(crate) fn solve(&self, x: &mut [W]) {
        let mut t = vec![W::zero(); x.len()];
        for (k, front) in self.fronts.iter().enumerate() {
            let (own, passed) = (self.tree.own(k), self.tree.passed(k));
            let rows = own.len() + passed.len();
            let t = &mut t[..rows];
            front.exchanged.iter().zip(&mut *t).for_each(|(from, t)| *t = x[own.start + *from as usize]);
            t[own.len()..].fill(W::zero());
            for (j, column) in front.columns.chunks_exact(rows).enumerate() {
                let v = t[j];
                if v != W::zero() {
                    t[j + 1..].iter_mut().zip(&column[j + 1..]).for_each(|(t, l)| *t -= *l * v);
                }
            }
            x[own.clone()].copy_from_slice(&t[..own.len()]);
            passed.iter().zip(&t[own.len()..]).for_each(|(row, t)| x[*row as usize] += *t);
        }
        for (k, front) in self.fronts.iter().enumerate().rev() {
            let (own, passed) = (self.tree.own(k), self.tree.passed(k));
            let rows = own.len() + passed.len();
            for (row, column) in passed.iter().zip(front.beside.chunks_exact(own.len())) {
                let v = x[*row as usize];
                if v != W::zero() {
                    x[own.clone()].iter_mut().zip(column).for_each(|(x, u)| *x -= *u * v);
                }
            }
            let own = &mut x[own];
            for (j, column) in front.columns.chunks_exact(rows).enumerate().rev() {
                own[j] = own[j].quotient(column[j]);
                let v = own[j];
                own[..j].iter_mut().zip(column).for_each(|(x, u)| *x -= *u * v);
            }
        }
    }

    /// `x ← A⁻ᵀ x`
    pub(crate) fn solve_transposed(&self, x: &mut [W]) {
        for (k, front) in self.fronts.iter().enumerate() {
            let (own, passed) = (self.tree.own(k), self.tree.passed(k));
            let rows = own.len() + passed.len();
            {
                let own = &mut x[own.clone()];
                for (j, column) in front.columns.chunks_exact(rows).enumerate() {
                    own[j] = (own[j] - dot(&column[..j], &own[..j])).quotient(column[j]);
                }
            }
            for (row, column) in passed.iter().zip(front.beside.chunks_exact(own.len())) {
                let sum = dot(column, &x[own.clone()]);
                x[*row as usize] -= sum;
            }
        }
        let mut t = vec![W::zero(); x.len()];
        for (k, front) in self.fronts.iter().enumerate().rev() {
            let (own, passed) = (self.tree.own(k), self.tree.passed(k));
            let rows = own.len() + passed.len();
            let t = &mut t[..rows];
            t[..own.len()].copy_from_slice(&x[own.clone()]);
            passed.iter().zip(&mut t[own.len()..]).for_each(|(row, t)| *t = x[*row as usize]);
            for (j, column) in front.columns.chunks_exact(rows).enumerate().rev() {
                let sum = dot(&column[j + 1..], &t[j + 1..]);
                t[j] -= sum;
            }
            front.exchanged.iter().zip(&*t).for_each(|(to, t)| x[own.start + *to as usize] = *t);
        }
    }

    /// How many entries the factors have.
    pub(crate) fn entries(&self) -> usize {
        self.fronts.iter().map(|Front { columns, beside, .. }| columns.len() + beside.len()).sum()
    }
}
