//! Tells build scripts of dependent crates where the kernels are, as `DEP_LACUNA_KERNELS_CUDA_FOLDER`.
fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    // An absolute path, so that it is told again where the crate has moved.
    println!("cargo:rerun-if-changed={folder}/build.rs");
    println!("cargo:folder={folder}");
}
