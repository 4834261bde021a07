//! Kernels that stream vectors from memory, one warp for each segment.
use super::{Device, Layout, MatrixFacts, Sizes, wanted_size};
use crate::plan_cache::{Key, Placement, PlanCache, Repack};
use crate::rows::KernelMatrix;
use crate::slices::{Apart, Slicer, Slices};
use crate::source::{SEGMENT, pieces};
use crate::write::{self, Product, Shape};
use lacuna_engine::encode::{self, Encoded, OP_DOT_COUNT};
use lacuna_engine::{AnyFormat, Argument, with_each};
use std::ops::Range;

/// Work-items of a work-group when vectors are streamed: with long rows and short passes, and otherwise.
const SIZE: [usize; 2] = [768, 512];
/// Maximum of entries and padding over entries, in quarters, above which a matrix is not repacked; and the
/// same for formats with no other kernel.
const PADDING: usize = 5;
const MOST_PADDING: usize = 40;

impl Layout {
    /// The kernel that streams vectors from memory, one warp for each segment. Entries that are not on the
    /// device yet are [`Repack::Unfilled`].
    pub fn streaming<'a, E: Clone, P: Clone>(
        e: &Encoded,
        matrices: &[MatrixFacts<'a>],
        device: Device,
        groups: usize,
        plans: &mut PlanCache<E, P>,
    ) -> Option<(Layout, Repack<'a, E>)> {
        let (number, n) = (e.kind.size(), e.n as usize);
        let segments = n.div_ceil(SEGMENT);
        let (mine, chunks) = (segments.div_ceil(groups), segments.div_ceil(SEGMENT));
        let lanes: Vec<u32> = matrices.iter().map(|a| a.format.lanes() as u32).collect();
        // A warp takes whole segments, so warps beyond the number of segments idle; long rows need many
        // warps.
        let long = lanes.iter().any(|w| *w > 1) && e.bases.is_empty() && e.slots <= 4;
        let size = match device.size {
            0 => SIZE[usize::from(!long)],
            size => wanted_size(size, SEGMENT, device.largest),
        };
        let sums = e.sums as usize + 4;
        let params = write::params_room(e);
        let bytes = (sums * mine + sums.max(size / 32) + e.cells.len() + 2) * number + params;
        let bytes = bytes + 8 * encode::CONTROL_WORDS as usize + 64;
        // If there are more warps than segments, several share a segment.
        let kept = (0..e.ops()).map(|op| e.op(op, OP_DOT_COUNT)).max().unwrap_or(0) as usize + 4;
        let parts = |share: usize| if share > 1 { kept * mine * share * 32 } else { 1 };
        let fits =
            |share: &usize| mine * share <= size / 32 && bytes + parts(*share) * number <= device.local;
        let share = [4, 2].into_iter().find(fits).unwrap_or(1);
        let serials = matrices.iter().map(|a| a.serial).collect();
        let key = Key { matrices: serials, streaming: true, groups, ways: 1, size, resident: Vec::new() };
        let (products, numbers, laid) = match plans.layout(&key) {
            Some((Placement::Streaming(products, numbers), entries)) => {
                (products.clone(), *numbers, Repack::Cached(entries.clone()))
            }
            _ => {
                let (slicer, products, numbers) = lay_out_streaming(e, matrices, &lanes, groups, size / 32)?;
                let way = Placement::Streaming(products.clone(), numbers);
                (products, numbers, Repack::Unfilled(slicer, key, way))
            }
        };
        // The coordinates of a long row are added in pieces after the row is stored, which would round it
        // twice.
        let coordinates =
            |p: &Product| matches!(p, Product::Slices(Slices { apart: Apart::Coordinates, .. }));
        if e.has_narrow() && products.iter().any(coordinates) {
            return None;
        }
        let rows_at = parts(share).max(numbers);
        if bytes + rows_at * number > device.local {
            return None;
        }
        // Data reused before it would be evicted should stay in the cache; entries of matrices should not.
        let held = e.matrices.iter().map(|a| a.bytes).sum::<usize>() + e.vectors.len() * n * number;
        // Operands gathered from arbitrary places need more of the cache.
        let gathers = products.iter().any(|p| matches!(p, Product::Slices(slices) if slices.sorted));
        let most = if gathers { device.cache / 4 * 3 } else { device.cache };
        let keep = if device.cache > 0 && held > most { 0 } else { 100 };
        let (steps, kept, fits) = (vec![0; lanes.len()], vec![0; lanes.len()], vec![false; lanes.len()]);
        let in_turn = vec![1; lanes.len()];
        let shape = Shape {
            size,
            narrow: e.has_narrow(),
            maxima: e.has_maxima(),
            streaming: true,
            one: false,
            chunks,
            work: 1,
            steps,
            lanes,
            sums: in_turn,
            depth: 8,
            products,
            fits,
            registers: 0,
            words: pieces(segments),
            ways: 1,
            mine,
            segments,
            share,
            keep,
            kept,
            stay: Vec::new(),
        };
        let terms = sums.max(size / 32);
        let room = Sizes { groups, sums, params, got: sums * mine, rows_at, terms, widest: 1 };
        Some((Layout::with_kernel(e, device, shape, room)?, laid))
    }
}

/// The rows of work-group `group` of `groups`, in whole runs, as in streaming.cl.
fn rows_of_group(rows: usize, run: usize, group: usize, groups: usize) -> Range<usize> {
    let first = |group: usize| (rows.div_ceil(run) * group / groups * run).min(rows);
    first(group)..first(group + 1)
}

/// Whether the coefficients of a stencil depend on the position.
fn has_positions(stencil: &AnyFormat) -> bool {
    let has = |words: &[i32]| words.get(4).is_some_and(|of| *of != 0);
    with_each!(stencil, a => matches!(&a.arguments()[..], [Argument::Offsets(words), ..] if has(words)))
}

/// The slices of each matrix that needs them, how each is multiplied when vectors are streamed, and the local
/// memory that takes, in numbers. A work-group has `warps` warps.
fn lay_out_streaming<'a>(
    e: &Encoded,
    matrices: &[MatrixFacts<'a>],
    lanes: &[u32],
    groups: usize,
    warps: usize,
) -> Option<(Slicer<'a>, Vec<Product>, usize)> {
    let (mut slicer, mut products, mut numbers) = (Slicer::new(e.kind, matrices.len()), Vec::new(), 0);
    let n = e.n as usize;
    for (m, a) in matrices.iter().enumerate() {
        let count = a.format.shape().0;
        let run = if count < n { write::run_of(e, lanes, count) } else { SEGMENT };
        let groups: Vec<_> = (0..groups).map(|g| rows_of_group(count, run, g, groups)).collect();
        products.push(match a.format.kernel() {
            "dia" if count == n => Product::Diagonals,
            "sell" | "ell" if count == n => Product::Sell,
            "stencil" if count == n && !has_positions(a.format) => Product::Stencil,
            "stencil" => Product::StencilRows,
            "interpolation" => Product::Interpolation,
            kernel => {
                let rows = KernelMatrix::of(a.format)?;
                if count < n && rows.pieces().is_some() {
                    return None; // pieces are listed by segments
                }
                // Formats with no other kernel may have more padding.
                let sorted = if kernel == "csr" { PADDING } else { MOST_PADDING };
                let padding = [PADDING, sorted];
                match a.stages.then(|| slicer.add(m, rows, count, &groups, warps, padding)).flatten() {
                    Some(slices) => {
                        numbers = numbers.max(slices.numbers);
                        Product::Slices(slices)
                    }
                    None if kernel == "csr" && !a.format.has_long_rows() => Product::Rows,
                    None => return None,
                }
            }
        });
    }
    Some((slicer, products, numbers))
}
