//! How the rows and the local memory of a generated kernel are divided.
use crate::source::{self, SEGMENT};
use crate::write::{self, Generated, Shape};
use lacuna_engine::encode::{self, Encoded};
use lacuna_engine::{Format, Scalar};

mod resident;
mod streaming;

/// What a layout depends on of the device.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Whether it is NVIDIA's: warps of 32 and 16-byte accesses that are single.
    pub nvidia: bool,
    /// Bytes of the second-level cache where loads can say what is to stay there (NVIDIA's compute capability 8.0), 0
    /// where they cannot.
    pub cache: usize,
    /// Bytes of local memory a group may use.
    pub local: usize,
    /// Work-items of a group at the most.
    pub largest: usize,
    /// Work-items of a group that are wanted; 0 chooses.
    pub size: usize,
    /// Groups that share a segment, a power of two; 0 chooses.
    pub ways: usize,
    /// Groups that run at once.
    pub units: usize,
    /// The words of OpenCL C for a compiler of another language: a name and the text.
    pub prelude: Option<(&'static str, &'static str)>,
}

/// What a layout depends on of a matrix.
#[derive(Clone, Copy)]
pub struct MatrixFacts<'a, T> {
    /// The host's form.
    pub format: &'a dyn Format<T>,
    /// The serial of its handle.
    pub serial: u32,
    /// Whether its entries may be laid out anew.
    pub stages: bool,
}

/// Whether a program goes over vectors of several lengths. Operations over shorter ones are shared out among more groups where
/// vectors stay in memory.
pub fn has_shorter<T>(e: &Encoded<T>) -> bool {
    e.vectors.iter().any(|v| v.len < e.n as usize)
}

/// Entries of a row beyond which it is long, on average.
const LONG_ROW: usize = 16;

impl<T: Scalar> MatrixFacts<'_, T> {
    /// Whether rows have so many entries that more groups than there are segments pay.
    pub fn has_long_rows(&self) -> bool {
        self.format.nnz() > LONG_ROW * self.format.shape().0
    }
}

/// A program as a kernel generated for it: the text, what lies in its buffers, and how it is launched.
pub struct Layout {
    /// The whole text, an entry point `solve` and one `advance`.
    pub text: String,
    /// The number of groups.
    pub groups: usize,
    /// What the text was written for.
    pub shape: Shape,
    /// What follows the shared texts, and the numbers it reads.
    pub generated: Generated,
    /// Words of one half of the buffer of sums.
    pub half: usize,
    /// Words of the buffer of operands.
    pub shared: usize,
    /// Bytes of each local buffer: terms, sums, rows of a product, its operand, cells, control block, numbers of blocks, columns and
    /// values of entries that stay there.
    pub local: [usize; 9],
}

/// Work-items of a group where so many are wanted: whole segments of them, no more than there may be but one for each row.
fn wanted_size(wanted: usize, rows: usize, most: usize) -> usize {
    wanted.min(most / SEGMENT * SEGMENT).next_multiple_of(SEGMENT).max(rows)
}

/// Segments of a chunk that a lane of a warp has at the most, a power of two.
fn pieces(segments: usize) -> usize {
    segments.min(SEGMENT).div_ceil(32).next_power_of_two()
}

/// How local memory is divided, in numbers.
struct Sizes {
    groups: usize,
    /// Sums of one exchange at the most.
    sums: usize,
    /// Bytes.
    params: usize,
    got: usize,
    rows_at: usize,
    terms: usize,
    widest: usize,
}

impl Layout {
    fn with_kernel<T: Scalar>(e: &Encoded<T>, device: Device, shape: Shape, room: Sizes) -> Option<Layout> {
        let Sizes { groups, sums, params, got, rows_at, terms, widest } = room;
        let (number, cells, n) = (size_of::<T>(), e.cells.len(), e.n as usize);
        let segments = n.div_ceil(SEGMENT);
        let generated = write::write(e, &shape).filter(|generated| generated.sums <= sums)?;
        let parts = if number == 16 { 2 } else { 1 };
        let words = shape.ways * segments + segments.div_ceil(SEGMENT);
        let half = (generated.sums * words * parts).max(groups) * 2;
        let shared = if shape.one || shape.streaming { 2 } else { 4 * parts * n };
        let control = 8 * encode::CONTROL_WORDS as usize;
        let stay = shape.stay.iter().sum::<usize>().max(1);
        let numbers = [terms, got, rows_at, widest, cells, stay].map(|count| count * number);
        let [terms, got, rows_at, widest, cells, values] = numbers;
        let local = [terms, got, rows_at, widest, cells, control, params, 2 * stay, values];
        let text = source::text(T::KIND, device.nvidia, device.prelude, &shape, &generated.text);
        Some(Layout { text, groups, shape, generated, half, shared, local })
    }
}

/// Percent of so many bytes that have room in so many of a cache; all where loads cannot say what is to stay there.
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
