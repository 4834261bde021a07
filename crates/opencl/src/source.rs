//! The kernel sources, and programs built of them: once for each device and number type, kept on disk.
use crate::device::Device;
use crate::driver::{BUILD_PROGRAM_FAILURE, Context, Program, failed};
use lacuna_core::{Error, Kind, Result};
pub(crate) use lacuna_generate::{
    AT_CELLS as NEAR_CELLS_AT, AT_HISTORY as NEAR_HISTORY_AT, MATRIX_WORDS, SEGMENT, batch,
};
use lacuna_generate::{Cached, SHARED_SOURCES, header, joined};
use std::sync::{Mutex, PoisonError};

/// The kernel files in the order they build on each other.
pub const SOURCES: [(&str, &str); 7] = [
    SHARED_SOURCES[0],
    SHARED_SOURCES[1],
    SHARED_SOURCES[2],
    ("sweep.cl", include_str!("../../../kernels-opencl/sweep.cl")),
    ("spmv_csr.cl", include_str!("../../../kernels-opencl/spmv_csr.cl")),
    ("basis.cl", include_str!("../../../kernels-opencl/basis.cl")),
    ("program.cl", include_str!("../../../kernels-opencl/program.cl")),
];

/// The whole text for a number type, `cpu` where a work-item takes a segment, `nvidia` for that vendor's compiler.
pub fn text(kind: Kind, cpu: bool, nvidia: bool) -> String {
    joined(header(kind, cpu, nvidia, false), &SOURCES)
}

/// A program for the device, from disk where it was built before.
pub(crate) fn program(context: &Context, device: &Device, kind: Kind, text: &str) -> Result<Program> {
    let mut options = String::from("-cl-std=CL1.2");
    if device.rounded_floats {
        options += " -cl-fp32-correctly-rounded-divide-sqrt";
    }
    // Not every driver builds programs on several threads at once.
    static BUILDING: Mutex<()> = Mutex::new(());
    let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let key = [text, &options, &device.platform, &device.name, &device.driver, &device.version];
    let cached = Cached::new("opencl", &key);
    if let Some(program) =
        cached.read().and_then(|binary| context.program_from_binary(device.id, &binary).ok())
        && program.build(device.id, &options).is_ok()
    {
        return Ok(program);
    }
    let operation = format!("building the {} kernels", kind.name());
    let program = context.program(text).map_err(|status| failed(&device.name, &operation, status))?;
    program.build(device.id, &options).map_err(|status| match status {
        BUILD_PROGRAM_FAILURE => Error::Device {
            device: device.name.clone(),
            operation,
            message: format!(
                "the driver's compiler refused them; please report this with its log:\n{}",
                program.log(device.id)
            ),
        },
        other => failed(&device.name, &operation, other),
    })?;
    if let Ok(binary) = program.binary() {
        cached.keep(&binary);
    }
    Ok(program)
}
