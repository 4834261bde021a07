//! Sparse algebra on a device: the kernels that compute it, in order, for any driver.
mod independent_set;
mod product;

use bytemuck::Pod;
use lacuna_engine::Result;

pub use independent_set::{SET_KERNELS, distance_two_set};
pub use product::{PRODUCT_KERNELS, sparse_product};

/// Threads of a row; the kernels have the same number.
pub const TEAM: usize = 32;
/// Threads of a group of [`Threads::Groups`]; the kernels have the same number.
pub const GROUP: usize = 256;

/// An argument of a kernel.
pub enum KernelArgument<'a, A> {
    /// An array.
    Array(&'a A),
    /// A number.
    Word(u32),
}

impl<A> Clone for KernelArgument<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<A> Copy for KernelArgument<'_, A> {}

/// The threads of a kernel.
#[derive(Clone, Copy)]
pub enum Threads {
    /// At least so many, in groups of any size.
    Each(usize),
    /// So many teams of [`TEAM`], each a group, or a part of one that runs in step.
    Teams(usize),
    /// So many groups of [`GROUP`].
    Groups(usize),
}

/// A kernel.
#[derive(Clone, Copy)]
pub struct Kernel {
    /// The stem of its name.
    pub stem: &'static str,
    /// Whether there is one for each number type.
    pub is_typed: bool,
}

/// A device, as far as sparse algebra needs it. All methods fail with [`lacuna_engine::Error::OutOfMemory`] where memory is too
/// small.
pub trait AlgebraDevice {
    /// An array on the device, freed on drop after the kernels that use it.
    type Array;
    /// An array of zeros.
    ///
    /// # Errors
    /// Device failures.
    fn zeros(&mut self, bytes: usize) -> Result<Self::Array>;
    /// An array of elements with these bytes.
    ///
    /// # Errors
    /// Device failures.
    fn array(&mut self, bytes: &[u8]) -> Result<Self::Array>;
    /// Waits for the kernels and reads the first bytes of an array.
    ///
    /// # Errors
    /// Device failures.
    fn read(&mut self, from: &Self::Array, to: &mut [u8]) -> Result<()>;
    /// Queues a kernel; one of those for each number type by that of the device's work.
    ///
    /// # Errors
    /// Device failures.
    fn launch(
        &mut self,
        kernel: Kernel,
        over: Threads,
        arguments: &[KernelArgument<'_, Self::Array>],
    ) -> Result<()>;
}

/// Reads the first numbers of an array.
fn read<D: AlgebraDevice, E: Pod>(dev: &mut D, from: &D::Array, to: &mut [E]) -> Result<()> {
    dev.read(from, bytemuck::cast_slice_mut(to))
}
