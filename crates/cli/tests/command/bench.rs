//! A folder in which a command is run, as people and scripts run it. The tests of `lacuna-bench` use this file
//! too; `crate::BINARY` is the command.
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

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

    pub(crate) fn command(&self, args: &str) -> Command {
        let mut command = Command::new(crate::BINARY);
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
