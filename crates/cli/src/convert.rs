//! `lacuna convert`, and writing matrices and vectors to named files.
use crate::args::ConvertArgs;
use lacuna::io::mm::{self, Storage, Symmetry, WriteOptions};
use lacuna::io::{self, DenseArray};
use lacuna::{Csr, NumberType, Scalar};
use lacuna_measure::failure::Result;
use lacuna_measure::input::{STANDARD, Source, set_threads};
use lacuna_measure::number::with_type;
use lacuna_measure::out;
use lacuna_measure::quantity::{many, thousands};

pub(crate) fn run(args: &ConvertArgs) -> Result<()> {
    let outputs = [("OUT", Some(args.output.as_str())), ("--rhs", args.rhs.as_deref())];
    out::check_outputs(&outputs, &[("IN", Some(&args.input))])?;
    set_threads(args.threads)?;
    let source = Source::open(&args.input)?;
    match source.is_vector() {
        true => check_vector_output(&args.output)?,
        false => check_matrix_output(&args.output)?,
    }
    args.rhs.as_deref().map_or(Ok(()), check_vector_output)?;
    let kind = match args.number {
        Some(_) => source.number_type(args.number, false)?,
        None => source.own_type()?,
    };
    with_type!(kind, T => convert::<T>(args, &source))
}

fn convert<T: Scalar>(args: &ConvertArgs, source: &Source) -> Result<()> {
    let aside = args.output == STANDARD || args.rhs.as_deref() == Some(STANDARD);
    if source.is_vector() {
        let x = source.read_vector::<T>(args.quiet)?;
        save_vector(&args.output, &x)?;
        return report_written(args.quiet, aside, &args.output, (x.len(), 1), x.len(), T::KIND);
    }
    let a = source.read::<T>(args.quiet)?;
    let rhs = match &args.rhs {
        Some(path) => Some((path, source.needed_right_hand_side::<T>(args.quiet)?)),
        None => None,
    };
    save_matrix(&args.output, &a, &WriteOptions { storage: storage(args.general), comment: "" })?;
    report_written(args.quiet, aside, &args.output, (a.rows(), a.cols()), a.nnz(), T::KIND)?;
    if let Some((path, b)) = rhs {
        save_vector(path, &b)?;
        report_written(args.quiet, aside, path, (b.len(), 1), b.len(), T::KIND)?;
    }
    Ok(())
}

/// All entries, or only those not implied by symmetry.
pub(crate) fn storage(general: bool) -> Storage {
    if general { Storage::As(Symmetry::General) } else { Storage::Auto }
}

/// Rejects a file that no matrix can be written to, before one is read or made.
pub(crate) fn check_matrix_output(path: &str) -> Result<()> {
    if path == STANDARD { Ok(()) } else { Ok(io::check_matrix_name(path)?) }
}

/// The same for a vector.
pub(crate) fn check_vector_output(path: &str) -> Result<()> {
    if path == STANDARD { Ok(()) } else { Ok(io::check_vector_name(path)?) }
}

/// The same for several vectors, the columns of an array.
pub(crate) fn check_columns_output(path: &str) -> Result<()> {
    if path == STANDARD { Ok(()) } else { Ok(io::check_columns_name(path)?) }
}

/// Writes the columns of an array; as Matrix Market to standard output.
pub(crate) fn save_columns<T: Scalar>(path: &str, x: &DenseArray<T>) -> Result<()> {
    match path {
        STANDARD => out::stream(|out| mm::encode_columns(out, x)),
        path => Ok(io::write_columns(path, x)?),
    }
}

/// Writes a matrix in the form given by the extension of the name; Matrix Market to standard output.
pub(crate) fn save_matrix<T: Scalar>(path: &str, a: &Csr<T>, options: &WriteOptions<'_>) -> Result<()> {
    match path {
        STANDARD => out::stream(|out| mm::encode_matrix(out, a, options)),
        path => Ok(io::write_matrix(path, a, options)?),
    }
}

/// The same for a vector.
pub(crate) fn save_vector<T: Scalar>(path: &str, x: &[T]) -> Result<()> {
    match path {
        STANDARD => out::stream(|out| mm::encode_vector(out, x)),
        path => Ok(io::write_vector(path, x)?),
    }
}

/// Reports what was written to a file.
pub(crate) fn report_written(
    quiet: bool,
    aside: bool,
    path: &str,
    (rows, cols): (usize, usize),
    entries: usize,
    kind: NumberType,
) -> Result<()> {
    if quiet || path == STANDARD {
        return Ok(());
    }
    let [rows, cols] = [rows, cols].map(|size| thousands(size as u64));
    let entries = many(entries, "entry", "entries");
    out::say(aside, &format!("{path}: {rows} x {cols}, {entries}, {}\n", kind.name()))
}
