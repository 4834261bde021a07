//! Kernels that keep vectors in registers, one row for each work-item.
use super::{Device, Layout, MatrixFacts, Sizes, kept_percent, wanted_size};
use crate::plan_cache::{Facts, Key, Placement, PlanCache, Repack};
use crate::repacked::{Groups, Repacked};
use crate::rows::KernelMatrix;
use crate::source::{SEGMENT, pieces};
use crate::write::{self, Shape};
use lacuna_engine::NumberType;
use lacuna_engine::encode::{self, Encoded};
use std::sync::Arc;

/// Maximum of entries and padding over entries, in quarters; above it the program has no resident kernel.
const PADDING: usize = 40;
/// 32-bit registers: of a device for one work-group, the maximum of a work-item, and those the code itself
/// needs.
const REGISTERS: (usize, usize, usize) = (65536, 255, 40);
/// Further registers that the code needs when entries are kept too.
const ROW_REGISTERS: usize = 16;
/// Maximum entries of a row, or of one lane of it, that are kept in registers.
const MAX_KEPT: usize = 32;

/// How rows are divided among work-groups and work-items.
struct Division {
    /// Whether a single work-group runs.
    one: bool,
    groups: usize,
    /// Work-groups that share the rows of a segment.
    ways: usize,
    /// Segments in all, and the maximum of a work-group.
    segments: usize,
    mine: usize,
    /// Maximum rows, and work-items, of a work-group.
    rows: usize,
    size: usize,
}

impl Division {
    fn of(e: &Encoded, matrices: &[MatrixFacts<'_>], device: Device, groups: usize) -> Division {
        let (one, nvidia, segments) = (groups == 1, device.nvidia, (e.n as usize).div_ceil(SEGMENT));
        let (mine, most) = (segments.div_ceil(groups), device.largest.min(1024) / SEGMENT);
        let longest = matrices.iter().map(|a| a.format.lanes()).max().unwrap_or(1);
        // Long rows justify more work-groups.
        let share = [8, 4, 2].into_iter().find(|ways| segments * ways <= device.units);
        let ways = match (device.ways, share) {
            _ if one || !nvidia || mine > 1 => 1,
            (0, Some(ways)) if matrices.iter().any(MatrixFacts::has_long_rows) => ways,
            (0, _) => 1,
            (ways, Some(most)) => ways.min(most),
            _ => 1,
        };
        let rows = mine * SEGMENT / ways;
        // Lanes of long rows work in parallel, and so do the columns of a basis.
        let [least, wide] = match (longest, e.bases.is_empty()) {
            (1, false) => [512, 512],
            (1, true) => [128, 512],
            // With fewer work-items, each can keep more entries.
            _ => [256, 256],
        };
        let size = (rows * longest).clamp(least, wide).max(rows);
        let size = if nvidia { size } else { (rows * longest).clamp(2 * SEGMENT, 1024) }.min(most * SEGMENT);
        let size = if device.size > 0 { wanted_size(device.size, rows, most * SEGMENT) } else { size };
        Division { one, groups: groups * ways, ways, segments, mine, rows, size }
    }

    /// The window of the operand that each work-group multiplies, from the spans of its segments: first
    /// column and width.
    fn windows(&self, spans: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let (segments, units) = (self.segments, self.groups / self.ways);
        let window = |unit: usize| {
            // A matrix with fewer rows has fewer segments.
            let [from, to] = [unit, unit + 1].map(|unit| (segments * unit / units).min(spans.len()));
            let mine = &spans[from..to];
            let mine = mine.iter().filter(|(low, end)| low < end);
            let low = mine.clone().map(|s| s.0).min().unwrap_or(0);
            (low, mine.map(|s| s.1).max().unwrap_or(low) - low)
        };
        (0..self.groups).map(|g| window(g / self.ways)).collect()
    }

    /// Rounds in which a work-group covers `lanes` lanes of all its rows.
    fn turns(&self, lanes: u32) -> usize {
        (self.rows * lanes as usize).div_ceil(self.size)
    }
}

/// How the entries of a matrix are accessed.
struct Access {
    /// The window of the operand for each work-group, and whether it fits local memory.
    windows: Vec<(u32, u32)>,
    fits: bool,
    /// Entries of a round that are kept in registers; 0 for none.
    kept: usize,
    /// Lanes of a row in parallel, and lanes that one work-item takes in turn.
    lanes: u32,
    sums: u32,
    /// Maximum places of a work-group; `None` for compressed rows of one lane, which are read as they are
    /// stored.
    places: Option<usize>,
}

impl Access {
    fn widest(&self) -> usize {
        self.windows.iter().map(|w| w.1 as usize).max().unwrap_or(0)
    }
}

impl Layout {
    /// The kernel that keeps vectors in registers, one row for each work-item, with the repacked entries of
    /// its matrices. `None` if the program has no such kernel.
    pub fn resident<'a, E: Clone, P: Clone>(
        e: &Encoded,
        matrices: &[MatrixFacts<'_>],
        device: Device,
        groups: usize,
        plans: &mut PlanCache<E, P>,
    ) -> Option<(Layout, Repack<'a, E>)> {
        let (number, n) = (e.kind.size(), e.n as usize);
        let division = Division::of(e, matrices, device, groups);
        let Division { one, groups, ways, segments, mine, rows, size } = division;

        // Local memory: fixed needs first, then the terms of sums, then the operand window.
        let chunks = if one { mine } else { segments.div_ceil(SEGMENT) };
        let sums = e.sums as usize + 4; // with those deferred to the next operation
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
        let (mut accesses, registers) = accesses(e, matrices, &facts, device, &division, room - terms, depth);
        let laid = lay_out(e.kind, matrices, n, &division, &mut accesses, plans)?;
        let fitting = accesses.iter().filter(|a| a.fits && !one).map(Access::widest).max();
        let widest = 1 + fitting.unwrap_or(0).max(if one { n } else { 0 });
        // Entries that do not fit registers stay in local memory, as many as fit.
        let mut left = (room.saturating_sub(terms + widest) * number).saturating_sub(64);
        let entry = number + size_of::<u16>();
        let stay = |a: &Access| {
            let places = a.places.filter(|_| a.kept == 0 && a.fits && widest < usize::from(u16::MAX));
            let stay = places.unwrap_or(0).min(left / entry);
            left -= stay * entry;
            stay
        };
        let stay: Vec<usize> = accesses.iter().map(stay).collect();
        // The rest is read from memory or the second-level cache again and again, in the same order each
        // time.
        let staying = stay.iter().sum::<usize>() * (number + size_of::<u32>()) * groups;
        let held = e.matrices.iter().map(|a| a.bytes).sum::<usize>().saturating_sub(staying);
        // Under OpenCL, loads with an eviction policy are slower: none are used until a larger part of the
        // cache is needed.
        let most = if device.prelude.is_some() { device.cache / 3 * 2 } else { device.cache / 5 * 4 };
        let shape = Shape {
            size,
            narrow: e.has_narrow(),
            maxima: e.has_maxima(),
            streaming: false,
            one,
            chunks,
            work,
            lanes: accesses.iter().map(|a| a.lanes).collect(),
            sums: accesses.iter().map(|a| a.sums).collect(),
            depth,
            products: Vec::new(),
            fits: accesses.iter().map(|a| a.fits).collect(),
            steps: accesses.iter().map(|a| a.places.map_or(0, |_| division.turns(a.lanes))).collect(),
            registers,
            ways,
            mine,
            segments,
            words: ways * pieces(segments),
            share: 1,
            keep: kept_percent(held, most),
            kept: accesses.iter().map(|a| a.kept).collect(),
            stay,
        };
        let room = Sizes { groups, sums, params, got, rows_at, terms, widest };
        Some((Layout::with_kernel(e, device, shape, room)?, laid))
    }
}

/// How the entries of each matrix are accessed when local memory has room for `room` numbers of the operand,
/// and how many numbers registers can hold.
fn accesses(
    e: &Encoded,
    matrices: &[MatrixFacts<'_>],
    facts: &[Arc<Facts>],
    device: Device,
    division: &Division,
    room: usize,
    depth: usize,
) -> (Vec<Access>, usize) {
    let (number, nvidia, size) = (e.kind.size(), device.nvidia, division.size);
    let (all, each, code) = REGISTERS;
    let registers = (all / size).min(each).saturating_sub(code) * 4 / number;
    // Entries of matrices get the registers that vectors leave free, if they fit.
    let vectors = write::registers(e, registers).len();
    let mut left = ((registers - vectors) * number / 4).saturating_sub(ROW_REGISTERS);
    // If work-groups have no more work-items than rows, one work-item takes all lanes of a row.
    let all_busy = nvidia && !division.one && division.ways == 1;
    let all_busy = all_busy && 2 * e.n as usize >= division.groups * size;
    let accesses = matrices.iter().zip(facts).map(|(a, facts)| {
        let lanes = a.format.lanes() as u32;
        let windows = division.windows(&facts.spans);
        let mut access = Access { windows, fits: true, kept: 0, lanes, sums: 1, places: None };
        access.fits = division.one || access.widest() < room;
        let words = division.turns(lanes) * (facts.longest * number / 4 + facts.longest.div_ceil(2));
        if nvidia && access.fits && facts.longest <= MAX_KEPT && words <= left {
            left -= words;
            access.kept = facts.longest;
        }
        if all_busy && access.kept == 0 && (2..=2 * depth).contains(&(lanes as usize)) {
            (access.lanes, access.sums) = (1, lanes);
        }
        access
    });
    (accesses.collect(), registers)
}

/// The repacked entries of all matrices, new or cached, and the places of each; `None` if one cannot be
/// repacked.
fn lay_out<'a, E: Clone, P: Clone>(
    kind: NumberType,
    matrices: &[MatrixFacts<'_>],
    n: usize,
    division: &Division,
    accesses: &mut [Access],
    plans: &mut PlanCache<E, P>,
) -> Option<Repack<'a, E>> {
    let Division { one, groups, ways, segments, size, .. } = *division;
    let serials = matrices.iter().map(|a| a.serial).collect();
    let resident = accesses.iter().map(|a| (a.fits, a.sums > 1)).collect();
    let key = Key { matrices: serials, streaming: false, groups, ways, size, resident };
    if let Some((Placement::Resident(places), entries)) = plans.layout(&key) {
        accesses.iter_mut().zip(places).for_each(|(a, places)| a.places = *places);
        return Some(Repack::Cached(entries.clone()));
    }
    let mut repacked = Repacked::new(kind);
    repacked.windows(matrices.len(), groups);
    for (m, (a, access)) in matrices.iter().zip(accesses.iter_mut()).enumerate() {
        let Access { windows, fits, .. } = access;
        repacked.windows_of(m, windows);
        if a.format.kernel() == "csr" && a.format.lanes() == 1 {
            continue;
        }
        let columns: Vec<_> = windows.iter().map(|w| column_and_hole(kind, *w, one, *fits, n)).collect();
        let (groups, rows) =
            (Groups { windows, ways, segments, size, columns: &columns }, a.format.shape().0);
        access.places =
            Some(repacked.add(m, &KernelMatrix::of(a.format)?, rows, &groups, access.sums > 1, PADDING)?);
    }
    repacked.pad();
    Some(Repack::New(repacked, key, Placement::Resident(accesses.iter().map(|a| a.places).collect())))
}

/// The column that a work-group counts from, and the column of a place without an entry: the one past the
/// window, see `resident_rows.cl`.
fn column_and_hole(
    kind: NumberType,
    (low, width): (u32, u32),
    one: bool,
    fits: bool,
    n: usize,
) -> (u32, Option<u32>) {
    let (low, width) = if one { (0, n as u32) } else { (low, width) };
    (if fits { low } else { 0 }, (fits && !kind.is_complex()).then_some(width))
}

/// Entries of a slice that a work-item has in flight: two batches and the operand values of one fill at most
/// half of its registers. OpenCL's compiler needs more registers.
fn depth(number: usize, size: usize, device: Device) -> usize {
    let words = 2 + 3 * number / 4;
    let most = if device.prelude.is_none() && size > 512 { 4 } else { 8 };
    [most, 4].into_iter().find(|depth| 2 * depth * words <= REGISTERS.0 / size).unwrap_or(2)
}
