//! Limits of the padding in a format.

/// Maximum number of places stored per entry; small matrices may have more.
const MOST_FILL: usize = 4;
/// Number of places that are always allowed.
const SMALL: usize = 1 << 16;

/// Whether there are too many places for this number of entries.
pub(crate) fn is_too_much(places: usize, nnz: usize) -> bool {
    places > SMALL.max(nnz.saturating_mul(MOST_FILL))
}
