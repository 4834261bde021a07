//! What an operation reads and writes: the single basis for checks, byte counts, barriers and release.
use crate::ir::operation::{Op, OpKind};
use crate::{Basis, Cells, Matrix, Vector};

/// How an operation uses an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Each row reads its own element.
    Read,
    /// A row may read any element.
    Gather,
    /// Each row writes its own element; the old one is not read.
    Write,
    /// Each row updates its own element.
    Change,
    /// All elements are written together, not row by row.
    Fill,
}

impl Access {
    /// Whether the old value matters.
    pub fn reads(self) -> bool {
        matches!(self, Access::Read | Access::Gather | Access::Change)
    }
    /// Whether the value changes.
    pub fn writes(self) -> bool {
        matches!(self, Access::Write | Access::Change | Access::Fill)
    }
}

/// An operand of an operation, other than those of its sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A matrix; read only.
    Matrix(Matrix),
    /// A vector.
    Vector(Vector, Access),
    /// The columns of a basis that are in use.
    Basis(Basis, Access),
    /// A run of cells.
    Cells(Cells, Access),
}

impl OpKind {
    /// The operands other than those of the sweep.
    pub fn operands(&self) -> impl Iterator<Item = Operand> + use<> {
        use Access::{Change, Fill, Gather, Read, Write};
        use Operand::{Basis as B, Cells as C, Matrix as M, Vector as V};
        let used = |v: &Basis, h: &Cells| Basis { columns: h.count as usize, ..*v };
        let operands = match self {
            OpKind::Sweep => [None; 3],
            OpKind::Spmv { a, x, y } => [Some(M(*a)), Some(V(*x, Gather)), Some(V(*y, Write))],
            OpKind::Spmm { a, x, y } => [Some(M(*a)), Some(B(*x, Gather)), Some(B(*y, Write))],
            OpKind::BasisDot { v, w, h } => {
                [Some(B(used(v, h), Read)), Some(V(*w, Read)), Some(C(*h, Write))]
            }
            OpKind::BasisAxpy { v, h, w, .. } => {
                [Some(B(used(v, h), Read)), Some(C(*h, Read)), Some(V(*w, Change))]
            }
            OpKind::BasisGram { v, w, g } => [Some(B(*v, Read)), Some(B(*w, Read)), Some(C(*g, Write))],
            OpKind::BasisCombine { v, c, x, add } => {
                [Some(B(*v, Read)), Some(C(*c, Read)), Some(B(*x, if *add { Change } else { Write }))]
            }
            OpKind::TriSolve { a, b, x } => [Some(M(*a)), Some(V(*b, Gather)), Some(V(*x, Fill))],
            OpKind::Host { x, y, .. } => [Some(V(*x, Gather)), Some(V(*y, Fill)), None],
        };
        operands.into_iter().flatten()
    }

    /// Whether updates and dot products of a pass may be fused into the operation.
    pub fn carries(&self) -> bool {
        match self {
            OpKind::Sweep | OpKind::Spmv { .. } | OpKind::BasisAxpy { .. } => true,
            OpKind::Spmm { .. }
            | OpKind::BasisDot { .. }
            | OpKind::BasisGram { .. }
            | OpKind::BasisCombine { .. }
            | OpKind::TriSolve { .. }
            | OpKind::Host { .. } => false,
        }
    }

    /// The vector that the operation computes; its sweep need not load it.
    pub(crate) fn result(&self) -> Option<Vector> {
        self.operands().find_map(|operand| match operand {
            Operand::Vector(v, access) if access.writes() => Some(v),
            _ => None,
        })
    }

    /// Calls `each` with every slot, cell and count that differs between the steps of a rolled iteration.
    #[inline]
    pub(crate) fn numbers(&mut self, each: &mut impl FnMut(&mut u32)) {
        match self {
            // The columns of operations on blocks are the same in all steps.
            OpKind::Sweep | OpKind::Spmm { .. } | OpKind::BasisGram { .. } | OpKind::BasisCombine { .. } => {}
            OpKind::Spmv { x, y, .. } | OpKind::Host { x, y, .. } => {
                [&mut x.slot, &mut y.slot].into_iter().for_each(each);
            }
            OpKind::TriSolve { b, x, .. } => [&mut b.slot, &mut x.slot].into_iter().for_each(each),
            OpKind::BasisDot { v, w, h } | OpKind::BasisAxpy { v, w, h, .. } => {
                [&mut v.first, &mut w.slot, &mut h.first, &mut h.count].into_iter().for_each(each);
            }
        }
    }
}

impl Op {
    /// Every vector that the operation or its sweep uses; for a basis, the first and the last column in use,
    /// because all columns are released together.
    pub fn vectors(&self) -> impl Iterator<Item = Vector> {
        let of_kind = self.kind.operands().flat_map(|operand| {
            let (one, ends) = match operand {
                Operand::Vector(v, _) => (Some(v), None),
                Operand::Basis(v, _) => (None, Some(v.ends(v.columns as u32))),
                Operand::Matrix(_) | Operand::Cells(..) => (None, None),
            };
            one.into_iter().chain(ends.into_iter().flatten())
        });
        of_kind.chain(self.sweep.mentions().map(|(v, _)| v))
    }
    /// Every cell that the operation or its sweep uses; for a run, the first and the last.
    pub fn cells(&self) -> impl Iterator<Item = crate::Cell> {
        let of_kind = self.kind.operands().filter_map(|operand| match operand {
            Operand::Cells(cells, _) => Some(cells.ends()),
            _ => None,
        });
        of_kind.flatten().chain(self.sweep.cells.iter().copied())
    }
    /// The matrix that the operation multiplies by.
    pub fn matrix(&self) -> Option<Matrix> {
        self.kind.operands().find_map(|operand| match operand {
            Operand::Matrix(a) => Some(a),
            _ => None,
        })
    }
}
