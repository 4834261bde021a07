//! `lacuna spmv`
use crate::args::SpmvArgs;
use crate::plot;
use crate::speeds::{Row, Speeds};
use lacuna::backend::text::shown_word;
use lacuna::formats::{FORMATS, Profile, check_format, choose_format, convert, reorder};
use lacuna::{Csr, Device, Error, Scalar, Structure, TimedProduct, Tuned, tune_format};
use lacuna_measure::failure::Result;
use lacuna_measure::input::{Source, set_threads};
use lacuna_measure::number::with_type;
use lacuna_measure::out;
use lacuna_measure::{BUDGET, Samples, triad};
use std::sync::Arc;

pub(crate) fn run(args: &SpmvArgs) -> Result<()> {
    args.plot.as_deref().map_or(Ok(()), plot::check_name)?;
    let outputs = [("--json", args.report.json.as_deref()), ("--plot", args.plot.as_deref())];
    out::check_outputs(&outputs, &[("the matrix", Some(&args.matrix))])?;
    set_threads(args.place.threads)?;
    let source = Source::open(&args.matrix)?;
    let kind = source.number_type(args.number, false)?;
    let dev = args.place.open()?;
    with_type!(kind, T => time::<T>(args, &source, &dev))
}

/// Times products with a matrix on a device.
fn time<T: Scalar>(args: &SpmvArgs, source: &Source, dev: &Device) -> Result<()> {
    let given = Arc::new(source.read::<T>(args.report.quiet)?);
    let a = match reordered(&given, &args.reorder)? {
        Some(a) => Arc::new(a),
        None => given.clone(),
    };
    let device = dev.info().clone();
    let triad = triad::<f64>(dev, device.memory)?;
    let structure = Structure::of(&*a);
    let tunes = args.format.iter().any(|name| name == "tune");
    let tuned = tunes.then(|| tune_format(dev, &a, &structure)).transpose()?;
    let profiles = (a.rows() == a.cols()).then(|| [&*given, &*a].map(Profile::of));
    let mut speeds = Speeds {
        matrix: source.name().into(),
        kind: T::KIND,
        shape: (a.rows(), a.cols()),
        nnz: a.nnz(),
        device,
        triad,
        auto: choose_format(&a, &structure, dev.formats(a.rows(), lacuna::Format::bytes(&*a))?).0,
        tuned,
        order: (args.reorder.clone(), profiles),
        rows: Vec::new(),
        refused: Vec::new(),
    };
    let mut timed = Vec::new();
    for name in names(&args.format, &speeds.tuned)? {
        match convert(&a, &name).and_then(|stored| dev.matrix(stored)) {
            Ok(stored) => {
                for &vectors in &args.vectors {
                    let product =
                        TimedProduct::of(dev, stored.clone(), vectors.into(), BUDGET.as_secs_f64())?;
                    timed.push((name.clone(), vectors, product, Samples::default()));
                }
            }
            Err(Error::Unsupported { message, .. }) => speeds.refused.push((name, message)),
            Err(error) => return Err(error.into()),
        }
    }
    for _ in 0..args.rounds {
        for (.., product, times) in &mut timed {
            times.push(product.time()?);
        }
    }
    speeds.rows =
        timed.iter().map(|(name, v, product, times)| Row::new(name.clone(), *v, product, times)).collect();
    speeds.rows.sort_by(|a, b| a.seconds_each().total_cmp(&b.seconds_each()));
    out::report(args.report.quiet, args.report.json.as_deref(), || speeds.text(), || speeds.json())?;
    args.plot.as_ref().map_or(Ok(()), |path| plot::save(&plot::speeds(&speeds), path))
}

/// The matrix in the order with the given name; `None` if that leaves it unchanged.
fn reordered<T: Scalar>(a: &Csr<T>, name: &str) -> lacuna::Result<Option<Csr<T>>> {
    if name == "none" {
        return Ok(None);
    }
    reorder(a, name)?.map(|order| a.permuted(&order)).transpose()
}

/// The requested formats.
fn names(asked: &[String], tuned: &Option<Tuned>) -> lacuna::Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for name in asked {
        match FORMATS.iter().find(|f| f.name == name) {
            Some(format) => names.push(format.name.into()),
            None if name == "tune" => {
                names.extend(tuned.iter().flat_map(|t| t.times.iter().map(|(name, _)| name.to_string())))
            }
            None if name == "all" => names.extend(FORMATS.iter().map(|f| f.name.into())),
            None if name.contains(':') => {
                check_format(name)?;
                names.push(name.clone());
            }
            None => {
                let known: Vec<_> = FORMATS.iter().map(|f| f.name).collect();
                let (known, name) = (known.join(", "), shown_word(name));
                let message = format!("expected `all`, `tune` or one of {known}, got `{name}`");
                return Err(Error::Argument { what: "format".into(), message });
            }
        }
    }
    Ok(names)
}
