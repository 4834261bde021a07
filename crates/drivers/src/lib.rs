//! The functions of CUDA's and OpenCL's drivers, without a library to link with or to start with. Each is a jump into the driver's
//! library, which is loaded when one of them is first called; a program with both backends starts on a machine that has neither.
//! Without a library, the functions answer with the code for "no device".
//!
//! On Linux on x86-64 and aarch64. Elsewhere nothing is defined here, and programs are linked with the libraries themselves.
//!
//! The functions are those of `src/functions/`. A crate that wants a library has to ask for [`cuda::missing`] or
//! [`opencl::missing`] somewhere, so that linkers take the functions from here.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod load;

/// A module with a library: its files, the code for "no device", the one for a function that a library lacks.
#[cfg(any(feature = "cuda", feature = "opencl"))]
macro_rules! library {
    ($name:ident, $about:literal, $files:expr, $none:literal, $unknown:literal) => {
        #[doc = $about]
        pub mod $name {
            /// What is missing if a function was called and there is no library: the names under which it was looked for.
            #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
            pub fn missing() -> Option<String> {
                inside::missing().then(|| {
                    let files: Vec<_> = $files.iter().map(|file| file.to_string_lossy()).collect();
                    files.join(" nor ")
                })
            }
            /// What is missing: nothing that is known here.
            #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
            pub fn missing() -> Option<String> {
                None
            }

            #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
            mod inside {
                use crate::load::{Library, MISSING, fill};
                use std::ffi::{CStr, c_void};
                use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

                const LIBRARY: Library = Library {
                    files: $files,
                    names: include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".names")),
                    none: { extern "C" fn none() -> i32 { $none } none },
                    unknown: { extern "C" fn unknown() -> i32 { $unknown } unknown },
                };
                const _: &[&CStr] = LIBRARY.names;

                /// Fills the table of addresses.
                ///
                /// # Safety
                /// `table` must have an entry for each name.
                unsafe extern "C" fn load(table: *const AtomicPtr<c_void>, state: &AtomicU64) {
                    // SAFETY: the assembly passes its own table, of as many entries.
                    fill(&LIBRARY, unsafe { std::slice::from_raw_parts(table, LIBRARY.names.len()) }, state);
                }

                #[cfg(target_arch = "x86_64")]
                std::arch::global_asm!(
                    include_str!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".s")),
                    load = sym load,
                    options(att_syntax)
                );
                #[cfg(target_arch = "aarch64")]
                std::arch::global_asm!(
                    include_str!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".s")),
                    load = sym load
                );

                unsafe extern "C" {
                    #[link_name = concat!("lacuna_", stringify!($name), "_state")]
                    static STATE: AtomicU64;
                }

                pub(super) fn missing() -> bool {
                    // SAFETY: a number in the assembly above, changed by `load` alone.
                    unsafe { STATE.load(Ordering::Acquire) == MISSING }
                }
            }
        }
    };
}

#[cfg(feature = "cuda")]
library!(cuda, "CUDA's driver.", &[c"libcuda.so.1", c"libcuda.so"], 100, 500);
#[cfg(feature = "opencl")]
library!(opencl, "The loader of OpenCL's drivers.", &[c"libOpenCL.so.1", c"libOpenCL.so"], -1001, -59);
