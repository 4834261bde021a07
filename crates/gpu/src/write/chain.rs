//! The code evaluated between one operation and the next.
use super::text::Text;
use super::{Writer, list};
use lacuna_engine::encode::*;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum operations in a chain of instructions; the rest is left to the interpreter.
const DEEPEST: usize = 4;
/// Maximum segments for which operands are prefetched while sums are exchanged; with more, the two compete
/// for bandwidth.
pub(super) const AHEAD: usize = 128;

impl Writer<'_> {
    /// The code after operation `op`, whose sums are in `sums`; `before` is an operation that deferred its
    /// sums to this one.
    pub(super) fn chain(&self, t: &mut Text, op: u32, sums: &[u32], before: Option<u32>) -> Chain {
        if self.is_rare(op) {
            let op = t.hole(op);
            return Chain::Code {
                text: format!("            next[0] = NEXT_DONE | {op};\n"),
                preload: Preload::default(),
                reads: BTreeSet::new(),
            };
        }
        let known = sums.iter().enumerate().map(|(k, c)| (*c, format!("s{k}"))).collect();
        let (h, columns) = (self.e.op(op, OP_H), self.e.op(op, OP_COLUMNS));
        let projects = self.e.op(op, OP_KIND) == KIND_BASIS_DOT;
        let mut c = Code {
            writer: self,
            t,
            known,
            preload: Preload::default(),
            text: String::new(),
            reads: BTreeSet::new(),
            changed: projects.then_some(h..h + columns).into_iter().collect(),
            temps: 0,
            counted: false,
            decided: false,
            op,
            early: String::new(),
            rotated: None,
            empty: true,
        };
        if let Some(before) = before {
            c.instructions(before, OP_AFTER, OP_AFTER_COUNT);
        }
        c.after(op, 0);
        let Code { text, preload, reads, empty, early, .. } = c;
        t.early = early;
        match (empty, self.follower_is_plain(op)) {
            (true, Some(next)) => Chain::Nothing(t.hole(next)),
            _ => Chain::Code {
                text: format!("            do {{\n{text}            }} while (0);\n"),
                preload,
                reads,
            },
        }
    }

    /// Whether the code after an operation is left to the interpreter: instructions without generated code,
    /// the end of the program, and what happens once in a solve when the iteration needs the registers.
    fn is_rare(&self, op: u32) -> bool {
        let rare = [CODE_CONFIRM, CODE_BACK_SUBSTITUTE, CODE_ONLY_IF];
        let ends = self.e.op(op, OP_LAST) == 1 && self.e.op(op, OP_NEXT) == SECTION_STOPPED;
        let full = !self.shape.streaming && self.shape.segments > AHEAD && self.e.bases.is_empty();
        let left = ends || full && !self.is_each(op);
        left || list(self.e, op, OP_AFTER, OP_AFTER_COUNT, INSTR_WORDS).any(|w| rare.contains(&w[0]))
    }

    /// The next operation, if there is no code in between.
    fn follower_is_plain(&self, op: u32) -> Option<u32> {
        let next = self.next_of(op);
        (next != NONE && !self.e.is_scalar(next) && self.e.op(next, OP_BEFORE_COUNT) == 0).then_some(next)
    }
}

/// Values loaded before formulas are evaluated.
#[derive(Default)]
pub(super) struct Preload {
    declared: String,
    /// By the work-item that evaluates: others could read what it overwrites.
    by_first: String,
    by_all: String,
}

impl Preload {
    fn take(&mut self, kind: &str, name: &str, value: &str) {
        self.declared += &format!("        {kind} {name};\n");
        self.by_first += &format!("            {name} = {value};\n");
    }
    /// `together`: a barrier follows before anything is evaluated, so all work-items may load, which is
    /// faster.
    pub(super) fn text(&self, together: bool) -> String {
        let Preload { declared, by_first, by_all } = self;
        match together || by_first.is_empty() {
            true => format!("{declared}{by_first}{by_all}"),
            false => format!("{declared}        if (ITEM == 0) {{\n{by_first}        }}\n{by_all}"),
        }
    }
}

/// What happens between two operations.
pub(super) enum Chain {
    /// Nothing: the next operation.
    Nothing(String),
    /// Code of the first work-item, and the cells it reads; an empty set means it may read any.
    Code { text: String, preload: Preload, reads: BTreeSet<u32> },
}

/// Number of leading instructions that add consecutive cells to consecutive cells: a vector addition.
fn additions(code: &[&[u32]]) -> usize {
    let adds = |w: &[u32], i: u32| {
        let [dst, a, b] = [INSTR_DST, INSTR_A, INSTR_B].map(|at| w[at as usize]);
        let first = code[0];
        w[0] == CODE_ADD
            && a == dst
            && dst == first[INSTR_DST as usize] + i
            && b == first[INSTR_B as usize] + i
    };
    let apart = |count: usize| {
        let [dst, b] = [INSTR_DST, INSTR_B].map(|at| code[0][at as usize]);
        dst.abs_diff(b) as usize >= count
    };
    let count = (0..).zip(code).take_while(|(i, w)| adds(w, *i)).count();
    if apart(count) { count } else { 0 }
}

/// Instructions as text.
struct Code<'w, 'a> {
    writer: &'w Writer<'a>,
    t: &'w mut Text,
    /// The name of a cell's value, if it has one.
    known: BTreeMap<u32, String>,
    preload: Preload,
    text: String,
    reads: BTreeSet<u32>,
    /// Cells changed by something other than a plain instruction.
    changed: Vec<std::ops::Range<u32>>,
    temps: usize,
    /// Whether an iteration has been counted already.
    counted: bool,
    /// Whether an earlier instruction may have ended the chain.
    decided: bool,
    /// The operation that precedes this code.
    op: u32,
    /// Code that can run before all else.
    early: String,
    /// The cell of the squared residual that the last rotation computed, and its name.
    rotated: Option<(u32, String)>,
    empty: bool,
}

impl Code<'_, '_> {
    fn line(&mut self, line: &str) {
        self.empty = false;
        self.text += &format!("            {line}\n");
    }
    fn place(&mut self, cell: u32) -> String {
        self.t.hole(cell - self.writer.e.cells.start)
    }
    fn leave(&mut self, how: &str, op: u32) {
        let op = self.t.hole(op);
        self.decided = true;
        self.line(&format!("next[0] = {how}{op}; break;"));
    }

    fn value(&mut self, cell: u32) -> String {
        if let Some(known) = self.known.get(&cell) {
            return known.clone();
        }
        self.reads.insert(cell);
        self.temps += 1;
        let (name, place) = (format!("r{}", self.temps), self.place(cell));
        if self.changed.iter().any(|run| run.contains(&cell)) {
            self.line(&format!("const number {name} = CELL({place});"));
        } else {
            self.preload.take("number", &name, &format!("CELL({place})"));
        }
        self.known.insert(cell, name.clone());
        name
    }

    fn set(&mut self, cell: u32, value: &str) {
        self.temps += 1;
        let (name, place) = (format!("t{}", self.temps), self.place(cell));
        self.line(&format!("const number {name} = {value}; CELL({place}) = {name};"));
        self.known.insert(cell, name);
    }

    fn test(&mut self, test: u32, a: u32, b: u32) -> String {
        match test {
            TEST_ALWAYS => "true".into(),
            TEST_LESS_EQUAL => format!("RE({}) <= RE({})", self.value(a), self.value(b)),
            TEST_GREATER => format!("RE({}) > RE({})", self.value(a), self.value(b)),
            TEST_NOT_POSITIVE => format!("!(RE({}) > (real)0)", self.value(a)),
            TEST_NOT_FINITE => format!("!is_finite({})", self.value(a)),
            _ => format!("is_zero({})", self.value(a)),
        }
    }

    /// The instructions after an operation, then the transition to the next one.
    fn after(&mut self, op: u32, depth: usize) {
        if self.instructions(op, OP_AFTER, OP_AFTER_COUNT) {
            self.go_on(op, depth);
        }
    }

    fn go_on(&mut self, op: u32, depth: usize) {
        let (e, next) = (self.writer.e, self.writer.next_of(op));
        if next == NONE {
            return self.leave("NEXT_HALT | ", op); // unreachable: the interpreter ends programs
        }
        if e.op(op, OP_LAST) == 1 && !self.writer.is_each(op) {
            self.line(&format!("s.p.control[LACUNA_CONTROL_SECTION] = {};", e.op(op, OP_NEXT)));
        }
        let code: Vec<&[u32]> = list(e, next, OP_BEFORE, OP_BEFORE_COUNT, INSTR_WORDS).collect();
        let plain = |w: &&[u32]| w[0] < CODE_STOP || w[0] == CODE_ONLY_IF;
        let rare = e.is_scalar(next) && self.writer.is_rare(next);
        if depth >= DEEPEST || rare || !code.iter().all(plain) {
            return self.leave("NEXT_ENTER | ", next);
        }
        for w in code {
            if w[0] == CODE_ONLY_IF {
                let test = self.test(w[INSTR_DST as usize], w[INSTR_A as usize], w[INSTR_B as usize]);
                self.line(&format!("if (!({test})) {{"));
                let known = self.known.clone();
                self.go_on(next, depth + 1);
                self.known = known;
                self.line("}");
            } else {
                self.plain(w);
            }
        }
        if e.is_scalar(next) {
            self.after(next, depth + 1);
        } else {
            let empty = self.empty;
            self.leave("", next);
            self.empty = empty;
        }
    }

    fn plain(&mut self, w: &[u32]) {
        let (dst, a) = (w[INSTR_DST as usize], w[INSTR_A as usize]);
        let u = self.value(a);
        let value = match w[0] {
            CODE_COPY => u,
            CODE_NEG => format!("-{u}"),
            CODE_CONJ => format!("conjugate({u})"),
            CODE_SQRT => format!("root({u})"),
            code => {
                let v = self.value(w[INSTR_B as usize]);
                match code {
                    CODE_ADD => format!("{u} + {v}"),
                    CODE_SUB => format!("{u} - {v}"),
                    CODE_MUL => format!("times({u}, {v})"),
                    CODE_DIV => format!("quotient({u}, {v})"),
                    _ => format!("RE({u}) >= RE({v}) ? {u} : {v}"),
                }
            }
        };
        self.set(dst, &value);
    }

    /// Instructions in order; `false` if the last one leaves the chain for good.
    fn instructions(&mut self, op: u32, at: u32, count: u32) -> bool {
        let e = self.writer.e;
        let code: Vec<&[u32]> = list(e, op, at, count, INSTR_WORDS).collect();
        let mut done = 0;
        while let Some(w) = code.get(done) {
            let run = additions(&code[done..]);
            done += run.max(1);
            if run > 1 {
                self.add_run(w, run as u32);
                continue;
            }
            let word = |at: u32| w[at as usize];
            let (dst, a, b) = (word(INSTR_DST), word(INSTR_A), word(INSTR_B));
            match w[0] {
                CODE_STOP => {
                    let test = self.test(dst, a, b);
                    let (reason, soft) = (word(INSTR_C), word(INSTR_D));
                    self.line(&format!("if ({test}) {{ stop(s.p.control, {reason}, {soft});"));
                    self.leave("NEXT_HALT | ", op);
                    self.line("}");
                }
                CODE_LEAVE => {
                    let test = self.test(dst, a, b);
                    self.line(&format!("if ({test}) {{ s.p.control[LACUNA_CONTROL_LEFT] = 1;"));
                    self.leave("NEXT_HALT | ", op);
                    self.line("}");
                    if dst == TEST_ALWAYS {
                        return false;
                    }
                }
                CODE_COUNT => {
                    let rr = self.value(dst);
                    let count = match std::mem::replace(&mut self.counted, true) {
                        true => "count_ahead(&s)",
                        false => {
                            self.preload.take("Count", "counted", "count_ahead(&s)");
                            "counted"
                        }
                    };
                    self.line(&format!("if (count_resident(&s, {count}, {rr})) {{"));
                    self.leave("NEXT_HALT | ", op);
                    self.line("}");
                }
                CODE_ROTATE => {
                    self.rotate(w);
                    let m = word(INSTR_DST);
                    self.forget(&[
                        (word(INSTR_A), m * (m + 1)),
                        (b, 2 * m),
                        (word(INSTR_C), m + 1),
                        (word(INSTR_E), 1),
                        (word(INSTR_G), 1),
                    ]);
                    self.known.extend(self.rotated.take());
                }
                _ => self.plain(w),
            }
        }
        true
    }

    /// Adds `count` consecutive cells.
    fn add_run(&mut self, w: &[u32], count: u32) {
        let (dst, b) = (w[INSTR_DST as usize], w[INSTR_B as usize]);
        let [to, from] = [dst, b].map(|cell| self.place(cell));
        let all = self.t.hole(count);
        self.line(&format!("add_run(local_cells + {to}, local_cells + {from}, {all});"));
        self.reads.extend((dst..dst + count).chain(b..b + count));
        self.forget(&[(dst, count)]);
    }

    /// The rotations of a column. Earlier rotations are applied while sums are exchanged, if they do not
    /// depend on these sums.
    fn rotate(&mut self, w: &[u32]) {
        let word = |at: u32| w[at as usize];
        let (m, j, rr) = (word(INSTR_DST), word(INSTR_F), word(INSTR_G));
        let first = word(INSTR_A) + j * (m + 1);
        let column = first..first + j + 1;
        let combines = self.writer.e.op(self.op, OP_KIND) == KIND_BASIS_AXPY && !self.writer.shape.streaming;
        let settled = combines
            && !self.decided
            && !self.known.keys().any(|cell| column.contains(cell))
            && !self.changed.iter().any(|run| run.start < column.end && column.start < run.end);
        let b = self.value(first + j + 1);
        let [h, rotations] = [INSTR_A, INSTR_B].map(|at| self.place(word(at)));
        let [size, step] = [m, j].map(|v| self.t.hole(v));
        let turn = |to: &str| format!("turn_resident(local_cells, {size}, {h}, {rotations}, {step}, {to})");
        if settled {
            self.early +=
                &format!("        if (TURNS_AHEAD) s.got[TURNED] = {};\n", turn("s.got + TURNED_COLUMN"));
            let [column, step] = [self.place(first), self.t.hole(j)];
            self.preload.take("number", "turned", "s.got[TURNED]");
            self.preload.by_all += &format!("        keep_turned(&s, local_cells + {column}, {step});\n");
        } else {
            let column = self.place(first);
            self.line(&format!("const number turned = {};", turn(&format!("local_cells + {column}"))));
        }
        let [h, rotations, g, used] = [INSTR_A, INSTR_B, INSTR_C, INSTR_E].map(|at| self.place(word(at)));
        let [size, step] = [m, j].map(|v| self.t.hole(v));
        let place = self.place(rr);
        self.temps += 1;
        let name = format!("t{}", self.temps);
        self.line(&format!(
            "const number {name} = rotate_resident(local_cells, {size}, {h}, {rotations}, {g}, {used}, {step}, {place}, \
             turned, {b});"
        ));
        self.rotated = Some((rr, name));
    }

    /// Forgets the names of cells that more than a plain instruction has changed: they are read again.
    fn forget(&mut self, runs: &[(u32, u32)]) {
        self.changed.extend(runs.iter().map(|(first, count)| *first..first + count));
        self.known.retain(|cell, _| !self.changed.iter().any(|run| run.contains(cell)));
    }
}
