//! A whole program as one kernel written for it: how its rows and its local memory are divided.
use crate::backend::OpenCl;
use crate::driver::{Arg, Buffer, Kernel};
use crate::plan::Whole;
use crate::{Mode, OpenClOptions};
use lacuna_core::encode::Encoded;
use lacuna_core::{Result, Scalar};
use lacuna_generate::{Device, Laid, Layout, MatrixFacts, SEGMENT, Shelf};
use std::sync::Arc;

/// Windows, columns and values of laid out matrices, for all plans that multiply them so.
pub(crate) type Entries = Arc<[Buffer; 3]>;

/// What is the same for every plan of a program.
#[derive(Clone)]
pub(crate) struct Written {
    layout: Arc<Layout>,
    entries: Entries,
    /// The numbers of blocks.
    params: Arc<Buffer>,
}

/// What a backend keeps for plans to come.
pub(crate) type Kept = Shelf<Entries, Written>;

/// Buffers of a plan, and what it shares.
pub(crate) struct Near {
    exchange: Buffer,
    shared: Buffer,
    written: Written,
}

impl Near {
    /// The arguments behind those that all kernels share.
    pub(crate) fn args(&self) -> [Arg<'_>; 6] {
        let [windows, columns, values] = &*self.written.entries;
        [&self.exchange, &self.shared, windows, &self.written.params, columns, values].map(Arg::Buffer)
    }
}

/// Places of arguments that change from launch to launch.
pub(crate) const NEAR_BUDGET: u32 = 15;
pub(crate) const NEAR_ENTER: u32 = 16;
pub(crate) const NEAR_SHORT_HISTORY: u32 = 19;
/// Rows up to which one group is the faster one.
const ALONE: usize = 512;
/// Sums of a thousand segments at the most meet in one exchange.
const SEGMENTS: usize = 4 * SEGMENT;

impl OpenCl {
    /// How a program runs as a kernel written for it; nothing where it does not.
    pub(crate) fn near<T: Scalar>(
        &mut self,
        e: &Encoded<T>,
        operation: &str,
    ) -> Result<Option<(Whole, Kernel)>> {
        let written = match self.shelf.program(e, 0) {
            Some(written) => Some(written),
            None => self.written(e, operation)?,
        };
        written.map_or(Ok(None), |written| self.build_near(e, written, operation))
    }

    /// A program laid out, what it multiplies on the device; nothing where it has no such form.
    fn written<T: Scalar>(&mut self, e: &Encoded<T>, operation: &str) -> Result<Option<Written>> {
        let mut shelf = std::mem::take(&mut self.shelf);
        let laid = self.lay_out(e, operation, &mut shelf);
        self.shelf = shelf;
        let Some((layout, laid)) = laid? else { return Ok(None) };
        let entries = match laid {
            Laid::Kept(entries) => entries,
            Laid::Anew(staged, key, way) => {
                let entries = Arc::new([
                    self.filled(bytemuck::cast_slice(&staged.windows), operation)?,
                    self.filled(bytemuck::cast_slice(&staged.columns), operation)?,
                    self.filled(bytemuck::cast_slice(&staged.values), operation)?,
                ]);
                self.shelf.keep(key, way, entries.clone());
                entries
            }
        };
        let params = Arc::new(self.filled(bytemuck::cast_slice(&layout.written.params), operation)?);
        let written = Written { layout: Arc::new(layout), entries, params };
        self.shelf.keep_program(e, 0, written.clone());
        Ok(Some(written))
    }

    fn lay_out<T: Scalar>(
        &self,
        e: &Encoded<T>,
        operation: &str,
        shelf: &mut Kept,
    ) -> Result<Option<(Layout, Laid<T, Entries>)>> {
        let OpenClOptions { mode, group, one_group_rows, persistent_rows, .. } = self.options;
        let n = e.n as usize;
        let (segments, units) = (n.div_ceil(SEGMENT), self.together());
        let most = self.device.largest_group.min(1024) / SEGMENT;
        if !self.writes_kernels() || n == 0 || most == 0 || e.matrices.iter().any(|a| a.cols != n) {
            return Ok(None);
        }
        let facts = |a: &lacuna_core::Matrix<T>| {
            self.memory.matrix_words(*a, operation)?;
            let stages = (a.bytes as u64) < self.device.memory / 8;
            Ok(self.memory.format(*a).map(|format| MatrixFacts {
                format: &**format,
                serial: a.serial,
                stages,
            }))
        };
        let matrices = e.matrices.iter().map(facts).collect::<Result<Option<Vec<_>>>>()?;
        let Some(matrices) = matrices else { return Ok(None) };
        // Long rows are worth more groups, which share the segments; see `Layout::near`.
        let long = matrices.iter().any(MatrixFacts::has_long_rows);
        let alone = segments <= most;
        let together = units > 1 && segments.div_ceil(units) <= most && segments <= SEGMENTS;
        let together = together && n <= persistent_rows.unwrap_or(usize::MAX);
        let far = units > 1 && self.device.is_nvidia() && segments <= SEGMENT * SEGMENT;
        let far = far && n <= persistent_rows.unwrap_or(usize::MAX);
        let groups = match mode {
            Mode::Persistent | Mode::Auto if far && !together && (mode == Mode::Persistent || !alone) => {
                segments.min(units)
            }
            Mode::OneGroup if alone => 1,
            Mode::Persistent if together => segments.min(units),
            Mode::Auto if alone && ((n <= one_group_rows.unwrap_or(ALONE) && !long) || !together) => 1,
            Mode::Auto if together => segments.min(units),
            _ => return Ok(None),
        };
        let device = Device {
            nvidia: self.device.is_nvidia(),
            cache: if self.device.asks_cache() { self.device.cache() } else { 0 },
            local: self.local_budget(),
            largest: self.device.largest_group,
            size: group,
            ways: 0,
            units,
            prelude: None,
        };
        let near =
            (together || groups == 1).then(|| Layout::near(e, &matrices, device, groups, shelf)).flatten();
        Ok(match near {
            None if far && groups > 1 => Layout::far(e, &matrices, device, groups, shelf),
            near => near,
        })
    }

    /// Builds a written kernel and makes the buffers of a plan.
    fn build_near<T: Scalar>(
        &mut self,
        e: &Encoded<T>,
        written: Written,
        operation: &str,
    ) -> Result<Option<(Whole, Kernel)>> {
        let Layout { text, groups, shape, half, shared, local, .. } = &*written.layout;
        let (groups, size, half, local) = (*groups, shape.size, *half, *local);
        let [mut kernel, advance] = self.near_kernels::<T>(text)?;
        // NVIDIA's answer is for kernels that name no size of their own.
        if !self.device.is_nvidia() && kernel.group_limit(self.device.id) < size {
            return Ok(None);
        }
        let (exchange, shared) = (self.zeros(2 * half * 8, operation)?, self.zeros(8 * shared, operation)?);
        let near = Near { exchange, shared, written };
        let words = [e.cells.start, e.cells.len() as u32, 0, 0, e.n, half as u32, 0].map(Arg::Word);
        for (i, arg) in words.into_iter().chain(local.map(Arg::Local)).enumerate() {
            kernel.set(13 + i as u32, &arg).map_err(self.fail(operation))?;
        }
        Ok(Some((Whole { kernel, groups, size, near: Some(near) }, advance)))
    }

    fn zeros(&self, bytes: usize, operation: &str) -> Result<Buffer> {
        let bytes = bytes.next_multiple_of(16);
        let buffer = self.memory.buffer(&self.context, &self.queue, bytes, operation)?;
        self.queue.fill(&buffer, 0, bytes, &[0; 4]).map_err(self.fail(operation))?;
        Ok(buffer)
    }
}
