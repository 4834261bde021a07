//! Fill of small dense blocks.
use crate::parallel;
use crate::storage::bcsr::columns;
use crate::storage::pattern::PatternRef;

/// Minimum fraction of block places that must hold an entry for blocks to be considered: below that, zeros
/// cost more than the column indices saved.
pub const LEAST_FILL: f64 = 0.5;
/// The same for blocks of size 5 and up, which take more bytes than compressed rows below this fill, and for
/// 2x2 blocks, without which larger ones do not occur: a grid fills half of its 2x2 blocks.
const LEAST_LARGE_FILL: f64 = 0.7;
const LEAST_SMALL_FILL: f64 = 0.6;
/// Rows of a run, rounded down to whole blocks.
const ROWS: usize = 12 * 64;
/// Maximum number of runs that are all examined; above that, one in `SAMPLE` is.
const FEW: usize = 64;
const SAMPLE: usize = 8;
/// Minimum number of runs per thread.
const GRAIN: usize = 8;
/// Places of a table, twice the entries of the block rows it is used for.
const PLACES: usize = 2048;

/// Fraction of block places that hold an entry, over blocks with at least one, by block size: for 2, 3 and 4,
/// and for those from 5 to 8 that divide rows and columns, if the 2x2 blocks and those in the first rows are
/// full enough. Sampled if there are many rows.
pub(crate) fn fills(a: PatternRef<'_>) -> Vec<(usize, f64)> {
    let mut fills = vec![(2, fill::<2>(a)), (3, fill::<3>(a)), (4, fill::<4>(a))];
    if fills[0].1 >= LEAST_SMALL_FILL {
        fills.extend(promising::<5>(a));
        fills.extend(promising::<6>(a));
        fills.extend(promising::<7>(a));
        fills.extend(promising::<8>(a));
    }
    fills
}

/// The fill of large blocks, if they divide the matrix and those of the first run are full enough.
fn promising<const B: usize>(a: PatternRef<'_>) -> Option<(usize, f64)> {
    let divides = a.rows.is_multiple_of(B) && a.cols.is_multiple_of(B);
    let last = (ROWS / B * B).min(a.rows);
    let promises = || {
        let places = Seen::nothing().count::<B>(a, 0, last) * B * B;
        a.row_ptr[last] as f64 >= LEAST_LARGE_FILL * places as f64
    };
    (divides && promises()).then(|| (B, fill::<B>(a)))
}

fn fill<const B: usize>(a: PatternRef<'_>) -> f64 {
    let rows = ROWS / B * B;
    let runs = a.rows.div_ceil(rows);
    let step = if runs > FEW { SAMPLE } else { 1 };
    let add = |a: (usize, usize), b: (usize, usize)| (a.0 + b.0, a.1 + b.1);
    let counts = parallel::map_large(a.nnz(), parallel::ranges(runs.div_ceil(step), GRAIN), |part| {
        let mut seen = Seen::nothing();
        let counts = part.map(|run| {
            let (first, last) = (run * step * rows, ((run * step + 1) * rows).min(a.rows));
            ((a.row_ptr[last] - a.row_ptr[first]) as usize, seen.count::<B>(a, first, last))
        });
        counts.fold((0, 0), add)
    });
    let (entries, blocks) = counts.into_iter().fold((0, 0), add);
    if blocks == 0 { 0.0 } else { entries as f64 / (blocks * B * B) as f64 }
}

/// Blocks seen in a block row: an open-addressing table that needs no clearing, since its keys include the
/// row.
struct Seen {
    places: [u64; PLACES],
}

impl Seen {
    fn nothing() -> Self {
        Seen { places: [u64::MAX; PLACES] }
    }

    /// Number of blocks of `B` rows and columns with an entry in the rows `first..last`.
    fn count<const B: usize>(&mut self, a: PatternRef<'_>, first: usize, last: usize) -> usize {
        let mut blocks = 0;
        for block_row in first / B..last.div_ceil(B) {
            let rows = block_row * B..((block_row + 1) * B).min(a.rows);
            let entries = a.row_ptr[rows.start] as usize..a.row_ptr[rows.end] as usize;
            if entries.len() > PLACES / 2 {
                blocks += columns(a, block_row, B).count();
                continue;
            }
            for &column in &a.col_idx[entries] {
                let key = (block_row as u64) << 32 | (column as usize / B) as u64;
                let mut at = column as usize / B % PLACES;
                while self.places[at] != key && self.places[at] >> 32 == block_row as u64 {
                    at = (at + 1) % PLACES;
                }
                blocks += usize::from(self.places[at] != key);
                self.places[at] = key;
            }
        }
        blocks
    }
}
