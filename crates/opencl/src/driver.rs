//! The OpenCL calls of this crate, with owners for the objects they create. Every failure becomes an error
//! value: the status, its name, and the operation.
mod queue;
use crate::device::Device;
pub(crate) use crate::status::*;
use lacuna_engine::{Error, Result};
use ocl::ffi;
pub(crate) use queue::Arg;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An open device and its in-order queue.
pub(crate) struct Driver {
    // The context must be dropped last.
    pub(crate) queue: Queue,
    pub(crate) context: Arc<Context>,
    pub(crate) device: Device,
}

impl Driver {
    pub(crate) fn new(device: Device) -> Result<Self> {
        let fail = |status| failed(&device.name, "opening the device", status);
        let context = Arc::new(Context::new(device.id).map_err(fail)?);
        let queue = context.queue(device.id).map_err(fail)?;
        Ok(Driver { queue, context, device })
    }
    /// Makes errors of an operation.
    pub(crate) fn fail(&self, operation: &str) -> impl Fn(Status) -> Error + use<> {
        let (device, operation) = (self.device.name.clone(), operation.to_owned());
        move |status| failed(&device, &operation, status)
    }
}

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
            continue; // a platform without devices, or whose driver fails on this system
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

/// The answer of an info call of the driver; asks for its size first.
fn bytes(ask: impl Fn(usize, *mut c_void, *mut usize) -> i32) -> Outcome<Vec<u8>> {
    let mut size = 0;
    check(ask(0, ptr::null_mut(), &mut size))?;
    let mut out = vec![0u8; size];
    check(ask(size, out.as_mut_ptr().cast(), ptr::null_mut()))?;
    Ok(out)
}

impl Id {
    /// A null device, for tests that do not query it.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Id(ptr::null_mut())
    }
    fn info(self, what: u32) -> Outcome<Vec<u8>> {
        // SAFETY: `at` has room for `size` bytes.
        bytes(|size, at, got| unsafe { ffi::clGetDeviceInfo(self.0, what, size, at, got) })
    }
    /// A text property of the device; empty if it has none.
    pub(crate) fn text(self, what: u32) -> String {
        self.info(what).map(|bytes| text(&bytes)).unwrap_or_default()
    }
    /// A numeric property of the device; 0 if it has none.
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
// SAFETY: a shared reference to a built program only creates kernels, which any thread may do.
unsafe impl Sync for Program {}
owner!(
    /// A kernel with its arguments.
    Kernel, cl_kernel, clReleaseKernel
);
owner!(
    /// A queued command to wait for.
    Event, cl_event, clReleaseEvent
);

/// A context of one device, with the total bytes of its buffers.
#[derive(Debug)]
pub(crate) struct Context {
    raw: ffi::cl_context,
    held: Arc<AtomicU64>,
}
// SAFETY: as for the objects above.
unsafe impl Send for Context {}
// SAFETY: a shared reference creates objects in the context, which any thread may do.
unsafe impl Sync for Context {}
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
// SAFETY: a shared reference gives only the handle, and any thread may make calls with memory objects.
unsafe impl Sync for Buffer {}
impl Drop for Buffer {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
        // SAFETY: this owns the one reference that creation gave.
        unsafe { ffi::clReleaseMemObject(self.raw) };
    }
}

impl Context {
    /// Total bytes of its buffers.
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
    /// The compiled binary of the program.
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
