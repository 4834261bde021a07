//! Kernels that keep vectors in registers, a row for each work-item.
use super::{Device, Layout, MatrixFacts, Sizes, kept_percent, pieces, wanted_size};
use crate::plan_cache::{Facts, Key, Placement, PlanCache, Repack};
use crate::repacked::{Groups, Repacked};
use crate::rows::Rows;
use crate::source::SEGMENT;
use crate::write::{self, Shape};
use lacuna_engine::Scalar;
use lacuna_engine::encode::{self, Encoded};
use std::sync::Arc;

/// Entries and padding together, over entries, in quarters, beyond which there is no such kernel.
const PADDING: usize = 40;
/// Registers of 32 bits a device has for a group, and a work-item at the most; what the code itself needs of them.
const REGISTERS: (usize, usize, usize) = (65536, 255, 40);
/// Registers beside those of [`REGISTERS`] that code needs where entries are kept too.
const TAKEN_BY_ROWS: usize = 16;
/// Entries of a row, or of a lane of it, that are kept in registers at the most.
const MOST_KEPT: usize = 32;

/// How rows are divided among groups and work-items.
struct Division {
    /// Whether one group runs alone.
    one: bool,
    groups: usize,
    /// Groups that share the rows of a segment.
    ways: usize,
    /// Segments in all, and of a group at the most.
    segments: usize,
    mine: usize,
    /// Rows and work-items of a group at the most.
    rows: usize,
    size: usize,
}

impl Division {
    fn of<T: Scalar>(
        e: &Encoded<T>,
        matrices: &[MatrixFacts<'_, T>],
        device: Device,
        groups: usize,
    ) -> Division {
        let (one, nvidia, segments) = (groups == 1, device.nvidia, (e.n as usize).div_ceil(SEGMENT));
        let (mine, most) = (segments.div_ceil(groups), device.largest.min(1024) / SEGMENT);
        let longest = matrices.iter().map(|a| a.format.lanes()).max().unwrap_or(1);
        // Rows with many entries are worth more groups.
        let share = [8, 4, 2].into_iter().find(|ways| segments * ways <= device.units);
        let ways = match (device.ways, share) {
            _ if one || !nvidia || mine > 1 => 1,
            (0, Some(ways)) if matrices.iter().any(MatrixFacts::has_long_rows) => ways,
            (0, _) => 1,
            (ways, Some(most)) => ways.min(most),
            _ => 1,
        };
        let rows = mine * SEGMENT / ways;
        // Lanes of long rows work side by side, and so do the columns of a basis.
        let [least, wide] = match (longest, e.bases.is_empty()) {
            (1, false) => [512, 512],
            (1, true) => [128, 512],
            // Fewer work-items keep more entries each.
            _ => [256, 256],
        };
        let size = (rows * longest).clamp(least, wide).max(rows);
        let size = if nvidia { size } else { (rows * longest).clamp(2 * SEGMENT, 1024) }.min(most * SEGMENT);
        let size = if device.size > 0 { wanted_size(device.size, rows, most * SEGMENT) } else { size };
        Division { one, groups: groups * ways, ways, segments, mine, rows, size }
    }

    /// What each group multiplies, by what each segment does: the first column, and how many from there on.
    fn windows(&self, spans: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let (segments, units) = (self.segments, self.groups / self.ways);
        let window = |unit: usize| {
            // A matrix of fewer rows has fewer segments.
            let [from, to] = [unit, unit + 1].map(|unit| (segments * unit / units).min(spans.len()));
            let mine = &spans[from..to];
            let mine = mine.iter().filter(|(low, end)| low < end);
            let low = mine.clone().map(|s| s.0).min().unwrap_or(0);
            (low, mine.map(|s| s.1).max().unwrap_or(low) - low)
        };
        (0..self.groups).map(|g| window(g / self.ways)).collect()
    }

    /// Turns in which a group takes so many lanes of all rows.
    fn turns(&self, lanes: u32) -> usize {
        (self.rows * lanes as usize).div_ceil(self.size)
    }
}

/// How the entries of a matrix are taken.
struct Taken {
    /// What each group multiplies, and whether that fits local memory.
    windows: Vec<(u32, u32)>,
    fits: bool,
    /// Entries of a turn that stay in registers, 0 for none.
    kept: usize,
    /// Lanes of a row side by side, and those that a work-item takes in turn.
    lanes: u32,
    sums: u32,
    /// Places of the group that has the most; nothing for compressed rows of one lane, which lie well enough as they are.
    places: Option<usize>,
}

impl Taken {
    fn widest(&self) -> usize {
        self.windows.iter().map(|w| w.1 as usize).max().unwrap_or(0)
    }
}

impl Layout {
    /// A row for each work-item, vectors in registers, and the entries of its matrices; nothing where the program has no
    /// such form.
    pub fn resident<T: Scalar, E: Clone, P: Clone>(
        e: &Encoded<T>,
        matrices: &[MatrixFacts<'_, T>],
        device: Device,
        groups: usize,
        plans: &mut PlanCache<E, P>,
    ) -> Option<(Layout, Repack<T, E>)> {
        let (number, n) = (size_of::<T>(), e.n as usize);
        let division = Division::of(e, matrices, device, groups);
        let Division { one, groups, ways, segments, mine, rows, size } = division;

        // Local memory: what is needed first, then terms of sums, then what a group multiplies.
        let chunks = if one { mine } else { segments.div_ceil(SEGMENT) };
        let sums = e.sums as usize + 4; // with those that an operation may leave to the next
        let (got, cells) = (sums * chunks, e.cells.len());
        let rows_at = if matrices.iter().any(|a| a.format.lanes() > 1) { rows } else { 1 };
        let params = write::params_room(e);
        let fixed = (got + cells + rows_at) * number + 8 * encode::CONTROL_WORDS as usize + 64 + params;
        let room = device.local.checked_sub(fixed)? / number;
        let least = match (device.nvidia, e.bases.is_empty()) {
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

        let facts: Vec<_> = matrices.iter().map(|a| plans.facts(a)).collect::<Option<_>>()?;
        if facts.iter().any(|facts| !facts.even) {
            return None;
        }
        let depth = depth(number, size, device);
        let (mut taken, registers) = take(e, matrices, &facts, device, &division, room - terms, depth);
        let laid = lay_out(matrices, n, &division, &mut taken, plans)?;
        let fitting = taken.iter().filter(|a| a.fits && !one).map(Taken::widest).max();
        let widest = 1 + fitting.unwrap_or(0).max(if one { n } else { 0 });
        // Entries beyond those in registers stay in local memory, as many as it has room for.
        let mut left = (room.saturating_sub(terms + widest) * number).saturating_sub(64);
        let entry = number + size_of::<u16>();
        let stay = |a: &Taken| {
            let places = a.places.filter(|_| a.kept == 0 && a.fits && widest < usize::from(u16::MAX));
            let stay = places.unwrap_or(0).min(left / entry);
            left -= stay * entry;
            stay
        };
        let stay: Vec<usize> = taken.iter().map(stay).collect();
        // What is left of them is read from memory or the second-level cache again and again, all of it in the same order.
        let staying = stay.iter().sum::<usize>() * (number + size_of::<u32>()) * groups;
        let held = e.matrices.iter().map(|a| a.bytes).sum::<usize>().saturating_sub(staying);
        // Loads that say what is to stay are slower by OpenCL: none are, up to more of the cache.
        let most = if device.prelude.is_some() { device.cache / 3 * 2 } else { device.cache / 5 * 4 };
        let shape = Shape {
            size,
            narrow: e.has_narrow(),
            streaming: false,
            one,
            chunks,
            work,
            lanes: taken.iter().map(|a| a.lanes).collect(),
            sums: taken.iter().map(|a| a.sums).collect(),
            depth,
            products: Vec::new(),
            fits: taken.iter().map(|a| a.fits).collect(),
            steps: taken.iter().map(|a| a.places.map_or(0, |_| division.turns(a.lanes))).collect(),
            registers,
            ways,
            mine,
            segments,
            words: ways * pieces(segments),
            share: 1,
            keep: kept_percent(held, most),
            kept: taken.iter().map(|a| a.kept).collect(),
            stay,
        };
        let room = Sizes { groups, sums, params, got, rows_at, terms, widest };
        Some((Layout::with_kernel(e, device, shape, room)?, laid))
    }
}

/// How the entries of each matrix are taken where local memory has room for so many numbers of what it multiplies; and how many
/// numbers registers have room for.
fn take<T: Scalar>(
    e: &Encoded<T>,
    matrices: &[MatrixFacts<'_, T>],
    facts: &[Arc<Facts>],
    device: Device,
    division: &Division,
    room: usize,
    depth: usize,
) -> (Vec<Taken>, usize) {
    let (number, nvidia, size) = (size_of::<T>(), device.nvidia, division.size);
    let (all, each, code) = REGISTERS;
    let registers = (all / size).min(each).saturating_sub(code) * 4 / number;
    // Entries of matrices go to registers after the vectors, where they fit.
    let vectors = write::registers(e, registers).len();
    let mut left = ((registers - vectors) * number / 4).saturating_sub(TAKEN_BY_ROWS);
    // Where groups have no more work-items than rows, one takes all lanes of a row.
    let all_busy = nvidia && !division.one && division.ways == 1;
    let all_busy = all_busy && 2 * e.n as usize >= division.groups * size;
    let taken = matrices.iter().zip(facts).map(|(a, facts)| {
        let lanes = a.format.lanes() as u32;
        let windows = division.windows(&facts.spans);
        let mut taken = Taken { windows, fits: true, kept: 0, lanes, sums: 1, places: None };
        taken.fits = division.one || taken.widest() < room;
        let takes = division.turns(lanes) * (facts.longest * number / 4 + facts.longest.div_ceil(2));
        if nvidia && taken.fits && facts.longest <= MOST_KEPT && takes <= left {
            left -= takes;
            taken.kept = facts.longest;
        }
        if all_busy && taken.kept == 0 && (2..=2 * depth).contains(&(lanes as usize)) {
            (taken.lanes, taken.sums) = (1, lanes);
        }
        taken
    });
    (taken.collect(), registers)
}

/// The entries of all matrices as they are taken, laid out anew or as kept, and the places of each; nothing where one cannot be.
fn lay_out<T: Scalar, E: Clone, P: Clone>(
    matrices: &[MatrixFacts<'_, T>],
    n: usize,
    division: &Division,
    taken: &mut [Taken],
    plans: &mut PlanCache<E, P>,
) -> Option<Repack<T, E>> {
    let Division { one, groups, ways, segments, size, .. } = *division;
    let serials = matrices.iter().map(|a| a.serial).collect();
    let resident = taken.iter().map(|a| (a.fits, a.sums > 1)).collect();
    let key = Key { matrices: serials, streaming: false, groups, ways, size, resident };
    if let Some((Placement::Resident(places), entries)) = plans.layout(&key) {
        taken.iter_mut().zip(places).for_each(|(a, places)| a.places = *places);
        return Some(Repack::Cached(entries.clone()));
    }
    let mut repacked = Repacked::default();
    repacked.windows(matrices.len(), groups);
    for (m, (a, taken)) in matrices.iter().zip(taken.iter_mut()).enumerate() {
        let Taken { windows, fits, .. } = taken;
        repacked.windows_of(m, windows);
        if a.format.kernel() == "csr" && a.format.lanes() == 1 {
            continue;
        }
        let columns: Vec<_> = windows.iter().map(|w| column_and_hole::<T>(*w, one, *fits, n)).collect();
        let (groups, rows) =
            (Groups { windows, ways, segments, size, columns: &columns }, a.format.shape().0);
        taken.places = Some(repacked.add(m, &Rows::of(a.format)?, rows, &groups, taken.sums > 1, PADDING)?);
    }
    repacked.pad();
    Some(Repack::New(repacked, key, Placement::Resident(taken.iter().map(|a| a.places).collect())))
}

/// What a group that multiplies a window counts columns from, and the column of a place without an entry: the one behind the
/// window, see `resident_rows.cl`.
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
