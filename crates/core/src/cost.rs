//! What formats cost a device.

/// What a product in a format costs a device, as the time of all its parts together, in that of a byte of `csr`: what a choice of
/// format goes by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The formats it is of, by [`Format::kernel`](crate::Format::kernel), or one of them, by the name it is asked for by.
    pub format: &'static str,
    /// A byte of the matrix and the vectors.
    pub byte: f64,
    /// A place of the matrix, whether it holds an entry or pads.
    pub place: f64,
    /// And a place that pads, above that.
    pub pad: f64,
    /// A row.
    pub row: f64,
    /// A row whose length could not be told from those before it.
    pub surprise: f64,
}

impl Cost {
    /// What goes by bytes alone.
    pub const fn of_bytes(format: &'static str, byte: f64) -> Self {
        Cost { format, byte, place: 0.0, pad: 0.0, row: 0.0, surprise: 0.0 }
    }
    /// And so much more for each place.
    pub const fn and_places(self, place: f64) -> Self {
        Cost { place, ..self }
    }
    /// And so much more for each place that pads.
    pub const fn and_pads(self, pad: f64) -> Self {
        Cost { pad, ..self }
    }
    /// And so much more for each row, and for each of a surprising length.
    pub const fn and_rows(self, row: f64, surprise: f64) -> Self {
        Cost { row, surprise, ..self }
    }
    /// That of a format by its name, else of its kernel.
    pub fn find<'a>(costs: &'a [Self], name: &str, kernel: &str) -> Option<&'a Self> {
        let of = |format: &str| costs.iter().find(|cost| cost.format == format);
        of(name).or_else(|| of(kernel))
    }
}
