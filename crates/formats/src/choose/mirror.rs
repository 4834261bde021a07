//! Detects symmetry of a matrix in one pass over its entries.
use crate::storage::pattern::PatternRef;
use lacuna_engine::Scalar;

/// Number of rows examined first.
const SAMPLE: usize = 32;

/// Sums of hashes over off-diagonal entries, modulo 2^64, separately above and below the diagonal. Equal sums
/// mean symmetric, up to hash collisions (2^-64). The hash of a real or imaginary part is odd in the part, so
/// the same sums detect symmetric, Hermitian and skew-symmetric matrices.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mirror {
    /// Over places, above and below the diagonal.
    places: [u64; 2],
    /// Over real and imaginary parts, likewise.
    parts: [[u64; 2]; 2],
    /// Whether some diagonal entry has a nonzero real part, and a nonzero imaginary part.
    diagonal: [bool; 2],
}

/// Mixed with the bits of values, so that none is 0.
const SALT: u64 = 0xa076_1d64_78bd_642f;
const ABOVE: usize = 0;
const BELOW: usize = 1;

impl Mirror {
    /// Adds a row: its entries before the diagonal, on it, and after it.
    #[inline(always)]
    pub(crate) fn row<T: Scalar>(
        &mut self,
        i: usize,
        below: (&[u32], &[T]),
        diagonal: T,
        above: (&[u32], &[T]),
    ) {
        let row = i as u64;
        self.side(BELOW, below, |j| u64::from(j) << 32 | row);
        self.side(ABOVE, above, |j| row << 32 | u64::from(j));
        self.diagonal[0] |= diagonal.re() != 0.0;
        self.diagonal[1] |= diagonal.im() != 0.0;
    }

    #[inline(always)]
    fn side<T: Scalar>(
        &mut self,
        side: usize,
        (columns, values): (&[u32], &[T]),
        place: impl Fn(u32) -> u64,
    ) {
        let (mut places, mut re, mut im) = (0u64, 0u64, 0u64);
        for (&j, &v) in columns.iter().zip(values) {
            let place = mix(place(j));
            places = places.wrapping_add(place);
            re = re.wrapping_add(part(place, v.re()));
            if T::KIND.is_complex() {
                im = im.wrapping_add(part(place.rotate_left(32), v.im()));
            }
        }
        self.places[side] = self.places[side].wrapping_add(places);
        self.parts[0][side] = self.parts[0][side].wrapping_add(re);
        self.parts[1][side] = self.parts[1][side].wrapping_add(im);
    }

    /// For the rows of both.
    pub(crate) fn and(self, other: Self) -> Self {
        let add = |a: [u64; 2], b: [u64; 2]| [a[0].wrapping_add(b[0]), a[1].wrapping_add(b[1])];
        Mirror {
            places: add(self.places, other.places),
            parts: [add(self.parts[0], other.parts[0]), add(self.parts[1], other.parts[1])],
            diagonal: [self.diagonal[0] | other.diagonal[0], self.diagonal[1] | other.diagonal[1]],
        }
    }

    /// Whether every entry has a mirror image across the diagonal.
    pub(crate) fn of_pattern(&self) -> bool {
        self.places[ABOVE] == self.places[BELOW]
    }
    /// Whether the mirror image is equal.
    pub(crate) fn is_symmetric(&self) -> bool {
        self.of_pattern() && equal(self.parts[0]) && equal(self.parts[1])
    }
    /// Whether the mirror image is the conjugate.
    pub(crate) fn is_hermitian(&self) -> bool {
        self.of_pattern() && !self.diagonal[1] && equal(self.parts[0]) && opposite(self.parts[1])
    }
    /// Whether the mirror image is the negative.
    pub(crate) fn is_skew(&self) -> bool {
        self.of_pattern() && self.diagonal == [false; 2] && opposite(self.parts[0]) && opposite(self.parts[1])
    }
}

fn equal([above, below]: [u64; 2]) -> bool {
    above == below
}

fn opposite([above, below]: [u64; 2]) -> bool {
    above == below.wrapping_neg()
}

/// The hash of a part at a place: 0 for zero, and odd in the part.
#[inline(always)]
fn part(place: u64, part: f64) -> u64 {
    // The place is already mixed: both halves of the product depend on all its bits.
    let wide = u128::from(place) * u128::from(part.abs().to_bits() ^ SALT);
    let hash = wide as u64 ^ (wide >> 64) as u64;
    if part == 0.0 {
        0
    } else if part < 0.0 {
        hash.wrapping_neg()
    } else {
        hash
    }
}

/// Whether the pattern can be symmetric, judging by a few rows spread over the matrix.
pub(crate) fn is_likely(a: PatternRef<'_>) -> bool {
    let mut rows = (0..a.rows).step_by((a.rows / SAMPLE).max(1));
    rows.all(|i| a.row(i).iter().all(|&j| a.find(j as usize, i).is_some()))
}

/// Mixes the bits of a word.
#[inline(always)]
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let x = (x ^ x >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ x >> 32
}
