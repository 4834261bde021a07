//! `lacuna devices`
use crate::args::DevicesArgs;
use lacuna::{DeviceInfo, DeviceOptions, Error};
use lacuna_measure::failure::Result;
use lacuna_measure::input::STANDARD;
use lacuna_measure::out;
use lacuna_measure::quantity::{bytes, units};
use lacuna_measure::triad;
use serde_json::{Value, json};
use std::fs;

pub(crate) fn run(args: &DevicesArgs) -> Result<()> {
    let json = args.report.json.as_deref();
    out::check_outputs(&[("--json", json)], &[])?;
    let say = |text: &str| match args.report.quiet {
        true => Ok(()),
        false => out::say(json == Some(STANDARD), text),
    };
    let preferred = lacuna::default_device().ok().map(|device| device.info().backend);
    let mut backends = Vec::new();
    for backend in lacuna::backends().into_iter().filter(|b| b.built_in) {
        let is_default = preferred == Some(backend.name);
        say(&format!("{}{}\n", backend.name, if is_default { " (default)" } else { "" }))?;
        let (devices, why) = match lacuna::devices(backend.name) {
            Ok(devices) => (devices, None),
            Err(error) if error.is_device_failure() => (Vec::new(), Some(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        match &why {
            Some(why) => say(&format!("  not usable: {why}\n"))?,
            None if devices.is_empty() => say("  no device: no driver of the system offers one\n")?,
            None => {}
        }
        let mut described = Vec::new();
        for (index, device) in devices.iter().enumerate() {
            let options =
                DeviceOptions::default().threads(args.threads.map(usize::from)).device(index.to_string());
            match Described::of(backend.name, options, !args.no_measure) {
                Ok(found) => {
                    say(&format!(" {index}:\n{}", found.text()))?;
                    described.push(found.json(index));
                }
                Err(error) => {
                    say(&format!(" {index}:\n  {}\n  not usable: {error}\n", device.name))?;
                    let why = error.to_string();
                    described.push(json!({ "index": index, "device": device.name, "why": why }));
                }
            }
        }
        backends.push(json!({
            "backend": backend.name,
            "default": is_default,
            "why": why,
            "devices": described,
        }));
    }
    let value = || json!({ "backends": backends, "version": env!("CARGO_PKG_VERSION") });
    out::report(true, json, String::new, value)
}

/// A device, and the bytes per second of a triad in a number type.
struct Described {
    device: DeviceInfo,
    triad: Option<(&'static str, f64)>,
}

impl Described {
    /// Opens a device, and measures it if wanted.
    fn of(backend: &str, options: DeviceOptions, measure: bool) -> lacuna::Result<Self> {
        let dev = lacuna::open_with(backend, options)?;
        let mut device = dev.info().clone();
        if device.backend == "cpu" {
            describe_host(&mut device);
        }
        let mut measured = None;
        if measure {
            // A device without double precision is measured in single precision.
            measured = Some(match triad::<f64>(&dev, device.memory) {
                Err(Error::Unsupported { .. }) => ("f32", triad::<f32>(&dev, device.memory)?),
                speed => ("f64", speed?),
            });
        }
        Ok(Described { device, triad: measured })
    }

    fn text(&self) -> String {
        let Described { device, triad } = self;
        let mut lines = vec![("device", device.name.clone()), ("units", units(device))];
        lines.extend(device.memory.map(|size| ("memory", bytes(size))));
        lines.extend(device.details.iter().cloned());
        lines.extend(triad.map(|(number, speed)| {
            ("triad", format!("{:.1} GB/s measured (z = x + c y, {number})", speed / 1e9))
        }));
        lines.iter().map(|(what, value)| format!("  {what:12}  {value}\n")).collect()
    }

    fn json(&self, index: usize) -> Value {
        let Described { device, triad } = self;
        let details = device.details.iter().map(|(what, value)| (what.to_string(), json!(value)));
        json!({
            "index": index,
            "device": device.name,
            "units": device.units,
            "memory": device.memory,
            "details": details.collect::<serde_json::Map<_, _>>(),
            "triad": triad.map(|(_, speed)| speed),
            "triad_type": triad.map(|(number, _)| number),
        })
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
