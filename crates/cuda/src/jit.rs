//! A whole program as a generated kernel, see `crates/gpu`: its buffers and its launch.
use crate::compiler::{self, Code};
use crate::driver::{Address, Driver, Kernel, Launch, kernel_name};
use crate::options::{Compile, Mode, Wanted};
use crate::plan_cache::{Kept, RepackedBuffers};
use crate::store::Store;
use lacuna_engine::Result;
use lacuna_engine::encode::{CONTROL_WORDS, Encoded};
use lacuna_gpu::{
    AT_CELLS, AT_HISTORY, Device, Layout, MATRIX_WORDS, MatrixFacts, PlanCache, Repack, SEGMENT, has_shorter,
};
use lacuna_kernels_cuda::PRELUDE;
use std::ffi::c_void;

/// Maximum rows for which one block is faster.
const ALONE: usize = 512;
/// Maximum segments whose sums are exchanged in one step.
const SEGMENTS: usize = 4 * SEGMENT;
/// Shared memory of a kernel besides what is requested.
const FIXED_SHARED: usize = 1024;
/// 64-bit words of cells passed with a launch, `CHANGED_WORDS` of the prelude.
pub(crate) const CHANGED: usize = 128;
/// Values of a short history, which the host receives with the result of a launch.
pub(crate) const SHORT_HISTORY: usize = AT_CELLS - AT_HISTORY;

/// `Given` of the prelude.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Given {
    /// The control block; then the current epoch of exchanges and tag of operands.
    pub(crate) words: [u64; CONTROL_WORDS as usize + 2],
    pub(crate) changed: [u64; CHANGED],
    pub(crate) changed_first: u32,
    pub(crate) changed_count: u32,
}

/// The arguments of a launch, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResidentArgs {
    /// `arena` and `fixed` are 0, as names are addresses here. Then table, names, cells, result, history,
    /// exchange, shared, windows, params, columns and values.
    pub(crate) addresses: [Address; 13],
    /// First cell, number of cells, budget, entry mode, rows, words of half the exchange, whether the history
    /// is short; then the offsets of the arrays in shared memory.
    pub(crate) words: [u32; 16],
    pub(crate) given: Given,
}

/// Indices in `addresses` and `words` that change from launch to launch.
pub(crate) const CELLS: usize = 4;
pub(crate) const RESULT: usize = 5;
pub(crate) const HISTORY: usize = 6;
pub(crate) const BUDGET: usize = 2;
pub(crate) const ENTER: usize = 3;
pub(crate) const SHORT: usize = 6;
/// Values of `words[ENTER]`.
pub(crate) const ENTER_START: u32 = 1;
pub(crate) const ENTER_CANCEL: u32 = 2;

/// The launch of a generated kernel.
#[derive(Clone, Copy)]
pub(crate) struct Jit {
    kernel: Kernel,
    launch: Launch,
    pub(crate) args: ResidentArgs,
}

/// What planning a generated kernel needs.
pub(crate) struct Planning<'d, 'a> {
    pub(crate) driver: &'d mut Driver,
    pub(crate) store: &'a Store,
    pub(crate) cache: &'d mut PlanCache<RepackedBuffers, Kept>,
    pub(crate) wanted: Wanted,
}

/// A layout and the entries of its matrices.
type Found<'a> = (Layout, Repack<'a, RepackedBuffers>);
/// The same with the kernel.
type Made<'a> = (Layout, Jit, Repack<'a, RepackedBuffers>);

impl<'a> Planning<'_, 'a> {
    /// The generated kernel of a program with the entries of its matrices, which wait until it is compiled; `None`
    /// if the program runs without one.
    pub(crate) fn jit(&mut self, e: &Encoded, name: &str) -> Result<Option<Code<Made<'a>>>> {
        let Some((layout, repack)) = self.layout(e, name)? else { return Ok(None) };
        Ok(match self.kernel(e, &layout)? {
            None => None,
            Some(Code::Compiling(job)) => Some(Code::Compiling(job)),
            Some(Code::Ready(jit)) => Some(Code::Ready((layout, jit, repack))),
        })
    }

    /// The layout of a program's generated kernel; `None` if it runs without one.
    fn layout(&mut self, e: &Encoded, name: &str) -> Result<Option<Found<'a>>> {
        let store = self.store;
        let limits = &self.driver.limits;
        let wanted = match (self.wanted.mode, self.wanted.compile) {
            (Mode::Graph | Mode::Stream, _) | (_, Compile::Never) => false,
            (Mode::Jit, _) | (_, Compile::Always) => true,
            (Mode::Auto, Compile::Auto) => compiler::compiler_found(),
        };
        let (n, units) = (e.n as usize, limits.multiprocessors as usize);
        let segments = n.div_ceil(SEGMENT);
        if !wanted || n == 0 || e.matrices.iter().any(|a| a.cols > n) {
            return Ok(None);
        }
        let mut matrices = Vec::new();
        for a in &e.matrices {
            let format = &store.stored(*a, name)?.format;
            // Repacked entries are stored twice.
            let stages = self.driver.free_bytes().is_none_or(|free| a.bytes as u64 <= free / 4);
            matrices.push(MatrixFacts { format, serial: a.serial, stages });
        }
        let alone = segments <= 4;
        let long = matrices.iter().any(MatrixFacts::has_long_rows);
        let one = alone && ((n <= ALONE && !long) || !limits.cooperative);
        if !one && !limits.cooperative {
            return Ok(None);
        }
        let groups = if one { 1 } else { segments.min(units) };
        let together = segments.div_ceil(groups) <= 4 && segments <= SEGMENTS && (one || !has_shorter(e));
        let device = Device {
            nvidia: true,
            cache: if limits.capability >= (8, 0) { limits.cache } else { 0 },
            local: (limits.shared as usize).saturating_sub(FIXED_SHARED),
            largest: 1024,
            size: 0,
            ways: 0,
            units,
            prelude: Some(PRELUDE),
        };
        let resident = together.then(|| Layout::resident(e, &matrices, device, groups, self.cache)).flatten();
        let layout = match resident {
            None if groups > 1 && segments <= SEGMENT * SEGMENT => {
                Layout::streaming(e, &matrices, device, groups, self.cache)
            }
            resident => resident,
        };
        Ok(layout)
    }

    /// The kernel of a layout and its launch shape; the caller fills in the addresses.
    fn kernel(&mut self, e: &Encoded, layout: &Layout) -> Result<Option<Code<Jit>>> {
        let name = kernel_name("solve", e.kind);
        let wait = self.wanted.mode == Mode::Jit || self.wanted.compile == Compile::Always;
        let kernel = match self.driver.jit(&layout.text, &name, wait) {
            Err(_) if !wait => return Ok(None),
            Err(error) => return Err(error),
            Ok(Code::Compiling(job)) => return Ok(Some(Code::Compiling(job))),
            Ok(Code::Ready(kernel)) => kernel,
        };
        let mut words = [0; 16];
        let half = layout.half as u32;
        words[..7].copy_from_slice(&[
            e.cells.start,
            e.cells.len() as u32,
            u32::MAX,
            ENTER_START,
            e.n,
            half,
            0,
        ]);
        let mut shared = 0;
        for (place, bytes) in words[7..].iter_mut().zip(layout.local) {
            *place = shared;
            shared += bytes.next_multiple_of(16) as u32;
        }
        let blocks = layout.groups as u32;
        let launch = Launch { blocks, threads: layout.shape.size as u32, shared, cooperative: blocks > 1 };
        let given = Given {
            words: [0; CONTROL_WORDS as usize + 2],
            changed: [0; CHANGED],
            changed_first: 0,
            changed_count: 0,
        };
        Ok(Some(Code::Ready(Jit { kernel, launch, args: ResidentArgs { addresses: [0; 13], words, given } })))
    }
}

impl Jit {
    /// Queues the launch.
    pub(crate) fn queue(&self, driver: &Driver, args: &ResidentArgs) -> Result<()> {
        let mut args = *args;
        let addresses = args.addresses.iter_mut().map(|a| (&raw mut *a).cast::<c_void>());
        let words = args.words.iter_mut().map(|w| (&raw mut *w).cast::<c_void>());
        let mut list: Vec<*mut c_void> = addresses.chain(words).collect();
        list.push((&raw mut args.given).cast());
        // SAFETY: the kernel takes thirteen addresses, sixteen words and `Given`; the addresses belong to
        // live buffers of the plan and to handles found live since the last of any was freed, with the sizes that
        // the layout states.
        unsafe { driver.launch("solve", self.kernel, self.launch, &mut list) }
    }
}

/// What the table's indices refer to, as addresses; see `kernels-opencl/shared/cells.cl`.
pub(crate) fn names(store: &Store, e: &Encoded, name: &str) -> Result<Vec<u64>> {
    let bases = 2 + e.vectors.len();
    let matrices = bases + 2 * e.bases.len();
    let mut words = vec![bases as u64, matrices as u64];
    for v in &e.vectors {
        words.push(store.place(*v, name)?);
    }
    for v in &e.bases {
        let (place, stride) = store.basis_place(*v, name)?;
        words.extend([place, stride as u64]);
    }
    for a in &e.matrices {
        let stored = store.stored(*a, name)?;
        let start = words.len();
        words.extend([0, stored.lanes.into()]);
        words.extend(&stored.arguments);
        words.resize(start + MATRIX_WORDS, 0);
    }
    Ok(words)
}
