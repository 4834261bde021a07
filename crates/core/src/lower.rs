//! The normal form of a pass: cell instructions, rows of coefficients over vectors, dots, cell instructions.
//!
//! Every update of a Krylov method is linear, so a device that has one table-driven kernel for this form runs them
//! all without a compiler. The form fixes the rounding too:
//!
//! * an update starts from its first term and adds the others in order;
//! * a term with coefficient ±1 adds or subtracts its vector; with a cell it is `fma(c, v, sum)`, or `c · v` where
//!   it comes first;
//! * a term with an element-wise factor `f` uses `f · v`, rounded, in place of `v`; but with coefficient ±1 it is
//!   `fma(±f, v, sum)`, and `±(f · v)` where it comes first.
use crate::cells::{Binary, Compare, HessenbergCells, Instr, Unary};
use crate::pass::Statement;
use crate::{Cell, Error, Expr, Pass, Reason, Result, Scalar, Test, Vector};
use std::borrow::Cow;

/// The coefficient of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coefficient {
    /// 1
    One,
    /// −1
    MinusOne,
    /// The cell with this index.
    Cell(u32),
}

/// `coefficient · factor · vector`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term<T> {
    /// The coefficient, the same for all elements.
    pub coefficient: Coefficient,
    /// An element-wise factor.
    pub factor: Option<Vector<T>>,
    /// The vector.
    pub vector: Vector<T>,
}

/// `dst ← Σ terms`; no terms make it 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update<T> {
    /// What is written.
    pub dst: Vector<T>,
    /// What is summed, in order.
    pub terms: Vec<Term<T>>,
}

/// `cell ← Σ conj(a[i]) b[i]`, a canonical sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dot<T> {
    /// Index of the cell that receives the sum.
    pub cell: u32,
    /// The conjugated vector.
    pub a: Vector<T>,
    /// The other vector.
    pub b: Vector<T>,
}

/// A pass in normal form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep<T> {
    /// The names of the passes it was made of.
    pub name: Cow<'static, str>,
    /// The length of its vectors; 0 where it has none.
    pub n: usize,
    /// Evaluated first.
    pub before: Vec<Instr>,
    /// Then, for every element, in order.
    pub updates: Vec<Update<T>>,
    /// Of the values after all updates, each into another cell.
    pub dots: Vec<Dot<T>>,
    /// Evaluated last.
    pub after: Vec<Instr>,
    /// The cells that the statements name, whose handles planning checks.
    pub cells: Vec<Cell<T>>,
}

impl<T: Scalar> Sweep<T> {
    /// A sweep that does nothing.
    pub(crate) fn nothing(name: &'static str) -> Self {
        let (before, updates, dots) = (Vec::new(), Vec::new(), Vec::new());
        Sweep { name: name.into(), n: 0, before, updates, dots, after: Vec::new(), cells: Vec::new() }
    }

    /// Whether no vector is touched.
    pub fn is_scalar(&self) -> bool {
        self.updates.is_empty() && self.dots.is_empty()
    }

    /// Every vector mentioned, each once, with whether its old value is read and whether it is written.
    pub fn vectors(&self) -> Vec<(Vector<T>, bool, bool)> {
        let mut seen: Vec<(Vector<T>, bool, bool)> = Vec::new();
        let mut see = |v: Vector<T>, write: bool| match seen.iter_mut().find(|(w, ..)| *w == v) {
            Some(entry) => entry.2 |= write,
            None => seen.push((v, !write, write)),
        };
        self.mentions().for_each(|(v, write)| see(v, write));
        seen
    }

    /// Every mention of a vector, in order, with whether it is written there.
    pub fn mentions(&self) -> impl Iterator<Item = (Vector<T>, bool)> {
        let read = |t: &Term<T>| t.factor.into_iter().chain([t.vector]).map(|v| (v, false));
        let updates =
            self.updates.iter().flat_map(move |u| u.terms.iter().flat_map(read).chain([(u.dst, true)]));
        updates.chain(self.dots.iter().flat_map(|dot| [(dot.a, false), (dot.b, false)]))
    }

    /// Adds a dot product. One before it into the same cell is never seen, and is left out.
    fn sum(&mut self, dot: Dot<T>) {
        self.dots.retain(|earlier| earlier.cell != dot.cell);
        self.dots.push(dot);
    }

    /// This sweep and the next as one, where that computes the same: see [`Sweep::fuses_with`].
    pub fn fuse(&mut self, next: Sweep<T>) {
        *self.name.to_mut() += "+";
        *self.name.to_mut() += &next.name;
        self.n = self.n.max(next.n);
        if next.is_scalar() {
            self.after.extend(next.before);
        } else {
            self.before.extend(next.before);
        }
        self.updates.extend(next.updates);
        next.dots.into_iter().for_each(|dot| self.sum(dot));
        self.after.extend(next.after);
        self.cells.extend(next.cells);
    }

    /// Whether `next` may run in this sweep: nothing it needs is decided or summed at the end of this one, and it
    /// changes nothing this one sums, and no cell this one reads or sets at its end.
    pub fn fuses_with(&self, next: &Sweep<T>) -> bool {
        let guarded = |s: &Self| s.before.iter().any(|i| matches!(i, Instr::OnlyIf { .. }));
        if guarded(self) || guarded(next) {
            return false;
        }
        if next.is_scalar() {
            return true; // evaluated after everything here, as it would be alone
        }
        let summed = |v: Vector<T>| self.dots.iter().any(|d| d.a == v || d.b == v);
        let decided = |c: u32| {
            self.dots.iter().any(|d| d.cell == c) || self.after.iter().any(|i| i.writes() == Some(c))
        };
        let late = |c: u32| self.after.iter().any(|i| i.reads().chain(i.writes()).any(|used| used == c));
        let used_here = |c: u32| late(c) || decided(c) || self.coefficients().any(|used| used == c);
        (self.n == next.n || self.is_scalar())
            && !self.after.iter().any(Instr::is_control)
            && !next.before.iter().any(Instr::is_control)
            && !next.before.iter().flat_map(Instr::reads).chain(next.coefficients()).any(decided)
            && !next.before.iter().filter_map(Instr::writes).any(used_here)
            && !next.dots.iter().any(|d| late(d.cell))
            && !next.updates.iter().any(|u| summed(u.dst))
    }

    /// The cells that are coefficients.
    fn coefficients(&self) -> impl Iterator<Item = u32> {
        self.updates.iter().flat_map(|u| &u.terms).filter_map(|t| match t.coefficient {
            Coefficient::Cell(c) => Some(c),
            _ => None,
        })
    }
}

/// Where lowering gets cells for constants and intermediate values, and reasons their index.
pub(crate) trait Cells<T> {
    fn constant(&mut self, value: T) -> u32;
    fn temporary(&mut self) -> u32;
    fn reason(&mut self, reason: Reason) -> u32;
}

/// The four phases of a pass, in order.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Phase {
    Before,
    Update,
    Dot,
    After,
}

/// Lowers a pass, or says which rule it breaks.
pub(crate) fn lower<T: Scalar>(pass: &Pass<T>, cells: &mut dyn Cells<T>) -> Result<Sweep<T>> {
    let mut sweep = Sweep::nothing(pass.name);
    let mut phase = Phase::Before;
    let fail = |message: String| Error::Pass { pass: pass.name.into(), message };
    for statement in &pass.statements {
        let next = match statement {
            Statement::Set(..) => Phase::Update,
            Statement::Dot(..) => Phase::Dot,
            _ if phase == Phase::Before => Phase::Before,
            _ => Phase::After,
        };
        if next < phase {
            let late = if next == Phase::Update { "an update" } else { "a dot product" };
            let what = if phase == Phase::Dot { "a dot product" } else { "a formula on the results" };
            return Err(fail(format!(
                "{late} comes after {what}; expected formulas, updates, dots, formulas"
            )));
        }
        phase = next;
        name_cells(statement, &mut sweep.cells);
        let code = if phase == Phase::After { &mut sweep.after } else { &mut sweep.before };
        match statement {
            Statement::Set(dst, expr) => {
                let terms = linear(expr).map_err(|why| fail(format!("an update is not linear: {why}")))?;
                let terms = merge(terms).into_iter().map(|t| t.resolve(cells, &mut sweep.before)).collect();
                sweep.updates.push(Update { dst: *dst, terms });
            }
            Statement::Dot(cell, a, b) => sweep.sum(Dot { cell: cell.index, a: *a, b: *b }),
            Statement::Eval(cell, formula) => evaluate(&formula.0, Some(*cell), cells, code),
            Statement::Add(a, b) if a.count != b.count => {
                return Err(fail(format!("it adds {} cells to {}", b.count, a.count)));
            }
            Statement::Add(a, b) => {
                code.push(Instr::AddCells { dst: a.first, a: b.first, count: a.count });
            }
            Statement::StopIf(test, reason) => {
                let (test, a, b) = compare(*test);
                code.push(Instr::Stop { test, a, b, reason: cells.reason(*reason), soft: reason.is_soft() });
            }
            Statement::LeaveIf(test) => {
                let (test, a, b) = compare(*test);
                code.push(Instr::Leave { test, a, b });
            }
            Statement::Leave => code.push(Instr::Leave { test: Compare::Always, a: 0, b: 0 }),
            Statement::Count(rr) => code.push(Instr::Count { rr: rr.index }),
            Statement::Confirm(c) => code.push(Instr::Confirm {
                rr: c.rr.index,
                target: c.target.index,
                last: c.last.index,
                shrink: c.shrink.index,
            }),
            Statement::Rotate(r) => {
                holds_problem(&r.hessenberg, r.j).map_err(fail)?;
                code.push(Instr::Rotate { at: hessenberg(&r.hessenberg), j: r.j as u32, rr: r.rr.index })
            }
            Statement::BackSubstitute(h) => {
                holds_problem(h, 0).map_err(fail)?;
                code.push(Instr::BackSubstitute { at: hessenberg(h) });
            }
        }
    }
    let n = sweep.mentions().next().map(|(first, _)| first.len);
    if let Some(n) = n {
        for (v, _) in sweep.mentions() {
            Error::check_length(format_args!("pass `{}`", pass.name), "a vector", n, v.len)?;
        }
        sweep.n = n;
    }
    Ok(sweep)
}

/// Whether the cells of a least-squares problem hold it, and it has the column, or what is wrong.
fn holds_problem<T>(h: &crate::Hessenberg<T>, column: usize) -> Result<(), String> {
    let m = h.m;
    if column >= m.max(1) {
        return Err(format!("it rotates column {column} of a least-squares problem of {m} columns"));
    }
    let runs = [
        ("h", h.h, m.saturating_mul(m.saturating_add(1))),
        ("rotations", h.rotations, m.saturating_mul(2)),
        ("g", h.g, m.saturating_add(1)),
        ("y", h.y, m),
    ];
    match runs.into_iter().find(|(_, run, needed)| (run.count as usize) < *needed) {
        Some((name, run, needed)) => Err(format!(
            "a least-squares problem of {m} columns needs {needed} cells for `{name}`, got {}",
            run.count
        )),
        None => Ok(()),
    }
}

/// Adds the cells that a statement names.
fn name_cells<T: Scalar>(statement: &Statement<T>, cells: &mut Vec<Cell<T>>) {
    match statement {
        Statement::Set(_, expr) => name_cells_of(expr, cells),
        Statement::Dot(cell, ..) | Statement::Count(cell) => cells.push(*cell),
        Statement::Eval(cell, formula) => {
            cells.push(*cell);
            name_cells_of(&formula.0, cells);
        }
        Statement::Add(a, b) => cells.extend(a.ends().chain(b.ends())),
        Statement::StopIf(test, _) | Statement::LeaveIf(test) => cells.extend(test.cells()),
        Statement::Leave => {}
        Statement::Confirm(c) => cells.extend([c.rr, c.target, c.last, c.shrink]),
        Statement::Rotate(r) => {
            cells.push(r.rr);
            name_cells_of_problem(&r.hessenberg, cells);
        }
        Statement::BackSubstitute(h) => name_cells_of_problem(h, cells),
    }
}

/// Adds the first and the last cell of each run: they live and die together.
fn name_cells_of_problem<T>(h: &crate::Hessenberg<T>, cells: &mut Vec<Cell<T>>) {
    cells.reserve(9);
    cells.push(h.used);
    cells.extend([h.h, h.rotations, h.g, h.y].into_iter().flat_map(crate::Cells::ends));
}

fn name_cells_of<T>(expr: &Expr<T>, cells: &mut Vec<Cell<T>>) {
    match expr {
        Expr::Cell(cell) => cells.push(*cell),
        Expr::Value(_) | Expr::Vector(_) => {}
        Expr::Neg(a) | Expr::Conj(a) | Expr::Sqrt(a) => name_cells_of(a, cells),
        Expr::Max(a, b) | Expr::Add(a, b) | Expr::Sub(a, b) | Expr::Mul(a, b) | Expr::Div(a, b) => {
            name_cells_of(a, cells);
            name_cells_of(b, cells);
        }
    }
}

fn hessenberg<T>(h: &crate::Hessenberg<T>) -> HessenbergCells {
    HessenbergCells {
        m: h.m as u32,
        h: h.h.first,
        rotations: h.rotations.first,
        g: h.g.first,
        y: h.y.first,
        used: h.used.index,
    }
}

/// The instruction that passes over an operation unless a test holds.
pub(crate) fn only_if<T>(test: Test<T>) -> Instr {
    let (test, a, b) = compare(test);
    Instr::OnlyIf { test, a, b }
}

fn compare<T>(test: Test<T>) -> (Compare, u32, u32) {
    match test {
        Test::LessEqual(a, b) => (Compare::LessEqual, a.index, b.index),
        Test::Greater(a, b) => (Compare::Greater, a.index, b.index),
        Test::NotPositive(a) => (Compare::NotPositive, a.index, 0),
        Test::NotFinite(a) => (Compare::NotFinite, a.index, 0),
        Test::Zero(a) => (Compare::Zero, a.index, 0),
    }
}

/// A term whose coefficient is still a formula.
struct Open<T> {
    coefficient: Expr<T>,
    factor: Option<Vector<T>>,
    vector: Vector<T>,
}

impl<T: Scalar> Open<T> {
    fn resolve(self, cells: &mut dyn Cells<T>, code: &mut Vec<Instr>) -> Term<T> {
        let coefficient = match &self.coefficient {
            Expr::Value(v) if *v == T::one() => Coefficient::One,
            Expr::Value(v) if *v == -T::one() => Coefficient::MinusOne,
            formula => Coefficient::Cell(operand(formula, cells, code)),
        };
        Term { coefficient, factor: self.factor, vector: self.vector }
    }
    fn map(self, f: impl Fn(Expr<T>) -> Expr<T>) -> Self {
        Open { coefficient: f(self.coefficient), ..self }
    }
}

/// `a · b`, with constants ±1 folded.
fn times<T: Scalar>(a: Expr<T>, b: Expr<T>) -> Expr<T> {
    match (a, b) {
        (Expr::Value(a), Expr::Value(b)) => Expr::Value(a * b),
        (Expr::Value(one), e) | (e, Expr::Value(one)) if one == T::one() => e,
        (Expr::Value(minus), e) | (e, Expr::Value(minus)) if minus == -T::one() => negative(e),
        (a, b) => Expr::Mul(Box::new(a), Box::new(b)),
    }
}

fn negative<T: Scalar>(e: Expr<T>) -> Expr<T> {
    match e {
        Expr::Value(v) => Expr::Value(-v),
        Expr::Neg(inner) => *inner,
        e => Expr::Neg(Box::new(e)),
    }
}

/// The terms of a formula that is linear in its vectors, or why it is not.
fn linear<T: Scalar>(expr: &Expr<T>) -> Result<Vec<Open<T>>, &'static str> {
    let scaled =
        |terms: Vec<Open<T>>, by: &dyn Fn(Expr<T>) -> Expr<T>| terms.into_iter().map(|t| t.map(by)).collect();
    if is_scalar(expr) {
        return match expr {
            Expr::Value(v) if *v == T::zero() => Ok(Vec::new()),
            _ => Err("it adds a number to every element; expected a sum of vectors"),
        };
    }
    Ok(match expr {
        Expr::Vector(v) => vec![Open { coefficient: Expr::Value(T::one()), factor: None, vector: *v }],
        Expr::Neg(a) => scaled(linear(a)?, &negative),
        Expr::Add(a, b) => [linear(a)?, linear(b)?].into_iter().flatten().collect(),
        Expr::Sub(a, b) => [linear(a)?, scaled(linear(b)?, &negative)].into_iter().flatten().collect(),
        Expr::Mul(a, b) if is_scalar(a) => scaled(linear(b)?, &|c| times((**a).clone(), c)),
        Expr::Mul(a, b) if is_scalar(b) => scaled(linear(a)?, &|c| times(c, (**b).clone())),
        Expr::Mul(a, b) => match (&**a, &**b) {
            (Expr::Vector(factor), other) | (other, Expr::Vector(factor)) => {
                let mut terms = linear(other)?;
                for term in &mut terms {
                    if term.factor.replace(*factor).is_some() {
                        return Err("it multiplies three vectors; expected at most two in a term");
                    }
                }
                terms
            }
            _ => return Err("it multiplies two sums of vectors; expected a vector times a sum"),
        },
        Expr::Div(a, b) if is_scalar(b) => scaled(linear(a)?, &|c| Expr::Div(Box::new(c), b.clone())),
        Expr::Div(..) => return Err("it divides by a vector; expected a factor (store the reciprocals)"),
        Expr::Conj(_) => return Err("it conjugates a vector"),
        Expr::Sqrt(_) => return Err("it takes the root of a vector"),
        Expr::Max(..) => return Err("it takes the maximum of vectors"),
        Expr::Value(_) | Expr::Cell(_) => Vec::new(),
    })
}

fn is_scalar<T>(expr: &Expr<T>) -> bool {
    match expr {
        Expr::Vector(_) => false,
        Expr::Value(_) | Expr::Cell(_) => true,
        Expr::Neg(a) | Expr::Conj(a) | Expr::Sqrt(a) => is_scalar(a),
        Expr::Max(a, b) | Expr::Add(a, b) | Expr::Sub(a, b) | Expr::Mul(a, b) | Expr::Div(a, b) => {
            is_scalar(a) && is_scalar(b)
        }
    }
}

/// Terms over the same vectors become one.
fn merge<T: Scalar>(terms: Vec<Open<T>>) -> Vec<Open<T>> {
    let mut merged: Vec<Open<T>> = Vec::new();
    for term in terms {
        match merged.iter_mut().find(|t| t.vector == term.vector && t.factor == term.factor) {
            Some(same) => {
                let sum = match (&same.coefficient, &term.coefficient) {
                    (Expr::Value(a), Expr::Value(b)) => Expr::Value(*a + *b),
                    (a, b) => Expr::Add(Box::new(a.clone()), Box::new(b.clone())),
                };
                same.coefficient = sum;
            }
            None => merged.push(term),
        }
    }
    merged
}

/// The cell that holds a formula's value, computed by instructions appended to `code` where needed.
fn operand<T: Scalar>(expr: &Expr<T>, cells: &mut dyn Cells<T>, code: &mut Vec<Instr>) -> u32 {
    match expr {
        Expr::Cell(c) => c.index,
        Expr::Value(v) => cells.constant(*v),
        _ => {
            let dst = Cell::new(cells.temporary(), 0);
            evaluate(expr, Some(dst), cells, code);
            dst.index
        }
    }
}

fn evaluate<T: Scalar>(
    expr: &Expr<T>,
    dst: Option<Cell<T>>,
    cells: &mut dyn Cells<T>,
    code: &mut Vec<Instr>,
) {
    let dst = dst.map_or_else(|| cells.temporary(), |cell| cell.index);
    let (unary, binary) = match expr {
        Expr::Value(_) | Expr::Cell(_) => (Some((Unary::Copy, expr)), None),
        Expr::Neg(a) => (Some((Unary::Neg, &**a)), None),
        Expr::Conj(a) => (Some((Unary::Conj, &**a)), None),
        Expr::Sqrt(a) => (Some((Unary::Sqrt, &**a)), None),
        Expr::Max(a, b) => (None, Some((Binary::Max, a, b))),
        Expr::Add(a, b) => (None, Some((Binary::Add, a, b))),
        Expr::Sub(a, b) => (None, Some((Binary::Sub, a, b))),
        Expr::Mul(a, b) => (None, Some((Binary::Mul, a, b))),
        Expr::Div(a, b) => (None, Some((Binary::Div, a, b))),
        Expr::Vector(_) => (None, None), // a Formula holds no vector, by construction
    };
    if let Some((op, a)) = unary {
        let a = operand(a, cells, code);
        code.push(Instr::Unary { op, dst, a });
    } else if let Some((op, a, b)) = binary {
        let (a, b) = (operand(a, cells, code), operand(b, cells, code));
        code.push(Instr::Binary { op, dst, a, b });
    }
}
