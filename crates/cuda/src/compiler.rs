//! NVRTC, the compiler of the CUDA toolkit, if found at run time; and its output, cached on disk.
use lacuna_engine::{Cached, Error, Result};
use lacuna_gpu::background;
use libloading::Library;
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Stack of a compiler thread, in bytes.
const STACK: usize = 16 << 20;

/// File names of the library, newest first.
const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
/// Library folders within a toolkit.
const FOLDERS: [&str; 3] = ["lib64", "lib", "targets/x86_64-linux/lib"];

type Handle = *mut std::ffi::c_void;

/// The NVRTC functions in use.
struct Nvrtc {
    create: unsafe extern "C" fn(
        *mut Handle,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    compile: unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> c_int,
    log_size: unsafe extern "C" fn(Handle, *mut usize) -> c_int,
    log: unsafe extern "C" fn(Handle, *mut c_char) -> c_int,
    size: unsafe extern "C" fn(Handle, *mut usize) -> c_int,
    cubin: unsafe extern "C" fn(Handle, *mut c_char) -> c_int,
    destroy: unsafe extern "C" fn(*mut Handle) -> c_int,
    version: (c_int, c_int),
    _library: Library,
}

impl Nvrtc {
    /// The library for this process, searched once.
    fn get() -> Option<&'static Nvrtc> {
        static FOUND: OnceLock<Option<Nvrtc>> = OnceLock::new();
        FOUND.get_or_init(|| candidates().into_iter().find_map(|path| Nvrtc::open(&path))).as_ref()
    }

    fn open(path: &std::path::Path) -> Option<Nvrtc> {
        // SAFETY: loading NVRTC only runs its own initialisation.
        let library = unsafe { Library::new(path) }.ok()?;
        // SAFETY: the signatures are those of nvrtc.h, the same since CUDA 11.1.
        unsafe {
            let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int =
                *library.get(b"nvrtcVersion\0").ok()?;
            let (mut major, mut minor) = (0, 0);
            version(&mut major, &mut minor);
            // 16-byte accesses need PTX 8.3.
            if (major, minor) < (12, 3) {
                return None;
            }
            Some(Nvrtc {
                create: *library.get(b"nvrtcCreateProgram\0").ok()?,
                compile: *library.get(b"nvrtcCompileProgram\0").ok()?,
                log_size: *library.get(b"nvrtcGetProgramLogSize\0").ok()?,
                log: *library.get(b"nvrtcGetProgramLog\0").ok()?,
                size: *library.get(b"nvrtcGetCUBINSize\0").ok()?,
                cubin: *library.get(b"nvrtcGetCUBIN\0").ok()?,
                destroy: *library.get(b"nvrtcDestroyProgram\0").ok()?,
                version: (major, minor),
                _library: library,
            })
        }
    }

    /// The machine code of a text, or the compiler's error log.
    fn build(&self, text: &str, options: &[CString]) -> std::result::Result<Vec<u8>, String> {
        let text = CString::new(text).map_err(|_| "the text has a zero byte".to_owned())?;
        let options: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        let mut handle = std::ptr::null_mut();
        let none = std::ptr::null();
        // SAFETY: the text and the options are terminated and outlive the calls; buffers have the sizes asked for.
        unsafe {
            if (self.create)(&mut handle, text.as_ptr(), c"program.cu".as_ptr(), 0, none, none) != 0 {
                return Err("NVRTC made no program".into());
            }
            let done = (self.compile)(handle, options.len() as c_int, options.as_ptr());
            let mut size = 0;
            let built = if done == 0 {
                (self.size)(handle, &mut size);
                let mut code = vec![0u8; size];
                (self.cubin)(handle, code.as_mut_ptr().cast());
                Ok(code)
            } else {
                (self.log_size)(handle, &mut size);
                let mut log = vec![0u8; size];
                (self.log)(handle, log.as_mut_ptr().cast());
                Err(String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned())
            };
            (self.destroy)(&mut handle);
            built
        }
    }
}

/// Where the library may be: the loader's search path, then the toolkit that `CUDA_PATH` or `CUDA_HOME`
/// names, then the usual folders.
fn candidates() -> Vec<PathBuf> {
    let homes = ["CUDA_PATH", "CUDA_HOME"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    let usual = ["/usr/local/cuda", "/opt/cuda"].iter().map(PathBuf::from);
    let homes: Vec<_> = homes.chain(usual).collect();
    let within = homes.iter().flat_map(|home| FOLDERS.map(|folder| home.join(folder)));
    let within = within.flat_map(|folder| NAMES.map(|name| folder.join(name)));
    NAMES.iter().map(PathBuf::from).chain(within).collect()
}

/// Whether NVRTC, the compiler of generated kernels, is found on this machine.
pub fn compiler_found() -> bool {
    Nvrtc::get().is_some()
}

/// A value that needs a compiled kernel, or the compilation it waits for.
pub(crate) enum Code<X> {
    Ready(X),
    Compiling(Job),
}

/// A compilation in its own thread: the machine code, or the compiler's error log.
#[derive(Clone, Default)]
pub(crate) struct Job(Arc<OnceLock<std::result::Result<Vec<u8>, String>>>);

impl Job {
    pub(crate) fn is_done(&self) -> bool {
        self.0.get().is_some()
    }
}

/// Compilations whose result has not been fetched, by architecture and text.
static JOBS: Mutex<BTreeMap<(String, String), Job>> = Mutex::new(BTreeMap::new());

/// The machine code of a text for a compute capability, from the cache on disk if possible. Otherwise
/// compiles it here if `wait` is set, else in a background thread.
pub(crate) fn machine_code(
    device: &str,
    capability: (i32, i32),
    text: &str,
    wait: bool,
) -> Result<Code<Vec<u8>>> {
    let failed = |message: String| Error::Device {
        device: device.into(),
        operation: "compiling the kernel of a program".into(),
        message,
    };
    let refused = |log: &str| failed(format!("NVRTC refused it; please report this with its log:\n{log}"));
    let nvrtc = Nvrtc::get().ok_or_else(|| {
        failed(
            "NVRTC of CUDA 12.3 or newer was not found: install the CUDA toolkit and set CUDA_PATH to its folder, or \
             leave LACUNA_CUDA_COMPILE and LACUNA_CUDA_MODE at `auto`"
                .into(),
        )
    })?;
    let architecture = format!("--gpu-architecture=sm_{}{}", capability.0, capability.1);
    let options = [&architecture, "--std=c++17", "-default-device", "--fmad=false"];
    let version = format!("{}.{}", nvrtc.version.0, nvrtc.version.1);
    let key: Vec<&str> = options.iter().copied().chain([version.as_str(), text]).collect();
    let cached = Cached::new("cuda", &key);
    if let Some(code) = cached.read() {
        return Ok(Code::Ready(code));
    }
    let options: Vec<CString> = options.iter().filter_map(|o| CString::new(*o).ok()).collect();
    if wait || !background::GUARDED {
        let code = nvrtc.build(text, &options).map_err(|log| refused(&log))?;
        cached.keep(&code);
        return Ok(Code::Ready(code));
    }
    let mut jobs = JOBS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (architecture, text.to_owned());
    if let Some(job) = jobs.get(&key).cloned() {
        return match job.0.get() {
            None => Ok(Code::Compiling(job)),
            Some(Err(log)) => Err(refused(log)),
            Some(Ok(code)) => {
                jobs.remove(&key);
                Ok(Code::Ready(code.clone()))
            }
        };
    }
    let (job, text) = (Job::default(), key.1.clone());
    let result = job.clone();
    let compile = move || {
        let built = nvrtc.build(&text, &options);
        if let Ok(code) = &built {
            cached.keep(code);
        }
        // No other thread sets it.
        let _ = result.0.set(built);
    };
    background::spawn("lacuna-nvrtc", STACK, compile)
        .map_err(|error| failed(format!("no thread for the compiler: {error}")))?;
    jobs.insert(key, job.clone());
    Ok(Code::Compiling(job))
}
