//! `lacuna generate`
use crate::args::{GenerateArgs, generators};
use crate::convert::{check_matrix_output, report_written, save_matrix, storage};
use lacuna::io::mm::WriteOptions;
use lacuna::{Scalar, Spec};
use lacuna_measure::failure::Result;
use lacuna_measure::input::{Source, set_threads};
use lacuna_measure::number::with_type;
use lacuna_measure::out;

pub(crate) fn run(args: &GenerateArgs) -> Result<()> {
    let (Some(spec), Some(output), false) = (&args.spec, &args.output, args.list) else {
        return out::print(&generators());
    };
    out::check_outputs(&[("--output", Some(output))], &[])?;
    check_matrix_output(output)?;
    let spec = Spec::parse(spec)?;
    set_threads(None)?;
    with_type!(Source::open(&spec.to_string())?.number_type(args.number, false)?, T => write::<T>(&spec, output, args.general))
}

fn write<T: Scalar>(spec: &Spec, output: &str, general: bool) -> Result<()> {
    let a = spec.build::<T>()?;
    let comment = format!("lacuna generate {spec}");
    save_matrix(output, &a, &WriteOptions { storage: storage(general), comment: &comment })?;
    report_written(false, false, output, (a.rows(), a.cols()), a.nnz(), T::KIND)
}
