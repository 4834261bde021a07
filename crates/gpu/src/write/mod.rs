//! Writes the kernel of one program: its passes as expressions over registers, its formulas as plain
//! arithmetic.
//!
//! Each operation becomes a block of a switch; the functions that blocks call are in
//! `kernels-opencl/shared/resident.cl`. Operations whose blocks differ only in numbers (the steps of a GMRES
//! cycle) share one block, which reads the numbers from a table. The text contains no size and no address, so
//! one build serves every system that a method is recorded for.
use crate::slices::Slices;
use lacuna_engine::encode::{Encoded, *};
use lacuna_engine::lower::MOST_DOTS;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

mod chain;
mod frame;
mod resident;
mod streaming;
mod sums;
mod text;
use text::Text;

/// What the text depends on besides the program.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Work-items of a work-group.
    pub size: usize,
    /// Whether vectors are streamed from memory and a warp takes whole segments.
    pub streaming: bool,
    /// Whether a single work-group runs.
    pub one: bool,
    /// Chunks of 256 segments in a sum, or segments if a single work-group runs.
    pub chunks: usize,
    /// Segments of terms in local memory, for each segment of a work-group.
    pub work: usize,
    /// Whether vectors are stored in the narrower type.
    pub narrow: bool,
    /// Whether some sums are maxima.
    pub maxima: bool,
    /// Words that a work-item waits for, for each sum.
    pub words: usize,
    /// Lanes of each matrix that work in parallel.
    pub lanes: Vec<u32>,
    /// Lanes of each matrix that one work-item takes in turn.
    pub sums: Vec<u32>,
    /// Entries in one batch of a slice; a work-item has two batches in flight.
    pub depth: usize,
    /// How each matrix is multiplied when vectors are streamed.
    pub products: Vec<Product>,
    /// Whether the operand window of each matrix fits local memory.
    pub fits: Vec<bool>,
    /// For each repacked matrix, the number of rows that a lane of a work-item takes; 0 for others.
    pub steps: Vec<usize>,
    /// Maximum numbers that a work-item may keep in registers.
    pub registers: usize,
    /// Work-groups that share the rows of a segment, interleaved.
    pub ways: usize,
    /// Maximum segments of a work-group.
    pub mine: usize,
    /// Segments of the whole system.
    pub segments: usize,
    /// Warps that share a segment when vectors are streamed.
    pub share: usize,
    /// Percentage of the entries of matrices that should stay in the second-level cache; 100 if loads set no
    /// eviction policy.
    pub keep: usize,
    /// Entries of each matrix that a work-item keeps in registers, for each round over all rows; 0 for none.
    pub kept: Vec<usize>,
    /// Maximum entries of each matrix, padding included, that a work-group keeps in local memory.
    pub stay: Vec<usize>,
}

/// A product when vectors are streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// Compressed rows as stored.
    Rows,
    /// Repacked in slices.
    Slices(Slices),
    /// Sliced ELLPACK as stored.
    Sell,
    /// Diagonals as stored.
    Diagonals,
    /// The same coefficients all over a grid, for vectors of full length.
    Stencil,
    /// Coefficients on a grid, row by row.
    StencilRows,
    /// Interpolation between grids, row by row.
    Interpolation,
}

/// The generated kernel of a program.
pub struct Generated {
    /// The text that follows `resident.cl`.
    pub text: String,
    /// The parameters of the blocks, operation by operation.
    pub params: Vec<u32>,
    /// Maximum sums of one exchange.
    pub sums: usize,
}

/// Work-items of a warp, and numbers in a cache line.
const WARP: usize = 32;
const LINE: usize = 8;
/// Parameters of blocks that fit local memory, in words.
const RESIDENT_PARAMS: usize = 3072;

/// Bytes of local memory for the parameters of blocks; larger tables are read from global memory.
pub(crate) fn params_room(e: &Encoded) -> usize {
    if e.bases.is_empty() { 4 } else { 4 * RESIDENT_PARAMS }
}

/// Sums that an operation defers to the exchange of the next one.
#[derive(Clone, Debug, Default)]
struct Deferred {
    cells: Vec<u32>,
    /// Which of them are maxima, one bit each.
    maxima: u32,
    op: u32,
}

/// What an operation does to vectors.
struct Sweep {
    op: u32,
    /// The vector of each slot.
    slots: Vec<u32>,
    /// The slots that are loaded.
    loads: Vec<u32>,
    /// The slots that are stored.
    stores: Vec<u32>,
}

struct Writer<'a> {
    e: &'a Encoded,
    shape: &'a Shape,
    /// Vectors in registers.
    registers: BTreeSet<u32>,
    /// Vectors that products multiply.
    operands: BTreeSet<u32>,
    /// Lengths of vectors that are shorter than the longest.
    shorter: Vec<u32>,
    sums: Cell<usize>,
}

/// The words of a list of an operation.
fn list(e: &Encoded, op: u32, at: u32, count: u32, words: u32) -> impl Iterator<Item = &[u32]> {
    let start = e.op(op, at) as usize;
    e.words[start..start + (e.op(op, count) * words) as usize].chunks(words as usize)
}

/// Writes the kernel of a program; `None` if it cannot be generated.
pub fn write(e: &Encoded, shape: &Shape) -> Option<Generated> {
    // Sums are over the longest vectors: with shorter ones, a zero could get another sign. Bases are not
    // shorter either.
    let fits = |op| {
        let shorter = matches!(e.op(op, OP_KIND), KIND_SWEEP | KIND_SPMV) && e.op(op, OP_DOT_COUNT) == 0;
        e.is_scalar(op) || e.op(op, OP_N) == e.n || shorter && e.op(op, OP_N) > 0
    };
    if e.n == 0 || e.sections[2].is_empty() || !(0..e.ops()).all(fits) {
        return None;
    }
    // Maxima are named by bits of a word.
    if e.has_maxima() && (0..e.ops()).any(|op| e.op(op, OP_DOT_COUNT) as usize > MOST_DOTS) {
        return None;
    }
    if e.vectors.iter().any(|v| v.len > e.n as usize) {
        return None;
    }
    let operands =
        (0..e.ops()).filter(|op| e.op(*op, OP_KIND) == KIND_SPMV).map(|op| e.op(op, OP_X)).collect();
    let mut shorter = Vec::new();
    for v in e.vectors.iter().filter(|v| v.len < e.n as usize) {
        if !shorter.contains(&(v.len as u32)) {
            shorter.push(v.len as u32);
        }
    }
    let registers = registers(e, shape.registers);
    let writer = Writer { e, shape, registers, operands, shorter, sums: Cell::new(1) };
    Some(writer.kernel())
}

/// Rows that stay together when an operation over shorter vectors is divided: those of one slice of any
/// matrix with that many rows, and at least those that share a cache line.
pub(crate) fn run_of(e: &Encoded, lanes: &[u32], length: usize) -> usize {
    let of_length = e.matrices.iter().zip(lanes).filter(|(a, _)| a.rows == length);
    of_length.map(|(_, lanes)| WARP / *lanes as usize).max().unwrap_or(0).max(LINE)
}

/// The vectors used most in the iteration that are not columns of a basis, as many as fit.
pub(crate) fn registers(e: &Encoded, most: usize) -> BTreeSet<u32> {
    let column = |v: u32| {
        let v = e.vectors[v as usize];
        e.bases
            .iter()
            .any(|b| b.serial == v.serial && (b.first..b.first + b.columns as u32).contains(&v.slot))
    };
    let mut uses = BTreeMap::<u32, usize>::new();
    for op in e.sections[2].clone() {
        let slots = list(e, op, OP_SLOTS, OP_SLOT_COUNT, 1).map(|w| w[0]);
        let others = [OP_X, OP_Y].map(|field| e.op(op, field));
        for v in slots.chain(others).filter(|v| *v != NONE && !column(*v)) {
            *uses.entry(v).or_default() += 1;
        }
    }
    let mut order: Vec<_> = uses.into_iter().collect();
    order.sort_by_key(|(v, uses)| (std::cmp::Reverse(*uses), *v));
    order.into_iter().map(|(v, _)| v).take(most).collect()
}

impl Writer<'_> {
    fn kernel(&self) -> Generated {
        let e = self.e;
        let mut deferred = None;
        let blocks: Vec<Option<Text>> = (0..e.ops())
            .map(|op| if e.is_scalar(op) { None } else { Some(self.block(op, &mut deferred)) })
            .collect();
        let holes = |op: u32| blocks[op as usize].as_ref().map_or(&[][..], |b| &b.holes);
        // Operations with the same text share a block.
        let mut classes: Vec<(&str, Vec<u32>)> = Vec::new();
        for (op, block) in blocks.iter().enumerate() {
            let Some(block) = block else { continue };
            match classes
                .iter_mut()
                .find(|(text, ops)| *text == block.text && holes(ops[0]).len() == block.holes.len())
            {
                Some((_, ops)) => ops.push(op as u32),
                None => classes.push((&block.text, vec![op as u32])),
            }
        }
        let shared = classes.iter().any(|(_, ops)| ops.len() > 1);
        let mut bodies = [String::new(), String::new()];
        let mut records: Vec<Vec<u32>> = vec![vec![NONE]; e.ops() as usize];
        for (class, (text, ops)) in classes.iter().enumerate() {
            let first = holes(ops[0]);
            // A number that is the same everywhere becomes a literal; others get a place in the record.
            let mut places = Vec::new();
            let mut words = Vec::new();
            for (hole, value) in first.iter().enumerate() {
                if ops.iter().all(|op| holes(*op)[hole] == *value) {
                    places.push(format!("{value}u"));
                } else {
                    places.push(format!("q[{}]", words.len() + 1));
                    words.push(hole);
                }
            }
            for op in ops {
                let values = words.iter().map(|hole| holes(*op)[*hole]);
                records[*op as usize] = [class as u32].into_iter().chain(values).collect();
            }
            let label = if shared { class as u32 } else { ops[0] };
            let each = ops.iter().any(|op| self.is_each(*op));
            let text = text::fill(text, &places);
            let _ = match each {
                true => write!(
                    bodies[1],
                    "        if ($KIND == {label}u) {{\n$Q{text}        ran = true;$NEXT\n        }}\n"
                ),
                false => write!(
                    bodies[0],
                    "            case {label}: {{\n$Q{text}        ran = true;$NEXT\n            }} break;\n"
                ),
            };
        }
        let body = format!(
            "$OPEN        if (op < {}u) {{\n            switch ($KIND) {{\n{}            }}\n        }}\n{}",
            e.sections[2].start, bodies[0], bodies[1]
        );
        let stride = records.iter().map(Vec::len).max().unwrap_or(1);
        let params = records.into_iter().flat_map(|mut r| {
            r.resize(stride, 0);
            r
        });
        let run = |length: u32| run_of(e, &self.shape.lanes, length as usize) as u32;
        let params = params.chain(self.shorter.iter().flat_map(|length| [*length, run(*length)])).collect();
        Generated { text: self.frame(&body, shared, stride), params, sums: self.sums.get() }
    }

    /// The suffix of a group's variables for vectors of that length; empty for the longest.
    fn suffix(&self, length: u32) -> String {
        let shorter = self.shorter.iter().position(|n| *n == length);
        shorter.map_or(String::new(), |k| (k + 1).to_string())
    }
    /// The same for a vector.
    fn suffix_of(&self, v: u32) -> String {
        self.suffix(self.e.vectors[v as usize].len as u32)
    }
    /// Whether an operation goes over vectors that are shorter than the longest.
    fn is_shorter(&self, op: u32) -> bool {
        self.e.op(op, OP_N) < self.e.n
    }

    fn is_narrow(&self, v: u32) -> bool {
        self.e.vectors[v as usize].narrow
    }
    /// A vector in memory; `number` is the text of its index.
    fn stored(&self, v: u32, number: &str) -> String {
        format!("STORED(s.p, {number}, {})", u32::from(self.is_narrow(v)))
    }
    /// A value as the vector stores it.
    fn kept(&self, v: u32, value: String) -> String {
        if self.is_narrow(v) { format!("widened(narrowed({value}))") } else { value }
    }

    fn is_register(&self, v: u32) -> bool {
        self.registers.contains(&v)
    }

    /// The block of an operation. `deferred` holds the sums that the previous operation left to this one, and
    /// receives those that this one defers.
    fn block(&self, op: u32, deferred: &mut Option<Deferred>) -> Text {
        let e = self.e;
        let moved = |at, count| -> Vec<u32> {
            list(e, op, at, count, MOVE_WORDS).map(|w| w[MOVE_SLOT as usize]).collect()
        };
        let sweep = Sweep {
            op,
            slots: list(e, op, OP_SLOTS, OP_SLOT_COUNT, 1).map(|w| w[0]).collect(),
            loads: moved(OP_LOADS, OP_LOAD_COUNT),
            stores: moved(OP_STORES, OP_STORE_COUNT),
        };
        match self.shape.streaming {
            true => self.streaming_block(&sweep, deferred),
            false => self.resident_block(&sweep, deferred),
        }
    }

    fn updates(&self, t: &mut Text, op: u32, name: &dyn Fn(u32) -> String) {
        let e = self.e;
        let slots: Vec<u32> = list(e, op, OP_SLOTS, OP_SLOT_COUNT, 1).map(|w| w[0]).collect();
        let mut at = e.op(op, OP_UPDATES) as usize;
        let mut known = BTreeMap::<u32, String>::new();
        for _ in 0..e.op(op, OP_UPDATE_COUNT) {
            let (dst, terms) = (e.words[at], e.words[at + 1]);
            at += UPDATE_WORDS as usize;
            let mut sum: Option<String> = None;
            for _ in 0..terms {
                let w = &e.words[at..at + TERM_WORDS as usize];
                at += TERM_WORDS as usize;
                let v = name(w[TERM_SLOT as usize]);
                let factor = Some(w[TERM_FACTOR as usize]).filter(|f| *f != NONE).map(name);
                let kind = w[TERM_COEFFICIENT as usize];
                let minus = if kind == COEFFICIENT_MINUS_ONE { "-" } else { "" };
                let scaled = |v: &str| factor.as_ref().map_or(v.to_owned(), |f| format!("times({f}, {v})"));
                sum = Some(if kind == COEFFICIENT_CELL {
                    let cell = w[TERM_CELL as usize];
                    let c = known.entry(cell).or_insert_with(|| {
                        let place = t.hole(cell - e.cells.start);
                        let c = format!("c{}", t.names());
                        t.line(&format!("const number {c} = CELL({place});"));
                        c
                    });
                    match sum {
                        None => format!("times({c}, {})", scaled(&v)),
                        Some(s) => format!("multiply_add({c}, {}, {s})", scaled(&v)),
                    }
                } else {
                    match (sum, &factor) {
                        (None, _) => format!("{minus}{}", scaled(&v)),
                        (Some(s), None) if minus.is_empty() => format!("({s} + {v})"),
                        (Some(s), None) => format!("({s} - {v})"),
                        (Some(s), Some(f)) => format!("multiply_add({minus}{f}, {v}, {s})"),
                    }
                });
            }
            let rows = if self.shape.streaming && !self.is_shorter(op) { "ROWS " } else { "" };
            let value = self.kept(slots[dst as usize], sum.unwrap_or_else(|| "ZERO".into()));
            t.line(&format!("{rows}{} = {value};", name(dst)));
        }
    }

    /// The next operation of the iteration, if nothing is decided in between.
    fn next_of(&self, op: u32) -> u32 {
        if self.e.op(op, OP_LAST) == 1 { self.e.op(op, OP_NEXT_OP) } else { op + 1 }
    }

    /// The next operation of the iteration that has vectors, if nothing is decided in between.
    fn follower(&self, op: u32) -> Option<u32> {
        let mut at = self.next_of(op);
        for _ in 0..4 {
            if at == NONE || !self.e.is_scalar(at) {
                break;
            }
            at = self.next_of(at);
        }
        Some(at).filter(|at| self.is_each(op) && *at != NONE && self.is_each(*at))
    }

    fn is_each(&self, op: u32) -> bool {
        self.e.op(op, OP_SECTION) == SECTION_EACH
    }

    /// The operand of the next operation if it is a product.
    fn next_operand(&self, op: u32) -> Option<u32> {
        let next = self.follower(op)?;
        (self.e.op(next, OP_KIND) == KIND_SPMV).then(|| self.e.op(next, OP_X))
    }
    fn next_matrix(&self, op: u32) -> Option<u32> {
        let next = self.follower(op)?;
        let (x, stores) = (self.e.op(next, OP_X), list(self.e, op, OP_STORES, OP_STORE_COUNT, MOVE_WORDS));
        let slots: Vec<u32> = list(self.e, op, OP_SLOTS, OP_SLOT_COUNT, 1).map(|w| w[0]).collect();
        let mut stored = stores.map(|w| slots[w[MOVE_SLOT as usize] as usize]);
        (self.e.op(next, OP_KIND) == KIND_SPMV && stored.any(|v| v == x)).then(|| self.e.op(next, OP_MATRIX))
    }
}
