//! The graph of what is left of a matrix while its rows are eliminated.
use super::NONE;
use std::ops::Range;

/// What a number stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Rows that are eliminated together, not yet.
    Variable,
    /// Rows that were eliminated, which couples all of its list.
    Element,
    /// Nothing any more: its parent has it.
    Gone,
}

/// The graph of what is left of a matrix while its rows are eliminated. Eliminated rows stand for the couplings between all that
/// they were coupled with.
pub(super) struct Quotient {
    /// Where the list of each begins in `lists`, and its length. That of a variable has elements first, so many, then variables.
    pub(super) start: Vec<u32>,
    pub(super) length: Vec<u32>,
    elements: Vec<u32>,
    pub(super) lists: Vec<u32>,
    pub(super) state: Vec<State>,
    /// The rows that a variable stands for; negative while it is in the list of the element that is being made.
    pub(super) rows: Vec<i32>,
    /// At most so many rows are coupled with a variable, or in the list of an element.
    pub(super) degree: Vec<u32>,
    /// Marks, and how many rows of an element are outside of another one; 0 for elements that are gone.
    pub(super) mark: Vec<u32>,
    pub(super) stamp: u32,
    /// Which element or variable took over what is gone.
    pub(super) parent: Vec<u32>,
    pub(super) buckets: Buckets,
    /// Places of lists that were looked at.
    pub(super) work: usize,
}

/// Variables by degree, in lists whose first was entered last.
pub(super) struct Buckets {
    first: Vec<u32>,
    pub(super) next: Vec<u32>,
    pub(super) last: Vec<u32>,
    least: usize,
}

impl Buckets {
    pub(super) fn enter(&mut self, i: u32, degree: u32) {
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
    pub(super) fn take(&mut self) -> Option<u32> {
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
    pub(super) fn new(ptr: Vec<u32>, to: Vec<u32>) -> Self {
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
    pub(super) fn become_element(&mut self, me: usize) -> Option<u32> {
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
    pub(super) fn renew_stamp(&mut self, most: u32) {
        if self.stamp > i32::MAX as u32 - most {
            self.mark.iter_mut().filter(|mark| **mark != 0).for_each(|mark| *mark = 1);
            self.stamp = 2;
        }
    }

    /// Counts, for each element that variables of a list are in, the rows of it that are outside of the list.
    pub(super) fn count_outside(&mut self, list: Range<usize>) {
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
    pub(super) fn update(&mut self, i: usize, me: u32) -> Option<u32> {
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

    /// Makes one of those variables that are coupled with the same, among some with the same hash: the first, and each `next` one.
    pub(super) fn unite(&mut self, first: u32) {
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
