//! The result of an assembly: the matrix of the free unknowns, and the conversion back to all unknowns.
use super::{Assembly, AssemblyPlan, FIXED};
use crate::Csr;
use lacuna_engine::{Error, Result, Scalar, pages};
use std::sync::Arc;

/// The system assembled by an [`Assembly`]: the matrix and right-hand side of the unknowns that are not
/// fixed.
#[derive(Clone, Debug)]
pub struct Assembled<T> {
    plan: AssemblyPlan,
    /// The pattern number of the assembly.
    pattern: u32,
    matrix: Arc<Csr<T>>,
    b: Vec<T>,
    /// The row of each equation, [`FIXED`] if it is omitted.
    rows: Vec<u32>,
    /// Coefficients of fixed unknowns in the remaining equations, by position in the sequence.
    moved: Vec<u32>,
    /// The unknown of each column.
    free: Vec<u32>,
    /// The values of the fixed unknowns, indexed over all unknowns; 0 for the others.
    fixed: Vec<T>,
}

impl<T: Scalar> Assembled<T> {
    pub(super) fn new(assembly: &Assembly<T>) -> Result<Self> {
        const OPERATION: &str = "Assembly::assemble";
        assembly.check(OPERATION)?;
        let is_free = |j: &u32| !assembly.fixed.contains_key(j);
        let mut free = pages::zeroed::<u32>(OPERATION, assembly.unknowns() - assembly.fixed.len())?;
        free.iter_mut().zip((0..assembly.unknowns() as u32).filter(is_free)).for_each(|(to, j)| *to = j);
        let mut columns = pages::zeroed::<u32>(OPERATION, assembly.unknowns())?;
        columns.fill(FIXED);
        free.iter().zip(0..).for_each(|(&j, k)| columns[j as usize] = k);
        let mut rows = pages::zeroed::<u32>(OPERATION, assembly.equations())?;
        match assembly.is_square() {
            true => rows.copy_from_slice(&columns),
            false => rows.iter_mut().zip(0..).for_each(|(row, i)| *row = i),
        }
        let stays = rows.iter().filter(|row| **row != FIXED).count();
        let mut moved = Vec::new();
        let places: Vec<(u32, u32)> = assembly
            .places
            .iter()
            .zip(0..)
            .map(|(&(i, j), k)| {
                let place = (rows[i as usize], columns[j as usize]);
                if place.0 != FIXED && place.1 == FIXED {
                    moved.push(k);
                }
                place
            })
            .collect();
        let plan = AssemblyPlan::new(stays, free.len(), &places)?;
        drop(places);
        let matrix = Arc::new(plan.matrix(&assembly.values)?);
        let pattern = assembly.pattern().unwrap_or(0);
        let b = pages::zeroed::<T>(OPERATION, stays)?;
        let fixed = pages::zeroed::<T>(OPERATION, assembly.unknowns())?;
        let mut assembled = Assembled { plan, pattern, matrix, b, rows, moved, free, fixed };
        assembled.set_b(assembly)?;
        Ok(assembled)
    }

    /// Takes the current values of the assembly, which were added in the same sequence as before. Nothing is
    /// sorted. Runs on the current rayon pool.
    ///
    /// # Errors
    /// [`Error::Structure`] if the sequence or the set of fixed unknowns is different, in which case
    /// [`Assembly::assemble`] is needed; [`Error::Entry`] and [`Error::Element`] for values that are not
    /// finite. On error the system is unchanged.
    pub fn update(&mut self, assembly: &Assembly<T>) -> Result<()> {
        const OPERATION: &str = "Assembled::update";
        assembly.check(OPERATION)?;
        if assembly.pattern() != Some(self.pattern) {
            let message = "the coefficients are not those of the same sequence; assemble anew".into();
            return Err(Error::Structure { operation: OPERATION.into(), message });
        }
        if assembly.equations() != self.rows.len() {
            let (now, before) = (assembly.equations(), self.rows.len());
            let message = format!("there are {now} equations, and {before} before; assemble anew");
            return Err(Error::Structure { operation: OPERATION.into(), message });
        }
        let mut values = vec![T::zero(); self.plan.nnz()];
        self.plan.sum(&assembly.values, &mut values)?;
        let before = (self.b.clone(), self.fixed.clone());
        let updated = self.set_b(assembly).and_then(|()| Arc::make_mut(&mut self.matrix).set_values(&values));
        if updated.is_err() {
            (self.b, self.fixed) = before;
        }
        updated
    }

    /// The right-hand side: what was added, minus the coefficients of fixed unknowns times their values.
    fn set_b(&mut self, assembly: &Assembly<T>) -> Result<()> {
        assembly.fixed.iter().for_each(|(&j, &value)| self.fixed[j as usize] = value);
        self.b.fill(T::zero());
        for &(i, value) in &assembly.b {
            if let Some(b) = self.b.get_mut(self.rows[i as usize] as usize) {
                *b += value;
            }
        }
        for &k in &self.moved {
            let (i, j) = assembly.places[k as usize];
            self.b[self.rows[i as usize] as usize] -= assembly.values[k as usize] * self.fixed[j as usize];
        }
        match self.b.iter().position(|b| !b.finite()) {
            None => Ok(()),
            Some(row) => Err(Error::Element {
                operation: "Assembly::assemble".into(),
                what: "b".into(),
                row,
                message: format!("{} is not finite", self.b[row]),
            }),
        }
    }

    /// The matrix of the remaining equations and the unknowns that are not fixed, both in numerical order.
    pub fn matrix(&self) -> &Arc<Csr<T>> {
        &self.matrix
    }
    /// The right-hand side.
    pub fn b(&self) -> &[T] {
        &self.b
    }
    /// The unknown of each column.
    pub fn free(&self) -> &[u32] {
        &self.free
    }
    /// All unknowns: solved and fixed ones.
    ///
    /// # Errors
    /// [`Error::Length`] unless `x` has one element per unknown that is not fixed.
    pub fn full(&self, x: &[T]) -> Result<Vec<T>> {
        Error::check_length("Assembled::full", "x", self.free.len(), x.len())?;
        let mut all = self.fixed.clone();
        self.free.iter().zip(x).for_each(|(&j, &x)| all[j as usize] = x);
        Ok(all)
    }
    /// The free unknowns out of all unknowns, as for an initial guess.
    ///
    /// # Errors
    /// [`Error::Length`] unless there is one element per unknown.
    pub fn reduced(&self, all: &[T]) -> Result<Vec<T>> {
        Error::check_length("Assembled::reduced", "x", self.fixed.len(), all.len())?;
        Ok(self.free.iter().map(|&j| all[j as usize]).collect())
    }
}
