//! The command as people and scripts use it.
mod advise;
mod bench;
mod compare;
mod documents;
#[cfg(unix)]
mod faults;
mod files;
mod formats;
#[cfg(unix)]
mod guide;
mod hostile;
mod json;
mod other;
mod page;
mod solve;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The backends of this build, the default one first.
pub(crate) fn built_in() -> Vec<&'static str> {
    lacuna::BACKENDS.iter().filter(|b| b.built_in).map(|b| b.name).collect()
}

/// A folder with files for the command, in which the command is run.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
}

/// The output of the command and its exit code.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Bench { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> &Self {
        std::fs::write(self.path(name), text).unwrap();
        self
    }

    /// Writes a general real matrix; each entry is a line, counted from 1.
    pub(crate) fn matrix(&self, name: &str, rows: usize, cols: usize, entries: &[&str]) -> &Self {
        let lines = entries.join("\n");
        let sizes = format!("{rows} {cols} {}", entries.len());
        self.file(name, &format!("%%MatrixMarket matrix coordinate real general\n{sizes}\n{lines}\n"))
    }

    pub(crate) fn vector(&self, name: &str, elements: &[f64]) -> &Self {
        let lines: String = elements.iter().map(|v| format!("{v}\n")).collect();
        let count = elements.len();
        self.file(name, &format!("%%MatrixMarket matrix array real general\n{count} 1\n{lines}"))
    }

    /// The matrix most tests use: `A (1, 1, 1) = (5, 5, 6)`.
    pub(crate) fn with_spd(self) -> Self {
        self.matrix("a.mtx", 3, 3, &["1 1 4", "2 2 3", "3 3 5", "1 2 1", "2 1 1", "2 3 1", "3 2 1"]);
        self
    }

    pub(crate) fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lacuna"));
        command.args(args.split_whitespace()).current_dir(self.folder.path());
        command.env("LACUNA_CACHE", self.folder.path().join("cache")).env_remove("LACUNA_COMMIT");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &str) -> Ran {
        let ran = Ran::from(self.command(args).output().unwrap());
        assert!(!ran.err.contains("panicked"), "{args}: {}", ran.err);
        ran
    }

    /// Runs, checks the exit code, and returns the error message.
    pub(crate) fn refused(&self, args: &str) -> String {
        let ran = self.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args}: {}", ran.err);
        ran.err.trim_end().strip_prefix("error: ").unwrap_or(&ran.err).to_string()
    }

    /// Solves and returns the JSON.
    pub(crate) fn solve(&self, args: &str) -> (i32, serde_json::Value) {
        let ran = self.run(&format!("solve --quiet --json - {args}"));
        assert_eq!(ran.err, "", "{args}");
        (ran.code, serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{args}: {e}: {}", ran.out)))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
