//! The OpenCL calls this crate makes, with owners for what they create. Every status becomes an error value: the
//! status, its name, and what was being done.
pub(crate) use crate::status::*;
use ocl_core::ffi;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A device of a platform; platforms and devices live as long as the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id(ffi::cl_device_id);
// SAFETY: a device id is a name that any thread may use.
unsafe impl Send for Id {}
// SAFETY: as above.
unsafe impl Sync for Id {}

/// The devices of every platform, platform by platform.
pub(crate) fn devices() -> Outcome<Vec<(Id, String)>> {
    let mut count = 0;
    // SAFETY: asks for the number alone.
    let status = unsafe { ffi::clGetPlatformIDs(0, ptr::null_mut(), &mut count) };
    if Status(status) == PLATFORM_NOT_FOUND || (status == 0 && count == 0) {
        return Ok(Vec::new());
    }
    check(status)?;
    let mut platforms = vec![ptr::null_mut(); count as usize];
    // SAFETY: the array has room for `count` ids.
    check(unsafe { ffi::clGetPlatformIDs(count, platforms.as_mut_ptr(), ptr::null_mut()) })?;
    let mut found = Vec::new();
    for platform in platforms {
        let mut count = 0;
        // SAFETY: asks for the number alone.
        let status =
            unsafe { ffi::clGetDeviceIDs(platform, ffi::CL_DEVICE_TYPE_ALL, 0, ptr::null_mut(), &mut count) };
        if status != 0 || count == 0 {
            continue; // a platform without devices, or whose driver does not work here
        }
        let mut ids = vec![ptr::null_mut(); count as usize];
        // SAFETY: the array has room for `count` ids.
        let status = unsafe {
            ffi::clGetDeviceIDs(platform, ffi::CL_DEVICE_TYPE_ALL, count, ids.as_mut_ptr(), ptr::null_mut())
        };
        check(status)?;
        let name = bytes(|size, at, got| {
            // SAFETY: `at` has room for `size` bytes.
            unsafe { ffi::clGetPlatformInfo(platform, ffi::CL_PLATFORM_NAME, size, at, got) }
        })?;
        found.extend(ids.into_iter().map(|id| (Id(id), text(&name))));
    }
    Ok(found)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_matches(['\0', ' ', '\n']).to_owned()
}

/// What an info call of the driver tells: it is asked for the size first.
fn bytes(ask: impl Fn(usize, *mut c_void, *mut usize) -> i32) -> Outcome<Vec<u8>> {
    let mut size = 0;
    check(ask(0, ptr::null_mut(), &mut size))?;
    let mut out = vec![0u8; size];
    check(ask(size, out.as_mut_ptr().cast(), ptr::null_mut()))?;
    Ok(out)
}

impl Id {
    /// No device, for tests that ask it nothing.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Id(ptr::null_mut())
    }
    fn info(self, what: u32) -> Outcome<Vec<u8>> {
        // SAFETY: `at` has room for `size` bytes.
        bytes(|size, at, got| unsafe { ffi::clGetDeviceInfo(self.0, what, size, at, got) })
    }
    /// A text the device tells of itself; empty where it does not.
    pub(crate) fn text(self, what: u32) -> String {
        self.info(what).map(|bytes| text(&bytes)).unwrap_or_default()
    }
    /// A number the device tells of itself; 0 where it does not.
    pub(crate) fn number(self, what: u32) -> u64 {
        let bytes = self.info(what).unwrap_or_default();
        let mut word = [0; 8];
        let used = bytes.len().min(8);
        word[..used].copy_from_slice(&bytes[..used]);
        u64::from_le_bytes(word)
    }
}

macro_rules! owner {
    ($(#[$doc:meta])* $name:ident, $raw:ident, $release:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name(ffi::$raw);
        // SAFETY: OpenCL objects may be used from any thread; a kernel, whose arguments are state, from one at a
        // time, which `&mut` access in this crate keeps.
        unsafe impl Send for $name {}
        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: this owns the one reference that creation gave.
                unsafe { ffi::$release(self.0) };
            }
        }
    };
}
owner!(
    /// An in-order queue.
    Queue, cl_command_queue, clReleaseCommandQueue
);
owner!(
    /// A program built for one device.
    Program, cl_program, clReleaseProgram
);
owner!(
    /// A kernel with its arguments.
    Kernel, cl_kernel, clReleaseKernel
);
owner!(
    /// A queued command to wait for.
    Event, cl_event, clReleaseEvent
);

/// A context of one device, with the bytes of its buffers.
#[derive(Debug)]
pub(crate) struct Context {
    raw: ffi::cl_context,
    held: Arc<AtomicU64>,
}
// SAFETY: as for the objects above.
unsafe impl Send for Context {}
impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: this owns the one reference that creation gave.
        unsafe { ffi::clReleaseContext(self.raw) };
    }
}

/// A buffer in device memory.
#[derive(Debug)]
pub(crate) struct Buffer {
    raw: ffi::cl_mem,
    bytes: u64,
    held: Arc<AtomicU64>,
}
// SAFETY: as for the objects above.
unsafe impl Send for Buffer {}
// SAFETY: a shared reference gives nothing but the handle, and calls with memory objects may come from several threads.
unsafe impl Sync for Buffer {}
impl Drop for Buffer {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
        // SAFETY: this owns the one reference that creation gave.
        unsafe { ffi::clReleaseMemObject(self.raw) };
    }
}

impl Context {
    /// Bytes of all its buffers.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }
    pub(crate) fn new(device: Id) -> Outcome<Self> {
        let mut status = 0;
        // SAFETY: one device, no properties, no callback.
        let raw =
            unsafe { ffi::clCreateContext(ptr::null(), 1, &device.0, None, ptr::null_mut(), &mut status) };
        check(status).map(|()| Context { raw, held: Arc::default() })
    }
    pub(crate) fn queue(&self, device: Id) -> Outcome<Queue> {
        let mut status = 0;
        // SAFETY: the device is the context's.
        let raw = unsafe { ffi::clCreateCommandQueue(self.raw, device.0, 0, &mut status) };
        check(status).map(|()| Queue(raw))
    }
    pub(crate) fn buffer(&self, bytes: usize) -> Outcome<Buffer> {
        let (mut status, bytes) = (0, bytes.max(16));
        // SAFETY: no host pointer.
        let raw = unsafe {
            ffi::clCreateBuffer(self.raw, ffi::CL_MEM_READ_WRITE, bytes, ptr::null_mut(), &mut status)
        };
        check(status)?;
        self.held.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(Buffer { raw, bytes: bytes as u64, held: self.held.clone() })
    }
    pub(crate) fn program(&self, source: &str) -> Outcome<Program> {
        let mut status = 0;
        let (text, length) = (source.as_ptr().cast(), source.len());
        // SAFETY: one string with its length.
        let raw = unsafe { ffi::clCreateProgramWithSource(self.raw, 1, &text, &length, &mut status) };
        check(status).map(|()| Program(raw))
    }
    pub(crate) fn program_from_binary(&self, device: Id, binary: &[u8]) -> Outcome<Program> {
        let (mut status, mut of_binary) = (0, 0);
        let (data, length) = (binary.as_ptr(), binary.len());
        // SAFETY: one device, one binary with its length.
        let raw = unsafe {
            ffi::clCreateProgramWithBinary(
                self.raw,
                1,
                &device.0,
                &length,
                &data,
                &mut of_binary,
                &mut status,
            )
        };
        check(status)?;
        let program = Program(raw);
        check(of_binary).map(|()| program)
    }
}

impl Program {
    pub(crate) fn build(&self, device: Id, options: &str) -> Outcome<()> {
        let options = CString::new(options).unwrap_or_default();
        // SAFETY: one device, a terminated string, no callback.
        check(unsafe { ffi::clBuildProgram(self.0, 1, &device.0, options.as_ptr(), None, ptr::null_mut()) })
    }
    pub(crate) fn log(&self, device: Id) -> String {
        let log = bytes(|size, at, got| {
            // SAFETY: `at` has room for `size` bytes.
            unsafe { ffi::clGetProgramBuildInfo(self.0, device.0, ffi::CL_PROGRAM_BUILD_LOG, size, at, got) }
        });
        log.map(|bytes| text(&bytes)).unwrap_or_default()
    }
    /// The program as the driver compiled it.
    pub(crate) fn binary(&self) -> Outcome<Vec<u8>> {
        let sizes = bytes(|size, at, got| {
            // SAFETY: `at` has room for `size` bytes.
            unsafe { ffi::clGetProgramInfo(self.0, ffi::CL_PROGRAM_BINARY_SIZES, size, at, got) }
        })?;
        let size = sizes.first_chunk().map_or(0, |bytes| usize::from_le_bytes(*bytes));
        let mut binary = vec![0u8; size];
        let mut at = binary.as_mut_ptr();
        // SAFETY: one device, so one pointer, to as many bytes as the driver said.
        check(unsafe {
            ffi::clGetProgramInfo(
                self.0,
                ffi::CL_PROGRAM_BINARIES,
                size_of::<*mut u8>(),
                (&raw mut at).cast(),
                ptr::null_mut(),
            )
        })?;
        Ok(binary)
    }
    pub(crate) fn kernel(&self, name: &str) -> Outcome<Kernel> {
        let mut status = 0;
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: a terminated string.
        let raw = unsafe { ffi::clCreateKernel(self.0, name.as_ptr(), &mut status) };
        check(status).map(|()| Kernel(raw))
    }
}

/// An argument of a kernel.
pub(crate) enum Arg<'a> {
    /// A buffer.
    Buffer(&'a Buffer),
    /// A number.
    Word(u32),
    /// Local memory of so many bytes.
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
    pub(crate) fn set_all(&mut self, args: &[Arg<'_>]) -> Outcome<()> {
        args.iter().enumerate().try_for_each(|(i, arg)| self.set(i as u32, arg))
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
        // SAFETY: one dimension; the arguments were set, and what they name is owned by the backend that queues.
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
    /// `from` must stay where and as it is until the queue has been waited for.
    pub(crate) unsafe fn write_later(&self, to: &Buffer, offset: usize, from: &[u8]) -> Outcome<()> {
        // SAFETY: the caller keeps `from` alive.
        unsafe { self.enqueue_write(false, to, offset, from) }
    }
    /// # Safety
    /// `from` must stay where and as it is until the write is done.
    unsafe fn enqueue_write(&self, wait: bool, to: &Buffer, offset: usize, from: &[u8]) -> Outcome<()> {
        // SAFETY: `from` has as many bytes as are asked for and lives as the caller promises.
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
        // SAFETY: blocking, and `to` has as many bytes as are asked for.
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
    /// `to` must stay where it is, untouched, until the event has been waited for.
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
    /// Queues a copy between two buffers.
    pub(crate) fn copy(&self, from: &Buffer, to: &Buffer, bytes: usize) -> Outcome<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: both buffers have at least so many bytes, as their owner knows.
        check(unsafe {
            ffi::clEnqueueCopyBuffer(self.0, from.raw, to.raw, 0, 0, bytes, 0, ptr::null(), ptr::null_mut())
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
