//! What formats cost GPUs.
use lacuna_engine::Cost;
use lacuna_engine::sum::SEGMENT;

/// What a product in each format costs where whole programs are one kernel: it lays out `csr` in slices, and packed rows, packets and
/// dense rows as it. Of matrices whose vectors stay in memory and that take more bytes than the second-level `cache`, where bytes
/// count, and of others, where it is instructions: so many for each place and row, in `f32` as in `f64`. Blocks of five and more are slower
/// than their bytes say, and so are diagonals with many zeros: elasticity3d:16 takes 2.0 us by diagonals, 0.7 by rows, an iteration of CG on
/// elasticity3d:8 7.8 and 5.2, on triangles (poisson-p1:255) 5.9 and 6.7. Fitted to products of grids, elasticity, triangles and
/// look-alikes on an H200 (docs/results/h200-formats.md).
pub fn costs(rows: usize, units: usize, bytes: usize, cache: usize) -> &'static [Cost] {
    let resident = rows <= units * LARGEST_GROUP;
    if resident || bytes <= cache { &RESIDENT } else { &STREAMING }
}

/// Whether several columns at once pay, though operations are launched one by one for it: where one kernel for all columns, one after the
/// other, has to read the matrix from memory again. On an H200, microseconds for each of eight columns together and apart: `csr`
/// of elasticity3d:12 (3 MB) 5.5 and 2.2, of elasticity3d:24 (24 MB) 6.2 and 6.7, slices of them by OpenCL 13 and 3.5, 15.3 and 7.1.
/// Where one alone takes longer than that: `bcsr3` of elasticity3d:47 22 and 31, diagonals of poisson3d:48x48x48:27 (24 MB) 3.2
/// and 5.1, of 64x64x64 6.1 and 15.7.
pub fn columns_pay(kernel: &str, bytes: usize, cache: usize) -> bool {
    let kept = if kernel == "dia" { cache / 3 } else { cache / 2 };
    bytes > kept
}

/// Whether a matrix is so few segments of so many entries that these leave most of `units` multiprocessors idle, so that its rows are computed
/// by a kernel of their own ahead of the pass: `lp`, 17 segments of 650 000 entries, takes 365 us on an H200 then, else 1215.
pub fn rows_come_first(rows: usize, entries: usize, units: usize) -> bool {
    let segments = rows.div_ceil(SEGMENT);
    segments < 4 * units && entries >= HEAVY * segments.max(1)
}

/// Entries of a segment that are more than a group should have.
const HEAVY: usize = 32_768;
/// Rows of a group at the most that keeps vectors in registers.
const LARGEST_GROUP: usize = 1024;
/// So much that blocks of these sizes are taken nowhere: of 3x3 and 6x6 blocks of one matrix the smaller were the faster.
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
