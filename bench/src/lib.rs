//! What the measuring programs share: arguments, medians, reports, the triad, loops written by hand, matrix files.
pub mod args;
pub mod by_hand;
pub mod matrix_file;
pub mod report;
pub mod stats;
pub mod triad;

use lacuna_cpu::{Cpu, CpuOptions};

/// Runs `$body` with `$T` the number type named `f64` or `f32`.
#[macro_export]
macro_rules! with_type {
    ($name:expr, $T:ident => $body:expr) => {
        match $name {
            "f64" => {
                type $T = f64;
                $body
            }
            "f32" => {
                type $T = f32;
                $body
            }
            other => Err(format!("--type: expected f64 or f32, got `{other}`").into()),
        }
    };
}

/// What a program of this package returns.
pub type Done = Result<(), Box<dyn std::error::Error>>;

/// The CPU with so many threads, all of which work whatever the size; or `auto`, what one gets without asking.
///
/// # Errors
/// Where that is not a number, or threads cannot be had.
pub fn device(threads: &str) -> Result<Cpu, Box<dyn std::error::Error>> {
    let options = match threads {
        "auto" => CpuOptions::default(),
        count => CpuOptions { threads: Some(count.parse()?), parallel_from: Some(0), ..Default::default() },
    };
    Ok(Cpu::with(options)?)
}
