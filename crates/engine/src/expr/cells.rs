//! Cell instructions: the scalar arithmetic, tests and small dense problems that a device evaluates between
//! sweeps.
use crate::{Control, History, Scalar};

/// An operation on one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Unary {
    /// `a`
    Copy,
    /// `−a`
    Neg,
    /// the conjugate of `a`
    Conj,
    /// the principal root of `a`
    Sqrt,
}

/// An operation on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Binary {
    /// `a + b`
    Add,
    /// `a − b`
    Sub,
    /// `a · b`
    Mul,
    /// `a / b`
    Div,
    /// `a` if `re(a) ≥ re(b)`, else `b`
    Max,
}

/// A test of one or two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Compare {
    /// always true
    Always,
    /// `re(a) ≤ re(b)`
    LessEqual,
    /// `re(a) > re(b)`
    Greater,
    /// not `re(a) > 0`
    NotPositive,
    /// a part of `a` is infinite or NaN
    NotFinite,
    /// `a = 0`
    Zero,
}

/// One instruction over the cells of a number type; operands are cell indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instr {
    /// `dst ← op a`
    Unary {
        /// The operation.
        op: Unary,
        /// Receives the result.
        dst: u32,
        /// The operand.
        a: u32,
    },
    /// `dst ← a op b`
    Binary {
        /// The operation.
        op: Binary,
        /// Receives the result.
        dst: u32,
        /// The left operand.
        a: u32,
        /// The right operand.
        b: u32,
    },
    /// `dst[i] ← dst[i] + a[i]` for `count` consecutive cells, in order.
    AddCells {
        /// The first cell changed.
        dst: u32,
        /// The first cell added.
        a: u32,
        /// Number of cells.
        count: u32,
    },
    /// Stop for `reason` if the test holds.
    Stop {
        /// The test.
        test: Compare,
        /// Its left operand.
        a: u32,
        /// Its right operand, if it has one.
        b: u32,
        /// Index into the reasons of the program.
        reason: u32,
        /// Whether a restart may recover.
        soft: bool,
    },
    /// Leave the iteration if the test holds.
    Leave {
        /// The test.
        test: Compare,
        /// Its left operand.
        a: u32,
        /// Its right operand, if it has one.
        b: u32,
    },
    /// Skip the rest of the operation unless the test holds; only allowed at the head of an operation.
    OnlyIf {
        /// The test.
        test: Compare,
        /// Its left operand.
        a: u32,
        /// Its right operand, if it has one.
        b: u32,
    },
    /// One iteration is done.
    Count {
        /// The squared residual norm.
        rr: u32,
    },
    /// Decide by the true residual: see [`Pass::confirm`](crate::Pass::confirm).
    Confirm {
        /// The squared norm of the true residual.
        rr: u32,
        /// The squared tolerance.
        target: u32,
        /// `rr` at the last confirmation.
        last: u32,
        /// The factor that counts as progress.
        shrink: u32,
    },
    /// Rotate column `j` of a Hessenberg problem.
    Rotate {
        /// The problem.
        at: HessenbergCells,
        /// The column.
        j: u32,
        /// Receives the squared residual norm.
        rr: u32,
    },
    /// Solve the triangular system of a Hessenberg problem.
    BackSubstitute {
        /// The problem.
        at: HessenbergCells,
    },
}

/// The first cells of the arrays of a [`Hessenberg`](crate::Hessenberg) problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HessenbergCells {
    /// Maximum number of columns.
    pub m: u32,
    /// `H`, column `j` at `h + j (m + 1)`.
    pub h: u32,
    /// `c₀ s₀ c₁ s₁ …`
    pub rotations: u32,
    /// The rotated right-hand side.
    pub g: u32,
    /// The solution.
    pub y: u32,
    /// Number of columns in use, stored as a number.
    pub used: u32,
}

impl Instr {
    /// Whether this instruction affects control flow or reads a whole array of cells.
    pub fn is_control(&self) -> bool {
        !matches!(self, Instr::Unary { .. } | Instr::Binary { .. })
    }
    /// The cells a plain instruction reads.
    pub fn reads(&self) -> impl Iterator<Item = u32> + use<> {
        let (a, b) = match *self {
            Instr::Unary { a, .. } => (Some(a), None),
            Instr::Binary { a, b, .. } => (Some(a), Some(b)),
            _ => (None, None),
        };
        a.into_iter().chain(b)
    }
    /// The cell a plain instruction writes.
    pub fn writes(&self) -> Option<u32> {
        match *self {
            Instr::Unary { dst, .. } | Instr::Binary { dst, .. } => Some(dst),
            _ => None,
        }
    }
}

/// Cells and control state: evaluates instructions on the host.
#[derive(Clone, Debug)]
pub struct Machine<T> {
    /// All cells of the number type.
    pub cells: Vec<T>,
    /// The control state of the program.
    pub control: Control,
    /// The residuals so far.
    pub history: History,
}

/// Diagonal entries of the triangle up to this many epsilons of the largest count as zero: their columns add
/// no information, as when the matrix is singular.
const NEGLIGIBLE: f64 = 16.0;

impl<T: Scalar> Machine<T> {
    /// Evaluates instructions in order and returns whether the operation continues. Once an instruction halts
    /// the section or skips the operation, it does not, and the remaining instructions are skipped.
    pub fn run(&mut self, code: &[Instr]) -> bool {
        self.run_inlined(code)
    }

    /// [`Machine::run`] inlined into its caller, for callers compiled for a processor with fused
    /// multiply-add: rotations are chains of them.
    #[inline(always)]
    pub fn run_inlined(&mut self, code: &[Instr]) -> bool {
        for instr in code {
            match *instr {
                Instr::Unary { op, dst, a } => {
                    let a = self.at(a);
                    self.cells[dst as usize] = match op {
                        Unary::Copy => a,
                        Unary::Neg => -a,
                        Unary::Conj => a.conj(),
                        Unary::Sqrt => a.root(),
                    };
                }
                Instr::Binary { op, dst, a, b } => {
                    let (a, b) = (self.at(a), self.at(b));
                    self.cells[dst as usize] = match op {
                        Binary::Add => a + b,
                        Binary::Sub => a - b,
                        Binary::Mul => a * b,
                        Binary::Div => a.quotient(b),
                        Binary::Max => {
                            if a.re() >= b.re() {
                                a
                            } else {
                                b
                            }
                        }
                    };
                }
                Instr::OnlyIf { test, a, b } => {
                    if !self.holds(test, a, b) {
                        return false;
                    }
                }
                ref control => {
                    self.decide(control);
                    if self.control.halted() {
                        return false;
                    }
                }
            }
        }
        true
    }

    #[inline(always)]
    fn at(&self, cell: u32) -> T {
        self.cells[cell as usize]
    }
    fn re(&self, cell: u32) -> f64 {
        self.at(cell).re()
    }

    fn holds(&self, test: Compare, a: u32, b: u32) -> bool {
        match test {
            Compare::Always => true,
            Compare::LessEqual => self.re(a) <= self.re(b),
            Compare::Greater => self.re(a) > self.re(b),
            Compare::NotPositive => self.re(a) <= 0.0 || self.re(a).is_nan(),
            Compare::NotFinite => !self.at(a).finite(),
            Compare::Zero => self.at(a) == T::zero(),
        }
    }

    #[inline(always)]
    fn decide(&mut self, instr: &Instr) {
        match *instr {
            Instr::Stop { test, a, b, reason, soft } => {
                if self.holds(test, a, b) {
                    self.control.stop(reason, soft);
                }
            }
            Instr::Leave { test, a, b } => self.control.left |= self.holds(test, a, b),
            Instr::Count { rr } => {
                let value = self.at(rr);
                self.control.count(value.re(), value.finite());
                self.history.record(self.control.iterations, value.re());
            }
            Instr::Confirm { rr, target, last, shrink } => {
                let value = self.re(rr);
                if self.control.iterations == 0 {
                    self.history.record(0, value);
                }
                self.control.confirm(value, self.re(target), self.re(last), self.re(shrink));
                self.cells[last as usize] = self.at(rr);
            }
            Instr::Rotate { at, j, rr } => self.rotate(at, j as usize, rr),
            Instr::BackSubstitute { at } => self.back_substitute(at),
            Instr::AddCells { dst, a, count } => {
                for i in 0..count {
                    self.cells[(dst + i) as usize] = self.at(dst + i) + self.at(a + i);
                }
            }
            Instr::Unary { .. } | Instr::Binary { .. } | Instr::OnlyIf { .. } => {}
        }
    }

    /// `(a, b) ← (c̄ a + s̄ b, c b − s a)` with the rotation `(c, s)` that zeroes the last entry of the
    /// column.
    #[inline(always)]
    fn rotate(&mut self, at: HessenbergCells, j: usize, rr: u32) {
        let column = at.h as usize + j * (at.m as usize + 1);
        let (rotations, g) = (at.rotations as usize, at.g as usize);
        let cells = &mut self.cells;
        let mut a = cells[column]; // kept in a register from one rotation to the next
        for i in 0..j {
            let (c, s) = (cells[rotations + 2 * i], cells[rotations + 2 * i + 1]);
            let b = cells[column + i + 1];
            cells[column + i] = s.conj().fma(b, c.conj() * a);
            a = (-s).fma(a, c * b);
        }
        let b = cells[column + j + 1];
        let norm = (a.dot_term(a) + b.dot_term(b)).root();
        let (c, s) =
            if norm == T::zero() { (T::one(), T::zero()) } else { (a.quotient(norm), b.quotient(norm)) };
        (cells[rotations + 2 * j], cells[rotations + 2 * j + 1]) = (c, s);
        (cells[column + j], cells[column + j + 1]) = (norm, T::zero());
        let gj = cells[g + j];
        (cells[g + j], cells[g + j + 1]) = (c.conj() * gj, -s * gj);
        let last = cells[g + j + 1];
        cells[rr as usize] = last.dot_term(last);
        cells[at.used as usize] = T::from_real((j + 1) as f64);
    }

    #[inline(always)]
    fn back_substitute(&mut self, at: HessenbergCells) {
        let (m, h, g, y) = (at.m as usize, at.h as usize, at.g as usize, at.y as usize);
        let cells = &mut self.cells;
        let used = (cells[at.used as usize].re() as usize).min(m);
        cells[y..y + m].fill(T::zero());
        let largest = (0..used).map(|i| cells[h + i * (m + 1) + i].re()).fold(0.0, f64::max);
        let negligible = (T::from_real(largest) * T::from_real(NEGLIGIBLE * T::EPSILON)).re();
        for i in (0..used).rev() {
            let mut sum = cells[g + i];
            for j in i + 1..used {
                sum = (-cells[h + j * (m + 1) + i]).fma(cells[y + j], sum);
            }
            let diagonal = cells[h + i * (m + 1) + i];
            cells[y + i] = if diagonal.re() <= negligible { T::zero() } else { sum.quotient(diagonal) };
        }
        cells[at.used as usize] = T::zero();
    }
}
