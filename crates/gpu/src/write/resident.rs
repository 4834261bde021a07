//! The operations of a kernel that keeps vectors in registers, one row for each work-item.
use super::text::Text;
use super::{Deferred, Sweep, Writer};
use lacuna_engine::encode::*;

impl Writer<'_> {
    /// A vector's value at the work-item's row, read from where the vector is kept.
    pub(super) fn at_home(&self, t: &mut Text, v: u32) -> String {
        match self.is_register(v) {
            true => format!("v{v}"),
            false => {
                let [a, b] = [0, 0].map(|_| t.hole(v));
                let (of, place) = (self.suffix_of(v), self.stored(v, &b));
                format!("(last_of == {a} ? last : own{of} ? GET({place}, row) : ZERO)")
            }
        }
    }

    pub(super) fn resident_block(&self, sweep: &Sweep, deferred: &mut Option<Deferred>) -> Text {
        let (e, op) = (self.e, sweep.op);
        let Sweep { slots, loads, stores, .. } = sweep;
        let mut t = Text::default();
        let field = |at| e.op(op, at);
        let of = self.suffix(field(OP_N));
        let name = |slot: u32| match self.is_register(slots[slot as usize]) {
            true => format!("v{}", slots[slot as usize]),
            false => format!("m{slot}"),
        };
        for (slot, v) in slots.iter().enumerate().filter(|(_, v)| !self.is_register(**v)) {
            let value = if loads.contains(&(slot as u32)) { self.at_home(&mut t, *v) } else { "ZERO".into() };
            t.line(&format!("number m{slot} = {value};"));
        }
        match field(OP_KIND) {
            KIND_SPMV => {
                let (x, matrix) = (field(OP_X), field(OP_MATRIX));
                let value = self.at_home(&mut t, x);
                let (a, b) = (t.hole(x), t.hole(x));
                let own = format!("own{}", self.suffix_of(x));
                t.line(&format!("if (state.shown != {a}) show(&s, &state, {b}, {own}, {value});"));
                let (lanes, fits) =
                    (self.shape.lanes[matrix as usize], u32::from(self.shape.fits[matrix as usize]));
                let most = self.shape.kept[matrix as usize];
                if most == 0 {
                    let m = t.hole(matrix);
                    let product = match self.stays(matrix as usize) {
                        Some((stay, stays)) => {
                            let sums = self.shape.sums[matrix as usize];
                            let lanes = format!("{lanes}, {sums}, {fits}");
                            format!("product_staged(&s{of}, &state, {m}, {lanes}, {stay}, {stays}, own{of})")
                        }
                        None => format!("product_rows_resident(&s{of}, &state, {m}, {fits}, own{of})"),
                    };
                    t.line(&format!("{} = {};", name(0), self.kept(slots[0], product)));
                } else {
                    self.kept_product(&mut t, matrix, &name(0), slots[0]);
                }
            }
            KIND_BASIS_AXPY => {
                let w = self.at_home(&mut t, field(OP_Y));
                let basis = field(OP_BASIS);
                let (h, columns) = (t.hole(field(OP_H) - e.cells.start), t.hole(field(OP_COLUMNS)));
                let add = field(OP_ADD);
                let row = format!(
                    "combine_row(&s, basis{basis}, stride{basis}, local_cells + {h}, {columns}, {add}, {w})"
                );
                t.line(&format!("if (own) {} = {};", name(0), self.kept(slots[0], row)));
            }
            _ => {}
        }
        self.updates(&mut t, op, &name);
        for slot in stores.iter().filter(|slot| !self.is_register(slots[**slot as usize])) {
            let [home, again] = [0, 0].map(|_| t.hole(slots[*slot as usize]));
            let place = self.stored(slots[*slot as usize], &home);
            t.line(&format!("if (own{of}) PUT({place}, row, m{slot});"));
            t.line(&format!("last = m{slot}; last_of = {again};"));
        }
        // An operand that has changed is published, immediately if the next operation multiplies it.
        let next_operand = self.next_operand(op);
        for slot in stores {
            let v = slots[*slot as usize];
            if next_operand == Some(v) {
                let shown = t.hole(v);
                t.line(&format!("show(&s, &state, {shown}, own{of}, {});", name(*slot)));
            } else if self.operands.contains(&v) {
                let shown = t.hole(v);
                t.line(&format!("if (state.shown == {shown}) state.shown = LACUNA_NONE;"));
            }
        }
        self.sums(&mut t, op, &name, deferred);
        t.text.insert_str(0, &std::mem::take(&mut t.early));
        t
    }

    /// How many of a work-group's entries of a repacked matrix stay in local memory, and their offset there.
    pub(super) fn stays(&self, m: usize) -> Option<(usize, usize)> {
        let stay = &self.shape.stay;
        (self.shape.steps[m] > 0).then(|| (stay[m], stay[..m].iter().sum()))
    }

    /// A product with a matrix whose entries are in registers.
    fn kept_product(&self, t: &mut Text, m: u32, to: &str, y: u32) {
        let (most, lanes) = (self.shape.kept[m as usize], self.shape.lanes[m as usize]);
        let of = self.suffix(self.e.matrices[m as usize].rows as u32);
        t.line(&format!("open_window(&s, &state, {m}, 1);"));
        let sum = |turn| format!("kept_lane(&s, {most}, e{m}_{turn}n, e{m}_{turn}c, e{m}_{turn}a)");
        if lanes == 1 {
            t.line(&format!("{to} = {};", self.kept(y, sum(0))));
            return;
        }
        for turn in 0..self.shape.steps[m as usize] {
            t.line(&format!("keep_row(&s{of}, {lanes}, {turn}, {});", sum(turn)));
        }
        t.line("BARRIER();");
        t.line(&format!("{to} = {};", self.kept(y, format!("own{of} ? s.rows_at[ITEM] : ZERO"))));
    }
}
