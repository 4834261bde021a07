//! Colouring of rows: rows of one colour are not coupled.
use crate::storage::pattern::PatternRef;
use crate::{Csr, Permutation};
use lacuna_engine::Scalar;

/// The colour of each row, and the number of colours: each row takes the first colour that no earlier row
/// coupled with it has. A grid of 5 or 7 points takes two, red and black. If the pattern is not symmetric,
/// only entries left of the diagonal count, so that two rows of a colour may be coupled by an entry to the
/// right.
///
/// Reference: Saad 2003, Iterative Methods for Sparse Linear Systems, section 3.3.3,
/// doi:10.1137/1.9780898718003.
pub fn greedy_colours<T: Scalar>(a: &Csr<T>) -> (Vec<u32>, usize) {
    coloured(PatternRef::of(a))
}

fn coloured(a: PatternRef<'_>) -> (Vec<u32>, usize) {
    let mut colours = vec![0u32; a.rows];
    // The last row that was coupled with each colour, plus one.
    let mut met: Vec<u32> = Vec::new();
    for i in 0..a.rows {
        for &j in a.row(i).iter().take_while(|&&j| (j as usize) < i) {
            met[colours[j as usize] as usize] = i as u32 + 1;
        }
        let free = met.iter().position(|&row| row != i as u32 + 1).unwrap_or(met.len());
        if free == met.len() {
            met.push(0);
        }
        colours[i] = free as u32;
    }
    (colours, met.len())
}

/// The rows sorted by colour, and the number of colours: see [`greedy_colours`].
pub fn by_colours<T: Scalar>(a: &Csr<T>) -> (Permutation, usize) {
    let (colours, count) = greedy_colours(a);
    (sorted(&colours, count), count)
}

fn sorted(colours: &[u32], count: usize) -> Permutation {
    let mut next = vec![0u32; count + 1];
    colours.iter().for_each(|&c| next[c as usize + 1] += 1);
    (0..count).for_each(|c| next[c + 1] += next[c]);
    let mut order = vec![0u32; colours.len()];
    for (row, &colour) in colours.iter().enumerate() {
        let place = &mut next[colour as usize];
        order[*place as usize] = row as u32;
        *place += 1;
    }
    Permutation::known(order)
}
