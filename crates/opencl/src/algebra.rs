//! Sparse algebra on the device: see [`lacuna_gpu::algebra`].
use crate::backend::OpenCl;
use crate::compiler::FirstLaunches;
use crate::driver::{Arg, Buffer, Status};
use lacuna_engine::{
    AnyFormat, Each, Error, FormatRefs, Graph, Matrix, NumberType, Products, Result, Vector,
};
use lacuna_gpu::Slicer;
use lacuna_gpu::algebra::{
    AlgebraDevice, GROUP, Keeper, Kernel, KernelArgument, LEVEL_KERNELS, PRODUCT_KERNELS, SET_KERNELS,
    SLICE_KERNELS, Session, TEAM, Threads, WAITING_KERNELS, distance_two_set, lay_out, sparse_product,
};
use std::sync::Arc;

const OPERATION: &str = "sparse algebra";
/// Kernels that know no number type are built with one that every device has.
const UNTYPED: NumberType = NumberType::F32;

/// The device at work on matrices of one number type.
pub(crate) struct Algebra<'d> {
    dev: &'d mut OpenCl,
    kind: NumberType,
}

impl OpenCl {
    pub(crate) fn multiply_sparse(
        &mut self,
        factors: &[Each<FormatRefs<'_>>],
    ) -> Result<Option<Each<Products>>> {
        let kind = factors.first().map_or(UNTYPED, Each::kind);
        if self.driver.device.check_type(kind).is_err() {
            return Ok(None);
        }
        self.with_kernels(kind, &PRODUCT_KERNELS, |dev| sparse_product(dev, factors))
    }

    pub(crate) fn independent_set(
        &mut self,
        graph: Graph<'_>,
        priorities: &[u64],
    ) -> Result<Option<Vec<u32>>> {
        self.with_kernels(UNTYPED, &SET_KERNELS, |dev| distance_two_set(dev, graph, priorities))
    }

    /// Builds kernels of sparse algebra: whether there were any to build. `None` where groups of the device are too small for them.
    fn built(&mut self, kind: NumberType, kernels: &[Kernel]) -> Result<Option<bool>> {
        let (typed, others): (Vec<_>, Vec<_>) = kernels.iter().partition(|kernel| kernel.is_typed);
        let entries =
            |kernels: Vec<Kernel>| kernels.iter().map(|kernel| (kernel.stem, 0)).collect::<Vec<_>>();
        let (typed, others) = (entries(typed), entries(others));
        let is_first = self.build(kind, &typed)? | self.build(UNTYPED, &others)?;
        // NVIDIA's driver does not tell; its groups are large enough.
        if !self.driver.device.is_nvidia() {
            let of = |kind: NumberType| move |entry| (kind, entry);
            for (kind, entry) in typed.into_iter().map(of(kind)).chain(others.into_iter().map(of(UNTYPED))) {
                if self.kernel(kind, entry)?.group_limit(self.driver.device.id) < GROUP {
                    return Ok(None);
                }
            }
        }
        Ok(Some(is_first))
    }

    /// A set-up at work on the device; `None` where it cannot be.
    pub(crate) fn set_up(&mut self, kind: NumberType) -> Option<Session<Algebra<'_>, Kept>> {
        if kind == kind.narrow() || self.driver.device.check_type(kind).is_err() {
            return None;
        }
        let others = if self.driver.device.is_nvidia() { &WAITING_KERNELS[..] } else { &SET_KERNELS[..] };
        let kernels = [&LEVEL_KERNELS[..], &PRODUCT_KERNELS[..], others].concat();
        let is_first = self.built(kind, &kernels).ok().flatten()?;
        let _first = is_first.then(|| FirstLaunches::hold(&self.driver.device));
        let arrays = self.arrays.clone();
        Some(Session::new(Algebra { dev: self, kind }, Kept, arrays, kind))
    }

    /// The matrices of a program in slices, laid out here.
    pub(crate) fn sliced(
        &mut self,
        slicer: Slicer<'_>,
        matrices: &[Matrix],
        kind: NumberType,
    ) -> Result<Option<[Arc<Buffer>; 3]>> {
        if self.built(kind, &SLICE_KERNELS)?.is_none() {
            return Ok(None);
        }
        let mut dev = Algebra { dev: self, kind };
        let stored = matrices.iter().map(|a| dev.arrays_of(*a, &["csr", "bcsr"]));
        let stored = stored.collect::<Result<Vec<_>>>()?;
        lay_out(&mut dev, slicer, &stored)
    }

    /// Sparse algebra, after its kernels are built; none where groups of the device are too small for them.
    fn with_kernels<X>(
        &mut self,
        kind: NumberType,
        kernels: &[Kernel],
        work: impl FnOnce(&mut Algebra<'_>) -> Result<Option<X>>,
    ) -> Result<Option<X>> {
        let Some(is_first) = self.built(kind, kernels)? else { return Ok(None) };
        let _first = is_first.then(|| FirstLaunches::hold(&self.driver.device));
        let done = work(&mut Algebra { dev: self, kind });
        if done.is_err() {
            // The first error is the one to report.
            let _ = self.driver.queue.finish();
        }
        done
    }
}

impl Algebra<'_> {
    /// Makes errors: those of memory as such, whatever the driver was doing.
    fn failed(&self, operation: &str) -> impl Fn(Status) -> Error + use<> {
        let (out_of_memory, other) = (self.dev.driver.device.name.clone(), self.dev.driver.fail(operation));
        move |status| match status.is_out_of_memory() {
            true => Error::OutOfMemory {
                operation: OPERATION.into(),
                device: out_of_memory.clone(),
                requested: 0,
                available: None,
            },
            false => other(status),
        }
    }
}

impl Algebra<'_> {
    /// Copies of the pointers of rows, the columns and the values of a matrix in one of these formats.
    fn arrays_of(&mut self, a: Matrix, formats: &[&str]) -> Result<Option<[Arc<Buffer>; 3]>> {
        let format = self.dev.store.format(a, OPERATION)?;
        if !formats.contains(&format.kernel()) {
            return Ok(None);
        }
        let places = self.dev.store.arrays_of(a, OPERATION)?;
        let Ok(places) = <[(usize, usize); 3]>::try_from(places) else { return Ok(None) };
        let copied = |(at, bytes): (usize, usize)| -> Result<_> {
            let buffer = self.dev.driver.buffer(bytes, OPERATION)?;
            self.dev.store.copy_out(&self.dev.driver, at, &buffer, bytes)?;
            Ok(Arc::new(buffer))
        };
        let [rows, columns, values] = places;
        Ok(Some([copied(rows)?, copied(columns)?, copied(values)?]))
    }
}

impl AlgebraDevice for Algebra<'_> {
    type Array = Arc<Buffer>;
    fn room(&mut self, bytes: usize) -> Result<Arc<Buffer>> {
        self.dev.driver.buffer(bytes.max(16), OPERATION).map(Arc::new)
    }
    fn zeros(&mut self, bytes: usize) -> Result<Arc<Buffer>> {
        self.dev.driver.zeros(bytes, OPERATION).map(Arc::new)
    }
    fn array(&mut self, bytes: &[u8]) -> Result<Arc<Buffer>> {
        self.dev.driver.filled(bytes, OPERATION).map(Arc::new)
    }
    fn write(&mut self, to: &Arc<Buffer>, at: usize, bytes: &[u8]) -> Result<()> {
        self.dev.driver.queue.write(to, at, bytes).map_err(self.failed(OPERATION))
    }
    fn read(&mut self, from: &Arc<Buffer>, to: &mut [u8]) -> Result<()> {
        self.dev.driver.queue.read(from, 0, to).map_err(self.failed(OPERATION))
    }
    fn waits_for_others(&self) -> bool {
        self.dev.driver.device.is_nvidia()
    }
    fn launch(
        &mut self,
        kernel: Kernel,
        over: Threads,
        arguments: &[KernelArgument<'_, Arc<Buffer>>],
    ) -> Result<()> {
        let (groups, size) = match over {
            Threads::Each(threads) => (threads.div_ceil(TEAM), TEAM),
            Threads::Teams(teams, threads) => ((teams * threads).div_ceil(TEAM), TEAM),
            Threads::Groups(groups) => (groups, GROUP),
        };
        if groups == 0 {
            return Ok(());
        }
        let entry = (kernel.stem, 0);
        let mut found = self.dev.kernel(if kernel.is_typed { self.kind } else { UNTYPED }, entry)?;
        let mut queued = || {
            for (index, argument) in (0..).zip(arguments) {
                let argument = match argument {
                    KernelArgument::Array(buffer) => Arg::Buffer(buffer),
                    KernelArgument::Word(word) => Arg::Word(*word),
                };
                found.set(index, &argument)?;
            }
            self.dev.driver.queue.launch(&found, groups, size)
        };
        queued().map_err(self.failed(kernel.stem))
    }
}

/// The store of the backend at work, for set-ups.
pub(crate) struct Kept;

impl Keeper<Algebra<'_>> for Kept {
    fn stored(&mut self, dev: &mut Algebra<'_>, a: Matrix) -> Result<Option<[Arc<Buffer>; 3]>> {
        dev.arrays_of(a, &["csr"])
    }
    fn keep(&mut self, dev: &mut Algebra<'_>, a: AnyFormat, arrays: [Arc<Buffer>; 3]) -> Result<Matrix> {
        let OpenCl { store, driver, .. } = &mut *dev.dev;
        store.keep_matrix(driver, a, &arrays.each_ref().map(|array| &**array))
    }
    fn set_matrix(&mut self, dev: &mut Algebra<'_>, to: Matrix, values: &Arc<Buffer>) -> Result<()> {
        let OpenCl { store, driver, kept, .. } = &mut *dev.dev;
        kept.forget(to.serial);
        store.set_values(driver, to, values)
    }
    fn set_vector(&mut self, dev: &mut Algebra<'_>, to: Vector, from: &Arc<Buffer>) -> Result<()> {
        let OpenCl { store, driver, .. } = &mut *dev.dev;
        let at = store.offset(to, OPERATION)?;
        store.copy_in(driver, from, at, to.bytes())
    }
}
