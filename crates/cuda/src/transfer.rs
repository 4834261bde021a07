//! Copies between host and device, and page-locked host memory.
use crate::carrier::{Carrier, LARGE};
use crate::driver::{Address, Driver};
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use cust::sys;
use lacuna_engine::Result;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

impl Driver {
    /// Copies to the device, in stream order; the source may change once this returns.
    pub(crate) fn upload<T: Pod>(&self, from: &[T], to: Address, operation: &str) -> Result<()> {
        let bytes: &[u8] = cast_slice(from);
        if bytes.len() >= LARGE {
            return self.carried(|carrier| carrier.upload(self, bytes, to, operation));
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let (source, stream) = (bytes.as_ptr().cast::<c_void>(), self.stream.as_inner());
        // SAFETY: the source is a live slice of pageable memory, which the driver has copied when it returns;
        // callers pass destinations of at least its size.
        let result = unsafe { sys::cuMemcpyHtoDAsync_v2(to, source, bytes.len(), stream) };
        self.check(operation, result)
    }

    /// Copies from the device and waits for it.
    pub(crate) fn download<T: Pod>(&self, from: Address, to: &mut [T], operation: &str) -> Result<()> {
        let bytes: &mut [u8] = cast_slice_mut(to);
        if bytes.len() >= LARGE {
            return self.carried(|carrier| carrier.download(self, from, bytes, operation));
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let (target, stream) = (bytes.as_mut_ptr().cast::<c_void>(), self.stream.as_inner());
        // SAFETY: the target is a live slice that stays borrowed until the wait below has ended.
        let result = unsafe { sys::cuMemcpyDtoHAsync_v2(target, from, bytes.len(), stream) };
        self.check(operation, result)?;
        self.wait(operation)
    }

    /// Starts a copy into page-locked memory.
    pub(crate) fn fetch(&self, from: Address, to: &Pinned, at: usize, bytes: usize) -> Result<()> {
        debug_assert!(at + bytes <= to.bytes);
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the range lies in the page-locked buffer, which is not freed before the queue is empty.
        let result = unsafe {
            sys::cuMemcpyDtoHAsync_v2(to.address.byte_add(at), from, bytes, self.stream.as_inner())
        };
        self.check("copying results to the host", result)
    }

    /// Starts a copy from page-locked memory, which must not change until the stream has passed it.
    pub(crate) fn send(&self, from: &Pinned, at: usize, bytes: usize, to: Address) -> Result<()> {
        debug_assert!(at + bytes <= from.bytes);
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the range lies in the page-locked buffer, which is not freed before the queue is empty.
        let result = unsafe {
            sys::cuMemcpyHtoDAsync_v2(to, from.address.byte_add(at), bytes, self.stream.as_inner())
        };
        self.check("copying parameters to the device", result)
    }

    /// Zeroed page-locked host memory: reused if possible, since a new allocation is slow.
    pub(crate) fn pinned(&self, bytes: usize) -> Result<Pinned> {
        let bytes = bytes.max(16).next_power_of_two();
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let found = spare.iter().position(|memory| memory.bytes == bytes).map(|at| spare.swap_remove(at));
        drop(spare);
        let memory = match found {
            Some(memory) => memory,
            None => {
                let mut address = std::ptr::null_mut();
                // SAFETY: writes an address.
                let result = unsafe { sys::cuMemHostAlloc(&mut address, bytes, 0) };
                self.check(&format!("allocating {bytes} bytes of page-locked memory"), result)?;
                Memory { address, bytes }
            }
        };
        let address = memory.address;
        // SAFETY: memory of that many bytes without another owner.
        unsafe { std::ptr::write_bytes(address.cast::<u8>(), 0, bytes) };
        Ok(Pinned { address, bytes, memory: Some(memory), home: self.spare.clone() })
    }

    /// Returns unused page-locked memory to the system.
    pub(crate) fn free_pinned(&self) {
        *self.carrier.borrow_mut() = None;
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn carried(&self, copy: impl FnOnce(&mut Carrier) -> Result<()>) -> Result<()> {
        let mut place = self.carrier.borrow_mut();
        let carrier = match &mut *place {
            Some(carrier) => carrier,
            none => none.insert(Carrier::new(self)?),
        };
        copy(carrier)
    }
}

/// Page-locked memory, freed on drop.
pub(crate) struct Memory {
    address: *mut c_void,
    bytes: usize,
}
// SAFETY: an address with one owner at a time.
unsafe impl Send for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: came from cuMemHostAlloc and is freed once.
        unsafe { sys::cuMemFreeHost(self.address) };
    }
}

/// Unused page-locked memory.
pub(crate) type Spare = Arc<Mutex<Vec<Memory>>>;

/// Page-locked host memory, which the device copies directly.
pub(crate) struct Pinned {
    address: *mut c_void,
    bytes: usize,
    memory: Option<Memory>,
    home: Spare,
}
// SAFETY: owned memory, accessed through `&mut` or after waiting for the stream.
unsafe impl Send for Pinned {}

impl Pinned {
    /// Its device address: page-locked memory has one address for both.
    pub(crate) fn address(&self) -> Address {
        self.address as Address
    }
    /// Values at an offset in bytes, which must be a multiple of their size.
    pub(crate) fn get<T: Pod>(&self, at: usize, count: usize) -> Vec<T> {
        debug_assert!(at + count * size_of::<T>() <= self.bytes);
        // SAFETY: the range lies in the buffer and is aligned; any bytes are a T. The read is volatile
        // because a copy by the device wrote it.
        (0..count).map(|i| unsafe { self.address.byte_add(at).cast::<T>().add(i).read_volatile() }).collect()
    }
    /// Writes values at an offset in bytes.
    pub(crate) fn set<T: Pod>(&mut self, at: usize, values: &[T]) {
        debug_assert!(at + size_of_val(values) <= self.bytes);
        for (i, v) in values.iter().enumerate() {
            // SAFETY: the range lies in the buffer and is aligned.
            unsafe { self.address.byte_add(at).cast::<T>().add(i).write_volatile(*v) };
        }
    }
    /// All of it; no copy in the stream may touch it.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: owned memory of that many bytes, zeroed when it was taken.
        unsafe { std::slice::from_raw_parts_mut(self.address.cast(), self.bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.home.lock().unwrap_or_else(PoisonError::into_inner).extend(self.memory.take());
    }
}
