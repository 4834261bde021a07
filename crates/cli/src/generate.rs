//! `lacuna generate`
use crate::args::{GenerateArgs, generators};
use crate::failure::{Failure, Result};
use crate::input::{STANDARD, Source, set_threads};
use crate::{out, raw};
use lacuna::formats::mm::{self, Storage, Symmetry, WriteOptions};
use lacuna::{Complex32, Complex64, Csr, Kind, Scalar, Spec};

pub(crate) fn run(args: &GenerateArgs) -> Result<()> {
    let (Some(spec), Some(output), false) = (&args.spec, &args.output, args.list) else {
        return out::print(&generators());
    };
    out::check_place("--output", output)?;
    let spec = Spec::parse(spec)?;
    set_threads(None)?;
    if output.ends_with(raw::END) {
        let kind = Source::open(&spec.to_string())?.number_type(args.number, false)?;
        if kind != Kind::F64 {
            let message = format!("--output {output}: such files hold f64, the matrix is {}", kind.name());
            return Err(Failure::Usage(message));
        }
        let a = spec.build::<f64>()?;
        raw::write(output, &a)?;
        return told(output, &a);
    }
    let storage = if args.general { Storage::As(Symmetry::General) } else { Storage::Auto };
    match Source::open(&spec.to_string())?.number_type(args.number, false)? {
        Kind::F32 => write::<f32>(&spec, output, storage),
        Kind::F64 => write::<f64>(&spec, output, storage),
        Kind::C32 => write::<Complex32>(&spec, output, storage),
        Kind::C64 => write::<Complex64>(&spec, output, storage),
    }
}

fn write<T: Scalar>(spec: &Spec, output: &str, storage: Storage) -> Result<()> {
    let a = spec.build::<T>()?;
    let comment = format!("lacuna generate {spec}");
    let options = WriteOptions { storage, comment: &comment };
    if output == STANDARD {
        return out::stream(|out| mm::encode_matrix(out, &a, &options));
    }
    mm::write_matrix(output, &a, &options)?;
    told(output, &a)
}

fn told<T: Scalar>(output: &str, a: &Csr<T>) -> Result<()> {
    let (rows, cols, nnz) = (a.rows() as u64, a.cols() as u64, a.nnz() as u64);
    let [rows, cols, nnz] = [rows, cols, nnz].map(crate::report::thousands);
    out::print(&format!("{output}: {rows} x {cols}, {nnz} entries, {}\n", T::KIND.name()))
}
