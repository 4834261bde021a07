//! The kernel sources, and programs built of them: once for each device and number type, kept on disk.
use crate::device::Device;
use crate::driver::{BUILD_PROGRAM_FAILURE, Context, Program, failed};
use crate::generate::Shape;
use lacuna_core::{Error, Kind, Result, encode};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The kernel files in the order they build on each other.
pub const SOURCES: [(&str, &str); 11] = [
    ("scalar.cl", include_str!("../../../kernels-opencl/scalar.cl")),
    ("cells.cl", include_str!("../../../kernels-opencl/cells.cl")),
    ("shape.cl", include_str!("../../../kernels-opencl/shape.cl")),
    ("sum.cl", include_str!("../../../kernels-opencl/sum.cl")),
    ("sweep.cl", include_str!("../../../kernels-opencl/sweep.cl")),
    ("spmv_csr.cl", include_str!("../../../kernels-opencl/spmv_csr.cl")),
    ("spmv_dia.cl", include_str!("../../../kernels-opencl/spmv_dia.cl")),
    ("spmv_sell.cl", include_str!("../../../kernels-opencl/spmv_sell.cl")),
    ("spmv_bcsr.cl", include_str!("../../../kernels-opencl/spmv_bcsr.cl")),
    ("basis.cl", include_str!("../../../kernels-opencl/basis.cl")),
    ("program.cl", include_str!("../../../kernels-opencl/program.cl")),
];

/// What a kernel written for one program is made of.
pub const NEAR_SOURCES: [(&str, &str); 5] = [
    SOURCES[0],
    SOURCES[1],
    SOURCES[2],
    ("near.cl", include_str!("../../../kernels-opencl/near.cl")),
    ("far.cl", include_str!("../../../kernels-opencl/far.cl")),
];

/// The number types: real type, bits of it, complex.
const TYPES: [(Kind, &str, u32, u32); 4] = [
    (Kind::F32, "float", 32, 0),
    (Kind::F64, "double", 64, 0),
    (Kind::C32, "float", 32, 1),
    (Kind::C64, "double", 64, 1),
];

/// Words of a matrix in the table of names: format, lanes, arguments.
pub(crate) const MATRIX_WORDS: usize = 8;
/// Words of the control buffer of a kernel written for a program: where a short history begins, and the cells.
pub(crate) const NEAR_HISTORY_AT: usize = 32;
pub(crate) const NEAR_CELLS_AT: usize = 256;
/// Elements of a segment.
pub(crate) const SEGMENT: usize = 256;
/// Work-items of a team, which takes a segment.
pub(crate) const TEAM: usize = 32;
/// Partial sums of an operation from which on `fold` sums them before the last group does.
pub(crate) const FOLD: usize = 4096;
/// Words of local memory for where the rows of a segment start.
const STARTS: usize = SEGMENT + 4;

/// Bytes of local memory that a group of so many work-items needs for sums; one of a single team reads entries of
/// compressed rows through it too.
pub(crate) fn work(kind: Kind, group: usize) -> usize {
    let (_, _, bits, complex) = TYPES[kind as usize];
    let number = (bits / 8 * (1 + complex)) as usize;
    let sums = (batch(kind) * group + SEGMENT) * number;
    if group == TEAM { sums.max((SEGMENT + TEAM) * number + (SEGMENT + STARTS) * 4) } else { sums }
}

/// Sums made at a time: what local memory is laid out for.
pub(crate) fn batch(kind: Kind) -> usize {
    if kind == Kind::C64 { 2 } else { 4 }
}

/// The definitions that the kernels of a number type begin with.
fn header(kind: Kind, cpu: bool, nvidia: bool) -> String {
    let (_, real, bits, complex) = TYPES[kind as usize];
    let group = if cpu { 1 } else { TEAM };
    let mut text = encode::c_header();
    for (name, value) in [
        ("REAL", real.to_owned()),
        ("REAL_BITS", bits.to_string()),
        ("COMPLEX", complex.to_string()),
        ("SUFFIX", kind.name().to_owned()),
        ("CPU", u32::from(cpu).to_string()),
        ("NVIDIA", u32::from(nvidia).to_string()),
        ("BATCH", format!("{}u", batch(kind))),
        ("FOLD", format!("{FOLD}u")),
        ("STARTS", format!("{STARTS}u")),
        ("MATRIX_WORDS", format!("{MATRIX_WORDS}u")),
        ("GROUP", format!("__attribute__((reqd_work_group_size({group}, 1, 1)))")),
    ] {
        text += &format!("#define LACUNA_{name} {value}\n");
    }
    text
}

fn joined(mut text: String, sources: &[(&str, &str)]) -> String {
    for (name, source) in sources {
        text += &format!("#line 1 \"{name}\"\n{source}");
    }
    text
}

/// The whole text for a number type, `cpu` where a work-item takes a segment, `nvidia` for that vendor's compiler.
pub fn text(kind: Kind, cpu: bool, nvidia: bool) -> String {
    joined(header(kind, cpu, nvidia), &SOURCES)
}

/// The text of a kernel written for one program.
pub(crate) fn near_text(kind: Kind, nvidia: bool, shape: &Shape, written: &str) -> String {
    let mut text = header(kind, false, nvidia);
    let places = [("AT_HISTORY", NEAR_HISTORY_AT), ("AT_CELLS", NEAR_CELLS_AT)];
    let far = shape.far;
    let shape = [
        ("SIZE", shape.size),
        ("ONE", shape.one.into()),
        ("CHUNKS", shape.chunks),
        ("FAR", shape.far.into()),
    ];
    let sources = if far { &NEAR_SOURCES[..] } else { &NEAR_SOURCES[..4] };
    text += "#define LACUNA_RARE __attribute__((noinline))\n";
    for (name, value) in shape.into_iter().chain(places) {
        text += &format!("#define LACUNA_{name} {value}\n");
    }
    joined(joined(text, sources), &[("a program", written)])
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
    let path = cache_path(&key);
    let cached = path.as_ref().and_then(|path| std::fs::read(path).ok());
    if let Some(program) = cached.and_then(|binary| context.program_from_binary(device.id, &binary).ok())
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
    if let (Some(path), Ok(binary)) = (path, program.binary()) {
        keep(&path, &binary);
    }
    Ok(program)
}

/// Where the binary for a key is kept: `$LACUNA_CACHE`, or `lacuna` in the user's cache folder. `LACUNA_CACHE=off` keeps
/// none.
fn cache_path(key: &[&str]) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let folder = match set("LACUNA_CACHE") {
        Some(off) if off.as_os_str() == "off" => return None,
        Some(folder) => folder,
        None => set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?.join("lacuna"),
    };
    let hash = |start: u64| {
        let bytes = key.iter().flat_map(|part| part.bytes().chain([0]));
        bytes.fold(start, |h, byte| (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)) // FNV-1a
    };
    let name = format!("opencl-{:016x}{:016x}.bin", hash(0xcbf2_9ce4_8422_2325), hash(0x9e37_79b9_7f4a_7c15));
    Some(folder.join(name))
}

/// Writes a file so that nobody ever sees half of it. A cache that cannot be written is no error.
fn keep(path: &std::path::Path, bytes: &[u8]) {
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let folder = path.parent().map(std::fs::create_dir_all);
    if matches!(folder, Some(Ok(())))
        && std::fs::write(&part, bytes).is_ok()
        && std::fs::rename(&part, path).is_err()
    {
        let _ = std::fs::remove_file(&part);
    }
}
