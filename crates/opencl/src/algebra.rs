//! Sparse algebra on the device: see [`lacuna_gpu::algebra`].
use crate::backend::OpenCl;
use crate::compiler::FirstLaunches;
use crate::driver::{Arg, Buffer, Status};
use lacuna_engine::{Each, Error, FormatRefs, Graph, NumberType, Products, Result};
use lacuna_gpu::algebra::{
    AlgebraDevice, GROUP, Kernel, KernelArgument, PRODUCT_KERNELS, SET_KERNELS, TEAM, Threads,
    distance_two_set, sparse_product,
};

const OPERATION: &str = "sparse algebra";
/// Kernels that know no number type are built with one that every device has.
const UNTYPED: NumberType = NumberType::F32;

/// The device at work on matrices of one number type.
struct Algebra<'d> {
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

    /// Sparse algebra, after its kernels are built; none where groups of the device are too small for them.
    fn with_kernels<X>(
        &mut self,
        kind: NumberType,
        kernels: &[Kernel],
        work: impl FnOnce(&mut Algebra<'_>) -> Result<Option<X>>,
    ) -> Result<Option<X>> {
        let (typed, others): (Vec<_>, Vec<_>) = kernels.iter().partition(|kernel| kernel.is_typed);
        let entries =
            |kernels: Vec<Kernel>| kernels.iter().map(|kernel| (kernel.stem, 0)).collect::<Vec<_>>();
        let (typed, others) = (entries(typed), entries(others));
        let is_first = self.build(kind, &typed)? | self.build(UNTYPED, &others)?;
        // NVIDIA's driver does not tell; its groups are large enough.
        if !self.driver.device.is_nvidia() {
            for entry in others {
                if self.kernel(UNTYPED, entry)?.group_limit(self.driver.device.id) < GROUP {
                    return Ok(None);
                }
            }
        }
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

impl AlgebraDevice for Algebra<'_> {
    type Array = Buffer;
    fn zeros(&mut self, bytes: usize) -> Result<Buffer> {
        self.dev.driver.zeros(bytes, OPERATION)
    }
    fn array(&mut self, bytes: &[u8]) -> Result<Buffer> {
        self.dev.driver.filled(bytes, OPERATION)
    }
    fn read(&mut self, from: &Buffer, to: &mut [u8]) -> Result<()> {
        self.dev.driver.queue.read(from, 0, to).map_err(self.failed(OPERATION))
    }
    fn launch(
        &mut self,
        kernel: Kernel,
        over: Threads,
        arguments: &[KernelArgument<'_, Buffer>],
    ) -> Result<()> {
        let (groups, size) = match over {
            Threads::Each(threads) => (threads.div_ceil(TEAM), TEAM),
            Threads::Teams(teams) => (teams, TEAM),
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
