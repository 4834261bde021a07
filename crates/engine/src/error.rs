//! Errors: the operation, what it expected, what it got, and where.
use crate::NotConverged;
use crate::text::{escaped, shown_name};
use std::fmt::Display;

/// The result of an operation of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed. Not converging is an outcome with a [`Reason`](crate::Reason); it is an error only for callers that
/// turn it into [`NotConverged`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A length that does not match.
    #[error("{operation}: {what} should have length {expected}, got {got}")]
    Length {
        /// The operation, with the name of the pass if there is one.
        operation: String,
        /// Which argument.
        what: String,
        /// The expected length.
        expected: usize,
        /// The actual length.
        got: usize,
    },
    /// A matrix or operator whose shape does not match.
    #[error("{operation}: expected {expected}, got a {}x{} matrix", got.0, got.1)]
    Shape {
        /// The operation.
        operation: String,
        /// The expected shape, in words.
        expected: String,
        /// Rows and columns of the actual matrix.
        got: (usize, usize),
    },
    /// An invalid matrix entry.
    #[error("{operation}: entry at row {row}, column {column}: {message}")]
    Entry {
        /// The operation.
        operation: String,
        /// The row, counted from 0.
        row: usize,
        /// The column, counted from 0.
        column: usize,
        /// What is wrong with it and what was expected.
        message: String,
    },
    /// An invalid vector element.
    #[error("{operation}: {what}, row {row}: {message}")]
    Element {
        /// The operation.
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
        /// The operation.
        operation: String,
        /// What is wrong, where, and what was expected.
        message: String,
    },
    /// Text that could not be parsed. Lines and columns count from 1; column 0 stands for the whole line.
    #[error("{}:{line}{}: {message}", shown_name(source_name), if *column > 0 { format!(":{column}") } else { String::new() })]
    Parse {
        /// The file, or a name for the source.
        source_name: String,
        /// The line, counted from 1.
        line: u64,
        /// The column in bytes, counted from 1; 0 for the whole line.
        column: u64,
        /// What was expected and what was found.
        message: String,
    },
    /// Malformed bytes in a file. Offsets count from 0.
    #[error("{}: byte {offset}: {message}", shown_name(source_name))]
    Malformed {
        /// The file, and the member of an archive if there is one.
        source_name: String,
        /// The byte, counted from 0.
        offset: u64,
        /// What was expected and what was found.
        message: String,
    },
    /// A file that could not be read or written.
    #[error("{operation} {}: {}", shown_name(path), escaped(&source.to_string()))]
    Io {
        /// The operation.
        operation: String,
        /// The file.
        path: String,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A handle that does not belong to this backend, or whose memory was released.
    #[error("{operation}: the {what} was released or belongs to another backend")]
    Stale {
        /// The operation.
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
    /// A request that this library, backend or format does not support.
    #[error("{operation}: {message}")]
    Unsupported {
        /// The request.
        operation: String,
        /// Why not, and what to do instead.
        message: String,
    },
    /// An argument outside its range.
    #[error("{what}: {message}")]
    Argument {
        /// Which argument or option.
        what: String,
        /// What was expected and what was given.
        message: String,
    },
    /// A call on something that is in use.
    #[error("{operation}: {message}")]
    Busy {
        /// The call.
        operation: String,
        /// What is in use, and what to do instead.
        message: String,
    },
    /// The caller asked to stop.
    #[error("{operation}: cancelled by the caller")]
    Cancelled {
        /// What was going on.
        operation: String,
    },
    /// A failure of code of the caller's: an error that a host operator returned, or a panic.
    #[error("code of the caller's, as a host operator or a format, {}: {message}",
        if source.is_some() { "failed" } else { "panicked" })]
    Function {
        /// The message of the error or of the panic.
        message: String,
        /// The error that was returned; `None` for a panic.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// Memory that could not be allocated.
    #[error("{operation}: out of memory on {device}: {requested} bytes asked for{}",
        available.map_or(String::new(), |free| format!(", {free} free")))]
    OutOfMemory {
        /// The operation.
        operation: String,
        /// The device.
        device: String,
        /// Bytes asked for.
        requested: u64,
        /// Bytes free, if the device reports it.
        available: Option<u64>,
    },
    /// A device that failed or is absent.
    #[error("{device}: {operation}: {message}")]
    Device {
        /// The device, or the backend if there is no device.
        device: String,
        /// The operation.
        operation: String,
        /// The driver's error and what to do about it.
        message: String,
    },
    /// A solve that did not converge.
    #[error(transparent)]
    NotConverged(#[from] NotConverged),
}

/// What kind of error it is, for callers in other languages. The numbers are stable; 0 stands for success, and 8 for a panic that the
/// C interface caught (`LAC_PANIC`): a bug, and no error of this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A wrong argument, length or element of a vector.
    Argument = 1,
    /// A wrong matrix: its shape, structure or an entry.
    Matrix = 2,
    /// Something that this library, backend or format does not support.
    Unsupported = 3,
    /// Memory that could not be allocated.
    Memory = 4,
    /// A device that failed or is absent, or a handle of another one.
    Device = 5,
    /// Code of the caller's that failed.
    Function = 6,
    /// Something that is in use.
    Busy = 7,
    /// A file that could not be read, written or parsed.
    File = 9,
    /// The caller asked to stop.
    Cancelled = 10,
    /// A solve that did not converge.
    NotConverged = 11,
}

impl ErrorKind {
    /// Its number.
    pub fn code(self) -> i32 {
        self as i32
    }
}

impl Error {
    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Length { .. } | Error::Element { .. } | Error::Argument { .. } => ErrorKind::Argument,
            Error::Pass { .. } | Error::Program { .. } => ErrorKind::Argument,
            Error::Shape { .. } | Error::Entry { .. } | Error::Structure { .. } => ErrorKind::Matrix,
            Error::Unsupported { .. } => ErrorKind::Unsupported,
            Error::OutOfMemory { .. } => ErrorKind::Memory,
            Error::Device { .. } | Error::Stale { .. } => ErrorKind::Device,
            Error::Function { .. } => ErrorKind::Function,
            Error::Busy { .. } => ErrorKind::Busy,
            Error::Parse { .. } | Error::Malformed { .. } | Error::Io { .. } => ErrorKind::File,
            Error::Cancelled { .. } => ErrorKind::Cancelled,
            Error::NotConverged(_) => ErrorKind::NotConverged,
        }
    }

    /// Fails unless `got` equals `expected`.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn check_length(operation: impl Display, what: &str, expected: usize, got: usize) -> Result<()> {
        if expected == got {
            return Ok(());
        }
        Err(Error::Length { operation: operation.to_string(), what: what.into(), expected, got })
    }

    /// [`Error::check_length`] where the length expected comes from a matrix. The error has the shape of the matrix, since it may
    /// be the matrix that is not as meant.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn check_fits(
        operation: impl Display,
        (rows, cols): (usize, usize),
        what: &str,
        expected: usize,
        got: usize,
    ) -> Result<()> {
        Error::check_length(format_args!("{operation} of a {rows}x{cols} matrix"), what, expected, got)
    }

    /// Whether the device is at fault rather than the input.
    pub fn is_device_failure(&self) -> bool {
        matches!(self, Error::Device { .. } | Error::OutOfMemory { .. })
    }
}
