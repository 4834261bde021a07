//! Names of all offsets and values in a table of words.
use crate::Reason;
use crate::ir::control::COMMON_REASONS;
use std::fmt::Write;

macro_rules! layout {
    ($($(#[$doc:meta])* $name:ident = $value:expr;)*) => {
        $($(#[$doc])* pub const $name: u32 = $value;)*
        /// Every constant of the layout, by name.
        pub const LAYOUT: &[(&str, u32)] = &[$((stringify!($name), $name)),*];
    };
}

layout! {
    /// No slot, no vector, no matrix, no reason.
    NONE = u32::MAX;
    /// Lists start at multiples of this many words.
    ALIGN_WORDS = 4;

    /// Lanes of a piece of a long row.
    MAX_LANES = crate::MAX_LANES as u32;
    /// Entries per lane above which a row is long: see [`crate::is_long`].
    LONG_LANE = crate::LONG_LANE as u32;
    /// Entries of a piece of a long row: see [`crate::piece_of`].
    PIECE = crate::PIECE as u32;
    /// Maximum number of pieces of a row.
    MOST_PIECES = crate::MOST_PIECES as u32;

    /// Words of an operation's record.
    OP_WORDS = 32;
    /// The operation before the sweep: one of `KIND_…`.
    OP_KIND = 0;
    /// Number of elements.
    OP_N = 1;
    /// The matrix of a product.
    OP_MATRIX = 2;
    /// The vector that a product multiplies; for a product of several columns, the basis.
    OP_X = 3;
    /// The vector that a product or a basis update computes, or that is projected on a basis; for a product
    /// of several columns, the basis.
    OP_Y = 4;
    /// The basis.
    OP_BASIS = 5;
    /// Columns in use of the basis or of a product.
    OP_COLUMNS = 6;
    /// The first cell of the basis coefficients.
    OP_H = 7;
    /// 1 if a basis update adds, 0 if it subtracts.
    OP_ADD = 8;
    /// Number of dots that are maxima, the last ones.
    OP_MAXIMA = 9;
    /// The section the operation belongs to: one of `SECTION_…`.
    OP_SECTION = 10;
    /// 1 for the last operation of its section.
    OP_LAST = 11;
    /// The section that follows when this one was completed: see [`crate::next_section`].
    OP_NEXT = 12;
    /// The section that follows when this one was left.
    OP_NEXT_LEFT = 13;
    /// Offset of the vectors of the slots.
    OP_SLOTS = 14;
    /// Number of slots.
    OP_SLOT_COUNT = 15;
    /// Offset of the instructions evaluated first.
    OP_BEFORE = 16;
    /// Number of instructions evaluated first.
    OP_BEFORE_COUNT = 17;
    /// Offset of the loads.
    OP_LOADS = 18;
    /// Number of loads.
    OP_LOAD_COUNT = 19;
    /// Offset of the updates.
    OP_UPDATES = 20;
    /// Number of updates.
    OP_UPDATE_COUNT = 21;
    /// Offset of the stores.
    OP_STORES = 22;
    /// Number of stores.
    OP_STORE_COUNT = 23;
    /// Offset of the dots.
    OP_DOTS = 24;
    /// Number of dots.
    OP_DOT_COUNT = 25;
    /// Offset of the instructions evaluated last.
    OP_AFTER = 26;
    /// Number of instructions evaluated last.
    OP_AFTER_COUNT = 27;
    /// Number of terms of all updates.
    OP_TERM_COUNT = 28;
    /// End of the words of the updates.
    OP_UPDATES_END = 29;

    /// The first operation of the section of `OP_NEXT`, or `NONE`.
    OP_NEXT_OP = 30;
    /// The first operation of the section of `OP_NEXT_LEFT`, or `NONE`.
    OP_NEXT_LEFT_OP = 31;

    /// A pass only.
    KIND_SWEEP = 0;
    /// `y ← A x`
    KIND_SPMV = 1;
    /// `h ← Vᴴ w`
    KIND_BASIS_DOT = 2;
    /// `w ← w ∓ V h`
    KIND_BASIS_AXPY = 3;
    /// `Y ← A X`
    KIND_SPMM = 4;
    /// `x ← A⁻¹ b`
    KIND_TRI_SOLVE = 5;
    /// `G ← Vᴴ W`; the bases are `OP_BASIS`, of `OP_X` columns, and `OP_Y`, the cells from `OP_H` on.
    KIND_BASIS_GRAM = 6;
    /// `X ← V C`, or `X ← X + V C` if `OP_ADD`; the bases are `OP_BASIS`, of `OP_X` columns, and `OP_Y`, the cells from `OP_H` on.
    KIND_BASIS_COMBINE = 7;

    /// Words of a load or store.
    MOVE_WORDS = 2;
    /// The slot of a load or store.
    MOVE_SLOT = 0;
    /// The vector of a load or store.
    MOVE_VECTOR = 1;

    /// Words of an update before its terms.
    UPDATE_WORDS = 2;
    /// The slot an update writes.
    UPDATE_SLOT = 0;
    /// The terms of an update.
    UPDATE_TERMS = 1;

    /// Words of a term.
    TERM_WORDS = 4;
    /// The kind of coefficient: one of `COEFFICIENT_…`.
    TERM_COEFFICIENT = 0;
    /// The cell of the coefficient.
    TERM_CELL = 1;
    /// The slot of the element-wise factor, or `NONE`.
    TERM_FACTOR = 2;
    /// The slot of the vector.
    TERM_SLOT = 3;

    /// 1
    COEFFICIENT_ONE = 0;
    /// −1
    COEFFICIENT_MINUS_ONE = 1;
    /// A cell.
    COEFFICIENT_CELL = 2;

    /// Words of a dot.
    DOT_WORDS = 4;
    /// The cell that receives the sum.
    DOT_CELL = 0;
    /// The slot of the conjugated vector.
    DOT_A = 1;
    /// The slot of the other vector.
    DOT_B = 2;
    /// The slot of the element-wise factor on it, or `NONE`.
    DOT_FACTOR = 3;

    /// Words of an instruction.
    INSTR_WORDS = 12;
    /// The operation: one of `CODE_…`.
    INSTR_CODE = 0;
    /// The cell that a plain instruction writes; the test of a stop, leave or guard (`TEST_…`); `rr` of a
    /// count or confirmation; `m` of a Hessenberg problem.
    INSTR_DST = 1;
    /// The left operand; the target of a confirmation; `h` of a Hessenberg problem.
    INSTR_A = 2;
    /// The right operand; `last` of a confirmation; the rotations of a Hessenberg problem.
    INSTR_B = 3;
    /// The reason of a stop; `shrink` of a confirmation; `g` of a Hessenberg problem.
    INSTR_C = 4;
    /// 1 for a stop from which a restart may recover; `y` of a Hessenberg problem.
    INSTR_D = 5;
    /// `used` of a Hessenberg problem.
    INSTR_E = 6;
    /// The column of a rotation.
    INSTR_F = 7;
    /// `rr` of a rotation.
    INSTR_G = 8;

    /// `a`
    CODE_COPY = 0;
    /// `−a`
    CODE_NEG = 1;
    /// The conjugate of `a`.
    CODE_CONJ = 2;
    /// The principal root of `a`.
    CODE_SQRT = 3;
    /// `a + b`
    CODE_ADD = 4;
    /// `a − b`
    CODE_SUB = 5;
    /// `a · b`
    CODE_MUL = 6;
    /// `a / b`
    CODE_DIV = 7;
    /// The number with the larger real part.
    CODE_MAX = 8;
    /// Instructions from here on affect control flow or work on arrays of cells.
    CODE_STOP = 9;
    /// Leave the section.
    CODE_LEAVE = 10;
    /// One iteration is done.
    CODE_COUNT = 11;
    /// Decide by the true residual.
    CODE_CONFIRM = 12;
    /// Rotate a column of a Hessenberg problem.
    CODE_ROTATE = 13;
    /// Solve the triangular system of a Hessenberg problem.
    CODE_BACK_SUBSTITUTE = 14;
    /// Skip the rest of the operation unless a test holds.
    CODE_ONLY_IF = 15;

    /// Always true.
    TEST_ALWAYS = 0;
    /// `re(a) ≤ re(b)`
    TEST_LESS_EQUAL = 1;
    /// `re(a) > re(b)`
    TEST_GREATER = 2;
    /// Not `re(a) > 0`.
    TEST_NOT_POSITIVE = 3;
    /// A part of `a` is infinite or NaN.
    TEST_NOT_FINITE = 4;
    /// `a = 0`
    TEST_ZERO = 5;

    /// Runs once, at the start.
    SECTION_SETUP = 0;
    /// Runs at the start and whenever the iteration was left.
    SECTION_RESTART = 1;
    /// Runs repeatedly.
    SECTION_EACH = 2;
    /// Nothing runs any more.
    SECTION_STOPPED = 3;

    /// Index of [`Reason::Converged`].
    REASON_CONVERGED = reason(Reason::Converged);
    /// Index of [`Reason::Limit`].
    REASON_LIMIT = reason(Reason::Limit);
    /// Index of [`Reason::Stagnated`].
    REASON_STAGNATED = reason(Reason::Stagnated);
    /// Index of [`Reason::NotFinite`].
    REASON_NOT_FINITE = reason(Reason::NotFinite("the residual"));
    /// Index of [`Reason::Cancelled`].
    REASON_CANCELLED = reason(Reason::Cancelled);

    /// 64-bit words of the control block.
    CONTROL_WORDS = 16;
    /// The running section: one of `SECTION_…`.
    CONTROL_SECTION = 0;
    /// Whether the rest of the section is skipped.
    CONTROL_LEFT = 1;
    /// 0, or 1 + the reason pending until the confirmation.
    CONTROL_PENDING = 2;
    /// Whether that reason is soft.
    CONTROL_SOFT = 3;
    /// Why the program stopped.
    CONTROL_REASON = 4;
    /// Whether the restart section confirms a residual: see [`Control`](crate::Control).
    CONTROL_CONFIRMS = 5;
    /// Iterations done.
    CONTROL_ITERATIONS = 6;
    /// Iterations allowed.
    CONTROL_LIMIT = 7;
    /// Confirmations that did not end the solve.
    CONTROL_RESTARTS = 8;
    /// Iterations between two values of the history; 0 records none.
    CONTROL_STRIDE = 9;
    /// Number of values in the history.
    CONTROL_HISTORY = 10;
    /// Capacity of the history.
    CONTROL_CAPACITY = 11;
    /// The bits of the squared residual by the recurrence, in the real type, in the low bits.
    CONTROL_RECURRENCE = 12;
    /// The bits of the squared true residual, in the same form.
    CONTROL_CONFIRMED = 13;
    /// The next operation, or `NONE`.
    CONTROL_OP = 14;
}

const fn reason(of: Reason) -> u32 {
    let mut i = 0;
    while i < COMMON_REASONS.len() {
        match (of, COMMON_REASONS[i]) {
            (Reason::Converged, Reason::Converged)
            | (Reason::Limit, Reason::Limit)
            | (Reason::Stagnated, Reason::Stagnated)
            | (Reason::NotFinite(_), Reason::NotFinite(_))
            | (Reason::Cancelled, Reason::Cancelled) => return i as u32,
            _ => i += 1,
        }
    }
    NONE
}

/// The layout as preprocessor definitions; each name has the prefix `LACUNA_`.
pub fn c_header() -> String {
    let mut text = String::new();
    for (name, value) in LAYOUT {
        let _ = writeln!(text, "#define LACUNA_{name} {value}u");
    }
    text
}
