//! Sparse algebra on the device: see [`lacuna_gpu::algebra`].
use crate::driver::{Driver, Launch, kernel_name};
use crate::memory::{Buffer, Pool};
use lacuna_engine::{NumberType, Result};
use lacuna_gpu::algebra::{AlgebraDevice, GROUP, Kernel, KernelArgument, TEAM, Threads};
use std::ffi::c_void;

const OPERATION: &str = "sparse algebra";

/// The device at work on matrices of one number type.
pub(crate) struct Algebra<'d> {
    pub(crate) driver: &'d mut Driver,
    pub(crate) kind: NumberType,
    /// Keeps memory from one call to the next.
    pub(crate) workspace: Pool,
}

impl AlgebraDevice for Algebra<'_> {
    /// Freed memory can be allocated at once: later work is ordered after that queued before.
    type Array = Buffer;
    fn zeros(&mut self, bytes: usize) -> Result<Buffer> {
        self.workspace.zeroed(self.driver, bytes, OPERATION)
    }
    fn array(&mut self, bytes: &[u8]) -> Result<Buffer> {
        self.workspace.filled(self.driver, bytes, OPERATION)
    }
    fn read(&mut self, from: &Buffer, to: &mut [u8]) -> Result<()> {
        self.driver.download(from.address, to, OPERATION)
    }
    fn launch(
        &mut self,
        kernel: Kernel,
        over: Threads,
        arguments: &[KernelArgument<'_, Buffer>],
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
                KernelArgument::Array(array) => (array.address, 0),
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
