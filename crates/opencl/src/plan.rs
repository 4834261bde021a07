//! A program prepared for the device: its tables, and the kernels that run it.
use crate::Mode;
use crate::backend::OpenCl;
use crate::compiler::{self, SEGMENT};
use crate::driver::{Arg, Buffer, Kernel};
use crate::jit::{Generated, Jit, JitState};
use crate::launches::Steps;
use lacuna_engine::encode::{self, Encoded};
use lacuna_engine::{Error, History, OpKind, Program, Result};

/// A kernel and its launch shape.
pub(crate) struct Launch {
    pub(crate) kernel: Kernel,
    pub(crate) groups: usize,
    pub(crate) size: usize,
}

/// The kernels that run a program.
pub(crate) enum Execution {
    /// One entry for each operation; `None` for one that has only instructions.
    Launches(Vec<Option<Steps>>),
    OneGroup(Launch),
    Jit(Jit),
}

/// What a handle of a plan refers to.
pub(crate) struct Planned {
    /// The serial of its program.
    pub(crate) program: u32,
    /// `None` for a program that runs step by step.
    pub(crate) prepared: Option<Box<Executable>>,
}

/// A program in the backend's own form.
pub(crate) struct Executable {
    pub(crate) encoded: Encoded,
    table: Buffer,
    names: Buffer,
    pub(crate) control: Buffer,
    pub(crate) advance: Kernel,
    pub(crate) execution: Execution,
    /// A generated kernel that takes over once it is compiled.
    awaited: Option<Generated>,
    /// [`Store::epoch`](crate::store::Store::epoch) when everything that the program names was live.
    pub(crate) epoch: u64,
    /// How often values of matrices had been replaced when this was made; a generated kernel has them in its
    /// own order.
    pub(crate) values: u64,
    /// The generation of the buffers that the arguments name.
    bound: Option<u64>,
    /// Host buffers: two to read into, one to write the control block from. They never grow.
    pub(crate) host: [Vec<u64>; 3],
}

impl Executable {
    /// Whether its kernels were never launched.
    pub(crate) fn is_fresh(&self) -> bool {
        self.bound.is_none()
    }
    /// Whether a generated kernel runs the program, or will: it has the entries of matrices in its own order.
    pub(crate) fn holds_entries(&self) -> bool {
        self.is_jit() || self.awaited.is_some()
    }
    /// Whether a generated kernel runs the program.
    pub(crate) fn is_jit(&self) -> bool {
        matches!(self.execution, Execution::Jit(_))
    }
}

/// Indices of arguments that change from launch to launch.
pub(crate) const ADVANCE_MODE: u32 = 7;
const ADVANCE_CONTROL: u32 = 8;
/// Capacity of the history on the device.
pub(crate) const HISTORY: usize = History::CAPACITY as usize + 2;

impl OpenCl {
    pub(crate) fn prepare(&mut self, program: &Program) -> Result<Box<Executable>> {
        let operation = format!("planning `{}`", program.name());
        self.store.check(program)?;
        self.check_mode(&operation)?;
        // Kernels for several columns do not support narrow ones.
        let together = |kind: &OpKind| match kind {
            OpKind::Spmm { a, .. } => self.multiplies_columns(*a),
            _ => true,
        };
        let kept = program.column_by_column(|kind| !program.has_narrow() && together(kind));
        let columns = kept.has_columns() && matches!(self.options.mode, Mode::Auto | Mode::Launches);
        // Only launches can solve level by level.
        let by_operation = columns || program.has_solves();
        let apart = if columns { kept } else { program.column_by_column(|_| false) };
        let encoded = encode::encode(&apart)?;
        let kind = encoded.kind;
        let words: Vec<u64> = self.names(&encoded, &operation)?;
        let table = self.driver.filled(bytemuck::cast_slice(&encoded.words), &operation)?;
        let names = self.driver.filled(bytemuck::cast_slice(&words), &operation)?;
        let segments = (encoded.n as usize).div_ceil(SEGMENT);
        let sums = (encoded.sums as usize).max(1) * compiler::room_of(segments.max(1));
        self.reserve_scratch(kind, sums)?;

        // What runs through once is not worth a compiler.
        let each = encode::SECTION_EACH as usize;
        let once = self.options.mode == Mode::Auto && encoded.sections[each].is_empty();
        let jit = if by_operation || once { JitState::Unavailable } else { self.jit(&encoded, &operation)? };
        // What the host reads back: the control block; for a generated kernel also a short history and the
        // cells.
        let words = match jit {
            JitState::Unavailable => encode::CONTROL_WORDS as usize,
            _ => compiler::JIT_CELLS_AT + encoded.cells.len() * kind.size() / 8 + 1,
        };
        let control = self.driver.zeros(8 * words, &operation)?;
        let (execution, advance, awaited) = match jit {
            JitState::Ready(jit, advance) => (Execution::Jit(jit), advance, None),
            other => {
                let awaited = if let JitState::Compiling(generated) = other { Some(generated) } else { None };
                let one_group = match by_operation {
                    true => None,
                    false => self.one_group(&encoded, &operation)?,
                };
                let execution = match one_group {
                    Some(launch) => Execution::OneGroup(launch),
                    None => Execution::Launches(self.launches(&encoded, &operation)?),
                };
                self.compile_beside();
                (execution, self.kernel(kind, ("advance", compiler::variant(&encoded)))?, awaited)
            }
        };
        let host = [0; 3].map(|_| vec![0; words]);
        Ok(Box::new(Executable {
            values: self.store.values,
            epoch: self.store.epoch,
            encoded,
            table,
            names,
            control,
            advance,
            execution,
            awaited,
            bound: None,
            host,
        }))
    }

    /// Fails if the device cannot run programs in the requested mode.
    fn check_mode(&self, operation: &str) -> Result<()> {
        let mode = self.options.mode;
        if self.modes().contains(&mode) {
            return Ok(());
        }
        let message =
            format!("{} runs programs by one of {:?}, not {mode:?}", self.driver.device.name, self.modes());
        Err(Error::Unsupported { operation: operation.into(), message })
    }

    /// Switches to the generated kernel if it has been compiled.
    pub(crate) fn take_jit(&mut self, prepared: &mut Executable, operation: &str) -> Result<()> {
        let Some(generated) = prepared.awaited.take() else { return Ok(()) };
        match self.jit_state(&prepared.encoded, generated, operation)? {
            JitState::Ready(jit, advance) => {
                (prepared.execution, prepared.advance) = (Execution::Jit(jit), advance);
                prepared.bound = None;
            }
            JitState::Compiling(generated) => prepared.awaited = Some(generated),
            JitState::Unavailable => {}
        }
        Ok(())
    }

    /// The words that the table's indices refer to, see `kernels-opencl/shared/cells.cl`; bit 0 of a vector's
    /// offset marks a narrow one.
    fn names(&self, encoded: &Encoded, operation: &str) -> Result<Vec<u64>> {
        let bases = 2 + encoded.vectors.len();
        let matrices = bases + 2 * encoded.bases.len();
        let mut words = vec![bases as u64, matrices as u64];
        for v in &encoded.vectors {
            words.push(self.store.offset(*v, operation)? as u64 | u64::from(v.narrow));
        }
        for v in &encoded.bases {
            let (offset, stride) = self.store.basis_offset(*v, operation)?;
            words.extend([offset as u64 | u64::from(v.narrow), stride as u64]);
        }
        for a in &encoded.matrices {
            words.extend(self.store.matrix_words(*a, operation)?);
        }
        Ok(words)
    }

    /// Bytes of local memory that kernels may use.
    pub(crate) fn local_budget(&self) -> usize {
        self.driver.device.local_memory.saturating_sub(1024)
    }

    /// Sets the kernels' buffer arguments to the current buffers.
    pub(crate) fn bind(&mut self, prepared: &mut Executable) -> Result<()> {
        let kind = prepared.encoded.kind;
        self.store.settle(&self.driver, kind)?;
        self.store.buffers(&self.driver, kind)?;
        if prepared.bound == Some(self.store.generation) {
            return Ok(());
        }
        let (generation, fail) = (self.store.generation, self.driver.fail("setting arguments"));
        let (arena, cells) = self.store.buffers(&self.driver, kind)?;
        let stale = || Error::Stale { operation: "setting arguments".into(), what: "buffer" };
        let scratch = self.scratch.as_ref().ok_or_else(stale)?;
        let Executable { table, names, control, advance, execution, .. } = prepared;
        let common = [arena, arena, table, names, cells, control, &scratch.history].map(Arg::Buffer);
        let sums = [&scratch.partials, &scratch.counter].map(Arg::Buffer);
        let set = |kernel: &mut Kernel, own: &[Arg<'_>]| -> Result<()> {
            let all = common.iter().chain(own).enumerate();
            { all }.try_for_each(|(i, arg)| kernel.set(i as u32, arg)).map_err(&fail)
        };
        set(advance, &[])?;
        advance.set(ADVANCE_CONTROL, &Arg::Local(8 * encode::CONTROL_WORDS as usize)).map_err(&fail)?;
        match execution {
            Execution::Launches(steps) => {
                let mut launches = steps.iter_mut().flatten().flat_map(Steps::launches_mut);
                launches.try_for_each(|launch| set(&mut launch.kernel, &sums))?;
            }
            Execution::OneGroup(launch) => set(&mut launch.kernel, &sums[..1])?,
            Execution::Jit(jit) => set(&mut jit.launch.kernel, &jit.buffers.args())?,
        }
        prepared.bound = Some(generation);
        Ok(())
    }
}
