//! One row of the factor: its pattern, and the small dense system for its values.
use super::FsaiOptions;
use lacuna_engine::Scalar;
use lacuna_formats::Csr;

/// No pattern grows through a row with more entries, unless it is the row itself: all rows coupled to it would be as long.
const LONG: usize = 1024;
/// The entries of a row that are looked through for one of its pattern, rather than searched.
const DENSE: usize = 16;

/// Workspace of a thread.
pub(super) struct Local<T> {
    /// Columns of the row in increasing order; the last is the diagonal.
    pattern: Vec<u32>,
    /// Rows reached, including those above the diagonal.
    reached: Vec<u32>,
    /// For each row, the row that reached it last, plus one.
    mark: Vec<u32>,
    /// The dense submatrix, its lower triangle stored by rows.
    dense: Vec<T>,
    solution: Vec<T>,
    /// Columns by which the pattern may grow, each with its expected gain.
    gains: Vec<(f64, u32)>,
    /// The sum for each of these columns; 0 between uses.
    gain: Vec<T>,
}

impl<T: Scalar> Local<T> {
    pub(super) fn new(n: usize) -> Self {
        let (pattern, reached, dense, solution) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (gains, gain) = (Vec::new(), vec![T::zero(); n]);
        Local { pattern, reached, mark: vec![0; n], dense, solution, gains, gain }
    }

    /// The columns of the row.
    pub(super) fn pattern(&self) -> &[u32] {
        &self.pattern
    }
    /// The values of the row.
    pub(super) fn solution(&self) -> &[T] {
        &self.solution
    }

    /// Sets the pattern, whose last column is the row itself. Returns whether it is not empty.
    pub(super) fn take(&mut self, pattern: &[u32]) -> bool {
        self.pattern.clear();
        self.pattern.extend_from_slice(pattern);
        !pattern.is_empty()
    }

    /// Sets the pattern of row `i` to the columns reached in at most `power` steps, up to the diagonal; if these are too many, to
    /// the diagonal and those of the largest entries.
    pub(super) fn reach(&mut self, a: &Csr<T>, i: usize, options: &FsaiOptions) -> bool {
        let own = i as u32 + 1;
        self.reached.clear();
        self.reached.push(i as u32);
        self.mark[i] = own;
        let mut from = 0;
        for _ in 0..options.power {
            let to = self.reached.len();
            for k in from..to {
                let through = self.reached[k] as usize;
                let columns = a.row_slices(through).0;
                if through != i && columns.len() > LONG {
                    continue;
                }
                for &j in columns {
                    if std::mem::replace(&mut self.mark[j as usize], own) != own {
                        self.reached.push(j);
                    }
                }
            }
            from = to;
        }
        self.pattern.clear();
        self.pattern.extend(self.reached.iter().filter(|&&j| j as usize <= i));
        if self.pattern.len() > options.entries {
            let (columns, values) = a.row_slices(i);
            // Of two as large, the nearer one.
            let size = |j: u32| match columns.binary_search(&j) {
                _ if j as usize == i => f64::INFINITY,
                Ok(at) => values[at].modulus(),
                Err(_) => 0.0,
            };
            self.pattern.sort_unstable_by(|&j, &l| size(l).total_cmp(&size(j)).then(l.cmp(&j)));
            self.pattern.truncate(options.entries);
        }
        self.pattern.sort_unstable();
        true
    }

    /// Grows the pattern of row `i` from its diagonal by the entries that decrease `G A Gᴴ` most, and solves.
    /// Returns whether that succeeded.
    pub(super) fn grow(&mut self, a: &Csr<T>, i: usize, options: &FsaiOptions) -> bool {
        let own = i as u32;
        if !(self.take(&[own]) && self.solve(a)) {
            return false;
        }
        for _ in 0..options.steps {
            let last = self.pattern.len() - 1;
            let before = self.solution[last].re();
            // The gradient: products of rows of A with the current row of G, left of the diagonal.
            self.gains.clear();
            for (&j, g) in self.pattern.iter().zip(&self.solution) {
                if j != own && a.row_slices(j as usize).0.len() > LONG {
                    continue;
                }
                for (k, v) in a.row_entries(j as usize).take_while(|&(k, _)| k < i) {
                    if self.gain[k] == T::zero() {
                        self.gains.push((0.0, k as u32));
                    }
                    self.gain[k] += v * *g;
                }
            }
            for (promise, k) in &mut self.gains {
                let sum = std::mem::replace(&mut self.gain[*k as usize], T::zero());
                let diagonal = a.get(*k as usize, *k as usize).map_or(0.0, |d| d.re());
                let inside = self.pattern.binary_search(k).is_ok();
                *promise = if inside || diagonal <= 0.0 { 0.0 } else { sum.modulus().powi(2) / diagonal };
            }
            // If the sum of a column vanished on the way, the column is listed twice, the second time with no
            // gain.
            self.gains.retain(|(promise, _)| *promise > 0.0);
            self.gains.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            self.gains.truncate(options.add.min(options.entries.saturating_sub(self.pattern.len())));
            if self.gains.is_empty() {
                break;
            }
            self.pattern.extend(self.gains.iter().map(|gain| gain.1));
            self.pattern.sort_unstable();
            if !self.solve(a) {
                return false;
            }
            let after = self.solution[self.pattern.len() - 1].re();
            if after <= before * (1.0 + options.tolerance) {
                break;
            }
        }
        true
    }

    /// Solves `A_JJ y = e` on the pattern `J`, with the last unit vector `e`, and stores `ȳ / √y_i`. Returns
    /// whether that succeeded.
    pub(super) fn solve(&mut self, a: &Csr<T>) -> bool {
        let m = self.pattern.len();
        let at = |i: usize| i * (i + 1) / 2;
        self.dense.clear();
        self.dense.resize(at(m), T::zero());
        for (r, &row) in self.pattern.iter().enumerate() {
            let (columns, values) = a.row_slices(row as usize);
            if columns.len() > DENSE * m {
                for (place, j) in self.pattern[..=r].iter().enumerate() {
                    if let Ok(k) = columns.binary_search(j) {
                        self.dense[at(r) + place] = values[k];
                    }
                }
                continue;
            }
            let mut place = 0;
            for (&j, &v) in columns.iter().zip(values) {
                if j > row {
                    break;
                }
                while place < r && self.pattern[place] < j {
                    place += 1;
                }
                if self.pattern[place] == j {
                    self.dense[at(r) + place] = v;
                }
            }
        }
        // Cholesky's factorisation, row by row.
        for i in 0..m {
            for j in 0..=i {
                let (row_i, row_j) = (&self.dense[at(i)..at(i) + j], &self.dense[at(j)..at(j) + j]);
                let sum = row_i.iter().zip(row_j).fold(self.dense[at(i) + j], |s, (&x, &y)| s - x * y.conj());
                if i == j {
                    let root = sum.re().sqrt();
                    if !(root > 0.0 && root.is_finite() && sum.im() == 0.0) {
                        return false;
                    }
                    self.dense[at(i) + i] = T::from_real(root);
                } else {
                    self.dense[at(i) + j] = sum.quotient(self.dense[at(j) + j]);
                }
            }
        }
        // Forward substitution gives the last unit vector divided by the last pivot. Back substitution
        // follows; the square root of the last element cancels that pivot once.
        self.solution.clear();
        self.solution.resize(m, T::zero());
        self.solution[m - 1] = T::one();
        for i in (0..m).rev() {
            let y = self.solution[i].quotient(self.dense[at(i) + i]);
            self.solution[i] = y;
            for j in 0..i {
                let l = self.dense[at(i) + j].conj();
                self.solution[j] -= l * y;
            }
        }
        self.solution.iter_mut().for_each(|y| *y = y.conj());
        self.solution.iter().all(|y| y.finite())
    }
}
