//! The driver: context, stream, kernels and raw calls; each failure names the operation.
use crate::carrier::Carrier;
use crate::compiler::{self, Code};
use crate::device::{Limits, limits};
use crate::transfer::Spare;
use cust::context::{Context, CurrentContext};
use cust::device::Device;
use cust::error::CudaError;
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use cust::sys;
use lacuna_engine::{Error, Result};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_void};

/// The kernels, compiled by `build.rs`: a name and a fatbin for each file of `kernels-cuda/`.
const FATBINS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/fatbins.rs"));
/// The oldest compute capability of the fatbins: 7.5, Turing.
const OLDEST: (i32, i32) = (7, 5);

/// An address in the memory of the device.
pub(crate) type Address = u64;

/// A device ready for work.
pub(crate) struct Driver {
    pub(crate) limits: Limits,
    functions: HashMap<String, Kernel>,
    /// Generated kernels, by text.
    written: HashMap<String, (Kernel, Module)>,
    /// Staging buffers for large transfers, and unused page-locked memory.
    pub(crate) carrier: RefCell<Option<Carrier>>,
    pub(crate) spare: Spare,
    // Drop order: each field needs those after it.
    pub(crate) stream: Stream,
    /// Modules, each loaded when its first kernel is requested.
    modules: HashMap<&'static str, Module>,
    context: Context,
}

/// A kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel(sys::CUfunction);
// SAFETY: a function handle is an address in the driver, valid in any thread where the context is current.
unsafe impl Send for Kernel {}

/// An instantiated graph.
pub(crate) struct Graph(sys::CUgraphExec);
// SAFETY: the driver lets any thread launch or destroy a graph, one at a time; this crate never shares one.
unsafe impl Send for Graph {}

/// A point in the stream, for any thread.
pub(crate) struct Event(sys::CUevent);
// SAFETY: the driver accepts calls for an event from any thread.
unsafe impl Send for Event {}

impl Event {
    pub(crate) fn new(driver: &Driver) -> Result<Self> {
        let mut event = std::ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: writes a handle.
        driver.check("creating an event", unsafe { sys::cuEventCreate(&mut event, flags) })?;
        Ok(Event(event))
    }
    /// Records it at this point of a stream.
    pub(crate) fn record(&self, stream: sys::CUstream) -> sys::CUresult {
        // SAFETY: both are live.
        unsafe { sys::cuEventRecord(self.0, stream) }
    }
    /// Waits until the stream has passed it.
    pub(crate) fn wait(&self) -> sys::CUresult {
        // SAFETY: the event is live.
        unsafe { sys::cuEventSynchronize(self.0) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once; the driver keeps what it needs until the stream has passed it.
        unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}

/// A launch shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch {
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    pub(crate) shared: u32,
    pub(crate) cooperative: bool,
}

pub(crate) fn failure(device: &str, operation: &str, error: CudaError) -> Error {
    if let Some(files) = lacuna_drivers::cuda::missing() {
        let message = format!("no NVIDIA driver is installed: found neither {files}");
        return Error::Device { device: device.into(), operation: operation.into(), message };
    }
    let hint = match error {
        CudaError::NoDevice | CudaError::NotInitialized | CudaError::UnknownError => {
            ": no usable NVIDIA driver and device; `nvidia-smi` tells more"
        }
        CudaError::IllegalAddress
        | CudaError::LaunchFailed
        | CudaError::IllegalInstruction
        | CudaError::MisalignedAddress
        | CudaError::HardwareStackError
        | CudaError::LaunchTimeout => {
            ": a kernel faulted; the device's context is lost to this process, other backends go on"
        }
        CudaError::NoBinaryForGpu | CudaError::InvalidPtx => {
            ": the kernels were built for other devices; build with LACUNA_CUDA_ARCHITECTURES naming this one"
        }
        _ => "",
    };
    Error::Device {
        device: device.into(),
        operation: operation.into(),
        // Not by `Display`, which asks the driver for a text and panics if there is none.
        message: format!("{error:?}{hint}"),
    }
}

impl Driver {
    /// Opens the device with that index, or the first whose name contains the text.
    pub(crate) fn open(which: &str) -> Result<Self> {
        let failed = |e| failure("cuda", "opening a device", e);
        cust::init(cust::CudaFlags::empty()).map_err(failed)?;
        let mut found = None;
        let mut names = Vec::new();
        for (i, device) in Device::devices().map_err(failed)?.enumerate() {
            let device = device.map_err(failed)?;
            let name = device.name().map_err(failed)?;
            let wanted = which.parse() == Ok(i) || name.to_lowercase().contains(&which.to_lowercase());
            if found.is_none() && wanted {
                found = Some(device);
            }
            names.push(format!("{i}: {name}"));
        }
        let device = found.ok_or_else(|| Error::Device {
            device: "cuda".into(),
            operation: "opening a device".into(),
            message: format!("no device matches `{which}`; expected one of [{}]", names.join(", ")),
        })?;
        let limits = limits(device).map_err(failed)?;
        let capability = limits.capability;
        if capability < OLDEST {
            return Err(Error::Unsupported {
                operation: "opening a device".into(),
                message: format!(
                    "{} has compute capability {}.{}; expected {}.{} or newer",
                    limits.name, capability.0, capability.1, OLDEST.0, OLDEST.1
                ),
            });
        }
        let failed = |e| failure(&limits.name, "opening the device", e);
        let context = Context::new(device).map_err(failed)?;
        CurrentContext::set_current(&context).map_err(failed)?;
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None).map_err(failed)?;
        Ok(Driver {
            limits,
            functions: HashMap::new(),
            written: HashMap::new(),
            carrier: RefCell::default(),
            spare: Spare::default(),
            stream,
            modules: HashMap::new(),
            context,
        })
    }

    pub(crate) fn context(&self) -> sys::CUcontext {
        self.context.as_raw()
    }

    /// Makes the context current for the calling thread.
    pub(crate) fn enter(&self) -> Result<()> {
        CurrentContext::set_current(&self.context).map_err(|e| self.failed("entering the context", e))
    }

    pub(crate) fn failed(&self, operation: &str, error: CudaError) -> Error {
        failure(&self.limits.name, operation, error)
    }

    pub(crate) fn check(&self, operation: &str, result: sys::CUresult) -> Result<()> {
        if result == sys::CUresult::CUDA_SUCCESS {
            return Ok(());
        }
        let text =
            |of: unsafe extern "C" fn(sys::CUresult, *mut *const std::ffi::c_char) -> sys::CUresult| {
                let mut text = std::ptr::null();
                // SAFETY: the driver stores the address of its own text, or null.
                let known =
                    unsafe { of(result, &mut text) } == sys::CUresult::CUDA_SUCCESS && !text.is_null();
                if known {
                    // SAFETY: not null, and a terminated text that lives as long as the driver.
                    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
                } else {
                    String::new()
                }
            };
        let lost = (700..=720).contains(&(result as u32));
        let hint = if lost {
            ": a kernel faulted; the device's context is lost to this process, other backends go on"
        } else {
            ""
        };
        Err(Error::Device {
            device: self.limits.name.clone(),
            operation: operation.into(),
            message: format!("{} ({}){hint}", text(sys::cuGetErrorString), text(sys::cuGetErrorName)),
        })
    }

    /// The kernel with that name, allowed to use all shared memory of a block.
    pub(crate) fn kernel(&mut self, name: &str) -> Result<Kernel> {
        if let Some(kernel) = self.functions.get(name) {
            return Ok(*kernel);
        }
        // In the file with that name or for that number type, else in `sweep`.
        let is_in = |file: &str| match file.strip_prefix("levels_") {
            Some(kind) => name.starts_with("level_") && name.ends_with(kind),
            None => name.starts_with(file),
        };
        let named = FATBINS.iter().find(|(file, _)| is_in(file));
        let (file, image) =
            named.or_else(|| FATBINS.iter().find(|(file, _)| *file == "sweep")).ok_or_else(|| {
                let message = "the CUDA backend has none of that name".into();
                Error::Unsupported { operation: format!("kernel `{name}`"), message }
            })?;
        if !self.modules.contains_key(file) {
            let module = Module::from_fatbin(image, &[]);
            let module = module.map_err(|e| self.failed(&format!("loading kernels `{file}`"), e))?;
            self.modules.insert(file, module);
        }
        let found = self.modules[file].get_function(name);
        let kernel = Kernel(found.map_err(|e| self.failed(&format!("finding kernel `{name}`"), e))?.to_raw());
        self.raise_shared(kernel)?;
        self.functions.insert(name.into(), kernel);
        Ok(kernel)
    }

    /// Allows a kernel to use all shared memory of a block.
    fn raise_shared(&self, kernel: Kernel) -> Result<()> {
        let mut fixed = 0;
        let size = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
        // SAFETY: the function belongs to a loaded module; writes one integer.
        self.check("asking a kernel's shared memory", unsafe {
            sys::cuFuncGetAttribute(&mut fixed, size, kernel.0)
        })?;
        let most = self.limits.shared as i32 - fixed;
        let dynamic = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function belongs to a loaded module.
        self.check("raising a kernel's shared memory", unsafe {
            sys::cuFuncSetAttribute(kernel.0, dynamic, most)
        })
    }

    /// A kernel of a text generated for one program, by name. Compiles it if needed: immediately if `wait` is
    /// set.
    pub(crate) fn jit(&mut self, text: &str, name: &str, wait: bool) -> Result<Code<Kernel>> {
        if let Some((kernel, _)) = self.written.get(text) {
            return Ok(Code::Ready(*kernel));
        }
        let code = match compiler::machine_code(&self.limits.name, self.limits.capability, text, wait)? {
            Code::Ready(code) => code,
            Code::Compiling(job) => return Ok(Code::Compiling(job)),
        };
        let operation = "loading the kernel of a program";
        let module = Module::from_cubin(code, &[]).map_err(|e| self.failed(operation, e))?;
        let function = module.get_function(name).map_err(|e| self.failed(operation, e))?;
        let kernel = Kernel(function.to_raw());
        self.raise_shared(kernel)?;
        self.written.insert(text.into(), (kernel, module));
        Ok(Code::Ready(kernel))
    }

    /// Launches a kernel on the stream.
    ///
    /// # Safety
    /// `arguments` must match the kernel's parameters in size and order. Every address in them must stay live
    /// until the kernel has ended, and be large enough for the kernel's accesses.
    pub(crate) unsafe fn launch(
        &self,
        name: &str,
        kernel: Kernel,
        how: Launch,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let stream = self.stream.as_inner();
        let Launch { blocks, threads, shared, cooperative } = how;
        // SAFETY: the function belongs to a loaded module; the caller vouches for the arguments.
        let result = unsafe {
            if cooperative {
                let arguments = arguments.as_mut_ptr();
                sys::cuLaunchCooperativeKernel(
                    kernel.0, blocks, 1, 1, threads, 1, 1, shared, stream, arguments,
                )
            } else {
                let (arguments, extra) = (arguments.as_mut_ptr(), std::ptr::null_mut());
                sys::cuLaunchKernel(kernel.0, blocks, 1, 1, threads, 1, 1, shared, stream, arguments, extra)
            }
        };
        self.check(&format!("launching `{name}`"), result)
    }

    /// Waits until the stream is empty.
    pub(crate) fn wait(&self, operation: &str) -> Result<()> {
        // SAFETY: the stream is live.
        self.check(operation, unsafe { sys::cuStreamSynchronize(self.stream.as_inner()) })
    }

    /// Records an event at this point of the stream.
    pub(crate) fn record(&self, event: &Event) -> Result<()> {
        self.check("recording an event", event.record(self.stream.as_inner()))
    }
    /// Waits until the stream has passed the event.
    pub(crate) fn wait_for(&self, event: &Event, operation: &str) -> Result<()> {
        self.check(operation, event.wait())
    }

    /// Captures what `body` queues into a graph.
    pub(crate) fn capture(&self, body: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let stream = self.stream.as_inner();
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is live and not capturing.
        self.check("beginning a capture", unsafe { sys::cuStreamBeginCapture_v2(stream, mode) })?;
        let done = body();
        let mut graph = std::ptr::null_mut();
        // SAFETY: the stream is capturing; the graph's address is written on success.
        let ended = self.check("ending a capture", unsafe { sys::cuStreamEndCapture(stream, &mut graph) });
        done?;
        ended?;
        let mut exec = std::ptr::null_mut();
        // SAFETY: the graph was just created; it may be destroyed once instantiated.
        let made = unsafe {
            let made = sys::cuGraphInstantiateWithFlags(&mut exec, graph, 0);
            sys::cuGraphDestroy(graph);
            made
        };
        self.check("instantiating a graph", made)?;
        Ok(Graph(exec))
    }

    /// Queues a graph.
    pub(crate) fn replay(&self, graph: &Graph) -> Result<()> {
        // SAFETY: both are live; the program that owns the graph keeps the memory its kernels use.
        self.check("launching a graph", unsafe { sys::cuGraphLaunch(graph.0, self.stream.as_inner()) })
    }

    /// New memory, or `None` if there is not enough.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Option<Address>> {
        let mut address = 0;
        // SAFETY: writes an address.
        let result = unsafe { sys::cuMemAlloc_v2(&mut address, bytes) };
        if result == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return Ok(None);
        }
        self.check(&format!("allocating {bytes} bytes"), result)?;
        Ok(Some(address))
    }
    /// Frees memory. Waits for the stream.
    pub(crate) fn free(&self, address: Address) {
        // SAFETY: the address came from `allocate` and is freed once; the driver waits for kernels that use
        // it. After a fault the driver refuses, and the memory is freed with the context.
        unsafe { sys::cuMemFree_v2(address) };
    }
    /// Free bytes of the device.
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two sizes.
        let result = unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) };
        (result == sys::CUresult::CUDA_SUCCESS).then_some(free as u64)
    }

    /// Zeroes memory, in stream order.
    pub(crate) fn zero(&self, address: Address, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: callers pass ranges of live buffers of this module.
        let result = unsafe { sys::cuMemsetD8Async(address, 0, bytes, self.stream.as_inner()) };
        self.check("clearing memory", result)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: instantiated once, destroyed once; the driver waits if it is running.
        unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}

/// A kernel's name with the suffix of a number type.
pub(crate) fn kernel_name(stem: &str, kind: lacuna_engine::NumberType) -> String {
    format!("{stem}_{}", kind.name())
}
