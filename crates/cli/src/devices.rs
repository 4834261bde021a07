//! `lacuna devices`
use crate::args::DevicesArgs;
use crate::failure::Result;
use crate::measure::triad;
use crate::out;
use crate::report::{bytes, units};
use lacuna::{BACKENDS, Backend, BackendOptions, DeviceInfo, Error, OnBackend};
use std::fs;

pub(crate) fn run(args: &DevicesArgs) -> Result<()> {
    let preferred = lacuna::preferred();
    for backend in BACKENDS.iter().filter(|b| b.built_in) {
        let default = if preferred == Some(backend.name) { " (default)" } else { "" };
        out::print(&format!("{}{default}\n", backend.name))?;
        let devices = match lacuna::devices(backend.name) {
            Ok(devices) => devices,
            Err(error) if error.is_device_failure() => {
                out::print(&format!("  not usable: {error}\n"))?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if devices.is_empty() {
            out::print("  no device: no driver of the system offers one\n")?;
        }
        for (index, device) in devices.iter().enumerate() {
            let options =
                BackendOptions { threads: args.threads.map(usize::from), device: Some(index.to_string()) };
            let described = lacuna::on(Some(backend.name), options, Describe { measure: !args.no_measure });
            match described.and_then(|text| text) {
                Ok(text) => out::print(&format!(" {index}:\n{text}"))?,
                Err(error) => {
                    out::print(&format!(" {index}:\n  {}\n  not usable: {error}\n", device.name))?;
                }
            }
        }
    }
    Ok(())
}

struct Describe {
    measure: bool,
}

impl OnBackend for Describe {
    type Output = lacuna::Result<String>;

    fn run<B: Backend>(self, mut dev: B) -> lacuna::Result<String> {
        let mut device = dev.device();
        if device.backend == "cpu" {
            describe_host(&mut device);
        }
        let mut lines = vec![("device", device.name.clone()), ("units", units(&device))];
        lines.extend(device.memory.map(|size| ("memory", bytes(size))));
        lines.append(&mut device.details);
        if self.measure {
            // A device without double precision is measured in single precision.
            let (number, speed) = match triad::<f64, B>(&mut dev, device.memory) {
                Err(Error::Unsupported { .. }) => ("f32", triad::<f32, B>(&mut dev, device.memory)?),
                speed => ("f64", speed?),
            };
            lines.push(("triad", format!("{:.1} GB/s measured (z = x + c y, {number})", speed / 1e9)));
        }
        Ok(lines.iter().map(|(what, value)| format!("  {what:12}  {value}\n")).collect())
    }
}

/// Adds what the operating system reports about the processor and the backend does not.
fn describe_host(device: &mut DeviceInfo) {
    let first = |path: &str, key: &str| {
        let text = fs::read_to_string(path).ok()?;
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    if let Some(name) = first("/proc/cpuinfo", "model name").filter(|name| !name.is_empty()) {
        device.name = name;
    }
    let kilobytes = |text: String| text.trim_end_matches("kB").trim().parse::<u64>().ok();
    device.memory =
        device.memory.or(first("/proc/meminfo", "MemTotal").and_then(kilobytes).map(|k| k * 1024));
    if !device.details.iter().any(|(what, _)| what.contains("cache")) {
        let caches = caches();
        if !caches.is_empty() {
            device.details.push(("caches", caches.join(", ")));
        }
    }
}

/// The data caches of the first core, the smallest first.
fn caches() -> Vec<String> {
    let about = |index: usize| {
        let read = |what: &str| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}");
            fs::read_to_string(path).map(|text| text.trim().to_string()).ok()
        };
        let (level, kind, size) = (read("level")?, read("type")?, read("size")?);
        (kind != "Instruction")
            .then(|| format!("L{level} {}", size.replace('K', " KiB").replace('M', " MiB")))
    };
    (0..8).filter_map(about).collect()
}
