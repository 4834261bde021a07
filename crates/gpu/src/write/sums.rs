//! The sums of an operation: sent to the other work-groups, waited for, and stored in cells.
use super::chain::{AHEAD, Chain, Preload};
use super::text::Text;
use super::{Deferred, Writer, list};
use lacuna_engine::encode::*;
use std::collections::BTreeSet;

/// Maximum words of an exchange that one lane polls at once: the length of the array in `collect_chunk` of
/// exchange.cl, which has a constant of the same name.
const FEW_WORDS: usize = 16;
/// Maximum chunks that `last_sum` of exchange.cl supports.
const LAST_CHUNKS: usize = 8;
/// Work-items of a warp.
const WARP: usize = 32;

/// How the sums of an operation are collected.
#[derive(Clone, Copy, PartialEq)]
enum Collect {
    /// Each of the first work-items waits for all of them by itself.
    Alone,
    /// By one warp for each sum and chunk, all at once.
    AtOnce,
    /// Through the work area of the work-group.
    Streaming,
    /// Through the buffer of received sums of the work-group.
    Resident,
}

impl Writer<'_> {
    /// The sums of an operation, the formulas that follow, and the choice of the next operation.
    pub(super) fn sums(
        &self,
        t: &mut Text,
        op: u32,
        name: &dyn Fn(u32) -> String,
        deferred: &mut Option<Deferred>,
    ) {
        let e = self.e;
        let projects = e.op(op, OP_KIND) == KIND_BASIS_DOT;
        let columns = if projects { e.op(op, OP_COLUMNS) } else { 0 };
        let before = deferred.take();
        let (mut cells, mut maxima) =
            before.as_ref().map_or((Vec::new(), 0), |d| (d.cells.clone(), d.maxima));
        maxima |= self.maxima(op, cells.len());
        let dots = self.send_dots(t, op, name, cells.len(), before.is_some());
        cells.extend(dots);
        if projects && !self.shape.streaming {
            self.send_columns(t, op, cells.len());
        }
        let slot = cells.len() + columns as usize;
        self.sums.set(self.sums.get().max(slot));
        if !projects && before.is_none() && self.leaves_sums(op) {
            *deferred = Some(Deferred { cells, maxima, op });
            let next = t.hole(self.next_of(op));
            t.line(&format!("op = {next};"));
            return;
        }
        let chain = self.chain(t, op, &cells, before.map(|d| d.op));
        if slot == 0 {
            return without_sums(t, chain);
        }
        let (text, preload, reads) = match chain {
            Chain::Nothing(next) => {
                (format!("            next[0] = {next};\n"), Preload::default(), BTreeSet::new())
            }
            Chain::Code { text, preload, reads } => (text, preload, reads),
        };
        let total = match projects {
            true => {
                let columns = t.hole(columns);
                format!("{} + {columns}", cells.len())
            }
            false => slot.to_string(),
        };
        let way = self.way(projects, slot);
        // Values that the formulas read are loaded while the sums are exchanged.
        t.text += &preload.text(way != Collect::Alone);
        match way {
            Collect::Alone => {
                t.line(&format!("number sums[{slot}];"));
                t.line(&format!("collect_first(&s, &state, {slot}, sums, {maxima}u);"));
            }
            Collect::AtOnce => {
                t.line(&format!("collect_few(&s, &state, {total}, {}, {maxima}u);", cells.len()))
            }
            Collect::Streaming => {
                t.line(&format!("collect_streaming(&s, &state, {total}, {}, {maxima}u);", cells.len()))
            }
            Collect::Resident => t.line(&format!("collect(&s, &state, {total}, {maxima}u);")),
        }
        self.fetch_ahead(t, op);
        if projects {
            self.put_columns(t, op, cells.len(), &reads);
        }
        t.line("if (ITEM == 0) {");
        self.put_cells(t, &cells, maxima, way);
        t.text += &text;
        t.line("}");
        t.line("BARRIER();");
        t.line("op = next[0];");
    }

    /// The sums of an operation that are maxima, one bit each, if its sums are those from `first` on.
    fn maxima(&self, op: u32, first: usize) -> u32 {
        let (dots, maxima) = (self.e.op(op, OP_DOT_COUNT), self.e.op(op, OP_MAXIMA));
        (dots - maxima..dots).fold(0, |bits, d| bits | 1 << (first as u32 + d))
    }

    /// Sends the dot products of an operation, as sums from `first` on; returns their cells.
    fn send_dots(
        &self,
        t: &mut Text,
        op: u32,
        name: &dyn Fn(u32) -> String,
        first: usize,
        behind: bool,
    ) -> Vec<u32> {
        let maxima = self.maxima(op, 0);
        let is_maximum = |d: usize| maxima != 0 && maxima >> d & 1 == 1;
        let dots: Vec<(u32, String)> = list(self.e, op, OP_DOTS, OP_DOT_COUNT, DOT_WORDS)
            .enumerate()
            .map(|(d, w)| {
                let [a, b] = [DOT_A, DOT_B].map(|at| name(w[at as usize]));
                let term = match w[DOT_FACTOR as usize] {
                    _ if is_maximum(d) => format!("square({a})"),
                    NONE => format!("dot_term({a}, {b})"),
                    factor => format!("dot_term({a}, times({}, {b}))", name(factor)),
                };
                (w[DOT_CELL as usize], term)
            })
            .collect();
        let mut slot = first;
        if self.shape.streaming {
            for (d, (_, term)) in dots.iter().enumerate() {
                t.line(&format!(
                    "{{ number e[PER]; ROWS e[r] = LIVE(r) ? {term} : ZERO; keep_sum(&s, {slot}, unit, e, {}); }}",
                    is_maximum(d)
                ));
                slot += 1;
            }
            t.line("}");
        }
        for batch in dots.chunks(self.shape.work.max(1)).filter(|_| !self.shape.streaming) {
            if slot > first || behind {
                t.line("BARRIER();");
            }
            t.line("if (ITEM < span) {");
            for (k, (_, term)) in batch.iter().enumerate() {
                t.line(&format!("    s.work[{k} * span + ITEM] = own ? {term} : ZERO;"));
            }
            t.line("}");
            let maxima = if maxima == 0 { 0 } else { maxima >> (slot - first) };
            t.line(&format!("send(&s, &state, {slot}, {}, {maxima}u);", batch.len()));
            slot += batch.len();
        }
        dots.into_iter().map(|(cell, _)| cell).collect()
    }

    /// Sends the dot products of a projection with its columns, as sums from `slot` on.
    fn send_columns(&self, t: &mut Text, op: u32, slot: usize) {
        let w = self.at_home(t, self.e.op(op, OP_Y));
        t.line("BARRIER();");
        t.line(&format!("if (ITEM < span) s.work[ITEM] = own ? {w} : ZERO;"));
        let (basis, columns) = (self.e.op(op, OP_BASIS), t.hole(self.e.op(op, OP_COLUMNS)));
        t.line(&format!("send_columns(&s, &state, basis{basis}, stride{basis}, {slot}, {columns});"));
    }

    fn way(&self, projects: bool, sums: usize) -> Collect {
        let shape = &self.shape;
        // Large work-groups have few registers to spare.
        let few = if shape.size > 256 { FEW_WORDS / 2 } else { FEW_WORDS };
        let chunks = shape.chunks;
        match (shape.streaming, projects) {
            (false, false) if sums * shape.words <= few => Collect::Alone,
            (true, false) if chunks <= LAST_CHUNKS && sums * chunks <= shape.size / WARP => Collect::AtOnce,
            (true, _) => Collect::Streaming,
            (false, _) => Collect::Resident,
        }
    }

    /// While the first work-items wait and evaluate, the others prefetch the operand of the next operation.
    fn fetch_ahead(&self, t: &mut Text, op: u32) {
        let shape = &self.shape;
        let ahead = |m: &u32| !shape.streaming && shape.fits[*m as usize] && shape.segments <= AHEAD;
        if let Some(m) = self.next_matrix(op).filter(ahead) {
            let m = t.hole(m);
            t.line(&format!("if (state.shown != LACUNA_NONE) fetch_ahead(&s, &state, {m});"));
        }
    }

    /// Stores the sums of a projection, from `at` on, in their cells.
    fn put_columns(&self, t: &mut Text, op: u32, at: usize, reads: &BTreeSet<u32>) {
        let (h, columns) = (self.e.op(op, OP_H), self.e.op(op, OP_COLUMNS));
        let (count, first) = (t.hole(columns), t.hole(h - self.e.cells.start));
        t.line(&format!("for (uint d = ITEM; d < {count}; d += SIZE)"));
        t.line(&match self.shape.streaming {
            true => format!("    CELL({first} + d) = s.work[{at} + d];"),
            false => {
                format!(
                    "    CELL({first} + d) = last_sum(s.got + ({at} + d) * chunks_of(&s), chunks_of(&s), false);"
                )
            }
        });
        if reads.is_empty() || reads.iter().any(|c| (h..h + columns).contains(c)) {
            t.line("BARRIER();");
        }
    }

    /// Stores sums in cells, and names them for the formulas.
    fn put_cells(&self, t: &mut Text, cells: &[u32], maxima: u32, way: Collect) {
        let chunks = self.shape.chunks;
        for (k, cell) in cells.iter().enumerate() {
            let place = t.hole(cell - self.e.cells.start);
            let maximum = maxima != 0 && maxima >> k & 1 == 1;
            let value = match way {
                Collect::AtOnce => format!("last_sum(s.work + {k} * {chunks}, {chunks}, {maximum})"),
                Collect::Streaming => format!("s.work[{k}]"),
                Collect::Alone => format!("sums[{k}]"),
                Collect::Resident => {
                    format!("last_sum(s.got + {k} * chunks_of(&s), chunks_of(&s), {maximum})")
                }
            };
            t.line(&format!("    const number s{k} = {value};"));
            t.line(&format!("    CELL({place}) = s{k};"));
        }
    }

    /// Whether the sums of an operation can be deferred to those of the next one, a projection: nothing
    /// before then depends on them.
    fn leaves_sums(&self, op: u32) -> bool {
        let e = self.e;
        if !self.is_each(op) || e.op(op, OP_LAST) == 1 || e.op(op, OP_DOT_COUNT) == 0 {
            return false;
        }
        let next = op + 1;
        if e.op(next, OP_KIND) != KIND_BASIS_DOT || e.op(next, OP_BEFORE_COUNT) > 0 {
            return false;
        }
        let (h, columns) = (e.op(next, OP_H), e.op(next, OP_COLUMNS));
        let sums = list(e, op, OP_DOTS, OP_DOT_COUNT, DOT_WORDS).map(|w| w[DOT_CELL as usize]);
        let code = list(e, op, OP_AFTER, OP_AFTER_COUNT, INSTR_WORDS);
        let mut plain = true;
        let named = code.flat_map(|w| {
            plain &= w[0] < CODE_STOP;
            [w[INSTR_DST as usize], w[INSTR_A as usize], w[INSTR_B as usize]]
        });
        let apart = sums.chain(named).all(|c| !(h..h + columns).contains(&c));
        plain && apart
    }
}

/// The code after an operation without sums.
fn without_sums(t: &mut Text, chain: Chain) {
    match chain {
        Chain::Nothing(next) => t.line(&format!("op = {next};")),
        Chain::Code { text, preload, .. } => {
            t.line("BARRIER();");
            t.line("if (ITEM == 0) {");
            t.text += &preload.text(true);
            t.text += &text;
            t.line("}");
            t.line("BARRIER();");
            t.line("op = next[0];");
        }
    }
}
