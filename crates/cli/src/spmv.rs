//! `lacuna spmv`
use crate::args::SpmvArgs;
use crate::plot;
use lacuna::backend::text::shown_word;
use lacuna::formats::{FORMATS, Profile, choose_format, convert, reorder};
use lacuna::{
    Csr, Device, DeviceInfo, Error, NumberType, Scalar, Structure, TimedProduct, Tuned, tune_format,
};
use lacuna_measure::failure::Result;
use lacuna_measure::input::{Source, set_threads};
use lacuna_measure::number::with_type;
use lacuna_measure::out;
use lacuna_measure::quantity::{many, thousands};
use lacuna_measure::{BUDGET, Samples, triad};
use serde_json::{Value, json};
use std::fmt::Write;
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
        match convert(&a, name).and_then(|stored| dev.matrix(stored)) {
            Ok(stored) => {
                for &vectors in &args.vectors {
                    let product =
                        TimedProduct::of(dev, stored.clone(), vectors.into(), BUDGET.as_secs_f64())?;
                    timed.push((name, vectors, product, Samples::default()));
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
    speeds.rows = timed.iter().map(|(name, v, product, times)| Row::new(name, *v, product, times)).collect();
    speeds.rows.sort_by(|a, b| a.seconds_each().total_cmp(&b.seconds_each()));
    speeds.print(args)
}

/// The matrix in the order with the given name; `None` if that leaves it unchanged.
fn reordered<T: Scalar>(a: &Csr<T>, name: &str) -> lacuna::Result<Option<Csr<T>>> {
    if name == "none" {
        return Ok(None);
    }
    reorder(a, name)?.map(|order| a.permuted(&order)).transpose()
}

/// The requested formats.
fn names(asked: &[String], tuned: &Option<Tuned>) -> lacuna::Result<Vec<&'static str>> {
    let mut names = Vec::new();
    for name in asked {
        match FORMATS.iter().find(|f| f.name == name) {
            Some(format) => names.push(format.name),
            None if name == "tune" => {
                names.extend(tuned.iter().flat_map(|t| t.times.iter().map(|(name, _)| *name)))
            }
            None if name == "all" => names.extend(FORMATS.iter().map(|f| f.name)),
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

/// The measurements of a format.
pub(crate) struct Row {
    name: &'static str,
    /// The number of vectors multiplied at once.
    vectors: u16,
    /// The bytes of the matrix and the vectors, once each.
    bytes: u64,
    seconds: f64,
    /// The interquartile range divided by the median.
    spread: f64,
}

impl Row {
    fn new<T: Scalar>(name: &'static str, vectors: u16, product: &TimedProduct<T>, times: &Samples) -> Self {
        let timing = times.timing();
        let (seconds, spread) = timing.map_or((f64::NAN, f64::NAN), |t| (t.median, t.spread()));
        Row { name, vectors, bytes: product.bytes(), seconds, spread }
    }
    /// The format, with the number of vectors if there are several.
    pub(crate) fn label(&self) -> String {
        if self.vectors == 1 { self.name.into() } else { format!("{} x {}", self.name, self.vectors) }
    }
    /// Seconds per vector.
    fn seconds_each(&self) -> f64 {
        self.seconds / f64::from(self.vectors)
    }
    pub(crate) fn rate(&self) -> f64 {
        self.bytes as f64 / self.seconds
    }
}

/// Every format of a matrix on a device, the fastest first.
pub(crate) struct Speeds {
    pub(crate) matrix: String,
    pub(crate) kind: NumberType,
    shape: (usize, usize),
    nnz: usize,
    pub(crate) device: DeviceInfo,
    /// Bytes per second.
    pub(crate) triad: f64,
    auto: &'static str,
    /// The results for the plausible formats, if requested.
    tuned: Option<Tuned>,
    /// The row order, with the profiles before and after it if the matrix is square.
    order: (String, Option<[Profile; 2]>),
    pub(crate) rows: Vec<Row>,
    refused: Vec<(&'static str, String)>,
}

/// The effect of an order.
pub(crate) fn became(before: &Profile, after: &Profile) -> String {
    let [old, new] = [before, after].map(|p| [p.bandwidth as u64, p.profile].map(thousands));
    format!("bandwidth {} instead of {}, profile {} instead of {}", new[0], old[0], new[1], old[1])
}

impl Speeds {
    /// Floating-point operations per second, two operations per entry as in Bell and Garland.
    pub(crate) fn flops(&self, row: &Row) -> f64 {
        2.0 * self.nnz as f64 / row.seconds_each()
    }

    fn print(&self, args: &SpmvArgs) -> Result<()> {
        out::report(args.report.quiet, args.report.json.as_deref(), || self.text(), || self.json())?;
        args.plot.as_ref().map_or(Ok(()), |path| plot::save(&plot::speeds(self), path))
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_text(&mut text);
        text
    }

    fn write_text(&self, text: &mut String) -> std::fmt::Result {
        let [rows, cols] = [self.shape.0, self.shape.1].map(|n| thousands(n as u64));
        let nnz = many(self.nnz, "entry", "entries");
        writeln!(text, "{}: {rows} x {cols}, {nnz}, {}", self.matrix, self.kind.name())?;
        let triad = self.triad / 1e9;
        writeln!(text, "  backend     {}: {}, triad {triad:.1} GB/s", self.device.backend, self.device.name)?;
        if let (name, Some([before, after])) = &self.order
            && name != "none"
        {
            writeln!(text, "  order       {name}: {}", became(before, after))?;
        }
        let several = self.rows.iter().any(|row| row.vectors > 1);
        let each = if several { "   us each" } else { "" };
        let names =
            self.rows.iter().map(Row::label).chain(self.refused.iter().map(|(name, _)| (*name).into()));
        let wide = names.map(|name| name.len()).max().unwrap_or(0).max(8);
        writeln!(text, "  {:wide$}       time us   spread{each}   GFLOP/s      GB/s   of triad", "format")?;
        for row in &self.rows {
            let mut chosen = String::new();
            for (name, by) in [(Some(self.auto), "auto"), (self.tuned.as_ref().map(Tuned::name), "tune")] {
                if name == Some(row.name) && row.vectors == 1 {
                    chosen += &format!("  <- {by}");
                }
            }
            writeln!(
                text,
                "  {:wide$}    {:10.2}   {:4.1} %{}   {:7.2}   {:7.1}   {:8.2}{chosen}",
                row.label(),
                row.seconds * 1e6,
                row.spread * 100.0,
                if several { format!("{:10.2}", row.seconds_each() * 1e6) } else { String::new() },
                self.flops(row) / 1e9,
                row.rate() / 1e9,
                row.rate() / self.triad,
            )?;
        }
        self.refused.iter().try_for_each(|(name, why)| writeln!(text, "  {name:wide$}    no: {why}"))
    }

    fn json(&self) -> Value {
        json!({
            "matrix": self.matrix,
            "rows": self.shape.0,
            "cols": self.shape.1,
            "nnz": self.nnz,
            "type": self.kind.name(),
            "backend": self.device.backend,
            "device": self.device.name,
            "triad": self.triad,
            "auto": self.auto,
            "tuned": self.tuned.as_ref().map(Tuned::name),
            "order": self.order.0,
            "profiles": self.order.1.map(|both| both.map(|p| json!({
                "bandwidth": p.bandwidth,
                "profile": p.profile,
            }))),
            "formats": self.rows.iter().map(|row| json!({
                "name": row.name,
                "vectors": row.vectors,
                "seconds": row.seconds,
                "spread": row.spread,
                "bytes": row.bytes,
                "flops_per_second": self.flops(row),
                "bytes_per_second": row.rate(),
            })).collect::<Vec<_>>(),
            "refused": self.refused.iter().map(|(name, why)| json!({ "name": name, "why": why })).collect::<Vec<_>>(),
            "version": env!("CARGO_PKG_VERSION"),
        })
    }
}
