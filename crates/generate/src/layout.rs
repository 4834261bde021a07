//! How the rows and the local memory of a written kernel are divided.
use crate::rows::Rows;
use crate::shelf::{Key, Laid, Shelf, Way};
use crate::source::{self, SEGMENT};
use crate::staged::{Groups, Staged};
use crate::write::{self, Product, Shape, Written};
use lacuna_core::encode::{self, Encoded, OP_DOT_COUNT};
use lacuna_core::{Format, Scalar};
use std::ops::Range;

/// What a layout depends on of the device.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Whether it is NVIDIA's: warps of 32 and 16-byte accesses that are single.
    pub nvidia: bool,
    /// Bytes of the second-level cache where loads can say what is to stay there (NVIDIA's compute capability 8.0), 0
    /// where they cannot.
    pub cache: usize,
    /// Bytes of local memory a group may use.
    pub local: usize,
    /// Work-items of a group at the most.
    pub largest: usize,
    /// Work-items of a group, a multiple of 256; 0 chooses.
    pub size: usize,
    /// Groups that share a segment, a power of two; 0 chooses.
    pub ways: usize,
    /// Groups that run at once.
    pub units: usize,
    /// The words of OpenCL C for a compiler of another language: a name and the text.
    pub prelude: Option<(&'static str, &'static str)>,
}

/// What a layout depends on of a matrix.
#[derive(Clone, Copy)]
pub struct MatrixFacts<'a, T> {
    /// The host's form.
    pub format: &'a dyn Format<T>,
    /// The serial of its handle.
    pub serial: u32,
    /// Whether its entries may be laid out anew.
    pub stages: bool,
}

/// Entries of a row beyond which it is long, on average.
const LONG_ROW: usize = 16;

impl<T: Scalar> MatrixFacts<'_, T> {
    /// Whether rows have so many entries that more groups than there are segments pay.
    pub fn has_long_rows(&self) -> bool {
        self.format.nnz() > LONG_ROW * self.format.shape().0
    }
}

/// A program as a kernel written for it: the text, what lies in its buffers, and how it is launched.
pub struct Layout {
    /// The whole text, an entry point `near` and one `advance`.
    pub text: String,
    /// The number of groups.
    pub groups: usize,
    /// What the text was written for.
    pub shape: Shape,
    /// What follows the shared texts, and the numbers it reads.
    pub written: Written,
    /// Words of one half of the buffer of sums.
    pub half: usize,
    /// Words of the buffer of operands.
    pub shared: usize,
    /// Bytes of each local buffer: terms, sums, rows of a product, its operand, cells, control block, numbers of blocks, columns and
    /// values of entries that stay there.
    pub local: [usize; 9],
}

/// Work-items of a group where vectors stay in memory: where rows are long and passes short, and elsewhere.
const FAR_SIZE: [usize; 2] = [768, 512];
/// Entries and padding together, over entries, in quarters, beyond which a matrix stays as it is.
const NEAR_PADDING: usize = 40;
const FAR_PADDING: usize = 5;
/// Registers of 32 bits a device has for a group, and a work-item at the most; what the code itself needs of them.
const REGISTERS: (usize, usize, usize) = (65536, 255, 40);

/// Registers beside those of [`REGISTERS`] that code needs where entries are kept too.
const TAKEN_BY_ROWS: usize = 16;
/// Entries of a row, or of a lane of it, that are kept in registers at the most.
const MOST_KEPT: usize = 32;

/// Segments of a chunk that a lane of a warp has at the most, a power of two.
fn pieces(segments: usize) -> usize {
    segments.min(SEGMENT).div_ceil(32).next_power_of_two()
}

/// How local memory is divided, in numbers.
struct Room {
    groups: usize,
    /// Sums of one exchange at the most.
    sums: usize,
    /// Bytes.
    params: usize,
    got: usize,
    rows_at: usize,
    terms: usize,
    widest: usize,
}

impl Layout {
    /// A row for each work-item, vectors in registers, and the entries of its matrices; nothing where the program has no
    /// such form.
    pub fn near<T: Scalar, E: Clone, P: Clone>(
        e: &Encoded<T>,
        matrices: &[MatrixFacts<'_, T>],
        device: Device,
        groups: usize,
        shelf: &mut Shelf<E, P>,
    ) -> Option<(Layout, Laid<T, E>)> {
        let (number, one, nvidia) = (size_of::<T>(), groups == 1, device.nvidia);
        let (n, segments) = (e.n as usize, (e.n as usize).div_ceil(SEGMENT));
        let (mine, most) = (segments.div_ceil(groups), device.largest.min(1024) / SEGMENT);
        let lanes: Vec<u32> = matrices.iter().map(|a| a.format.lanes() as u32).collect();
        let longest = lanes.iter().copied().max().unwrap_or(1) as usize;
        // Rows with many entries are worth more groups.
        let share = [8, 4, 2].into_iter().find(|ways| segments * ways <= device.units);
        let ways = match (device.ways, share) {
            _ if one || !nvidia || mine > 1 => 1,
            (0, Some(ways)) if matrices.iter().any(MatrixFacts::has_long_rows) => ways,
            (0, _) => 1,
            (ways, Some(most)) => ways.min(most),
            _ => 1,
        };
        let (units, groups, rows) = (groups, groups * ways, mine * SEGMENT / ways);
        // Lanes of long rows work side by side, and so do the columns of a basis.
        let [least, wide] = match (longest, e.bases.is_empty()) {
            (1, false) => [512, 512],
            (1, true) => [128, 512],
            // Fewer work-items keep more entries each.
            _ => [256, 256],
        };
        let size = (rows * longest).clamp(least, wide).max(rows);
        let size = if nvidia { size } else { (rows * longest).clamp(2 * SEGMENT, 1024) }.min(most * SEGMENT);
        let size = if device.size > 0 { device.size } else { size };

        // Local memory: what is needed first, then terms of sums, then what a group multiplies.
        let chunks = if one { mine } else { segments.div_ceil(SEGMENT) };
        let sums = e.sums as usize + 4; // with those that an operation may leave to the next
        let (got, cells) = (sums * chunks, e.cells.len());
        let rows_at = if lanes.iter().any(|w| *w > 1) { rows } else { 1 };
        let params = write::params_room(e);
        let fixed = (got + cells + rows_at) * number + 8 * encode::CONTROL_WORDS as usize + 64 + params;
        let room = device.local.checked_sub(fixed)? / number;
        let least = match (nvidia, e.bases.is_empty()) {
            (true, _) => rows,
            (false, true) => rows.max(size),
            (false, false) => (2 * rows).max(size),
        };
        let window = if one { n + 1 } else { 0 };
        if room < least + window {
            return None;
        }
        let work = ((room - window) / rows).clamp(1, 3);
        let work = if one { work } else { work.min(2).max(least.div_ceil(rows)) };
        let terms = (work * rows).max(least);
        let facts: Vec<_> = matrices.iter().map(|a| shelf.facts(a, n)).collect::<Option<_>>()?;
        if facts.iter().any(|facts| !facts.even) {
            return None;
        }
        let windows_of = |spans: &[(u32, u32)]| -> Vec<(u32, u32)> {
            let window = |unit: usize| {
                let mine = &spans[segments * unit / units..segments * (unit + 1) / units];
                let mine = mine.iter().filter(|(low, end)| low < end);
                let low = mine.clone().map(|s| s.0).min().unwrap_or(0);
                (low, mine.map(|s| s.1).max().unwrap_or(low) - low)
            };
            (0..groups).map(|g| window(g / ways)).collect()
        };
        let windows: Vec<_> = facts.iter().map(|facts| windows_of(&facts.spans)).collect();
        let widths: Vec<_> =
            windows.iter().map(|of| of.iter().map(|w| w.1 as usize).max().unwrap_or(0)).collect();
        let fits: Vec<bool> = widths.iter().map(|width| one || *width < room - terms).collect();
        let widest = widths.into_iter().zip(&fits).filter(|(_, fits)| **fits && !one).map(|(width, _)| width);
        let widest = 1 + widest.max().unwrap_or(0).max(if one { n } else { 0 });
        // Compressed rows of one lane lie well enough as they are.
        let raw = |a: &MatrixFacts<'_, T>| a.format.kernel() == "csr" && a.format.lanes() == 1;
        let (all, each, taken) = REGISTERS;
        let registers = (all / size).min(each).saturating_sub(taken) * 4 / number;
        // Entries of matrices go to registers after the vectors, where they fit.
        let vectors = write::registers(e, registers).len();
        let mut room_for = ((registers - vectors) * number / 4).saturating_sub(TAKEN_BY_ROWS);
        let mut kept = Vec::new();
        for (m, facts) in facts.iter().enumerate() {
            let entries = if nvidia && fits[m] { facts.longest } else { 0 };
            let turns = (rows * lanes[m] as usize).div_ceil(size);
            let takes = |entries: usize| turns * (entries * number / 4 + entries.div_ceil(2));
            let keeps = entries <= MOST_KEPT && takes(entries) <= room_for;
            room_for -= if keeps { takes(entries) } else { 0 };
            kept.push(if keeps { entries } else { 0 });
        }
        // Where groups have no more work-items than rows, one takes all lanes of a row.
        let depth = depth(number, size, device);
        let all_busy = nvidia && !one && ways == 1 && 2 * n >= groups * size;
        let folds = |m: usize| all_busy && kept[m] == 0 && (2..=depth).contains(&(lanes[m] as usize));
        let folds: Vec<bool> = (0..matrices.len()).map(folds).collect();
        let serials = matrices.iter().map(|a| a.serial).collect();
        let how = fits.iter().copied().zip(folds.iter().copied()).collect();
        let key = Key { matrices: serials, far: false, groups, ways, size, near: how };
        let (counts, laid) = match shelf.layout(&key) {
            Some((Way::Near(counts), entries)) => (counts.clone(), Laid::Kept(entries.clone())),
            _ => {
                let (mut staged, mut counts) = (Staged::default(), Vec::new());
                staged.windows(matrices.len(), groups);
                for (m, (a, windows)) in matrices.iter().zip(&windows).enumerate() {
                    staged.windows_of(m, windows);
                    let columns = |w: &(u32, u32)| column_and_hole::<T>(*w, one, fits[m], n);
                    let columns: Vec<_> = windows.iter().map(columns).collect();
                    let groups = Groups { windows, ways, size, columns: &columns };
                    counts.push(match raw(a) {
                        true => None,
                        false => {
                            Some(staged.add(m, &Rows::of(a.format)?, n, &groups, folds[m], NEAR_PADDING)?)
                        }
                    });
                }
                staged.pad();
                (counts.clone(), Laid::Anew(staged, key, Way::Near(counts)))
            }
        };
        let in_turn =
            lanes.iter().zip(&folds).map(|(lanes, folds)| if *folds { *lanes } else { 1 }).collect();
        let lanes: Vec<u32> =
            lanes.into_iter().zip(&folds).map(|(lanes, folds)| if *folds { 1 } else { lanes }).collect();
        let of_lanes = lanes.iter().zip(&counts);
        let steps = of_lanes.map(|(lanes, laid)| laid.map_or(0, |_| (rows * *lanes as usize).div_ceil(size)));
        let steps: Vec<usize> = steps.collect();
        // Others stay in local memory, as many as it has room for.
        let mut left = (room.saturating_sub(terms + widest) * number).saturating_sub(64);
        let entry = number + size_of::<u16>();
        let stay = |m: usize| {
            let places = counts[m].filter(|_| kept[m] == 0 && fits[m] && widest < usize::from(u16::MAX));
            let stay = places.unwrap_or(0).min(left / entry);
            left -= stay * entry;
            stay
        };
        let stay: Vec<usize> = (0..matrices.len()).map(stay).collect();
        // What is left of them is read from memory or the second-level cache again and again, all of it in the same order.
        let staying = stay.iter().sum::<usize>() * (number + size_of::<u32>()) * groups;
        let held = e.matrices.iter().map(|a| a.bytes).sum::<usize>().saturating_sub(staying);
        let keep = kept_percent(held, device.cache / 3 * 2);
        let shape = Shape {
            size,
            far: false,
            one,
            chunks,
            work,
            lanes,
            sums: in_turn,
            depth,
            products: Vec::new(),
            fits,
            steps,
            registers,
            ways,
            mine,
            segments,
            words: ways * pieces(segments),
            share: 1,
            keep,
            kept,
            stay,
        };
        let room = Room { groups, sums, params, got, rows_at, terms, widest };
        Some((Layout::written(e, device, shape, room)?, laid))
    }

    /// Vectors in memory, a warp for each segment.
    pub fn far<T: Scalar, E: Clone, P: Clone>(
        e: &Encoded<T>,
        matrices: &[MatrixFacts<'_, T>],
        device: Device,
        groups: usize,
        shelf: &mut Shelf<E, P>,
    ) -> Option<(Layout, Laid<T, E>)> {
        let (number, n) = (size_of::<T>(), e.n as usize);
        let segments = n.div_ceil(SEGMENT);
        let (mine, chunks) = (segments.div_ceil(groups), segments.div_ceil(SEGMENT));
        let lanes: Vec<u32> = matrices.iter().map(|a| a.format.lanes() as u32).collect();
        // A warp takes whole segments: of more warps than there are segments some do nothing, and long rows want many.
        let long = lanes.iter().any(|w| *w > 1) && e.bases.is_empty() && e.slots <= 4;
        let size = match device.size {
            0 => FAR_SIZE[usize::from(!long)],
            size => size,
        };
        let sums = e.sums as usize + 4;
        let params = write::params_room(e);
        let bytes = (sums * mine + sums.max(size / 32) + e.cells.len() + 2) * number + params;
        let bytes = bytes + 8 * encode::CONTROL_WORDS as usize + 64;
        // Where there are more warps than segments they share these.
        let kept = (0..e.ops()).map(|op| e.op(op, OP_DOT_COUNT)).max().unwrap_or(0) as usize + 4;
        let parts = |share: usize| if share > 1 { kept * mine * share * 32 } else { 1 };
        let fits =
            |share: &usize| mine * share <= size / 32 && bytes + parts(*share) * number <= device.local;
        let share = [4, 2].into_iter().find(fits).unwrap_or(1);
        let serials = matrices.iter().map(|a| a.serial).collect();
        let key = Key { matrices: serials, far: true, groups, ways: 1, size, near: Vec::new() };
        let (products, numbers, laid) = match shelf.layout(&key) {
            Some((Way::Far(products, numbers), entries)) => {
                (products.clone(), *numbers, Laid::Kept(entries.clone()))
            }
            _ => {
                let of_groups: Vec<_> =
                    (0..groups).map(|g| segments * g / groups..segments * (g + 1) / groups).collect();
                let (staged, products, numbers) = lay_out_far(matrices, n, &of_groups, size / 32)?;
                let way = Way::Far(products.clone(), numbers);
                (products, numbers, Laid::Anew(staged, key, way))
            }
        };
        let rows_at = parts(share).max(numbers);
        if bytes + rows_at * number > device.local {
            return None;
        }
        // What is used again before all of it is gone from the cache should stay there, entries of matrices should not.
        let held = e.matrices.iter().map(|a| a.bytes).sum::<usize>() + e.vectors.len() * n * number;
        // Operands gathered from everywhere need more of it.
        let gathers = products.iter().any(|p| matches!(p, Product::Slices(slices) if slices.sorted));
        let most = if gathers { device.cache / 4 * 3 } else { device.cache };
        let keep = if device.cache > 0 && held > most { 0 } else { 100 };
        let (steps, kept, fits) = (vec![0; lanes.len()], vec![0; lanes.len()], vec![false; lanes.len()]);
        let in_turn = vec![1; lanes.len()];
        let shape = Shape {
            size,
            far: true,
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
        let room = Room { groups, sums, params, got: sums * mine, rows_at, terms, widest: 1 };
        Some((Layout::written(e, device, shape, room)?, laid))
    }

    fn written<T: Scalar>(e: &Encoded<T>, device: Device, shape: Shape, room: Room) -> Option<Layout> {
        let Room { groups, sums, params, got, rows_at, terms, widest } = room;
        let (number, cells, n) = (size_of::<T>(), e.cells.len(), e.n as usize);
        let segments = n.div_ceil(SEGMENT);
        let written = write::write(e, &shape).filter(|written| written.sums <= sums)?;
        let parts = if number == 16 { 2 } else { 1 };
        let words = shape.ways * segments + segments.div_ceil(SEGMENT);
        let half = (written.sums * words * parts).max(groups) * 2;
        let shared = if shape.one || shape.far { 2 } else { 4 * parts * n };
        let control = 8 * encode::CONTROL_WORDS as usize;
        let stay = shape.stay.iter().sum::<usize>().max(1);
        let numbers = [terms, got, rows_at, widest, cells, stay].map(|count| count * number);
        let [terms, got, rows_at, widest, cells, values] = numbers;
        let local = [terms, got, rows_at, widest, cells, control, params, 2 * stay, values];
        let text = source::text(T::KIND, device.nvidia, device.prelude, &shape, &written.text);
        Some(Layout { text, groups, shape, written, half, shared, local })
    }
}

/// How each matrix is multiplied where vectors stay in memory, its entries where they are laid out for that, and the numbers
/// of local memory that this takes. `groups` are the segments of each group, and `warps` its warps.
fn lay_out_far<T: Scalar>(
    matrices: &[MatrixFacts<'_, T>],
    n: usize,
    groups: &[Range<usize>],
    warps: usize,
) -> Option<(Staged<T>, Vec<Product>, usize)> {
    let (mut staged, mut products, mut numbers) = (Staged::default(), Vec::new(), 0);
    staged.heads(matrices.len());
    for (m, a) in matrices.iter().enumerate() {
        products.push(match a.format.kernel() {
            "dia" => Product::Diagonals,
            "sell" | "ell" => Product::Sell,
            "stencil" => Product::Stencil,
            kernel => {
                let rows = Rows::of(a.format)?;
                // What has no other form may take more.
                let sorted = if kernel == "hyb" || kernel == "coo" { NEAR_PADDING } else { FAR_PADDING };
                let padding = [FAR_PADDING, sorted];
                match a.stages.then(|| staged.slices(m, &rows, n, groups, warps, padding)).flatten() {
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
    staged.pad();
    Some((staged, products, numbers))
}

/// What a group that multiplies a window counts columns from, and the column of a place without an entry: the one behind the
/// window, see `near_rows.cl`.
fn column_and_hole<T: Scalar>(
    (low, width): (u32, u32),
    one: bool,
    fits: bool,
    n: usize,
) -> (u32, Option<u32>) {
    let (low, width) = if one { (0, n as u32) } else { (low, width) };
    (if fits { low } else { 0 }, (fits && !T::KIND.is_complex()).then_some(width))
}

/// Entries of a slice that a work-item has under way: two batches of them, and what one of these multiplies, take half of the
/// registers there are for it. OpenCL's compiler needs more of them.
fn depth(number: usize, size: usize, device: Device) -> usize {
    let words = 2 + 3 * number / 4;
    let most = if device.prelude.is_none() && size > 512 { 4 } else { 8 };
    [most, 4].into_iter().find(|depth| 2 * depth * words <= REGISTERS.0 / size).unwrap_or(2)
}

/// Percent of so many bytes that have room in so many of a cache; all where loads cannot say what is to stay there.
fn kept_percent(bytes: usize, cache: usize) -> usize {
    if cache > 0 && bytes > cache { 100 * cache / bytes } else { 100 }
}
