//! Estimated costs of the formats on GPUs.
use lacuna_engine::Cost;
use lacuna_engine::sum::SEGMENT;

/// Costs of a product in each format when the whole program is one kernel, which repacks `csr`, packed rows,
/// packets and dense rows into slices. Two tables: matrices whose vectors are streamed from memory and that
/// are larger than the second-level `cache` are bound by bytes; all others by instructions per place and row,
/// equally in `f32` and `f64`. Blocks of five and more, and diagonals with many zeros, are slower than their
/// bytes suggest: elasticity3d:16 in f64 takes 2.07 µs with `dia`, 0.70 with `csr`. Figures and a test of the
/// choices: docs/results/h200-formats.md, an H200.
pub fn costs(rows: usize, units: usize, bytes: usize, cache: usize) -> &'static [Cost] {
    let resident = rows <= units * LARGEST_GROUP;
    if resident || bytes <= cache { &RESIDENT } else { &STREAMING }
}

/// Whether computing several columns at once pays, although its operations are launched one by one: it does
/// once the alternative, one kernel that computes column after column, must read the matrix from memory for
/// each. The fractions of the cache were fitted to products with eight columns on an H200.
pub fn columns_pay(kernel: &str, bytes: usize, cache: usize) -> bool {
    let kept = if kernel == "dia" { cache / 3 } else { cache / 2 };
    bytes > kept
}

/// Whether a matrix has so few segments with so many entries each that most of the `units` multiprocessors
/// would idle. A separate kernel then computes its rows ahead of the pass: alike:lp, 17 segments of 650 000
/// entries, takes 364 µs in f64 (docs/results/h200-formats.md, CUDA on an H200).
pub fn rows_come_first(rows: usize, entries: usize, units: usize) -> bool {
    let segments = rows.div_ceil(SEGMENT);
    segments < 4 * units && entries >= HEAVY * segments.max(1)
}

/// Entries of a segment above which it is too much for one work-group.
const HEAVY: usize = 32_768;
/// Maximum rows of a work-group that keeps vectors in registers.
const LARGEST_GROUP: usize = 1024;
/// High enough that blocks of these sizes are never chosen. Of the 3x3 and 6x6 blocks of one matrix, the
/// smaller were faster.
const LARGE_BLOCKS: f64 = 3.0;

const STREAMING: [Cost; 16] = [
    Cost::of_bytes("csr", 1.0),
    Cost::of_bytes("dia", 0.8).and_rows(6.0, 0.0),
    Cost::of_bytes("dia-sym", 0.8).and_places(1.25),
    Cost::of_bytes("sell", 1.2),
    Cost::of_bytes("ell", 1.2),
    Cost::of_bytes("bcsr", 0.9).and_rows(10.0, 0.0),
    Cost::of_bytes("bcsr5", LARGE_BLOCKS),
    Cost::of_bytes("bcsr6", LARGE_BLOCKS),
    Cost::of_bytes("bcsr7", LARGE_BLOCKS),
    Cost::of_bytes("bcsr8", LARGE_BLOCKS),
    Cost::of_bytes("hyb", 1.01),
    Cost::of_bytes("coo", 1.01),
    Cost::of_bytes("stencil", 0.0).and_places(2.0).and_rows(30.0, 0.0),
    Cost::of_bytes("packed", 2.0),
    Cost::of_bytes("pkt", 2.0),
    Cost::of_bytes("dense", 0.4).and_places(6.5),
];

const RESIDENT: [Cost; 15] = [
    Cost::of_bytes("csr", 1.0),
    Cost::of_bytes("dia", 0.3).and_places(6.0).and_pads(8.0),
    Cost::of_bytes("sell", 2.0),
    Cost::of_bytes("ell", 2.0),
    Cost::of_bytes("bcsr", 1.0).and_places(36.0),
    Cost::of_bytes("bcsr5", LARGE_BLOCKS),
    Cost::of_bytes("bcsr6", LARGE_BLOCKS),
    Cost::of_bytes("bcsr7", LARGE_BLOCKS),
    Cost::of_bytes("bcsr8", LARGE_BLOCKS),
    Cost::of_bytes("hyb", 1.1),
    Cost::of_bytes("coo", 1.01),
    Cost::of_bytes("stencil", 0.0).and_places(5.0).and_rows(150.0, 0.0),
    Cost::of_bytes("packed", 2.0),
    Cost::of_bytes("pkt", 2.0),
    Cost::of_bytes("dense", 0.4).and_places(14.0),
];

#[cfg(test)]
mod tests {
    use super::{HEAVY, RESIDENT, STREAMING, columns_pay, costs, rows_come_first};
    use lacuna_engine::Cost;
    use lacuna_formats::FORMATS;

    #[test]
    fn every_format_has_a_cost_wherever_vectors_lie() {
        for table in [&RESIDENT[..], &STREAMING] {
            for format in FORMATS {
                assert!(Cost::find(table, format.name, format.kernel).is_some(), "{}", format.name);
            }
        }
        let (units, cache) = (10, 1000);
        assert_eq!(costs(10 * 1024, units, 5000, cache), RESIDENT, "vectors in registers");
        assert_eq!(costs(10 * 1024 + 1, units, 1000, cache), RESIDENT, "a matrix in the cache");
        assert_eq!(costs(10 * 1024 + 1, units, 1001, cache), STREAMING);
    }

    #[test]
    fn columns_pay_beyond_a_part_of_the_cache() {
        let pays = |kernel| [300, 334, 500, 501].map(|bytes| columns_pay(kernel, bytes, 1000));
        assert_eq!(pays("csr"), [false, false, false, true]);
        assert_eq!(pays("dia"), [false, true, true, true]);
    }

    #[test]
    fn rows_come_first_where_segments_are_few_and_heavy() {
        assert!(rows_come_first(7 * 256, 7 * HEAVY, 2));
        assert!(!rows_come_first(7 * 256, 7 * HEAVY - 1, 2), "light");
        assert!(!rows_come_first(7 * 256 + 1, 8 * HEAVY, 2), "enough for all units");
        assert!(!rows_come_first(0, 0, 2));
    }
}
