//! Orders of rows that keep coupled rows close together.
use crate::interrupt;
use crate::order::graph::{Graph, Search};
use crate::storage::pattern::PatternRef;
use crate::{Csr, PACKET, Permutation};
use lacuna_engine::text::shown_word;
use lacuna_engine::{Error, Result, Scalar};
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Rows of a part: their share of x, 64 KiB in `f64`, stays in a second-level cache.
const PART: usize = 8192;
/// Number of rows that the search for the first row of a part may visit, in parts, so that the total cost is
/// linear in the rows.
const SEARCHED: usize = 8;
/// Average number of columns spanned by a row, above which `auto` considers another order: 256 KiB of x in
/// `f64`.
const WIDE: u64 = 1 << 15;
/// `auto` keeps the order unless the profile shrinks by this factor.
const WORTHWHILE: u64 = 4;

/// A named order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrderInfo {
    /// The name users select it by.
    pub name: &'static str,
    /// A description.
    pub description: &'static str,
}

/// All orders except the given one.
pub const ORDERS: &[OrderInfo] = &[
    OrderInfo { name: "rcm", description: "reverse Cuthill-McKee: entries near the diagonal" },
    OrderInfo { name: "length", description: "rows by falling length" },
    OrderInfo { name: "parts", description: "rows by connected parts of 8192" },
    OrderInfo { name: "packets", description: "rows by connected parts of 1024, the packets of pkt" },
];

/// The order of the rows alone by [`heaviest_diagonal`](crate::heaviest_diagonal), which [`reorder`] does not make.
pub const MATCHING: OrderInfo = OrderInfo {
    name: "matching",
    description: "rows so that large entries are on the diagonal; columns stay",
};

/// Distances of the entries of a square matrix from its diagonal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Largest distance of an entry.
    pub bandwidth: usize,
    /// Over all rows, the sum of the distances from the diagonal to the farthest entry left of it.
    pub profile: u64,
}

impl Profile {
    /// The profile of a matrix. Reads the first and last entry of each row.
    pub fn of<T: Scalar>(a: &Csr<T>) -> Self {
        Self::of_pattern(PatternRef::of(a))
    }

    fn of_pattern(a: PatternRef<'_>) -> Self {
        let mut found = Profile { bandwidth: 0, profile: 0 };
        for i in 0..a.rows {
            if let [first, .., last] | [first @ last] = a.row(i) {
                found.add(i, *first, *last);
            }
        }
        found
    }

    /// The profile that a square matrix would have in an order.
    fn permuted(a: PatternRef<'_>, order: &Permutation) -> Self {
        let place = order.inverse();
        let mut found = Profile { bandwidth: 0, profile: 0 };
        for (i, &old) in order.order().iter().enumerate() {
            let columns = a.row(old as usize).iter().map(|&j| place[j as usize]);
            if let (Some(first), Some(last)) = (columns.clone().min(), columns.max()) {
                found.add(i, first, last);
            }
        }
        found
    }

    /// Adds row `i` with entries from column `first` to column `last`.
    fn add(&mut self, i: usize, first: u32, last: u32) {
        let left = i.saturating_sub(first as usize);
        self.bandwidth = self.bandwidth.max(left).max((last as usize).saturating_sub(i));
        self.profile += left as u64;
    }
}

/// The order of that name for a square matrix; `None` for `none` and for an order that changes nothing. With
/// `auto`, it is `rcm` if rows span more than a cache holds and the order cuts the profile to a quarter.
///
/// # Errors
/// [`Error::Argument`] for an unknown name, [`Error::Shape`] if the matrix is not square; those of [`interrupt::check`].
pub fn reorder<T: Scalar>(a: &Csr<T>, name: &str) -> Result<Option<Permutation>> {
    ordered(PatternRef::of(a), name)
}

fn ordered(a: PatternRef<'_>, name: &str) -> Result<Option<Permutation>> {
    if a.rows != a.cols {
        let (expected, got) = ("a square matrix".into(), (a.rows, a.cols));
        return Err(Error::Shape { operation: "reorder".into(), expected, got });
    }
    let order = match name {
        "none" => return Ok(None),
        "auto" => {
            let now = Profile::of_pattern(a).profile;
            if now < WIDE.saturating_mul(a.rows as u64) {
                return Ok(None);
            }
            let order = cuthill_mckee(a)?;
            interrupt::check()?;
            let then = Profile::permuted(a, &order).profile;
            return Ok((then <= now / WORTHWHILE).then_some(order));
        }
        "rcm" => cuthill_mckee(a)?,
        "length" => lengths_falling(a),
        "parts" => connected_parts(a, PART)?,
        "packets" => connected_parts(a, PACKET)?,
        _ => {
            let names: Vec<_> = ORDERS.iter().map(|o| o.name).collect();
            let (names, name) = (names.join(", "), shown_word(name));
            let message = format!("expected none, auto or one of {names}, got `{name}`");
            return Err(Error::Argument { what: "reorder".into(), message });
        }
    };
    Ok(Some(order).filter(|order| !order.order().is_sorted()))
}

/// Reverse Cuthill-McKee: each component starting at a peripheral row, neighbours by increasing degree, then
/// the whole order reversed. Columns beyond the rows of a matrix are ignored.
///
/// Reference: Cuthill and McKee 1969, doi:10.1145/800195.805928; George and Liu 1979,
/// doi:10.1145/355841.355845.
pub fn reverse_cuthill_mckee<T: Scalar>(a: &Csr<T>) -> Permutation {
    interrupt::unchecked(|| cuthill_mckee(PatternRef::of(a)))
}

fn cuthill_mckee(a: PatternRef<'_>) -> Result<Permutation> {
    let graph = Graph::of(a)?;
    let mut order = Vec::with_capacity(graph.len());
    let mut taken = vec![false; graph.len()];
    let mut search = Search::new(graph.len());
    let mut next = Vec::new();
    for first in 0..graph.len() as u32 {
        if taken[first as usize] {
            continue;
        }
        let mut at = order.len();
        let start = graph.peripheral(first, &taken, &mut search, usize::MAX)?;
        taken[start as usize] = true;
        order.push(start);
        while let Some(&row) = order.get(at) {
            interrupt::check_at(at)?;
            at += 1;
            next.clear();
            next.extend(graph.of_row(row).iter().copied().filter(|&j| !taken[j as usize]));
            next.sort_by_key(|&j| graph.degree(j));
            next.iter().for_each(|&j| taken[j as usize] = true);
            order.extend(&next);
        }
    }
    order.reverse();
    Ok(Permutation::known(order))
}

/// Rows by decreasing length; rows of equal length keep their order.
pub fn by_length<T: Scalar>(a: &Csr<T>) -> Permutation {
    lengths_falling(PatternRef::of(a))
}

fn lengths_falling(a: PatternRef<'_>) -> Permutation {
    let mut order: Vec<u32> = (0..a.rows as u32).collect();
    order.sort_by_key(|&row| Reverse(a.row(row as usize).len()));
    Permutation::known(order)
}

/// Connected parts of `rows` rows, in order, each grown from a row that is far from the others and adjacent
/// to the previous part.
pub fn by_parts<T: Scalar>(a: &Csr<T>, rows: usize) -> Permutation {
    interrupt::unchecked(|| connected_parts(PatternRef::of(a), rows))
}

fn connected_parts(a: PatternRef<'_>, rows: usize) -> Result<Permutation> {
    let graph = Graph::of(a)?;
    let mut order = Vec::with_capacity(graph.len());
    let mut taken = vec![false; graph.len()];
    let mut search = Search::new(graph.len());
    let (mut border, mut left) = (VecDeque::<u32>::new(), 0);
    for first in 0..graph.len() as u32 {
        while !taken[first as usize] {
            if left == 0 {
                left = rows.max(1);
                border.retain(|&row| !taken[row as usize]);
                let start = border.front().copied().unwrap_or(first);
                let reach = left.saturating_mul(SEARCHED);
                border = VecDeque::from([graph.peripheral(start, &taken, &mut search, reach)?]);
            }
            let row = border.pop_front().unwrap_or(first);
            if !std::mem::replace(&mut taken[row as usize], true) {
                interrupt::check_at(order.len())?;
                order.push(row);
                left -= 1;
                border.extend(graph.of_row(row).iter().copied().filter(|&j| !taken[j as usize]));
            }
        }
    }
    Ok(Permutation::known(order))
}
