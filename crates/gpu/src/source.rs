//! The sources of generated kernels, and the definitions they begin with.
use crate::write::Shape;
use lacuna_engine::{NumberType, encode};
use lacuna_kernels_opencl::{GENERATED, STREAMING};

/// Words of a matrix in the table of names: format, lanes, arguments.
pub const MATRIX_WORDS: usize = 8;
/// Words of the control buffer of a generated kernel: start of a short history.
pub const AT_HISTORY: usize = 32;
/// The same: start of the cells.
pub const AT_CELLS: usize = 256;
/// Elements of a segment.
pub const SEGMENT: usize = 256;

/// Numbers that one lane of a warp takes of a chunk of up to 256 sums, 32 apart; a power of two.
pub(crate) fn pieces(sums: usize) -> usize {
    sums.min(SEGMENT).div_ceil(32).next_power_of_two()
}
/// Lanes that have any of them, rounded up to a power of two.
fn spread(sums: usize) -> usize {
    sums.min(SEGMENT).div_ceil(pieces(sums)).next_power_of_two()
}

/// Sums made at a time; local memory is sized for it.
pub fn batch(kind: NumberType) -> usize {
    if kind == NumberType::C64 { 2 } else { 4 }
}

/// The definitions that kernels of a number type begin with. `cpu`: a work-item takes a whole segment;
/// `nvidia`: NVIDIA's compiler; `prelude`: another compiler, for which the words of OpenCL C are defined;
/// `narrow`: some vectors are stored in the narrower type.
pub fn header(kind: NumberType, cpu: bool, nvidia: bool, prelude: bool, narrow: bool) -> String {
    let (real, bits) = if kind == kind.narrow() { ("float", 32) } else { ("double", 64) };
    let mut text = encode::c_header();
    for (name, value) in [
        ("REAL", real.to_owned()),
        ("REAL_BITS", i32::to_string(&bits)),
        ("COMPLEX", u32::from(kind.is_complex()).to_string()),
        ("SUFFIX", kind.name().to_owned()),
        ("CPU", u32::from(cpu).to_string()),
        ("NVIDIA", u32::from(nvidia).to_string()),
        ("PRELUDE", u32::from(prelude).to_string()),
        ("NARROW", u32::from(narrow).to_string()),
        ("BATCH", format!("{}u", batch(kind))),
        ("MATRIX_WORDS", format!("{MATRIX_WORDS}u")),
    ] {
        text += &format!("#define LACUNA_{name} {value}\n");
    }
    text
}

/// Concatenates sources, each with its name for the compiler's messages.
pub fn joined(mut text: String, sources: &[(&str, &str)]) -> String {
    for (name, source) in sources {
        text += &format!("#line 1 \"{name}\"\n{source}");
    }
    text
}

/// The text of the kernel generated for one program; `prelude` defines the words of OpenCL C for another
/// compiler.
pub(crate) fn text(
    kind: NumberType,
    nvidia: bool,
    prelude: Option<(&str, &str)>,
    shape: &Shape,
    written: &str,
) -> String {
    let mut text = header(kind, false, nvidia, prelude.is_some(), shape.narrow);
    let streaming = shape.streaming;
    let shape = [
        ("SIZE", shape.size),
        ("ONE", shape.one.into()),
        ("CHUNKS", shape.chunks),
        ("STREAMING", shape.streaming.into()),
        ("MAXIMA", shape.maxima.into()),
        ("WAYS", shape.ways),
        ("MINE", shape.mine),
        ("PIECES", shape.words / shape.ways),
        ("SPREAD", spread(shape.segments)),
        ("UPPER_PIECES", pieces(shape.chunks)),
        ("UPPER_SPREAD", spread(shape.chunks)),
        ("SHARE", shape.share),
        ("KEEP", shape.keep),
        ("DEPTH", shape.depth),
        ("AT_HISTORY", AT_HISTORY),
        ("AT_CELLS", AT_CELLS),
    ];
    for (name, value) in shape {
        text += &format!("#define LACUNA_{name} {value}\n");
    }
    match prelude {
        Some(prelude) => text = joined(text, &[prelude]),
        None => text += "#define LACUNA_RARE __attribute__((noinline))\n",
    }
    let text = joined(text, &GENERATED);
    let text = if streaming { joined(text, &STREAMING) } else { text };
    joined(text, &[("a program", written)])
}
