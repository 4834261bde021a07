//! Sparse products on the device: see [`lacuna_gpu::sparse_product`].
use crate::backend::OpenCl;
use crate::driver::{Arg, Buffer, Status};
use crate::source::FirstLaunches;
use bytemuck::Pod;
use lacuna_engine::{CompressedRows, Error, Format, Result, Scalar};
use lacuna_gpu::sparse_product::{KERNELS, KernelArgument, ProductDevice, TEAM, Threads, sparse_product};
use std::marker::PhantomData;

const OPERATION: &str = "sparse product";
/// The kernel of one group, and its work-items.
const SCAN: &str = "product_scan";
const ONE_GROUP: usize = 256;

/// The device at work on a product of matrices of one number type.
struct Multiplier<'d, T> {
    dev: &'d mut OpenCl,
    of: PhantomData<T>,
}

impl OpenCl {
    pub(crate) fn multiply_sparse<T: Scalar>(
        &mut self,
        factors: &[&dyn Format<T>],
    ) -> Result<Option<CompressedRows<T>>> {
        let is_first = self.build::<T>(&KERNELS.map(|kernel| (kernel, 0)))?;
        // NVIDIA's driver does not tell; its groups are large enough.
        if !self.device.is_nvidia() && self.kernel::<T>((SCAN, 0))?.group_limit(self.device.id) < ONE_GROUP {
            return Ok(None);
        }
        let _first = is_first.then(|| FirstLaunches::hold(&self.device));
        let done = sparse_product(&mut Multiplier { dev: self, of: PhantomData::<T> }, factors);
        if done.is_err() {
            // The first error is the one to report.
            let _ = self.queue.finish();
        }
        done
    }
}

impl<T> Multiplier<'_, T> {
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

impl<T: Scalar> ProductDevice for Multiplier<'_, T> {
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
        kernel: &'static str,
        over: Threads,
        arguments: &[KernelArgument<'_, Buffer>],
    ) -> Result<()> {
        let (groups, size) = match over {
            Threads::Each(threads) => (threads.div_ceil(TEAM), TEAM),
            Threads::Teams(teams) => (teams, TEAM),
            Threads::One => (1, ONE_GROUP),
        };
        if groups == 0 {
            return Ok(());
        }
        let mut found = self.dev.kernel::<T>((kernel, 0))?;
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
        queued().map_err(self.failed(kernel))
    }
}
