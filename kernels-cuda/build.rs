//! Tells build scripts of dependent crates where the kernels are, as `DEP_LACUNA_KERNELS_CUDA_FOLDER`.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:folder={}", std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
}
