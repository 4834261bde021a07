//! The kernel around the blocks: what it loads first and stores last, and where blocks read their parameters.
use super::{Writer, list, params_room};
use lacuna_engine::encode::*;
use lacuna_kernels_opencl::FRAME;
use std::collections::BTreeSet;
use std::fmt::Write;

impl Writer<'_> {
    /// The kernel around the blocks.
    pub(super) fn frame(&self, body: &str, shared: bool, stride: usize) -> String {
        let stored: BTreeSet<u32> = (0..self.e.ops())
            .flat_map(|op| list(self.e, op, OP_STORES, OP_STORE_COUNT, MOVE_WORDS))
            .map(|w| w[MOVE_VECTOR as usize])
            .collect();
        let mut load = String::new();
        let mut store = String::new();
        for v in &self.registers {
            let (own, place) = (format!("own{}", self.suffix_of(*v)), self.stored(*v, &v.to_string()));
            let _ = writeln!(load, "    number v{v} = {own} ? GET({place}, row) : ZERO;");
            if stored.contains(v) {
                let _ = writeln!(store, "    if ({own}) PUT({place}, row, v{v});");
            }
        }
        for (b, basis) in self.e.bases.iter().enumerate() {
            let _ = writeln!(
                load,
                "    GATHERED basis{b} = vector_of(arena, BASIS(s.p, {b})[0], {});\n    const ulong stride{b} = BASIS(s.p, {b})[1];",
                u32::from(basis.narrow)
            );
        }
        for (m, most) in self.shape.kept.iter().enumerate().filter(|(_, most)| **most > 0) {
            let (lanes, of) = (self.shape.lanes[m], self.suffix(self.e.matrices[m].rows as u32));
            for turn in 0..self.shape.steps[m].max(1) {
                let name = format!("e{m}_{turn}");
                let _ =
                    writeln!(load, "    uint {name}c[{}];\n    number {name}a[{most}];", most.div_ceil(2));
                let _ = match self.shape.steps[m] {
                    0 => writeln!(
                        load,
                        "    const uint {name}n = open_row(&s{of}, {m}, {most}, own{of}, {name}c, {name}a);"
                    ),
                    _ => writeln!(
                        load,
                        "    const uint {name}n = open_staged(&s{of}, {m}, {lanes}, {most}, {turn}, {name}c, {name}a);"
                    ),
                };
            }
        }
        for (m, lanes) in self.shape.lanes.iter().enumerate() {
            if let Some((stay, stays)) = self.stays(m).filter(|(stay, _)| *stay > 0) {
                let of = self.suffix(self.e.matrices[m].rows as u32);
                let _ = writeln!(load, "    stay_resident(&s{of}, {m}, {lanes}, {stay}, {stays});");
            }
        }
        let words = stride * self.e.ops() as usize;
        let mut shorter = String::new();
        for k in 1..=self.shorter.len() {
            let n = words + 2 * k - 2;
            let _ = writeln!(shorter, "    const Share s{k} = shorter(&s, params[{n}], params[{}]);", n + 1);
            if !self.shape.streaming {
                let _ = writeln!(shorter, "    const bool own{k} = ITEM < s{k}.rows;");
            }
        }
        let resident = shared && 4 * words <= params_room(self.e);
        let copied =
            format!("    for (uint i = ITEM; i < {words}; i += SIZE) local_params[i] = params[i];\n");
        let (space, table) = if resident { ("__local", "local_params") } else { ("__global", "params") };
        // The class of the operation, read again after each block.
        let kind = format!("op < {}u ? {table}[op * {stride}u] : LACUNA_NONE", self.e.ops());
        let body = match shared {
            true => body
                .replace("$KIND", "kind")
                .replace("$OPEN", &format!("        uint kind = {kind};\n"))
                .replace("$NEXT", &format!("\n        kind = {kind};"))
                .replace("$Q", &format!("        {space} const uint *q = {table} + op * {stride}u;\n")),
            false => body.replace("$KIND", "op").replace("$OPEN", "").replace("$NEXT", "").replace("$Q", ""),
        };
        FRAME
            .replace("$SUMS", &format!("{}u", self.sums.get()))
            .replace("$SHORTER", &shorter)
            .replace("$PARAMS", if resident { &copied } else { "" })
            .replace("$LOAD", &load)
            .replace("$STORE", &store)
            .replace("$BODY", &body)
    }
}
