//! An operation of a program: what is computed, and the pass fused with it.
use crate::expr::cells::Instr;
use crate::ir::lower::Sweep;
use crate::ir::operands::{Access, Operand};
use crate::{Basis, Cells, Error, HostFunction, Matrix, Result, Vector};

/// The operation before the sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Nothing: `multi_axpy_dot`.
    Sweep,
    /// `y ← A x`, with the sweep applied to the rows just computed: `spmv_dot`.
    Spmv {
        /// The matrix.
        a: Matrix,
        /// As long as the matrix has columns; the sweep must not write it.
        x: Vector,
        /// As long as the matrix has rows.
        y: Vector,
    },
    /// `Y ← A X`, bitwise equal to one [`OpKind::Spmv`] per column, with the matrix read once for several
    /// columns. It has no sweep of its own.
    Spmm {
        /// The matrix.
        a: Matrix,
        /// Columns as long as the matrix has columns.
        x: Basis,
        /// The same number of columns, as long as the matrix has rows; none is a column of `x`.
        y: Basis,
    },
    /// `h ← Vᴴ w` over the first `h.count` columns, all in one sweep over memory. It has no sweep of its own.
    BasisDot {
        /// The columns.
        v: Basis,
        /// The vector.
        w: Vector,
        /// One cell for each column used.
        h: Cells,
    },
    /// `w ← w ∓ V h` over the first `h.count` columns in order, by `fma(∓h[j], v[j], w)`; a column whose
    /// coefficient is 0 is not read. The sweep is applied to the rows just computed.
    BasisAxpy {
        /// The columns.
        v: Basis,
        /// One cell for each column used.
        h: Cells,
        /// The vector.
        w: Vector,
        /// Add instead of subtract.
        add: bool,
    },
    /// `G ← Vᴴ W`: cell `j · rows + i` is the dot product of column `i` of `v`, which has `rows` columns, with column
    /// `j` of `w`, bitwise equal to one [`OpKind::BasisDot`] per column of `w`. It has no sweep of its own.
    BasisGram {
        /// The columns on the left.
        v: Basis,
        /// The columns on the right; they may be those on the left.
        w: Basis,
        /// One cell for each pair.
        g: Cells,
    },
    /// `X ← V C`, or `X ← X + V C`: column `j` begins as 0, or as it is, and has the columns of `v` added in order, bitwise
    /// equal to one [`OpKind::BasisAxpy`] per column of `x`. Cell `j · rows + i` is the coefficient of column `i` of
    /// `v`, which has `rows` columns. It has no sweep of its own.
    BasisCombine {
        /// The columns that are combined.
        v: Basis,
        /// One cell for each pair.
        c: Cells,
        /// The combinations; none is a column of `v`.
        x: Basis,
        /// Add to what is there.
        add: bool,
    },
    /// `x ← A⁻¹ b` with a triangular matrix, see [`Triangle`](crate::Triangle). It has no sweep of its own.
    TriSolve {
        /// The matrix, in a format that has a [`Format::triangle`](crate::Format::triangle).
        a: Matrix,
        /// The right-hand side.
        b: Vector,
        /// The solution; a different vector.
        x: Vector,
    },
    /// `y ← f(x)` by a function on the host. It has no sweep of its own.
    Host {
        /// The function.
        f: HostFunction,
        /// Its argument.
        x: Vector,
        /// Its result; a different vector.
        y: Vector,
    },
}

/// One operation of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// The operation itself.
    pub kind: OpKind,
    /// The pass fused with it.
    pub sweep: Sweep,
}

/// Cells for all pairs of columns of two bases.
fn cells_of(v: Basis, w: Basis) -> usize {
    v.columns.saturating_mul(w.columns)
}

impl OpKind {
    /// Whether it works on several columns, and can be taken apart into operations on one each.
    pub fn takes_columns(&self) -> bool {
        matches!(self, OpKind::Spmm { .. } | OpKind::BasisGram { .. } | OpKind::BasisCombine { .. })
    }
}

impl Op {
    /// Number of elements it processes.
    pub fn n(&self) -> usize {
        match self.kind {
            OpKind::Sweep => self.sweep.n,
            OpKind::Spmv { a, .. } | OpKind::Spmm { a, .. } => a.rows,
            OpKind::BasisDot { w, .. } | OpKind::BasisAxpy { w, .. } => w.len,
            OpKind::BasisGram { v, .. } | OpKind::BasisCombine { v, .. } => v.len,
            OpKind::TriSolve { x, .. } => x.len,
            OpKind::Host { y, .. } => y.len,
        }
    }

    /// Whether the operation runs only if a test holds.
    pub fn is_conditional(&self) -> bool {
        self.sweep.before.iter().any(|i| matches!(i, Instr::OnlyIf { .. }))
    }

    /// Number of iterations that the operation counts.
    pub fn counts(&self) -> usize {
        let code = self.sweep.before.iter().chain(&self.sweep.after);
        code.filter(|i| matches!(i, Instr::Count { .. })).count()
    }

    /// An operation on several columns as operations on one column each; the last one has the sweep.
    pub(crate) fn columns(&self) -> Vec<Op> {
        let nothing = || Sweep::nothing("", self.sweep.kind);
        let kinds: Vec<(OpKind, Sweep)> = match self.kind {
            OpKind::Spmm { a, x, y } => (0..x.columns)
                .map(|j| (OpKind::Spmv { a, x: x.column(j), y: y.column(j) }, nothing()))
                .collect(),
            OpKind::BasisGram { v, w, g } => (0..w.columns)
                .map(|j| {
                    (OpKind::BasisDot { v, w: w.column(j), h: g.part(j * v.columns, v.columns) }, nothing())
                })
                .collect(),
            OpKind::BasisCombine { v, c, x, add } => (0..x.columns)
                .flat_map(|j| {
                    let (h, w) = (c.part(j * v.columns, v.columns), x.column(j));
                    let begins = (!add).then(|| (OpKind::Sweep, Sweep::zero(w)));
                    begins.into_iter().chain([(OpKind::BasisAxpy { v, h, w, add: true }, nothing())])
                })
                .collect(),
            _ => return vec![self.clone()],
        };
        let before = self.sweep.before.iter().filter(|i| matches!(i, Instr::OnlyIf { .. })).copied();
        let before: Vec<Instr> = before.collect();
        let count = kinds.len();
        let mut ops: Vec<_> = kinds
            .into_iter()
            .enumerate()
            .map(|(j, (kind, sweep))| Op {
                kind,
                sweep: if j + 1 == count {
                    self.sweep.clone()
                } else {
                    let cells = self.sweep.cells.clone();
                    Sweep { before: before.clone(), name: self.sweep.name.clone(), cells, ..sweep }
                },
            })
            .collect();
        if ops.is_empty() {
            ops.push(Op { kind: OpKind::Sweep, sweep: self.sweep.clone() });
        }
        ops
    }

    /// The fewest bytes of an operation that may be skipped.
    pub(crate) fn least_bytes(&self) -> u64 {
        if self.is_conditional() { 0 } else { self.bytes() as u64 }
    }

    /// Whether a true residual is confirmed at the end of the operation.
    pub(crate) fn confirms(&self) -> bool {
        self.sweep.after.iter().any(|i| matches!(i, Instr::Confirm { .. }))
    }

    /// The fewest bytes the operation can move: each array it needs read once, each array it changes written
    /// once. A basis counts with all its columns in use.
    pub fn bytes(&self) -> usize {
        let times = |access: Access| access.reads() as usize + access.writes() as usize;
        let (mut bytes, mut at_hand) = (0, None);
        for operand in self.kind.operands() {
            bytes += match operand {
                Operand::Matrix(a) => a.bytes,
                Operand::Vector(v, access) => {
                    at_hand = if access == Access::Gather { Some(v) } else { at_hand };
                    times(access) * v.bytes()
                }
                Operand::Basis(v, access) => times(access) * v.bytes(),
                Operand::Cells(..) => 0,
            };
        }
        let fresh = self.kind.result();
        let moved = |(v, read, write): (Vector, bool, bool)| {
            let read = read && Some(v) != fresh && Some(v) != at_hand;
            let write = write && Some(v) != fresh;
            (read as usize + write as usize) * v.bytes()
        };
        bytes + self.sweep.vectors().into_iter().map(moved).sum::<usize>()
    }

    /// Fails unless lengths and number types fit, and no operand is changed while others still need it.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Pass`].
    pub fn check(&self) -> Result<()> {
        let name = &self.sweep.name;
        let fail = |message: &str| Err(Error::Pass { pass: name.to_string(), message: message.into() });
        let kind = self.sweep.kind;
        let kinds = self.vectors().map(|v| v.kind).chain(self.cells().map(|cell| cell.kind));
        if let Some(other) = kinds.chain(self.matrix().map(|a| a.kind)).find(|other| *other != kind) {
            return fail(&format!("it is over {} and uses a handle of {}", kind.name(), other.name()));
        }
        if !self.sweep.is_scalar() {
            let lengths = [self.sweep.n].into_iter().chain(self.sweep.mentions().map(|(v, _)| v.len));
            for length in lengths {
                let what = "every vector, like what the operation writes,";
                Error::check_length(format_args!("pass `{name}`"), what, self.n(), length)?;
            }
        }
        match &self.kind {
            OpKind::Sweep => {}
            OpKind::Spmv { a, x, y } => {
                let operation = format_args!("pass `{name}`, product");
                Error::check_fits(operation, (a.rows, a.cols), "x", a.cols, x.len)?;
                Error::check_fits(operation, (a.rows, a.cols), "y", a.rows, y.len)?;
                if x == y {
                    return fail("y ← A x with y the same vector as x");
                }
            }
            OpKind::Spmm { a, x, y } => {
                Error::check_fits("spmm", (a.rows, a.cols), "a column of X", a.cols, x.len)?;
                Error::check_fits("spmm", (a.rows, a.cols), "a column of Y", a.rows, y.len)?;
                Error::check_length("spmm", "the columns of Y", x.columns, y.columns)?;
                if u32::try_from(x.columns).is_err() {
                    return fail("Y ← A X with more columns than a basis can have");
                }
                if x.overlaps(*y) {
                    return fail("Y ← A X with a column of Y that is one of X");
                }
            }
            OpKind::BasisDot { v, w, h } => {
                Error::check_length("basis_dot", "w", v.len, w.len)?;
                if h.count as usize > v.columns {
                    return fail("basis_dot over more columns than the basis has");
                }
            }
            OpKind::BasisAxpy { v, h, w, .. } => {
                Error::check_length("basis_axpy", "w", v.len, w.len)?;
                if h.count as usize > v.columns {
                    return fail("basis_axpy over more columns than the basis has");
                }
                if v.has(*w, h.count) {
                    return fail("basis_axpy changes a column that it uses");
                }
            }
            OpKind::BasisGram { v, w, g } => {
                Error::check_length("basis_gram", "a column of W", v.len, w.len)?;
                Error::check_length("basis_gram", "the cells", cells_of(*v, *w), g.count as usize)?;
            }
            OpKind::BasisCombine { v, c, x, .. } => {
                Error::check_length("basis_combine", "a column of X", v.len, x.len)?;
                Error::check_length("basis_combine", "the cells", cells_of(*v, *x), c.count as usize)?;
                if v.overlaps(*x) {
                    return fail("basis_combine writes a column that it uses");
                }
            }
            OpKind::TriSolve { a, b, x } => crate::ir::triangle::check_solve(name, *a, *b, *x)?,
            OpKind::Host { f, x, y } => {
                if f.kind() != kind {
                    return fail(&format!(
                        "it is over {} and calls a function on {}",
                        kind.name(),
                        f.kind().name()
                    ));
                }
                if x == y {
                    return fail("y ← f(x) with y the same vector as x");
                }
                if x.narrow || y.narrow {
                    return fail("a host function on a vector that is stored narrow");
                }
            }
        }
        if !self.kind.carries() && !self.sweep.is_scalar() {
            return fail("it rides on an operation that takes no pass");
        }
        match self.sweep.updates.iter().find_map(|u| self.spoils(u.dst)) {
            Some(message) => fail(message),
            None => Ok(()),
        }
    }

    /// The reason why a pass fused with the operation must not write a vector.
    pub(crate) fn spoils(&self, dst: Vector) -> Option<&'static str> {
        self.kind.operands().find_map(|operand| match operand {
            Operand::Vector(x, Access::Gather) if x == dst => {
                Some("it writes the operand of the product it rides on, which other rows still need")
            }
            Operand::Basis(v, access) if access.reads() && v.has(dst, v.columns as u32) => {
                Some("it writes a column of the basis it rides on")
            }
            _ => None,
        })
    }
}
