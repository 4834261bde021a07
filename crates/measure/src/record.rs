//! Results as lines of JSON. Each line is complete: the measurement, its subject, the machine and program,
//! and the date.
use crate::failure::{Failure, Result};
use crate::input::STANDARD;
use crate::quantity::{counted_units, many, thousands};
use crate::{Machine, Measured};
use lacuna::backend::text::{printable_json, shown_name};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::Write;

/// A line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    #[serde(flatten)]
    pub entry: Entry,
    #[serde(flatten)]
    pub machine: Machine,
}

/// The content of a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Entry {
    Device(Device),
    Case(Case),
    Peer(Peer),
    Note(Note),
}

/// A backend and its device, or the reason why it is not available.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Device {
    pub backend: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<(String, String)>,
    /// Bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// One system, method, format and backend: the measurement, or the reason why there is none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    /// The suite it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// The system: a matrix in one number type.
    #[serde(flatten)]
    pub system: SystemKey,
    pub method: String,
    pub precond: String,
    pub format: String,
    /// The format that `auto` takes for this matrix on this backend; only for products.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<String>,
    /// The stopping criterion, in words.
    pub stop: String,
    /// The right-hand side and the starting guess, in words; `None` for ones and 0, and for products.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<String>,
    pub backend: String,
    pub device: String,
    /// Threads, compute units or multiprocessors.
    pub units: usize,
    /// Bytes per second of a copy in the same run.
    pub copy: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Box<Measured>>,
}

/// How the stopping criterion of solves to a tolerance begins.
pub(crate) const TO: &str = "to |";
/// The stopping criterion of products, in words.
pub const PRODUCTS: &str = "products";
/// The name shown in place of a matrix if there are only vectors.
pub const VECTORS: &str = "vectors";
/// The name shown in place of a backend for loops written by hand.
pub const BY_HAND: &str = "by-hand";

/// A matrix in a number type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SystemKey {
    pub matrix: String,
    pub n: usize,
    pub nnz: usize,
    #[serde(rename = "type")]
    pub number: String,
}

impl SystemKey {
    /// A short description.
    pub fn title(&self) -> String {
        match self.matrix.as_str() {
            VECTORS => format!("{VECTORS} of {}", thousands(self.n as u64)),
            _ => self.matrix.trim_start_matches("gen:").into(),
        }
    }

    /// The system and its size, in words.
    pub fn describe(&self) -> String {
        let (n, nnz) = (self.n, many(self.nnz, "entry", "entries"));
        match self.matrix.as_str() {
            VECTORS => format!("{VECTORS} of {}, {}", many(n, "element", "elements"), self.number),
            _ => format!("{}: {}, {nnz}, {}", self.matrix, many(n, "unknown", "unknowns"), self.number),
        }
    }
}

/// A result of another library on the same matrix. Times are microseconds per iteration, of 30 iterations by
/// default; on a device with transfers of `b` and `x`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Peer {
    pub peer: String,
    /// `None` on a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    pub method: String,
    /// `None` if not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precond: Option<String>,
    /// The stopping criterion, worded as in a case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// The number of iterations done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    pub matrix: String,
    #[serde(rename = "type")]
    pub number: String,
    pub n: usize,
    pub fresh_us: f64,
    pub again_us: f64,
    /// The same with `b` and `x` on the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_device_us: Option<f64>,
    /// The residual reached, computed like our true residual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

impl Peer {
    /// Its threads, or the format that was the fastest.
    pub fn with(&self) -> String {
        let threads = self.threads.map(|count| counted_units("cpu", count));
        threads.into_iter().chain(self.format.clone()).collect::<Vec<_>>().join(", ")
    }
    /// Its name with threads or format.
    pub fn label(&self) -> String {
        match self.with() {
            with if with.is_empty() => self.peer.clone(),
            with => format!("{} ({with})", self.peer),
        }
    }
}

/// A note about a suite.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Note {
    pub suite: String,
    pub text: String,
}

impl Case {
    /// Whether two cases did the same work, on any backend.
    pub fn same_work(&self, other: &Case) -> bool {
        self.system == other.system
            && self.suite == other.suite
            && (&self.method, &self.precond, &self.format, &self.stop, &self.given)
                == (&other.method, &other.precond, &other.format, &other.stop, &other.given)
    }
    /// How it ended, if it did not meet the tolerance, or broke down before it had done the iterations that it was to do; to
    /// have no more to gain is no breakdown.
    pub fn missed(&self) -> Option<String> {
        let outcome = self.measured.as_ref()?.outcome.as_deref()?;
        let to_tolerance = self.stop.starts_with(TO);
        let fair = [lacuna::Reason::Limit, lacuna::Reason::Stagnated, lacuna::Reason::AccuracyAttained];
        let missed = outcome != lacuna::Reason::Converged.name()
            && (to_tolerance || !fair.into_iter().any(|reason| reason.name() == outcome));
        missed.then(|| outcome.replace('_', " "))
    }
    /// The method with its preconditioner.
    pub fn way(&self) -> String {
        match self.precond.as_str() {
            "none" => self.method.clone(),
            precond => format!("{} + {precond}", self.method),
        }
    }
}

/// Result lines, made or read, and the file that receives new ones as they come.
pub(crate) struct Kept {
    pub(crate) lines: Vec<Line>,
    machine: Machine,
    file: Option<(Box<dyn Write>, String)>,
}

impl Kept {
    /// Appends to a file if one is named; prints for `-`.
    pub(crate) fn to(path: Option<&str>) -> Result<Self> {
        let open = |path: &str| -> Result<(Box<dyn Write>, String)> {
            if path == STANDARD {
                return Ok((Box::new(std::io::stdout()), "standard output".into()));
            }
            let file = OpenOptions::new().create(true).append(true).open(path);
            Ok((Box::new(file.map_err(|e| Failure::writing(path, e))?), path.to_string()))
        };
        Ok(Kept { lines: Vec::new(), machine: Machine::here(), file: path.map(open).transpose()? })
    }

    /// Adds a result of this run.
    pub(crate) fn push(&mut self, entry: Entry) -> Result<()> {
        let line = Line { entry, machine: self.machine.clone() };
        if let Some((file, path)) = &mut self.file {
            let text = serde_json::to_string(&line).map_err(|e| Failure::writing(path, e.into()))?;
            writeln!(file, "{}", printable_json(&text)).map_err(|e| Failure::writing(path, e))?;
        }
        self.lines.push(line);
        Ok(())
    }
}

/// Reads result lines, from standard input for `-`.
pub fn read(path: &str) -> Result<Vec<Line>> {
    let text = crate::input::read_text(path)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| {
                // It quotes what it found.
                let (path, at, error) = (shown_name(path), at + 1, error.to_string());
                let error = shown_name(&error);
                Failure::Usage(format!("{path}, line {at}: expected a saved result: {error}"))
            })
        })
        .collect()
}

/// The cases among lines.
pub fn cases(lines: &[Line]) -> impl Iterator<Item = &Case> {
    lines.iter().filter_map(|line| match &line.entry {
        Entry::Case(case) => Some(case),
        _ => None,
    })
}

/// What is to be said below rows whose solves did not meet the tolerance.
pub(crate) fn not_solved(count: usize) -> String {
    let solves = many(count, "solve", "solves");
    format!(
        "{solves} did not meet the tolerance, or ended early: the time of such a row is not that of a solution"
    )
}

/// The distinct items, in order of first appearance.
pub fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut list, item| {
        if !list.contains(&item) {
            list.push(item);
        }
        list
    })
}

/// Whether backends agree in their bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bits {
    /// Only one backend did this work.
    Alone,
    /// The solution and every residual were the same, on every backend, every time.
    Equal,
    Differ,
}

impl Bits {
    /// Compares a case with the cases that did the same work.
    pub fn of(case: &Case, all: &[&Case]) -> Self {
        let digests = |c: &Case| c.measured.as_ref().map(|m| (m.x_bits.clone(), m.history_bits.clone()));
        let compared = |c: &Case| c.measured.as_ref().is_some_and(|m| m.x_bits.is_some());
        let same: Vec<_> = all.iter().filter(|c| compared(c) && c.same_work(case)).collect();
        if same.iter().any(|c| c.measured.as_ref().is_some_and(|m| !m.reproducible)) {
            return Bits::Differ;
        }
        match same.len() {
            0 | 1 => Bits::Alone,
            _ if !compared(case) => Bits::Alone,
            _ if same.iter().all(|c| digests(c) == digests(case)) => Bits::Equal,
            _ => Bits::Differ,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Bits::Alone => "-",
            Bits::Equal => "equal",
            Bits::Differ => "DIFFER",
        }
    }
}
