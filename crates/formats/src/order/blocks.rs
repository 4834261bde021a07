//! Blocks of consecutive rows that do not depend on each other.

/// The borders of blocks of consecutive rows none of which needs a row before its block, given the first row
/// that each needs.
pub(crate) fn independent_blocks(n: usize, first_need: impl Fn(usize) -> usize) -> Vec<usize> {
    let (mut borders, mut least) = (vec![n], n);
    for k in (1..n).rev() {
        least = least.min(first_need(k));
        if least >= k {
            borders.push(k);
        }
    }
    if n > 0 {
        borders.push(0);
    }
    borders.reverse();
    borders
}

#[cfg(test)]
mod tests {
    use super::independent_blocks;

    #[test]
    fn rows_that_need_no_row_before_them_begin_a_block() {
        let needs = [0, 0, 2, 3, 2, 5];
        assert_eq!(independent_blocks(6, |i| needs[i]), [0, 2, 5, 6]);
        assert_eq!(independent_blocks(0, |i| i), [0]);
    }
}
