//! Passes the name of the compiler to the crate, which stores it with results.
fn main() {
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let version = std::process::Command::new(rustc).arg("--version").output();
    let version = version.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string());
    println!("cargo::rustc-env=LACUNA_RUSTC={}", version.unwrap_or_default());
    println!("cargo::rerun-if-changed=build.rs");
}
