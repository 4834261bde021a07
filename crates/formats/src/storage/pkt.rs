//! Packets: consecutive rows whose entries share a short section of x.
use crate::Csr;
use crate::build::cut::cut;
use crate::parallel;
use crate::storage::checks::in_words;
use crate::storage::padding::is_too_much;
use crate::storage::sell::SLICE;
use lacuna_engine::{AlignedVec, Argument, Error, Format, Result, Scalar, is_long, pages};
use std::ops::Range;

/// Rows of a packet, and columns near to them: their section of x is 16 KiB in the widest number type.
pub const PACKET: usize = 1024;
/// Slices of a packet.
const SLICES: usize = PACKET / SLICE;
/// Minimum number of rows per thread.
const GRAIN: usize = 4096;

/// Packets of 1024 rows. An entry whose column is in the same range of 1024 is *near*: it is stored in slices
/// of 32 rows, each as wide as its longest row, with a 16-bit column relative to the packet's first one, so
/// that a processor multiplies by a section of x that it holds in local memory. All others are *far*:
/// compressed rows with 32-bit columns.
///
/// A row sum runs along the places of the row in its slice, then along its far entries, with one fused
/// multiply-add each. A place without an entry holds zero and the column of the row's last near entry, and
/// takes part in the sum. The `j`-th place of lane `l` of a slice that starts at column `p` is at
/// `(p + j) 32 + l`.
///
/// Rows are taken in the given order: an order by connected parts ([`crate::reorder`], `packets`) makes
/// entries near, as the paper's partitioner does. Rows beyond the columns of a matrix have no near entries.
///
/// Differs from the paper: a slice of rows is the work of a warp, where the paper distributes the rows of a
/// packet over threads; far entries are summed with their row, where the paper adds coordinates in a second
/// sweep.
///
/// Reference: Bell and Garland 2008, section 3.6.
///
/// ```
/// use lacuna_formats::Pkt;
/// use lacuna_io::Spec;
///
/// let a = Spec::parse("gen:poisson2d:100x100")?.build::<f64>()?;
/// assert!(Pkt::from_csr(&a)?.far().len() < a.nnz() / 20);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Pkt<T> {
    rows: usize,
    cols: usize,
    nnz: usize,
    /// The start of each slice and the end of the last; then the start of the far entries of each row and the
    /// end of the last.
    words: Vec<u32>,
    near: Vec<u16>,
    far: Vec<u32>,
    /// For all places, then for all far entries.
    values: AlignedVec<T>,
}

impl<T: Scalar> Pkt<T> {
    /// The same matrix in packets.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if more than half of the entries would be far, if slices would have more than
    /// four places per near entry, or if a row has so many far entries that compressed rows would split it
    /// into pieces ([`is_long`]), with the memory it would take; [`Error::OutOfMemory`].
    pub fn from_csr(a: &Csr<T>) -> Result<Self> {
        const OPERATION: &str = "Pkt::from_csr";
        let outline = Outline::of(a);
        if let Some(refusal) = outline.refuses(a) {
            let bytes = [outline.bytes::<T>(), a.bytes()].map(in_words);
            let what = match refusal {
                Refusal::Far => {
                    format!(
                        "{} of {} entries lie outside their packets of {PACKET} rows",
                        outline.far(),
                        a.nnz()
                    )
                }
                Refusal::Padding => {
                    format!("{} entries in packets need {} places", outline.near(a), outline.places())
                }
                Refusal::Row(row) => {
                    format!(
                        "row {row} (counted from 0) has {} entries outside its packet, far more than others, and they are not cut into pieces",
                        outline.far[row]
                    )
                }
            };
            let message = format!(
                "{what}: they would take {}, {} in csr; reorder the rows by packets or keep csr",
                bytes[0], bytes[1]
            );
            return Err(Error::Unsupported { operation: OPERATION.into(), message });
        }
        let (places, far) = (outline.places(), outline.far());
        let words = outline.words();
        let (slice_ptr, far_ptr) = words.split_at(outline.widths.len() + 1);
        let mut near_columns = pages::zeroed::<u16>(OPERATION, places)?;
        let mut far_columns = pages::zeroed::<u32>(OPERATION, far)?;
        let mut values = AlignedVec::<T>::zeroed(OPERATION, places + far)?;
        let (near_values, far_values) = values.split_at_mut(places);
        let packets = a.rows().div_ceil(PACKET);
        let in_slices = |p: usize| {
            let at = |p: usize| slice_ptr[(p * SLICES).min(slice_ptr.len() - 1)] as usize;
            (at(p + 1) - at(p)) * SLICE
        };
        let in_rest = |p: usize| {
            let at = |p: usize| far_ptr[(p * PACKET).min(a.rows())] as usize;
            at(p + 1) - at(p)
        };
        let near = cut(&mut near_columns, (0..packets).map(in_slices));
        let near = near.into_iter().zip(cut(near_values, (0..packets).map(in_slices)));
        let rest = cut(&mut far_columns, (0..packets).map(in_rest));
        let rest = rest.into_iter().zip(cut(far_values, (0..packets).map(in_rest)));
        parallel::for_each_large(a.nnz(), near.zip(rest).enumerate(), |(p, (near, rest))| {
            let widths = &outline.widths[p * SLICES..((p + 1) * SLICES).min(outline.widths.len())];
            fill_packet(a, p * PACKET, widths, near, rest);
        });
        let (rows, cols) = a.shape();
        Ok(Pkt { rows, cols, nnz: a.nnz(), words, near: near_columns, far: far_columns, values })
    }

    /// Bytes of the matrix, and why it is refused, if it is.
    pub(crate) fn footprint(a: &Csr<T>) -> (usize, Option<&'static str>) {
        let outline = Outline::of(a);
        let refused = outline.refuses(a).map(|refusal| match refusal {
            Refusal::Far => "too many entries outside its packets",
            Refusal::Padding => "too much padding",
            Refusal::Row(_) => "a row has too many entries outside its packet",
        });
        (outline.bytes::<T>(), refused)
    }

    /// The start of each slice, in columns of 32 places, and the end of the last.
    pub fn slice_ptr(&self) -> &[u32] {
        &self.words[..=self.rows.div_ceil(SLICE)]
    }
    /// The start of the far entries of each row, and the end of the last.
    pub fn far_ptr(&self) -> &[u32] {
        &self.words[self.rows.div_ceil(SLICE) + 1..]
    }
    /// The column of each place, relative to the first one of its packet.
    pub fn near(&self) -> &[u16] {
        &self.near
    }
    /// The column of each far entry.
    pub fn far(&self) -> &[u32] {
        &self.far
    }
    /// The value of each place.
    pub fn near_values(&self) -> &[T] {
        &self.values[..self.near.len()]
    }
    /// The value of each far entry.
    pub fn far_values(&self) -> &[T] {
        &self.values[self.near.len()..]
    }
}

impl<T: Scalar> Format<T> for Pkt<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn nnz(&self) -> usize {
        self.nnz
    }

    fn kernel(&self) -> &'static str {
        "pkt"
    }

    fn arguments(&self) -> Vec<Argument<'_, T>> {
        vec![
            Argument::Size(self.cols as u32),
            Argument::Indices(&self.words),
            Argument::Short(&self.near),
            Argument::Indices(&self.far),
            Argument::Values(&self.values),
        ]
    }

    fn row(&self, i: usize, x: &[T]) -> T {
        let (first, slice, lane) = (i / PACKET * PACKET, i / SLICE, i % SLICE);
        let places = self.slice_ptr()[slice] as usize..self.slice_ptr()[slice + 1] as usize;
        let near = places.map(|p| p * SLICE + lane).fold(T::zero(), |sum, at| {
            self.near_values()[at].fma(x[first + usize::from(self.near[at])], sum)
        });
        let far = self.far_ptr()[i] as usize..self.far_ptr()[i + 1] as usize;
        far.fold(near, |sum, k| self.far_values()[k].fma(x[self.far[k] as usize], sum))
    }
}

/// The layout of a matrix in packets.
struct Outline {
    /// The width of each slice.
    widths: Vec<u32>,
    /// Far entries of each row.
    far: Vec<u32>,
}

enum Refusal {
    Far,
    Padding,
    Row(usize),
}

impl Outline {
    fn of<T: Scalar>(a: &Csr<T>) -> Self {
        let rows = a.rows();
        let width = |s: usize| {
            let lengths = (s * SLICE..((s + 1) * SLICE).min(rows)).map(|row| near_of(a, row).len() as u32);
            lengths.max().unwrap_or(0)
        };
        let far = |row: usize| (a.row_slices(row).0.len() - near_of(a, row).len()) as u32;
        Outline {
            widths: parallel::collect(rows.div_ceil(SLICE), GRAIN / SLICE, width),
            far: parallel::collect(rows, GRAIN, far),
        }
    }

    fn far(&self) -> usize {
        self.far.iter().map(|&far| far as usize).sum()
    }
    fn near<T: Scalar>(&self, a: &Csr<T>) -> usize {
        a.nnz() - self.far()
    }
    /// Number of places of all slices.
    fn places(&self) -> usize {
        self.widths.iter().map(|&width| width as usize).sum::<usize>().saturating_mul(SLICE)
    }

    fn bytes<T: Scalar>(&self) -> usize {
        let near = self.places().saturating_mul(2 + size_of::<T>());
        let words = self.widths.len() + self.far.len() + 2;
        near.saturating_add(self.far() * (4 + size_of::<T>()) + 4 * words)
    }

    fn refuses<T: Scalar>(&self, a: &Csr<T>) -> Option<Refusal> {
        if 2 * self.far() > a.nnz() {
            return Some(Refusal::Far);
        }
        if is_too_much(self.places(), self.near(a)) || self.places() / SLICE > u32::MAX as usize {
            return Some(Refusal::Padding);
        }
        self.far.iter().position(|&far| is_long(a.lanes(), far as usize)).map(Refusal::Row)
    }

    /// The words of a [`Pkt`].
    fn words(&self) -> Vec<u32> {
        let mut words = Vec::with_capacity(self.widths.len() + self.far.len() + 2);
        for lengths in [&self.widths, &self.far] {
            let mut end = 0;
            words.push(end);
            words.extend(lengths.iter().map(|length| {
                end += length;
                end
            }));
        }
        words
    }
}

/// The near entries of a row: a contiguous range, because columns are sorted.
fn near_of<T: Scalar>(a: &Csr<T>, row: usize) -> Range<usize> {
    let (columns, first) = (a.row_slices(row).0, row / PACKET * PACKET);
    let before = |column: usize| columns.partition_point(|&c| (c as usize) < column);
    before(first)..before(first + PACKET)
}

/// Columns and values of a part of the matrix.
type Part<'a, C, T> = (&'a mut [C], &'a mut [T]);

/// Fills in the rows of the packet that begins at row `first`.
fn fill_packet<T: Scalar>(
    a: &Csr<T>,
    first: usize,
    widths: &[u32],
    (columns, values): Part<'_, u16, T>,
    (far_columns, far_values): Part<'_, u32, T>,
) {
    let (mut begin, mut k) = (0, 0);
    for (s, width) in widths.iter().enumerate() {
        let end = begin + *width as usize * SLICE;
        for lane in 0..SLICE {
            let row = first + s * SLICE + lane;
            let (row_columns, row_values) = a.row_slices(row);
            let near = near_of(a, row);
            let mut last = 0;
            for (j, at) in (begin + lane..end).step_by(SLICE).enumerate() {
                if let Some(entry) = near.clone().nth(j) {
                    last = (row_columns[entry] as usize - first) as u16;
                    values[at] = row_values[entry];
                }
                columns[at] = last;
            }
            for entry in (0..near.start).chain(near.end..row_columns.len()) {
                (far_columns[k], far_values[k]) = (row_columns[entry], row_values[entry]);
                k += 1;
            }
        }
        begin = end;
    }
}
