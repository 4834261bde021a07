//! Gives the shared library its soname, which cargo does not, and leaves out the names of functions that it does not export: a seventh of
//! its size.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liblacuna.so.0");
        println!("cargo:rustc-cdylib-link-arg=-Wl,--strip-all");
    }
}
