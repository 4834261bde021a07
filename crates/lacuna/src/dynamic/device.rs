//! The devices of objects of other languages.
use crate::devices::{DeviceOptions, open_with};
use lacuna_engine::{Device, Error, Process, Result};

/// A device by name: as [`crate::open`]; `auto` and an empty name are the [`crate::default_device`]; a CPU may have a number of
/// threads in its name (`cpu:threads=4`).
///
/// A CPU is a device of the caller's own. All of them with as many threads share one pool: solves that run at the same time do not
/// wait for each other, and a function that one of them calls may use another. GPUs are shared by name.
///
/// # Errors
/// As [`crate::open`]; [`Error::Argument`] for a number of threads that is not one or more, and for threads of a GPU.
pub fn open(name: &str, threads: Option<usize>) -> Result<Device> {
    let (name, threads) = match name.rsplit_once("threads=") {
        Some((name, count)) if threads.is_none() => (name.trim_end_matches(':'), Some(number(count)?)),
        _ => (name, threads),
    };
    let device = match name {
        "" | "auto" => crate::default_device()?,
        #[cfg(feature = "cpu")]
        "cpu" | "cpu:0" => return own(threads),
        name => open_with(name, DeviceOptions::default().threads(threads))?,
    };
    match (device.info().backend, threads) {
        #[cfg(feature = "cpu")]
        ("cpu", threads) => own(threads),
        (backend, Some(_)) if backend != "cpu" => Err(Error::Argument {
            what: "threads".into(),
            message: format!("the device is on {backend}; threads are those of the CPU"),
        }),
        _ => Ok(device),
    }
}

fn number(text: &str) -> Result<usize> {
    let parsed = text.parse().ok().filter(|count| *count > 0);
    parsed.ok_or_else(|| Error::Argument {
        what: "threads".into(),
        message: format!("expected a whole number from 1, got `{text}`"),
    })
}

/// A CPU that nobody else has, on the pool of all those with as many threads.
#[cfg(feature = "cpu")]
fn own(threads: Option<usize>) -> Result<Device> {
    use lacuna_cpu::{Cpu, CpuOptions};
    use rayon::{ThreadPool, ThreadPoolBuilder};
    use std::collections::HashMap;
    use std::sync::{Arc, LazyLock, Mutex, PoisonError};

    /// By number of threads, and by the process that they belong to.
    type Pools = HashMap<(usize, Process), Arc<ThreadPool>>;
    static POOLS: LazyLock<Mutex<Pools>> = LazyLock::new(Mutex::default);

    let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
    let count = threads.unwrap_or_else(cores);
    if count < 2 {
        return Ok(Device::new(Cpu::with(CpuOptions::default().threads(count))?));
    }
    let most = rayon::max_num_threads();
    if count > most {
        let message = format!("expected 1 to {most}, got {count}");
        return Err(Error::Argument { what: "threads".into(), message });
    }
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (count, Process::this());
    let pool = match pools.get(&key) {
        Some(pool) => pool.clone(),
        None => {
            let named = |i: usize| format!("lacuna-{}", i + 1);
            let made = ThreadPoolBuilder::new().num_threads(count).thread_name(named).build();
            let made = Arc::new(made.map_err(|error| Error::Device {
                device: "cpu".into(),
                operation: format!("starting {count} threads"),
                message: error.to_string(),
            })?);
            pools.insert(key, made.clone());
            made
        }
    };
    Ok(Device::new(Cpu::on_pool(pool, CpuOptions::default())?))
}
