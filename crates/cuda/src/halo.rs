//! What each block of a program needs of other blocks' rows: see `product.cuh`.
use crate::store::Store;
use lacuna_core::{Matrix, Scalar, is_long};

/// A matrix as the blocks of a program see it: see [`halo`].
#[derive(Clone, Debug)]
pub(crate) struct Halo<T> {
    /// For each entry a row of the block, or from `rows` on a place in the block's list.
    pub(crate) col_idx: Vec<u32>,
    pub(crate) values: Vec<T>,
    /// Where the entries of each warp's rows start, and the end.
    pub(crate) groups: Vec<u32>,
    /// The rows each block needs of others, block by block.
    pub(crate) list: Vec<u32>,
    /// Where each block's list starts, and the end.
    pub(crate) offsets: Vec<u32>,
    /// The longest list.
    pub(crate) most: u32,
    /// The most entries of a block, those that fill up counted.
    pub(crate) entries: u32,
}

/// The row where each block begins, and the end: consecutive segments, as `program.cu` shares them out.
pub(crate) fn cuts(n: u32, segments: u32, blocks: u32) -> Vec<u32> {
    let cut = |b: u32| (u64::from(segments) * u64::from(b) / u64::from(blocks)) as u32;
    (0..=blocks).map(|b| cut(b).saturating_mul(crate::table::SEGMENT).min(n)).collect()
}

/// The arrays of a matrix in compressed rows: where rows start, columns and values.
pub(crate) type Rows<'a, T> = (&'a [u32], &'a [u32], &'a [T]);

/// The arrays of a matrix, where it is in compressed rows.
pub(crate) fn compressed_rows<T: Scalar>(store: &Store, a: Matrix<T>) -> Option<Rows<'_, T>> {
    let arguments = store.format(a)?.arguments();
    match (arguments.first()?, arguments.get(1)?, arguments.get(2)?) {
        (
            lacuna_core::Argument::Indices(row_ptr),
            lacuna_core::Argument::Indices(col_idx),
            lacuna_core::Argument::Values(values),
        ) => Some((row_ptr, col_idx, values)),
        _ => None,
    }
}

/// Lanes of a warp.
const WARP: usize = 32;
/// How many times the entries of a matrix its layout may take.
const FILL: usize = 3;

/// The layout for the blocks that begin at `cuts`. `rows` is the most rows of a block. A warp takes 32 / `lanes` rows at a
/// time; their entries lie step by step, in each step one for each lane: lane `j` of a row has its entries `j`, `j + lanes`,
/// …, and zeros where it has no more. `None` where the rows differ so much in length that this takes too much room or that some are
/// long.
pub(crate) fn halo<T: Scalar>(
    (row_ptr, columns, entries): Rows<'_, T>,
    cuts: &[u32],
    rows: u32,
    lanes: u32,
) -> Option<Halo<T>> {
    let lanes = lanes as usize;
    if row_ptr.windows(2).any(|row| is_long(lanes, (row[1] - row[0]) as usize)) {
        return None;
    }
    let per_warp = WARP / lanes;
    let (mut col_idx, mut values) = (Vec::with_capacity(columns.len()), Vec::with_capacity(columns.len()));
    let (mut groups, mut list, mut offsets) = (vec![0], Vec::new(), vec![0]);
    let (mut most, mut most_entries) = (0, 0);
    for block in cuts.windows(2) {
        let own = block[0]..block[1];
        let range = row_ptr[own.start as usize] as usize..row_ptr[own.end as usize] as usize;
        let mut far: Vec<u32> = columns[range].iter().copied().filter(|c| !own.contains(c)).collect();
        far.sort_unstable();
        far.dedup();
        let start = col_idx.len();
        for first in (own.start as usize..own.end as usize).step_by(per_warp) {
            let row = |i: usize| row_ptr[i] as usize..row_ptr[i + 1] as usize;
            let mine = first..(first + per_warp).min(own.end as usize);
            let steps = mine.clone().map(|i| row(i).len().div_ceil(lanes)).max().unwrap_or(0);
            let at = col_idx.len();
            if at + steps * WARP > FILL * columns.len() + (1 << 16) {
                return None;
            }
            col_idx.resize(at + steps * WARP, 0);
            values.resize(at + steps * WARP, T::zero());
            for i in mine.clone() {
                for (k, e) in row(i).enumerate() {
                    let to = at + k / lanes * WARP + (i - first) * lanes + k % lanes;
                    col_idx[to] = match far.binary_search(&columns[e]) {
                        Ok(place) => rows + place as u32,
                        Err(_) => columns[e] - own.start,
                    };
                    values[to] = entries[e];
                }
            }
            groups.push(col_idx.len() as u32);
        }
        most = most.max(far.len() as u32);
        most_entries = most_entries.max(col_idx.len() - start);
        list.extend(far);
        offsets.push(list.len() as u32);
    }
    Some(Halo { col_idx, values, groups, list, offsets, most, entries: most_entries as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_name_their_own_rows_and_list_the_others() {
        // A matrix with one entry a row, each pointing 299 rows up, around the end.
        let row_ptr: Vec<u32> = (0..=500).collect();
        let columns: Vec<u32> = (0..500).map(|i| (i + 299) % 500).collect();
        let values = vec![1.0; 500];
        let halo = halo((&row_ptr, &columns, &values), &[0, 256, 500], 256, 1).unwrap();
        assert_eq!(halo.offsets, [0, 201, 402]);
        assert_eq!((halo.col_idx[0], halo.col_idx[255], halo.col_idx[256]), (256, 54, 256));
        assert_eq!((halo.list[0], halo.list[201], halo.most), (299, 55, 201));
    }

    #[test]
    fn entries_lie_step_by_step() {
        // Sixteen lanes to a row: two rows of 20 and 3 entries.
        let row_ptr = [0, 20, 23];
        let columns: Vec<u32> = (0..20).chain(0..3).map(|c| c % 2).collect();
        let values: Vec<f64> = (0..23).map(f64::from).collect();
        let halo = halo((&row_ptr, &columns, &values), &[0, 2], 2, 16).unwrap();
        assert_eq!(halo.groups, [0, 64]);
        assert_eq!((halo.values[15], halo.values[16], halo.values[18]), (15.0, 20.0, 22.0));
        assert_eq!((halo.values[32], halo.values[35], halo.values[36]), (16.0, 19.0, 0.0));
    }
}
