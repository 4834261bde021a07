//! A program as a flat table of 32-bit words, for devices without pointers and enums.
//!
//! The table begins with one record of [`OP_WORDS`] per operation: setup first, then restart, then each. A
//! record refers to the lists of its operation, which follow the records, by offset and count:
//!
//! * *slots*: the vector of each slot, one word each. A slot is one distinct vector of the sweep, held in
//!   registers or local memory while a row is processed;
//! * *loads* and *stores*: a slot and its vector, [`MOVE_WORDS`] each. A slot is loaded if its old value is
//!   read and stored if it is written. Slot 0 of a product or a basis update is the vector it computes: never
//!   loaded, always stored;
//! * *updates*: a destination slot, a number of terms, then the terms of [`TERM_WORDS`] each;
//! * *dots*: a cell, two slots and that of a factor, [`DOT_WORDS`] each, all distinct and with distinct
//!   cells; the last [`OP_MAXIMA`] of them are maxima. If the program has two equal dots, *after* begins with copies;
//! * *before* and *after*: instructions of [`INSTR_WORDS`] each.
//!
//! Every list starts at a multiple of [`ALIGN_WORDS`]. Vectors, matrices and bases are indices into the
//! tables of [`Encoded`]; cells are indices into the cells of the number type. [`c_header`] exports the names
//! of this page to the kernels.
use crate::expr::cells::{Compare, HessenbergCells, Instr};
use crate::ir::lower::{Coefficient, Dot, Sweep};
use crate::ir::operation::OpKind;
use crate::{Basis, Error, Matrix, NumberType, Op, Program, Result, Section, Vector};
use std::ops::Range;

mod instructions;
mod words;
use instructions::{instr, one_by_one};
pub use words::*;

/// A program as words, and the tables that its indices refer to.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The number type.
    pub kind: NumberType,
    /// The table.
    pub words: Vec<u32>,
    /// Vectors by index.
    pub vectors: Vec<Vector>,
    /// Matrices by index.
    pub matrices: Vec<Matrix>,
    /// Bases by index.
    pub bases: Vec<Basis>,
    /// As [`Program::confirms`].
    pub confirms: bool,
    /// The operations of setup, restart and each.
    pub sections: [Range<u32>; 3],
    /// From the lowest cell used to one past the highest.
    pub cells: Range<u32>,
    /// Maximum number of slots of an operation.
    pub slots: u32,
    /// Maximum number of sums of an operation: dots, or columns of a basis.
    pub sums: u32,
    /// Maximum number of elements of an operation.
    pub n: u32,
}

impl Encoded {
    /// Number of operations.
    pub fn ops(&self) -> u32 {
        self.sections[2].end
    }
    /// A word of an operation's record: `field` is one of `OP_…`.
    ///
    /// # Panics
    /// If there is no such operation or field.
    pub fn op(&self, op: u32, field: u32) -> u32 {
        self.words[(op * OP_WORDS + field) as usize]
    }
    /// Whether an operation touches no vector and consists of instructions only.
    pub fn is_scalar(&self, op: u32) -> bool {
        self.op(op, OP_KIND) == KIND_SWEEP
            && self.op(op, OP_UPDATE_COUNT) == 0
            && self.op(op, OP_DOT_COUNT) == 0
    }
    /// Whether it has maxima among the sums.
    pub fn has_maxima(&self) -> bool {
        (0..self.ops()).any(|op| self.op(op, OP_MAXIMA) > 0)
    }
    /// Whether vectors are stored in the narrower type.
    pub fn has_narrow(&self) -> bool {
        self.vectors.iter().any(|v| v.narrow) || self.bases.iter().any(|v| v.narrow)
    }
    /// The section that runs first: `SECTION_…`.
    pub fn first_section(&self) -> u32 {
        let first = self.sections.iter().position(|ops| !ops.is_empty());
        first.map_or(SECTION_STOPPED, |section| section as u32)
    }
    /// The initial control block. `stride` and `capacity` belong to the history.
    pub fn control(&self, limit: u64, stride: u64, capacity: u64, nan: u64) -> [u64; CONTROL_WORDS as usize] {
        let mut block = [0; CONTROL_WORDS as usize];
        let mut set = |at: u32, value: u64| block[at as usize] = value;
        set(CONTROL_SECTION, self.first_section().into());
        set(CONTROL_REASON, REASON_LIMIT.into());
        set(CONTROL_CONFIRMS, self.confirms.into());
        set(CONTROL_LIMIT, limit);
        set(CONTROL_STRIDE, stride);
        set(CONTROL_CAPACITY, capacity);
        set(CONTROL_RECURRENCE, nan);
        set(CONTROL_CONFIRMED, nan);
        let first = self.sections.iter().find(|ops| !ops.is_empty());
        set(CONTROL_OP, first.map_or(NONE, |ops| ops.start).into());
        block
    }
}

/// The bits of a real number of the type, in the form stored in a control block.
pub fn real_bits(kind: NumberType, value: f64) -> u64 {
    if kind == kind.narrow() { (value as f32).to_bits().into() } else { value.to_bits() }
}

/// The number encoded by [`real_bits`].
pub fn real_from_bits(kind: NumberType, bits: u64) -> f64 {
    if kind == kind.narrow() { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) }
}

/// The words of a program.
///
/// # Errors
/// [`Error::Unsupported`] if a vector is too long for 32-bit indices; [`Error::Program`] for a projection on
/// a basis that has updates or dots of its own.
pub fn encode(program: &Program) -> Result<Encoded> {
    let mut encoder = Encoder { program: program.name, lists: Vec::new(), out: empty(program.kind) };
    let sections = Section::RUNNING.map(|section| program.section(section));
    let count: usize = sections.iter().map(|ops| ops.len()).sum();
    let after = |section: u32, left: bool| -> u32 {
        let exists = |s: u32| !sections[s as usize].is_empty();
        match section {
            SECTION_SETUP if exists(SECTION_RESTART) => SECTION_RESTART,
            SECTION_SETUP | SECTION_RESTART if exists(SECTION_EACH) => SECTION_EACH,
            SECTION_EACH if !left => SECTION_EACH,
            SECTION_EACH if exists(SECTION_RESTART) => SECTION_RESTART,
            _ => SECTION_STOPPED,
        }
    };
    let base = count as u32 * OP_WORDS;
    let mut records = Vec::with_capacity(base as usize);
    for (section, ops) in sections.into_iter().enumerate() {
        let first = records.len() as u32 / OP_WORDS;
        for (i, op) in ops.iter().enumerate() {
            let mut record = encoder.op(op, base)?;
            let mut set = |at: u32, value: u32| record[at as usize] = value;
            set(OP_SECTION, section as u32);
            set(OP_LAST, (i + 1 == ops.len()).into());
            set(OP_NEXT, after(section as u32, false));
            set(OP_NEXT_LEFT, after(section as u32, true));
            records.extend(record);
        }
        encoder.out.sections[section] = first..records.len() as u32 / OP_WORDS;
    }
    let mut out = encoder.out;
    out.confirms = program.confirms();
    for record in records.chunks_mut(OP_WORDS as usize) {
        for (section, op) in [(OP_NEXT, OP_NEXT_OP), (OP_NEXT_LEFT, OP_NEXT_LEFT_OP)] {
            let section = out.sections.get(record[section as usize] as usize);
            record[op as usize] = section.map_or(NONE, |ops| ops.start);
        }
    }
    out.words = records;
    out.words.extend(encoder.lists);
    Ok(out)
}

fn empty(kind: NumberType) -> Encoded {
    Encoded {
        kind,
        words: Vec::new(),
        vectors: Vec::new(),
        matrices: Vec::new(),
        bases: Vec::new(),
        confirms: false,
        sections: [0..0, 0..0, 0..0],
        cells: 0..0,
        slots: 0,
        sums: 0,
        n: 0,
    }
}

/// The index of `item` in `table`, appended if it is missing.
fn index<I: Copy + PartialEq>(table: &mut Vec<I>, item: I) -> u32 {
    let at = table.iter().position(|known| *known == item).unwrap_or_else(|| {
        table.push(item);
        table.len() - 1
    });
    at as u32
}

struct Encoder {
    program: &'static str,
    /// The words after the records.
    lists: Vec<u32>,
    out: Encoded,
}

impl Encoder {
    fn op(&mut self, op: &Op, base: u32) -> Result<[u32; OP_WORDS as usize]> {
        let sweep = &op.sweep;
        let n = u32::try_from(op.n()).map_err(|_| Error::Unsupported {
            operation: format!("pass `{}`", sweep.name),
            message: format!("{} elements are more than 32-bit indices count ({})", op.n(), u32::MAX),
        })?;
        let mut record = [0; OP_WORDS as usize];
        for field in [OP_MATRIX, OP_X, OP_Y, OP_BASIS] {
            record[field as usize] = NONE;
        }
        let mut set = |at: u32, value: u32| record[at as usize] = value;
        set(OP_N, n);
        let mut sums = 0;
        match op.kind {
            OpKind::Sweep => set(OP_KIND, KIND_SWEEP),
            OpKind::Spmv { a, x, y } => {
                set(OP_KIND, KIND_SPMV);
                set(OP_MATRIX, index(&mut self.out.matrices, a));
                set(OP_X, index(&mut self.out.vectors, x));
                set(OP_Y, index(&mut self.out.vectors, y));
            }
            OpKind::Spmm { a, x, y } => {
                set(OP_KIND, KIND_SPMM);
                set(OP_MATRIX, index(&mut self.out.matrices, a));
                set(OP_X, index(&mut self.out.bases, x));
                set(OP_Y, index(&mut self.out.bases, y));
                set(OP_COLUMNS, x.columns as u32);
            }
            OpKind::BasisDot { v, w, h } => {
                set(OP_KIND, KIND_BASIS_DOT);
                set(OP_BASIS, index(&mut self.out.bases, v));
                set(OP_Y, index(&mut self.out.vectors, w));
                set(OP_COLUMNS, h.count);
                set(OP_H, h.first);
                self.see_cells(h.first, h.count);
                sums = h.count;
            }
            OpKind::BasisAxpy { v, h, w, add } => {
                set(OP_KIND, KIND_BASIS_AXPY);
                set(OP_BASIS, index(&mut self.out.bases, v));
                set(OP_Y, index(&mut self.out.vectors, w));
                set(OP_COLUMNS, h.count);
                set(OP_H, h.first);
                set(OP_ADD, add.into());
                self.see_cells(h.first, h.count);
            }
            OpKind::BasisGram { v, w, g } => {
                set(OP_KIND, KIND_BASIS_GRAM);
                set(OP_X, v.columns as u32);
                set(OP_BASIS, index(&mut self.out.bases, v));
                set(OP_Y, index(&mut self.out.bases, w));
                set(OP_COLUMNS, g.count);
                set(OP_H, g.first);
                self.see_cells(g.first, g.count);
                sums = g.count;
            }
            OpKind::BasisCombine { v, c, x, add } => {
                set(OP_KIND, KIND_BASIS_COMBINE);
                set(OP_X, v.columns as u32);
                set(OP_BASIS, index(&mut self.out.bases, v));
                set(OP_Y, index(&mut self.out.bases, x));
                set(OP_COLUMNS, x.columns as u32);
                set(OP_H, c.first);
                set(OP_ADD, add.into());
                self.see_cells(c.first, c.count);
            }
            OpKind::TriSolve { a, b, x } => {
                set(OP_KIND, KIND_TRI_SOLVE);
                set(OP_MATRIX, index(&mut self.out.matrices, a));
                set(OP_X, index(&mut self.out.vectors, b));
                set(OP_Y, index(&mut self.out.vectors, x));
            }
            OpKind::Host { .. } => {
                return Err(Error::Unsupported {
                    operation: format!("program `{}`", self.program),
                    message: "a function of the host has no form for a device".into(),
                });
            }
        }

        let fresh = if op.kind.carries() { op.kind.result() } else { None };
        let moves = moves(sweep, fresh);
        let slots: Vec<Vector> = moves.iter().map(|m| m.0).collect();
        let slot = |v: Vector| slots.iter().position(|s| *s == v).map_or(NONE, |s| s as u32);
        let vectors: Vec<u32> = slots.iter().map(|v| index(&mut self.out.vectors, *v)).collect();
        let transfers = |which: fn(&(Vector, bool, bool)) -> bool| -> Vec<u32> {
            let chosen = moves.iter().enumerate().filter(|(_, m)| which(m));
            chosen.flat_map(|(s, _)| [s as u32, vectors[s]]).collect()
        };
        let (loads, stores) = (transfers(|m| m.1), transfers(|m| m.2));

        let mut updates = Vec::new();
        let mut terms = 0;
        for update in &sweep.updates {
            terms += update.terms.len() as u32;
            updates.extend([slot(update.dst), update.terms.len() as u32]);
            for term in &update.terms {
                let (kind, cell) = match term.coefficient {
                    Coefficient::One => (COEFFICIENT_ONE, 0),
                    Coefficient::MinusOne => (COEFFICIENT_MINUS_ONE, 0),
                    Coefficient::Cell(cell) => {
                        self.see_cells(cell, 1);
                        (COEFFICIENT_CELL, cell)
                    }
                };
                updates.extend([kind, cell, term.factor.map_or(NONE, slot), slot(term.vector)]);
            }
        }

        let (distinct, copies) = sweep.distinct_dots();
        sweep.dots.iter().for_each(|dot| self.see_cells(dot.cell, 1));
        let words = |dot: &Dot| [dot.cell, slot(dot.a), slot(dot.b), dot.factor.map_or(NONE, slot)];
        let dots: Vec<[u32; DOT_WORDS as usize]> = distinct.iter().map(words).collect();
        sums = sums.max(dots.len() as u32);

        set(OP_MAXIMA, distinct.iter().filter(|dot| dot.largest).count() as u32);
        set(OP_TERM_COUNT, terms);
        let code = |instrs: &mut dyn Iterator<Item = &Instr>| -> Vec<u32> {
            instrs.flat_map(one_by_one).flat_map(instr).collect()
        };
        let before = code(&mut sweep.before.iter());
        let after = code(&mut copies.iter().chain(&sweep.after));
        sweep.before.iter().chain(&sweep.after).for_each(|i| self.see_instr(i));
        let lists = [
            (OP_SLOTS, OP_SLOT_COUNT, vectors.len() as u32, vectors),
            (OP_BEFORE, OP_BEFORE_COUNT, before.len() as u32 / INSTR_WORDS, before),
            (OP_LOADS, OP_LOAD_COUNT, loads.len() as u32 / MOVE_WORDS, loads),
            (OP_UPDATES, OP_UPDATE_COUNT, sweep.updates.len() as u32, updates),
            (OP_STORES, OP_STORE_COUNT, stores.len() as u32 / MOVE_WORDS, stores),
            (OP_DOTS, OP_DOT_COUNT, dots.len() as u32, dots.concat()),
            (OP_AFTER, OP_AFTER_COUNT, after.len() as u32 / INSTR_WORDS, after),
        ];
        for (offset, count, length, words) in lists {
            let at = base + self.lists.len() as u32;
            (record[offset as usize], record[count as usize]) = (at, length);
            if offset == OP_UPDATES {
                record[OP_UPDATES_END as usize] = at + words.len() as u32;
            }
            self.lists.extend(words);
            self.lists.resize(self.lists.len().next_multiple_of(ALIGN_WORDS as usize), 0);
        }
        self.out.slots = self.out.slots.max(slots.len() as u32);
        self.out.sums = self.out.sums.max(sums);
        self.out.n = self.out.n.max(n);
        Ok(record)
    }

    fn see_cells(&mut self, first: u32, count: u32) {
        if count > 0 {
            let cells = &mut self.out.cells;
            let start = if cells.start == cells.end { first } else { cells.start.min(first) };
            *cells = start..cells.end.max(first + count);
        }
    }

    fn see_instr(&mut self, instr: &Instr) {
        match *instr {
            Instr::Unary { .. } | Instr::Binary { .. } => {
                instr.reads().chain(instr.writes()).for_each(|c| self.see_cells(c, 1));
            }
            Instr::Stop { test, a, b, .. } | Instr::Leave { test, a, b } | Instr::OnlyIf { test, a, b } => {
                match test {
                    Compare::Always => {}
                    Compare::LessEqual | Compare::Greater => {
                        [a, b].iter().for_each(|c| self.see_cells(*c, 1))
                    }
                    Compare::NotPositive | Compare::NotFinite | Compare::Zero => self.see_cells(a, 1),
                }
            }
            Instr::Count { rr } => self.see_cells(rr, 1),
            Instr::Confirm { rr, target, last, shrink } => {
                [rr, target, last, shrink].iter().for_each(|c| self.see_cells(*c, 1));
            }
            Instr::Rotate { at, rr, .. } => {
                self.see_hessenberg(at);
                self.see_cells(rr, 1);
            }
            Instr::BackSubstitute { at } => self.see_hessenberg(at),
            Instr::AddCells { dst, a, count } => {
                [dst, a].iter().for_each(|first| self.see_cells(*first, count))
            }
        }
    }

    fn see_hessenberg(&mut self, at: HessenbergCells) {
        let m = at.m;
        for (first, count) in
            [(at.h, m * (m + 1)), (at.rotations, 2 * m), (at.g, m + 1), (at.y, m), (at.used, 1)]
        {
            self.see_cells(first, count);
        }
    }
}

/// The vectors of a sweep in slot order, with whether each is loaded and stored.
fn moves(sweep: &Sweep, fresh: Option<Vector>) -> Vec<(Vector, bool, bool)> {
    let first = fresh.map(|v| (v, false, true));
    let others = sweep.vectors().into_iter().filter(|(v, ..)| Some(*v) != fresh);
    first.into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests;
