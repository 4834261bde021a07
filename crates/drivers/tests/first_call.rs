//! The first call of a function loads its library, or finds that there is none.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

unsafe extern "C" {
    fn cuInit(flags: u32) -> c_int;
    fn cuGetErrorName(error: c_int, name: *mut *const c_char) -> c_int;
    fn clGetPlatformIDs(entries: u32, platforms: *mut *mut c_void, count: *mut u32) -> c_int;
    // Eight arguments, of which the last are on the stack, and floating-point registers in use beside them.
    fn clEnqueueMapBuffer(
        queue: *mut c_void,
        buffer: *mut c_void,
        blocking: u32,
        flags: u64,
        offset: usize,
        size: usize,
        waiting: u32,
        list: *const c_void,
        event: *mut c_void,
        error: *mut c_int,
    ) -> *mut c_void;
}

#[test]
fn cuda_is_there_or_says_that_it_is_not() {
    assert_eq!(lacuna_drivers::cuda::missing(), None, "nobody asked");
    // SAFETY: no pointers.
    let code = unsafe { cuInit(0) };
    match lacuna_drivers::cuda::missing() {
        Some(files) => {
            assert_eq!(code, 100);
            assert!(files.starts_with("libcuda.so.1"), "{files}");
            // SAFETY: nothing is written without a driver.
            assert_eq!(unsafe { cuGetErrorName(100, ptr::null_mut()) }, 100);
        }
        None => eprintln!("cuInit of the driver: {code}"),
    }
}

#[test]
fn opencl_is_there_or_says_that_it_is_not() {
    assert_eq!(lacuna_drivers::opencl::missing(), None, "nobody asked");
    let mut error = 7;
    // SAFETY: with a loader, which refuses a null queue, as without one.
    let mapped = unsafe {
        let null = ptr::null_mut();
        clEnqueueMapBuffer(null, null, 1, 1, 0, 8, 0, ptr::null(), null, &mut error)
    };
    let mut count = 0;
    // SAFETY: asks for the number alone.
    let code = unsafe { clGetPlatformIDs(0, ptr::null_mut(), &mut count) };
    match lacuna_drivers::opencl::missing() {
        Some(files) => assert!(code == -1001 && files.starts_with("libOpenCL.so.1"), "{code}, {files}"),
        None => {
            // CL_INVALID_COMMAND_QUEUE: all arguments arrived, the last on the stack.
            assert!(mapped.is_null() && error == -36, "{mapped:?}, {error}");
            assert!(code == 0 || code == -1001, "{code}");
        }
    }
}
