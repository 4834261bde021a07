//! Copies between host and device, and page-locked host memory.
use crate::carrier::{Carrier, LARGE};
use crate::driver::{Address, Driver};
use cust::sys;
use lacuna_engine::{Error, Result};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

impl Driver {
    /// Copies to the device, in stream order; the source may change once this returns.
    pub(crate) fn upload(&self, bytes: &[u8], to: Address, operation: &str) -> Result<()> {
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
    pub(crate) fn download(&self, from: Address, bytes: &mut [u8], operation: &str) -> Result<()> {
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

    /// Copies within the device, in stream order.
    pub(crate) fn copy(&self, from: Address, to: Address, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: callers pass ranges of live buffers that do not overlap.
        let result = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, self.stream.as_inner()) };
        self.check("copying on the device", result)
    }

    /// Waits for all that this process has queued on the device, in any stream.
    pub(crate) fn wait_for_all(&self) -> Result<()> {
        // SAFETY: waits in the current context.
        let result = unsafe { sys::cuCtxSynchronize() };
        self.check("waiting for the device", result)
    }

    /// Fails for an address that does not lie in this device's memory.
    pub(crate) fn check_address(&self, address: Address) -> Result<()> {
        let (mut ordinal, mut own) = (-1i32, 0);
        let what = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        // SAFETY: writes an integer for any address.
        let result = unsafe { sys::cuPointerGetAttribute((&raw mut ordinal).cast(), what, address) };
        // SAFETY: writes the device of the current context.
        self.check("asking for the device", unsafe { sys::cuCtxGetDevice(&mut own) })?;
        if result == sys::CUresult::CUDA_SUCCESS && ordinal == own {
            return Ok(());
        }
        let of = if result == sys::CUresult::CUDA_SUCCESS {
            format!("of device {ordinal}")
        } else {
            "of no device".into()
        };
        Err(Error::Argument {
            what: "an array in the memory of a GPU".into(),
            message: format!("its address is {of}, and the solver is on device {own}"),
        })
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
                PinnedMemory { address, bytes }
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
pub(crate) struct PinnedMemory {
    address: *mut c_void,
    bytes: usize,
}
// SAFETY: an address with one owner at a time.
unsafe impl Send for PinnedMemory {}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // SAFETY: came from cuMemHostAlloc and is freed once.
        unsafe { sys::cuMemFreeHost(self.address) };
    }
}

/// Unused page-locked memory.
pub(crate) type Spare = Arc<Mutex<Vec<PinnedMemory>>>;

/// Page-locked host memory, which the device copies directly.
pub(crate) struct Pinned {
    address: *mut c_void,
    bytes: usize,
    memory: Option<PinnedMemory>,
    home: Spare,
}
// SAFETY: owned memory, accessed through `&mut` or after waiting for the stream.
unsafe impl Send for Pinned {}

impl Pinned {
    /// Its device address: page-locked memory has one address for both.
    pub(crate) fn address(&self) -> Address {
        self.address as Address
    }
    /// Its bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }
    /// The address of `count` words from word `first` on.
    fn words(&self, first: usize, count: usize) -> *mut u64 {
        assert!((first + count) * size_of::<u64>() <= self.bytes, "words within page-locked memory");
        self.address.cast::<u64>().wrapping_add(first)
    }
    /// `count` words from word `first` on.
    pub(crate) fn get(&self, first: usize, count: usize) -> Vec<u64> {
        let from = self.words(first, count);
        // SAFETY: the range lies in the buffer and is aligned. The read is volatile because a copy by the device
        // wrote it.
        (0..count).map(|i| unsafe { from.add(i).read_volatile() }).collect()
    }
    /// Writes words from word `first` on.
    pub(crate) fn set(&mut self, first: usize, words: &[u64]) {
        let to = self.words(first, words.len());
        for (i, word) in words.iter().enumerate() {
            // SAFETY: the range lies in the buffer and is aligned.
            unsafe { to.add(i).write_volatile(*word) };
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
