//! Numbers in the memory of a device that the device did not allocate.
use crate::{Error, Result};

/// Memory of a device that somebody else allocated, such as an array of another library: an address there, and a number of bytes.
#[derive(Clone, Copy, Debug)]
pub struct Outside {
    address: u64,
    bytes: usize,
}

impl Outside {
    /// So many bytes at an address.
    ///
    /// # Safety
    /// While this or a copy of it is in use, they **must** lie in the memory of the device that it is handed to, and nobody else may
    /// write them, nor read them where they are written.
    pub unsafe fn new(address: u64, bytes: usize) -> Self {
        Outside { address, bytes }
    }

    /// The address, if so many numbers of a type lie there.
    pub(super) fn of<T>(self, operation: &str, numbers: usize) -> Result<u64> {
        Error::check_length(operation, "the bytes on the device", numbers * size_of::<T>(), self.bytes)?;
        Ok(self.address)
    }
}
