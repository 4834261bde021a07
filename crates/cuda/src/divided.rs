//! A GPU as one of several devices that share a system: it launches each operation for some segments of all rows.
//!
//! Cells are the host's here: it evaluates all instructions, and kernels read what it has changed. The sums of segments stay on
//! the device, where a kernel makes the sums of the part's subtrees from them. Rows for other devices are gathered by a kernel
//! into page-locked memory, and those from others are scattered out of it.
use crate::backend::Cuda;
use crate::carrier::LARGE;
use crate::driver::{Address, Driver, Event, Kernel, Launch, kernel_name};
use crate::launches::{Common, OpLaunch, PART, SEGMENT, room_of};
use crate::memory::Buffer;
use crate::plan::{Planned, Planner};
use crate::store::Store;
use crate::transfer::Pinned;
use bytemuck::{bytes_of, cast_slice, cast_slice_mut, pod_read_unaligned};
use lacuna_engine::arena::Table;
use lacuna_engine::cells::{Instr, Machine};
use lacuna_engine::division::Subtree;
use lacuna_engine::encode::encode;
use lacuna_engine::{
    Divided, Error, HostFunction, NumberType, Op, OpAt, OpKind, PlanId, Program, Result, Scalar, Section,
    State, Vector, catching, check_rows, with_number,
};
use std::ffi::c_void;
use std::ops::Range;

/// What errors name.
const OPERATION: &str = "a part of an operation";
/// `MOST_TREES` of part.cu: twice the binary logarithm of the most segments, and more.
const MOST_TREES: usize = 64;
/// Blocks of a kernel that copies rows.
const COPY_BLOCKS: usize = 256;

/// A program prepared for [`Divided`].
pub(crate) struct Parts {
    sections: [Vec<Part>; 3],
    /// Sums of segments, and of 256 each, of the operation that ran last.
    partial: Buffer,
    group: Buffer,
    tickets: Buffer,
    /// Where kernels leave the sums of subtrees.
    sums: Pinned,
    /// The epoch of the memory in which all handles were live.
    checked: u64,
}

/// An operation.
struct Part {
    kind: NumberType,
    before: Vec<Instr>,
    after: Vec<Instr>,
    /// The cells of its sums.
    cells: Vec<u32>,
    work: Work,
}

enum Work {
    /// Instructions alone.
    Nothing,
    /// A function of the host.
    Host(HostFunction, Vector, Vector),
    /// Kernels.
    Kernels(Vec<Step>),
}

/// A kernel, and where the sums of segments, and of 256 each, go in their buffers: bytes from the start.
struct Step {
    launch: OpLaunch,
    kernel: Kernel,
    partial: usize,
    group: usize,
}

/// `Part` of part.cu.
#[derive(Clone, Copy)]
#[repr(C)]
struct PartSums {
    segments: u32,
    dots: u32,
    first: u32,
    end: u32,
    trees: u32,
    maxima: u32,
    out: Address,
    tree_first: [u32; MOST_TREES],
    tree_size: [u32; MOST_TREES],
}

impl Planner<'_> {
    /// Prepares a program for [`Divided`].
    pub(crate) fn parts(&mut self, program: &Program) -> Result<Parts> {
        self.store.check(program)?;
        let what = "the sums of a program";
        let mut most = [0, 0, 0];
        let mut section = |section| {
            let ops = program.section(section).iter();
            ops.map(|op| self.part(op, &mut most)).collect::<Result<Vec<_>>>()
        };
        let sections = [section(Section::Setup)?, section(Section::Restart)?, section(Section::Each)?];
        let [partial, group, sums] = most;
        let Planner { driver, store, .. } = self;
        Ok(Parts {
            sections,
            partial: store.pool.take(driver, partial, what)?,
            group: store.pool.take(driver, group, what)?,
            tickets: store.pool.zeroed(driver, size_of::<u32>(), what)?,
            sums: driver.pinned(sums * MOST_TREES)?,
            checked: store.epoch,
        })
    }

    /// Prepares an operation. `most` are the bytes of sums of segments, of 256 each, and of all rows.
    fn part(&mut self, op: &Op, most: &mut [usize; 3]) -> Result<Part> {
        let (pass, kind) = (&op.sweep, op.sweep.kind());
        let bare = Op { kind: op.kind.clone(), sweep: pass.without_instructions() };
        let mut after = bare.sweep.distinct_dots().1;
        after.extend_from_slice(pass.after());
        let mut part =
            Part { kind, before: pass.before().to_vec(), after, cells: Vec::new(), work: Work::Nothing };
        if let OpKind::Host { f, x, y } = &op.kind {
            part.work = Work::Host(f.clone(), *x, *y);
        } else if !matches!(op.kind, OpKind::Sweep) || !bare.sweep.is_scalar() {
            let program = Program::once(bare)?;
            let program = program.column_by_column(|kind| self.takes_together(&program, kind, |_, _| true));
            let encoded = encode(&program)?;
            let (mut bytes, mut steps) = ([0, 0], Vec::new());
            for (launch, kernel) in self.steps(&program, &encoded)?.into_iter().flatten() {
                let sums = &*launch.op;
                if sums.n == 0 && sums.dots == 0 {
                    continue; // what follows a triangular solve: instructions
                }
                part.cells.extend(launch.op.sum_cells());
                let [partial, group] = bytes;
                let room = |count: u32| sums.dots as usize * room_of(count) * kind.size();
                bytes = [partial + room(sums.segments), group + room(sums.groups)];
                steps.push(Step { launch, kernel, partial, group });
            }
            let sums = part.cells.len() * kind.size();
            most.iter_mut().zip([bytes[0], bytes[1], sums]).for_each(|(most, own)| *most = own.max(*most));
            part.work = Work::Kernels(steps);
        }
        Ok(part)
    }
}

impl Parts {
    fn at(&self, at: OpAt) -> Result<&Part> {
        let section = self.sections.get(at.section as usize).filter(|_| at.step.is_none());
        let part = section.and_then(|parts| parts.get(at.index));
        part.ok_or_else(|| Error::Stale { operation: OPERATION.into(), what: "place in a program" })
    }
    /// What the kernels of a step take.
    fn common(&self, step: &Step, cells: Address) -> Common {
        Common {
            cells,
            partial: self.partial.address + step.partial as u64,
            group: self.group.address + step.group as u64,
            tickets: self.tickets.address,
            alone: PART,
            ..Common::default()
        }
    }
}

impl Step {
    /// The kernel for some segments. Those of a triangular solve compute all rows.
    fn restricted(&self, segments: &Range<usize>) -> Option<OpLaunch> {
        let mut launch = self.launch.clone();
        if launch.kernel.starts_with("tri_solve") {
            return Some(launch);
        }
        let op = &mut *launch.op;
        (op.first, op.end) = ((segments.start as u32).min(op.end), (segments.end as u32).min(op.end));
        // As many blocks for a segment as for all of them.
        let share = launch.blocks.div_ceil(op.segments);
        launch.blocks = op.end.saturating_sub(op.first) * share;
        (launch.blocks > 0).then_some(launch)
    }
}

/// Page-locked memory for rows on their way, by turns.
#[derive(Default)]
pub(crate) struct Staging {
    places: [Option<(Pinned, Event)>; 2],
    turn: usize,
}

impl Staging {
    /// Room for so many bytes, which no queued work uses.
    fn room(&mut self, driver: &Driver, bytes: usize) -> Result<&mut (Pinned, Event)> {
        self.turn = 1 - self.turn;
        let place = &mut self.places[self.turn];
        if let Some((_, passed)) = place {
            driver.wait_for(passed, "moving rows")?;
        }
        if place.as_ref().is_none_or(|(memory, _)| memory.len() < bytes) {
            *place = None;
        }
        match place {
            Some(place) => Ok(place),
            none => Ok(none.insert((driver.pinned(bytes)?, Event::new(driver)?))),
        }
    }
}

/// Rows of a vector, as kernels take them: their table, the words of an element, and where they lie.
struct Rows {
    table: Vec<u32>,
    count: u32,
    words: u32,
    bytes: usize,
}

impl Rows {
    fn of(v: Vector, rows: &[Range<usize>]) -> Result<Rows> {
        check_rows(v, rows)?;
        let mut table: Vec<u32> = rows.iter().map(|rows| rows.start as u32).collect();
        let mut before = 0;
        for rows in rows {
            table.push(before);
            before += rows.len() as u32;
        }
        table.push(before);
        let element = v.kind.element(v.narrow);
        let words = (element / size_of::<u32>()) as u32;
        Ok(Rows { table, count: rows.len() as u32, words, bytes: before as usize * element })
    }
    /// Where the rows lie, behind the table.
    fn offset(&self) -> usize {
        size_of_val(&self.table[..]).next_multiple_of(16)
    }
    /// Queues the kernel that copies them.
    fn copy(
        &self,
        driver: &Driver,
        kernel: Kernel,
        from: Address,
        to: Address,
        table: Address,
        in_to: bool,
    ) -> Result<()> {
        let (mut from, mut to, mut table) = (from, to, table);
        let (mut count, mut words, mut into_vector) = (self.count, self.words, u32::from(in_to));
        let blocks = (self.bytes / size_of::<u32>()).div_ceil(256).clamp(1, COPY_BLOCKS) as u32;
        let mut arguments: [*mut c_void; 6] = [
            (&raw mut from).cast(),
            (&raw mut to).cast(),
            (&raw mut table).cast(),
            (&raw mut count).cast(),
            (&raw mut words).cast(),
            (&raw mut into_vector).cast(),
        ];
        let how = Launch { blocks, threads: 256, shared: 0, cooperative: false };
        // SAFETY: the kernel takes these six; the rows lie in the vector, and table and list in page-locked memory with room for both.
        unsafe { driver.launch("part_rows", kernel, how, &mut arguments) }
    }
}

/// Numbers as they are stored, in the narrower type, from those in full width; and back.
fn narrowed(kind: NumberType, bytes: &[u8]) -> Vec<u8> {
    with_number!(kind, T => {
        let numbers = bytes.chunks_exact(size_of::<T>()).map(pod_read_unaligned::<T>);
        numbers.flat_map(|number| bytes_of(&number.narrowed()).to_vec()).collect()
    })
}
fn widened(kind: NumberType, bytes: &[u8]) -> Vec<u8> {
    with_number!(kind, T => {
        let numbers = bytes.chunks_exact(size_of::<<T as Scalar>::Narrow>()).map(pod_read_unaligned);
        numbers.flat_map(|number| bytes_of(&T::widened(number)).to_vec()).collect()
    })
}

fn find(plans: &mut Table<Planned>, plan: PlanId) -> Result<&mut Parts> {
    let stale = || Error::Stale { operation: OPERATION.into(), what: "plan" };
    plans.get_mut(plan.index, plan.serial).and_then(|planned| planned.parts.as_mut()).ok_or_else(stale)
}

/// Evaluates instructions on the cells, after the sums were stored in theirs. Returns whether the operation goes on.
fn evaluate<T: Scalar>(
    (store, driver): (&mut Store, &Driver),
    code: &[Instr],
    (cells, sums): (&[u32], &[u8]),
    state: State<'_>,
) -> Result<bool> {
    let file = store.cells_of(T::KIND);
    let State { control, history } = state;
    let mut machine =
        Machine { cells: file.numbers::<T>(driver)?, control: *control, history: std::mem::take(history) };
    let sums = sums.chunks_exact(size_of::<T>()).map(pod_read_unaligned::<T>);
    cells.iter().zip(sums).for_each(|(cell, sum)| machine.cells[*cell as usize] = sum);
    let goes_on = catching(|| Ok(machine.run(code)));
    store.cells_of(T::KIND).set_numbers(&machine.cells);
    (*control, *history) = (machine.control, machine.history);
    goes_on
}

impl Divided for Cuda {
    fn begin(&mut self, program: &Program, plan: PlanId) -> Result<()> {
        self.driver.enter()?;
        let parts = find(&mut self.plans, plan)?;
        if parts.checked != self.store.epoch {
            self.store.check(program)?;
            parts.checked = self.store.epoch;
        }
        Ok(())
    }
    fn is_rolled(&self, _: PlanId) -> bool {
        false
    }
    fn sum_count(&mut self, plan: PlanId, at: OpAt) -> Result<usize> {
        Ok(find(&mut self.plans, plan)?.at(at)?.cells.len())
    }
    fn maximum_count(&mut self, plan: PlanId, at: OpAt) -> Result<usize> {
        let Work::Kernels(steps) = &find(&mut self.plans, plan)?.at(at)?.work else { return Ok(0) };
        // Those of a pass, which the last kernel computes.
        Ok(steps.last().map_or(0, |step| step.launch.op.dots.saturating_sub(step.launch.op.maxima) as usize))
    }
    fn before(&mut self, plan: PlanId, at: OpAt, state: State<'_>) -> Result<bool> {
        let Cuda { plans, store, driver, .. } = self;
        let part = find(plans, plan)?.at(at)?;
        if part.before.is_empty() {
            return Ok(true);
        }
        with_number!(part.kind, T => evaluate::<T>((store, driver), &part.before, (&[], &[]), state))
    }
    fn part(&mut self, plan: PlanId, at: OpAt, segments: Range<usize>) -> Result<()> {
        self.driver.enter()?;
        let Cuda { plans, store, driver, .. } = self;
        let parts = find(plans, plan)?;
        if parts.checked != store.epoch {
            return Err(Error::Stale { operation: OPERATION.into(), what: "plan" });
        }
        let part = parts.at(at)?;
        match &part.work {
            Work::Nothing => Ok(()),
            Work::Host(f, x, y) => with_number!(part.kind, T => {
                let (mut from, mut to) = (vec![T::default(); x.len], vec![T::default(); y.len]);
                store.download(driver, *x, cast_slice_mut(&mut from))?;
                f.call(&from, &mut to)?;
                store.upload(driver, cast_slice(&to), *y)
            }),
            Work::Kernels(steps) => {
                let cells = store.device_cells(driver, part.kind)?;
                store.cells_of(part.kind).device_has_all();
                for step in steps {
                    if let Some(launch) = step.restricted(&segments) {
                        launch.queue(driver, step.kernel, &parts.common(step, cells))?;
                    }
                }
                Ok(())
            }
        }
    }
    fn sums(&mut self, plan: PlanId, at: OpAt, trees: &[Subtree], to: &mut Vec<u8>) -> Result<()> {
        self.driver.enter()?;
        let Cuda { plans, driver, .. } = self;
        let parts = find(plans, plan)?;
        let part = parts.at(at)?;
        let (Work::Kernels(steps), Some(first), Some(last)) = (&part.work, trees.first(), trees.last())
        else {
            return Ok(());
        };
        if trees.len() > MOST_TREES {
            let message = format!("{} subtrees, expected at most {MOST_TREES}", trees.len());
            return Err(Error::Structure { operation: OPERATION.into(), message });
        }
        let kernel = driver.kernel(&kernel_name("part_sums", part.kind))?;
        let size = part.kind.size();
        let mut out = 0;
        for step in steps.iter().filter(|step| step.launch.op.dots > 0) {
            let op = &step.launch.op;
            let end = (last.first + last.size).min(op.segments as usize);
            let mut common = parts.common(step, 0);
            let mut sums = PartSums {
                segments: op.segments,
                dots: op.dots,
                first: first.first as u32,
                end: end as u32,
                trees: trees.len() as u32,
                maxima: op.maxima,
                out: parts.sums.address() + out as u64,
                tree_first: [0; MOST_TREES],
                tree_size: [0; MOST_TREES],
            };
            for (k, tree) in trees.iter().enumerate() {
                (sums.tree_first[k], sums.tree_size[k]) = (tree.first as u32, tree.size as u32);
            }
            let tasks = (end - first.first).div_ceil(SEGMENT as usize) * op.dots as usize;
            let blocks = tasks.div_ceil(8).clamp(1, driver.limits.multiprocessors as usize) as u32;
            let how = Launch { blocks, threads: 256, shared: 0, cooperative: false };
            let mut arguments = [(&raw mut common).cast::<c_void>(), (&raw mut sums).cast()];
            // SAFETY: the kernel takes `Common` and `Part`; planning sized the buffers of sums for the operation and its subtrees.
            unsafe { driver.launch("part_sums", kernel, how, &mut arguments) }?;
            out += op.dots as usize * trees.len() * size;
        }
        driver.wait("summing")?;
        to.extend_from_slice(&parts.sums.bytes_mut()[..out]);
        Ok(())
    }
    fn after(&mut self, plan: PlanId, at: OpAt, sums: &[u8], state: State<'_>) -> Result<()> {
        let Cuda { plans, store, driver, .. } = self;
        let part = find(plans, plan)?.at(at)?;
        if part.after.is_empty() && sums.is_empty() {
            return Ok(());
        }
        let code = (&part.after, (&part.cells[..], sums));
        with_number!(part.kind, T => evaluate::<T>((store, driver), code.0, code.1, state))?;
        Ok(())
    }
    fn rows_of(&mut self, v: Vector, rows: &[Range<usize>], to: &mut Vec<u8>) -> Result<()> {
        self.driver.enter()?;
        let Cuda { store, driver, staging, .. } = self;
        let (from, list) = (store.address(v, "rows of a vector")?, Rows::of(v, rows)?);
        let mut numbers = vec![0; if list.bytes >= LARGE { list.bytes } else { 0 }];
        let numbers = match rows {
            _ if list.bytes == 0 => &[],
            [one] if list.bytes >= LARGE => {
                let at = from + (one.start * v.kind.element(v.narrow)) as u64;
                driver.download(at, &mut numbers, "rows of a vector")?;
                &numbers[..]
            }
            _ => {
                let kernel = driver.kernel("part_rows")?;
                let offset = list.offset();
                let (place, _) = staging.room(driver, offset + list.bytes)?;
                place.bytes_mut()[..size_of_val(&list.table[..])].copy_from_slice(cast_slice(&list.table));
                list.copy(driver, kernel, from, place.address() + offset as u64, place.address(), false)?;
                driver.wait("rows of a vector")?;
                &place.bytes_mut()[offset..offset + list.bytes]
            }
        };
        if v.narrow {
            to.extend(widened(v.kind, numbers));
        } else {
            to.extend_from_slice(numbers);
        }
        Ok(())
    }
    fn set_rows(&mut self, v: Vector, rows: &[Range<usize>], from: &[u8]) -> Result<()> {
        self.driver.enter()?;
        let Cuda { store, driver, staging, .. } = self;
        let (to, list) = (store.address(v, "rows of a vector")?, Rows::of(v, rows)?);
        let elements = list.bytes / v.kind.element(v.narrow);
        Error::check_length("rows of a vector", "the bytes", elements * v.kind.size(), from.len())?;
        let rounded = if v.narrow { narrowed(v.kind, from) } else { Vec::new() };
        let numbers = if v.narrow { &rounded[..] } else { from };
        match rows {
            _ if list.bytes == 0 => Ok(()),
            [one] if list.bytes >= LARGE => {
                let at = to + (one.start * v.kind.element(v.narrow)) as u64;
                driver.upload(numbers, at, "rows of a vector")
            }
            _ => {
                let kernel = driver.kernel("part_rows")?;
                let offset = list.offset();
                let (place, passed) = staging.room(driver, offset + list.bytes)?;
                place.bytes_mut()[..size_of_val(&list.table[..])].copy_from_slice(cast_slice(&list.table));
                place.bytes_mut()[offset..offset + list.bytes].copy_from_slice(numbers);
                list.copy(driver, kernel, place.address() + offset as u64, to, place.address(), true)?;
                driver.record(passed)
            }
        }
    }
    fn clear_rows(&mut self, v: Vector, rows: Range<usize>) -> Result<()> {
        self.driver.enter()?;
        check_rows(v, std::slice::from_ref(&rows))?;
        let element = v.kind.element(v.narrow);
        let at = self.store.address(v, "clear")? + (rows.start * element) as u64;
        self.driver.zero(at, rows.len() * element)
    }
}
