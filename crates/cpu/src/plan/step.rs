//! A prepared operation: its matrix resolved, vectors by slot.
use crate::pass::fused::Fused;
use crate::spmv::AnyStored;
use crate::tri_solve::AnySolved;
use lacuna_engine::HostFunction;
use lacuna_engine::cells::Instr;
use lacuna_engine::lower::Coefficient;

/// A term; vectors by slot.
#[derive(Clone, Copy)]
pub(crate) struct Term {
    pub(crate) coefficient: Coefficient,
    pub(crate) factor: Option<u32>,
    pub(crate) vector: u32,
}

/// An update; vectors by slot.
#[derive(Clone)]
pub(crate) struct Update {
    pub(crate) dst: u32,
    /// Whether the result is rounded to the narrower type.
    pub(crate) rounds: bool,
    pub(crate) terms: Box<[Term]>,
}

/// A dot product; vectors by slot.
#[derive(Clone, Copy)]
pub(crate) struct Dot {
    pub(crate) cell: u32,
    pub(crate) a: u32,
    pub(crate) b: u32,
    /// An element-wise factor on `b`.
    pub(crate) factor: Option<u32>,
    /// Whether it is the largest term, `b` is `a`, and there is no factor.
    pub(crate) largest: bool,
}

/// The operation of a step before its sweep.
#[derive(Clone)]
pub(crate) enum StepKind {
    Sweep,
    /// Column by column: column `j` of `x` is vector `x + j`, likewise for `y`.
    Spmv {
        a: AnyStored,
        x: u32,
        y: u32,
        columns: u32,
    },
    /// The same with a kernel for several columns.
    Spmm {
        a: AnyStored,
        x: u32,
        y: u32,
        columns: u32,
    },
    /// The sums of the pieces of long rows, computed before the product, for each of its columns.
    Pieces {
        a: AnyStored,
        x: u32,
        columns: u32,
    },
    /// Column `j` is in slot `first + j`.
    BasisDot {
        first: u32,
        columns: u32,
        w: u32,
        h: u32,
    },
    BasisAxpy {
        first: u32,
        columns: u32,
        w: u32,
        h: u32,
        add: bool,
    },
    /// Column `i` of `rows` on the left is in slot `first + i`, column `j` on the right in slot `w + j`; their sum goes to
    /// cell `g + j · rows + i`.
    BasisGram {
        first: u32,
        rows: u32,
        w: u32,
        columns: u32,
        g: u32,
    },
    /// Column `i` of `rows` is in slot `first + i`, its coefficient in column `j`, of slot `x + j`, in cell `c + j · rows + i`.
    BasisCombine {
        first: u32,
        rows: u32,
        x: u32,
        columns: u32,
        c: u32,
        add: bool,
    },
    /// Level by level, with its own barriers.
    TriSolve {
        a: AnySolved,
        b: u32,
        x: u32,
    },
    /// Executed by the calling thread while the others wait.
    Host {
        f: HostFunction,
        x: u32,
        cols: usize,
        y: u32,
    },
}

impl StepKind {
    /// Calls `each` with every slot, cell and count that differs between the steps of a rolled iteration.
    #[inline]
    pub(crate) fn numbers(&mut self, each: &mut impl FnMut(&mut u32)) {
        match self {
            StepKind::Sweep | StepKind::BasisGram { .. } | StepKind::BasisCombine { .. } => {}
            StepKind::Pieces { x, .. } => each(x),
            StepKind::Spmv { x, y, .. } | StepKind::Spmm { x, y, .. } | StepKind::Host { x, y, .. } => {
                [x, y].into_iter().for_each(each);
            }
            StepKind::TriSolve { b, x, .. } => [b, x].into_iter().for_each(each),
            StepKind::BasisDot { first, columns, w, h }
            | StepKind::BasisAxpy { first, columns, w, h, .. } => {
                [first, columns, w, h].into_iter().for_each(each);
            }
        }
    }
}

/// A prepared operation.
#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) kind: StepKind,
    /// Whether the vectors written by the operation are narrow.
    pub(crate) rounds: bool,
    pub(crate) n: usize,
    pub(crate) before: Box<[Instr]>,
    pub(crate) updates: Box<[Update]>,
    pub(crate) dots: Box<[Dot]>,
    /// The single loop for updates and dot products, if there is one.
    pub(crate) fused: Option<Fused>,
    pub(crate) after: Box<[Instr]>,
    /// Whether the instructions include rotations or a triangular solve.
    pub(crate) rotates: bool,
    /// Index of its division of rows among threads.
    pub(crate) shares: usize,
    /// Whether all threads must finish before the next step begins.
    pub(crate) meet: bool,
    /// Matrix entries and vector elements touched, without columns of bases.
    pub(super) work: usize,
}

impl Step {
    /// Number of sums over all rows that the step computes.
    pub(crate) fn sums(&self) -> usize {
        self.dots.len() + self.summed().len()
    }
    /// How many of them, the last ones, are maxima.
    pub(crate) fn maxima(&self) -> usize {
        self.dots.iter().filter(|dot| dot.largest).count()
    }
    /// The cells of the sums that the operation itself computes, in order.
    pub(crate) fn summed(&self) -> std::ops::Range<usize> {
        match self.kind {
            StepKind::BasisDot { columns, h, .. } => h as usize..h as usize + columns as usize,
            StepKind::BasisGram { rows, columns, g, .. } => {
                g as usize..g as usize + rows as usize * columns as usize
            }
            _ => 0..0,
        }
    }
    /// Matrix entries and vector elements touched.
    pub(crate) fn work(&self) -> usize {
        let columns = match self.kind {
            StepKind::BasisDot { columns, .. } | StepKind::BasisAxpy { columns, .. } => columns as usize,
            _ => 0,
        };
        self.work + columns * self.n
    }
}
