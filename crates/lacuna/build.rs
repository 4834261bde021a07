//! Sets `instances_are_shared` for a build whose generic functions other crates link to instead of compiling their own: rustc
//! shares them below optimisation level 2. They would be compiled in vain otherwise.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(instances_are_shared)");
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    if !matches!(level.as_str(), "2" | "3") {
        println!("cargo:rustc-cfg=instances_are_shared");
    }
}
