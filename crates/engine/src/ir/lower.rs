//! The normal form of a pass: cell instructions, rows of coefficients over vectors, dots, cell instructions.
//!
//! Every update of a Krylov method is linear, so a device with one table-driven kernel for this form runs
//! them all without a compiler. The form also specifies the rounding:
//!
//! * an update starts from its first term and adds the others in order;
//! * a term with coefficient ±1 adds or subtracts its vector; with a cell it is `fma(c, v, sum)`, or `c · v`
//!   if it comes first;
//! * a term with an element-wise factor `f` uses `f · v`, rounded, in place of `v`; but with coefficient ±1
//!   it is `fma(±f, v, sum)`, or `±(f · v)` if it comes first;
//! * a dot product with a factor uses `f · b`, rounded, in place of `b`;
//! * a maximum is that of the terms of a dot product of a vector with itself, without the imaginary parts that rounding leaves.
use crate::expr::cells::{Compare, HessenbergCells, Instr, Unary};
use crate::expr::formula::Node;
use crate::expr::linear::{evaluate, terms};
use crate::expr::pass::Statement;
use crate::{Cell, Error, Number, NumberType, Reason, Result, Test, Vector};
use std::borrow::Cow;

/// Vectors that passes have together if they share a sweep: what the kernels of every device take. Likewise terms and dot products.
pub const MOST_VECTORS: usize = 32;
/// See [`MOST_VECTORS`].
pub const MOST_TERMS: usize = 96;
/// See [`MOST_VECTORS`].
pub const MOST_DOTS: usize = 32;

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
pub struct Term {
    /// The coefficient, the same for all elements.
    pub coefficient: Coefficient,
    /// An element-wise factor.
    pub factor: Option<Vector>,
    /// The vector.
    pub vector: Vector,
}

/// `dst ← Σ terms`; 0 if there are no terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The vector written.
    pub dst: Vector,
    /// The terms, summed in order.
    pub terms: Vec<Term>,
}

/// `cell ← Σ conj(a[i]) b[i]`, or `Σ conj(a[i]) (factor[i] b[i])`, a canonical sum; or the largest `|a[i]|²`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dot {
    /// Index of the cell that receives the sum.
    pub cell: u32,
    /// The conjugated vector.
    pub a: Vector,
    /// The other vector.
    pub b: Vector,
    /// An element-wise factor on `b`.
    pub factor: Option<Vector>,
    /// Whether it is the largest term instead of their sum; `b` is then `a`, without a factor.
    pub largest: bool,
}

impl Dot {
    /// The vectors that it reads.
    pub fn vectors(&self) -> impl Iterator<Item = Vector> + use<> {
        [self.a, self.b].into_iter().chain(self.factor)
    }
}

/// A pass in normal form. Only the engine makes one: its cells are those of its handles, and those of constants and
/// intermediate values, which live as long as its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: NumberType,
    pub(crate) n: usize,
    pub(crate) before: Vec<Instr>,
    pub(crate) updates: Vec<Update>,
    pub(crate) dots: Vec<Dot>,
    pub(crate) after: Vec<Instr>,
    pub(crate) cells: Vec<Cell>,
}

impl Sweep {
    /// A sweep that does nothing.
    pub(crate) fn nothing(name: &'static str, kind: NumberType) -> Self {
        let (before, updates, dots) = (Vec::new(), Vec::new(), Vec::new());
        Sweep { name: name.into(), kind, n: 0, before, updates, dots, after: Vec::new(), cells: Vec::new() }
    }

    /// `w ← 0`
    pub(crate) fn zero(w: Vector) -> Self {
        let updates = vec![Update { dst: w, terms: Vec::new() }];
        Sweep { n: w.len, updates, ..Sweep::nothing("", w.kind) }
    }

    /// The names of the passes it is composed of.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The number type of its vectors and cells.
    pub fn kind(&self) -> NumberType {
        self.kind
    }
    /// The length of its vectors; 0 if it has none.
    pub fn n(&self) -> usize {
        self.n
    }
    /// Instructions evaluated first.
    pub fn before(&self) -> &[Instr] {
        &self.before
    }
    /// Updates, then evaluated in order for every element.
    pub fn updates(&self) -> &[Update] {
        &self.updates
    }
    /// Dot products of the values after all updates, each into a different cell.
    pub fn dots(&self) -> &[Dot] {
        &self.dots
    }
    /// Instructions evaluated last.
    pub fn after(&self) -> &[Instr] {
        &self.after
    }
    /// The cells that the statements use; planning checks their handles.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// A sweep of its name and number type that does nothing, for a backend that evaluates all of it itself.
    pub fn bare(&self) -> Sweep {
        Sweep { name: self.name.clone(), ..Sweep::nothing("", self.kind) }
    }

    /// Its updates and dot products alone, for a backend that evaluates the instructions itself.
    pub fn without_instructions(&self) -> Sweep {
        Sweep { before: Vec::new(), after: Vec::new(), ..self.clone() }
    }

    /// Whether it touches no vector.
    pub fn is_scalar(&self) -> bool {
        self.updates.is_empty() && self.dots.is_empty()
    }

    /// Every vector used, once each, with whether its old value is read and whether it is written.
    pub fn vectors(&self) -> Vec<(Vector, bool, bool)> {
        let mut seen: Vec<(Vector, bool, bool)> = Vec::new();
        let mut see = |v: Vector, write: bool| match seen.iter_mut().find(|(w, ..)| *w == v) {
            Some(entry) => entry.2 |= write,
            None => seen.push((v, !write, write)),
        };
        self.mentions().for_each(|(v, write)| see(v, write));
        seen
    }

    /// Number of vectors used.
    pub fn vector_count(&self) -> usize {
        let is_new = |at: usize, v| self.mentions().take(at).all(|(earlier, _)| earlier != v);
        self.mentions().enumerate().filter(|(at, (v, _))| is_new(*at, *v)).count()
    }

    /// Every use of a vector, in order, with whether it is a write.
    pub fn mentions(&self) -> impl Iterator<Item = (Vector, bool)> {
        let read = |t: &Term| t.factor.into_iter().chain([t.vector]).map(|v| (v, false));
        let updates =
            self.updates.iter().flat_map(move |u| u.terms.iter().flat_map(read).chain([(u.dst, true)]));
        updates.chain(self.dots.iter().flat_map(|dot| dot.vectors().map(|v| (v, false))))
    }

    /// Adds a dot product. An earlier one into the same cell is never read and is removed.
    fn sum(&mut self, dot: Dot) {
        self.dots.retain(|earlier| earlier.cell != dot.cell);
        self.dots.push(dot);
    }

    /// The dot products, equal ones once and maxima last, and the instructions that copy their sums to the cells of the
    /// others; these come before [`Sweep::after`].
    pub fn distinct_dots(&self) -> (Vec<Dot>, Vec<Instr>) {
        let (mut distinct, mut copies) = (Vec::<Dot>::with_capacity(self.dots.len()), Vec::new());
        for dot in &self.dots {
            match distinct.iter().find(|d| Dot { cell: dot.cell, ..**d } == *dot) {
                Some(same) => copies.push(Instr::Unary { op: Unary::Copy, dst: dot.cell, a: same.cell }),
                None => distinct.push(*dot),
            }
        }
        distinct.sort_by_key(|dot| dot.largest);
        (distinct, copies)
    }

    /// Merges the next sweep into this one; the result must be the same: see [`Sweep::fuses_with`].
    pub fn fuse(&mut self, next: Sweep) {
        self.name = Cow::Owned([&*self.name, &*next.name].join("+"));
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

    /// Whether `next` may run in this sweep: it needs nothing that is decided or summed at the end of this
    /// one, changes nothing that this one sums, and changes no cell that this one reads or sets at its end.
    pub fn fuses_with(&self, next: &Sweep) -> bool {
        let guarded = |s: &Self| s.before.iter().any(|i| matches!(i, Instr::OnlyIf { .. }));
        if guarded(self) || guarded(next) {
            return false;
        }
        if next.is_scalar() {
            return true; // evaluated after everything here, as it would be on its own
        }
        let summed = |v: Vector| self.dots.iter().any(|d| d.vectors().any(|w| w == v));
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
            && !self.is_full_with(next)
    }

    /// Whether both together exceed what one sweep of a device takes.
    fn is_full_with(&self, next: &Sweep) -> bool {
        let mut vectors = Vec::new();
        for (v, _) in self.mentions().chain(next.mentions()) {
            if !vectors.contains(&v) {
                vectors.push(v);
            }
        }
        let updates = self.updates.iter().chain(&next.updates);
        vectors.len() > MOST_VECTORS
            || updates.map(|update| update.terms.len()).sum::<usize>() > MOST_TERMS
            || self.dots.len() + next.dots.len() > MOST_DOTS
    }

    /// The cells used as coefficients.
    fn coefficients(&self) -> impl Iterator<Item = u32> {
        self.updates.iter().flat_map(|u| &u.terms).filter_map(|t| match t.coefficient {
            Coefficient::Cell(c) => Some(c),
            _ => None,
        })
    }
}

/// Provides cells for constants and intermediate values, and indices of reasons, to lowering.
pub(crate) trait Cells {
    fn constant(&mut self, value: Number) -> u32;
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

/// Lowers a pass, or reports the rule that it breaks.
pub(crate) fn lower(
    name: &'static str,
    kind: NumberType,
    statements: &[Statement],
    cells: &mut dyn Cells,
) -> Result<Sweep> {
    let mut sweep = Sweep::nothing(name, kind);
    sweep.cells.reserve(2 * statements.len());
    let mut phase = Phase::Before;
    let fail = |message: String| Error::Pass { pass: name.into(), message };
    for statement in statements {
        let next = match statement {
            Statement::Set(..) => Phase::Update,
            Statement::Dot(..) | Statement::Largest(..) => Phase::Dot,
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
                let terms = terms(expr, kind, cells, &mut sweep.before)
                    .map_err(|why| fail(format!("an update is not linear: {why}")))?;
                sweep.updates.push(Update { dst: *dst, terms });
            }
            Statement::Dot(cell, a, b) => {
                let (factor, b) = second_operand(b).map_err(fail)?;
                sweep.sum(Dot { cell: cell.index, a: *a, b, factor, largest: false });
            }
            Statement::Largest(cell, v) => {
                sweep.sum(Dot { cell: cell.index, a: *v, b: *v, factor: None, largest: true });
            }
            Statement::Eval(cell, formula) => evaluate(formula, cell.index, kind, cells, code),
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
            Statement::Rotate(h, j, rr) => {
                holds_column(h, *j).map_err(fail)?;
                code.push(Instr::Rotate { at: hessenberg(h), j: *j as u32, rr: rr.index })
            }
            Statement::BackSubstitute(h) => {
                holds_problem(h).map_err(fail)?;
                code.push(Instr::BackSubstitute { at: hessenberg(h) });
            }
        }
    }
    let n = sweep.mentions().next().map(|(first, _)| first.len);
    if let Some(n) = n {
        for (v, _) in sweep.mentions() {
            Error::check_length(format_args!("pass `{name}`"), "every vector, like its first,", n, v.len)?;
        }
        sweep.n = n;
    }
    Ok(sweep)
}

/// The factor and the vector of the second operand of a dot product.
fn second_operand(b: &Node) -> Result<(Option<Vector>, Vector), String> {
    if let Node::Vector(v) = b {
        return Ok((None, *v));
    }
    if let Node::Mul(f, v) = b
        && let (Node::Vector(f), Node::Vector(v)) = (&**f, &**v)
    {
        return Ok((Some(*f), *v));
    }
    Err("a dot product is with a formula; expected a vector or the product of two vectors".into())
}

/// Checks that a least-squares problem has the column that is rotated, and the cells it needs.
fn holds_column(h: &crate::Hessenberg, column: usize) -> Result<(), String> {
    if column >= h.m {
        return Err(format!("it rotates column {column} of a least-squares problem of {} columns", h.m));
    }
    holds_problem(h)
}

/// Checks that the cells of a least-squares problem have the right sizes.
fn holds_problem(h: &crate::Hessenberg) -> Result<(), String> {
    let m = h.m;
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

/// Adds the cells that a statement uses.
fn name_cells(statement: &Statement, cells: &mut Vec<Cell>) {
    match statement {
        Statement::Set(_, expr) => name_cells_of(expr, cells),
        Statement::Dot(cell, ..) | Statement::Largest(cell, _) | Statement::Count(cell) => cells.push(*cell),
        Statement::Eval(cell, formula) => {
            cells.push(*cell);
            name_cells_of(formula, cells);
        }
        Statement::Add(a, b) => cells.extend(a.ends().chain(b.ends())),
        Statement::StopIf(test, _) | Statement::LeaveIf(test) => cells.extend(test.cells()),
        Statement::Leave => {}
        Statement::Confirm(c) => cells.extend([c.rr, c.target, c.last, c.shrink]),
        Statement::Rotate(h, _, rr) => {
            cells.push(*rr);
            name_cells_of_problem(h, cells);
        }
        Statement::BackSubstitute(h) => name_cells_of_problem(h, cells),
    }
}

/// Adds the first and the last cell of each run: all cells of a run are released together.
fn name_cells_of_problem(h: &crate::Hessenberg, cells: &mut Vec<Cell>) {
    cells.reserve(9);
    cells.push(h.used);
    cells.extend([h.h, h.rotations, h.g, h.y].into_iter().flat_map(crate::Cells::ends));
}

fn name_cells_of(expr: &Node, cells: &mut Vec<Cell>) {
    match expr {
        Node::Cell(cell) => cells.push(*cell),
        Node::Value(_) | Node::Real(_) | Node::Vector(_) => {}
        Node::Neg(a) | Node::Conj(a) | Node::Sqrt(a) => name_cells_of(a, cells),
        Node::Max(a, b) | Node::Add(a, b) | Node::Sub(a, b) | Node::Mul(a, b) | Node::Div(a, b) => {
            name_cells_of(a, cells);
            name_cells_of(b, cells);
        }
    }
}

fn hessenberg(h: &crate::Hessenberg) -> HessenbergCells {
    HessenbergCells {
        m: h.m as u32,
        h: h.h.first,
        rotations: h.rotations.first,
        g: h.g.first,
        y: h.y.first,
        used: h.used.index,
    }
}

/// The instruction that skips an operation unless a test holds.
pub(crate) fn only_if(test: Test) -> Instr {
    let (test, a, b) = compare(test);
    Instr::OnlyIf { test, a, b }
}

fn compare(test: Test) -> (Compare, u32, u32) {
    match test {
        Test::LessEqual(a, b) => (Compare::LessEqual, a.index, b.index),
        Test::Greater(a, b) => (Compare::Greater, a.index, b.index),
        Test::NotPositive(a) => (Compare::NotPositive, a.index, 0),
        Test::NotFinite(a) => (Compare::NotFinite, a.index, 0),
        Test::Zero(a) => (Compare::Zero, a.index, 0),
    }
}
