//! How a generated kernel divides rows and local memory.
use crate::source::{self, SEGMENT, pieces};
use crate::write::{self, Generated, Shape};
use lacuna_engine::AnyFormat;
use lacuna_engine::encode::{self, Encoded};

mod resident;
mod streaming;

/// The properties of a device that a layout depends on.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Whether the device is NVIDIA's: warps of 32 and atomic 16-byte accesses.
    pub nvidia: bool,
    /// Bytes of the second-level cache if loads can set an eviction policy (NVIDIA, compute capability 8.0),
    /// else 0.
    pub cache: usize,
    /// Local memory available to a work-group, in bytes.
    pub local: usize,
    /// Maximum work-items of a work-group.
    pub largest: usize,
    /// Requested work-items of a work-group; 0 chooses.
    pub size: usize,
    /// Work-groups that share a segment, a power of two; 0 chooses.
    pub ways: usize,
    /// Work-groups that run at once.
    pub units: usize,
    /// Defines the words of OpenCL C for a compiler of another language: a name and the text.
    pub prelude: Option<(&'static str, &'static str)>,
}

/// The properties of a matrix that a layout depends on.
#[derive(Clone, Copy)]
pub struct MatrixFacts<'a> {
    /// The matrix on the host.
    pub format: &'a AnyFormat,
    /// The serial number of its handle.
    pub serial: u32,
    /// Whether its entries may be repacked.
    pub stages: bool,
}

/// Whether a program has vectors of several lengths. When vectors are streamed, operations over shorter ones
/// are divided among more work-groups.
pub fn has_shorter(e: &Encoded) -> bool {
    e.vectors.iter().any(|v| v.len < e.n as usize)
}

/// Average entries per row above which rows count as long.
const LONG_ROW: usize = 16;

impl MatrixFacts<'_> {
    /// Whether rows are long enough that more work-groups than segments pay.
    pub fn has_long_rows(&self) -> bool {
        self.format.nnz() > LONG_ROW * self.format.shape().0
    }
}

/// The kernel generated for a program: its text, the sizes of its buffers, and its launch shape.
pub struct Layout {
    /// The whole text, with the entry points `solve` and `advance`.
    pub text: String,
    /// Number of work-groups.
    pub groups: usize,
    /// What the text was generated for.
    pub shape: Shape,
    /// The text after the shared sources, and the numbers it reads.
    pub generated: Generated,
    /// Words in one half of the buffer of sums.
    pub half: usize,
    /// Words in the buffer of operands.
    pub shared: usize,
    /// Bytes of each local buffer: terms, sums, rows of a product, its operand, cells, control block,
    /// parameters of the blocks, then columns and values of the entries kept in local memory.
    pub local: [usize; 9],
}

/// The requested number of work-items, rounded up to whole segments, within the limit but at least one for
/// each row.
fn wanted_size(wanted: usize, rows: usize, most: usize) -> usize {
    wanted.min(most / SEGMENT * SEGMENT).next_multiple_of(SEGMENT).max(rows)
}

/// Numbers that a sum takes in an exchange, given one for each of its segments: whole chunks.
fn room(segments: usize) -> usize {
    segments.div_ceil(SEGMENT) * 32 * pieces(segments)
}

/// Sizes of the parts of local memory, in numbers.
struct Sizes {
    groups: usize,
    /// Maximum sums of one exchange.
    sums: usize,
    /// In bytes.
    params: usize,
    got: usize,
    rows_at: usize,
    terms: usize,
    widest: usize,
}

impl Layout {
    fn with_kernel(e: &Encoded, device: Device, shape: Shape, sizes: Sizes) -> Option<Layout> {
        let Sizes { groups, sums, params, got, rows_at, terms, widest } = sizes;
        let (number, cells, n) = (e.kind.size(), e.cells.len(), e.n as usize);
        let segments = n.div_ceil(SEGMENT);
        let generated = write::write(e, &shape).filter(|generated| generated.sums <= sums)?;
        let parts = if number == 16 { 2 } else { 1 };
        let words = shape.ways * room(segments) + room(segments.div_ceil(SEGMENT));
        let half = (generated.sums * words * parts).max(groups) * 2;
        let shared = if shape.one || shape.streaming { 2 } else { 4 * parts * n };
        let control = 8 * encode::CONTROL_WORDS as usize;
        let stay = shape.stay.iter().sum::<usize>().max(1);
        let numbers = [terms, got, rows_at, widest, cells, stay].map(|count| count * number);
        let [terms, got, rows_at, widest, cells, values] = numbers;
        let local = [terms, got, rows_at, widest, cells, control, params, 2 * stay, values];
        let text = source::text(e.kind, device.nvidia, device.prelude, &shape, &generated.text);
        Some(Layout { text, groups, shape, generated, half, shared, local })
    }
}

/// Percentage of `bytes` that fits in `cache` bytes; 100 if loads cannot set an eviction policy.
fn kept_percent(bytes: usize, cache: usize) -> usize {
    if cache > 0 && bytes > cache { 100 * cache / bytes } else { 100 }
}

#[cfg(test)]
mod tests {
    use super::wanted_size;

    #[test]
    fn every_row_has_a_work_item() {
        for (wanted, rows, size) in
            [(256, 512, 512), (512, 256, 512), (100, 256, 256), (usize::MAX, 256, 1024)]
        {
            assert_eq!(wanted_size(wanted, rows, 1024), size, "{wanted} wanted for {rows} rows");
        }
    }
}
