//! A measuring run: the open backends, the results so far, and the time limit.
mod rounds;
mod table;
mod work;

pub use rounds::unsuited;
pub use work::{Ending, MODEL_PROBLEMS, Unmade, Work, names};

use crate::args::MeasuringArgs;
use crate::failure::{INTERRUPTED, NOT_CONVERGED, Result, no_device};
use crate::input::set_threads;
use crate::interrupt::{cancel_on_interrupt, interrupted};
use crate::progress::Counting;
use crate::record::{self, Case, Device, Entry, Kept, Line, cases};
use crate::target::open;
use crate::{Prepare, Subject, System, Target};
use crate::{out, page};
use lacuna::{DeviceOptions, Error, backends};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A measuring run, with what it measures on and the results so far.
pub struct Session<'a> {
    args: &'a MeasuringArgs,
    /// What is measured: at first the requested backends.
    pub targets: Vec<Box<dyn Target>>,
    kept: Kept,
    progress: Counting,
    /// The largest exit code among the combinations that could not be measured.
    refused: Option<u8>,
    peers: Vec<Line>,
    limit: Option<Instant>,
    /// What was said on standard error, so that it is said once.
    said: Vec<String>,
    /// Whether a table is printed for each system.
    tables: bool,
}

impl<'a> Session<'a> {
    /// Measures on the requested backends, then keeps and shows the results, including those obtained before
    /// an error.
    pub fn run(
        args: &'a MeasuringArgs,
        prepare: Prepare,
        measure: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<(ExitCode, Vec<Line>)> {
        let mut session = Session::open(args, prepare)?;
        let measured = measure(&mut session);
        let finished = session.finish()?;
        measured.map(|()| finished)
    }

    /// Opens the backends. A backend that is not available leaves a line with the reason.
    fn open(args: &'a MeasuringArgs, prepare: Prepare) -> Result<Self> {
        set_threads(args.threads)?;
        let peers = args.peers.as_deref().map(record::read).transpose()?.unwrap_or_default();
        let mut kept = Kept::to(args.json.as_deref())?;
        let targets = targets(args, prepare, &mut kept)?;
        if !args.quiet {
            out::say(args.aside(), &table::devices(&kept.lines))?;
        }
        cancel_on_interrupt();
        let limit = args.time_limit.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
        let progress = Counting::new(args.quiet);
        Ok(Session {
            args,
            targets,
            kept,
            progress,
            refused: None,
            peers,
            limit,
            said: Vec::new(),
            tables: true,
        })
    }

    /// Whether no further measurement should start.
    fn enough(&self) -> bool {
        interrupted() || self.limit.is_some_and(|limit| Instant::now() >= limit)
    }

    /// Measures all of the work without printing its tables, and returns the results.
    ///
    /// # Errors
    /// As [`Session::measure`].
    pub fn gather(&mut self, work: &Work) -> Result<Vec<Case>> {
        let from = self.kept.lines.len();
        let shown = std::mem::replace(&mut self.tables, false);
        let done = self.measure(work);
        self.tables = shown;
        done.map(|()| cases(&self.kept.lines[from..]).cloned().collect())
    }

    /// Measures all of the work, one matrix after another.
    pub fn measure(&mut self, work: &Work) -> Result<()> {
        self.measure_all(work, work.subjects()?)
    }

    /// The same with matrices opened earlier, which is needed for streams that can be read only once.
    pub fn measure_all(&mut self, work: &Work, subjects: Vec<Unmade>) -> Result<()> {
        self.progress.expect(subjects.len());
        for unmade in subjects {
            if self.enough() || self.targets.is_empty() {
                break;
            }
            let (name, kind) = (unmade.name(), unmade.kind());
            self.progress.begin(&name, kind.name());
            let subject = match unmade {
                Unmade::Matrix(source, vectors, kind) => {
                    Subject::System(Box::new(System::read(&source, &vectors, kind, self.args.quiet)?))
                }
                Unmade::Vectors(n, kind) => Subject::Vectors { kind, n },
            };
            let from = self.kept.lines.len();
            rounds::measure(self, work, &name, &subject)?;
            if self.tables {
                self.show(|lines| table::system(&lines[from..]))?;
            }
        }
        Ok(())
    }

    /// Prints text, unless output is suppressed.
    fn show(&self, text: impl FnOnce(&[Line]) -> String) -> Result<()> {
        if self.args.quiet {
            return Ok(());
        }
        self.progress.aside(|| out::say(self.args.aside(), &text(&self.kept.lines)))
    }

    /// Says something once on standard error, unless output is suppressed.
    fn warn(&mut self, text: String) {
        if !self.args.quiet && !self.said.contains(&text) {
            self.progress.aside(|| out::note(&format!("note: {text}")));
            self.said.push(text);
        }
    }

    /// Adds a note to the results.
    pub fn note(&mut self, suite: &str, text: &str) -> Result<()> {
        self.show(
            |_| if text.contains('\n') { format!("\n{text}\n") } else { format!("\n{suite}: {text}\n") },
        )?;
        self.kept.push(Entry::Note(record::Note { suite: suite.into(), text: text.into() }))
    }

    /// Writes the page. Returns the exit code and the results.
    fn finish(self) -> Result<(ExitCode, Vec<Line>)> {
        let Session { args, targets, kept, progress, refused, peers, limit, .. } = self;
        drop(progress);
        if let Some(path) = &args.html {
            let lines: Vec<_> = kept.lines.iter().chain(&peers).cloned().collect();
            page::write(path, &lines)?;
        }
        if interrupted() {
            out::note("interrupted: the results so far are kept");
            return Ok((ExitCode::from(INTERRUPTED), kept.lines));
        }
        if limit.is_some_and(|limit| Instant::now() >= limit) {
            out::note("--time-limit: the time is up; the results so far are kept");
        }
        if targets.is_empty() {
            return no_device(&reasons(&kept.lines), asked(args).iter().any(|name| is_built_in(name)));
        }
        let measured = || cases(&kept.lines).filter(|case| case.measured.is_some());
        let code = match refused {
            Some(code) if measured().next().is_none() => {
                let why = cases(&kept.lines).find_map(|case| case.why.as_deref()).unwrap_or_default();
                out::note(&format!("error: nothing could be measured: {why}"));
                code
            }
            _ if measured().next().is_some() && measured().all(|case| case.missed().is_some()) => {
                NOT_CONVERGED
            }
            _ => 0,
        };
        Ok((ExitCode::from(code), kept.lines))
    }
}

/// The reasons why backends are missing.
fn reasons(lines: &[Line]) -> Vec<&str> {
    let whys = lines.iter().filter_map(|line| match &line.entry {
        Entry::Device(device) => device.why.as_deref(),
        _ => None,
    });
    whys.collect()
}

/// The backends to measure on, by name, with a device or not.
fn asked(args: &MeasuringArgs) -> Vec<String> {
    match args.backends.is_empty() {
        true => backends().into_iter().map(|b| b.name.to_string()).collect(),
        false => args.backends.clone(),
    }
}

/// Whether this build has the backend of a name, with a device or not.
fn is_built_in(name: &str) -> bool {
    let name = name.split(':').next();
    backends().into_iter().any(|b| b.built_in && Some(b.name) == name)
}

fn targets(args: &MeasuringArgs, prepare: Prepare, kept: &mut Kept) -> Result<Vec<Box<dyn Target>>> {
    let mut targets = Vec::new();
    for name in asked(args) {
        let (backend, device) = match name.split_once(':') {
            Some((backend, device)) => (backend, Some(device.to_string())),
            None => (name.as_str(), None),
        };
        let options = DeviceOptions::default()
            .threads(args.threads.map(usize::from))
            .device(device)
            .scalar(args.simd.is_some());
        let device = match open(backend, options, prepare) {
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
