//! Sparse algebra on the device: see [`lacuna_gpu::algebra`].
use crate::driver::{Driver, Launch, kernel_name};
use crate::memory::{Buffer, Pool};
use bytemuck::Pod;
use lacuna_engine::{Kind, Result};
use lacuna_gpu::algebra::{AlgebraDevice, GROUP, Kernel, KernelArgument, TEAM, Threads};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const OPERATION: &str = "sparse algebra";

/// Memory that sparse algebra keeps from one call to the next.
#[derive(Clone, Default)]
pub(crate) struct Workspace(Arc<Mutex<Pool>>);

impl Workspace {
    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Returns what is not in use to the driver; whether there was anything.
    pub(crate) fn clear(&self, driver: &Driver) -> bool {
        let mut pool = self.pool();
        let had_memory = !pool.is_empty();
        pool.clear(driver);
        had_memory
    }
}

/// The device at work on matrices of one number type.
pub(crate) struct Algebra<'d> {
    pub(crate) driver: &'d mut Driver,
    pub(crate) kind: Kind,
    pub(crate) workspace: Workspace,
}

/// Device memory, which goes back to the workspace: later work is ordered after that queued before.
pub(crate) struct Array {
    buffer: Buffer,
    home: Workspace,
}

impl Drop for Array {
    fn drop(&mut self) {
        let Buffer { address, bytes } = self.buffer;
        self.home.pool().give(Buffer { address, bytes });
    }
}

impl Algebra<'_> {
    fn allocated(&self, bytes: usize) -> Result<Array> {
        let buffer = self.workspace.pool().take(self.driver, bytes, OPERATION)?;
        Ok(Array { buffer, home: self.workspace.clone() })
    }
}

impl AlgebraDevice for Algebra<'_> {
    type Array = Array;
    fn zeros(&mut self, bytes: usize) -> Result<Array> {
        let array = self.allocated(bytes)?;
        self.driver.zero(array.buffer.address, bytes)?;
        Ok(array)
    }
    fn array<E: Pod>(&mut self, elements: &[E]) -> Result<Array> {
        let array = self.allocated(size_of_val(elements))?;
        self.driver.upload(elements, array.buffer.address, OPERATION)?;
        Ok(array)
    }
    fn read<E: Pod>(&mut self, from: &Array, to: &mut [E]) -> Result<()> {
        self.driver.download(from.buffer.address, to, OPERATION)
    }
    fn launch(
        &mut self,
        kernel: Kernel,
        over: Threads,
        arguments: &[KernelArgument<'_, Array>],
    ) -> Result<()> {
        // A team is a warp.
        let blocks = match over {
            Threads::Each(threads) => threads.div_ceil(GROUP),
            Threads::Teams(teams) => (teams * TEAM).div_ceil(GROUP),
            Threads::Groups(groups) => groups,
        } as u32;
        if blocks == 0 {
            return Ok(());
        }
        let name = if kernel.is_typed { kernel_name(kernel.stem, self.kind) } else { kernel.stem.into() };
        let found = self.driver.kernel(&name)?;
        let how = Launch { blocks, threads: GROUP as u32, shared: 0, cooperative: false };
        let mut arguments: Vec<(u64, u32)> = arguments
            .iter()
            .map(|argument| match argument {
                KernelArgument::Array(array) => (array.buffer.address, 0),
                KernelArgument::Word(word) => (0, *word),
            })
            .collect();
        let place = |(address, word): &mut (u64, u32)| -> *mut c_void {
            if *address == 0 { (&raw mut *word).cast() } else { (&raw mut *address).cast() }
        };
        let mut places: Vec<*mut c_void> = arguments.iter_mut().map(place).collect();
        // SAFETY: the arguments are those of the kernel, in order, and the arrays as large as it assumes: both are
        // the concern of `lacuna_gpu::algebra`. They are freed in stream order.
        unsafe { self.driver.launch(&name, found, how, &mut places) }
    }
}
