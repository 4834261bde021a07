//! `lacuna info`
use crate::args::InfoArgs;
use crate::plot;
use crate::scaling::Scaling;
use crate::speeds::became;
use lacuna::formats::algebra::lost_symmetry;
use lacuna::formats::{
    Candidate, MATCHING, ORDERS, Profile, candidates, choose_format, heaviest_diagonal, reorder,
};
use lacuna::ranks::Survey;
use lacuna::solvers::{RitzValues, balanced, explain};
use lacuna::{
    Chosen, Complex64, Csr, Device, DeviceInfo, Format, LinearSystem, NumberType, Scalar, Structure, Tuned,
    default_device, survey_ranks, tune_format,
};
use lacuna_measure::failure::Result;
use lacuna_measure::input::{Source, set_threads};
use lacuna_measure::out;
use lacuna_measure::quantity::{bytes, many, thousands};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// Lanczos steps of the probe, and the tolerance for which it estimates iterations.
const LANCZOS_STEPS: usize = 30;
const TOLERANCE: f64 = 1e-8;

pub(crate) fn run(args: &InfoArgs) -> Result<()> {
    let pictures = [("--plot", args.plot.as_deref()), ("--histogram", args.histogram.as_deref())];
    pictures
        .iter()
        .try_for_each(|(option, path)| path.map_or(Ok(()), |path| plot::check_option(option, path)))?;
    let outputs = [("--json", args.report.json.as_deref()), pictures[0], pictures[1]];
    out::check_outputs(&outputs, &[("the matrix", Some(&args.matrix))])?;
    set_threads(args.threads)?;
    let source = Source::open(&args.matrix)?;
    match source.number_type(None, false)? {
        NumberType::C32 | NumberType::C64 => {
            describe(args, &source, source.read::<Complex64>(args.report.quiet)?)
        }
        NumberType::F32 | NumberType::F64 => describe(args, &source, source.read::<f64>(args.report.quiet)?),
    }
}

fn describe<T: Scalar>(args: &InfoArgs, source: &Source, a: Csr<T>) -> Result<()> {
    let reordered = match args.reorder.as_str() {
        "none" => None,
        name => reorder(&a, name)?,
    };
    let a = &Arc::new(reordered.map(|order| a.permuted(&order)).transpose()?.unwrap_or(a));
    let facts = Facts::of(args, source, a)?;
    out::report(args.report.quiet, args.report.json.as_deref(), || facts.text(), || facts.json())?;
    if let Some(path) = &args.plot {
        plot::save(&plot::spy(&facts.name(), a), path)?;
    }
    if let Some(path) = &args.histogram {
        plot::save(&plot::rows(&facts.name(), &facts.lengths), path)?;
    }
    Ok(())
}

/// The largest number of classes of row lengths.
const CLASSES: usize = 50;

/// How many rows have how many entries.
pub(crate) struct Lengths {
    /// The first and the last length of each class, and the number of its rows.
    pub(crate) classes: Vec<[usize; 3]>,
}

impl Lengths {
    pub(crate) fn of<T: Scalar>(a: &Csr<T>) -> Self {
        let lengths = || a.row_ptr().windows(2).map(|ends| (ends[1] - ends[0]) as usize);
        let longest = lengths().max().unwrap_or(0);
        let width = (longest + 1).div_ceil(CLASSES).max(1);
        let class = |k: usize| [k * width, (k + 1) * width - 1, 0];
        let mut classes: Vec<_> = (0..=longest / width).map(class).collect();
        lengths().for_each(|length| classes[length / width][2] += 1);
        Lengths { classes }
    }
}

/// The facts about a matrix.
struct Facts<'a> {
    matrix: &'a str,
    notes: Vec<String>,
    kind: NumberType,
    bytes: usize,
    structure: Structure,
    suggested: Suggested,
    /// Every format, cheapest first.
    candidates: Vec<Candidate>,
    /// Only if all reasons are requested: what a device measured, and the effect of each row order.
    measured: Option<Measured>,
    orders: Vec<Ordered>,
    scaling: Option<Scaling>,
    /// By how much entries differ from their mirror images, if the matrix is not Hermitian by rounding alone.
    by_rounding: Option<f64>,
    /// Why it is singular, if its structure or the sums of its rows or columns say so.
    singular: Vec<String>,
    /// How the rows would be divided, if that is asked for.
    divided: Option<Survey>,
    /// The name of the order of rows and columns, `none` for the given one.
    reordered: &'a str,
    lengths: Lengths,
    why: bool,
}

/// What a solve chooses on the default backend if nothing is asked for.
struct Suggested {
    /// Method, preconditioner and row order; the reason if the system cannot be set up.
    solver: Result<[Chosen; 3], String>,
    format: Chosen,
}

impl Suggested {
    fn of<T: Scalar>(
        dev: &Device,
        a: &Arc<Csr<T>>,
        structure: &Structure,
        candidates: &[Candidate],
    ) -> Result<Self> {
        let chosen = LinearSystem::new(a.clone()).on(dev).prepare().map(|system| {
            let solver = [system.method(), system.preconditioner(), system.order()].map(Clone::clone);
            Suggested { solver: Ok(solver), format: with_bytes(system.format(), a.rows(), candidates) }
        });
        chosen.or_else(|error| {
            let costs = dev.formats(a.rows(), Format::bytes(&**a))?;
            let (name, why) = choose_format(a, structure, costs);
            Ok(Suggested { solver: Err(error.to_string()), format: Chosen::new(name, why) })
        })
    }
}

/// A choice of a format whose reason begins with the bytes of a product in it and in `csr`.
fn with_bytes(format: &Chosen, rows: usize, candidates: &[Candidate]) -> Chosen {
    let bytes =
        |name: &str| candidates.iter().find(|c| c.name == name).map(|c| c.bytes as f64 / rows.max(1) as f64);
    match (bytes(&format.name), bytes("csr")) {
        (Some(own), Some(csr)) if !format.why.contains("bytes a row") => {
            Chosen::new(&format.name, format!("{own:.1} bytes a row, {csr:.1} in csr; {}", format.why))
        }
        _ => format.clone(),
    }
}

/// A row order by name, and what the matrix is before and after it; `None` if there is no such order.
type Ordered = (&'static str, Option<[Profile; 2]>);

/// Every row order of a square matrix that changes it, and whether there is one for its diagonal.
fn orders<T: Scalar>(a: &Csr<T>) -> Result<Vec<Ordered>> {
    let mut orders = Vec::new();
    for order in ORDERS {
        if let Some(permutation) = reorder(a, order.name)? {
            let permuted = a.permuted(&permutation)?;
            orders.push((order.name, Some([a, &permuted].map(Profile::of))));
        }
    }
    let rows = heaviest_diagonal(a);
    if rows.as_ref().is_none_or(|rows| (0..).zip(rows.order()).any(|(new, old)| new != *old)) {
        let moved = rows.map(|rows| a.rearranged(Some(&rows), None)).transpose()?;
        orders.push((MATCHING.name, moved.map(|moved| [a, &moved].map(Profile::of))));
    }
    Ok(orders)
}

/// What a device measured.
struct Measured {
    device: DeviceInfo,
    tuned: Tuned,
    /// Of `|D|⁻¹ A`, if `A` is Hermitian.
    ritz: Option<RitzValues>,
}

impl Measured {
    fn of<T: Scalar>(dev: &Device, a: &Arc<Csr<T>>, structure: &Structure) -> Result<Self> {
        let tuned = tune_format(dev, a, structure)?;
        let mut ritz = None;
        if structure.hermitian {
            let balanced = dev.matrix::<T>(Arc::new(balanced(a)?))?;
            ritz = Some(RitzValues::of(dev, &balanced, LANCZOS_STEPS)?);
        }
        Ok(Measured { device: dev.info().clone(), tuned, ritz })
    }
}

impl<'a> Facts<'a> {
    fn of<T: Scalar>(args: &'a InfoArgs, source: &'a Source, a: &Arc<Csr<T>>) -> Result<Self> {
        let structure = Structure::of(&**a);
        let (matrix, why) = (source.name(), args.why);
        let dev = &default_device()?;
        let measured = if why { Some(Measured::of(dev, a, &structure)?) } else { None };
        let candidates = candidates(a, &structure, dev.formats(a.rows(), Format::bytes(&**a))?);
        let suggested = Suggested::of(dev, a, &structure, &candidates)?;
        let orders = if why && a.rows() == a.cols() { orders(a)? } else { Vec::new() };
        let scaling = if why { Scaling::of(a) } else { None };
        let (kind, bytes) = (T::KIND, a.bytes());
        let notes = source.notes();
        let divided = args.ranks.map(|ranks| survey_ranks(a.clone(), ranks)).transpose()?;
        Ok(Facts {
            matrix,
            notes,
            kind,
            bytes,
            structure,
            suggested,
            candidates,
            measured,
            orders,
            scaling,
            by_rounding: lost_symmetry(a),
            singular: explain(a, &[]),
            divided,
            reordered: &args.reorder,
            lengths: Lengths::of(a),
            why,
        })
    }

    /// The matrix, and its order if that is not the given one.
    fn name(&self) -> String {
        match self.reordered {
            "none" => self.matrix.into(),
            order => format!("{}, {order}", self.matrix),
        }
    }

    fn symmetry(&self) -> &'static str {
        let s = &self.structure;
        match (s.rows == s.cols, self.kind.is_complex()) {
            (false, _) => "none, not square",
            (true, true) if s.hermitian && s.symmetric => "Hermitian and symmetric",
            (true, true) if s.hermitian => "Hermitian",
            (true, true) if s.symmetric => "symmetric, not Hermitian",
            (true, false) if s.symmetric => "symmetric",
            (true, _) if s.skew_symmetric => "skew-symmetric",
            (true, _) if s.pattern_symmetric => "of the pattern only",
            (true, _) => "none",
        }
    }

    fn diagonal(&self) -> String {
        let s = &self.structure;
        let zeros = match s.first_zero_diagonal {
            Some(row) => {
                format!("{} zero or missing, the first in row {row} (counted from 0)", s.zero_diagonal)
            }
            None => "no zeros".into(),
        };
        let sign = if s.diagonal_positive { ", all positive" } else { "" };
        let dominant = if self.is_dominant() { ", dominant in every row" } else { "" };
        zeros + sign + dominant
    }

    /// Whether the diagonal dominates in every row, of which none is empty.
    fn is_dominant(&self) -> bool {
        self.structure.diagonally_dominant && self.structure.zero_diagonal == 0
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_text(&mut text);
        text
    }

    fn write_text(&self, text: &mut String) -> std::fmt::Result {
        let s = &self.structure;
        let [rows, cols] = [s.rows, s.cols].map(|n| thousands(n as u64));
        writeln!(
            text,
            "{}: {rows} x {cols}, {}, {}, {} as compressed rows",
            self.name(),
            many(s.nnz, "entry", "entries"),
            self.kind.name(),
            bytes(self.bytes as u64)
        )?;
        let by_rounding = match self.by_rounding {
            Some(off) => {
                format!("; lost by rounding alone: entries differ by {off:.1e} of themselves at most")
            }
            None => String::new(),
        };
        writeln!(text, "  symmetry    {}{by_rounding}", self.symmetry())?;
        writeln!(
            text,
            "  rows        {} to {} entries, {:.2} on average, standard deviation {:.2}, {} empty; {:.0} % of the lengths follow no pattern",
            s.row_min,
            s.row_max,
            s.row_mean,
            s.row_std,
            s.empty_rows,
            100.0 * s.surprising_rows
        )?;
        writeln!(text, "  diagonal    {}", self.diagonal())?;
        writeln!(
            text,
            "  bandwidth   {} below, {} above the diagonal; {} diagonals in use",
            thousands(s.lower_bandwidth as u64),
            thousands(s.upper_bandwidth as u64),
            thousands(s.diagonals as u64)
        )?;
        let fill = s.block_fill.iter().map(|(size, fill)| format!("{size}x{size} {:.0} %", 100.0 * fill));
        let fill = fill.collect::<Vec<_>>().join(", ");
        writeln!(text, "  blocks      filled: {fill}")?;
        for line in &self.singular {
            writeln!(text, "  singular    {line}")?;
        }
        if let Some(scaling) = &self.scaling {
            scaling.write(text, s.rows.min(s.cols))?;
        }
        let Suggested { solver, format } = &self.suggested;
        writeln!(text, "  format      {}: {}", format.name, format.why)?;
        if self.why {
            self.write_candidates(text)?;
        }
        if let Some(divided) = &self.divided {
            let speed = divided.speed_up();
            writeln!(
                text,
                "  ranks       {divided}; at most {speed:.2} times as fast as one, by balance and halo alone"
            )?;
        }
        match solver {
            Ok([method, precond, order]) => {
                writeln!(text, "  method      {}: {}", method.name, method.why)?;
                writeln!(text, "  precond     {}: {}", precond.name, precond.why)?;
                match order.name.as_str() {
                    "none" => Ok(()),
                    name => writeln!(text, "  order       {name}: {}", order.why),
                }
            }
            Err(why) => writeln!(text, "  method      none, a solve cannot be set up: {why}"),
        }
    }

    /// A line for each format.
    fn write_candidates(&self, text: &mut String) -> std::fmt::Result {
        let csr = self.candidates.iter().find(|c| c.name == "csr").map_or(f64::NAN, |c| c.cost);
        let times = self.measured.iter().flat_map(|measured| &measured.tuned.times);
        let seconds = |of: &str| times.clone().find(|(name, _)| *name == of).map(|(_, seconds)| *seconds);
        let wide = self.candidates.iter().map(|c| c.name.len()).max().unwrap_or(0);
        for c in &self.candidates {
            // Some that are refused were never counted.
            let each = match c.bytes {
                0 if c.refused.is_some() => format!("{:22}", ""),
                bytes => format!("{:9.1} bytes a row;", bytes as f64 / self.structure.rows.max(1) as f64),
            };
            let measured = match (seconds(c.name), seconds("csr")) {
                (Some(own), Some(csr)) => format!(", measured {:.2} in {:.1} us", own / csr, own * 1e6),
                _ => String::new(),
            };
            let verdict = match c.refused {
                Some(why) => format!("no: {why}"),
                None => format!("expected {:.2} of csr's time{measured}", c.cost / csr),
            };
            writeln!(text, "              {:wide$} {each} {verdict}", c.name)?;
        }
        if let Some(Measured { device, tuned, ritz }) = &self.measured {
            let when = if tuned.remembered { "before" } else { "now" };
            writeln!(text, "  measured    {when}, on {}: {}", device.backend, device.name)?;
            if let Some(line) = ritz.as_ref().and_then(|ritz| spectrum(ritz, !self.singular.is_empty())) {
                writeln!(text, "  spectrum    {line}")?;
            }
        }
        self.orders.iter().try_for_each(|(name, profiles)| match profiles {
            Some([before, after]) => writeln!(text, "  order       {name}: {}", became(before, after)),
            None => writeln!(text, "  order       {name}: no order of the rows has a diagonal without zeros"),
        })
    }

    fn json(&self) -> Value {
        let s = &self.structure;
        let chosen = |chosen: &Chosen| json!({ "name": chosen.name, "why": chosen.why });
        let solver = |k: usize| match &self.suggested.solver {
            Ok(solver) => chosen(&solver[k]),
            Err(why) => json!({ "name": null, "why": why }),
        };
        json!({
            "matrix": self.matrix,
            "rows": s.rows,
            "cols": s.cols,
            "nnz": s.nnz,
            "type": self.kind.name(),
            "bytes": self.bytes,
            "symmetric": s.symmetric,
            "hermitian": s.hermitian,
            "skew_symmetric": s.skew_symmetric,
            "pattern_symmetric": s.pattern_symmetric,
            "symmetric_but_for": self.by_rounding,
            "singular": self.singular,
            "row": {
                "min": s.row_min,
                "max": s.row_max,
                "mean": s.row_mean,
                "std": s.row_std,
                "empty": s.empty_rows,
                "surprising": s.surprising_rows,
                "lengths": self.lengths.classes,
            },
            "diagonal": {
                "zero": s.zero_diagonal,
                "first_zero": s.first_zero_diagonal,
                "positive": s.diagonal_positive,
                "dominant": self.is_dominant(),
            },
            "bandwidth": { "lower": s.lower_bandwidth, "upper": s.upper_bandwidth },
            "diagonals": s.diagonals,
            "block_fill": s.block_fill.iter().map(|(size, fill)| (size.to_string(), json!(fill)))
                .collect::<serde_json::Map<_, _>>(),
            "method": solver(0),
            "format": chosen(&self.suggested.format),
            "formats": self.candidates.iter().map(|c| json!({
                "name": c.name,
                "bytes": (c.bytes > 0 || c.refused.is_none()).then_some(c.bytes),
                "cost": c.refused.is_none().then_some(c.cost),
                "refused": c.refused,
            })).collect::<Vec<_>>(),
            "measured": self.measured.as_ref().map(|Measured { device, tuned, .. }| json!({
                "backend": device.backend,
                "device": device.name,
                "remembered": tuned.remembered,
                "seconds": tuned.times.iter().map(|(name, seconds)| (name.to_string(), json!(seconds)))
                    .collect::<serde_json::Map<_, _>>(),
            })),
            "spectrum": self.measured.as_ref().and_then(|measured| measured.ritz.as_ref()).map(|ritz| json!({
                "steps": ritz.steps(),
                "extremes": ritz.extremes(),
                "negative": ritz.extremes().map(|[low, high]| signs(ritz, low, high)[0]),
                "condition": ritz.condition().filter(|_| self.singular.is_empty()),
                "cg_iterations": ritz.cg_iterations(TOLERANCE).filter(|_| self.singular.is_empty()),
            })),
            "orders": self.orders.iter().map(|(name, profiles)| (name.to_string(), json!(profiles.map(|both| {
                both.map(|p| json!({ "bandwidth": p.bandwidth, "profile": p.profile }))
            })))).collect::<serde_json::Map<_, _>>(),
            "scaling": self.scaling.as_ref().map(Scaling::json),
            "ranks": self.divided.as_ref().map(|divided| json!({
                "halo": divided.halo(),
                "imbalance": divided.imbalance(),
                "speed_up": divided.speed_up(),
                "parts": divided.parts.iter().map(|part| json!({
                    "rows": [part.rows.start, part.rows.end],
                    "places": part.places,
                    "halo": part.halo,
                    "neighbours": part.neighbours,
                })).collect::<Vec<_>>(),
            })),
            "precond": solver(1),
            "order": solver(2),
            "reordered": self.reordered,
            "notes": self.notes,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }
}

/// The numbers of negative and of positive Ritz values; what rounding may have made of 0 counts as neither.
fn signs(ritz: &RitzValues, low: f64, high: f64) -> [usize; 2] {
    let steps = ritz.steps();
    let rounding = 4.0 * f64::EPSILON * steps as f64 * low.abs().max(high.abs());
    let tiny = rounding.max(f64::MIN_POSITIVE);
    [ritz.below(-tiny), steps - ritz.below(tiny)]
}

/// What Ritz values of `|D|⁻¹ A` say. A matrix that is known to be singular has no condition number.
fn spectrum(ritz: &RitzValues, singular: bool) -> Option<String> {
    let [low, high] = ritz.extremes()?;
    let steps = ritz.steps();
    let [negative, positive] = signs(ritz, low, high);
    let said = match (negative, positive, ritz.condition(), ritz.cg_iterations(TOLERANCE)) {
        (0, ..) if singular && positive == steps => "none negative, but A is singular, as said above".into(),
        (0, _, Some(condition), Some(iterations)) if positive == steps => format!(
            "none negative; a condition of at least {condition:.1e}; cg may need {} iterations to {TOLERANCE:e}, or more if it is larger",
            thousands(iterations)
        ),
        (0, 0, ..) => "all are 0, so that A looks singular".into(),
        (0, ..) => "none negative, but the smallest is 0 within rounding, so that A looks singular".into(),
        (_, 0, ..) if negative == steps => "all negative, so that -A looks definite".into(),
        (_, 0, ..) => "none positive, but the largest is 0 within rounding, so that A looks singular".into(),
        _ => format!("{negative} of {steps} negative, so that A is indefinite"),
    };
    Some(format!("of |D|^-1 A, by {steps} Lanczos steps: {low:.1e} to {high:.1e}; {said}"))
}
