//! Sparse algebra on a device: the kernels that compute it, in order, for any driver.
mod aggregates;
mod arnoldi;
mod independent_set;
mod lanczos;
mod look;
mod product;
mod prolongator;
mod session;
mod slices;

use bytemuck::Pod;
use lacuna_engine::{AnyFormat, Matrix, Result, Vector};

pub use independent_set::{SET_KERNELS, distance_two_set};
pub use product::{PRODUCT_KERNELS, sparse_product};
pub use session::{Arrays, LEVEL_KERNELS, Session, SharedArrays, WAITING_KERNELS};
pub use slices::{SLICE_KERNELS, lay_out};

/// Threads of a team at the most, and of a group that is one team.
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
    /// So many teams of so many threads, a power of two up to [`TEAM`]. A team of [`TEAM`] is a group, or a part of one that runs
    /// in step; smaller ones are for devices with [`AlgebraDevice::waits_for_others`].
    Teams(usize, usize),
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
    /// An array with unspecified contents.
    ///
    /// # Errors
    /// Device failures.
    fn room(&mut self, bytes: usize) -> Result<Self::Array>;
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
    /// Writes to an array from a byte on.
    ///
    /// # Errors
    /// Device failures.
    fn write(&mut self, to: &Self::Array, at: usize, bytes: &[u8]) -> Result<()>;
    /// Whether work-groups run side by side and each of their threads goes on while others wait: a group may wait for another that
    /// began before it.
    fn waits_for_others(&self) -> bool;
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

/// What a backend keeps, as far as a set-up on the device needs it.
pub trait Keeper<D: AlgebraDevice> {
    /// The pointers of rows, the columns and the values of a matrix in `csr`; `None` for one in another format.
    ///
    /// # Errors
    /// [`lacuna_engine::Error::Stale`]; device failures.
    fn stored(&mut self, dev: &mut D, a: Matrix) -> Result<Option<[D::Array; 3]>>;
    /// A matrix with these arrays.
    ///
    /// # Errors
    /// As [`Keeper::stored`].
    fn keep(&mut self, dev: &mut D, a: AnyFormat, arrays: [D::Array; 3]) -> Result<Matrix>;
    /// Gives a matrix that was made so other values.
    ///
    /// # Errors
    /// As [`Keeper::stored`].
    fn set_matrix(&mut self, dev: &mut D, to: Matrix, values: &D::Array) -> Result<()>;
    /// Copies numbers to a vector.
    ///
    /// # Errors
    /// As [`Keeper::stored`].
    fn set_vector(&mut self, dev: &mut D, to: Vector, from: &D::Array) -> Result<()>;
}

const fn typed(stem: &'static str) -> Kernel {
    Kernel { stem, is_typed: true }
}

/// A number of double precision as two words of a kernel's arguments.
fn words<'a, A>(number: f64) -> [KernelArgument<'a, A>; 2] {
    let bits = number.to_bits();
    [KernelArgument::Word(bits as u32), KernelArgument::Word((bits >> 32) as u32)]
}

/// Groups that have a thread for each of `n`.
fn each(n: usize) -> Threads {
    Threads::Groups(n.div_ceil(GROUP))
}

/// Reads the first numbers of an array.
fn read<D: AlgebraDevice, E: Pod>(dev: &mut D, from: &D::Array, to: &mut [E]) -> Result<()> {
    dev.read(from, bytemuck::cast_slice_mut(to))
}
