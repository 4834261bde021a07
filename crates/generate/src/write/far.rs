//! The operations of a kernel whose vectors stay in memory: a warp takes whole segments, eight rows to a lane.
use super::text::Text;
use super::{Deferred, Product, Sweep, Writer};
use crate::slices::Slices;
use lacuna_core::Scalar;
use lacuna_core::encode::*;

impl<T: Scalar> Writer<'_, T> {
    pub(super) fn far_block(&self, sweep: &Sweep, deferred: &mut Option<Deferred>) -> Text {
        let (e, op) = (self.e, sweep.op);
        let Sweep { slots, loads, stores, .. } = sweep;
        let mut t = Text::default();
        let field = |at| e.op(op, at);
        let name = |slot: u32| format!("m{slot}[r]");
        self.open_loop(&mut t, sweep);
        for (slot, v) in slots.iter().enumerate() {
            t.line(&format!("number m{slot}[PER];"));
            if loads.contains(&(slot as u32)) {
                let v = t.hole(*v);
                t.line(&format!("ROWS m{slot}[r] = LIVE(r) ? VECTOR(s.p, {v})[base + STEP * r] : ZERO;"));
            }
        }
        // Whether the product is in memory already.
        let mut there = false;
        match field(OP_KIND) {
            KIND_SPMV if self.multiplies_units(op) => {
                let what = if self.product(op) == Product::Stencil { "stencil" } else { "diagonals" };
                let (m, x) = (t.hole(field(OP_MATRIX)), t.hole(field(OP_X)));
                t.line(&format!("multiply_{what}(&s, {m}, VECTOR(s.p, {x}), unit, m0);"));
            }
            KIND_SPMV => {
                let y = t.hole(field(OP_Y));
                t.line(&format!("ROWS m0[r] = LIVE(r) ? VECTOR(s.p, {y})[base + STEP * r] : ZERO;"));
                there = !self.rewrites(op, 0);
            }
            KIND_BASIS_AXPY => {
                let w = t.hole(field(OP_Y));
                t.line(&format!("ROWS m0[r] = LIVE(r) ? VECTOR(s.p, {w})[base + STEP * r] : ZERO;"));
                let basis = field(OP_BASIS);
                let (h, columns) = (t.hole(field(OP_H) - e.cells.start), t.hole(field(OP_COLUMNS)));
                t.line(&format!(
                    "combine_far(&s, basis{basis}, stride{basis}, near_cells + {h}, \
                     {columns}, {}, unit, m0);",
                    field(OP_ADD)
                ));
            }
            KIND_BASIS_DOT => {
                let w = t.hole(field(OP_Y));
                let basis = field(OP_BASIS);
                let columns = t.hole(field(OP_COLUMNS));
                t.line("const uint part = unit % parts;");
                let slot = deferred.as_ref().map_or(0, |d| d.cells.len());
                t.line(&format!(
                    "project_far(&s, basis{basis}, stride{basis}, {slot}, {columns}, \
                     part, parts, segment, VECTOR(s.p, {w}));"
                ));
            }
            _ => {}
        }
        self.updates(&mut t, op, &name);
        for slot in stores.iter().filter(|slot| !(there && **slot == 0)) {
            let v = t.hole(slots[*slot as usize]);
            t.line(&format!("ROWS if (LIVE(r)) VECTOR(s.p, {v})[base + STEP * r] = m{slot}[r];"));
        }
        self.sums(&mut t, op, &name, deferred);
        t
    }

    /// How the matrix of a product is multiplied.
    fn product(&self, op: u32) -> Product {
        self.shape.products[self.e.op(op, OP_MATRIX) as usize]
    }

    /// Whether a product is computed where the pass uses it, unit by unit.
    fn multiplies_units(&self, op: u32) -> bool {
        matches!(self.product(op), Product::Diagonals | Product::Stencil)
    }

    /// Whether an operation computes a slot anew.
    fn rewrites(&self, op: u32, slot: u32) -> bool {
        let e = self.e;
        let mut at = e.op(op, OP_UPDATES) as usize;
        (0..e.op(op, OP_UPDATE_COUNT)).any(|_| {
            let dst = e.words[at];
            at += (UPDATE_WORDS + e.words[at + 1] * TERM_WORDS) as usize;
            dst == slot
        })
    }

    /// The head of the loop over the segments of a warp.
    fn open_loop(&self, t: &mut Text, sweep: &Sweep) {
        let (e, op) = (self.e, sweep.op);
        // What other groups may still read of an operand, and what they have not yet seen of it.
        let writes = sweep.stores.iter().any(|slot| self.operands.contains(&sweep.slots[*slot as usize]));
        if writes {
            t.line("if (state.reads) meet_groups(&s, &state);");
        }
        if e.op(op, OP_KIND) == KIND_SPMV {
            t.line("if (state.dirty) meet_groups(&s, &state);");
            t.line("state.reads += 1;");
            let m = e.op(op, OP_MATRIX);
            let (lanes, product) = (self.shape.lanes[m as usize], self.product(op));
            let [m, x, y] = [m, e.op(op, OP_X), e.op(op, OP_Y)].map(|v| t.hole(v));
            let vectors = format!("VECTOR(s.p, {x}), VECTOR(s.p, {y})");
            match product {
                Product::Rows => t.line(&format!("product_rows(&s, {m}, {lanes}, {vectors});")),
                Product::Slices(Slices { run, twice, sorted, apart, .. }) => {
                    let ([twice, sorted], apart) = ([twice, sorted].map(u32::from), apart as u32);
                    t.line(&format!(
                        "product_slices(&s, {m}, {lanes}, {twice}, {run}, {sorted}, {apart}, {vectors});"
                    ));
                }
                Product::Sell => t.line(&format!("product_sell(&s, {m}, {vectors});")),
                Product::Diagonals | Product::Stencil => {}
            }
        }
        if writes {
            t.line("state.dirty = true;");
        }
        // A projection has work for more warps than there are segments.
        match e.op(op, OP_KIND) {
            KIND_BASIS_DOT => {
                t.line("MEET();"); // others may have written what a warp reads
                t.line("const uint parts = max(WARPS / s.mine, 1u);");
                t.line("for (uint unit = WARP; unit < s.mine * parts; unit += WARPS) {");
                t.line("const uint segment = s.from + unit / parts;");
            }
            _ => {
                t.line("for (uint unit = s.from * SHARE + WARP; unit < (s.from + s.mine) * SHARE; unit += WARPS) {");
                t.line("const uint base = BASE(unit);");
            }
        }
    }
}
