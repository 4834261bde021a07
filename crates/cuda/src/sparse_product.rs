//! Sparse products on the device: see [`lacuna_gpu::sparse_product`].
use crate::driver::{Driver, Launch, kernel_name};
use crate::memory::{Buffer, Pool};
use bytemuck::Pod;
use lacuna_engine::{Kind, Result};
use lacuna_gpu::sparse_product::{KernelArgument, ProductDevice, TEAM, Threads};
use std::cell::RefCell;
use std::ffi::c_void;
use std::rc::Rc;

const OPERATION: &str = "sparse product";
/// Threads of a block, and of the only one of a kernel; the kernels have the same numbers.
const BLOCK: usize = 256;
const ONLY_BLOCK: usize = 1024;

/// The device at work on a product of matrices of one number type, in memory that is freed with it.
pub(crate) struct Multiplier<'d> {
    driver: &'d mut Driver,
    kind: Kind,
    pool: Rc<RefCell<Pool>>,
}

/// Device memory, which goes back to the pool of the product: later work is ordered after that queued before.
pub(crate) struct Array {
    buffer: Buffer,
    home: Rc<RefCell<Pool>>,
}

impl Drop for Array {
    fn drop(&mut self) {
        let Buffer { address, bytes } = self.buffer;
        self.home.borrow_mut().give(Buffer { address, bytes });
    }
}

impl Drop for Multiplier<'_> {
    fn drop(&mut self) {
        self.pool.borrow_mut().clear(self.driver);
    }
}

impl<'d> Multiplier<'d> {
    pub(crate) fn new(driver: &'d mut Driver, kind: Kind) -> Self {
        Multiplier { driver, kind, pool: Rc::default() }
    }
    fn allocated(&self, bytes: usize) -> Result<Array> {
        let buffer = self.pool.borrow_mut().take(self.driver, bytes, OPERATION)?;
        Ok(Array { buffer, home: self.pool.clone() })
    }
}

impl ProductDevice for Multiplier<'_> {
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
        kernel: &'static str,
        over: Threads,
        arguments: &[KernelArgument<'_, Array>],
    ) -> Result<()> {
        // A team is a warp.
        let blocks = match over {
            Threads::Each(threads) => threads.div_ceil(BLOCK),
            Threads::Teams(teams) => (teams * TEAM).div_ceil(BLOCK),
            Threads::One => 1,
        } as u32;
        let threads = if let Threads::One = over { ONLY_BLOCK } else { BLOCK };
        if blocks == 0 {
            return Ok(());
        }
        let name = kernel_name(kernel, self.kind);
        let found = self.driver.kernel(&name)?;
        let how = Launch { blocks, threads: threads as u32, shared: 0, cooperative: false };
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
        // the concern of `lacuna_gpu::sparse_product`. They are freed in stream order.
        unsafe { self.driver.launch(&name, found, how, &mut places) }
    }
}
