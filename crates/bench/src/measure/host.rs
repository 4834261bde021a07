//! Work on matrices before a solve: reading them, assembling them from triplets, converting them.
use lacuna::formats::{FORMATS, convert};
use lacuna::io::mm::{ReadOptions, Storage, Symmetry, WriteOptions, read_matrix, write_matrix};
use lacuna::{Csr, DeviceInfo, Error, Format, Result, Scalar, Triplets};
use lacuna_measure::{Measured, Samples, Subject, Target, Task, Typed, with_system};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::Builder;

/// The name shown in place of a backend if none is needed.
const HOST: &str = "host";
/// Reading a Matrix Market file that holds every entry.
pub(crate) const READ: &str = "read";
/// Assembling CSR from unordered triplets.
pub(crate) const ASSEMBLE: &str = "assemble";
/// Converting CSR to the format whose name follows.
pub(crate) const TO: &str = "to-";

/// The threads of this machine as a target without a backend.
pub(crate) struct Host {
    device: DeviceInfo,
    copy: f64,
    cases: Vec<Chore>,
}

impl Host {
    /// `copy` is the copy bandwidth of the same threads.
    pub(crate) fn new(name: &str, copy: f64) -> Self {
        let device = DeviceInfo::new(HOST, name, rayon::current_num_threads());
        Host { device, copy, cases: Vec::new() }
    }
}

/// Repeated work to be timed.
struct Chore {
    work: Box<dyn FnMut() -> Result<Duration>>,
    bytes: u64,
    once: Samples,
}

impl Chore {
    fn new<T: Scalar>(system: &Typed<T>, name: &str) -> Result<Self> {
        let format = FORMATS.iter().find(|f| name.strip_prefix(TO) == Some(f.name));
        match (name, format) {
            (READ, _) => Self::read(&system.a),
            (ASSEMBLE, _) => Ok(Self::assemble(&system.a)),
            (_, Some(format)) => Self::convert(&system.a, format.name),
            _ => {
                let message = format!("expected {READ}, {ASSEMBLE} or {TO}FORMAT, got `{name}`");
                Err(Error::Argument { what: "work".into(), message })
            }
        }
    }

    /// A chore that times `work`, whose result is dropped after the time has been taken.
    fn of<R>(bytes: u64, mut work: impl FnMut() -> Result<R> + 'static) -> Self {
        let timed = move || {
            let start = Instant::now();
            let made = black_box(work()?);
            let time = start.elapsed();
            drop(made);
            Ok(time)
        };
        Chore { work: Box::new(timed), bytes, once: Samples::default() }
    }

    fn read<T: Scalar>(a: &Csr<T>) -> Result<Self> {
        let temporary =
            |source| Error::Io { operation: "making".into(), path: "a temporary file".into(), source };
        let file = Builder::new().suffix(".mtx").tempfile().map_err(temporary)?.into_temp_path();
        let options = WriteOptions { storage: Storage::As(Symmetry::General), ..WriteOptions::default() };
        write_matrix(&file, a, &options)?;
        let bytes = std::fs::metadata(&file).map_or(0, |data| data.len());
        Ok(Self::of(bytes, move || read_matrix::<T>(&file, &ReadOptions::default())))
    }

    /// The triplets are written once as they arrive and once in order, each with its row.
    fn assemble<T: Scalar>(a: &Csr<T>) -> Self {
        let mut entries: Vec<_> = a.entries().collect();
        let mut state = 1u64;
        for k in (1..entries.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            entries.swap(k, ((u128::from(state) * (k as u128 + 1)) >> 64) as usize);
        }
        let mut triplets = Triplets::with_capacity(a.rows(), a.cols(), a.nnz());
        triplets.extend(entries);
        let bytes = a.nnz() * (8 + size_of::<T>()) + Format::<T>::bytes(a);
        Self::of(bytes as u64, move || triplets.to_csr())
    }

    fn convert<T: Scalar>(a: &Arc<Csr<T>>, format: &'static str) -> Result<Self> {
        let a = a.clone();
        let bytes = Format::<T>::bytes(&*a) + convert(&a, format)?.bytes();
        Ok(Self::of(bytes as u64, move || convert(&a, format)))
    }
}

impl Target for Host {
    fn device(&self) -> &DeviceInfo {
        &self.device
    }
    fn copy(&self) -> f64 {
        self.copy
    }
    fn choose_format(&self, _: &Subject) -> Option<&'static str> {
        Some("csr")
    }
    fn prepare(&mut self, subject: &Subject, task: &Task) -> Result<usize> {
        let Subject::System(system) = subject else {
            return Err(task.needs_matrix());
        };
        self.cases.push(with_system!(&**system, typed => Chore::new(typed, &task.method))?);
        Ok(self.cases.len() - 1)
    }
    fn round(&mut self, case: usize) -> Result<()> {
        let Chore { work, once, .. } = &mut self.cases[case];
        once.round(work)
    }
    fn measured(&self, case: usize) -> Option<Measured> {
        let Chore { bytes, once, .. } = &self.cases[case];
        Some(Measured::of_one(*bytes, once.timing()?, 0.0, None))
    }
    fn clear(&mut self) {
        self.cases.clear();
    }
}
