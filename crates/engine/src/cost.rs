//! Cost estimates of formats on a device.

/// Estimated time of a product in one format, in units of the time to read one byte of CSR: the sum of its
/// parts. Used to choose a format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The format: a kernel name ([`Format::kernel`](crate::Format::kernel)), which covers all formats with
    /// that kernel, or the name of one format.
    pub format: &'static str,
    /// Per byte of the matrix and the vectors.
    pub byte: f64,
    /// Per stored place of the matrix, entry or padding.
    pub place: f64,
    /// Additional, per padded place.
    pub pad: f64,
    /// Per row.
    pub row: f64,
    /// Additional, per row of unpredictable length.
    pub surprise: f64,
}

impl Cost {
    /// A cost per byte alone.
    pub const fn of_bytes(format: &'static str, byte: f64) -> Self {
        Cost { format, byte, place: 0.0, pad: 0.0, row: 0.0, surprise: 0.0 }
    }
    /// Adds a cost per place.
    pub const fn and_places(self, place: f64) -> Self {
        Cost { place, ..self }
    }
    /// Adds a cost per padded place.
    pub const fn and_pads(self, pad: f64) -> Self {
        Cost { pad, ..self }
    }
    /// Adds a cost per row, and an additional one per row of unpredictable length.
    pub const fn and_rows(self, row: f64, surprise: f64) -> Self {
        Cost { row, surprise, ..self }
    }
    /// The cost of a format, looked up by its name, then by its kernel.
    pub fn find<'a>(costs: &'a [Self], name: &str, kernel: &str) -> Option<&'a Self> {
        let of = |format: &str| costs.iter().find(|cost| cost.format == format);
        of(name).or_else(|| of(kernel))
    }
}
