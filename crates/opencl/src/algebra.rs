//! Sparse algebra on the device: see [`lacuna_gpu::algebra`].
use crate::backend::OpenCl;
use crate::driver::{Arg, Buffer, Status};
use crate::source::FirstLaunches;
use bytemuck::Pod;
use lacuna_engine::{CompressedRows, Error, Format, Graph, Result, Scalar};
use lacuna_gpu::algebra::{
    AlgebraDevice, GROUP, Kernel, KernelArgument, PRODUCT_KERNELS, SET_KERNELS, TEAM, Threads,
    distance_two_set, sparse_product,
};
use std::marker::PhantomData;

const OPERATION: &str = "sparse algebra";

/// The device at work on matrices of one number type.
struct Algebra<'d, T> {
    dev: &'d mut OpenCl,
    of: PhantomData<T>,
}

impl OpenCl {
    pub(crate) fn multiply_sparse<T: Scalar>(
        &mut self,
        factors: &[&dyn Format<T>],
    ) -> Result<Option<CompressedRows<T>>> {
        self.with_kernels::<T, _>(&PRODUCT_KERNELS, |dev| sparse_product(dev, factors))
    }

    pub(crate) fn independent_set(
        &mut self,
        graph: Graph<'_>,
        priorities: &[u64],
    ) -> Result<Option<Vec<u32>>> {
        self.with_kernels::<f32, _>(&SET_KERNELS, |dev| distance_two_set(dev, graph, priorities))
    }

    /// Sparse algebra, after its kernels are built; none where groups of the device are too small for them.
    fn with_kernels<T: Scalar, X>(
        &mut self,
        kernels: &[Kernel],
        work: impl FnOnce(&mut Algebra<'_, T>) -> Result<Option<X>>,
    ) -> Result<Option<X>> {
        let (typed, others): (Vec<_>, Vec<_>) = kernels.iter().partition(|kernel| kernel.is_typed);
        let entries =
            |kernels: Vec<Kernel>| kernels.iter().map(|kernel| (kernel.stem, 0)).collect::<Vec<_>>();
        let (typed, others) = (entries(typed), entries(others));
        // Those that know no number type are built with one that every device has.
        let is_first = self.build::<T>(&typed)? | self.build::<f32>(&others)?;
        // NVIDIA's driver does not tell; its groups are large enough.
        if !self.device.is_nvidia() {
            for entry in others {
                if self.kernel::<f32>(entry)?.group_limit(self.device.id) < GROUP {
                    return Ok(None);
                }
            }
        }
        let _first = is_first.then(|| FirstLaunches::hold(&self.device));
        let done = work(&mut Algebra { dev: self, of: PhantomData });
        if done.is_err() {
            // The first error is the one to report.
            let _ = self.queue.finish();
        }
        done
    }
}

impl<T> Algebra<'_, T> {
    fn failed(&self, operation: &str) -> impl Fn(Status) -> Error + use<T> {
        let (device, other) = (self.dev.device.name.clone(), self.dev.fail(operation));
        move |status| match status.is_out_of_memory() {
            true => Error::OutOfMemory {
                operation: OPERATION.into(),
                device: device.clone(),
                requested: 0,
                available: None,
            },
            false => other(status),
        }
    }
    fn buffer(&self, bytes: usize) -> Result<Buffer> {
        let OpenCl { memory, context, queue, .. } = &*self.dev;
        memory.buffer(context, queue, bytes.max(16).next_multiple_of(4), OPERATION)
    }
}

impl<T: Scalar> AlgebraDevice for Algebra<'_, T> {
    type Array = Buffer;
    fn zeros(&mut self, bytes: usize) -> Result<Buffer> {
        let buffer = self.buffer(bytes)?;
        let filled = self.dev.queue.fill(&buffer, 0, bytes.max(16).next_multiple_of(4), &[0; 4]);
        filled.map(|()| buffer).map_err(self.failed(OPERATION))
    }
    fn array<E: Pod>(&mut self, elements: &[E]) -> Result<Buffer> {
        let buffer = self.buffer(size_of_val(elements))?;
        let written = self.dev.queue.write(&buffer, 0, bytemuck::cast_slice(elements));
        written.map(|()| buffer).map_err(self.failed(OPERATION))
    }
    fn read<E: Pod>(&mut self, from: &Buffer, to: &mut [E]) -> Result<()> {
        self.dev.queue.read(from, 0, bytemuck::cast_slice_mut(to)).map_err(self.failed(OPERATION))
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
        let mut found =
            if kernel.is_typed { self.dev.kernel::<T>(entry) } else { self.dev.kernel::<f32>(entry) }?;
        let mut queued = || {
            for (index, argument) in (0..).zip(arguments) {
                let argument = match argument {
                    KernelArgument::Array(buffer) => Arg::Buffer(buffer),
                    KernelArgument::Word(word) => Arg::Word(*word),
                };
                found.set(index, &argument)?;
            }
            self.dev.queue.launch(&found, groups, size)
        };
        queued().map_err(self.failed(kernel.stem))
    }
}
