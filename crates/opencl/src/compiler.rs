//! The kernel sources, and the programs built from them: once for each device and number type, cached on
//! disk.
use crate::device::Device;
use crate::driver::{BUILD_PROGRAM_FAILURE, Context, Driver, Program, failed};
use lacuna_engine::encode::Encoded;
use lacuna_engine::{Cached, Error, NumberType, Result};
pub(crate) use lacuna_gpu::{
    AT_CELLS as JIT_CELLS_AT, AT_HISTORY as JIT_HISTORY_AT, MATRIX_WORDS, SEGMENT, batch,
};
use lacuna_gpu::{header, joined};
use lacuna_kernels_opencl::OPERATIONS;
use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Work-items of a team, which processes one segment.
pub(crate) const TEAM: usize = 32;
/// Number of partial sums of an operation from which `fold` sums them before the last work-group does.
pub(crate) const FOLD: usize = 2048;
/// Words of local memory for the row offsets of a segment.
const STARTS: usize = SEGMENT + 4;

/// Numbers that the sums of `count` segments take: `room_of` of `sum.cl`.
pub(crate) fn room_of(count: usize) -> usize {
    count.next_multiple_of(SEGMENT)
}

/// Bytes of local memory that a work-group of `group` work-items needs for sums; one of a single team also
/// stages entries of compressed rows there.
pub(crate) fn work(kind: NumberType, group: usize) -> usize {
    let sums = (batch(kind) * group + SEGMENT) * kind.size();
    if group == TEAM { sums.max((TEAM + SEGMENT) * kind.size() + (SEGMENT + STARTS) * 4) } else { sums }
}

/// The whole text for a number type. `cpu`: a work-item takes a whole segment; `nvidia`: NVIDIA's compiler.
pub fn text(kind: NumberType, cpu: bool, nvidia: bool) -> String {
    text_for(kind, cpu, nvidia, !NARROW)
}

/// The same, with the kernel `program` limited to matrices of these formats, one bit for each code, and
/// [`VARIANT`].
fn text_for(kind: NumberType, cpu: bool, nvidia: bool, formats: u32) -> String {
    let group = if cpu { 1 } else { TEAM };
    let mut text = header(kind, cpu, nvidia, false, formats & NARROW != 0);
    for (name, value) in [
        ("FOLD", format!("{FOLD}u")),
        ("FORMATS", format!("{}u", formats & !VARIANT)),
        ("MAXIMA", u32::from(formats & MAXIMA != 0).to_string()),
        ("RARE", if nvidia { "__attribute__((noinline))" } else { "inline" }.to_owned()),
        ("GROUP", format!("__attribute__((reqd_work_group_size({group}, 1, 1)))")),
    ] {
        text += &format!("#define LACUNA_{name} {value}\n");
    }
    joined(text, &OPERATIONS)
}

/// An entry point of the library, with the formats it supports if it is `program`, and [`VARIANT`].
pub(crate) type Entry = (&'static str, u32);

/// Bits besides those of formats: for programs with narrow vectors, and for those with maxima.
const NARROW: u32 = 1 << 31;
const MAXIMA: u32 = 1 << 30;
const VARIANT: u32 = NARROW | MAXIMA;

/// The bits that an entry point for a program has besides those of formats.
pub(crate) fn variant(encoded: &Encoded) -> u32 {
    let bit = |has: bool, bit: u32| if has { bit } else { 0 };
    bit(encoded.has_narrow(), NARROW) | bit(encoded.has_maxima(), MAXIMA)
}

/// Whether a built entry point can serve for another.
pub(crate) fn serves(built: &Entry, wanted: &Entry) -> bool {
    built.0 == wanted.0 && built.1 & wanted.1 == wanted.1 && (built.1 ^ wanted.1) & VARIANT == 0
}

/// The text with only these entry points: compiling all of them takes seconds.
pub(crate) fn text_of(kind: NumberType, cpu: bool, nvidia: bool, entries: &[Entry]) -> String {
    let formats = entries.iter().fold(0, |all, (_, formats)| all | formats);
    let wanted = |line: &str| entries.iter().any(|(stem, _)| line.contains(&format!("KERNEL({stem})")));
    let mut inside = false;
    let mut kept = String::new();
    for line in text_for(kind, cpu, nvidia, formats).lines() {
        inside |= line.starts_with("__kernel") && !wanted(line);
        if !inside {
            kept += line;
            kept.push('\n');
        }
        inside &= line != "}";
    }
    kept
}

/// A text for a device, with its build options.
#[derive(Clone)]
pub(crate) struct Source {
    context: Arc<Context>,
    device: Device,
    kind: NumberType,
    text: String,
    options: &'static str,
    cached: Cached,
}

impl Source {
    pub(crate) fn new(driver: &Driver, kind: NumberType, text: String) -> Self {
        let (context, device) = (&driver.context, &driver.device);
        let options = match device.rounded_floats {
            true => "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt",
            false => "-cl-std=CL1.2",
        };
        let key = [&text, options, &device.platform, &device.name, &device.driver, &device.version];
        let cached = Cached::new("opencl", &key);
        Source { context: context.clone(), device: device.clone(), kind, text, options, cached }
    }

    /// The program from a binary cached on disk.
    pub(crate) fn kept(&self) -> Option<Program> {
        let binary = self.cached.read()?;
        let _building = self.building();
        let program = self.context.program_from_binary(self.device.id, &binary).ok()?;
        program.build(self.device.id, self.options).ok().map(|()| program)
    }

    /// Compiles the text with the driver, and caches the binary on disk.
    pub(crate) fn compile(&self) -> Result<Program> {
        let Source { context, device, options, .. } = self;
        let operation = format!("building the {} kernels", self.kind.name());
        let building = self.building();
        let program =
            context.program(&self.text).map_err(|status| failed(&device.name, &operation, status))?;
        program.build(device.id, options).map_err(|status| match status {
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
        drop(building);
        if let Ok(binary) = program.binary() {
            // One thread at a time: all threads of a process write to the same temporary file before it is
            // renamed.
            let _keeping = locked(&KEEPING);
            self.cached.keep(&binary);
        }
        Ok(program)
    }

    /// Only NVIDIA's driver is known to build programs safely on several threads at once.
    fn building(&self) -> Option<MutexGuard<'static, ()>> {
        (!self.device.is_nvidia()).then(|| locked(&BUILDING))
    }
}

static BUILDING: Mutex<()> = Mutex::new(());
static LAUNCHING: Mutex<()> = Mutex::new(());
thread_local! {
    /// Whether this thread holds the lock already: a call inside a solve may solve too.
    static LAUNCHES: Cell<bool> = const { Cell::new(false) };
}

/// Held while kernels are launched for the first time. PoCL compiles them then, and PoCL 3.1 miscounts its
/// loaded kernels if two threads do so at once.
pub(crate) struct FirstLaunches {
    _guard: MutexGuard<'static, ()>,
}

impl FirstLaunches {
    /// `None` on NVIDIA's driver, which compiles at build time, and if the thread already holds the lock.
    pub(crate) fn hold(device: &Device) -> Option<Self> {
        if device.is_nvidia() || LAUNCHES.get() {
            return None;
        }
        let guard = locked(&LAUNCHING);
        LAUNCHES.set(true);
        Some(FirstLaunches { _guard: guard })
    }
}

impl Drop for FirstLaunches {
    fn drop(&mut self) {
        LAUNCHES.set(false);
    }
}

static KEEPING: Mutex<()> = Mutex::new(());

fn locked(mutex: &'static Mutex<()>) -> MutexGuard<'static, ()> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_the_entry_points_that_are_asked_for_alone() {
        let text = text_of(NumberType::F64, false, false, &[("spmv_csr", 0), ("advance", 0)]);
        let entries: Vec<_> = text.lines().filter(|line| line.starts_with("__kernel")).collect();
        assert_eq!(entries.len(), 2, "{entries:?}");
        assert!(
            entries[0].contains("KERNEL(advance)") && entries[1].contains("KERNEL(spmv_csr)"),
            "{entries:?}"
        );
    }

    use crate::{OpenClOptions, device};

    #[test]
    fn a_kernel_that_does_not_build_is_reported_with_the_log() {
        let Ok(device) = device::find(&OpenClOptions::default()) else {
            eprintln!("SKIPPED, no OpenCL device");
            return;
        };
        let driver = Driver::new(device).unwrap();
        let text = "__kernel void broken(__global float *x) { x[0] = no_such_name; }";
        let error = Source::new(&driver, NumberType::F32, text.into()).compile().unwrap_err().to_string();
        assert!(error.contains("building the f32 kernels") && error.contains(&driver.device.name), "{error}");
        assert!(error.contains("no_such_name"), "the driver's log is missing: {error}");
    }
}
