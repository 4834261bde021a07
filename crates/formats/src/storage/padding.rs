//! How much padding a format may hold.

/// Places stored for each entry at the most; small matrices may have more.
const MOST_FILL: usize = 4;
/// Places that are always allowed.
const SMALL: usize = 1 << 16;

/// Whether so many places are refused for so many entries.
pub(crate) fn is_too_much(places: usize, nnz: usize) -> bool {
    places > SMALL.max(nnz.saturating_mul(MOST_FILL))
}
