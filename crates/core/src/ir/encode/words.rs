//! The names of all places and values in a table of words.
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
    /// Stands for no slot, no vector, no matrix, no reason.
    NONE = u32::MAX;
    /// Lists start at multiples of this many words.
    ALIGN_WORDS = 4;

    /// Lanes of a piece of a long row.
    MAX_LANES = crate::MAX_LANES as u32;
    /// Entries of a lane beyond which a row is long: see [`crate::is_long`].
    LONG_LANE = crate::LONG_LANE as u32;
    /// Entries of a piece of it, and pieces at the most: see [`crate::piece_of`].
    PIECE = crate::PIECE as u32;
    /// The most pieces of a row.
    MOST_PIECES = crate::MOST_PIECES as u32;

    /// Words of an operation's record.
    OP_WORDS = 32;
    /// What it does before its sweep: one of `KIND_…`.
    OP_KIND = 0;
    /// Elements it goes over.
    OP_N = 1;
    /// The matrix of a product.
    OP_MATRIX = 2;
    /// The vector a product multiplies; the basis, where it has several columns.
    OP_X = 3;
    /// The vector a product or a basis update computes, or that a basis is projected on; the basis, where a product has several
    /// columns.
    OP_Y = 4;
    /// The basis.
    OP_BASIS = 5;
    /// Columns of the basis in use, or of a product.
    OP_COLUMNS = 6;
    /// The first cell of the basis coefficients.
    OP_H = 7;
    /// 1 where a basis update adds, 0 where it subtracts.
    OP_ADD = 8;
    /// Copies at the start of `after` that stand for identical dots.
    OP_COPIES = 9;
    /// The section the operation belongs to: one of `SECTION_…`.
    OP_SECTION = 10;
    /// 1 for the last operation of its section.
    OP_LAST = 11;
    /// The section that follows its section where that was gone through: see [`crate::next_section`].
    OP_NEXT = 12;
    /// The section that follows where its section was left.
    OP_NEXT_LEFT = 13;
    /// Where the vectors of the slots start.
    OP_SLOTS = 14;
    /// Slots.
    OP_SLOT_COUNT = 15;
    /// Where the instructions evaluated first start.
    OP_BEFORE = 16;
    /// Instructions evaluated first.
    OP_BEFORE_COUNT = 17;
    /// Where the loads start.
    OP_LOADS = 18;
    /// Loads.
    OP_LOAD_COUNT = 19;
    /// Where the updates start.
    OP_UPDATES = 20;
    /// Updates.
    OP_UPDATE_COUNT = 21;
    /// Where the stores start.
    OP_STORES = 22;
    /// Stores.
    OP_STORE_COUNT = 23;
    /// Where the dots start.
    OP_DOTS = 24;
    /// Dots.
    OP_DOT_COUNT = 25;
    /// Where the instructions evaluated last start.
    OP_AFTER = 26;
    /// Instructions evaluated last.
    OP_AFTER_COUNT = 27;
    /// Terms of all updates together.
    OP_TERM_COUNT = 28;
    /// Where the words of the updates end.
    OP_UPDATES_END = 29;

    /// The first operation of the section of `OP_NEXT`, or `NONE`.
    OP_NEXT_OP = 30;
    /// The first operation of the section of `OP_NEXT_LEFT`, or `NONE`.
    OP_NEXT_LEFT_OP = 31;

    /// A pass alone.
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

    /// Words of an instruction.
    INSTR_WORDS = 12;
    /// The operation: one of `CODE_…`.
    INSTR_CODE = 0;
    /// The cell a plain instruction writes; the test of a stop, leave or guard (`TEST_…`); `rr` of a count or confirmation;
    /// `m` of a Hessenberg problem.
    INSTR_DST = 1;
    /// The left operand; the target of a confirmation; `h` of a Hessenberg problem.
    INSTR_A = 2;
    /// The right operand; `last` of a confirmation; the rotations of a Hessenberg problem.
    INSTR_B = 3;
    /// The reason of a stop; `shrink` of a confirmation; `g` of a Hessenberg problem.
    INSTR_C = 4;
    /// 1 for a stop that a restart may get past; `y` of a Hessenberg problem.
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
    /// The larger by real part.
    CODE_MAX = 8;
    /// Instructions from here on decide about the flow or work on arrays of cells.
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
    /// Pass over the rest of the operation unless a test holds.
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

    /// Once, at the start.
    SECTION_SETUP = 0;
    /// At the start and whenever the iteration was left.
    SECTION_RESTART = 1;
    /// Over and over.
    SECTION_EACH = 2;
    /// Nothing any more.
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
    /// The section whose operations run: one of `SECTION_…`.
    CONTROL_SECTION = 0;
    /// Whether what remains of the section is passed over.
    CONTROL_LEFT = 1;
    /// 0, or 1 + the reason that waits for the confirmation.
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
    /// Iterations between two values of the history; 0 keeps none.
    CONTROL_STRIDE = 9;
    /// Values in the history.
    CONTROL_HISTORY = 10;
    /// Values the history has room for.
    CONTROL_CAPACITY = 11;
    /// The bits of the squared residual by the recurrence, in the real type, in the low bits.
    CONTROL_RECURRENCE = 12;
    /// The bits of the squared true residual, likewise.
    CONTROL_CONFIRMED = 13;
    /// The operation that is due, or `NONE`.
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

/// The layout as preprocessor definitions, each name with the prefix `LACUNA_`.
pub fn c_header() -> String {
    let mut text = String::new();
    for (name, value) in LAYOUT {
        let _ = writeln!(text, "#define LACUNA_{name} {value}u");
    }
    text
}
