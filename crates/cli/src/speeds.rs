//! Products timed in several formats, in words and as JSON.
use lacuna::formats::Profile;
use lacuna::{DeviceInfo, NumberType, Scalar, TimedProduct, Tuned};
use lacuna_measure::Samples;
use lacuna_measure::quantity::{many, thousands};
use serde_json::{Value, json};
use std::fmt::Write;

/// The measurements of a format.
pub(crate) struct Row {
    name: String,
    /// The number of vectors multiplied at once.
    vectors: u16,
    /// The bytes of the matrix and the vectors, once each.
    bytes: u64,
    seconds: f64,
    /// The interquartile range divided by the median.
    spread: f64,
}

impl Row {
    pub(crate) fn new<T: Scalar>(
        name: String,
        vectors: u16,
        product: &TimedProduct<T>,
        times: &Samples,
    ) -> Self {
        let timing = times.timing();
        let (seconds, spread) = timing.map_or((f64::NAN, f64::NAN), |t| (t.median, t.spread()));
        Row { name, vectors, bytes: product.bytes(), seconds, spread }
    }
    /// The format, with the number of vectors if there are several.
    pub(crate) fn label(&self) -> String {
        if self.vectors == 1 { self.name.clone() } else { format!("{} x {}", self.name, self.vectors) }
    }
    /// Seconds per vector.
    pub(crate) fn seconds_each(&self) -> f64 {
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
    pub(crate) shape: (usize, usize),
    pub(crate) nnz: usize,
    pub(crate) device: DeviceInfo,
    /// Bytes per second.
    pub(crate) triad: f64,
    pub(crate) auto: &'static str,
    /// The results for the plausible formats, if requested.
    pub(crate) tuned: Option<Tuned>,
    /// The row order, with the profiles before and after it if the matrix is square.
    pub(crate) order: (String, Option<[Profile; 2]>),
    pub(crate) rows: Vec<Row>,
    pub(crate) refused: Vec<(String, String)>,
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

    pub(crate) fn text(&self) -> String {
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
        let names = self.rows.iter().map(Row::label).chain(self.refused.iter().map(|(name, _)| name.clone()));
        let wide = names.map(|name| name.len()).max().unwrap_or(0).max(8);
        writeln!(text, "  {:wide$}       time us   spread{each}   GFLOP/s      GB/s   of triad", "format")?;
        for row in &self.rows {
            let mut chosen = String::new();
            for (name, by) in [(Some(self.auto), "auto"), (self.tuned.as_ref().map(Tuned::name), "tune")] {
                if name == Some(row.name.as_str()) && row.vectors == 1 {
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

    pub(crate) fn json(&self) -> Value {
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
