//! Explains from the structure of a system why it was not solved.
use lacuna_engine::Scalar;
use lacuna_engine::compiled_here;
use lacuna_formats::{Csr, matching};

/// The largest number of rows that a message names.
const NAMED: usize = 5;
/// A sum counts as zero if it is at most this many units of rounding of the sum of the moduli.
const ROUNDING: f64 = 16.0;

/// What is said of a system without a solution.
const NO_SOLUTION: &str = "no x solves the system";

/// Explains, in sentences, why `A x = b` has no solution or no unique one: empty rows and columns, structural
/// singularity by a maximum matching, connected components whose rows or columns sum to zero. Rows are
/// counted from 0. Empty if none of these is found. Takes `O(nnz)`, and more for the matching if the diagonal
/// has zeros. An empty `b` stands for one that is not known.
///
/// Reference: Duff 1981, doi:10.1145/355958.355963 (the matching).
pub fn explain<T: Scalar>(a: &Csr<T>, b: &[T]) -> Vec<String> {
    compiled_here!(T, |a: &Csr<T>, b: &[T]| -> Vec<String> {
        let mut found = Vec::new();
        let n = a.rows();
        if n != a.cols() || !(b.is_empty() || b.len() == n) {
            return found;
        }
        let filled = |i: usize| a.row_entries(i).any(|(_, v)| v != T::zero());
        let empty: Vec<usize> = (0..n).filter(|&i| !filled(i)).collect();
        if !empty.is_empty() {
            let against = empty.iter().find(|&&i| b.get(i).is_some_and(|b| *b != T::zero()));
            let end = match against {
                Some(i) if empty.len() == 1 => format!("with b = {} there no x solves the system", b[*i]),
                Some(i) => format!("with b = {} in row {i} no x solves the system", b[*i]),
                None if b.is_empty() => "b must be 0 there".into(),
                None => "b is 0 there, so that the solution is not unique".into(),
            };
            let which = rows(&empty);
            let them = if empty.len() == 1 { "that row" } else { "those rows" };
            let have = if empty.len() == 1 { "has" } else { "have" };
            found.push(format!(
                "A is singular: {which} {have} no nonzero entry, and {end}; leave {them} and the unknowns of the same number out, \
                 or give {them} a diagonal"
            ));
        }
        let mut used = vec![false; n];
        a.entries().filter(|(_, _, v)| *v != T::zero()).for_each(|(_, j, _)| used[j] = true);
        let unused: Vec<usize> = (0..n).filter(|&j| !used[j]).collect();
        if !unused.is_empty() && empty.is_empty() {
            let which = rows(&unused).replacen("row", "column", 1);
            let (has, these) = match unused.len() {
                1 => ("has", "this unknown"),
                _ => ("have", "these unknowns"),
            };
            found.push(format!(
                "A is singular: {which} {has} no nonzero entry, so that no equation determines {these}; leave {these} out"
            ));
        }
        if found.is_empty() {
            found.extend(unmatched(a));
        }
        if found.is_empty() {
            found.extend(null_of_constants(a, b));
        }
        found
    })(a, b)
}

/// Whether empty rows, or columns that sum to 0, show that no `x` solves the system. Takes `O(nnz)`.
pub(crate) fn contradicts<T: Scalar>(a: &Csr<T>, b: &[T]) -> bool {
    let n = a.rows();
    if n != a.cols() || b.len() != n {
        return false;
    }
    let is_empty = |i: usize| a.row_entries(i).all(|(_, v)| v == T::zero());
    let no_solution = |note: &String| note.contains(NO_SOLUTION);
    (0..n).any(|i| b[i] != T::zero() && is_empty(i)) || null_of_constants(a, b).iter().any(no_solution)
}

/// `row 7 (counted from 0)`, `rows 1, 2 and 5 (counted from 0)`, `rows 1, 2, 3, 4, 5 and 20 more (counted from 0)`.
fn rows(which: &[usize]) -> String {
    let named: Vec<String> = which.iter().take(NAMED).map(usize::to_string).collect();
    let more = which.len().saturating_sub(NAMED);
    let which = match (named.as_slice(), more) {
        ([one], 0) => format!("row {one}"),
        ([first @ .., last], 0) => format!("rows {} and {last}", first.join(", ")),
        (all, more) => format!("rows {} and {more} more", all.join(", ")),
    };
    which + " (counted from 0)"
}

/// Whether the pattern makes the matrix singular for all values of its entries: a maximum matching of rows
/// and columns leaves rows unmatched.
pub fn is_structurally_singular<T: Scalar>(a: &Csr<T>) -> bool {
    compiled_here!(T, |a: &Csr<T>| -> bool { unmatched(a).is_some() })(a)
}

/// Describes the rows left unmatched by a maximum matching of rows and columns over the nonzero entries.
pub(crate) fn unmatched<T: Scalar>(a: &Csr<T>) -> Option<String> {
    let n = a.rows();
    let matched = matching(a);
    let lost: Vec<usize> = (0..n).filter(|&i| matched[i].is_none()).collect();
    let count = lost.len();
    (count > 0).then(|| {
        format!(
            "A is structurally singular: its structural rank is {} of {n}, so that whatever the values of its nonzero entries {} \
             cannot be told apart from the others; look for equations that are missing or stand twice",
            n - count,
            rows(&lost)
        )
    })
}

/// Connected components whose columns sum to zero, so that `b` must sum to zero there, or whose rows sum to
/// zero, so that a constant can be added to `x`.
fn null_of_constants<T: Scalar>(a: &Csr<T>, b: &[T]) -> Vec<String> {
    let n = a.rows();
    let mut parts = UnionFind::new(n);
    let (mut row, mut column) = (vec![[0.0; 3]; n], vec![[0.0; 3]; n]);
    for (i, j, v) in a.entries() {
        parts.join(i, j);
        for sums in [&mut row[i], &mut column[j]] {
            *sums = [sums[0] + v.re(), sums[1] + v.im(), sums[2] + v.modulus()];
        }
    }
    let vanishes = |[re, im, moduli]: [f64; 3]| libm::hypot(re, im) <= ROUNDING * T::EPSILON * moduli;
    // By the root of each component: whether all its rows and all its columns sum to zero, its size, the sum
    // of `b` and of the moduli of `b`.
    let mut of_part = vec![(true, true, 0usize, [0.0; 3]); n];
    for i in 0..n {
        let part = &mut of_part[parts.root(i)];
        part.0 &= vanishes(row[i]);
        part.1 &= vanishes(column[i]);
        part.2 += 1;
        let b = b.get(i).copied().unwrap_or(T::zero());
        part.3 = [part.3[0] + b.re(), part.3[1] + b.im(), part.3[2] + b.modulus()];
    }
    let whole = of_part.iter().filter(|part| part.2 > 0).count() == 1;
    let singular = of_part.iter().enumerate().filter(|(_, part)| part.2 > 0 && (part.0 || part.1));
    let mut notes = Vec::new();
    let mut more = 0;
    for (root, &(rows_vanish, columns_vanish, size, [re, im, moduli])) in singular {
        if notes.len() == NAMED {
            more += 1;
            continue;
        }
        let part = format!("the part of {size} unknowns that row {root} (counted from 0) belongs to");
        let place = if whole { "A is singular".into() } else { format!("A is singular in {part}") };
        let (there, of_part) = if whole { ("", "b") } else { (" there", "b over this part") };
        let inconsistent = columns_vanish && libm::hypot(re, im) > 1e3 * T::EPSILON * moduli;
        notes.push(match (rows_vanish, columns_vanish) {
            (rows_vanish, true) if inconsistent => {
                let sum = T::from_parts(re, im);
                let fix = if rows_vanish { ", or fix an unknown" } else { "" };
                format!(
                    "{place}: its columns sum to 0, while b sums to {sum:e}{there}: {NO_SOLUTION}; subtract the mean of {of_part}{fix}"
                )
            }
            (true, true) => {
                let unless = if b.is_empty() { format!(", and b must sum to 0{there}") } else { String::new() };
                format!(
                    "{place}: its rows and columns sum to 0, so that a constant may be added to x{unless}; fix an unknown, or the \
                     mean of x"
                )
            }
            (true, false) => format!(
                "{place}: its rows sum to 0, so that a constant may be added to x, and a solution exists only for some b: those \
                 orthogonal to the left null vector, which is not constant, since the columns do not sum to 0; lsmr finds the x of \
                 least |b - A x|"
            ),
            (false, _) => {
                let unless = if b.is_empty() { format!(" unless b sums to 0{there}") } else { String::new() };
                match b.is_empty() {
                    true => format!("{place}: its columns sum to 0, so that {NO_SOLUTION}{unless}"),
                    false => format!("{place}: its columns sum to 0, so that the solution is not unique; lsmr finds one"),
                }
            }
        });
    }
    if more > 0 {
        notes.push(format!("the same holds of {more} more parts"));
    }
    notes
}

/// Disjoint sets of rows (union-find); each row holds its parent.
struct UnionFind(Vec<u32>);

impl UnionFind {
    fn new(n: usize) -> Self {
        UnionFind((0..n as u32).collect())
    }
    fn root(&mut self, mut i: usize) -> usize {
        while self.0[i] as usize != i {
            self.0[i] = self.0[self.0[i] as usize];
            i = self.0[i] as usize;
        }
        i
    }
    fn join(&mut self, i: usize, j: usize) {
        let (i, j) = (self.root(i), self.root(j));
        self.0[i.max(j)] = i.min(j) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::explain;
    use lacuna_formats::{Csr, Triplets};

    fn matrix(n: usize, entries: &[(usize, usize, f64)]) -> Csr<f64> {
        let mut triplets = Triplets::new(n, n);
        entries.iter().for_each(|&(i, j, v)| triplets.push(i, j, v));
        triplets.to_csr().unwrap()
    }
    fn said(n: usize, entries: &[(usize, usize, f64)], b: &[f64]) -> String {
        explain(&matrix(n, entries), b).join("\n")
    }
    /// `−u''` on a line of `n` points from `first` on, with Neumann boundary conditions.
    fn line(first: usize, n: usize) -> Vec<(usize, usize, f64)> {
        (first..first + n - 1)
            .flat_map(|i| [(i, i, 1.0), (i, i + 1, -1.0), (i + 1, i, -1.0), (i + 1, i + 1, 1.0)])
            .collect()
    }

    #[test]
    fn nothing_is_said_of_what_is_regular() {
        let mut entries = line(0, 6);
        entries.push((0, 0, 1.0));
        assert_eq!(said(6, &entries, &[1.0; 6]), "");
        assert_eq!(said(2, &[(0, 1, 1.0), (1, 0, 1.0)], &[1.0; 2]), "");
    }

    #[test]
    fn empty_rows_and_columns_are_named() {
        let text = said(3, &[(0, 0, 2.0), (1, 1, 0.0), (2, 2, 3.0)], &[1.0; 3]);
        assert!(
            text.contains("row 1 (counted from 0) has no nonzero entry") && text.contains("no x solves"),
            "{text}"
        );
        let text = said(3, &[(0, 0, 2.0), (1, 0, 1.0), (2, 2, 3.0)], &[1.0; 3]);
        assert!(text.contains("column 1 (counted from 0) has no nonzero entry"), "{text}");
    }

    #[test]
    fn structural_rank_is_that_of_a_largest_matching() {
        // Rows 0, 1 and 2 have entries in columns 0 and 1 only.
        let entries =
            [(0, 0, 1.0), (0, 1, 2.0), (1, 0, 3.0), (1, 1, 4.0), (2, 1, 1.0), (3, 3, 1.0), (3, 2, 1.0)];
        let text = said(4, &entries, &[1.0; 4]);
        assert!(text.contains("structural rank is 3 of 4"), "{text}");
        // A permutation that needs long augmenting paths: row i has columns i and i + 1, the last row column
        // 0.
        let n = 50;
        let mut entries: Vec<_> = (0..n - 1).flat_map(|i| [(i, i, 1.0), (i, i + 1, 1.0)]).collect();
        entries.push((n - 1, 0, 1.0));
        assert_eq!(said(n, &entries, &vec![1.0; n]), "");
    }

    #[test]
    fn constants_in_the_null_space_are_seen_part_by_part() {
        let text = said(6, &line(0, 6), &[1.0; 6]);
        assert!(text.contains("columns sum to 0") && text.contains("no x solves"), "{text}");
        let text = said(4, &line(0, 4), &[1.0, -1.0, 2.0, -2.0]);
        assert!(text.contains("a constant may be added"), "{text}");
        let mut two = line(0, 3);
        two.extend(line(3, 5));
        two.push((0, 0, 1.0));
        let text = said(8, &two, &[1.0; 8]);
        assert!(text.contains("the part of 5 unknowns that row 3 (counted from 0) belongs to"), "{text}");
        assert!(text.contains("subtract the mean of b over this part"), "{text}");
    }

    /// Rows that sum to 0 and columns that do not: the left null vector is not constant, and the mean of `b` tells nothing.
    #[test]
    fn rows_that_sum_to_zero_alone_say_nothing_of_the_mean_of_b() {
        let weighted: Vec<_> = line(0, 4).into_iter().map(|(i, j, v)| (i, j, (1 + i) as f64 * v)).collect();
        let text = said(4, &weighted, &[1.0; 4]);
        assert!(text.contains("its rows sum to 0") && text.contains("lsmr finds"), "{text}");
        assert!(!text.contains("mean"), "{text}");
        let transposed: Vec<_> = weighted.iter().map(|&(i, j, v)| (j, i, v)).collect();
        let text = said(4, &transposed, &[1.0; 4]);
        assert!(text.ends_with("no x solves the system; subtract the mean of b"), "{text}");
    }
}
