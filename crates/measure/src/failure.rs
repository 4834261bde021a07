//! Errors of a command, and their exit codes.
use lacuna::Error;
use std::io;
use std::process::ExitCode;

/// Exit code of a solve that did not converge.
pub const NOT_CONVERGED: u8 = 1;
/// Exit code of bad input or usage; clap uses it too.
pub(crate) const BAD_INPUT: u8 = 2;
/// Exit code of a device that failed.
const DEVICE_FAILED: u8 = 3;
/// Exit code of a process ended by Ctrl-C, by the convention of shells.
pub(crate) const INTERRUPTED: u8 = 130;

/// The error if no backend is available: the reasons for each. It is one of usage if this build has none of them.
pub(crate) fn no_device<T>(reasons: &[&str], built_in: bool) -> Result<T> {
    let message = format!("no backend is available: {}", reasons.join("; "));
    if !built_in {
        return Err(Failure::Usage(message));
    }
    let (device, operation) = ("any".into(), "looking for devices".into());
    Err(Failure::Library(Error::Device { device, operation, message }))
}

/// The exit code of a library error.
pub(crate) fn code_of(error: &Error) -> u8 {
    if error.is_device_failure() { DEVICE_FAILED } else { BAD_INPUT }
}

/// The reason why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// An error of the library.
    Library(Error),
    /// Options that do not fit each other or the input.
    Usage(String),
}

pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Library(error)
    }
}

impl Failure {
    /// A file that could not be written.
    pub fn writing(path: &str, source: io::Error) -> Self {
        Failure::Library(Error::Io { operation: "writing".into(), path: path.into(), source })
    }

    /// Whether the reader of a pipe has closed it, which is not an error.
    fn is_closed_pipe(&self) -> bool {
        matches!(self, Failure::Library(Error::Io { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Prints the message and returns the exit code.
    pub fn report(self) -> ExitCode {
        if self.is_closed_pipe() {
            return ExitCode::SUCCESS;
        }
        let (message, code) = match &self {
            Failure::Usage(message) => (message.clone(), BAD_INPUT),
            Failure::Library(error) => {
                let counted = matches!(error, Error::Entry { .. } | Error::Element { .. });
                let note = if counted { " (rows and columns count from 0)" } else { "" };
                (format!("{error}{note}"), code_of(error))
            }
        };
        crate::out::note(&format!("error: {message}"));
        ExitCode::from(code)
    }
}
