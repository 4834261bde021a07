//! How well row lengths can be predicted from the preceding ones.
use crate::parallel;

/// Rows of a stretch, and maximum number of stretches examined; larger matrices are sampled.
const STRETCH: usize = 8192;
const STRETCHES: usize = 16;
/// Number of preceding lengths used for a prediction, and bits of the hash that identifies them.
const BEFORE: usize = 4;
const BITS: u32 = 12;

/// Fraction of rows whose length a four-entry history predictor gets wrong; estimates branch mispredictions
/// at loop ends. `row_ptr` holds the start of each row, and the end of the last.
pub(crate) fn surprising(row_ptr: &[u32]) -> f64 {
    let rows = row_ptr.len() - 1;
    let stretches = rows.div_ceil(STRETCH).clamp(1, STRETCHES);
    let starts: Vec<_> = (0..stretches)
        .map(|k| match rows.checked_sub(STRETCH) {
            Some(last) => (last as u128 * k as u128 / (stretches as u128 - 1).max(1)) as usize,
            None => 0,
        })
        .collect();
    let looked_at = |start: usize| &row_ptr[start..=rows.min(start + STRETCH)];
    let wrong = parallel::sum(stretches, 1, |k| wrong(looked_at(starts[k])));
    let all: usize = starts.iter().map(|&start| looked_at(start).len() - 1).sum();
    wrong as f64 / all.max(1) as f64
}

/// Number of wrong predictions.
fn wrong(row_ptr: &[u32]) -> usize {
    let mut followed_by = vec![0u32; 1 << BITS];
    let mut before = [0u32; BEFORE];
    let mut wrong = 0;
    for row in row_ptr.windows(2) {
        let length = row[1] - row[0];
        let mixed = |hash: u32, length: &u32| (hash.rotate_left(5) ^ length).wrapping_mul(0x9e37_79b1);
        let guess = &mut followed_by[(before.iter().fold(0, mixed) >> (u32::BITS - BITS)) as usize];
        wrong += usize::from(*guess != length);
        *guess = length;
        before.rotate_left(1);
        before[BEFORE - 1] = length;
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::surprising;

    /// The row pointers of `rows` rows with these lengths.
    fn of(rows: usize, length: impl Fn(usize) -> u32) -> Vec<u32> {
        let mut end = 0;
        let ends = (0..rows).map(|i| {
            end += length(i);
            end
        });
        std::iter::once(0).chain(ends).collect()
    }

    /// The finaliser of splitmix64.
    fn mixed(i: u64) -> u64 {
        let i = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let i = (i ^ (i >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let i = (i ^ (i >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        i ^ (i >> 31)
    }

    #[test]
    fn lengths_that_take_turns_are_no_surprise() {
        assert_eq!(surprising(&[0]), 0.0);
        for rows in [1, 5000, 100_000, 1_000_000] {
            let few = 16.0 / (rows as f64).min(5000.0);
            assert!(surprising(&of(rows, |_| 7)) <= few);
            assert!(surprising(&of(rows, |i| [3, 9, 3, 1, 4][i % 5])) <= few);
        }
    }

    #[test]
    fn lengths_in_no_order_are() {
        let length = |i: usize| (mixed(i as u64) >> 61) as u32;
        assert!(surprising(&of(300_000, length)) > 0.8);
        let now_and_then = |i: usize| if mixed(i as u64) >> 59 == 0 { 9 } else { 4 };
        let part = surprising(&of(300_000, now_and_then));
        assert!((0.02..0.2).contains(&part), "{part}");
    }
}
