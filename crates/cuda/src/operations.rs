//! The operations of a program in the form of the kernel that runs all of it: see `program.cuh`.
use crate::chunks::chunks;
use crate::table::{
    TERM_CELL_FLAG, TERM_EMPTY, TERM_FACTOR_FLAG, TERM_LAST, TERM_MINUS, TERM_SHARED, flat_terms, words,
};
use crate::whole::ProgramArgs;
use lacuna_core::encode::*;
use lacuna_core::{Scalar, Vector};

const TERM_WORDS: u32 = 256;
const NEXT_WRAPS: u32 = 1 << 31;
const TERMS_PLAIN: u32 = 1 << 31;
const H_ADDS: u32 = 1 << 31;
const VECTOR_WRITTEN: u32 = 1;
pub(crate) const VECTOR_SHARED: u32 = 2;
const OP_RECORD: usize = 16;

/// A table on its way.
pub(crate) struct Builder<'a, T> {
    e: &'a Encoded<T>,
    pub(crate) table: Vec<u32>,
    pub(crate) vectors: Vec<Vector<T>>,
    /// The vectors that are the columns of each basis.
    columns: Vec<Vec<u32>>,
    pub(crate) flags: Vec<u32>,
    /// Of vectors kept as words, their place among these, 31 at the most.
    bits: Vec<u32>,
    /// The most sums of an operation.
    pub(crate) sums: u32,
}

impl<'a, T: Scalar> Builder<'a, T> {
    pub(crate) fn new(e: &'a Encoded<T>) -> Self {
        let mut vectors = e.vectors.clone();
        let columns = e.bases.iter().map(|basis| {
            (0..basis.columns)
                .map(|j| {
                    let column = basis.column(j);
                    let at = vectors.iter().position(|v| *v == column).unwrap_or_else(|| {
                        vectors.push(column);
                        vectors.len() - 1
                    });
                    at as u32
                })
                .collect()
        });
        let columns = columns.collect();
        let (flags, bits) = (vec![0; vectors.len()], vec![0; vectors.len()]);
        Builder { e, table: Vec::new(), vectors, columns, flags, bits, sums: 0 }
    }

    /// Marks the vectors that blocks read of each other.
    pub(crate) fn share(&mut self) {
        let mut count = 0;
        for op in 0..self.e.ops() {
            if self.e.op(op, OP_KIND) == KIND_SPMV {
                let x = self.e.op(op, OP_X) as usize;
                if self.flags[x] & VECTOR_SHARED == 0 {
                    self.flags[x] |= VECTOR_SHARED;
                    self.bits[x] = 1 << count.min(31);
                    count += 1;
                }
            }
        }
    }

    pub(crate) fn align(&mut self) {
        self.table.resize(self.table.len().next_multiple_of(ALIGN_WORDS as usize), 0);
    }

    fn append(&mut self, list: &[u32]) -> u32 {
        self.align();
        let at = self.table.len() as u32;
        self.table.extend(list);
        at
    }

    /// The records of the operations, and what they name.
    pub(crate) fn operations<U: Scalar>(&mut self, args: &mut ProgramArgs, one: bool) {
        let e = self.e;
        let word = size_of::<U>() as u32;
        let mut records = Vec::new();
        let mut terms = Vec::new();
        for op in 0..e.ops() {
            let kind = e.op(op, OP_KIND);
            let slots = words(e, op, OP_SLOTS, e.op(op, OP_SLOT_COUNT)).to_vec();
            let mut written: Vec<u32> = words(e, op, OP_STORES, e.op(op, OP_STORE_COUNT) * MOVE_WORDS)
                .chunks(MOVE_WORDS as usize)
                .map(|w| w[MOVE_VECTOR as usize])
                .collect();
            if matches!(kind, KIND_SPMV | KIND_BASIS_AXPY) {
                written.push(e.op(op, OP_Y));
            }
            let mut writes = 0;
            for v in written {
                self.flags[v as usize] |= VECTOR_WRITTEN;
                writes |= self.bits[v as usize];
            }
            let reads = if kind == KIND_SPMV { self.bits[e.op(op, OP_X) as usize] } else { 0 };
            let first_term = terms.len() / 8;
            let flags = &self.flags;
            let shared = |slot: u32| flags[slots[slot as usize] as usize] & VECTOR_SHARED != 0;
            for [flags, cell, operands, dst] in flat_terms(e, op, |slot| slots[slot as usize], shared) {
                let place = match flags {
                    f if f & TERM_CELL_FLAG != 0 => cell - args.cell_first,
                    f if f & TERM_MINUS != 0 => args.cell_count + 1,
                    _ => args.cell_count,
                };
                let through = if flags & (TERM_SHARED | TERM_LAST) == TERM_SHARED | TERM_LAST && !one {
                    dst << 16
                } else {
                    0
                };
                let flags = (if one { flags & !TERM_SHARED } else { flags }) | through;
                terms.extend([flags, place * word, operands & 0xffff, 0, dst, 0, operands >> 16, 0]);
            }
            let mut term_count = (terms.len() / 8 - first_term) as u32;
            let odd = TERM_FACTOR_FLAG | TERM_EMPTY;
            if term_count > 0
                && !U::KIND.is_complex()
                && terms[first_term * 8..].iter().step_by(8).all(|f| f & odd == 0)
            {
                term_count |= TERMS_PLAIN;
                for flags in terms[first_term * 8..].iter_mut().step_by(8) {
                    *flags |= if *flags & TERM_SHARED != 0 { TERM_WORDS } else { 0 };
                }
            }
            let basis_dot = kind == KIND_BASIS_DOT;
            let dots = if basis_dot { e.op(op, OP_COLUMNS) } else { e.op(op, OP_DOT_COUNT) };
            self.sums = self.sums.max(dots);
            let list: Vec<u32> = words(e, op, OP_DOTS, e.op(op, OP_DOT_COUNT) * DOT_WORDS)
                .chunks(DOT_WORDS as usize)
                .flat_map(|w| {
                    let of = |operand: u32| slots[w[operand as usize] as usize];
                    [w[DOT_CELL as usize], of(DOT_A), of(DOT_B), 0]
                })
                .collect();
            let at_dots = self.append(&list);
            let basis = e.op(op, OP_BASIS);
            let columns = self.columns.get(basis as usize).cloned().unwrap_or_default();
            let at_columns = self.append(&columns);
            let [at_plan, count, next] = self.plan(op);
            let adds = if e.op(op, OP_ADD) != 0 { H_ADDS } else { 0 };
            records.push([
                kind | e.op(op, OP_SECTION) << 8,
                term_count,
                first_term as u32,
                dots,
                at_dots,
                e.op(op, OP_X),
                e.op(op, OP_Y),
                e.op(op, OP_MATRIX),
                reads,
                writes,
                at_plan,
                count,
                next,
                e.op(op, OP_COLUMNS),
                at_columns,
                e.op(op, OP_H) | adds,
            ]);
        }
        args.terms = terms.len() as u32 / 8;
        terms.extend([0; 8]); // read ahead of
        args.at_terms = self.append(&terms);
        for record in &mut records {
            record[2] = args.at_terms + record[2] * 8;
        }
        args.at_ops = self.append(&records.concat());
        debug_assert_eq!(records.len() * OP_RECORD, self.table.len() - args.at_ops as usize);
    }

    /// The chunks of the instructions after an operation and before the next: where they are, how many, and the next operation.
    fn plan(&mut self, op: u32) -> [u32; 3] {
        let e = self.e;
        let (first, count_cells, word) = (e.cells.start, e.cells.end - e.cells.start, size_of::<T>() as u32);
        let code = |op: u32, at: u32, count: u32| words(e, op, at, e.op(op, count) * INSTR_WORDS);
        let after = code(op, OP_AFTER, OP_AFTER_COUNT);
        let Some(mut list) = chunks(after) else { return [0, NONE, NONE] };
        let alone = list.len();
        let mut next = successor(e, op);
        if next != NONE {
            let before = code(next & !NEXT_WRAPS, OP_BEFORE, OP_BEFORE_COUNT);
            // At the end of a pass a watched program may end between the two.
            let both = if next & NEXT_WRAPS == 0 {
                chunks(&[after, before].concat())
            } else {
                chunks(before)
                    .filter(|more| more.iter().all(|chunk| chunk.special.is_none()))
                    .map(|more| list.iter().cloned().chain(more).collect())
            };
            match both {
                Some(both) => list = both,
                None => next = NONE,
            }
        }
        let mut records = Vec::new();
        for chunk in &list {
            let (count, steps, instructions) = chunk.words(|cell| (cell - first) * word, count_cells * word);
            let at = self.append(&instructions.concat());
            let special = chunk.special.map_or(NONE, |place| {
                let behind = e.op(op, OP_AFTER_COUNT);
                if place < behind {
                    e.op(op, OP_AFTER) + place * INSTR_WORDS
                } else {
                    e.op(next & !NEXT_WRAPS, OP_BEFORE) + (place - behind) * INSTR_WORDS
                }
            });
            records.extend([at, count, steps, special]);
        }
        [self.append(&records), list.len() as u32 | (alone as u32) << 16, next]
    }
}

/// The operation whose sweep follows that of `op` where nothing is decided, with [`NEXT_WRAPS`] where a pass through `each` ends
/// between; `NONE` where that takes more than going on: what follows touches no vector, or nothing follows.
fn successor<T>(e: &Encoded<T>, op: u32) -> u32 {
    let next = if e.op(op, OP_LAST) != 0 { e.op(op, OP_NEXT_OP) } else { op + 1 };
    if next == NONE || e.is_scalar(next) {
        return NONE;
    }
    let wraps = e.op(op, OP_LAST) != 0 && e.op(op, OP_SECTION) == SECTION_EACH;
    if wraps { next | NEXT_WRAPS } else { next }
}
