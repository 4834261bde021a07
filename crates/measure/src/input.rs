//! Matrices and vectors from files, generators and names.
use crate::failure::{Failure, Result};
use crate::number::TypeName;
use crate::progress::Reading;
use lacuna::backend::text::{escaped, shown_name};
use lacuna::io::mm::ReadOptions;
use lacuna::io::{About, Opened, Wanted};
use lacuna::{Csr, Error, NumberType, Scalar, Spec};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of things named that are not read.
const NAMED: usize = 4;
/// The name for standard input and output in place of a file.
pub const STANDARD: &str = "-";

/// A file kept open. It is reopened only if it has been read and can be read again.
pub struct InputFile {
    pub path: String,
    wanted: Wanted,
    /// `None` after a failure.
    opened: Mutex<Option<Opened<'static>>>,
    pub about: About,
}

impl InputFile {
    pub fn open(path: &str, wanted: Wanted) -> Result<Self> {
        claim(path)?;
        let opened = open(path, wanted)?;
        let about = *opened.about();
        Ok(InputFile { path: path.into(), wanted, opened: Mutex::new(Some(opened)), about })
    }

    pub fn with<R>(&self, read: impl FnOnce(&mut Opened<'static>) -> lacuna::Result<R>) -> Result<R> {
        let mut held = self.lock();
        let mut opened = match held.take() {
            Some(opened) if !opened.is_spent() || is_stream(&self.path) => opened,
            _ => open(&self.path, self.wanted)?,
        };
        let done = read(&mut opened)?;
        *held = Some(opened);
        Ok(done)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Opened<'static>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Buffers a stream in memory, so that it can be read more than once, and other streams can be read after
    /// it.
    pub fn keep_stream(&self) -> Result<()> {
        if is_stream(&self.path) { self.with(Opened::keep) } else { Ok(()) }
    }
}

fn open(path: &str, wanted: Wanted) -> Result<Opened<'static>> {
    Ok(match path {
        STANDARD => Opened::from_reader("standard input", std::io::stdin(), wanted)?,
        path => Opened::open(path, wanted)?,
    })
}

/// Identifies the source of a file's bytes: on Unix by its device and inode numbers.
#[cfg(unix)]
fn identity(path: &str) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let path = if path == STANDARD { "/dev/stdin" } else { path };
    std::fs::metadata(path).ok().map(|about| (about.dev(), about.ino()))
}

#[cfg(not(unix))]
fn identity(path: &str) -> Option<(u64, u64)> {
    (path == STANDARD).then_some((0, 0))
}

/// Whether the name refers to something that can be read only once.
pub fn is_stream(path: &str) -> bool {
    path == STANDARD || std::fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir())
}

/// Rejects a stream that is already being read for something else.
fn claim(path: &str) -> Result<()> {
    static CLAIMED: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());
    if !is_stream(path) {
        return Ok(());
    }
    let Some(identity) = identity(path) else { return Ok(()) };
    let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
    if claimed.contains(&identity) {
        let message = "another argument reads it already, and it can be read only once";
        return Err(Failure::Usage(format!("{}: {message}", shown_name(path))));
    }
    claimed.push(identity);
    Ok(())
}

/// The text of a file that is not a matrix, or of standard input.
pub(crate) fn read_text(path: &str) -> Result<String> {
    claim(path)?;
    let text = match path {
        STANDARD => std::io::read_to_string(std::io::stdin()),
        path => std::fs::read_to_string(path),
    };
    text.map_err(|source| Error::Io { operation: "reading".into(), path: path.into(), source }.into())
}

/// A matrix from a file or a generator, not read yet.
pub struct Source {
    name: String,
    from: From,
    /// Notes on the input.
    notes: Mutex<Vec<String>>,
}

enum From {
    Generator(Spec),
    File(Box<InputFile>),
}

impl Source {
    /// Parses the name of a generator, or opens a file and reads its header.
    pub fn open(name: &str) -> Result<Self> {
        let from = match name.starts_with(Spec::PREFIX) {
            true => From::Generator(Spec::parse(name)?),
            false => From::File(Box::new(InputFile::open(name, Wanted::Matrix)?)),
        };
        let name = if name == STANDARD { "standard input".into() } else { escaped(name).into_owned() };
        Ok(Source { name, from, notes: Mutex::default() })
    }

    /// The name in printable form.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn is_complex(&self) -> bool {
        match &self.from {
            From::Generator(spec) => spec.is_complex(),
            From::File(file) => file.about.kind.is_complex(),
        }
    }

    /// The requested number type, or the one that fits; `also_complex` if another part of the input is
    /// complex.
    pub fn number_type(&self, asked: Option<TypeName>, also_complex: bool) -> Result<NumberType> {
        let complex = self.is_complex() || also_complex;
        let Some(kind) = asked.map(TypeName::kind) else {
            return Ok(if complex { NumberType::C64 } else { NumberType::F64 });
        };
        if complex && !kind.is_complex() {
            let what = if self.is_complex() { "matrix" } else { "vector" };
            let message =
                format!("--type {}: the {what} is complex, expected --type c64 or c32", kind.name());
            return Err(Failure::Usage(message));
        }
        Ok(kind)
    }

    /// Buffers a stream in memory. Needed before it is read more than once, and before other streams are
    /// opened, since their writer may first have to finish this one.
    pub fn keep_stream(&self) -> Result<()> {
        match &self.from {
            From::Generator(_) => Ok(()),
            From::File(file) => file.keep_stream(),
        }
    }

    /// The matrix, with progress shown on long reads.
    pub fn read<T: Scalar>(&self, quiet: bool) -> Result<Csr<T>> {
        match &self.from {
            From::Generator(spec) => Ok(spec.build()?),
            From::File(file) => {
                let reading = Reading::new(&self.name, quiet);
                let progress = |read: u64, all: u64| reading.at(read, all);
                let notes = |note: &str| self.note(note, quiet);
                let options = ReadOptions { progress: Some(&progress), notes: Some(&notes) };
                file.with(|opened| {
                    let read = opened.matrix(&options);
                    self.note_left_out(opened, quiet);
                    read
                })
            }
        }
    }

    /// Notes once what a file holds and is not read.
    fn note_left_out(&self, opened: &Opened<'_>, quiet: bool) {
        let left_out = opened.left_out();
        let more = left_out.len().saturating_sub(NAMED);
        let named = left_out.iter().take(NAMED).map(|what| escaped(what).into_owned());
        let more = (more > 0).then(|| format!("{more} more"));
        let all: Vec<String> = named.chain(more).collect();
        let note = format!("not used of {}: {}", shown_name(opened.name()), all.join("; "));
        if !all.is_empty() && !self.notes().contains(&note) {
            self.note(&note, quiet);
        }
    }

    /// The number type that can hold the stored values.
    pub fn own_type(&self) -> Result<NumberType> {
        match &self.from {
            From::Generator(_) => self.number_type(None, false),
            From::File(file) => Ok(file.about.kind),
        }
    }

    /// Whether it is a file with one column that stores every element.
    pub fn is_vector(&self) -> bool {
        matches!(&self.from, From::File(file) if file.about.is_dense && file.about.cols == 1)
    }

    /// The vector in the file.
    pub fn read_vector<T: Scalar>(&self, quiet: bool) -> Result<Vec<T>> {
        let From::File(file) = &self.from else {
            return Err(Failure::Usage(format!("{}: a generator has no vector", shown_name(&self.name))));
        };
        let notes = |note: &str| self.note(note, quiet);
        let options = ReadOptions { progress: None, notes: Some(&notes) };
        file.with(|opened| opened.vector(&options))
    }

    /// The right-hand side of the model that a generator makes.
    pub(crate) fn model_right_hand_side<T: Scalar>(&self) -> Result<Vec<T>> {
        let made = match &self.from {
            From::Generator(spec) => spec.right_hand_side::<T>()?,
            From::File(_) => None,
        };
        made.ok_or_else(|| {
            let name = shown_name(&self.name);
            Failure::Usage(format!(
                "--rhs model: {name} has none; the generators spe10-like, lscm and smooth make one"
            ))
        })
    }

    /// The right-hand side, which must be present: the one in the file, or that of the model.
    pub fn needed_right_hand_side<T: Scalar>(&self, quiet: bool) -> Result<Vec<T>> {
        if matches!(self.from, From::Generator(_)) {
            return self.model_right_hand_side();
        }
        self.right_hand_side(quiet)?.ok_or_else(|| {
            let name = shown_name(&self.name);
            Failure::Usage(format!("--rhs: {name} has no right-hand side of one column"))
        })
    }

    /// Records a note for the user, and prints it.
    pub fn note(&self, note: &str, quiet: bool) {
        if !quiet {
            crate::out::note(&format!("note: {note}"));
        }
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note.into());
    }

    /// The notes so far.
    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The right-hand side stored with the matrix in an archive or in the same file, if there is a usable
    /// one. To be called after the matrix has been read.
    pub fn right_hand_side<T: Scalar>(&self, quiet: bool) -> Result<Option<Vec<T>>> {
        let From::File(file) = &self.from else { return Ok(None) };
        let mut held = file.lock();
        let Some(mut found) = held.as_mut().map_or(Ok(None), Opened::right_hand_side)? else {
            return Ok(None);
        };
        let (name, about) = (shown_name(found.name()).into_owned(), found.about());
        if about.cols != 1 || about.rows != file.about.rows {
            let (rows, cols) = (about.rows, about.cols);
            let length = match file.about.rows {
                fits if fits == rows => String::new(),
                other => format!(" and the matrix has {other} rows"),
            };
            let why = format!("since it is {rows}x{cols}{length}; b is ones");
            self.note(&format!("{name} is not used as right-hand side, {why}"), quiet);
            return Ok(None);
        }
        self.note(&format!("the right-hand side is {name}"), quiet);
        let notes = |note: &str| self.note(note, quiet);
        Ok(Some(found.vector(&ReadOptions { progress: None, notes: Some(&notes) })?))
    }
}

/// Sets the threads for reading, generating and analysing; backends have their own.
pub fn set_threads(threads: Option<u16>) -> Result<()> {
    let threads = threads.unwrap_or(0).into();
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().map_err(|error| {
        let (device, operation) = ("cpu".into(), "starting threads".into());
        Error::Device { device, operation, message: error.to_string() }.into()
    })
}
