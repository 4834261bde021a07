//! A table on the terminal, and the same rows as JSON lines for keeping.
use crate::args::Args;
use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// One entry of a row.
#[derive(Clone, Debug)]
pub enum Value {
    /// Words.
    Text(String),
    /// A count.
    Count(usize),
    /// A number and the digits to print after its point.
    Number(f64, usize),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.pad(text),
            Value::Count(count) => f.pad(&count.to_string()),
            Value::Number(x, _) if x.is_nan() => f.pad("-"),
            Value::Number(x, digits) => f.pad(&format!("{x:.digits$}")),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.into())
    }
}
impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Value::Count(count)
    }
}
impl From<(f64, usize)> for Value {
    fn from((number, digits): (f64, usize)) -> Self {
        Value::Number(number, digits)
    }
}

/// Where the rows of a program go.
pub struct Report {
    columns: Vec<String>,
    file: Option<File>,
    common: String,
}

impl Report {
    /// A report to the terminal, and to the end of the file given as `--json`, if any.
    ///
    /// # Errors
    /// Where that file cannot be opened.
    pub fn new(args: &Args) -> std::io::Result<Self> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        let file = args.given("--json").map(open).transpose()?;
        let (command, machine) = (command(), machine());
        println!("{command}\n{}, {machine}, {}", date(), env!("LACUNA_BENCH_RUSTC"));
        let mut common = String::new();
        let fields = [("command", command), ("date", date()), ("machine", machine)];
        for (name, value) in fields.into_iter().chain([("rustc", env!("LACUNA_BENCH_RUSTC").into())]) {
            let _ = write!(common, "\"{name}\":{},", quoted(&value));
        }
        Ok(Report { columns: Vec::new(), file, common })
    }

    /// Prints and keeps a row; the column names are printed where they differ from the row before.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn row(&mut self, cells: &[(&str, Value)]) -> std::io::Result<()> {
        let width = |i: usize, name: &str| if i == 0 { 27 } else { name.len().max(8) };
        let line = |texts: Vec<String>| texts.join("  ");
        if !self.columns.iter().map(String::as_str).eq(cells.iter().map(|c| c.0)) {
            self.columns = cells.iter().map(|c| c.0.to_string()).collect();
            let names = cells.iter().enumerate().map(|(i, (name, _))| pad(name, i, width(i, name)));
            println!("\n{}", line(names.collect()));
        }
        let texts = cells.iter().enumerate().map(|(i, (name, v))| pad(&v.to_string(), i, width(i, name)));
        println!("{}", line(texts.collect()));
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut json = format!("{{{}", self.common);
        for (i, (name, value)) in cells.iter().enumerate() {
            let value = match value {
                Value::Text(text) => quoted(text),
                Value::Count(count) => count.to_string(),
                Value::Number(x, _) if x.is_finite() => format!("{x:e}"),
                Value::Number(..) => "null".into(),
            };
            let comma = if i == 0 { "" } else { "," };
            let _ = write!(json, "{comma}{}:{value}", quoted(name));
        }
        writeln!(file, "{json}}}")
    }
}

/// The first column to the left, the others to the right.
fn pad(text: &str, column: usize, width: usize) -> String {
    if column == 0 { format!("{text:<width$}") } else { format!("{text:>width$}") }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out + "\""
}

/// The command line, without the folder of the program.
fn command() -> String {
    let mut words: Vec<String> = std::env::args().collect();
    if let Some(first) = words.first_mut() {
        *first = first.rsplit('/').next().unwrap_or_default().into();
    }
    words.join(" ")
}

/// Today in UTC, as `2026-11-21`.
fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    // Days since 0000-03-01, in eras of 400 years of 146097 days; doc: Hinnant, "chrono-compatible date algorithms".
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = 400 * era + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Processor and cores.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find(|l| l.starts_with("model name")).and_then(|l| l.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    format!("{} x {cores}", name.unwrap_or(std::env::consts::ARCH))
}
