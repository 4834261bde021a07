//! A program made ready for the device: its tables, its kernels and how each is launched.
use crate::backend::OpenCl;
use crate::driver::{Arg, Buffer, Kernel};
use crate::near::Near;
use crate::source::{self, FOLD, SEGMENT, TEAM};
use crate::{Mode, OpenClOptions};
use lacuna_core::encode::{self, Encoded};
use lacuna_core::{Cell, Error, Format, History, MAX_LANES, Matrix, Program, Result, Scalar};
use lacuna_generate::{columns_pay, rows_come_first};

/// A kernel of an operation and its launch.
pub(crate) struct Step {
    pub(crate) kernel: Kernel,
    pub(crate) groups: usize,
    pub(crate) size: usize,
}

/// The launches of an operation.
pub(crate) struct Steps {
    /// Where a product takes partial sums first.
    pub(crate) ahead: Option<Step>,
    pub(crate) operation: Step,
    /// Where its sums are many.
    pub(crate) fold: Option<Step>,
}

/// The launch of a whole program.
pub(crate) struct Whole {
    pub(crate) kernel: Kernel,
    pub(crate) groups: usize,
    pub(crate) size: usize,
    /// Where it is a kernel written for the program.
    pub(crate) near: Option<Near>,
}

/// The backend's own form of a program.
pub(crate) struct Prepared<T> {
    /// The backend that made it.
    pub(crate) owner: u32,
    pub(crate) encoded: Encoded<T>,
    table: Buffer,
    names: Buffer,
    pub(crate) control: Buffer,
    pub(crate) advance: Kernel,
    /// By operation; nothing where an operation is instructions alone.
    pub(crate) steps: Vec<Option<Steps>>,
    pub(crate) whole: Option<Whole>,
    /// The cells that the program names.
    named: Vec<Cell<T>>,
    /// The generation of buffers the arguments name.
    bound: Option<u64>,
    /// What the device says: two places to read to; one to write the control block from. They never grow.
    pub(crate) host: [Vec<u64>; 3],
}

impl<T> Prepared<T> {
    /// Whether a kernel is written for the program.
    pub(crate) fn is_near(&self) -> bool {
        self.whole.as_ref().is_some_and(|whole| whole.near.is_some())
    }
}

/// The rows up to which a whole loop in one group is worth it, by kind of device, and in several groups.
const ONE_GROUP_ROWS: (usize, usize) = (2048, 4096);
const PERSISTENT_ROWS: usize = 150_000;
/// Places of arguments that change from launch to launch.
pub(crate) const ADVANCE_MODE: u32 = 7;
pub(crate) const PROGRAM_BUDGET: u32 = 11;
/// Values of the history on the device.
pub(crate) const HISTORY: usize = History::CAPACITY as usize + 2;

/// Groups of one team for each unit: no more than run at once where a work-item takes 128 registers, since the last ones
/// would run alone.
const TEAMS_A_UNIT: usize = 16;
/// The same of a CPU, where a group takes whole segments.
const GROUPS_A_UNIT: usize = 4;

impl OpenCl {
    pub(crate) fn prepare<T: Scalar>(&mut self, program: &Program<T>) -> Result<Prepared<T>> {
        let operation = format!("planning `{}`", program.name);
        self.memory.check(program)?;
        let kept = program.column_by_column(|a| self.multiplies_columns(a));
        let by_operation = kept.has_columns() && matches!(self.options.mode, Mode::Auto | Mode::Launches);
        let apart = if by_operation { kept } else { program.column_by_column(|_| false) };
        let encoded = encode::encode(&*apart)?;
        let mut named: Vec<_> = program.ops().flat_map(|op| &op.sweep.cells).copied().collect();
        named.sort_by_key(|cell| (cell.index, cell.serial));
        named.dedup();
        self.device.check_type::<T>()?;
        let words: Vec<u64> = self.names(&encoded, &operation)?;
        let table = self.filled(bytemuck::cast_slice(&encoded.words), &operation)?;
        let names = self.filled(bytemuck::cast_slice(&words), &operation)?;
        // What the host reads back: the control block; with a kernel written for the program a short history and the
        // cells too.
        let words = source::NEAR_CELLS_AT + encoded.cells.len() * size_of::<T>() / 8 + 1;
        let control = self.filled(&vec![0; 8 * words], &operation)?;
        let segments = (encoded.n as usize).div_ceil(SEGMENT);
        let sums = (encoded.sums as usize).max(1) * segments.max(1);
        self.reserve_scratch::<T>(sums)?;

        let near = if by_operation { None } else { self.near(&encoded, &operation)? };
        let (whole, mut advance) = match near {
            Some((near, advance)) => (Some(near), advance),
            None => {
                self.build::<T>()?;
                let whole = if by_operation { None } else { self.whole(&encoded, sums, &operation)? };
                (whole, self.kernel::<T>("advance")?)
            }
        };
        let fail = self.fail(&operation);
        advance.set(8, &Arg::Local(8 * encode::CONTROL_WORDS as usize)).map_err(&fail)?;
        let near = whole.as_ref().is_some_and(|whole: &Whole| whole.near.is_some());
        // One launch runs everything, or the launches of each operation do.
        let steps = (0..encoded.ops())
            .map(|op| match whole.is_some() || encoded.is_scalar(op) {
                true => Ok(None),
                false => self.steps_of(&encoded, op, &operation).map(Some),
            })
            .collect::<Result<Vec<_>>>()?;
        let words = if near { words } else { encode::CONTROL_WORDS as usize };
        let host = [0; 3].map(|_| vec![0; words]);
        Ok(Prepared {
            owner: self.serial,
            encoded,
            table,
            names,
            control,
            advance,
            steps,
            whole,
            named,
            bound: None,
            host,
        })
    }

    /// Whether several columns are multiplied at once: where there is a kernel for that, and on GPUs it is the faster way, as by
    /// slices of large matrices alone.
    fn multiplies_columns<T: Scalar>(&self, a: Matrix<T>) -> bool {
        let kernel = self.memory.spmv_kernel(a, "spmm").ok().and_then(columns_kernel);
        let (Some(kernel), Some(a)) = (kernel, self.memory.format(a)) else { return false };
        let far = self.options.mode != Mode::Auto || columns_pay(a.kernel(), a.bytes(), self.device.cache());
        (self.segments_each || kernel == "spmm_sell" && far) && !a.has_long_rows()
    }

    /// Fails unless every handle is live.
    pub(crate) fn check_live<T: Scalar>(&self, prepared: &Prepared<T>, operation: &str) -> Result<()> {
        let encoded = &prepared.encoded;
        prepared.named.iter().try_for_each(|cell| self.memory.check_cell(*cell, operation))?;
        encoded.vectors.iter().try_for_each(|v| self.memory.offset(*v, operation).map(drop))?;
        encoded.bases.iter().try_for_each(|v| self.memory.basis_offset(*v, operation).map(drop))?;
        encoded.matrices.iter().try_for_each(|a| self.memory.matrix_words(*a, operation).map(drop))?;
        if encoded.cells.end as usize > self.memory.cell_count::<T>() {
            return Err(Error::Stale { operation: operation.into(), what: "cell" });
        }
        Ok(())
    }

    /// What the table's indices stand for, see `kernels-opencl/cells.cl`.
    fn names<T: Scalar>(&self, encoded: &Encoded<T>, operation: &str) -> Result<Vec<u64>> {
        let bases = 2 + encoded.vectors.len();
        let matrices = bases + 2 * encoded.bases.len();
        let mut words = vec![bases as u64, matrices as u64];
        for v in &encoded.vectors {
            words.push(self.memory.offset(*v, operation)? as u64);
        }
        for v in &encoded.bases {
            let (offset, stride) = self.memory.basis_offset(*v, operation)?;
            words.extend([offset as u64, stride as u64]);
        }
        for a in &encoded.matrices {
            words.extend(self.memory.matrix_words(*a, operation)?);
        }
        Ok(words)
    }

    pub(crate) fn filled(&self, bytes: &[u8], operation: &str) -> Result<Buffer> {
        let buffer = self.memory.buffer(&self.context, &self.queue, bytes.len(), operation)?;
        self.queue.write(&buffer, 0, bytes).map_err(self.fail(operation))?;
        Ok(buffer)
    }

    /// Bytes of local memory that kernels may use.
    pub(crate) fn local_budget(&self) -> usize {
        self.device.local_memory.saturating_sub(1024)
    }

    fn steps_of<T: Scalar>(&self, encoded: &Encoded<T>, op: u32, operation: &str) -> Result<Steps> {
        let kind = encoded.op(op, encode::OP_KIND);
        // What comes ahead of a product, and its groups.
        let mut first = None;
        let stem = match kind {
            encode::KIND_SPMV => {
                let a = encoded.matrices[encoded.op(op, encode::OP_MATRIX) as usize];
                let kernel = self.memory.spmv_kernel(a, operation)?;
                match self.memory.partial_sums(a) {
                    0 if self.rows_come_first(a) => {
                        first = Some(("spmv_csr_first", a.rows));
                        "sweep"
                    }
                    0 => kernel,
                    pieces => {
                        first = Some(("spmv_pieces", pieces));
                        kernel
                    }
                }
            }
            encode::KIND_SPMM => {
                let a = encoded.matrices[encoded.op(op, encode::OP_MATRIX) as usize];
                let kernel = self.memory.spmv_kernel(a, operation)?;
                columns_kernel(kernel).ok_or_else(|| Error::Unsupported {
                    operation: format!("{operation} by the kernel `{kernel}`"),
                    message: "no kernel takes several columns together; multiply them one by one".into(),
                })?
            }
            encode::KIND_BASIS_DOT => "basis_dot",
            encode::KIND_BASIS_AXPY => "basis_axpy",
            _ => "sweep",
        };
        let segments = (encoded.op(op, encode::OP_N) as usize).div_ceil(SEGMENT);
        let dots = if kind == encode::KIND_BASIS_DOT { encode::OP_COLUMNS } else { encode::OP_DOT_COUNT };
        let sums = encoded.op(op, dots) as usize;
        let folds = !self.segments_each && sums * segments > FOLD;
        let (size, most) = if self.segments_each { (1, GROUPS_A_UNIT) } else { (TEAM, TEAMS_A_UNIT) };
        let step = |stem, groups: usize| -> Result<Step> {
            let kernel = self.step_kernel(encoded, op, stem, operation)?;
            Ok(Step { kernel, groups: groups.clamp(1, most * self.device.units), size })
        };
        let fold = || step("fold", sums * segments.div_ceil(SEGMENT));
        Ok(Steps {
            ahead: first.map(|(stem, groups)| step(stem, groups)).transpose()?,
            operation: step(stem, segments)?,
            fold: folds.then(fold).transpose()?,
        })
    }

    /// Whether the rows of a product are computed ahead of the pass.
    fn rows_come_first<T: Scalar>(&self, a: Matrix<T>) -> bool {
        let by_teams = |format: &dyn Format<T>| format.kernel() == "csr" && format.lanes() == MAX_LANES;
        rows_come_first(a.rows, a.nnz, self.device.units)
            && self.memory.format(a).is_some_and(|format| by_teams(&**format))
    }

    /// A kernel of an operation with the arguments that stay.
    fn step_kernel<T: Scalar>(
        &self,
        encoded: &Encoded<T>,
        op: u32,
        stem: &str,
        operation: &str,
    ) -> Result<Kernel> {
        let mut kernel = self.kernel::<T>(stem)?;
        let (size, cells) = (size_of::<T>(), encoded.cells.len());
        let work = source::work::<T>(if self.segments_each { SEGMENT } else { TEAM });
        let table = self.table_bytes(encoded, op);
        let budget = self.local_budget().saturating_sub(work + table) / size;
        let slots = encoded.op(op, encode::OP_SLOT_COUNT) as usize;
        // A pass behind the rows finds them where the vector is.
        let behind = stem == "sweep" && encoded.op(op, encode::OP_KIND) == encode::KIND_SPMV;
        let (cap, near) = if behind {
            (0, if cells <= budget { cells } else { 0 })
        } else if self.segments_each {
            (1, 0)
        } else {
            let cap = slots.clamp(1, (budget / SEGMENT).max(1));
            (cap, if cells <= budget { cells.max(cap * SEGMENT) } else { cap * SEGMENT })
        };
        let args = [
            Arg::Word(encoded.cells.start),
            Arg::Word(cells as u32),
            Arg::Word(op),
            Arg::Word(cap as u32),
            Arg::Word(near as u32),
            Arg::Local(work),
            Arg::Local((cap * SEGMENT).max(near).max(1) * size),
            Arg::Local(8 * encode::CONTROL_WORDS as usize),
            Arg::Local(table),
        ];
        for (i, arg) in args.iter().enumerate() {
            kernel.set(9 + i as u32, arg).map_err(self.fail(operation))?;
        }
        Ok(kernel)
    }

    /// Bytes of local memory for what a group reads of the table for every segment: see `kernels-opencl/sweep.cl`.
    fn table_bytes<T: Scalar>(&self, encoded: &Encoded<T>, op: u32) -> usize {
        if self.segments_each {
            return 0;
        }
        let field = |field| encoded.op(op, field) as usize;
        let weights = if field(encode::OP_KIND) == encode::KIND_BASIS_AXPY as usize {
            field(encode::OP_COLUMNS).next_multiple_of(4)
        } else {
            0
        };
        let words = field(encode::OP_DOTS) + field(encode::OP_DOT_COUNT) * encode::DOT_WORDS as usize
            - field(encode::OP_SLOTS);
        let numbers = weights + field(encode::OP_TERM_COUNT);
        8 * field(encode::OP_SLOT_COUNT).next_multiple_of(2) + numbers * size_of::<T>() + 4 * words
    }

    /// How a whole program is launched, where it is.
    fn whole<T: Scalar>(&self, encoded: &Encoded<T>, sums: usize, operation: &str) -> Result<Option<Whole>> {
        let OpenClOptions { mode, group, one_group_rows, persistent_rows, .. } = self.options;
        let n = encoded.n as usize;
        let segments = n.div_ceil(SEGMENT).max(1);
        let (of_gpu, of_cpu) = ONE_GROUP_ROWS;
        let alone = one_group_rows.unwrap_or(if self.segments_each { of_cpu } else { of_gpu });
        let together = persistent_rows.unwrap_or(PERSISTENT_ROWS);
        let can_meet = self.runs_groups_together();
        // A program that runs through once is a call from the host: a launch or two.
        let loops = !encoded.sections[2].is_empty();
        let several = match mode {
            Mode::Launches => return Ok(None),
            Mode::OneGroup => false,
            Mode::Persistent if can_meet => true,
            Mode::Persistent => {
                return Err(Error::Unsupported {
                    operation: operation.into(),
                    message: format!(
                        "{} is not known to run several work-groups at once; use launches or one-group",
                        self.device.name
                    ),
                });
            }
            Mode::Auto if !loops => return Ok(None),
            Mode::Auto if encoded.matrices.iter().any(|a| self.rows_come_first(*a)) => return Ok(None),
            Mode::Auto if n <= alone => false,
            Mode::Auto if n <= together && can_meet => true,
            Mode::Auto => return Ok(None),
        };
        if segments > SEGMENT * SEGMENT {
            return Ok(None);
        }
        let (size, cells) = (size_of::<T>(), encoded.cells.len());
        let mut kernel = self.kernel::<T>("program")?;
        let most = self.device.largest_group.min(kernel.group_limit(self.device.id)).max(1);
        // A team for each segment, and slots that fit beside what a group needs for sums and cells.
        let item = |teams: usize| if self.segments_each { SEGMENT } else { teams * TEAM };
        let table = (0..encoded.ops()).map(|op| self.table_bytes(encoded, op)).max().unwrap_or(0);
        let cap_of = |teams: usize| {
            let taken = source::work::<T>(item(teams)) + cells * size + table;
            self.local_budget().saturating_sub(taken) / (size * teams * SEGMENT)
        };
        let slots = (encoded.slots as usize).max(1);
        let groups = if several { segments.min(self.together()) } else { 1 };
        let teams = if self.segments_each {
            1
        } else {
            let fits = |teams: &usize| teams * TEAM <= most && cap_of(*teams) >= slots.min(2);
            let wanted = if group > 0 { group / TEAM } else { segments.div_ceil(groups) };
            [32, 16, 8, 4, 2, 1].into_iter().filter(|teams| *teams < 2 * wanted).find(fits).unwrap_or(1)
        };
        let cap = cap_of(teams).min(if self.segments_each { 1 } else { slots });
        let item = item(teams);
        let size_of_group = if self.segments_each { 1 } else { item };
        if cap == 0 || size_of_group > most {
            return match mode {
                Mode::Auto => Ok(None),
                _ => Err(Error::Unsupported {
                    operation: operation.into(),
                    message: format!(
                        "{cells} cells do not fit the local memory of {}; use launches",
                        self.device.name
                    ),
                }),
            };
        }
        let args = [
            Arg::Word(encoded.cells.start),
            Arg::Word(cells as u32),
            Arg::Word(0),
            Arg::Word(cap as u32),
            Arg::Word(sums as u32),
            Arg::Local(source::work::<T>(item)),
            Arg::Local(cap * teams * SEGMENT * size),
            Arg::Local(cells * size),
            Arg::Local(8 * encode::CONTROL_WORDS as usize),
            Arg::Local(table),
        ];
        for (i, arg) in args.iter().enumerate() {
            kernel.set(9 + i as u32, arg).map_err(self.fail(operation))?;
        }
        Ok(Some(Whole { kernel, groups, size: size_of_group, near: None }))
    }

    /// Makes the kernels' arguments name the buffers there are now.
    pub(crate) fn bind<T: Scalar>(&mut self, prepared: &mut Prepared<T>) -> Result<()> {
        self.memory.arena(&self.context, &self.queue)?;
        self.memory.cell_buffer::<T>(&self.context, &self.queue)?;
        self.memory.settle::<T>(&self.queue)?;
        if prepared.bound == Some(self.memory.generation) {
            return Ok(());
        }
        let fail = self.fail("setting arguments");
        let (Some((arena, cells)), Some(scratch)) = (self.memory.both::<T>(), self.scratch.as_ref()) else {
            return Err(Error::Stale { operation: "setting arguments".into(), what: "buffer" });
        };
        let Prepared { table, names, control, advance, steps, whole, .. } = prepared;
        let common = [arena, arena, table, names, cells, control, &scratch.history].map(Arg::Buffer);
        let sums = [&scratch.partials, &scratch.counter].map(Arg::Buffer);
        advance.set_all(&common).map_err(&fail)?;
        let kernels = steps
            .iter_mut()
            .flatten()
            .flat_map(|steps| [steps.ahead.as_mut(), Some(&mut steps.operation), steps.fold.as_mut()])
            .flatten()
            .map(|step| &mut step.kernel);
        if let Some(Whole { kernel, near: Some(near), .. }) = whole {
            kernel.set_all(&common).map_err(&fail)?;
            for (i, arg) in near.args().iter().enumerate() {
                kernel.set(7 + i as u32, arg).map_err(&fail)?;
            }
        }
        let table_driven = whole.iter_mut().filter(|whole| whole.near.is_none());
        for kernel in kernels.chain(table_driven.map(|whole| &mut whole.kernel)) {
            kernel.set_all(&common).map_err(&fail)?;
            kernel.set(7, &sums[0]).map_err(&fail)?;
            kernel.set(8, &sums[1]).map_err(&fail)?;
        }
        prepared.bound = Some(self.memory.generation);
        Ok(())
    }
}

/// The kernel that multiplies several columns at once where the one for a single vector is this, if there is one.
fn columns_kernel(product: &str) -> Option<&'static str> {
    match product {
        "spmv_csr" => Some("spmm_csr"),
        "spmv_dia" => Some("spmm_dia"),
        "spmv_sell" => Some("spmm_sell"),
        "spmv_bcsr" => Some("spmm_bcsr"),
        _ => None,
    }
}
