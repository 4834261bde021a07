//! Choice of a format: all candidates with their bytes, and the choice with its reason.
use crate::choose::footprint::{Footprint, Footprints};
use crate::{Bcsr, Csr, Dense, Dia, Hyb, Packed, Pkt, Sell, Stencil, Structure, storage::bcsr::BLOCK_SIZES};
use lacuna_engine::text::{did_you_mean, shown_word};
use lacuna_engine::{Cost, Error, Format, MAX_LANES, Result, Scalar, compiled_here};
use std::cell::OnceCell;
use std::sync::Arc;

/// A named format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormatInfo {
    /// The name users select it by.
    pub name: &'static str,
    /// The stem of its kernels: see [`Format::kernel`].
    pub kernel: &'static str,
    /// A description.
    pub description: &'static str,
    /// Whether values may be rounded: such a format is chosen only by name.
    pub rounds: bool,
    /// Whether the layout depends on the values, so that other values on the same pattern may not be
    /// representable.
    pub by_values: bool,
}

impl FormatInfo {
    const fn new(name: &'static str, kernel: &'static str, description: &'static str) -> Self {
        FormatInfo { name, kernel, description, rounds: false, by_values: false }
    }
    const fn by_values(self) -> Self {
        FormatInfo { by_values: true, ..self }
    }
}

/// All formats; the first is the one that all others are converted from.
pub const FORMATS: &[FormatInfo] = &[
    FormatInfo::new("csr", "csr", "compressed rows: suits everything"),
    FormatInfo::new("stencil", "stencil", "constant coefficients on a grid, no matrix in memory").by_values(),
    FormatInfo::new("dia", "dia", "diagonals, without column indices: grids"),
    FormatInfo::new("dia-sym", "dia", "diagonals of a symmetric matrix, each pair stored once").by_values(),
    FormatInfo::new("ell", "ell", "ELLPACK: rows of about one length"),
    FormatInfo::new("sell", "sell", "sliced ELLPACK, SELL-32-256: rows of any lengths"),
    FormatInfo::new(
        "packed",
        "packed",
        "csr with 16-bit columns, and values in half the bytes where that is exact",
    )
    .by_values(),
    FormatInfo {
        rounds: true,
        by_values: true,
        ..FormatInfo::new("packed-f32", "packed", "packed, every value rounded to half its bytes")
    },
    FormatInfo::new(
        "pkt",
        "pkt",
        "packets of 1024 rows with 16-bit columns: rows in parts that are coupled in themselves",
    ),
    FormatInfo::new(
        "hyb",
        "hyb",
        "ELLPACK with the rest in coordinates: a few rows much longer than the others",
    ),
    FormatInfo::new("coo", "coo", "coordinates: rows of lengths that follow no rule"),
    FormatInfo::new("bcsr2", "bcsr", "compressed rows of 2x2 blocks: two unknowns a node"),
    FormatInfo::new("bcsr3", "bcsr", "compressed rows of 3x3 blocks: three unknowns a node"),
    FormatInfo::new("bcsr4", "bcsr", "compressed rows of 4x4 blocks: four unknowns a node"),
    FormatInfo::new("bcsr5", "bcsr", "compressed rows of 5x5 blocks: five unknowns a node"),
    FormatInfo::new("bcsr6", "bcsr", "compressed rows of 6x6 blocks: six unknowns a node"),
    FormatInfo::new("bcsr7", "bcsr", "compressed rows of 7x7 blocks: seven unknowns a node"),
    FormatInfo::new("bcsr8", "bcsr", "compressed rows of 8x8 blocks: eight unknowns a node"),
    FormatInfo::new("dense", "dense", "every place, row by row: matrices with few zeros"),
];

/// Formats with an option, which are taken by name alone: the name with what stands for the number, and a description.
pub const VARIANTS: &[(&str, &str)] = &[
    (
        "csr:lanes=W",
        "csr with W lanes for each row sum, a power of two up to 32: 1 is a thread for each row, 32 a warp",
    ),
    ("hyb:width=K", "hyb with the first K entries of each row in slices"),
];

/// A format with its option.
enum Variant {
    Lanes(usize),
    Width(usize),
}

impl Variant {
    /// Reads a name with an option; `None` for one without.
    fn named(name: &str) -> Option<Result<Self>> {
        let (_, option) = name.split_once(':')?;
        let number = |text: &str| text.parse::<usize>().ok();
        let read = match (name.split(':').next(), option.split_once('=')) {
            (Some("csr"), Some(("lanes", count))) => {
                number(count).filter(|w| w.is_power_of_two() && *w <= MAX_LANES).map(Variant::Lanes)
            }
            (Some("hyb"), Some(("width", count))) => number(count).map(Variant::Width),
            _ => None,
        };
        Some(read.ok_or_else(|| {
            let known: Vec<_> = VARIANTS.iter().map(|(name, about)| format!("{name} ({about})")).collect();
            let message = format!("expected {}, got `{}`", known.join(" or "), shown_word(name));
            Error::Argument { what: "format".into(), message }
        }))
    }
}

/// Checks a name that [`convert`] takes: one of [`FORMATS`], or of [`VARIANTS`] with a number.
///
/// # Errors
/// [`Error::Argument`] with what is expected.
pub fn check_format(name: &str) -> Result<()> {
    match Variant::named(name) {
        Some(variant) => variant.map(drop),
        None if FORMATS.iter().any(|f| f.name == name) => Ok(()),
        None => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> Error {
    let names: Vec<_> = FORMATS.iter().map(|f| f.name).collect();
    let near = did_you_mean(names.iter().copied(), name);
    let message = format!("expected one of {}, got `{}`{near}", names.join(", "), shown_word(name));
    Error::Argument { what: "format".into(), message }
}

/// The matrix in the format of that name: one of [`FORMATS`], or of [`VARIANTS`] with a number.
///
/// # Errors
/// [`Error::Argument`] for an unknown name; the errors of the format's conversion.
pub fn convert<T: Scalar>(a: &Arc<Csr<T>>, name: &str) -> Result<Arc<dyn Format<T>>> {
    converted(a, name).map_err(|error| match error {
        Error::Unsupported { message, .. } => {
            Error::Unsupported { operation: format!("format {name}"), message }
        }
        other => other,
    })
}

fn converted<T: Scalar>(a: &Arc<Csr<T>>, name: &str) -> Result<Arc<dyn Format<T>>> {
    compiled_here!(T, |a: &Arc<Csr<T>>, name: &str| -> Result<Arc<dyn Format<T>>> {
        Ok(match name {
            "csr" => a.clone(),
            "stencil" => Arc::new(Stencil::from_csr(a)?),
            "dia" => Arc::new(Dia::from_csr(a)?),
            "dia-sym" => Arc::new(Dia::symmetric(a)?),
            "ell" => Arc::new(Sell::ellpack(a)?),
            "sell" => Arc::new(Sell::from_csr(a)?),
            "packed" => Arc::new(Packed::from_csr(a)?),
            "packed-f32" => Arc::new(Packed::rounded(a)?),
            "pkt" => Arc::new(Pkt::from_csr(a)?),
            "hyb" => Arc::new(Hyb::from_csr(a)?),
            "coo" => Arc::new(Hyb::coo(a)?),
            "dense" => Arc::new(Dense::from_csr(a)?),
            other => {
                if let Some(size) = block_size(other) {
                    return Ok(Arc::new(Bcsr::from_csr(a, size)?));
                }
                return match Variant::named(other) {
                    Some(Ok(Variant::Lanes(lanes))) => Ok(Arc::new(a.with_lanes(lanes)?)),
                    Some(Ok(Variant::Width(width))) => Ok(Arc::new(Hyb::with_width(a, width)?)),
                    Some(Err(error)) => Err(error),
                    None => Err(unknown(name)),
                };
            }
        })
    })(a, name)
}

/// The block size of a format of blocks.
pub(crate) fn block_size(name: &str) -> Option<usize> {
    let size = name.strip_prefix("bcsr")?.parse().ok()?;
    BLOCK_SIZES.contains(&size).then_some(size)
}

/// A format that a matrix could be stored in.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its name in [`FORMATS`].
    pub name: &'static str,
    /// Bytes the matrix would take; an estimate for the blocks of a large matrix.
    pub bytes: usize,
    /// Estimated cost of a product from the device's cost model of this format: bytes moved (including
    /// vectors), places, padded places and rows. Infinite if the format is refused or the device has no
    /// kernel for it.
    pub cost: f64,
    /// Why it is excluded, if it is. When selected by name, blocks are allowed however few entries they hold.
    pub refused: Option<&'static str>,
}

/// The formats that handle rows of different lengths, which may justify more bytes. All others exist to save
/// bytes.
const EVENING: [&str; 4] = ["ell", "sell", "hyb", "coo"];
/// A row or column is dense if it has more entries than `DENSE_ROOTS` times the square root of its number of
/// places, as in COLAMD (Davis, Gilbert, Larimore, Ng, 2004, section 4.2), or more than `DENSE_PART` of its
/// places; in both cases it must have more than `DENSE_MEANS` times the average.
const DENSE_ROOTS: f64 = 10.0;
const DENSE_PART: f64 = 0.1;
const DENSE_MEANS: f64 = 4.0;

/// Whether the matrix has a dense row or column.
fn has_dense_line<T: Scalar>(a: &Csr<T>, s: &Structure) -> bool {
    let is_dense = |longest: usize, places: usize, lines: usize| {
        let mean = a.nnz() as f64 / lines.max(1) as f64;
        let dense = (DENSE_ROOTS * (places as f64).sqrt()).min(DENSE_PART * places as f64);
        longest as f64 > dense.max(DENSE_MEANS * mean)
    };
    if is_dense(s.row_max, a.cols(), a.rows()) {
        return true;
    }
    let mut lengths = vec![0u32; a.cols()];
    a.col_idx().iter().for_each(|&j| lengths[j as usize] += 1);
    is_dense(lengths.into_iter().max().unwrap_or(0) as usize, a.rows(), a.cols())
}

/// What the costs of a matrix in all formats depend on.
struct Candidates<'a, T: Scalar> {
    a: &'a Csr<T>,
    s: &'a Structure,
    costs: &'a [Cost],
    footprints: Footprints<'a, T>,
    dense_line: OnceCell<bool>,
}

impl<'a, T: Scalar> Candidates<'a, T> {
    fn new(a: &'a Csr<T>, s: &'a Structure, costs: &'a [Cost]) -> Self {
        Candidates { a, s, costs, footprints: Footprints::new(a, s), dense_line: OnceCell::new() }
    }

    /// The cost of a product by the device's model.
    fn cost(&self, of: &Cost, bytes: usize, places: usize) -> f64 {
        cost(self.a, of, (bytes, places), self.s.surprising_rows)
    }

    /// Why so many bytes are too many, if they are.
    fn too_large(&self, name: &str, bytes: usize) -> Option<&'static str> {
        match bytes > Format::bytes(self.a) {
            _ if self.a.nnz() == 0 && name != "csr" => Some("there are no entries"),
            false => None,
            true if !EVENING.contains(&name) => Some("more bytes than csr"),
            true => self
                .dense_line
                .get_or_init(|| has_dense_line(self.a, self.s))
                .then_some("more bytes than csr, and a row or column is dense"),
        }
    }

    fn candidate(&self, format: &FormatInfo) -> Candidate {
        let Footprint { bytes, places, refused } = self.footprints.format(format.name);
        let cost = Cost::find(self.costs, format.name, format.kernel);
        let refused = refused.or(cost.is_none().then_some("the backend has no kernel for it"));
        let refused = refused.or_else(|| self.too_large(format.name, bytes));
        let cost = match (refused, cost) {
            (None, Some(cost)) => self.cost(cost, bytes, places),
            _ => f64::INFINITY,
        };
        Candidate { name: format.name, bytes, cost, refused }
    }

    /// A cost that the format cannot fall below, found without its footprint: no format but `stencil` stores less
    /// than half of the values.
    fn least_cost(&self, format: &FormatInfo) -> f64 {
        least_cost(self.a, self.costs, format, self.s.surprising_rows)
    }
}

/// The cost of a product of a matrix that has so many bytes and places in a format, by the device's model.
fn cost<T: Scalar>(a: &Csr<T>, of: &Cost, (bytes, places): (usize, usize), surprising: f64) -> f64 {
    let vectors = (a.rows() + a.cols()) * size_of::<T>();
    let of_row = of.row + of.surprise * surprising;
    let of_places = of.place * places as f64 + of.pad * places.saturating_sub(a.nnz()) as f64;
    of.byte * (bytes + vectors) as f64 + of_places + of_row * a.rows() as f64
}

fn least_cost<T: Scalar>(a: &Csr<T>, costs: &[Cost], format: &FormatInfo, surprising: f64) -> f64 {
    let nnz = a.nnz();
    let bytes = if format.name == "stencil" { 0 } else { nnz * size_of::<T>() / 2 };
    let of = Cost::find(costs, format.name, format.kernel);
    of.map_or(f64::INFINITY, |of| cost(a, of, (bytes, nnz), surprising))
}

/// The matrix as a stencil, and the reason in words, where no other format can be cheaper, whatever else its structure is:
/// [`choose_format`] chooses the same and takes an analysis for it.
pub fn choose_stencil<T: Scalar>(a: &Csr<T>, costs: &[Cost]) -> Option<(Stencil<T>, String)> {
    compiled_here!(T, |a: &Csr<T>, costs: &[Cost]| -> Option<(Stencil<T>, String)> {
        let (name, all_surprise, none) = ("stencil", 1.0, 0.0);
        let of = Cost::find(costs, name, name)?;
        let stencil = Stencil::from_csr(a).ok().filter(|_| a.nnz() > 0)?;
        let bytes = stencil.bytes();
        let own = cost(a, of, (bytes, a.nnz()), all_surprise);
        let others = FORMATS.iter().filter(|format| format.name != name);
        let cheapest = others.map(|other| least_cost(a, costs, other, none)).fold(f64::INFINITY, f64::min);
        (own < cheapest && bytes <= Format::bytes(a)).then(|| (stencil, saved(a, bytes)))
    })(a, costs)
}

/// What a format saves, in words.
fn saved<T: Scalar>(a: &Csr<T>, bytes: usize) -> String {
    let rows = a.rows().max(1) as f64;
    let [own, plain] = [bytes, Format::bytes(a)].map(|bytes| bytes as f64 / rows);
    format!("{own:.1} bytes a row, {plain:.1} in csr")
}

/// Every format with its cost for a matrix, cheapest first. `costs` is the device's cost model
/// ([`lacuna_engine::Backend::formats`]); a format that is not listed cannot be run.
pub fn candidates<T: Scalar>(a: &Csr<T>, s: &Structure, costs: &[Cost]) -> Vec<Candidate> {
    compiled_here!(T, |a: &Csr<T>, s: &Structure, costs: &[Cost]| -> Vec<Candidate> {
        let of = Candidates::new(a, s, costs);
        by_cost(FORMATS.iter().map(|format| of.candidate(format)).collect())
    })(a, s, costs)
}

fn by_cost(mut all: Vec<Candidate>) -> Vec<Candidate> {
    all.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    all
}

/// The cheapest candidate and the reason, in words.
pub fn choose_format<T: Scalar>(a: &Csr<T>, s: &Structure, costs: &[Cost]) -> (&'static str, String) {
    cheapest(a, s, costs, |_| true)
}

/// The cheapest candidate that can hold any values on the pattern of the matrix (`FormatInfo::by_values`),
/// and the reason, in words.
pub fn choose_lasting_format<T: Scalar>(a: &Csr<T>, s: &Structure, costs: &[Cost]) -> (&'static str, String) {
    let lasts = |name: &str| FORMATS.iter().any(|format| format.name == name && !format.by_values);
    cheapest(a, s, costs, lasts)
}

/// The first of the cheapest formats; those that cannot be cheaper than one before are not examined.
fn cheapest<T: Scalar>(
    a: &Csr<T>,
    s: &Structure,
    costs: &[Cost],
    among: fn(&str) -> bool,
) -> (&'static str, String) {
    compiled_here!(T, |a: &Csr<T>,
                       s: &Structure,
                       costs: &[Cost],
                       among: fn(&str) -> bool|
     -> (&'static str, String) {
        let of = Candidates::new(a, s, costs);
        let mut best: Option<Candidate> = None;
        for format in FORMATS.iter().filter(|format| among(format.name)) {
            let lowest = best.as_ref().map_or(f64::INFINITY, |best| best.cost);
            if best.is_none() || of.least_cost(format) < lowest {
                let next = of.candidate(format);
                if next.refused.is_none() && (best.is_none() || next.cost < lowest) {
                    best = Some(next);
                }
            }
        }
        match best {
            Some(best) if best.name != "csr" => (best.name, saved(a, best.bytes)),
            _ => ("csr", "no other format promises less to move".into()),
        }
    })(a, s, costs, among)
}
