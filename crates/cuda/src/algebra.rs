//! Sparse algebra on the device: see [`lacuna_gpu::algebra`].
use crate::driver::{Driver, Launch, kernel_name};
use crate::memory::{Buffer, Pool};
use crate::plan_cache::{Kept as KeptPrograms, RepackedBuffers};
use crate::store::Store;
use lacuna_engine::{AnyFormat, Error, Matrix, NumberType, Result, Vector};
use lacuna_gpu::PlanCache;
use lacuna_gpu::algebra::{AlgebraDevice, GROUP, Keeper, Kernel, KernelArgument, Threads};
use std::ffi::c_void;
use std::sync::Arc;

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
    type Array = Arc<Buffer>;
    fn room(&mut self, bytes: usize) -> Result<Arc<Buffer>> {
        self.workspace.take(self.driver, bytes, OPERATION).map(Arc::new)
    }
    fn zeros(&mut self, bytes: usize) -> Result<Arc<Buffer>> {
        self.workspace.zeroed(self.driver, bytes, OPERATION).map(Arc::new)
    }
    fn array(&mut self, bytes: &[u8]) -> Result<Arc<Buffer>> {
        self.workspace.filled(self.driver, bytes, OPERATION).map(Arc::new)
    }
    fn write(&mut self, to: &Arc<Buffer>, at: usize, bytes: &[u8]) -> Result<()> {
        Error::check_length(
            OPERATION,
            "the bytes",
            bytes.len().min(to.bytes.saturating_sub(at)),
            bytes.len(),
        )?;
        self.driver.upload(bytes, to.address + at as u64, OPERATION)
    }
    fn read(&mut self, from: &Arc<Buffer>, to: &mut [u8]) -> Result<()> {
        self.driver.download(from.address, to, OPERATION)
    }
    fn waits_for_others(&self) -> bool {
        true
    }
    fn launch(
        &mut self,
        kernel: Kernel,
        over: Threads,
        arguments: &[KernelArgument<'_, Arc<Buffer>>],
    ) -> Result<()> {
        let blocks = match over {
            Threads::Each(threads) => threads.div_ceil(GROUP),
            Threads::Teams(teams, threads) => (teams * threads).div_ceil(GROUP),
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

/// What a backend keeps, for set-ups.
pub(crate) struct Kept<'d> {
    pub(crate) store: &'d mut Store,
    pub(crate) cache: &'d mut PlanCache<RepackedBuffers, KeptPrograms>,
}

impl Keeper<Algebra<'_>> for Kept<'_> {
    fn stored(&mut self, _: &mut Algebra<'_>, a: Matrix) -> Result<Option<[Arc<Buffer>; 3]>> {
        self.store.arrays_of(a, &["csr"], OPERATION)
    }
    fn keep(&mut self, _: &mut Algebra<'_>, a: AnyFormat, arrays: [Arc<Buffer>; 3]) -> Result<Matrix> {
        Ok(self.store.keep_matrix(a, arrays))
    }
    fn set_matrix(&mut self, dev: &mut Algebra<'_>, to: Matrix, values: &Arc<Buffer>) -> Result<()> {
        let stored = self.store.arrays_of(to, &["csr"], OPERATION)?;
        let Some([.., own]) = stored else {
            let message = "it was not made on the device".into();
            return Err(Error::Unsupported { operation: "new values of a matrix".into(), message });
        };
        let bytes = to.nnz * to.kind.size();
        dev.driver.copy(values.address, own.address, bytes.min(values.bytes).min(own.bytes))?;
        self.cache.forget(to.serial);
        self.store.new_values(to)
    }
    fn set_vector(&mut self, dev: &mut Algebra<'_>, to: Vector, from: &Arc<Buffer>) -> Result<()> {
        Error::check_length(OPERATION, "the bytes", to.bytes().min(from.bytes), to.bytes())?;
        dev.driver.copy(from.address, self.store.address(to, OPERATION)?, to.bytes())
    }
}
