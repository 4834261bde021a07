//! What each block of a program needs of other blocks' rows: see `product.cuh`.
use crate::store::Store;
use lacuna_core::{Matrix, Scalar};

/// The column indices of a matrix as its blocks see them.
#[derive(Clone, Debug)]
pub(crate) struct Halo {
    /// For each entry a row of the block, or from `rows` on a place in the block's list.
    pub(crate) col_idx: Vec<u32>,
    /// The rows each block needs of others, block by block.
    pub(crate) list: Vec<u32>,
    /// Where each block's list starts, and the end.
    pub(crate) offsets: Vec<u32>,
    /// The longest list.
    pub(crate) most: u32,
    /// The most entries of a block.
    pub(crate) entries: u32,
}

/// The row where each block begins, and the end: consecutive segments, as `program.cu` shares them out.
pub(crate) fn cuts(n: u32, segments: u32, blocks: u32) -> Vec<u32> {
    let cut = |b: u32| (u64::from(segments) * u64::from(b) / u64::from(blocks)) as u32;
    (0..=blocks).map(|b| cut(b).saturating_mul(crate::table::SEGMENT).min(n)).collect()
}

/// The arrays of a matrix in compressed rows: where rows start, and columns.
pub(crate) fn compressed_rows<T: Scalar>(store: &Store, a: Matrix<T>) -> Option<[&[u32]; 2]> {
    let arguments = store.format(a)?.arguments();
    match (arguments.first()?, arguments.get(1)?) {
        (lacuna_core::Argument::Indices(row_ptr), lacuna_core::Argument::Indices(col_idx)) => {
            Some([row_ptr, col_idx])
        }
        _ => None,
    }
}

/// The halos of the blocks that begin at `cuts`. `rows` is the most rows of a block.
pub(crate) fn halo([row_ptr, columns]: [&[u32]; 2], cuts: &[u32], rows: u32) -> Halo {
    let mut halo =
        Halo { col_idx: columns.to_vec(), list: Vec::new(), offsets: vec![0], most: 0, entries: 0 };
    for block in cuts.windows(2) {
        let own = block[0]..block[1];
        let entries = row_ptr[own.start as usize] as usize..row_ptr[own.end as usize] as usize;
        let mut far: Vec<u32> =
            columns[entries.clone()].iter().copied().filter(|c| !own.contains(c)).collect();
        far.sort_unstable();
        far.dedup();
        for c in &mut halo.col_idx[entries.clone()] {
            *c = match far.binary_search(c) {
                Ok(place) => rows + place as u32,
                Err(_) => *c - own.start,
            };
        }
        halo.most = halo.most.max(far.len() as u32);
        halo.entries = halo.entries.max(entries.len() as u32);
        halo.list.extend(far);
        halo.offsets.push(halo.list.len() as u32);
    }
    halo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_name_their_own_rows_and_list_the_others() {
        // Rows 0..300 and 300..500 of a matrix with one entry a row, each pointing 299 rows up, around the end.
        let row_ptr: Vec<u32> = (0..=500).collect();
        let columns: Vec<u32> = (0..500).map(|i| (i + 299) % 500).collect();
        let halo = halo([&row_ptr, &columns], &[0, 300, 500], 300);
        assert_eq!(halo.offsets, [0, 200, 400]);
        assert_eq!((halo.col_idx[0], halo.col_idx[1], halo.col_idx[300]), (299, 300, 300));
        assert_eq!((halo.list[0], halo.list[200], halo.most), (300, 99, 200));
    }
}
