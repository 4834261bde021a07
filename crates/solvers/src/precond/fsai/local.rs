//! A row of the factor: its pattern, and the small dense system that its values solve.
use super::FsaiOptions;
use lacuna_engine::Scalar;
use lacuna_formats::Csr;

/// What a thread works with.
pub(super) struct Local<T> {
    /// Columns of the row, increasing, its own the last.
    pattern: Vec<u32>,
    /// Rows reached, those above too.
    reached: Vec<u32>,
    /// The row that reached each last, plus one.
    mark: Vec<u32>,
    /// The part of the matrix, lower triangle by rows.
    dense: Vec<T>,
    solution: Vec<T>,
    /// Columns that the pattern may grow by, with what each promises.
    gains: Vec<(f64, u32)>,
    /// What is summed up for each of them, 0 between.
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
    /// Its values.
    pub(super) fn solution(&self) -> &[T] {
        &self.solution
    }

    /// Takes a pattern, whose last column is the row; whether it is one.
    pub(super) fn take(&mut self, pattern: &[u32]) -> bool {
        self.pattern.clear();
        self.pattern.extend_from_slice(pattern);
        !pattern.is_empty()
    }

    /// The pattern of row `i`: what it reaches in `power` steps, up to the diagonal.
    pub(super) fn reach(&mut self, a: &Csr<T>, i: usize, power: usize) -> bool {
        let own = i as u32 + 1;
        self.reached.clear();
        self.reached.push(i as u32);
        self.mark[i] = own;
        let mut from = 0;
        for _ in 0..power {
            let to = self.reached.len();
            for k in from..to {
                for &j in a.row_slices(self.reached[k] as usize).0 {
                    if std::mem::replace(&mut self.mark[j as usize], own) != own {
                        self.reached.push(j);
                    }
                }
            }
            from = to;
        }
        self.pattern.clear();
        self.pattern.extend(self.reached.iter().filter(|&&j| j as usize <= i));
        self.pattern.sort_unstable();
        true
    }

    /// Lets the pattern of row `i` grow from its diagonal by the entries along which `G A Gᴴ` falls most, and solves; whether it
    /// could.
    pub(super) fn grow(&mut self, a: &Csr<T>, i: usize, options: &FsaiOptions) -> bool {
        let own = i as u32;
        if !(self.take(&[own]) && self.solve(a)) {
            return false;
        }
        for _ in 0..options.steps {
            let last = self.pattern.len() - 1;
            let before = self.solution[last].re();
            // The gradient: rows of A times what is there, left of the diagonal.
            self.gains.clear();
            for (&j, g) in self.pattern.iter().zip(&self.solution) {
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
            // A column whose sum vanished on the way is there twice, the second time without a promise.
            self.gains.retain(|(promise, _)| *promise > 0.0);
            self.gains.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            self.gains.truncate(options.add);
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

    /// Solves `A_JJ y = e` for the last unit vector on the pattern, and keeps `ȳ / √y_i`; whether it could.
    pub(super) fn solve(&mut self, a: &Csr<T>) -> bool {
        let m = self.pattern.len();
        let at = |i: usize| i * (i + 1) / 2;
        self.dense.clear();
        self.dense.resize(at(m), T::zero());
        for (r, &row) in self.pattern.iter().enumerate() {
            let (columns, values) = a.row_slices(row as usize);
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
        // Forward substitution leaves the last unit vector over the last pivot; then back, and the root of the last
        // element divides out that pivot once.
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
