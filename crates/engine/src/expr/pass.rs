//! A pass: the work of one sweep over memory.
use crate::expr::formula::Node;
use crate::{Cell, Cells, Expr, Formula, Reason, Test, Untyped, Vector};
use std::marker::PhantomData;

/// One statement of a pass.
#[derive(Clone, Debug)]
pub(crate) enum Statement {
    /// `vector[i] ← formula[i]`
    Set(Vector, Node),
    /// `cell ← Σ conj(a[i]) b[i]`; `b` is a vector, or the product of two.
    Dot(Cell, Vector, Node),
    /// `cell ← max |vector[i]|²`
    Largest(Cell, Vector),
    /// `cell ← formula`
    Eval(Cell, Node),
    /// `a[i] ← a[i] + b[i]` for two runs of cells.
    Add(Cells, Cells),
    /// Stop for a reason if a test holds.
    StopIf(Test, Reason),
    /// Leave the iteration if a test holds, and run the restart section.
    LeaveIf(Test),
    /// Leave the iteration unconditionally.
    Leave,
    /// One iteration is done; the cell is its squared residual norm.
    Count(Cell),
    /// Decide by the true residual whether the solve is over.
    Confirm(Confirm),
    /// Column `j` of an Arnoldi relation; the cell receives the squared residual norm `|g[j+1]|²`.
    Rotate(Hessenberg, usize, Cell),
    /// Coefficients of the solution in the basis, see [`Pass::back_substitute`].
    BackSubstitute(Hessenberg),
}

impl Statement {
    /// Whether it is an update, a dot product or a maximum.
    fn sweeps(&self) -> bool {
        matches!(self, Statement::Set(..) | Statement::Dot(..) | Statement::Largest(..))
    }
}

/// The operands of [`Pass::confirm`].
#[derive(Clone, Copy, Debug)]
pub struct Confirm<T = Untyped> {
    /// `‖b − A x‖²`, just computed.
    pub rr: Cell<T>,
    /// Converged if `rr` is not above it.
    pub target: Cell<T>,
    /// `rr` at the last confirmation; infinite before the first.
    pub last: Cell<T>,
    /// Progress means `rr < shrink · last`.
    pub shrink: Cell<T>,
}

/// The small dense problem of a GMRES cycle of at most `m` columns, in cells.
#[derive(Clone, Copy, Debug)]
pub struct Hessenberg<T = Untyped> {
    /// Maximum number of columns.
    pub m: usize,
    /// `H` by columns, `m + 1` cells each; rotated in place to `R`.
    pub h: Cells<T>,
    /// Givens cosines and sines, `2 m` cells: `c₀ s₀ c₁ s₁ …`.
    pub rotations: Cells<T>,
    /// The rotated right-hand side, `m + 1` cells; `g₀ = β` at the start of a cycle.
    pub g: Cells<T>,
    /// The solution of the triangular system, `m` cells.
    pub y: Cells<T>,
    /// Number of columns in use, stored as a number.
    pub used: Cell<T>,
}

impl<T> Confirm<T> {
    fn untyped(self) -> Confirm {
        let Confirm { rr, target, last, shrink } = self;
        Confirm { rr: rr.untyped(), target: target.untyped(), last: last.untyped(), shrink: shrink.untyped() }
    }
}

impl<T> Hessenberg<T> {
    fn untyped(self) -> Hessenberg {
        let Hessenberg { m, h, rotations, g, y, used } = self;
        Hessenberg {
            m,
            h: h.untyped(),
            rotations: rotations.untyped(),
            g: g.untyped(),
            y: y.untyped(),
            used: used.untyped(),
        }
    }
}

/// Initial capacity for statements.
const STATEMENTS: usize = 8;

/// A fused kernel in four phases, in this order: cell formulas; updates, each of which sees the ones before
/// it; dot products and maxima of the final values; cell formulas, tests and counts.
///
/// ```
/// # use lacuna_engine::*;
/// # fn f(x: Vector<f64>, r: Vector<f64>, p: Vector<f64>, q: Vector<f64>, alpha: Cell<f64>, rr: Cell<f64>) -> Pass<f64> {
/// Pass::new("step").set(x, x + alpha * p).set(r, r - alpha * q).dot(rr, r, r)
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a pass does nothing until a program records it or a backend runs it"]
pub struct Pass<T = Untyped> {
    pub(crate) name: &'static str,
    pub(crate) statements: Vec<Statement>,
    /// What [`Pass::then`] appended and cannot share its sweep, in order.
    pub(crate) later: Vec<Pass>,
    marker: PhantomData<fn() -> T>,
}

impl<T> Pass<T> {
    /// An empty pass. The name appears in errors and profiles.
    pub fn new(name: &'static str) -> Self {
        Pass { name, statements: Vec::new(), later: Vec::new(), marker: PhantomData }
    }
    /// A pass that does nothing.
    pub fn nothing() -> Self {
        Pass::new("nothing")
    }
    fn with(mut self, statement: Statement) -> Self {
        let statements = self.last();
        if statements.capacity() == 0 {
            statements.reserve(STATEMENTS);
        }
        statements.push(statement);
        self
    }
    /// `vector[i] ← expr[i]` for every element. The formula must be linear in its vectors; the product of two
    /// vectors counts as one vector.
    pub fn set(self, vector: Vector<T>, expr: impl Into<Expr<T>>) -> Self {
        self.with(Statement::Set(vector.untyped(), expr.into().node))
    }
    /// `cell ← Σ conj(a[i]) b[i]`, over the values after all updates. `b` is a vector, or the element-wise product
    /// of two, such as `d * r`.
    pub fn dot(self, cell: Cell<T>, a: Vector<T>, b: impl Into<Expr<T>>) -> Self {
        self.with(Statement::Dot(cell.untyped(), a.untyped(), b.into().node))
    }
    /// `cell ← max |v[i]|²`, over the values after all updates: the square of the maximum norm; 0 for no elements, NaN if an
    /// element is NaN. A maximum needs no order of its own.
    pub fn largest(self, cell: Cell<T>, v: Vector<T>) -> Self {
        self.with(Statement::Largest(cell.untyped(), v.untyped()))
    }
    /// Adds to the sum of the squares of a vector, [`Pass::dot`] of it with itself into `square`, its maximum, [`Pass::largest`].
    /// Returns whether the pass has such a sum.
    pub fn add_largest(&mut self, square: Cell<T>, largest: Cell<T>) -> bool {
        let (square, largest) = (square.untyped(), largest.untyped());
        let later = self.later.iter_mut().rev().map(|pass| &mut pass.statements);
        later.chain([&mut self.statements]).any(|statements| {
            let squared = statements.iter().enumerate().rev().find_map(|(at, statement)| match statement {
                Statement::Dot(cell, a, Node::Vector(b)) if *cell == square && a == b => Some((at, *a)),
                _ => None,
            });
            if let Some((at, v)) = squared {
                statements.insert(at + 1, Statement::Largest(largest, v));
            }
            squared.is_some()
        })
    }
    /// `cell ← formula`.
    pub fn eval(self, cell: Cell<T>, formula: impl Into<Formula<T>>) -> Self {
        self.with(Statement::Eval(cell.untyped(), formula.into().0.node))
    }
    /// `a[i] ← a[i] + b[i]` for every cell of two runs of equal length.
    pub fn add_cells(self, a: Cells<T>, b: Cells<T>) -> Self {
        self.with(Statement::Add(a.untyped(), b.untyped()))
    }
    /// Ends the solve for `reason` if the test holds. In a program with a restart section, the true residual
    /// is computed first and decides whether the solve has converged.
    pub fn stop_if(self, test: Test<T>, reason: Reason) -> Self {
        self.with(Statement::StopIf(test.untyped(), reason))
    }
    /// Leaves the iteration if the test holds: the restart section runs next.
    pub fn leave_if(self, test: Test<T>) -> Self {
        self.with(Statement::LeaveIf(test.untyped()))
    }
    /// Leaves the iteration: the restart section runs next.
    pub fn leave(self) -> Self {
        self.with(Statement::Leave)
    }
    /// Counts one iteration with the squared residual norm `rr`. Stops if `rr` is not finite, and at the
    /// iteration limit.
    pub fn count(self, rr: Cell<T>) -> Self {
        self.with(Statement::Count(rr.untyped()))
    }
    /// Decides by the true residual, in the restart section. In this order: if it is not finite, stop; if it
    /// meets the target, converged; if a hard reason or the limit is pending, stop for it; if there was no
    /// progress since the last confirmation, stop for the pending soft reason or as stagnated; otherwise
    /// continue.
    pub fn confirm(self, confirm: Confirm<T>) -> Self {
        self.with(Statement::Confirm(confirm.untyped()))
    }
    /// Applies the previous rotations to a new column, computes the next rotation and the residual.
    pub fn rotate(self, hessenberg: Hessenberg<T>, j: usize, rr: Cell<T>) -> Self {
        self.with(Statement::Rotate(hessenberg.untyped(), j, rr.untyped()))
    }
    /// Solves the triangular system of the columns in use for `y`. Unused elements of `y` are set to 0, and
    /// so is the number of columns in use.
    pub fn back_substitute(self, hessenberg: Hessenberg<T>) -> Self {
        self.with(Statement::BackSubstitute(hessenberg.untyped()))
    }
    /// Whether formulas come before its first update, dot product or maximum.
    pub(crate) fn begins_with_formulas(&self) -> bool {
        self.statements.iter().position(Statement::sweeps).is_some_and(|first| first > 0)
    }
    /// Appends another pass: it runs in the same sweep, or, if its formulas come before updates or dot products of its own, in the next.
    pub fn then(mut self, mut other: Pass<T>) -> Self {
        let later = std::mem::take(&mut other.later);
        let last = self.last();
        if other.begins_with_formulas() && last.iter().any(Statement::sweeps) {
            self.later.push(other.untyped());
        } else {
            last.extend(other.statements);
        }
        self.later.extend(later);
        self
    }
    /// The statements to which others are added.
    fn last(&mut self) -> &mut Vec<Statement> {
        match self.later.last_mut() {
            Some(pass) => &mut pass.statements,
            None => &mut self.statements,
        }
    }
    /// The same pass with its number type as a value.
    pub fn untyped(self) -> Pass {
        let Pass { name, statements, later, .. } = self;
        Pass { name, statements, later, marker: PhantomData }
    }
}

impl Pass {
    /// The same pass with its number type as a parameter.
    pub fn typed<T>(self) -> Pass<T> {
        let Pass { name, statements, later, .. } = self;
        Pass { name, statements, later, marker: PhantomData }
    }
}
