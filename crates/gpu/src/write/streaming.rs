//! The operations of a kernel that streams vectors: a warp takes whole segments, eight rows for each lane.
use super::text::Text;
use super::{Deferred, Product, Sweep, Writer};
use crate::slices::Slices;
use lacuna_engine::encode::*;

impl Writer<'_> {
    pub(super) fn streaming_block(&self, sweep: &Sweep, deferred: &mut Option<Deferred>) -> Text {
        let (e, op) = (self.e, sweep.op);
        let Sweep { slots, loads, stores, .. } = sweep;
        let mut t = Text::default();
        let field = |at| e.op(op, at);
        // In shorter vectors, a work-item takes one row at a time.
        let shorter = self.is_shorter(op);
        let name = |slot: u32| format!("m{slot}{}", if shorter { "" } else { "[r]" });
        let load = |t: &mut Text, slot: usize, v: u32| {
            let number = t.hole(v);
            let place = self.stored(v, &number);
            t.line(&match shorter {
                true => format!("m{slot} = GET({place}, row);"),
                false => format!("ROWS m{slot}[r] = LIVE(r) ? GET({place}, base + STEP * r) : ZERO;"),
            });
        };
        self.open_loop(&mut t, sweep);
        for (slot, v) in slots.iter().enumerate() {
            t.line(&format!("number m{slot}{};", if shorter { "" } else { "[PER]" }));
            if loads.contains(&(slot as u32)) {
                load(&mut t, slot, *v);
            }
        }
        // Whether the product is already in memory.
        let mut there = false;
        match field(OP_KIND) {
            KIND_SPMV if self.row_product(op).is_some() => {
                let what = self.row_product(op).unwrap_or_default();
                let (m, x) = (t.hole(field(OP_MATRIX)), t.hole(field(OP_X)));
                let x = self.stored(field(OP_X), &x);
                let of = self.suffix(field(OP_N));
                t.line(&match shorter {
                    true => format!("m0 = multiply_{what}_row(&s{of}, {m}, {x}, row);"),
                    false => format!(
                        "ROWS m0[r] = LIVE(r) ? multiply_{what}_row(&s, {m}, {x}, base + STEP * r) : ZERO;"
                    ),
                });
                self.keep_result(&mut t, slots[0], shorter);
            }
            KIND_SPMV if self.multiplies_units(op) => {
                let what = if self.product(op) == Product::Stencil { "stencil" } else { "diagonals" };
                let (m, x) = (t.hole(field(OP_MATRIX)), t.hole(field(OP_X)));
                let x = self.stored(field(OP_X), &x);
                t.line(&format!("multiply_{what}(&s, {m}, {x}, unit, m0);"));
                self.keep_result(&mut t, slots[0], false);
            }
            KIND_SPMV => {
                load(&mut t, 0, field(OP_Y));
                there = !self.rewrites(op, 0);
            }
            KIND_BASIS_AXPY => {
                load(&mut t, 0, field(OP_Y));
                let basis = field(OP_BASIS);
                let (h, columns) = (t.hole(field(OP_H) - e.cells.start), t.hole(field(OP_COLUMNS)));
                t.line(&format!(
                    "combine_streaming(&s, basis{basis}, stride{basis}, local_cells + {h}, \
                     {columns}, {}, unit, m0);",
                    field(OP_ADD)
                ));
                self.keep_result(&mut t, slots[0], false);
            }
            KIND_BASIS_DOT => {
                let w = t.hole(field(OP_Y));
                let basis = field(OP_BASIS);
                let columns = t.hole(field(OP_COLUMNS));
                let w = self.stored(field(OP_Y), &w);
                t.line("const uint part = unit % parts;");
                let slot = deferred.as_ref().map_or(0, |d| d.cells.len());
                t.line(&format!(
                    "project_streaming(&s, basis{basis}, stride{basis}, {slot}, {columns}, \
                     part, parts, segment, {w});"
                ));
            }
            _ => {}
        }
        self.updates(&mut t, op, &name);
        for slot in stores.iter().filter(|slot| !(there && **slot == 0)) {
            let v = slots[*slot as usize];
            let number = t.hole(v);
            let place = self.stored(v, &number);
            t.line(&match shorter {
                true => format!("PUT({place}, row, m{slot});"),
                false => format!("ROWS if (LIVE(r)) PUT({place}, base + STEP * r, m{slot}[r]);"),
            });
        }
        self.sums(&mut t, op, &name, deferred);
        t
    }

    /// The result in slot 0 is rounded to the type of its vector.
    fn keep_result(&self, t: &mut Text, v: u32, shorter: bool) {
        match (self.is_narrow(v), shorter) {
            (false, _) => {}
            (true, true) => t.line(&format!("m0 = {};", self.kept(v, "m0".into()))),
            (true, false) => t.line(&format!("ROWS m0[r] = {};", self.kept(v, "m0[r]".into()))),
        }
    }

    /// How the matrix of an operation is multiplied.
    fn product(&self, op: u32) -> Product {
        self.shape.products[self.e.op(op, OP_MATRIX) as usize]
    }

    /// Whether a product is computed inside the pass that uses it, unit by unit.
    fn multiplies_units(&self, op: u32) -> bool {
        matches!(self.product(op), Product::Diagonals | Product::Stencil)
    }

    /// The name of a product that is computed inside the pass that uses it, row by row.
    fn row_product(&self, op: u32) -> Option<&'static str> {
        match self.product(op) {
            Product::StencilRows => Some("stencil"),
            Product::Interpolation => Some("interpolation"),
            _ => None,
        }
    }

    /// Whether an operation overwrites a slot.
    fn rewrites(&self, op: u32, slot: u32) -> bool {
        let e = self.e;
        let mut at = e.op(op, OP_UPDATES) as usize;
        (0..e.op(op, OP_UPDATE_COUNT)).any(|_| {
            let dst = e.words[at];
            at += (UPDATE_WORDS + e.words[at + 1] * TERM_WORDS) as usize;
            dst == slot
        })
    }

    /// The head of the loop over a warp's segments.
    fn open_loop(&self, t: &mut Text, sweep: &Sweep) {
        let (e, op) = (self.e, sweep.op);
        let of = self.suffix(e.op(op, OP_N));
        // Other work-groups may still read an operand, or not yet see what was written to it.
        let writes = sweep.stores.iter().any(|slot| self.operands.contains(&sweep.slots[*slot as usize]));
        if writes {
            t.line("if (state.reads) barrier_of_groups(&s, &state);");
        }
        if e.op(op, OP_KIND) == KIND_SPMV {
            // No barrier separates operations over shorter vectors: some work-items may still read what
            // others now compute.
            let barrier = if self.shorter.is_empty() { "" } else { " else BARRIER();" };
            t.line(&format!("if (state.dirty) barrier_of_groups(&s, &state);{barrier}"));
            t.line("state.reads += 1;");
            let m = e.op(op, OP_MATRIX);
            let (lanes, product) = (self.shape.lanes[m as usize], self.product(op));
            let m = t.hole(m);
            let [x, y] = [OP_X, OP_Y].map(|field| {
                let number = t.hole(e.op(op, field));
                self.stored(e.op(op, field), &number)
            });
            let vectors = format!("{x}, {y}");
            match product {
                Product::Rows => t.line(&format!("product_rows(&s{of}, {m}, {lanes}, {vectors});")),
                Product::Slices(Slices { run, twice, narrow, sorted, apart, .. }) => {
                    let ([twice, narrow, sorted], apart) =
                        ([twice, narrow, sorted].map(u32::from), apart as u32);
                    t.line(&format!(
                        "product_slices(&s{of}, {m}, {lanes}, {twice}, {run}, {narrow}, {sorted}, {apart}, {vectors});"
                    ));
                }
                Product::Sell => t.line(&format!("product_sell(&s{of}, {m}, {vectors});")),
                Product::Diagonals | Product::Stencil | Product::StencilRows | Product::Interpolation => {}
            }
        }
        if writes {
            t.line("state.dirty = true;");
        }
        // A projection has work for more warps than there are segments.
        match e.op(op, OP_KIND) {
            KIND_BASIS_DOT => {
                t.line("BARRIER();"); // others may have written what a warp reads
                t.line("const uint parts = max(WARPS / s.mine, 1u);");
                t.line("for (uint unit = WARP; unit < s.mine * parts; unit += WARPS) {");
                t.line("const uint segment = s.from + unit / parts;");
            }
            _ if self.is_shorter(op) => {
                let last = format!("s{of}.first + s{of}.rows");
                t.line(&format!("for (uint row = s{of}.first + ITEM; row < {last}; row += SIZE) {{"));
            }
            _ => {
                t.line("for (uint unit = s.from * SHARE + WARP; unit < (s.from + s.mine) * SHARE; unit += WARPS) {");
                t.line("const uint base = BASE(unit);");
            }
        }
    }
}
