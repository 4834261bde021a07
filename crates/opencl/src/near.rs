//! A whole program as one kernel written for it: how its rows and its local memory are divided.
use crate::backend::OpenCl;
use crate::driver::{Arg, Buffer, Kernel};
use crate::generate::{self, Shape};
use crate::plan::Whole;
use crate::source::{self, SEGMENT};
use crate::staged::Staged;
use crate::{Compile, Mode, OpenClOptions};
use lacuna_core::encode::{self, Encoded};
use lacuna_core::{Result, Scalar};

/// Buffers of its own.
pub(crate) struct Near {
    exchange: Buffer,
    shared: Buffer,
    windows: Buffer,
    params: Buffer,
    columns: Buffer,
    values: Buffer,
}

impl Near {
    /// The arguments behind those that all kernels share.
    pub(crate) fn args(&self) -> [Arg<'_>; 6] {
        let Near { exchange, shared, windows, params, columns, values } = self;
        [exchange, shared, windows, params, columns, values].map(Arg::Buffer)
    }
}

/// Places of arguments that change from launch to launch.
pub(crate) const NEAR_BUDGET: u32 = 15;
pub(crate) const NEAR_ENTER: u32 = 16;
pub(crate) const NEAR_SHORT_HISTORY: u32 = 19;
/// Rows up to which one group is the faster one.
const ALONE: usize = 512;
/// Work-items of a group where vectors stay in memory, and where a pass has many of them.
const FAR_SIZE: [usize; 2] = [768, 512];
/// Entries and padding together, over entries, in quarters, beyond which a matrix stays as it is.
const NEAR_PADDING: usize = 12;
const FAR_PADDING: usize = 5;
/// Registers of 32 bits a device has for a group, and a work-item at the most; what the code itself needs of them.
const REGISTERS: (usize, usize, usize) = (65536, 255, 40);
/// Sums of a thousand segments at the most meet in one exchange.
const SEGMENTS: usize = 4 * SEGMENT;

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

impl OpenCl {
    /// How a program runs as a kernel written for it; nothing where it does not.
    pub(crate) fn near<T: Scalar>(
        &mut self,
        e: &Encoded<T>,
        operation: &str,
    ) -> Result<Option<(Whole, Kernel)>> {
        let OpenClOptions { mode, compile, group, one_group_rows, persistent_rows, .. } = self.options;
        let wanted = match compile {
            Compile::Auto => self.device.is_gpu(),
            Compile::Always => true,
            Compile::Never => false,
        };
        let n = e.n as usize;
        let (segments, units) = (n.div_ceil(SEGMENT), self.together());
        let most = self.device.largest_group.min(1024) / SEGMENT;
        if !wanted || self.segments_each || n == 0 || most == 0 || e.matrices.iter().any(|a| a.cols != n) {
            return Ok(None);
        }
        let alone = segments <= most;
        let together = units > 1 && segments.div_ceil(units) <= most && segments <= SEGMENTS;
        let together = together && n <= persistent_rows.unwrap_or(usize::MAX);
        let far = !together && units > 1 && self.device.is_nvidia() && segments <= SEGMENT * SEGMENT;
        let far = far && n <= persistent_rows.unwrap_or(usize::MAX);
        let groups = match mode {
            Mode::Persistent | Mode::Auto if far && (mode == Mode::Persistent || !alone) => {
                return self.divide_far(e, segments.min(units), operation);
            }
            Mode::OneGroup if alone => 1,
            Mode::Persistent if together => segments.min(units),
            Mode::Auto if alone && (n <= one_group_rows.unwrap_or(ALONE) || !together) => 1,
            Mode::Auto if together => segments.min(units),
            _ => return Ok(None),
        };
        let mine = segments.div_ceil(groups);
        // Lanes of long rows work side by side, and so do the columns of a basis.
        let lanes = e.matrices.iter().map(|a| self.memory.matrix_words(*a, operation).map(|w| w[1] as usize));
        let lanes = lanes.collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or(1);
        let wide = (mine * lanes).max(if e.bases.is_empty() { 1 } else { 2 });
        let wide = if group > 0 { group / SEGMENT } else { wide };
        let size = mine.max(wide).min(most) * SEGMENT;
        self.divide(e, groups, mine, size, operation)
    }

    /// The same where vectors stay in memory.
    fn divide_far<T: Scalar>(
        &mut self,
        e: &Encoded<T>,
        groups: usize,
        operation: &str,
    ) -> Result<Option<(Whole, Kernel)>> {
        let (number, n) = (size_of::<T>(), e.n as usize);
        let segments = n.div_ceil(SEGMENT);
        let (mine, chunks) = (segments.div_ceil(groups), segments.div_ceil(SEGMENT));
        let words = |a: &lacuna_core::Matrix<T>| self.memory.matrix_words(*a, operation).map(|w| w[1] as u32);
        let lanes = e.matrices.iter().map(words).collect::<Result<Vec<_>>>()?;
        let heavy = e.slots > 4 && lanes.iter().all(|w| *w == 1);
        let size = match self.options.group {
            0 => FAR_SIZE[usize::from(heavy)],
            size => size,
        };
        let (fits, sums) = (vec![false; lanes.len()], e.sums as usize + 4);
        let params = if e.bases.is_empty() { 4 } else { 4 * generate::NEAR_PARAMS };
        let bytes = (sums * mine + sums + e.cells.len() + 2) * number + params;
        if bytes + 8 * encode::CONTROL_WORDS as usize + 64 > self.local_budget() {
            return Ok(None);
        }
        let (mut staged, mut steps) = (Staged::default(), Vec::new());
        for (a, lanes) in e.matrices.iter().zip(&lanes) {
            let none = vec![(0, 0); groups];
            let format = self.memory.format(*a).filter(|_| (a.bytes as u64) < self.device.memory / 8);
            let counts = format.is_some_and(|f| {
                staged.add(&**f, &none, &vec![0; groups], size, *lanes as usize, FAR_PADDING)
            });
            if !counts {
                staged.windows_of(&none);
            }
            steps.push(usize::from(counts));
        }
        staged.pad();
        let shape = Shape { size, far: true, one: false, chunks, work: 1, steps, lanes, fits, registers: 0 };
        let room = Room { groups, sums, params, got: sums * mine, rows_at: 1, terms: sums, widest: 1 };
        self.build_near(e, shape, room, &staged, operation)
    }

    fn divide<T: Scalar>(
        &mut self,
        e: &Encoded<T>,
        groups: usize,
        mine: usize,
        size: usize,
        operation: &str,
    ) -> Result<Option<(Whole, Kernel)>> {
        let (number, one, nvidia) = (size_of::<T>(), groups == 1, self.device.is_nvidia());
        let (n, segments, rows) = (e.n as usize, (e.n as usize).div_ceil(SEGMENT), mine * SEGMENT);
        let words = |a: &lacuna_core::Matrix<T>| self.memory.matrix_words(*a, operation).map(|w| w[1] as u32);
        let lanes = e.matrices.iter().map(words).collect::<Result<Vec<_>>>()?;

        // Local memory: what is needed first, then terms of sums, then what a group multiplies.
        let chunks = if one { mine } else { segments.div_ceil(SEGMENT) };
        let sums = e.sums as usize + 4; // with those that an operation may leave to the next
        let (got, cells) = (sums * chunks, e.cells.len());
        let rows_at = if lanes.iter().any(|w| *w > 1) { rows } else { 1 };
        let fixed = (got + cells + rows_at) * number + 8 * encode::CONTROL_WORDS as usize + 64;
        let params = if e.bases.is_empty() { 4 } else { 4 * generate::NEAR_PARAMS };
        let fixed = fixed + params;
        let Some(room) = self.local_budget().checked_sub(fixed) else { return Ok(None) };
        let room = room / number;
        let least = match (nvidia, e.bases.is_empty()) {
            (true, _) => rows,
            (false, true) => rows.max(size),
            (false, false) => (2 * rows).max(size),
        };
        let window = if one { n } else { 0 };
        if room < least + window {
            return Ok(None);
        }
        let work = ((room - window) / rows).clamp(1, 3);
        let work = if one { work } else { work.min(2).max(least.div_ceil(rows)) };
        let terms = (work * rows).max(least);
        let mut staged = Staged::default();
        let (mut widest, mut fits, mut steps) = (if one { n } else { 1 }, Vec::new(), Vec::new());
        for (a, lanes) in e.matrices.iter().zip(&lanes) {
            let spans = self.memory.spans(*a);
            let window = |g: usize| {
                let mine = spans.get(segments * g / groups..segments * (g + 1) / groups).unwrap_or(&[]);
                let mine = mine.iter().filter(|(low, end)| low < end);
                let low = mine.clone().map(|s| s.0).min().unwrap_or(0);
                (low, mine.map(|s| s.1).max().unwrap_or(low) - low)
            };
            let of_groups: Vec<(u32, u32)> = (0..groups).map(window).collect();
            let width = of_groups.iter().map(|w| w.1 as usize).max().unwrap_or(0);
            let fit = one || (!spans.is_empty() && width <= room - terms);
            if fit && !one {
                widest = widest.max(width);
            }
            fits.push(fit);
            let format = self.memory.format(*a);
            // Rows of one lane lie well enough as they are.
            let counts = format.filter(|_| *lanes > 1).is_some_and(|format| {
                let lows = of_groups.iter().map(|(low, _)| if fit && !one { *low } else { 0 });
                staged.add(
                    &**format,
                    &of_groups,
                    &lows.collect::<Vec<_>>(),
                    size,
                    *lanes as usize,
                    NEAR_PADDING,
                )
            });
            if !counts {
                staged.windows_of(&of_groups);
            }
            steps.push(if counts { (rows * *lanes as usize).div_ceil(size) } else { 0 });
        }
        staged.pad();

        let (all, each, taken) = REGISTERS;
        let registers = (all / size).min(each).saturating_sub(taken) * 4 / number;
        let shape = Shape { size, far: false, one, chunks, work, lanes, fits, steps, registers };
        let room = Room { groups, sums, params, got, rows_at, terms, widest };
        self.build_near(e, shape, room, &staged, operation)
    }

    fn build_near<T: Scalar>(
        &mut self,
        e: &Encoded<T>,
        shape: Shape,
        room: Room,
        staged: &Staged<T>,
        operation: &str,
    ) -> Result<Option<(Whole, Kernel)>> {
        let Room { groups, sums, params, got, rows_at, terms, widest } = room;
        let (number, cells, n) = (size_of::<T>(), e.cells.len(), e.n as usize);
        let (nvidia, segments) = (self.device.is_nvidia(), n.div_ceil(SEGMENT));
        let Some(written) = generate::write(e, &shape) else { return Ok(None) };
        if written.sums > sums {
            return Ok(None);
        }
        let text = source::near_text(T::KIND, nvidia, &shape, &written.text);
        let [mut kernel, advance] = self.near_kernels::<T>(text)?;
        // NVIDIA's answer is for kernels that name no size of their own.
        if !nvidia && kernel.group_limit(self.device.id) < shape.size {
            return Ok(None);
        }
        let parts = if number == 16 { 2 } else { 1 };
        let half = (written.sums * (segments + segments.div_ceil(SEGMENT)) * parts).max(groups) * 2;
        let near = Near {
            exchange: self.zeros(2 * half * 8, operation)?,
            shared: self.zeros(if shape.one || shape.far { 16 } else { 4 * parts * n * 8 }, operation)?,
            windows: self.filled(bytemuck::cast_slice(&staged.windows), operation)?,
            columns: self.filled(bytemuck::cast_slice(&staged.columns), operation)?,
            values: self.filled(bytemuck::cast_slice(&staged.values), operation)?,
            params: self.filled(bytemuck::cast_slice(&written.params), operation)?,
        };
        let args = [
            Arg::Word(e.cells.start),
            Arg::Word(cells as u32),
            Arg::Word(0),
            Arg::Word(0),
            Arg::Word(n as u32),
            Arg::Word(half as u32),
            Arg::Word(0),
            Arg::Local(terms * number),
            Arg::Local(got * number),
            Arg::Local(rows_at * number),
            Arg::Local(widest * number),
            Arg::Local(cells * number),
            Arg::Local(8 * encode::CONTROL_WORDS as usize),
            Arg::Local(params),
        ];
        for (i, arg) in args.iter().enumerate() {
            kernel.set(13 + i as u32, arg).map_err(self.fail(operation))?;
        }
        Ok(Some((Whole { kernel, groups, size: shape.size, near: Some(near) }, advance)))
    }

    fn zeros(&self, bytes: usize, operation: &str) -> Result<Buffer> {
        let bytes = bytes.next_multiple_of(16);
        let buffer = self.memory.buffer(&self.context, bytes, operation)?;
        self.queue.fill(&buffer, 0, bytes, &[0; 4]).map_err(self.fail(operation))?;
        Ok(buffer)
    }
}
