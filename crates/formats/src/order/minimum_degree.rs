//! Approximate minimum degree: an order of elimination for factors with little fill.
use super::graph::mirrored;
use crate::interrupt;
use lacuna_engine::Result;
use std::ops::Range;

const NONE: u32 = u32::MAX;
/// A row with more couplings than this many times the square root of the number of rows comes last.
const DENSE: f64 = 10.0;
/// An order of the rows of a matrix by minimum degree, in which each subtree of the elimination tree stands together, and what
/// factors without exchanges of rows cost in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MinimumDegree {
    /// The rows, in their new order.
    pub order: Vec<u32>,
    /// Entries of a lower triangular factor without its diagonal, at most.
    pub entries: f64,
    /// Multiplications and subtractions of LU factors.
    pub operations: f64,
    /// The units of work that it took.
    pub work: f64,
}

/// What a number stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Rows that are eliminated together, not yet.
    Variable,
    /// Rows that were eliminated, which couples all of its list.
    Element,
    /// Nothing any more: its parent has it.
    Gone,
}

/// The graph of what is left of a matrix while its rows are eliminated. Eliminated rows stand for the couplings between all that
/// they were coupled with.
struct Quotient {
    /// Where the list of each begins in `lists`, and its length. That of a variable has elements first, so many, then variables.
    start: Vec<u32>,
    length: Vec<u32>,
    elements: Vec<u32>,
    lists: Vec<u32>,
    state: Vec<State>,
    /// The rows that a variable stands for; negative while it is in the list of the element that is being made.
    rows: Vec<i32>,
    /// At most so many rows are coupled with a variable, or in the list of an element.
    degree: Vec<u32>,
    /// Marks, and how many rows of an element are outside of another one; 0 for elements that are gone.
    mark: Vec<u32>,
    stamp: u32,
    /// Which element or variable took over what is gone.
    parent: Vec<u32>,
    buckets: Buckets,
    /// Places of lists that were looked at.
    work: usize,
}

/// Variables by degree, in lists whose first was entered last.
struct Buckets {
    first: Vec<u32>,
    next: Vec<u32>,
    last: Vec<u32>,
    least: usize,
}

impl Buckets {
    fn enter(&mut self, i: u32, degree: u32) {
        let head = std::mem::replace(&mut self.first[degree as usize], i);
        if head != NONE {
            self.last[head as usize] = i;
        }
        (self.next[i as usize], self.last[i as usize]) = (head, NONE);
        self.least = self.least.min(degree as usize);
    }
    fn leave(&mut self, i: u32, degree: u32) {
        let (next, last) = (self.next[i as usize], self.last[i as usize]);
        if next != NONE {
            self.last[next as usize] = last;
        }
        match last {
            NONE => self.first[degree as usize] = next,
            _ => self.next[last as usize] = next,
        }
    }
    /// The variable of least degree that was entered last.
    fn take(&mut self) -> Option<u32> {
        while self.least < self.first.len() {
            let i = self.first[self.least];
            if i != NONE {
                self.leave(i, self.least as u32);
                return Some(i);
            }
            self.least += 1;
        }
        None
    }
}

impl Quotient {
    fn new(ptr: Vec<u32>, to: Vec<u32>) -> Self {
        let n = ptr.len() - 1;
        let length: Vec<u32> = ptr.windows(2).map(|w| w[1] - w[0]).collect();
        let none = || vec![NONE; n];
        let mut start = ptr;
        start.truncate(n);
        let mut lists = to;
        // Lists of what is eliminated are put at the end, until there is no room.
        lists.reserve(lists.len() + n);
        Quotient {
            start,
            degree: length.clone(),
            length,
            elements: vec![0; n],
            lists,
            state: vec![State::Variable; n],
            rows: vec![1; n],
            mark: vec![1; n],
            stamp: 2,
            parent: none(),
            buckets: Buckets { first: none(), next: none(), last: none(), least: n },
            work: 0,
        }
    }

    /// Moves all lists that are used to the front.
    fn compress(&mut self) {
        let n = self.start.len();
        let is_used = |i: usize| match self.state[i] {
            State::Variable => self.rows[i] != 0,
            State::Element => self.mark[i] != 0,
            State::Gone => false,
        };
        let mut used: Vec<u32> = (0..n).filter(|&i| is_used(i)).map(|i| i as u32).collect();
        used.sort_unstable_by_key(|&i| self.start[i as usize]);
        let mut end = 0;
        for i in used {
            let from = self.start[i as usize] as usize;
            let length = self.length[i as usize] as usize;
            self.lists.copy_within(from..from + length, end);
            self.start[i as usize] = end as u32;
            end += length;
        }
        self.lists.truncate(end);
        self.work += n + end;
    }

    /// Puts a variable into the list of the element that is being made.
    #[inline]
    fn gather(&mut self, i: u32, degree: &mut u32) -> bool {
        let rows = self.rows[i as usize];
        if rows <= 0 {
            return false;
        }
        *degree += rows as u32;
        self.rows[i as usize] = -rows;
        self.buckets.leave(i, self.degree[i as usize]);
        true
    }

    /// Makes a variable an element, whose list has all that it is coupled with. Returns the number of rows in it, unless places of
    /// lists cannot be counted in 32 bits.
    fn become_element(&mut self, me: usize) -> Option<u32> {
        let (begin, length) = (self.start[me] as usize, self.length[me] as usize);
        let elements = self.elements[me] as usize;
        self.work += length;
        let mut degree = 0;
        if elements == 0 {
            let mut end = begin;
            for at in begin..begin + length {
                let i = self.lists[at];
                if self.gather(i, &mut degree) {
                    self.lists[end] = i;
                    end += 1;
                }
            }
            self.length[me] = (end - begin) as u32;
        } else {
            let most: usize = (begin..begin + elements)
                .map(|at| self.length[self.lists[at] as usize] as usize)
                .sum::<usize>()
                + length;
            if self.lists.len() + most > self.lists.capacity() {
                self.compress();
                u32::try_from(self.lists.len() + most).ok()?;
                self.lists.reserve(most);
            }
            let begin = self.start[me] as usize;
            let first = self.lists.len();
            for at in begin..begin + elements {
                let e = self.lists[at] as usize;
                let of = self.start[e] as usize..(self.start[e] + self.length[e]) as usize;
                self.work += of.len();
                for at in of {
                    let i = self.lists[at];
                    if self.gather(i, &mut degree) {
                        self.lists.push(i);
                    }
                }
                self.parent[e] = me as u32;
                (self.state[e], self.mark[e]) = (State::Gone, 0);
            }
            for at in begin + elements..begin + length {
                let i = self.lists[at];
                if self.gather(i, &mut degree) {
                    self.lists.push(i);
                }
            }
            self.start[me] = first as u32;
            self.length[me] = (self.lists.len() - first) as u32;
        }
        self.state[me] = State::Element;
        Some(degree)
    }

    /// A stamp that no mark reaches, after which `most` more may be given.
    fn renew_stamp(&mut self, most: u32) {
        if self.stamp > i32::MAX as u32 - most {
            self.mark.iter_mut().filter(|mark| **mark != 0).for_each(|mark| *mark = 1);
            self.stamp = 2;
        }
    }

    /// Counts, for each element that variables of a list are in, the rows of it that are outside of the list.
    fn count_outside(&mut self, list: Range<usize>) {
        for at in list {
            let i = self.lists[at] as usize;
            let begin = self.start[i] as usize;
            let rows = self.rows[i].unsigned_abs();
            let elements = begin..begin + self.elements[i] as usize;
            self.work += elements.len();
            for at in elements {
                let e = self.lists[at] as usize;
                let mark = self.mark[e];
                if mark >= self.stamp {
                    self.mark[e] = mark - rows;
                } else if mark != 0 {
                    self.mark[e] = self.degree[e] + self.stamp - rows;
                }
            }
        }
    }

    /// Brings the list of a variable of the new element up to date. Returns its hash, or nothing if it is coupled with nothing else
    /// and was eliminated too.
    fn update(&mut self, i: usize, me: u32) -> Option<u32> {
        let begin = self.start[i] as usize;
        let (elements, length) = (self.elements[i] as usize, self.length[i] as usize);
        self.work += length;
        let (mut end, mut degree, mut hash) = (begin, 0u32, 0u32);
        for at in begin..begin + elements {
            let e = self.lists[at];
            let mark = self.mark[e as usize];
            if mark == 0 {
                continue;
            }
            let outside = mark - self.stamp;
            if outside > 0 {
                degree += outside;
                self.lists[end] = e;
                end += 1;
                hash = hash.wrapping_add(e);
            } else {
                // All of it is in the new element.
                self.parent[e as usize] = me;
                (self.state[e as usize], self.mark[e as usize]) = (State::Gone, 0);
            }
        }
        let kept = end - begin;
        let first_variable = end;
        for at in begin + elements..begin + length {
            let j = self.lists[at];
            let rows = self.rows[j as usize];
            if rows > 0 {
                degree += rows as u32;
                self.lists[end] = j;
                end += 1;
                hash = hash.wrapping_add(j);
            }
        }
        if kept == 0 && end == first_variable {
            return None;
        }
        self.degree[i] = self.degree[i].min(degree);
        // The new element comes first: it takes the place of one that is gone, or of a variable in it.
        let count = end - begin + 1;
        self.lists[end] = self.lists[first_variable];
        self.lists[first_variable] = self.lists[begin];
        self.lists[begin] = me;
        (self.elements[i], self.length[i]) = (kept as u32 + 1, count as u32);
        Some(hash.wrapping_add(me))
    }

    /// Whether two variables are coupled with the same; those of the first are marked.
    fn is_same(&mut self, i: usize, j: usize) -> bool {
        if self.length[i] != self.length[j] || self.elements[i] != self.elements[j] {
            return false;
        }
        let of = self.start[j] as usize + 1..(self.start[j] + self.length[j]) as usize;
        self.work += of.len();
        self.lists[of].iter().all(|k| self.mark[*k as usize] == self.stamp)
    }

    /// Makes one of variables that are coupled with the same. They have the same hash: `chains` has the first of each, and `next`
    /// the others.
    fn unite(&mut self, first: u32) {
        let mut i = first;
        while i != NONE && self.buckets.next[i as usize] != NONE {
            let of = self.start[i as usize] as usize + 1
                ..(self.start[i as usize] + self.length[i as usize]) as usize;
            self.work += of.len();
            for at in of {
                self.mark[self.lists[at] as usize] = self.stamp;
            }
            let (mut before, mut j) = (i, self.buckets.next[i as usize]);
            while j != NONE {
                let next = self.buckets.next[j as usize];
                if self.is_same(i as usize, j as usize) {
                    self.parent[j as usize] = i;
                    self.rows[i as usize] += self.rows[j as usize];
                    self.rows[j as usize] = 0;
                    self.state[j as usize] = State::Gone;
                    self.buckets.next[before as usize] = next;
                } else {
                    before = j;
                }
                j = next;
            }
            self.stamp += 1;
            i = self.buckets.next[i as usize];
        }
    }
}

/// An order by approximate minimum degree for the graph of `A + Aᵀ` of a matrix of `n` rows. The columns of row `i` are
/// `columns[ptr[i]..ptr[i + 1]]`, in any order; what is no row is ignored. `None` if it would take more than `most` units of work,
/// each a place of a list that is looked at: 5e-9 to 1e-8 s.
///
/// ```
/// // A chain of 1000 rows has no fill.
/// let columns: Vec<u32> = (1..1000).collect();
/// let ptr: Vec<u32> = (0..=1000).map(|i| i.min(999)).collect();
/// let found = lacuna_formats::minimum_degree(1000, &ptr, &columns, f64::INFINITY)?.expect("no limit");
/// assert_eq!(found.entries, 999.0);
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
///
/// # Errors
/// Those of a check in a running set-up, which is asked every now and then.
///
/// Reference: Amestoy, Davis and Duff 1996, doi:10.1137/S0895479894278952.
pub fn minimum_degree(n: usize, ptr: &[u32], columns: &[u32], most: f64) -> Result<Option<MinimumDegree>> {
    // Couplings in both directions are counted in 32 bits, and lists of what is eliminated come beside them.
    if columns.len() > (u32::MAX / 4) as usize {
        return Ok(None);
    }
    let (starts, to) = mirrored(n, ptr, columns);
    let mut q = Quotient::new(starts, to);
    let dense = ((DENSE * (n as f64).sqrt()) as u32).max(16).min(n as u32);
    let (mut left, mut rows_last) = (n, Vec::new());
    let mut pivots: Vec<(u32, u32)> = Vec::new();
    // Rows without couplings are eliminated first; dense ones are no part of the graph.
    for i in 0..n {
        match q.degree[i] {
            0 => {
                (q.state[i], q.mark[i]) = (State::Element, 0);
                pivots.push((i as u32, 1));
                left -= 1;
            }
            degree if degree > dense => {
                (q.state[i], q.rows[i]) = (State::Gone, 0);
                rows_last.push(i as u32);
                left -= 1;
            }
            degree => q.buckets.enter(i as u32, degree),
        }
    }
    let of_dense = rows_last.len() as f64;
    let (mut entries, mut operations) = (0.0, 0.0);
    let (mut longest, mut chains) = (0u32, vec![NONE; n.max(1)]);
    while left > 0 {
        if q.work as f64 > most {
            return Ok(None);
        }
        interrupt::check_at(pivots.len())?;
        let Some(me) = q.buckets.take() else { break };
        let mut pivot_rows = q.rows[me as usize];
        left -= pivot_rows as usize;
        q.rows[me as usize] = -pivot_rows;
        let Some(mut degree) = q.become_element(me as usize) else { return Ok(None) };
        q.degree[me as usize] = degree;
        q.renew_stamp(n as u32);
        let begin = q.start[me as usize] as usize;
        let list = begin..begin + q.length[me as usize] as usize;
        q.count_outside(list.clone());
        for at in list.clone() {
            let i = q.lists[at];
            match q.update(i as usize, me) {
                None => {
                    // Eliminated with the pivot.
                    let rows = -q.rows[i as usize];
                    (q.parent[i as usize], q.rows[i as usize]) = (me, 0);
                    q.state[i as usize] = State::Gone;
                    degree -= rows as u32;
                    pivot_rows += rows;
                    left -= rows as usize;
                }
                Some(hash) => {
                    let chain = hash as usize % n;
                    q.buckets.next[i as usize] = std::mem::replace(&mut chains[chain], i);
                    q.buckets.last[i as usize] = chain as u32;
                }
            }
        }
        q.degree[me as usize] = degree;
        longest = longest.max(degree);
        q.stamp += longest;
        q.renew_stamp(n as u32);
        for at in list.clone() {
            let i = q.lists[at] as usize;
            if q.rows[i] < 0 {
                let chain = q.buckets.last[i] as usize;
                let first = std::mem::replace(&mut chains[chain], NONE);
                q.unite(first);
            }
        }
        // What is left of the list, with its degrees.
        let mut end = begin;
        for at in list {
            let i = q.lists[at];
            let rows = -q.rows[i as usize];
            if rows > 0 {
                q.rows[i as usize] = rows;
                let others = degree - rows as u32;
                let of_i = (q.degree[i as usize] + others).min(left as u32 - rows as u32);
                q.degree[i as usize] = of_i;
                q.buckets.enter(i, of_i);
                q.lists[end] = i;
                end += 1;
            }
        }
        q.rows[me as usize] = pivot_rows;
        q.length[me as usize] = (end - begin) as u32;
        if end == begin {
            q.mark[me as usize] = 0;
        }
        let (own, below) = (f64::from(pivot_rows), f64::from(degree) + of_dense);
        entries += own * below + (own - 1.0) * own / 2.0;
        operations +=
            own * below * below + below * (own - 1.0) * own + (own - 1.0) * own * (2.0 * own - 1.0) / 6.0;
        pivots.push((me, pivot_rows as u32 + degree));
    }
    let own = of_dense;
    entries += (own - 1.0).max(0.0) * own / 2.0;
    operations += (own - 1.0).max(0.0) * own * (2.0 * own - 1.0) / 6.0;
    let order = ordered(&q, &pivots, &rows_last);
    Ok(Some(MinimumDegree { order, entries, operations, work: q.work as f64 }))
}

/// The rows of all pivots in a postorder of the tree of elements, the child with the largest front last; then some more.
fn ordered(q: &Quotient, pivots: &[(u32, u32)], rows_last: &[u32]) -> Vec<u32> {
    let n = q.start.len();
    let mut is_pivot = vec![false; n];
    pivots.iter().for_each(|(pivot, _)| is_pivot[*pivot as usize] = true);
    // The pivot with which each row is eliminated.
    let mut with = vec![NONE; n];
    let mut path = Vec::new();
    for i in 0..n as u32 {
        let mut k = i;
        while k != NONE && !is_pivot[k as usize] && with[k as usize] == NONE {
            path.push(k);
            k = q.parent[k as usize];
        }
        let pivot = if k == NONE || is_pivot[k as usize] { k } else { with[k as usize] };
        path.drain(..).for_each(|k| with[k as usize] = pivot);
        if is_pivot[i as usize] {
            with[i as usize] = i;
        }
    }
    // Lists of the rows of each pivot, and of the children of each.
    let (mut row, mut next_row) = (vec![NONE; n], vec![NONE; n]);
    for i in (0..n as u32).rev().filter(|&i| with[i as usize] != NONE) {
        next_row[i as usize] = std::mem::replace(&mut row[with[i as usize] as usize], i);
    }
    let parent = |pivot: u32| match q.parent[pivot as usize] {
        NONE => NONE,
        up => with[up as usize],
    };
    let (mut child, mut sibling, mut largest) = (vec![NONE; n], vec![NONE; n], vec![(0, NONE); n]);
    for &(pivot, front) in pivots {
        let up = parent(pivot);
        if up != NONE && front >= largest[up as usize].0 {
            largest[up as usize] = (front, pivot);
        }
    }
    // What is put in front last is the first: the largest, which goes first, is the last.
    for is_largest in [true, false] {
        for &(pivot, _) in pivots.iter().rev() {
            let up = parent(pivot);
            if up != NONE && (largest[up as usize].1 == pivot) == is_largest {
                sibling[pivot as usize] = std::mem::replace(&mut child[up as usize], pivot);
            }
        }
    }
    let mut order = Vec::with_capacity(n);
    let mut open = Vec::new();
    for &(root, _) in pivots.iter().filter(|(pivot, _)| parent(*pivot) == NONE) {
        open.push(root);
        while let Some(&pivot) = open.last() {
            let next = std::mem::replace(&mut child[pivot as usize], NONE);
            if next != NONE {
                child[pivot as usize] = sibling[next as usize];
                open.push(next);
                continue;
            }
            let mut i = row[pivot as usize];
            while i != NONE {
                order.push(i);
                i = next_row[i as usize];
            }
            open.pop();
        }
    }
    order.extend(rows_last);
    order
}
