//! Kernels with their arguments, and the queue they are launched from.
use super::{Buffer, Event, Id, Kernel, Outcome, Queue, bytes, check};
use ocl::ffi;
use std::ffi::c_void;
use std::ptr;

/// An argument of a kernel.
pub(crate) enum Arg<'a> {
    /// A buffer.
    Buffer(&'a Buffer),
    /// A number.
    Word(u32),
    /// Local memory of this many bytes.
    Local(usize),
}

impl Kernel {
    pub(crate) fn set(&mut self, index: u32, arg: &Arg<'_>) -> Outcome<()> {
        let (size, at): (usize, *const c_void) = match arg {
            Arg::Buffer(buffer) => (size_of::<ffi::cl_mem>(), (&raw const buffer.raw).cast()),
            Arg::Word(word) => (4, ptr::from_ref(word).cast()),
            Arg::Local(bytes) => ((*bytes).max(16), ptr::null()),
        };
        // SAFETY: `at` points to `size` bytes, or is null for local memory.
        check(unsafe { ffi::clSetKernelArg(self.0, index, size, at) })
    }
    /// The largest work-group the kernel can have.
    pub(crate) fn group_limit(&self, device: Id) -> usize {
        let bytes = bytes(|size, at, got| {
            // SAFETY: `at` has room for `size` bytes.
            unsafe {
                ffi::clGetKernelWorkGroupInfo(self.0, device.0, ffi::CL_KERNEL_WORK_GROUP_SIZE, size, at, got)
            }
        });
        bytes.ok().and_then(|b| b.first_chunk().map(|b| usize::from_le_bytes(*b))).unwrap_or(0)
    }
}

impl Queue {
    /// Queues a kernel over `groups` work-groups of `size` work-items.
    pub(crate) fn launch(&self, kernel: &Kernel, groups: usize, size: usize) -> Outcome<()> {
        let global = groups * size;
        // SAFETY: one dimension; the arguments are set, and the backend that queues owns the objects they
        // name.
        check(unsafe {
            ffi::clEnqueueNDRangeKernel(
                self.0,
                kernel.0,
                1,
                ptr::null(),
                &global,
                &size,
                0,
                ptr::null(),
                ptr::null_mut(),
            )
        })
    }
    /// Writes and waits until the host's bytes are no longer needed.
    pub(crate) fn write(&self, to: &Buffer, offset: usize, from: &[u8]) -> Outcome<()> {
        if from.is_empty() {
            return Ok(());
        }
        // SAFETY: blocking, so that `from` outlives the write.
        unsafe { self.enqueue_write(true, to, offset, from) }
    }
    /// Queues a write.
    ///
    /// # Safety
    /// `from` must neither move nor change until the queue has been waited for.
    pub(crate) unsafe fn write_later(&self, to: &Buffer, offset: usize, from: &[u8]) -> Outcome<()> {
        // SAFETY: the caller keeps `from` alive.
        unsafe { self.enqueue_write(false, to, offset, from) }
    }
    /// # Safety
    /// `from` must neither move nor change until the write is done.
    unsafe fn enqueue_write(&self, wait: bool, to: &Buffer, offset: usize, from: &[u8]) -> Outcome<()> {
        // SAFETY: `from` has the requested number of bytes and lives as long as the caller promises.
        check(unsafe {
            ffi::clEnqueueWriteBuffer(
                self.0,
                to.raw,
                u32::from(wait),
                offset,
                from.len(),
                from.as_ptr().cast_mut().cast(),
                0,
                ptr::null(),
                ptr::null_mut(),
            )
        })
    }
    /// Reads and waits.
    pub(crate) fn read(&self, from: &Buffer, offset: usize, to: &mut [u8]) -> Outcome<()> {
        if to.is_empty() {
            return Ok(());
        }
        // SAFETY: blocking, and `to` has the requested number of bytes.
        check(unsafe {
            ffi::clEnqueueReadBuffer(
                self.0,
                from.raw,
                1,
                offset,
                to.len(),
                to.as_mut_ptr().cast(),
                0,
                ptr::null(),
                ptr::null_mut(),
            )
        })
    }
    /// Queues a read.
    ///
    /// # Safety
    /// `to` must not move or be accessed until the event has been waited for.
    pub(crate) unsafe fn read_later(&self, from: &Buffer, offset: usize, to: &mut [u8]) -> Outcome<Event> {
        let mut event = ptr::null_mut();
        // SAFETY: the caller keeps `to` alive.
        check(unsafe {
            ffi::clEnqueueReadBuffer(
                self.0,
                from.raw,
                0,
                offset,
                to.len(),
                to.as_mut_ptr().cast(),
                0,
                ptr::null(),
                &mut event,
            )
        })?;
        Ok(Event(event))
    }
    /// Queues filling `bytes` bytes with a pattern of 1, 2, 4, 8 or 16 bytes.
    pub(crate) fn fill(&self, to: &Buffer, offset: usize, bytes: usize, pattern: &[u8]) -> Outcome<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the driver copies the pattern before it returns.
        check(unsafe {
            ffi::clEnqueueFillBuffer(
                self.0,
                to.raw,
                pattern.as_ptr().cast(),
                pattern.len(),
                offset,
                bytes,
                0,
                ptr::null(),
                ptr::null_mut(),
            )
        })
    }
    /// Queues a copy from an offset in a buffer to one in another buffer, or apart from it in the same one.
    pub(crate) fn copy(
        &self,
        (from, at): (&Buffer, usize),
        (to, place): (&Buffer, usize),
        bytes: usize,
    ) -> Outcome<()> {
        if bytes == 0 {
            return Ok(());
        }
        let (none, no_event) = (ptr::null(), ptr::null_mut());
        // SAFETY: both buffers have `bytes` bytes there, as their owner ensures.
        check(unsafe {
            ffi::clEnqueueCopyBuffer(self.0, from.raw, to.raw, at, place, bytes, 0, none, no_event)
        })
    }
    /// Sends what is queued to the device.
    pub(crate) fn flush(&self) -> Outcome<()> {
        // SAFETY: a live queue.
        check(unsafe { ffi::clFlush(self.0) })
    }
    /// Waits for everything queued.
    pub(crate) fn finish(&self) -> Outcome<()> {
        // SAFETY: a live queue.
        check(unsafe { ffi::clFinish(self.0) })
    }
}

impl Event {
    pub(crate) fn wait(&self) -> Outcome<()> {
        // SAFETY: one live event.
        check(unsafe { ffi::clWaitForEvents(1, &self.0) })
    }
}
