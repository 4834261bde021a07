//! What could not be done: the operation, what it expected, what came, and where.
use crate::text::escaped;
use std::fmt::Display;

/// The result of an operation of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something could not be done. Not converging is an outcome with a [`Reason`](crate::Reason), not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A length that does not fit.
    #[error("{operation}: {what} should have length {expected}, got {got}")]
    Length {
        /// What was being done, with the name of the pass where there is one.
        operation: String,
        /// Which argument.
        what: String,
        /// The length that fits.
        expected: usize,
        /// The length that came.
        got: usize,
    },
    /// A matrix or operator whose shape does not fit.
    #[error("{operation}: expected {expected}, got a {}x{} matrix", got.0, got.1)]
    Shape {
        /// What was being done.
        operation: String,
        /// The shape that fits, in words.
        expected: String,
        /// Rows and columns of what came.
        got: (usize, usize),
    },
    /// An entry of a matrix that cannot be.
    #[error("{operation}: entry at row {row}, column {column}: {message}")]
    Entry {
        /// What was being done.
        operation: String,
        /// The row, counted from 0.
        row: usize,
        /// The column, counted from 0.
        column: usize,
        /// What is wrong with it and what was expected.
        message: String,
    },
    /// An element of a vector that cannot be.
    #[error("{operation}: {what}, row {row}: {message}")]
    Element {
        /// What was being done.
        operation: String,
        /// Which vector.
        what: String,
        /// The row, counted from 0.
        row: usize,
        /// What is wrong with it and what was expected.
        message: String,
    },
    /// A structure (row pointers, sizes) that contradicts itself.
    #[error("{operation}: {message}")]
    Structure {
        /// What was being done.
        operation: String,
        /// What is wrong, where, and what was expected.
        message: String,
    },
    /// Text that could not be parsed. Lines and columns count from 1; column 0 stands for the whole line.
    #[error("{}:{line}{}: {message}", escaped(source_name), if *column > 0 { format!(":{column}") } else { String::new() })]
    Parse {
        /// The file, or what stands for it.
        source_name: String,
        /// The line, counted from 1.
        line: u64,
        /// The column in bytes, counted from 1; 0 for the whole line.
        column: u64,
        /// What was expected and what came.
        message: String,
    },
    /// Bytes of a file that do not belong. Offsets count from 0.
    #[error("{}: byte {offset}: {message}", escaped(source_name))]
    Malformed {
        /// The file, and the member of an archive.
        source_name: String,
        /// The byte, counted from 0.
        offset: u64,
        /// What was expected and what came.
        message: String,
    },
    /// A file that could not be read or written.
    #[error("{operation} {}: {}", escaped(path), escaped(&source.to_string()))]
    Io {
        /// What was being done.
        operation: String,
        /// The file.
        path: String,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// A handle that does not belong to this backend, or whose memory was released.
    #[error("{operation}: the {what} was released or belongs to another backend")]
    Stale {
        /// What was being done.
        operation: String,
        /// The kind of handle.
        what: &'static str,
    },
    /// A pass that breaks a rule of passes.
    #[error("pass `{pass}`: {message}")]
    Pass {
        /// The name of the pass.
        pass: String,
        /// The rule and what broke it.
        message: String,
    },
    /// A program that breaks a rule of programs.
    #[error("program `{program}`: {message}")]
    Program {
        /// The name of the program.
        program: String,
        /// The rule and what broke it.
        message: String,
    },
    /// Something asked for that this library, backend or format does not do.
    #[error("{operation}: {message}")]
    Unsupported {
        /// What was asked for.
        operation: String,
        /// Why not, and what to do instead.
        message: String,
    },
    /// An argument outside its range.
    #[error("{what}: {message}")]
    Argument {
        /// Which argument or option.
        what: String,
        /// What was expected and what came.
        message: String,
    },
    /// A function of the caller's, called during a solve, that panicked.
    #[error("the function of a host operator failed: {message}")]
    Function {
        /// What it said.
        message: String,
    },
    /// Memory that could not be had.
    #[error("{operation}: out of memory on {device}: {requested} bytes asked for{}",
        available.map_or(String::new(), |free| format!(", {free} free")))]
    OutOfMemory {
        /// What was being done.
        operation: String,
        /// The device.
        device: String,
        /// Bytes asked for.
        requested: u64,
        /// Bytes free, where the device tells.
        available: Option<u64>,
    },
    /// A device that failed or is not there.
    #[error("{device}: {operation}: {message}")]
    Device {
        /// The device, or the backend where there is none.
        device: String,
        /// What was being done.
        operation: String,
        /// The driver's answer and what to do about it.
        message: String,
    },
}

impl Error {
    /// A [`Error::Length`] unless `got` is `expected`.
    pub fn check_length(operation: impl Display, what: &str, expected: usize, got: usize) -> Result<()> {
        if expected == got {
            return Ok(());
        }
        Err(Error::Length { operation: operation.to_string(), what: what.into(), expected, got })
    }

    /// Whether this is the device's fault, not the input's.
    pub fn is_device_failure(&self) -> bool {
        matches!(self, Error::Device { .. } | Error::OutOfMemory { .. })
    }
}
