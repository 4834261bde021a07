//! `lacuna compare`
mod rounds;
mod table;

use crate::args::{CompareArgs, NumberType};
use crate::failure::{INTERRUPTED, Result, no_device};
use crate::input::{Source, set_threads};
use crate::measure::{GMRES_ONCE, SPMV, System, Target, open};
use crate::progress::{Counting, cancel_on_interrupt, interrupted};
use crate::record::{Device, Entry, Kept};
use crate::{out, page, record};
use lacuna::formats::FORMATS;
use lacuna::solvers::METHODS;
use lacuna::{BACKENDS, BackendOptions, Error, Kind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What is compared where no matrix is named: sizes on which latency decides, and sizes on which memory does.
const LADDER: [&str; 6] = [
    "gen:poisson-p1:15",
    "gen:poisson-p1:31",
    "gen:poisson-p1:63",
    "gen:poisson-p1:127",
    "gen:poisson-p1:255",
    "gen:poisson-p1:511",
];

pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode> {
    let outputs = [("--json", &args.json), ("--html", &args.html)];
    outputs.into_iter().try_for_each(|(option, path)| match path {
        Some(path) => out::check_place(option, path),
        None => Ok(()),
    })?;
    check_names(args)?;
    set_threads(args.threads)?;
    let ladder = || LADDER.map(String::from).to_vec();
    let matrices = if args.matrices.is_empty() { ladder() } else { args.matrices.clone() };
    let sources: Vec<Source> = matrices.iter().map(|name| Source::open(name)).collect::<Result<_>>()?;
    let systems = systems(&sources, &args.types)?;
    let peers = args.peers.as_deref().map(record::read).transpose()?.unwrap_or_default();
    let mut kept = Kept::to(args.json.as_deref())?;
    let mut targets = targets(args, &mut kept)?;
    let told = |text: String| if args.quiet { Ok(()) } else { out::print(&text) };
    told(table::devices(&kept.lines))?;

    cancel_on_interrupt();
    let limit = args.time_limit.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let enough = || interrupted() || limit.is_some_and(|limit| Instant::now() >= limit);
    let progress = Counting::new(args.quiet, systems.len());
    for (source, kind) in systems {
        if enough() || targets.is_empty() {
            break;
        }
        progress.begin(source.name(), kind.name());
        let system = System::read(source, kind, args.quiet)?;
        let from = kept.lines.len();
        rounds::measure(args, source.name(), &system, &mut targets, &mut kept, &progress, &enough)?;
        progress.clear();
        told(table::system(&kept.lines[from..]))?;
    }
    drop(progress);
    if let Some(path) = &args.html {
        let lines: Vec<_> = kept.lines.iter().chain(&peers).cloned().collect();
        page::write(path, &lines)?;
    }
    if interrupted() {
        out::note("interrupted: what had been measured is kept");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if limit.is_some_and(|limit| Instant::now() >= limit) {
        out::note("--time-limit: the time was up, what had been measured is kept");
    }
    if targets.is_empty() { no_device() } else { Ok(ExitCode::SUCCESS) }
}

/// Refuses names that nothing goes by, before any work is done.
fn check_names(args: &CompareArgs) -> Result<()> {
    let methods = METHODS.iter().map(|m| m.name).chain([GMRES_ONCE, SPMV]);
    let formats = FORMATS.iter().map(|f| f.name).chain(["auto", "all"]);
    known("method", &args.methods, methods.collect())?;
    known("format", &args.formats, formats.collect())
}

fn known(what: &str, asked: &[String], names: Vec<&str>) -> Result<()> {
    match asked.iter().find(|name| !names.contains(&name.as_str())) {
        Some(name) => {
            let message = format!("expected some of {}, got `{name}`", names.join(", "));
            Err(Error::Argument { what: what.into(), message }.into())
        }
        None => Ok(()),
    }
}

/// Each matrix in each of the number types asked for, or in the one that suits it.
fn systems<'a>(sources: &'a [Source], types: &[NumberType]) -> Result<Vec<(&'a Source, Kind)>> {
    let mut systems = Vec::new();
    for source in sources {
        if types.is_empty() {
            systems.push((source, source.number_type(None, false)?));
        }
        for number in types {
            systems.push((source, source.number_type(Some(*number), false)?));
        }
    }
    Ok(systems)
}

/// The backends asked for that are there. Those that are not leave a line that says why.
fn targets(args: &CompareArgs, kept: &mut Kept) -> Result<Vec<Box<dyn Target>>> {
    let all = || BACKENDS.iter().map(|b| b.name.to_string()).collect();
    let names: Vec<String> = if args.backends.is_empty() { all() } else { args.backends.clone() };
    let mut targets = Vec::new();
    for name in names {
        let (backend, device) = match name.split_once(':') {
            Some((backend, device)) => (backend, Some(device.to_string())),
            None => (name.as_str(), None),
        };
        let options = BackendOptions { threads: args.threads.map(usize::from), device };
        let device = match open(backend, options) {
            Ok(target) => {
                let device = here(&*target);
                targets.push(target);
                device
            }
            Err(error @ Error::Argument { .. }) => return Err(error.into()),
            Err(error) => {
                let why = Some(error.to_string());
                Device { backend: backend.into(), device: None, details: Vec::new(), copy: None, why }
            }
        };
        kept.push(Entry::Device(device))?;
    }
    Ok(targets)
}

fn here(target: &dyn Target) -> Device {
    let device = target.device();
    let mut details = vec![("units".to_string(), device.units.to_string())];
    details.extend(device.details.iter().map(|(what, value)| (what.to_string(), value.clone())));
    Device {
        backend: device.backend.into(),
        device: Some(device.name.clone()),
        details,
        copy: Some(target.copy()),
        why: None,
    }
}
